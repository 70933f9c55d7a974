//! What TOML 1.0 is, and what it is not.

use proptest::prelude::*;
use tread_policy_formats::{Table, Value, toml};

const VALID: &[&str] = &[
    "",
    "# only a comment",
    "a = 1 # comment\r\nb = 'x'\r\n",
    "\u{feff}a = 1",
    "\"quoted key\" = 1\n'literal' = 2\nbare-key_9 = 3\n1234 = 4",
    "a.b.c = 1\na.b.d = 2\na . \"x y\" = 3",
    "[a]\nb.c = 1\n[a.b.d]\ne = 1",
    "[a.b.c]\n[a]\nx = 1",
    "[[a]]\nx = 1\n[a.sub]\ny = 1\n[[a]]\n[a.sub]\ny = 2",
    "[[a.b]]\n[[a.b.c]]\n[[a.b.c]]\n[[a.b]]",
    "[ a . 'b' ]\nx = 1",
    "a = [1, 'x', [true], { b = 1 }, ]",
    "a = [\n  1, # one\n\n  2\n]",
    "a = {}\nb = { c.d = 1, c.e = 2 }",
    r#"a = "tab\t \u00e9 \U0001F600 \" \\""#,
    "a = \"\"\"\nfirst\n\"quoted\" \\\n   joined \"\"\"\"\"",
    "a = '''\nno \\escape ''quotes'' '''''",
    "a = '''\r\nfirst\r\nsecond\n'''\nb = \"\"\"\r\nfirst\r\n\\\r\n  second\"\"\"",
    "a = 1979-05-27 07:32:00Z\nb = 07:32:00\nc = 1979-05-27",
    "a = 0xff\nb = -1_000\nc = 6.02e23\nd = -inf",
    "a = \"\"\nb = ''\nc = \"\"\"\"\"\"",
];

const INVALID: &[&str] = &[
    "a",
    "a =",
    "= 1",
    "a = b",
    "a = 1 b = 2",
    "a = 1\na = 2",
    "a = 1\n\"a\" = 2",
    "a = 1\na.b = 2",
    "a.b = 1\n[a]",
    "a.b = 1\n[a.b]",
    "[a]\n[a]",
    "[a]\nb = 1\n[a.b]",
    "[a]\n[[a]]",
    "[[a]]\n[a]",
    "a = []\n[[a]]",
    "a = { b = 1 }\n[a.c]",
    "a = { b = 1 }\na.c = 2",
    "[a.b.c]\nz = 9\n[a]\nb.c.t = 1",
    "[a.b]\n[a]\nb.c = 1",
    "a = { b = 1, }",
    "a = { b = 1\n}",
    "a = { b = 1, b = 2 }",
    "a = [1 2]",
    "a = [1",
    "a = [,]",
    "[a",
    "[a]]",
    "[[a]",
    "[ [a]]",
    "[]",
    "[a.]",
    "[a] b = 1",
    "a..b = 1",
    "a = \"x",
    "a = 'x\n'",
    "a = \"x\ny\"",
    "a = \"\\e\"",
    "a = \"\\x41\"",
    "a = \"\\uD800\"",
    "a = \"\\u12\"",
    "a = \"\"\"x \\ y\"\"\"",
    "a = \"\"\"x",
    "a = 'x\u{1}'",
    "a = 1 # \u{1}",
    "a = 1 \r b = 2",
    "a = 01",
    "a = 1__0",
    "a = .5",
    "a = 07:32",
    "a = 1979-02-30",
    "a = TRUE",
    "a = 1 = 2",
    "é = 1",
    "a\u{0} = 1",
];

#[test]
fn what_toml_1_0_allows_is_read_as_the_reference_reads_it() {
    for text in VALID {
        let read = toml::parse(text.as_bytes());
        assert!(read.is_ok(), "{text:?}: {read:?}");
        assert_eq!(read.ok().map(blur_table), reference(text), "{text:?}");
    }
}

