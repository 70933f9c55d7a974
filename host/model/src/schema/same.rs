//! When JSON Schema calls two values the same, and which number is more.

use serde_json::{Number, Value};
use std::cmp::Ordering;

/// A text that two values share exactly if they are the same: 1 is 1.0.
pub(super) fn canonical(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Number(number) => match whole(number) {
            Some(whole) => out.push_str(&whole.to_string()),
            None => out.push_str(&number.to_string()),
        },
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (name, value) in fields {
                out.push_str(&Value::from(name.as_str()).to_string());
                out.push(':');
                write(value, out);
                out.push(',');
            }
            out.push('}');
        }
        other => out.push_str(&other.to_string()),
    }
}

/// How many texts, numbers and the like are in a value, and the bytes of texts.
pub(super) fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => 1 + text.len(),
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(fields) => {
            1 + fields.iter().map(|(name, value)| name.len() + size(value)).sum::<usize>()
        }
        _ => 1,
    }
}

/// A number without a fraction, also if it is written as 5.0.
pub(super) fn whole(number: &Number) -> Option<i128> {
    /// Below, every whole number has a floating one of its own.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let exact = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    exact.or_else(|| {
        let float = number.as_f64().filter(|it| it.fract() == 0.0 && it.abs() < EXACT)?;
        Some(float as i128)
    })
}

pub(super) fn order(a: &Number, b: &Number) -> Ordering {
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => {
            let float = |number: &Number| number.as_f64().unwrap_or_default();
            float(a).total_cmp(&float(b))
        }
    }
}
