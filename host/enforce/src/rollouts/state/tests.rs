use super::*;
use serde_json::{Value, json};

const TARGET: Digest = Digest([2; 32]);
const OLD: Digest = Digest([1; 32]);

/// An order, by its stage and what it disrupts.
fn order(stage: &str, disrupts: &str, config: Digest, unwell: bool) -> Value {
    json!({"operation": "0".repeat(31) + "7", "config": {"name": "c", "digest": config.to_string()},
        "disrupts": disrupts, "token": 1, "stage": stage, "given": true, "unwell": unwell})
}

fn update(order: Option<Value>, phase: Option<&str>, current: Option<Digest>) -> NodeUpdate {
    let mut status = json!({"since": "2026-01-02T00:00:00.000000Z"});
    if let Some(phase) = phase {
        status["operation"] = json!("0".repeat(31) + "7");
        status["phase"] = json!(phase);
    }
    if let Some(current) = current {
        status["current"] = json!({"name": "rendered-old", "digest": current.to_string()});
    }
    let mut spec = json!({"pool": "worker"});
    if let Some(order) = order {
        spec["order"] = order;
    }
    serde_json::from_value(json!({
        "apiVersion": "tread.dev/v1alpha1", "kind": "NodeUpdate", "metadata": {"name": "n"},
        "spec": spec, "status": status,
    }))
    .unwrap()
}

fn stands(update: &NodeUpdate, retry_before: Option<&str>) -> Standing {
    let retry = retry_before.map(|at| At(at.parse().unwrap()));
    let against = Against { target: TARGET, retry_before: retry.as_ref(), overwrites: false };
    standing(Some(update), against, |from| {
        assert_eq!(from, "rendered-old");
        Planned::Ready(Disrupts::Softly, None)
    })
}

#[test]
fn a_node_stands_as_its_order_and_its_agent_say() {
    let softly = State::UnderWay(Disrupts::Softly);
    let boots = State::UnderWay(Disrupts::Reboot);
    let due = State::Due(Disrupts::Softly);
    for (stage, disrupts, phase, current, expected) in [
        ("Prepare", "Reboot", None, OLD, boots),
        ("Go", "Softly", None, OLD, softly),
        ("Go", "Softly", Some("Waiting"), OLD, softly),
        ("Go", "Softly", Some("Begun"), OLD, softly),
        ("Go", "Softly", Some("NeedsBoot"), OLD, State::NeedsBoot),
        // It has its turn by now.
        ("Go", "Reboot", Some("NeedsBoot"), OLD, boots),
        // It is proved first.
        ("Go", "Reboot", Some("Done"), TARGET, boots),
        ("Go", "Reboot", Some("Degraded"), OLD, State::Failed),
        ("Withdrawn", "Softly", Some("Waiting"), OLD, softly),
        ("Closed", "Softly", Some("Done"), TARGET, State::Updated),
        ("Closed", "Softly", Some("TurnedBack"), OLD, due),
        ("Closed", "Reboot", Some("WentBack"), OLD, State::Failed),
        ("Closed", "Softly", None, OLD, due),
        // Somebody wiped what the agent had said.
        ("Closed", "Softly", None, TARGET, State::Updated),
    ] {
        let update = update(Some(order(stage, disrupts, TARGET, false)), phase, Some(current));
        let standing = stands(&update, None);
        let is_under_way = stage != "Closed";
        assert_eq!(
            (standing.state, standing.is_under_way, standing.not_yet),
            (expected, is_under_way, None),
            "{stage} {disrupts} {phase:?}"
        );
    }
}

