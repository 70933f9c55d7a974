//! An object as a watch brings it. One that cannot be read, whoever wrote it,
//! does not take the others with it: kube reads a list as a whole, or not at all.

use kube::api::ApiResource;
use kube::core::{DynamicResourceScope, ObjectMeta};
use kube::{Api, Resource};
use serde::de::{DeserializeOwned, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value};
use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

/// How deep an object may be nested: below what serde_json takes of a list.
const DEEPEST: usize = 100;

/// What nobody needs, and what anybody may nest as deep as they like.
const UNREAD: &[&str] = &["metadata", "managedFields", "fieldsV1"];

/// An object that was read, or why it was not.
#[derive(Debug, Clone)]
pub enum Parsed<K> {
    /// The object.
    Read(K),
    /// Its name, namespace and UID are all that is known of it.
    Unreadable(Box<ObjectMeta>, String),
}

impl<K> Parsed<K> {
    /// The object, if it was read.
    pub fn read(self) -> Option<K> {
        match self {
            Parsed::Read(object) => Some(object),
            Parsed::Unreadable(..) => None,
        }
    }
}

/// The objects of an API, each read by itself.
pub fn each_by_itself<K: Resource>(api: Api<K>) -> Api<Parsed<K>> {
    let kind = kind_at(api.resource_url());
    let namespace = api.namespace().map(str::to_owned);
    let client = api.into_client();
    match namespace {
        Some(namespace) => Api::namespaced_with(client, &namespace, &kind),
        None => Api::all_with(client, &kind),
    }
}

/// The kind whose objects are at `/api/VERSION/…/PLURAL` or
/// `/apis/GROUP/VERSION/…/PLURAL`.
pub fn kind_at(url: &str) -> ApiResource {
    let mut parts = url.split('/').filter(|part| !part.is_empty()).map(str::to_owned);
    let group = match parts.next().as_deref() {
        Some("apis") => parts.next().unwrap_or_default(),
        _ => String::new(),
    };
    let version = parts.next().unwrap_or_default();
    let plural = parts.next_back().unwrap_or_default();
    let api_version = if group.is_empty() { version.clone() } else { format!("{group}/{version}") };
    ApiResource { group, version, api_version, kind: String::new(), plural }
}

impl<K: Resource> Resource for Parsed<K> {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn metadata_api() -> bool {
        K::metadata_api()
    }

    fn kind(kind: &ApiResource) -> Cow<'_, str> {
        kind.kind.as_str().into()
    }

    fn group(kind: &ApiResource) -> Cow<'_, str> {
        kind.group.as_str().into()
    }

    fn version(kind: &ApiResource) -> Cow<'_, str> {
        kind.version.as_str().into()
    }

    fn plural(kind: &ApiResource) -> Cow<'_, str> {
        kind.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        match self {
            Parsed::Read(object) => object.meta(),
            Parsed::Unreadable(metadata, _) => metadata,
        }
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        match self {
            Parsed::Read(object) => object.meta_mut(),
            Parsed::Unreadable(metadata, _) => metadata,
        }
    }
}

impl<'de, K: DeserializeOwned> Deserialize<'de> for Parsed<K> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Parsed<K>, D::Error> {
        let too_deep = Cell::new(false);
        let whole = Part { depth: 0, unread: Some(UNREAD), too_deep: &too_deep };
        let value = whole.deserialize(from)?;
        let text = |field: &str| value.pointer(field).and_then(Value::as_str).map(str::to_owned);
        let (name, namespace) = (text("/metadata/name"), text("/metadata/namespace"));
        let uid = text("/metadata/uid");
        let unreadable = |why| {
            let metadata = ObjectMeta { name, namespace, uid, ..ObjectMeta::default() };
            Parsed::Unreadable(Box::new(metadata), why)
        };
        if too_deep.get() {
            return Ok(unreadable(format!("it is nested more than {DEEPEST} deep")));
        }
        Ok(match serde_path_to_error::deserialize(value) {
            Ok(object) => Parsed::Read(object),
            Err(error) => unreadable(format!("{}: {}", error.path(), error.inner())),
        })
    }
}

/// A part of an object.
struct Part<'p> {
    /// What it is in.
    depth: usize,
    /// The way from here to what is not read, if it is on it.
    unread: Option<&'static [&'static str]>,
    /// Set if something is in too much.
    too_deep: &'p Cell<bool>,
}

impl Part<'_> {
    fn below(&self, unread: Option<&'static [&'static str]>) -> Self {
        Part { depth: self.depth.saturating_add(1), unread, too_deep: self.too_deep }
    }
}

