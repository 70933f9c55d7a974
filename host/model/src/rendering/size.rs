//! Whether the API server can hold what was rendered.

use serde_json::Value;
use std::fmt;

/// The most bytes that an object may have: etcd takes a request of 1.5 MiB
/// (`--max-request-bytes`), and with the object go its key and what the API server adds,
/// such as managed fields, for which 16 KiB are set aside.
pub const LARGEST: usize = (3 << 19) - (16 << 10);

/// How many entries are named.
const NAMED: usize = 5;

/// What was rendered takes more than the API server can hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "what the MachineConfigs of the pool say together takes {}, and the API server holds no \
     object of more than {}, so that nothing new is rolled out. The largest are {}. Make one of \
     them smaller (`compression: gzip`), or put it into the OS image",
    Bytes(*size),
    Bytes(LARGEST),
    in_words(largest)
)]
pub struct TooLarge {
    /// What it takes there, in bytes.
    pub size: usize,
    /// The largest files and units, the largest first; no more than five.
    pub largest: Vec<Large>,
}

/// A file or a unit with its drop-ins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Large {
    /// The file's path, or the unit's name.
    pub name: String,
    /// What it takes in the object, in bytes: more than its contents.
    pub size: usize,
}

impl fmt::Display for Large {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, Bytes(self.size))
    }
}

fn in_words(largest: &[Large]) -> String {
    largest.iter().map(Large::to_string).collect::<Vec<_>>().join(", ")
}

/// A number of bytes, with commas.
struct Bytes(usize);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                f.write_str(",")?;
            }
            write!(f, "{digit}")?;
        }
        f.write_str(" bytes")
    }
}

pub(super) fn check(object: &Value) -> Result<(), TooLarge> {
    let size = stored(object);
    if size <= LARGEST {
        return Ok(());
    }
    let lists = [("/spec/config/storage/files", "path"), ("/spec/config/systemd/units", "name")];
    let entries = lists.into_iter().flat_map(|(list, key)| {
        let list = object.pointer(list).and_then(Value::as_array);
        list.into_iter().flatten().map(move |entry| Large {
            name: entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned(),
            size: stored(entry),
        })
    });
    let mut largest: Vec<Large> = entries.collect();
    largest.sort_by(|a, b| b.size.cmp(&a.size).then_with(|| a.name.cmp(&b.name)));
    largest.truncate(NAMED);
    Err(TooLarge { size, largest })
}

/// What the API server makes of a value: JSON without space, in which Go's library writes
/// some characters as `\u003c`.
fn stored(value: &Value) -> usize {
    let text = value.to_string();
    let escaped = text.chars().map(|c| match c {
        '<' | '>' | '&' => 5,
        '\u{2028}' | '\u{2029}' => 3,
        _ => 0,
    });
    text.len() + escaped.sum::<usize>()
}
