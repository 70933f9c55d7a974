//! What it takes to hold a JSON text as values, counted before it is parsed: a
//! text of `[0,0,0,…]` takes thirty times its bytes. And what its contents unpack
//! to, counted before that is done: gzip may hold a thousand times its bytes.

use memchr::{memchr_iter, memchr2, memmem};
use std::borrow::Cow;
use tread_model::config::Source;
use tread_model::contents::{MAX_UNPACKED, decode};

/// What a value takes that is one of a list or of an object, at most, its text
/// aside.
const PER_VALUE: usize = 128;
/// What an object takes besides, which has room for eleven fields from the first on.
const PER_OBJECT: usize = 1 << 10;
/// Up to this it is not counted exactly.
const LITTLE: usize = 1 << 20;

/// How gzip begins, and each further part of it.
const GZIP: [u8; 3] = [0x1f, 0x8b, 8];
/// What stands in a text that holds gzip: its beginning as base64, or what of that no URL
/// holds as it is.
const TRACES: [&[u8]; 3] = [b"H4sI", b"%8b", b"%8B"];
/// How a text begins that holds contents.
const CONTENTS: &[u8] = b"\"data:";
/// So many times its bytes gzip unpacks to at most.
const MOST_TIMES: usize = 1032;

/// What a text takes as values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Weight {
    /// Its bytes.
    pub bytes: usize,
    /// How many objects are in it.
    pub objects: usize,
    /// How many values there are in lists and objects.
    pub values: usize,
    /// The bytes that its contents unpack to.
    pub unpacked: usize,
}

impl Weight {
    /// Of a text. It is never less than what the text holds.
    pub fn of(text: &[u8]) -> Weight {
        let count = |byte| memchr_iter(byte, text).count();
        let objects = count(b'{');
        let values = count(b',') + count(b'[') + objects;
        let most = Weight { bytes: text.len(), objects, values, unpacked: 0 };
        // Those that stand in texts count as well: usually that is no matter.
        let weight = if most.takes() <= LITTLE { most } else { Weight::outside_of_texts(text) };
        Weight { unpacked: unpacked(text), ..weight }
    }

    fn outside_of_texts(text: &[u8]) -> Weight {
        let mut weight = Weight { bytes: text.len(), ..Weight::default() };
        let mut rest = text;
        while let Some((first, after)) = rest.split_first() {
            rest = after;
            match first {
                b'"' => rest = behind_text(rest),
                b'{' => {
                    weight.objects += 1;
                    weight.values += 1;
                }
                b'[' | b',' => weight.values += 1,
                _ => {}
            }
        }
        weight
    }

    /// How many bytes the values take, without what contents unpack to.
    pub fn takes(&self) -> usize {
        let objects = self.objects.saturating_mul(PER_OBJECT);
        let values = self.values.saturating_mul(PER_VALUE);
        self.bytes.saturating_add(objects).saturating_add(values)
    }

    /// The weight of both together.
    #[must_use]
    pub fn and(self, other: Weight) -> Weight {
        Weight {
            bytes: self.bytes.saturating_add(other.bytes),
            objects: self.objects.saturating_add(other.objects),
            values: self.values.saturating_add(other.values),
            unpacked: self.unpacked.saturating_add(other.unpacked),
        }
    }
}

/// What the contents in a text unpack to, whoever says that they are gzip: another config may.
fn unpacked(text: &[u8]) -> usize {
    if TRACES.iter().all(|trace| memmem::find(text, trace).is_none()) {
        return 0;
    }
    let each = memmem::find_iter(text, CONTENTS).filter_map(|at| {
        let begun = text.get(at..)?;
        let ends = begun.len() - behind_text(begun.get(1..)?).len();
        let url: String = serde_json::from_slice(begun.get(..ends)?).ok()?;
        let bytes = decode(&Source { url: Some(Cow::Owned(url)), gzip: false });
        bytes.ok()?.map(|bytes| of_gzip(&bytes))
    });
    each.fold(0, usize::saturating_add)
}

/// What gzip unpacks to: its end says so, if it has one part; where it may have several, it is
/// what so many bytes hold at most. Nothing is kept of one whose end is wrong.
fn of_gzip(bytes: &[u8]) -> usize {
    let Some(rest) = bytes.strip_prefix(&GZIP) else { return 0 };
    let says = rest.last_chunk().map_or(0, |end| u32::from_le_bytes(*end));
    let says = match memmem::find(rest, &GZIP) {
        None => usize::try_from(says).unwrap_or(usize::MAX),
        Some(_) => usize::MAX,
    };
    says.min(bytes.len().saturating_mul(MOST_TIMES)).min(MAX_UNPACKED)
}