impl<'de> DeserializeSeed<'de> for Part<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        if self.depth > DEEPEST {
            self.too_deep.set(true);
            // Reading past it takes no stack.
            return IgnoredAny::deserialize(from).map(|_| Value::Null);
        }
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Part<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, it: bool) -> Result<Value, E> {
        Ok(Value::Bool(it))
    }

    fn visit_i64<E>(self, it: i64) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_u64<E>(self, it: u64) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_f64<E: serde::de::Error>(self, it: f64) -> Result<Value, E> {
        let number =
            Number::from_f64(it).ok_or_else(|| E::custom("a number that is not finite"))?;
        Ok(Value::Number(number))
    }

    fn visit_str<E>(self, it: &str) -> Result<Value, E> {
        Ok(Value::String(it.to_owned()))
    }

    fn visit_string<E>(self, it: String) -> Result<Value, E> {
        Ok(Value::String(it))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        // The items of a list are where the list is.
        while let Some(item) = items.next_element_seed(self.below(self.unread))? {
            all.push(item);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(field) = fields.next_key::<String>()? {
            let unread = match self.unread.and_then(<[_]>::split_first) {
                Some((first, rest)) if *first == field => Some(rest),
                _ => None,
            };
            if unread.is_some_and(<[_]>::is_empty) {
                fields.next_value::<IgnoredAny>()?;
                continue;
            }
            let value = fields.next_value_seed(self.below(unread))?;
            all.insert(field, value);
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::MachineConfigPool;
    use kube::api::PartialObjectMeta;
    use kube::core::{DynamicObject, ObjectList, WatchEvent};
    use kube::{Client, ResourceExt as _};

    /// A map in a map, and so on.
    fn nested(times: usize) -> String {
        format!("{}1{}", "{\"f:a\":".repeat(times), "}".repeat(times))
    }

    fn pool(name: &str, managed: &str, spec: &str) -> String {
        format!(
            r#"{{"apiVersion":"machineconfiguration.openshift.io/v1","kind":"MachineConfigPool",
            "metadata":{{"name":"{name}","managedFields":[{{"manager":"m","operation":"Update",
            "time":"2026-01-02T03:04:05Z","fieldsV1":{managed}}}]}},"spec":{spec}}}"#
        )
    }

    fn list<K: DeserializeOwned + Clone>(items: &[String]) -> Vec<Parsed<K>> {
        let text = format!(
            r#"{{"kind":"List","apiVersion":"v1","metadata":{{"resourceVersion":"1"}},
            "items":[{}]}}"#,
            items.join(",")
        );
        serde_json::from_str::<ObjectList<Parsed<K>>>(&text).unwrap().items
    }

    fn read<K: Resource>(all: &[Parsed<K>]) -> Vec<String> {
        let read = all.iter().filter(|it| matches!(it, Parsed::Read(_)));
        read.map(|it| it.meta().name.clone().unwrap()).collect()
    }

    #[test]
    fn who_wrote_what_is_not_read_however_deep_it_is() {
        let deep = pool("deep", &nested(5000), "{}");
        let fine = pool("fine", &nested(3), "{}");
        let items = [deep.clone(), fine];
        for names in [
            read(&list::<PartialObjectMeta<MachineConfigPool>>(&items)),
            read(&list::<MachineConfigPool>(&items)),
            read(&list::<DynamicObject>(&items)),
        ] {
            assert_eq!(names, ["deep", "fine"]);
        }
        let event = format!(r#"{{"type":"ADDED","object":{deep}}}"#);
        let event = serde_json::from_str::<WatchEvent<Parsed<MachineConfigPool>>>(&event).unwrap();
        let WatchEvent::Added(Parsed::Read(object)) = event else { panic!("{event:?}") };
        let managed = object.managed_fields().first().unwrap();
        assert!(managed.time.is_some() && managed.fields_v1.is_none());
    }

    #[test]
    fn an_object_that_cannot_be_read_is_named_with_its_field_and_the_others_are_read() {
        let items = [
            pool("wrong", "{}", r#"{"paused":"perhaps"}"#),
            pool("deep", "{}", &format!(r#"{{"x":{}}}"#, nested(5000))),
            pool("fine", "{}", r#"{"paused":true}"#),
        ];
        let all = list::<MachineConfigPool>(&items);
        assert_eq!(read(&all), ["fine"]);
        let why: Vec<(&str, &str)> = all
            .iter()
            .filter_map(|it| match it {
                Parsed::Unreadable(metadata, why) => {
                    Some((metadata.name.as_deref().unwrap(), why.as_str()))
                }
                Parsed::Read(_) => None,
            })
            .collect();
        let [(wrong, field), (deep, depth)] = why.as_slice() else { panic!("{why:?}") };
        assert_eq!((*wrong, *deep), ("wrong", "deep"));
        assert!(field.starts_with("spec.paused: invalid type: string"), "{field}");
        assert!(depth.contains("nested more than 100 deep"), "{depth}");
        // What is dropped of the deep one has to be read past, not into.
        assert_eq!(read(&list::<DynamicObject>(&items)), ["wrong", "fine"]);
    }

    #[test]
    fn what_is_read_by_itself_is_what_would_be_read_otherwise() {
        let text = pool(
            "worker",
            "{}",
            r#"{"paused":true,"maxUnavailable":"10%","nodeSelector":{"matchLabels":{"a":"b"},
            "matchExpressions":[{"key":"k","operator":"In","values":["1","2"]}]}}"#,
        );
        let plain: MachineConfigPool = serde_json::from_str(&text).unwrap();
        let seen: Parsed<MachineConfigPool> = serde_json::from_str(&text).unwrap();
        let Parsed::Read(seen) = seen else { panic!("{seen:?}") };
        assert_eq!(seen.spec, plain.spec);
        assert_eq!(seen.metadata.name, plain.metadata.name);
    }

    #[tokio::test]
    async fn the_same_objects_are_asked_for() {
        use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
        let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let client = Client::try_from(config).unwrap();
        fn same<K: Resource>(api: Api<K>) {
            let url = api.resource_url().to_owned();
            assert_eq!(each_by_itself(api).resource_url(), url);
        }
        same(Api::<ConfigMap>::all(client.clone()));
        same(Api::<ConfigMap>::namespaced(client.clone(), "namespaces"));
        same(Api::<Namespace>::all(client.clone()));
        same(Api::<MachineConfigPool>::all(client.clone()));
        assert!(Parsed::<PartialObjectMeta<ConfigMap>>::metadata_api());
        assert!(!Parsed::<ConfigMap>::metadata_api());
    }
}
