#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use tread_kube::api::node_update::ConfigName;

fn config(name: &str) -> ConfigName {
    ConfigName { name: name.to_owned(), digest: format!("blake3:{name}") }
}

fn taken(operation: &str) -> Kept {
    let taken = Taken {
        operation: operation.to_owned(),
        config: config("new"),
        token: 1,
        boots: false,
        phase: UpdatePhase::Waiting,
        since: MicroTime(Timestamp::UNIX_EPOCH),
        message: String::new(),
    };
    Kept { taken: Some(taken), current: Some(config("old")), ..Kept::default() }
}

#[test]
fn what_a_node_has_is_what_was_done_and_the_last_ten_are_told() {
    let mut kept = Kept::default();
    for number in 0..12 {
        let before = Kept { ended: kept.ended, current: kept.current, ..Kept::default() };
        kept = Kept { taken: taken(&number.to_string()).taken, ..before };
        becomes(&mut kept, UpdatePhase::Begun, "");
        assert_eq!(kept.ended.len(), usize::min(number, 10));
        becomes(&mut kept, UpdatePhase::TurnedBack, "it was withdrawn");
    }
    assert_eq!(kept.current, None);
    becomes(&mut kept, UpdatePhase::Done, "");
    assert_eq!(kept.current, Some(config("new")));
    let numbers: Vec<&str> = kept.ended.iter().map(|it| it.operation.as_str()).collect();
    assert_eq!(numbers, ["11", "10", "9", "8", "7", "6", "5", "4", "3", "2"]);
    assert_eq!(kept.ended[0].phase, UpdatePhase::Done);
    assert_eq!(kept.ended[1].message.as_deref(), Some("it was withdrawn"));
}

#[test]
fn what_is_not_said_any_more_is_taken_away_and_conditions_are_left_to_the_service() {
    let kept = taken("one");
    let silent = status(&kept, &Says::default());
    let patch = patch(&silent).unwrap();
    for field in ["step", "message", "ended"] {
        assert_eq!(patch["status"].get(field), Some(&Value::Null), "{field}");
    }
    assert_eq!(patch["status"]["phase"], "Waiting");
    assert_eq!(patch["status"]["current"]["name"], "old");
    assert_eq!(patch["status"].get("conditions"), None);
    let boot_image = Some("412.86.202308081056-0".to_owned());
    let (step, message) = ("y".repeat(5000), "x".repeat(5000));
    let says = Says { step, message, boot_image, ..Says::default() };
    let said = status(&kept, &says);
    assert_eq!(said.boot_image.as_deref(), Some("412.86.202308081056-0"));
    assert!(said.message.as_ref().unwrap().len() <= MESSAGE);
    assert!(said.step.as_ref().unwrap().len() <= STEP);
    assert_ne!(digest(&silent).unwrap(), digest(&said).unwrap());
}

#[test]
fn what_is_written_later_in_a_boot_is_for_that_boot_alone_and_takes_the_same_away() {
    let kept = Kept { current: None, ..taken("one") };
    let says = Says { boot: Some("this".to_owned()), ..Says::default() };
    let status = status(&kept, &says);
    let merge = patch(&status).unwrap();
    let steps = patch_in_boot(&status, "this").unwrap();
    let steps = steps.as_array().unwrap();
    assert_eq!(steps[0], json!({"op": "test", "path": "/status/bootId", "value": "this"}));
    let mut found = serde_json::Map::new();
    for step in &steps[1..] {
        let field = step["path"].as_str().unwrap().strip_prefix("/status/").unwrap();
        match step["op"].as_str().unwrap() {
            "add" => drop(found.insert(field.to_owned(), step["value"].clone())),
            "remove" => assert_eq!(found.get(field), Some(&Value::Null), "{field}"),
            other => panic!("{other}"),
        }
    }
    assert_eq!(Value::Object(found), merge["status"]);
    let removed = steps.iter().filter(|step| step["op"] == "remove").count();
    let gone = merge["status"].as_object().unwrap().values().filter(|it| it.is_null()).count();
    assert_eq!(removed, gone);
    assert!(removed > 0);
}
