/// A struct of settings, each with its default, without a derive: a policy that
/// uses nothing else is built without any procedural macro.
///
/// The fields are of types that serde reads and writes. A setting that is left
/// out has its default, and one that the struct does not have is an error.
///
/// ```
/// tread_guest_sdk::settings! {
///     /// What an admin can set.
///     #[derive(Debug, PartialEq)]
///     pub struct Settings {
///         /// The service that reads the file.
///         pub service: String = "chronyd.service".to_string(),
///         /// Whether it takes a restart.
///         pub restart: bool = false,
///     }
/// }
/// assert_eq!(Settings::default().service, "chronyd.service");
/// ```
#[macro_export]
macro_rules! settings {
    (
        $(#[$of_struct:meta])*
        $public:vis struct $name:ident {
            $($(#[$of_field:meta])* $seen:vis $field:ident: $type:ty = $default:expr),* $(,)?
        }
    ) => {
        $(#[$of_struct])*
        $public struct $name {
            $($(#[$of_field])* $seen $field: $type,)*
        }

        impl ::std::default::Default for $name {
            fn default() -> $name {
                $name { $($field: $default,)* }
            }
        }

        const _: () = {
            use $crate::serde::{
                Deserialize, Deserializer, Serialize, Serializer,
                de::{Error as _, MapAccess, Visitor},
                ser::SerializeStruct as _,
            };

            const FIELDS: &[&str] = &[$($crate::field_name(stringify!($field))),*];

            impl Serialize for $name {
                fn serialize<S: Serializer>(&self, to: S) -> ::std::result::Result<S::Ok, S::Error> {
                    let mut fields = to.serialize_struct(stringify!($name), FIELDS.len())?;
                    $(fields.serialize_field($crate::field_name(stringify!($field)), &self.$field)?;)*
                    fields.end()
                }
            }

            struct Fields;

            impl<'de> Visitor<'de> for Fields {
                type Value = $name;

                fn expecting(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                    f.write_str("an object of settings")
                }

                fn visit_map<A: MapAccess<'de>>(
                    self,
                    mut map: A,
                ) -> ::std::result::Result<$name, A::Error> {
                    let mut settings = $name::default();
                    while let Some(key) = map.next_key::<::std::string::String>()? {
                        match key.as_str() {
                            $(
                                key if key == $crate::field_name(stringify!($field)) => {
                                    settings.$field = map.next_value()?;
                                }
                            )*
                            other => return Err(A::Error::unknown_field(other, FIELDS)),
                        }
                    }
                    Ok(settings)
                }
            }

            impl<'de> Deserialize<'de> for $name {
                fn deserialize<D: Deserializer<'de>>(
                    from: D,
                ) -> ::std::result::Result<$name, D::Error> {
                    from.deserialize_map(Fields)
                }
            }
        };
    };
}

/// What a field is called in JSON: a keyword of Rust's is written as `r#type`.
///
/// ```
/// assert_eq!(tread_guest_sdk::field_name("r#type"), "type");
/// ```
#[doc(hidden)]
pub const fn field_name(field: &'static str) -> &'static str {
    match field.as_bytes() {
        [b'r', b'#', ..] => field.split_at(2).1,
        _ => field,
    }
}

#[cfg(test)]
mod tests {
    use crate::json;

    crate::settings! {
        #[derive(Debug, PartialEq)]
        struct Settings {
            /// A list.
            names: Vec<String> = vec!["a".to_string()],
            many: u32 = 7,
            r#type: bool = false,
        }
    }

    #[test]
    fn settings_are_written_and_read_and_those_that_are_left_out_have_their_defaults() {
        let text = serde_json::to_string(&Settings::default()).unwrap();
        assert_eq!(text, r#"{"names":["a"],"many":7,"type":false}"#);
        assert_eq!(json::read::<Settings>(&text).unwrap(), Settings::default());
        let read: Settings = json::read(r#"{"many": 8, "type": true}"#).unwrap();
        assert_eq!(read, Settings { many: 8, r#type: true, ..Settings::default() });
    }

    #[test]
    fn what_is_no_setting_or_of_another_type_is_an_error() {
        for (text, words) in [
            (r#"{"mayn": 8}"#, "unknown field `mayn`"),
            (r#"{"many": "8"}"#, "expected u32"),
            ("[]", "an object of settings"),
        ] {
            let error = json::read::<Settings>(text).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
