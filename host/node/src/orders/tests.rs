//! Orders that are read, and handed over.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::terms::Asked;
use tread_model::digest::Digest;

fn text(order: &str) -> String {
    format!(r#"{{"schema":"tread.dev/order/v1","id":"a","order":{order}}}"#)
}

#[test]
fn an_order_is_read_as_it_was_written() {
    let config = Documents::default();
    for order in [
        Does::Resume,
        Does::Apply {
            config: config.clone(),
            plan: None,
            accept: vec!["/a".to_owned()],
            drained: true,
        },
        Does::Adopt { config, differs: Adopt::Keep, drained: false, give_up: true },
    ] {
        let terms = Terms { permits: Asked::Agent, ..Terms::default() };
        let given = Given { terms, ..Given::new("a-1.x", order) };
        assert_eq!(Given::read(&serde_json::to_vec(&given).unwrap()).unwrap(), given);
    }
}

#[test]
fn an_order_that_is_not_known_whole_is_refused() {
    assert!(Given::read(text(r#"{"is":"resume"}"#).as_bytes()).is_ok());
    for (what, bad) in [
        ("another order", text(r#"{"is":"repartition"}"#)),
        ("another field", text(r#"{"is":"apply","config":[],"forced":true}"#)),
        ("another version", text(r#"{"is":"resume"}"#).replace("v1", "v2")),
        ("a name with folders", text(r#"{"is":"resume"}"#).replace("\"a\"", "\"../a\"")),
        ("an option", text(r#"{"is":"resume"}"#).replace("\"a\"", "\"-h\"")),
        ("for ever", text(r#"{"is":"resume"},"terms":{"wellFor":18446744073709551615}"#)),
        ("no name", text(r#"{"is":"resume"}"#).replace("\"a\"", "\"\"")),
        ("another field beside", text(r#"{"is":"resume"},"soon":1"#)),
        ("no JSON", "order".to_owned()),
        ("deep", "[".repeat(1 << 20)),
        ("deep below", text(r#"{"is":"resume"}"#).replace("\"a\"", &"[".repeat(1 << 20))),
        ("twice", text(r#"{"is":"resume"},"id":"b""#)),
        ("a proof for ever", text(r#"{"is":"resume"},"terms":{"proof":86401}"#)),
        ("no time to prove it", text(r#"{"is":"resume"},"terms":{"proof":0}"#)),
        ("no time to stay well", text(r#"{"is":"resume"},"terms":{"proof":10}"#)),
        ("a time that was", text(r#"{"is":"resume"},"terms":{"proof":-1}"#)),
        ("half a time", text(r#"{"is":"resume"},"terms":{"cutOff":0.5}"#)),
        ("an unclean name", text(r#"{"is":"resume"}"#).replace("\"a\"", r#""a\u0000b""#)),
        ("a mark before it", format!("\u{feff}{}", text(r#"{"is":"resume"}"#))),
    ] {
        assert!(Given::read(bad.as_bytes()).is_err(), "{what}");
    }
    let not_text = [text(r#"{"is":"resume"}"#).as_bytes(), b"\xff"].concat();
    assert!(Given::read(&not_text).is_err());
}

#[test]
fn what_an_order_holds_is_not_told_by_its_error() {
    for bad in [
        text(r#"{"is":"apply","config":"SECRET"}"#),
        text(r#"{"is":"SECRET"}"#),
        "SECRET".to_owned(),
        text(r#"{"is":"resume"}"#).replace("schema", "SECRET"),
    ] {
        let error = Given::read(bad.as_bytes()).unwrap_err().to_string();
        assert!(!error.contains("SECRET"), "{error}");
    }
}

#[test]
fn an_order_that_is_handed_over_takes_no_other_one_away() {
    let dir = tempfile::tempdir().unwrap();
    let tree = Tree::open(dir.path()).unwrap();
    let handed = Handed::of(&tree).unwrap();
    for id in ["one", "two", "two"] {
        handed.put(&Given::new(id, Does::Resume)).unwrap();
    }
    assert_eq!(Handed::ids(&tree).unwrap(), ["one", "two"]);
    assert_eq!(handed.get("one").unwrap().id, "one");
    handed.take_back("two").unwrap();
    assert!(handed.get("two").unwrap_err().to_string().contains("give it again"));
    handed.forget_all().unwrap();
    assert!(handed.get("one").is_err());
}

/// The disk is full in the middle of whatever is created.
struct Full;

impl crate::tree::Witness for Full {
    fn before(&self, _: &crate::tree::Syscall<'_>) -> io::Result<()> {
        Ok(())
    }

    fn after(&self, syscall: &crate::tree::Syscall<'_>) -> io::Result<()> {
        match syscall {
            crate::tree::Syscall::Create { .. } => Err(io::ErrorKind::StorageFull.into()),
            _ => Ok(()),
        }
    }
}

#[test]
fn an_order_for_which_there_is_no_room_is_not_listed() {
    let dir = tempfile::tempdir().unwrap();
    let tree = Tree::witnessed(dir.path(), std::sync::Arc::new(Full)).unwrap();
    let handed = Handed::of(&tree).unwrap();
    assert!(handed.put(&Given::new("one", Does::Resume)).is_err());
    assert!(Handed::ids(&tree).unwrap().is_empty());
}

#[test]
fn a_folder_among_the_orders_keeps_none_from_being_handed_over() {
    let dir = tempfile::tempdir().unwrap();
    let tree = Tree::open(dir.path()).unwrap();
    let handed = Handed::of(&tree).unwrap();
    let at = dir.path().join(FOLDER.trim_start_matches('/'));
    std::fs::create_dir_all(at.join("one/in it")).unwrap();
    handed.put(&Given::new("two", Does::Resume)).unwrap();
    assert_eq!(Handed::ids(&tree).unwrap(), ["two"]);
    handed.forget_all().unwrap();
    assert!(at.join("one/in it").exists() && !at.join("two").exists());
    handed.put(&Given::new("one", Does::Resume)).unwrap();
    assert_eq!(handed.get("one").unwrap().id, "one");
}

#[test]
fn an_api_server_that_is_no_address_is_refused() {
    let with = |address: &str| {
        let server = format!(r#"{{"is":"resume"}},"terms":{{"apiServer":"{address}"}}"#);
        Given::read(text(&server).as_bytes())
    };
    assert!(with("api.example.com:6443").is_ok());
    let error = with("https://api.example.com:6443").unwrap_err().to_string();
    assert!(error.contains("HOST:PORT"), "{error}");
}

#[test]
fn of_two_who_hand_orders_over_at_once_one_is_alone() {
    let dir = tempfile::tempdir().unwrap();
    let tree = Tree::open(dir.path()).unwrap();
    let (one, two) = (Handed::of(&tree).unwrap(), Handed::of(&tree).unwrap());
    let alone = one.alone().unwrap();
    assert!(alone.is_some() && two.alone().unwrap().is_none());
    drop(alone);
    assert!(two.alone().unwrap().is_some());
}

#[test]
fn only_an_order_that_boots_a_drained_node_gives_up_another_one() {
    let with = |order: &str, named: &str| {
        Given::read(text(&format!(r#"{order},"givesUp":"{named}""#)).as_bytes())
    };
    let apply = r#"{"is":"apply","config":[],"drained":true}"#;
    let overwrite = r#"{"is":"adopt","config":[],"differs":"overwrite","drained":true}"#;
    for boots in [apply, overwrite] {
        assert_eq!(with(boots, "b").unwrap().gives_up.as_deref(), Some("b"));
        for named in ["a", "", "../b", "-b"] {
            assert!(with(boots, named).is_err(), "{named:?}");
        }
    }
    let mut plan = VerifiablePlan::always_allowed(Digest([1; 32]), Digest([2; 32]));
    plan.steps = vec![Step::Write, Step::Reload { unit: "a.service".to_owned() }];
    let plan = serde_json::to_string(&plan).unwrap();
    let softly = format!(r#"{{"is":"apply","config":[],"drained":true,"plan":{plan}}}"#);
    for order in [
        &softly,
        r#"{"is":"apply","config":[]}"#,
        r#"{"is":"adopt","config":[],"differs":"overwrite"}"#,
        r#"{"is":"adopt","config":[],"differs":"keep","drained":true}"#,
        r#"{"is":"adopt","config":[],"drained":true}"#,
        r#"{"is":"fetch","config":[]}"#,
        r#"{"is":"resume"}"#,
    ] {
        assert!(with(order, "b").is_err(), "{order}");
    }
}
