//! JSON into any type with serde's `Deserialize`: a small strict reader.
//!
//! `serde_json` reads settings just as well, but brings four times the code of
//! a whole policy with it, and every policy is compiled to native code before
//! its first call. The reader here holds no printing of floating-point numbers,
//! and reads them only into types that ask for them; a test compares it with
//! `serde_json`. The keys of a map are strings.
//!
//! ```
//! use serde::Deserialize;
//! use tread_guest_sdk::json;
//!
//! #[derive(Deserialize)]
//! struct Auth {
//!     registry: String,
//!     port: Option<u16>,
//! }
//!
//! let auth: Auth = json::read(r#"{"registry": "quay.io", "port": 443}"#).unwrap();
//! assert_eq!((auth.registry.as_str(), auth.port), ("quay.io", Some(443)));
//! let error = json::read::<Auth>(r#"{"registry": 1}"#).err().unwrap();
//! assert_eq!(error.to_string(), "expected a string, not the number 1");
//! ```

mod error;
mod reader;
mod serde;

pub use error::Error;
use reader::Reader;
use std::collections::BTreeMap;

/// Reads one value, and nothing behind it.
///
/// # Errors
/// The first thing that is no JSON, or does not fit the type.
///
/// ```
/// use tread_guest_sdk::json;
/// assert_eq!(json::read::<Vec<u8>>("[1, 2]").unwrap(), [1, 2]);
/// assert!(json::read::<Vec<u8>>("[1, 300]").is_err());
/// ```
pub fn read<'de, T: ::serde::Deserialize<'de>>(text: &'de str) -> Result<T, Error> {
    let mut reader = Reader::new(text);
    let value = T::deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Checks that a text is one JSON value.
///
/// # Errors
/// The first thing that is not.
///
/// ```
/// use tread_guest_sdk::json;
/// assert!(json::check(r#"{"a": [1.5e3, null]}"#).is_ok());
/// assert_eq!(json::check("[1,]").unwrap_err().to_string(), "no JSON value at byte 3");
/// ```
pub fn check(text: &str) -> Result<(), Error> {
    let mut reader = Reader::new(text);
    reader.skip()?;
    reader.end()
}

/// The fields of an object, each value as its text.
///
/// # Errors
/// The first thing that is no JSON, or no object, or a field that is there twice.
///
/// ```
/// use tread_guest_sdk::json;
/// let fields = json::fields(r#"{"a": [1, 2], "b": null}"#).unwrap();
/// assert_eq!((fields["a"], fields["b"]), ("[1, 2]", "null"));
/// assert!(json::fields(r#"{"a": 1, "a": 1}"#).is_err());
/// ```
pub fn fields(text: &str) -> Result<BTreeMap<String, &str>, Error> {
    let mut reader = Reader::new(text);
    let mut fields = BTreeMap::new();
    if reader.peek() != Some(b'{') {
        return Err(Error::new("no JSON object"));
    }
    reader.step();
    let mut first = true;
    while reader.another(b'}', &mut first)? {
        let name = reader.key()?.into_owned();
        let value = reader.piece()?;
        if fields.insert(name.clone(), value).is_some() {
            return Err(Error::new(format!("{name} is there twice")));
        }
    }
    reader.end()?;
    Ok(fields)
}

/// The items of an array, each as its text.
///
/// # Errors
/// The first thing that is no JSON, or no array.
///
/// ```
/// use tread_guest_sdk::json;
/// assert_eq!(json::items(r#"["a", {"b": 1}]"#).unwrap(), [r#""a""#, r#"{"b": 1}"#]);
/// ```
pub fn items(text: &str) -> Result<Vec<&str>, Error> {
    let mut reader = Reader::new(text);
    let mut items = Vec::new();
    if reader.peek() != Some(b'[') {
        return Err(Error::new("no JSON array"));
    }
    reader.step();
    let mut first = true;
    while reader.another(b']', &mut first)? {
        items.push(reader.piece()?);
    }
    reader.end()?;
    Ok(items)
}