#[test]
fn what_failed_for_another_config_or_before_a_retry_is_due_again() {
    let went_back = |config| {
        let order = order("Closed", "Reboot", config, false);
        update(Some(order), Some("WentBack"), Some(OLD))
    };
    let state = |update: &NodeUpdate, retry| stands(update, retry).state;
    assert_eq!(state(&went_back(TARGET), None), State::Failed);
    assert_eq!(state(&went_back(Digest([3; 32])), None), State::Due(Disrupts::Softly));
    assert_eq!(state(&went_back(TARGET), Some("2026-01-01T00:00:00Z")), State::Failed);
    let retried = Some("2026-01-03T00:00:00Z");
    assert_eq!(state(&went_back(TARGET), retried), State::Due(Disrupts::Softly));
    // One that is unwell is drained for whatever is tried next.
    let unwell = update(Some(order("Closed", "Softly", TARGET, true)), Some("Degraded"), Some(OLD));
    assert_eq!(state(&unwell, None), State::Failed);
    assert_eq!(state(&unwell, retried), State::Due(Disrupts::Reboot));
    // Its order says which operation is tried again, and no other order says so.
    let retries = |update: &NodeUpdate, retry| stands(update, retry).retries;
    assert_eq!(retries(&unwell, None), None);
    assert_eq!(retries(&unwell, retried), Some("0".repeat(31) + "7"));
    assert_eq!(retries(&went_back(TARGET), retried), None);
    let degraded = update(Some(order("Go", "Reboot", TARGET, false)), Some("Degraded"), Some(OLD));
    assert_eq!(retries(&degraded, Some("2026-01-01T00:00:00Z")), None);
    assert_eq!(retries(&degraded, retried), Some("0".repeat(31) + "7"));
}

#[test]
fn a_node_of_which_too_little_is_known_is_not_begun() {
    let against = Against { target: TARGET, retry_before: None, overwrites: false };
    let not_yet = |update: Option<&NodeUpdate>, planned: Planned| {
        standing(update, against, |_| planned).not_yet
    };
    let has_old = update(None, None, Some(OLD));
    assert!(not_yet(None, Planned::NotYet).is_some());
    assert!(not_yet(Some(&update(None, None, None)), Planned::NotYet).is_some());
    assert!(not_yet(Some(&has_old), Planned::NotYet).is_some());
    let refused = not_yet(Some(&has_old), Planned::Refused("fips".to_owned()));
    assert!(refused.unwrap().contains("fips"));
    assert!(not_yet(Some(&has_old), Planned::Failed("busy".to_owned())).unwrap().contains("busy"));
    assert_eq!(not_yet(Some(&has_old), Planned::Ready(Disrupts::Reboot, None)), None);
    let mut unreadable = order("Go", "Softly", TARGET, false);
    unreadable["operation"] = json!("x");
    let unreadable = update(Some(unreadable), None, Some(OLD));
    assert!(not_yet(Some(&unreadable), Planned::NotYet).unwrap().contains("remove it"));
}

#[test]
fn a_node_that_refused_its_order_failed_and_one_that_was_withdrawn_did_not() {
    let order = order("Closed", "Softly", TARGET, false);
    let mut update = update(Some(order), Some("TurnedBack"), Some(OLD));
    assert_eq!(stands(&update, None).state, State::Due(Disrupts::Softly));
    update.status.as_mut().unwrap().message = Some("/etc/a is not as it was left".to_owned());
    assert_eq!(stands(&update, None).state, State::Failed);
    let retried = Some("2026-01-03T00:00:00Z");
    assert_eq!(stands(&update, retried).state, State::Due(Disrupts::Softly));
}

#[test]
fn those_who_got_it_softly_are_counted_for_the_next_wave() {
    for (disrupts, current, expected) in [
        ("Nothing", TARGET, true),
        ("Softly", TARGET, true),
        ("Reboot", TARGET, false),
        ("Softly", OLD, false),
    ] {
        let update =
            update(Some(order("Closed", disrupts, TARGET, false)), Some("Done"), Some(current));
        assert_eq!(stands(&update, None).came_softly, expected, "{disrupts}");
    }
}

#[test]
fn a_node_that_joins_with_another_disk_is_held_or_overwritten() {
    let mut update = update(None, None, None);
    update.status.as_mut().unwrap().message = Some("/etc/a differs".to_owned());
    for (overwrites, held) in [(false, true), (true, false)] {
        let against = Against { target: TARGET, retry_before: None, overwrites };
        let standing = standing(Some(&update), against, |_| Planned::NotYet);
        assert_eq!(standing.state, State::Due(Disrupts::Reboot));
        let says = standing.not_yet.is_some_and(|why| why.contains("/etc/a differs"));
        assert_eq!(says, held);
    }
}
