//! The reader of JSON takes what `serde_json` takes, and understands it alike.

use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use tread_guest_sdk::json;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Every {
    flag: bool,
    small: u8,
    signed: i64,
    real: f64,
    text: String,
    maybe: Option<u32>,
    list: Vec<Kind>,
    pair: (u8, String),
    map: BTreeMap<String, Kind>,
    any: Value,
    #[serde(default)]
    left_out: u8,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Plain,
    New(u8),
    Two(u8, u8),
    WithFields { a: u8 },
}

fn every() -> Every {
    Every {
        flag: true,
        small: 255,
        signed: i64::MIN,
        real: -1.5e-3,
        text: "a\"\\\n\u{1}é\u{1f600}".to_string(),
        maybe: None,
        list: vec![Kind::Plain, Kind::New(1), Kind::Two(1, 2), Kind::WithFields { a: 3 }],
        pair: (1, "x".to_string()),
        map: BTreeMap::from([("k".to_string(), Kind::Plain)]),
        any: serde_json::json!({"a": [null, 1.5, "x"]}),
        left_out: 7,
    }
}

#[test]
fn every_kind_of_type_is_read() {
    let text = serde_json::to_string_pretty(&every()).unwrap();
    assert_eq!(json::read::<Every>(&text).unwrap(), every());
}

#[test]
fn what_does_not_fit_the_type_is_named() {
    for (text, error) in [
        ("[1]", "expected a string, not the number 1"),
        ("[\"a\", null]", "expected a string, not null"),
        ("[1.5]", "expected a string, not a number that is no whole one"),
        ("{}", "expected a sequence, not an object"),
        ("[\"a\"", "no comma at byte 4"),
        ("[\"a\"] x", "something behind the JSON value at byte 6"),
        ("[\"\\ud800\"]", "half a character in a string at byte 8"),
    ] {
        assert_eq!(json::read::<Vec<String>>(text).unwrap_err().to_string(), error, "{text}");
    }
    let error = json::read::<Vec<u8>>("[256]").unwrap_err();
    assert_eq!(error.to_string(), "expected u8, not the number 256");
    let error = json::read::<Vec<Kind>>("[\"plane\"]").unwrap_err();
    assert!(error.to_string().starts_with("unknown variant `plane`"), "{error}");
    let error = json::read::<(u8, u8)>("[1, 2, 3]").unwrap_err();
    assert_eq!(error.to_string(), "more values than expected at byte 7");
}

#[test]
fn deep_nesting_is_an_error_and_not_a_crash() {
    let text = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(json::check(&text).is_err());
    assert!(json::read::<Value>(&text).is_err());
    let text = format!("{}{}", "[".repeat(60), "]".repeat(60));
    assert!(json::read::<Value>(&text).is_ok());
}

#[test]
fn what_only_looks_like_json_is_refused() {
    for text in [
        "",
        " ",
        "nul",
        "tru e",
        "01",
        "-",
        "+1",
        "1.",
        ".5",
        "1e",
        "0x10",
        "NaN",
        "'a'",
        "\"a",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\t\"",
        "[1,]",
        "[,]",
        "{a:1}",
        "{\"a\"}",
        "{\"a\":1,}",
        "[1 2]",
        "1 2",
        "\u{feff}1",
        "\"\\udc00\"",
        "\"\\ud800\\u0041\"",
        "1e999",
    ] {
        assert!(serde_json::from_str::<Value>(text).is_err(), "{text}");
        assert!(json::read::<Value>(text).is_err(), "{text}");
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|fields| Value::from(Map::from_iter(fields))),
        ]
    })
}

/// Text that is nearly JSON.
fn near_json() -> impl Strategy<Value = String> {
    let edits = prop::collection::vec((any::<prop::sample::Index>(), near_byte()), 0..4);
    (value(), edits).prop_map(|(value, edits)| {
        let mut text: Vec<char> = value.to_string().chars().collect();
        for (at, character) in edits {
            let at = at.index(text.len() + 1);
            match text.get_mut(at) {
                Some(old) => *old = character,
                None => text.push(character),
            }
        }
        text.into_iter().collect()
    })
}

fn near_byte() -> impl Strategy<Value = char> {
    prop::sample::select(
        "{}[]:,\"\\/0123456789.eE+-truefalsn \n\t\u{1}é".chars().collect::<Vec<_>>(),
    )
}

/// Numbers by what they are worth: `-0` and `-0.0` are one, and `serde_json`
/// may be off in the last digit of a fraction.
fn same(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Number(a), Value::Number(b)) => {
            a == b || a.as_f64().zip(b.as_f64()).is_some_and(|(a, b)| near(a, b))
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|((k, a), (l, b))| k == l && same(a, b))
        }
        (a, b) => a == b,
    }
}

fn near(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= a.abs() * 1e-12 || a.abs().max(b.abs()) < 1e-300
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_serde_json_writes_is_read_back(value in value()) {
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            let theirs: Value = serde_json::from_str(&text).unwrap();
            let ours: Value = json::read(&text).unwrap();
            prop_assert!(same(&ours, &theirs), "{text}");
            prop_assert!(json::check(&text).is_ok(), "{text}");
        }
    }

    #[test]
    fn what_is_nearly_json_is_judged_as_serde_json_judges_it(text in near_json()) {
        let theirs = serde_json::from_str::<Value>(&text);
        let ours = json::read::<Value>(&text);
        prop_assert_eq!(ours.is_ok(), theirs.is_ok(), "{} {:?} {:?}", text, ours, theirs);
        if let (Ok(ours), Ok(theirs)) = (&ours, &theirs) {
            prop_assert!(same(ours, theirs), "{}", text);
            prop_assert!(json::check(&text).is_ok());
        }
    }
}
