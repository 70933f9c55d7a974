//! TOML as a tree, and which keys of two trees differ. With the feature `toml`.
//!
//! ```
//! use tread_guest_sdk::toml;
//!
//! let before = toml::parse("[crio.runtime]\nlog_level = 'info'\npids_limit = 1024").unwrap();
//! let after = toml::parse("[crio.runtime]\nlog_level = 'debug'\npids_limit = 1_024").unwrap();
//! let changed: Vec<String> = toml::diff(&before, &after).iter().map(|d| d.key()).collect();
//! assert_eq!(changed, ["crio.runtime.log_level"]);
//! ```

use std::collections::BTreeMap;
use std::fmt;
use toml::de::{DeTable, DeValue};

/// The keys of a table and their values, in the order of the keys' bytes.
///
/// ```
/// use tread_guest_sdk::toml;
/// let table: toml::Table = toml::parse("b = 1\na = 2").unwrap();
/// assert_eq!(table.keys().collect::<Vec<_>>(), ["a", "b"]);
/// ```
pub type Table = BTreeMap<String, Value>;

/// A TOML value.
///
/// ```
/// use tread_guest_sdk::toml::{self, Value};
/// let table = toml::parse("mask = 0x0f\nname = 'a'").unwrap();
/// assert_eq!(table["mask"], Value::Integer(15));
/// assert_eq!(table["name"], Value::String("a".into()));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `"text"`, however it was quoted.
    String(String),
    /// `42`, also `0x2a`.
    Integer(i64),
    /// `1.5`
    Float(f64),
    /// `true`
    Boolean(bool),
    /// `1979-05-27T07:32:00Z`, as text.
    Datetime(String),
    /// `[1, 2]`, or all `[[tables]]` of that name.
    Array(Vec<Value>),
    /// `[table]`, `{ inline = true }` or what dotted keys make.
    Table(Table),
}

impl Value {
    /// The text, if this is a string.
    ///
    /// ```
    /// use tread_guest_sdk::toml::Value;
    /// assert_eq!(Value::String("a".into()).as_str(), Some("a"));
    /// ```
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The number, if this is an integer.
    ///
    /// ```
    /// use tread_guest_sdk::toml::Value;
    /// assert_eq!(Value::Integer(42).as_integer(), Some(42));
    /// ```
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Value::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// Whether it is true, if this is a boolean.
    ///
    /// ```
    /// use tread_guest_sdk::toml::Value;
    /// assert_eq!(Value::Boolean(true).as_bool(), Some(true));
    /// ```
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Boolean(truth) => Some(*truth),
            _ => None,
        }
    }

    /// The items, if this is an array.
    ///
    /// ```
    /// use tread_guest_sdk::toml::Value;
    /// assert_eq!(Value::Array(vec![]).as_array().map(<[_]>::len), Some(0));
    /// ```
    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The keys and values, if this is a table.
    ///
    /// ```
    /// use tread_guest_sdk::toml::{Table, Value};
    /// assert!(Value::Table(Table::new()).as_table().is_some());
    /// ```
    pub fn as_table(&self) -> Option<&Table> {
        match self {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    /// What it is, in a word for messages: `a string`.
    ///
    /// ```
    /// use tread_guest_sdk::toml::Value;
    /// assert_eq!(Value::Boolean(true).kind(), "a boolean");
    /// ```
    pub fn kind(&self) -> &'static str {
        match self {
            Value::String(_) => "a string",
            Value::Integer(_) => "an integer",
            Value::Float(_) => "a float",
            Value::Boolean(_) => "a boolean",
            Value::Datetime(_) => "a date or time",
            Value::Array(_) => "an array",
            Value::Table(_) => "a table",
        }
    }
}

/// What is wrong with a text that is no TOML. It does not quote the text.
///
/// ```
/// use tread_guest_sdk::{Verdict, toml};
/// let error = toml::parse("a = 1\nb = ").unwrap_err();
/// let verdict = Verdict::refuse(format!("{error}; the service would not start: correct it"));
/// assert!(verdict.reason().starts_with("line 2: "));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    line: usize,
    message: String,
}