/// What stands behind the end of a text that has begun.
fn behind_text(mut rest: &[u8]) -> &[u8] {
    while let Some(at) = memchr2(b'"', b'\\', rest) {
        let escaped = usize::from(rest.get(at) == Some(&b'\\'));
        rest = rest.get(at + 1 + escaped..).unwrap_or_default();
        if escaped == 0 {
            return rest;
        }
    }
    &[]
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::ByteString;
    use serde_json::{Value, json};

    /// What a value takes, by how the library lays it out: lists double, and an
    /// object has nodes of eleven fields, which may be half empty.
    fn holds(value: &Value) -> usize {
        const VALUE: usize = size_of::<Value>();
        match value {
            Value::String(text) => text.len().max(16),
            Value::Array(items) => {
                items.capacity() * VALUE + items.iter().map(holds).sum::<usize>()
            }
            Value::Object(fields) => {
                let node = 11 * (VALUE + size_of::<String>()) + 16;
                let own = fields.iter().map(|(name, it)| name.len().max(16) + holds(it));
                fields.len().div_ceil(6) * node + own.sum::<usize>()
            }
            _ => 0,
        }
    }

    #[test]
    fn whatever_a_text_is_made_of_it_takes_no_more_as_values_than_was_counted() {
        let list = |item: &str| format!("[{}{item}]", format!("{item},").repeat(100_000));
        let fields = (0..50_000).map(|n| format!("\"{n}\":0")).collect::<Vec<_>>().join(",");
        let texts = [
            list("0"),
            list("\"\""),
            list("\"a\""),
            list("[]"),
            list("[[0]]"),
            list("{}"),
            list("{\"a\":0}"),
            list("{\"a\":{\"b\":[1,\"c\"]}}"),
            format!("{{{fields}}}"),
            format!("[\"{}\"]", "x".repeat(3 << 20)),
            "0".to_owned(),
        ];
        for text in texts {
            let value: Value = serde_json::from_str(&text).unwrap();
            let (counted, holds) = (Weight::of(text.as_bytes()).takes(), holds(&value));
            let begin = text.get(..40).unwrap_or(&text);
            assert!(counted >= holds, "{begin}: {counted} < {holds}");
        }
    }

    #[test]
    fn what_stands_in_a_text_is_no_value() {
        let csv = "1,2,[3],{\\\"4\\\"}\\\\".repeat(100_000);
        let text = format!("{{\"a\": \"{csv}\", \"b\": [1, 2]}}");
        let weight = Weight::of(text.as_bytes());
        assert_eq!((weight.bytes, weight.objects, weight.values), (text.len(), 1, 4));
        // What never ends holds nothing more.
        let weight = Weight::of(format!("[\"{}", "{,".repeat(1 << 20)).as_bytes());
        assert_eq!((weight.objects, weight.values), (0, 1));
    }

    /// 64 KiB of zeros, as gzip.
    const ZEROS: &str = "H4sIAAAAAAAC/+3BAQEAAACAkP6v7ggKAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\
         AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAauuOl9cAAAEA";

    /// A config with files of such contents.
    fn config(urls: &[&str]) -> String {
        let files = urls.iter().map(|url| json!({"path": "/a", "contents": {"source": url}}));
        let files: Vec<Value> = files.collect();
        json!({"spec": {"config": {"storage": {"files": files}}}}).to_string()
    }

    fn base64(bytes: &[u8]) -> String {
        let text = serde_json::to_value(ByteString(bytes.to_vec())).unwrap();
        format!("data:;base64,{}", text.as_str().unwrap())
    }

    fn counted(urls: &[&str]) -> usize {
        Weight::of(config(urls).as_bytes()).unpacked
    }

    #[test]
    fn what_contents_unpack_to_is_counted_before_they_are_unpacked() {
        let url = format!("data:;base64,{ZEROS}");
        let source = |gzip| Source { url: Some(Cow::Borrowed(&url)), gzip };
        let [packed, zeros] = [false, true].map(|gzip| decode(&source(gzip)).unwrap().unwrap());
        assert_eq!(zeros.len(), 1 << 16);
        let percent: String = packed.iter().map(|byte| format!("%{byte:02X}")).collect();
        let percent = format!("data:text/plain,{percent}");
        for urls in [
            &[url.as_str()][..],
            &[&url.replace("data:", "data:text/plain;charset=utf-8")],
            &[&percent],
        ] {
            assert_eq!(counted(urls), zeros.len(), "{urls:?}");
        }
        assert_eq!(counted(&["data:,a", &url, &percent, &url]), 3 * zeros.len());
        // As well where it is as large as a text is that is counted exactly.
        let large = format!("data:,{}", "{,".repeat(1 << 20));
        assert_eq!(counted(&[&large, &url]), zeros.len());
        for nothing in
            ["data:,H4sI", "data:,%8b", "data:;base64,H4sI!", "https://a.example/H4sI", "data:H4sI"]
        {
            assert_eq!(counted(&[nothing]), 0, "{nothing}");
        }
        assert_eq!(Weight::of(b"\"data:;base64,H4sI").unpacked, 0, "a text that does not end");
    }

    #[test]
    fn no_end_of_gzip_hides_what_comes_before_it() {
        let of = |bytes: &[u8]| counted(&[&base64(bytes)]);
        let source = Source { url: Some(format!("data:;base64,{ZEROS}").into()), gzip: false };
        let zeros = decode(&source).unwrap().unwrap();
        // A second part that holds nothing stands behind the first one.
        let twice = [&zeros[..], &GZIP, &[0; 15]].concat();
        assert_eq!(of(&twice), twice.len() * MOST_TIMES);
        assert!(of(&twice) > 1 << 16);
        assert_eq!(of(&twice.repeat(1000)), MAX_UNPACKED);
        // More than there can be, and more than is unpacked.
        let ends = |length: usize| [&GZIP[..], &vec![0; length], &[0xff; 4]].concat();
        assert_eq!(of(&ends(93)), 100 * MOST_TIMES);
        assert_eq!(of(&ends(1 << 16)), MAX_UNPACKED);
        assert_eq!(of(&GZIP), 0);
    }
}
