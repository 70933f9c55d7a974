#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use proptest::prelude::*;

fn section(unit: &str, text: &str) -> Result<Section, Wrong> {
    let mut section = Section::default();
    section.add(UnitName::of(unit).unwrap(), text, &Facts::default())?;
    Ok(section)
}

#[test]
fn lists_are_read_as_systemd_reads_them() {
    let cases: [(&str, &[&str]); 13] = [
        ("[Install]\nWantedBy=a.target b.target\n", &["a.target", "b.target"]),
        ("[Install]\nWantedBy=a.target\nWantedBy=b.target\n", &["a.target", "b.target"]),
        ("[Install]\nWantedBy=a.target\nWantedBy=\nWantedBy=b.target", &["b.target"]),
        ("[Install]\r\n WantedBy = a.target \\\r\n b.target\r\n", &["a.target", "b.target"]),
        (
            "[Install]\nWantedBy=a.target \\\n# a comment\n; another\nb.target\n",
            &["a.target", "b.target"],
        ),
        ("[Install]\nWantedBy=a.target \\", &["a.target"]),
        ("[Install]\nWantedBy=\"a b\" 'c' d\"e\"f\n", &["a b", "c", "def"]),
        ("[Install]\nWantedBy=a.target \"b.target\n", &["a.target"]),
        ("[Install]\nWantedBy=a\\x2db.target\n", &["a\\x2db.target"]),
        ("WantedBy=a\n[Unit]\nWantedBy=b\n[Install]\nwantedby=c\n[X]\nWantedBy=d\n", &[]),
        ("[Install]\nWantedBy\n=a\nWantedBy=b", &["b"]),
        ("[Install]\nUnknown=x\nWantedBy=b\0WantedBy=c", &["b", "c"]),
        ("[Unit]\n[Install]\nWantedBy=b\n[Unit]\n[Install]\nWantedBy=c", &["b", "c"]),
    ];
    for (text, expected) in cases {
        assert_eq!(section("a.service", text).unwrap().wanted_by, expected, "{text:?}");
    }
}

#[test]
fn each_key_goes_where_it_belongs() {
    let text = "[Install]\nAlias=a.service\nWantedBy=b\nRequiredBy=c\nUpheldBy=d\nAlso=e.socket f\\.timer\nDefaultInstance=x\n";
    let read = section("t@.service", text).unwrap();
    assert_eq!(read.alias, ["a.service"]);
    assert_eq!(
        (read.wanted_by, read.required_by, read.upheld_by),
        (vec!["b".to_owned()], vec!["c".to_owned()], vec!["d".to_owned()])
    );
    assert_eq!(read.also, ["e.socket", "f.timer"]);
    assert_eq!(read.default_instance.as_deref(), Some("x"));
    assert_eq!(section("t@y.service", text).unwrap().default_instance, None);
    assert_eq!(section("a.mount", text).unwrap().alias, [""; 0]);
    let text = "[Install]\nDefaultInstance=x\nAlso=b@%i.service\n";
    assert_eq!(section("t@.service", text).unwrap().also, ["b@x.service"]);
}

#[test]
fn what_makes_systemd_refuse_a_file_is_named_with_its_line() {
    let cases = [
        ("[Install]\nWantedBy=a\n[Unit\n", 3, "without its `]`"),
        ("\n[In\"stall]\n", 2, "letters that no section has"),
        ("[Install]\nAlso=nonsense\n", 2, "no unit can have that name"),
        ("[Install]\nAlso=%m.service\n", 2, "the specifier `%m`"),
        ("[Install]\nDefaultInstance=a/b\n", 2, "no instance can have that name"),
    ];
    for (text, line, expected) in cases {
        let wrong = section("t@.service", text).unwrap_err();
        assert_eq!(wrong.line, line, "{text:?}");
        assert!(wrong.what.contains(expected), "{}", wrong.what);
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "(\\[Install\\]|Alias|Also|WantedBy|DefaultInstance|[=%\\\\\"' \n\r\0]|\\PC){0,30}") {
        let _ = section("a@.service", &text);
        let _ = section("a.service", &format!("[Install]\n{text}"));
    }
}