impl Error {
    /// The line, the first being 1.
    ///
    /// ```
    /// use tread_guest_sdk::toml;
    /// assert_eq!(toml::parse("a = 1\nb = ").unwrap_err().line(), 2);
    /// ```
    pub fn line(&self) -> usize {
        self.line
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for Error {}

/// Reads a document of TOML 1.
///
/// # Errors
/// The first thing in the text that is not TOML, and in which line.
///
/// ```
/// use tread_guest_sdk::toml;
/// let table = toml::parse("[server]\nport = 80").unwrap();
/// assert_eq!(toml::get(&table, &["server", "port"]).and_then(|v| v.as_integer()), Some(80));
/// ```
pub fn parse(text: &str) -> Result<Table, Error> {
    let line = |at: usize| 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
    let document = DeTable::parse(text).map_err(|error| Error {
        line: line(error.span().map_or(0, |span| span.start)),
        message: error.message().to_string(),
    })?;
    table(document.into_inner())
        .map_err(|(at, message)| Error { line: line(at), message: message.to_string() })
}

/// Where in the text, and what is wrong there.
type Fault = (usize, &'static str);

fn table(raw: DeTable<'_>) -> Result<Table, Fault> {
    raw.into_iter()
        .map(|(key, item)| {
            let at = item.span().start;
            Ok((key.into_inner().into_owned(), value(item.into_inner(), at)?))
        })
        .collect()
}

fn value(raw: DeValue<'_>, at: usize) -> Result<Value, Fault> {
    Ok(match raw {
        DeValue::String(text) => Value::String(text.into_owned()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map(Value::Integer)
            .map_err(|_| (at, "the integer does not fit into 64 bits"))?,
        DeValue::Float(number) => {
            number.as_str().parse().map(Value::Float).map_err(|_| (at, "this is no number"))?
        }
        DeValue::Boolean(truth) => Value::Boolean(truth),
        DeValue::Datetime(moment) => Value::Datetime(moment.to_string()),
        DeValue::Array(items) => Value::Array(
            items
                .into_iter()
                .map(|item| {
                    let at = item.span().start;
                    value(item.into_inner(), at)
                })
                .collect::<Result<_, _>>()?,
        ),
        DeValue::Table(inner) => Value::Table(table(inner)?),
    })
}

/// The value at the end of `path`.
///
/// ```
/// use tread_guest_sdk::toml;
/// let table = toml::parse("a.b = 1").unwrap();
/// assert!(toml::get(&table, &["a", "b"]).is_some());
/// assert!(toml::get(&table, &["a", "c"]).is_none());
/// ```
pub fn get<'a>(table: &'a Table, path: &[&str]) -> Option<&'a Value> {
    let (last, parents) = path.split_last()?;
    let step = |table: &'a Table, key: &&str| table.get(*key)?.as_table();
    parents.iter().try_fold(table, step)?.get(*last)
}

/// A key that differs between two documents.
///
/// ```
/// use tread_guest_sdk::toml;
/// let (before, after) = (toml::parse("port = 80").unwrap(), toml::parse("").unwrap());
/// let gone = &toml::diff(&before, &after)[0];
/// assert_eq!((gone.path.as_slice(), gone.after), (&["port"][..], None));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Difference<'a> {
    /// The keys that lead to it from the top.
    pub path: Vec<&'a str>,
    /// Its value before; none if it was not there.
    pub before: Option<&'a Value>,
    /// Its value after; none if it is not there any more.
    pub after: Option<&'a Value>,
}

impl Difference<'_> {
    /// The path as one word: `crio.runtime.log_level`.
    ///
    /// ```
    /// use tread_guest_sdk::toml;
    /// let (before, after) = (toml::parse("a.b = 1").unwrap(), toml::parse("a.b = 2").unwrap());
    /// assert_eq!(toml::diff(&before, &after)[0].key(), "a.b");
    /// ```
    pub fn key(&self) -> String {
        self.path.join(".")
    }
}

