//! What is read of YAML is read right; the rest is not read.

use proptest::prelude::*;
use tread_policy_formats::{Table, Value, yaml};

#[test]
fn what_machines_write_is_read() {
    let block = "\
---
# the kubelet's
kind: KubeletConfiguration
apiVersion: kubelet.config.k8s.io/v1beta1 # a comment
evictionHard:
  memory.available: \"100Mi\"
  \"nodefs.available\": '10%'
tlsCipherSuites:
- TLS_A
- TLS_B
maxPods: 250
rotate: true
creationTimestamp: null
empty: {}
nothing:
clusterDNS: [ 172.30.0.10, \"a, b\" ]
shutdown:
    - priority: 10
      seconds: 30
    -
      priority: 20
    - - x
url: http://[::1]:10248/healthz#x
it: it's 'quoted'
";
    let read = yaml::parse(block).unwrap();
    assert_eq!(Some(blur_table(read.clone())), reference(block));
    assert_eq!(read.get("maxPods"), Some(&Value::Other("250".into())));
    for key in ["creationTimestamp", "nothing"] {
        assert_eq!(read.get(key), Some(&Value::Other("null".into())), "{key}");
    }

    let json = "\n{ \"kind\": \"K\", \"a\": [1, {\"b\": null, \"c\": \"\\u00e9\\n\\ud83d\\ude00\"}],\n \"d\":false }\n";
    assert_eq!(yaml::parse(json).map(blur_table), reference(json));
}

#[test]
fn nothing_but_comments_is_an_empty_mapping() {
    for text in ["", "\n\n", "# one\n", "---\n# one\n", "{}"] {
        assert_eq!(yaml::parse(text), Some(Table::new()), "{text:?}");
    }
}

#[test]
fn hosts_with_ports_and_urls_are_texts() {
    let text = "\
# A comment in front of the document.
---
localhost:5000: {url: https://a.io/x, at: 10.0.0.1:5000}
10.0.0.1: {}
10.0.0.1:5000/team:
  a.io:80: 1.2.3.4/5
";
    let read = yaml::parse(text).unwrap();
    assert_eq!(Some(blur_table(read.clone())), reference(text));
    assert_eq!(read.keys().count(), 3);
}

#[test]
fn the_line_is_told_that_is_not_read() {
    for (text, line) in [
        ("a: 1\n# x\na: 2", 3),
        ("a:\n\tb: 1", 2),
        ("a: 1\n  b: 2", 1),
        ("a:\n    b: 1\n  c: 2", 3),
        ("a: 1\n\nb: &x 2\nc: 3", 3),
        ("a: 1\nb", 2),
        ("a: 1\n---\nb: 2", 2),
        ("a: 1\nb: \u{feff}", 2),
        ("- a", 1),
        ("{\"a\": 1,}", 1),
    ] {
        assert_eq!(yaml::read(text).err().map(|error| error.line), Some(line), "{text:?}");
    }
}

#[test]
fn what_is_not_sure_is_not_read() {
    for text in [
        "a: &x 1",
        "a: *x",
        "a: !!str 1",
        "a: |\n  text",
        "a: >-\n  text",
        "a: one\n  two",
        "a: \"one\n  two\"",
        "? a\n: b",
        "<<: *x",
        "a: 1\na: 2",
        "a:\na: 2",
        "{\"a\": 1, \"a\": null}",
        "a: 1\n---\nb: 2",
        "a: 1\n...",
        "%YAML 1.1\n---\na: 1",
        "a:\tb",
        "\ta: 1",
        "a: [1, 2",
        "a: [1,\n  2]",
        "a: {b:1}",
        "a: b: c",
        "a: b:",
        "a: 1\n  b: 2",
        "  a: 1\nb: 2",
        "a:\n    b: 1\n  c: 2",
        "- a",
        "text",
        "a: 'x' y",
        "a: \"\\x41\"",
        "a: \"\\ud83d\"",
        "a: \"\\ud83d\\u0041\"",
        "{\"a\": 1} x",
        // A `{` makes it JSON for the kubelet, which knows no more than JSON.
        "{a: 1}",
        "{'a': 1}",
        "{\"a\": yes}",
        "{\"a\": x}",
        "{\"a\": 'x'}",
        "{\"a\": 010}",
        "{\"a\": 1e3}",
        "{\"a\": 1.0}",
        "{\"a\": 1,}",
        "{\"a\": [1,]}",
        "{\"a\": True}",
        "{} # c",
        "\u{a0}{\"a\": 1}",
        // In YAML 1.1 these end a line, and so a comment.
        "a: 1 # c\u{2028}b: 2",
        "a: 1 # c\u{2029}b: 2",
        "a: 1 # c\u{85}b: 2",
        "a: 1 # c\rb: 2",
        "\u{feff}a: 1",
        "a: 1 # \u{feff}",
        "a: \u{1}",
        "a: 1\t",
        "a: 1 #\tc",
        // Not in YAML, or not in every version.
        "a: \"\\/\"",
        "a: \"\\ud83d\\ude00\"",
        "tRuE: 1",
        "No: 1",
        "1: a",
        "~: a",
        "a: <<",
        "a: -.inf",
        "a: .NaN",
        "a:\n  - 1\n b",
        "- - a\nb",
    ] {
        assert_eq!(yaml::parse(text), None, "{text:?}");
    }
}

#[test]
fn quotes_do_not_matter_unless_they_make_a_text_of_a_number() {
    let same = |a: &str, b: &str| yaml::parse(a) == yaml::parse(b);
    assert!(same("a: 10s", "a: \"10s\""));
    assert!(same("a: x", "{\"a\": \"x\"}"));
    assert!(!same("a: 10", "a: \"10\""));
    assert!(!same("a: true", "a: 'true'"));
    assert!(!same("a: yes", "a: 'yes'"));
}

#[test]
fn odd_spellings_are_equal_to_nothing_but_themselves() {
    let same =
        |a: &str, b: &str| yaml::parse(&format!("a: {a}")) == yaml::parse(&format!("a: {b}"));
    for odd in [
        "tRuE",
        "FaLse",
        "nULL",
        "nUll",
        "yes",
        "Yes",
        "YES",
        "no",
        "on",
        "Off",
        "y",
        "N",
        "010",
        "0o10",
        "0x8",
        "0b1",
        "1_000",
        "1e3",
        "1.0",
        "+1",
        "-0",
        ".5",
        "5.",
        "190:20:30",
        "2001-12-14",
        "2001-12-14T21:59:43Z",
        "1234567890123456",
        "1,2",
        "1 2",
        "10sec",
    ] {
        assert!(yaml::parse(&format!("a: {odd}")).is_some() && same(odd, odd), "{odd}");
        for other in ["true", "false", "null", "8", "1", "0", "1000", "0.5", "5", "''"] {
            assert!(!same(odd, other), "{odd} {other}");
        }
        assert!(!same(odd, &format!("'{odd}'")), "{odd}");
        assert!(!same(odd, &odd.to_uppercase()) || odd == odd.to_uppercase(), "{odd}");
    }
    for (a, b) in [("true", "TRUE"), ("False", "false"), ("~", "Null"), ("", "NULL")] {
        assert!(same(a, b), "{a} {b}");
    }
    for text in ["10s", "1h30m", "1.5s", "100Mi", "10%", "x", "a b", "0s"] {
        assert!(same(text, &format!("\"{text}\"")), "{text}");
    }
}

#[test]
fn a_null_is_not_nothing() {
    // In a map of the kubelet it is an entry with an empty value.
    assert_ne!(yaml::parse("a:\n  b: null\n  c: 1"), yaml::parse("a:\n  c: 1"));
    assert_ne!(yaml::parse("{\"a\": null}"), yaml::parse("{}"));
    assert_eq!(yaml::parse("{\"a\": null}"), yaml::parse("a: ~"));
}

#[test]
fn space_that_is_no_space_belongs_to_the_text() {
    assert_ne!(yaml::parse("a: x\u{a0}"), yaml::parse("a: x"));
    assert_ne!(yaml::parse("a: \u{3000}x"), yaml::parse("a: x"));
    assert_eq!(yaml::parse("a: x  \r\nb: y"), yaml::parse("a: x\nb: y"));
}

#[test]
fn collections_inside_each_other_without_end_are_not_read() {
    assert_eq!(yaml::parse(&format!("a: {}", "[".repeat(100_000))), None);
    assert_eq!(yaml::parse(&"- ".repeat(100_000)), None);
}

fn reference(text: &str) -> Option<Table> {
    match convert(serde_saphyr::from_str::<serde_json::Value>(text).ok()?) {
        Value::Table(table) => Some(table),
        Value::Other(_) => Some(Table::new()),
        _ => None,
    }
}

fn convert(value: serde_json::Value) -> Value {
    match value {
        serde_json::Value::String(text) => scalar(text),
        serde_json::Value::Bool(truth) => Value::Bool(truth),
        serde_json::Value::Null | serde_json::Value::Number(_) => Value::Other(String::new()),
        serde_json::Value::Array(items) => Value::List(items.into_iter().map(convert).collect()),
        serde_json::Value::Object(map) => {
            let mut table = Table::new();
            for (key, value) in map {
                table.insert(key, convert(value));
            }
            Value::Table(table)
        }
    }
}

/// Versions of YAML differ in what is a number: compared as such if either does.
fn scalar(text: String) -> Value {
    let plain = text.is_empty()
        || text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c))
        || ["y", "n", "on", "off", "yes", "no"].contains(&text.as_str());
    if plain { Value::Other(String::new()) } else { Value::Text(text) }
}