#[test]
fn what_toml_1_0_forbids_is_refused() {
    for text in INVALID {
        assert!(toml::parse(text.as_bytes()).is_err(), "{text:?}");
    }
    assert!(toml::parse(b"a = '\xff'").is_err());
}

#[test]
fn an_error_names_its_line() {
    let error = toml::parse(b"a = 1\n\nb = 2\nb = 3\n").unwrap_err();
    assert_eq!((error.line, error.what), (4, "this key is defined twice"));
    assert_eq!(toml::parse(b"a = 1\nb = '\xff'").unwrap_err().line, 2);
}

#[test]
fn values_inside_each_other_without_end_are_refused() {
    let text = format!("a = {}", "[".repeat(100_000));
    assert_eq!(toml::parse(text.as_bytes()).unwrap_err().what, "values are nested too deeply");
}

/// The same tree, read by the crate `toml`. Its tree leaves numbers as they are
/// written, whatever that is; that they are some is seen where they are read.
fn reference(text: &str) -> Option<Table> {
    let text = text.trim_start_matches('\u{feff}');
    text.parse::<::toml::Table>().ok()?;
    let table = ::toml::de::DeTable::parse(text).ok()?;
    Some(convert_table(table.get_ref()))
}

fn convert_table(table: &::toml::de::DeTable<'_>) -> Table {
    let mut converted = Table::new();
    for (key, value) in table {
        converted.insert(key.get_ref().to_string(), convert(value));
    }
    converted
}

fn convert(value: &::toml::Spanned<::toml::de::DeValue<'_>>) -> Value {
    use ::toml::de::DeValue;
    let written = || Value::Other(String::new());
    match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Boolean(truth) => Value::Bool(*truth),
        DeValue::Array(items) => Value::List(items.iter().map(convert).collect()),
        DeValue::Table(table) => Value::Table(convert_table(table)),
        _ => written(),
    }
}

/// Numbers and dates are kept as written here, and parsed by the reference.
fn blur(value: Value) -> Value {
    match value {
        Value::Other(_) => Value::Other(String::new()),
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

/// Texts of pieces that are likely to make or break a document.
fn pieces() -> impl Strategy<Value = String> {
    const PIECES: &[&str] = &[
        "a",
        "b",
        "c",
        ".",
        "=",
        " = ",
        "\n",
        "\n",
        "\r\n",
        "[",
        "]",
        "[[",
        "]]",
        "{",
        "}",
        ",",
        "\"",
        "'",
        "\"\"\"",
        "'''",
        "\\",
        "\\n",
        "\\u0041",
        "#",
        " ",
        "\t",
        "1",
        "0",
        "-",
        "_",
        "true",
        "1.5",
        "1e3",
        "inf",
        "0x1",
        "1979-05-27",
        "07:32:00",
        "T",
        "Z",
        "é",
        "\u{1}",
        "a = 1\n",
        "[a]\n",
        "[[a]]\n",
        "[a.b]\n",
        "a.b = 1\n",
        "b = 'x'\n",
        "c = {a = 1}\n",
    ];
    proptest::collection::vec(proptest::sample::select(PIECES), 0..14).prop_map(|p| p.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..Default::default() })]

    /// The reference reads TOML 1.1, so it may read more, never less or else.
    #[test]
    fn whatever_is_read_the_reference_reads_too(text in pieces()) {
        match toml::parse(text.as_bytes()) {
            Ok(table) => prop_assert_eq!(Some(blur_table(table)), reference(&text)),
            Err(_) if reference_may_read(&text) => {}
            Err(error) => prop_assert_eq!(None, reference(&text), "{:?}", error),
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = toml::parse(&bytes);
    }
}

/// Whether a text may hold what only TOML 1.1 allows (newlines, comments and
/// trailing commas in inline tables, times without seconds, `\e` and `\x`).
fn reference_may_read(text: &str) -> bool {
    text.contains('{') || text.contains("\\e") || text.contains("\\x") || text.contains(':')
}