/// The keys whose values differ, in order. Tables are compared key by key,
/// anything else as a whole; a table that comes or goes is reported by its keys.
///
/// ```
/// use tread_guest_sdk::toml;
/// let before = toml::parse("list = [1, 2]\n[old]\nx = 1").unwrap();
/// let after = toml::parse("list = [2, 1]").unwrap();
/// let keys: Vec<String> = toml::diff(&before, &after).iter().map(|d| d.key()).collect();
/// assert_eq!(keys, ["list", "old.x"]);
/// ```
pub fn diff<'a>(before: &'a Table, after: &'a Table) -> Vec<Difference<'a>> {
    let mut found = Vec::new();
    compare(Some(before), Some(after), &mut Vec::new(), &mut found);
    found
}

fn compare<'a>(
    before: Option<&'a Table>,
    after: Option<&'a Table>,
    path: &mut Vec<&'a str>,
    found: &mut Vec<Difference<'a>>,
) {
    let side = |table: Option<&'a Table>| table.into_iter().flat_map(|table| table.keys());
    let mut keys: Vec<&'a String> = side(before).chain(side(after)).collect();
    keys.sort_unstable();
    keys.dedup();
    for key in keys {
        let old = before.and_then(|table| table.get(key));
        let new = after.and_then(|table| table.get(key));
        if old == new {
            continue;
        }
        path.push(key);
        match (old.map(Value::as_table), new.map(Value::as_table)) {
            // Both tables, or one table and nothing.
            (Some(Some(old)), Some(Some(new))) => compare(Some(old), Some(new), path, found),
            (Some(Some(old)), None) if !old.is_empty() => compare(Some(old), None, path, found),
            (None, Some(Some(new))) if !new.is_empty() => compare(None, Some(new), path, found),
            _ => found.push(Difference { path: path.clone(), before: old, after: new }),
        }
        path.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(before: &str, after: &str) -> Vec<String> {
        let (before, after) = (parse(before).unwrap(), parse(after).unwrap());
        diff(&before, &after).iter().map(Difference::key).collect()
    }

    #[test]
    fn only_values_that_mean_something_else_differ() {
        for (before, after, differ) in [
            ("a = 16", "# note\na = 0x10", &[][..]),
            ("a = 'x'", "a = \"x\"", &[]),
            ("[a]\nb = 1", "a.b = 1", &[]),
            ("[a]\nb = 1", "a = { b = 1 }", &[]),
            ("a = 1\nb = 2", "b = 2\na = 1", &[]),
            ("a = 1", "a = '1'", &["a"]),
            ("a = 1", "[a]\nb = 1", &["a"]),
            ("a = [1, 2]", "a = [1]", &["a"]),
            ("", "[a]", &["a"]),
            ("[a.b]\nc = 1\nd = 1", "", &["a.b.c", "a.b.d"]),
            ("[[m]]\nx = 1", "[[m]]\nx = 2", &["m"]),
        ] {
            assert_eq!(keys(before, after), differ, "{before:?} → {after:?}");
        }
    }

    #[test]
    fn an_error_names_the_line_and_quotes_nothing() {
        let error = parse("a = 1\nsecret = hunter2\n").unwrap_err();
        assert_eq!(error.line(), 2);
        assert!(!error.to_string().contains("hunter2"), "{error}");
        let error = parse("a = 1\n\nb = 99999999999999999999").unwrap_err();
        assert_eq!(error.to_string(), "line 3: the integer does not fit into 64 bits");
        assert!(parse("a = 1\na = 2").is_err());
    }

    #[test]
    fn every_kind_of_value_is_read() {
        let text = "s='a'\ni=1\nf=1.5\nb=true\nd=1979-05-27\nl=[1]\nt={a=1}";
        let table = parse(text).unwrap();
        let kinds: Vec<_> = table.values().map(Value::kind).collect();
        assert_eq!(
            kinds,
            [
                "a boolean",
                "a date or time",
                "a float",
                "an integer",
                "an array",
                "a string",
                "a table"
            ]
        );
    }

    #[test]
    fn deep_nesting_is_an_error_and_not_a_crash() {
        let text = format!("a = {}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(parse(&text).is_err());
    }
}