fn blur(value: Value) -> Value {
    match value {
        Value::Other(_) => Value::Other(String::new()),
        Value::Text(text) => scalar(text),
        Value::List(items) => Value::List(items.into_iter().map(blur).collect()),
        Value::Table(table) => Value::Table(blur_table(table)),
        value => value,
    }
}

fn blur_table(table: Table) -> Table {
    let mut blurred = Table::new();
    for (key, value) in table.into_entries() {
        blurred.insert(key, blur(value));
    }
    blurred
}

fn pieces() -> impl Strategy<Value = String> {
    const PIECES: &[&str] = &[
        "a: ", "b:", "c: ", "a", "b", "\n", "\n", "\n  ", "\n    ", "- ", "\n- ", "\n  - ", "[",
        "]", "{", "}", ", ", ": ", ":", "\"", "'", "\"x\"", "'y z'", "#", " # c", " ", "1", "-1",
        "true", "null", "~", "10s", "&x", "*x", "|", ">", "---\n", "\\n", "é", "\"k\": ", "x y",
        "\na: 1", "\nb: x", "\n  c: 2", "\n  d:",
    ];
    proptest::collection::vec(proptest::sample::select(PIECES), 0..14).prop_map(|p| p.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn whatever_is_read_a_whole_reader_of_yaml_reads_the_same(text in pieces()) {
        if let Some(read) = yaml::parse(&text) {
            prop_assert_eq!(Some(blur_table(read)), reference(&text));
        }
    }
}
