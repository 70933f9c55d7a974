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
