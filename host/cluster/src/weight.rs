//! What it takes to hold a JSON text as values, counted before it is parsed: a
//! text of `[0,0,0,…]` takes thirty times its bytes.

use memchr::{memchr_iter, memchr2};

/// What a value takes that is one of a list or of an object, at most, its text
/// aside.
const PER_VALUE: usize = 128;
/// What an object takes besides, which has room for eleven fields from the first on.
const PER_OBJECT: usize = 1 << 10;
/// Up to this it is not counted exactly.
const LITTLE: usize = 1 << 20;

/// What a text takes as values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Weight {
    /// Its bytes.
    pub bytes: usize,
    /// How many objects are in it.
    pub objects: usize,
    /// How many values there are in lists and objects.
    pub values: usize,
}

impl Weight {
    /// Of a text. It is never less than what the text holds.
    pub fn of(text: &[u8]) -> Weight {
        let count = |byte| memchr_iter(byte, text).count();
        let objects = count(b'{');
        let most =
            Weight { bytes: text.len(), objects, values: count(b',') + count(b'[') + objects };
        // Those that stand in texts count as well: usually that is no matter.
        if most.takes() <= LITTLE { most } else { Weight::outside_of_texts(text) }
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

    /// How many bytes the values take.
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
        }
    }
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
    use serde_json::Value;

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
}
