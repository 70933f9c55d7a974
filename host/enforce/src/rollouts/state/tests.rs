use super::*;
use serde_json::{Value, json};

const TARGET: Digest = Digest([2; 32]);
const OLD: Digest = Digest([1; 32]);
/// The MachineConfig of the target.
const NAME: &str = "rendered-new";

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

fn against() -> Against<'static> {
    Against {
        target: TARGET,
        name: NAME,
        retry_before: None,
        retry: None,
        now: Time::default(),
        lost_after: Duration::from_secs(3600),
        acts_since: Some(Time::default()),
        unheard_since: None,
        overwrites: false,
        form: FIRST_FORM,
    }
}

fn of_order(target: Digest) -> Against<'static> {
    Against { target, ..against() }
}

fn stands(update: &NodeUpdate, retry_before: Option<&str>) -> Standing {
    let retry = retry_before.map(|at| At(at.parse().unwrap()));
    let against = Against { retry_before: retry.as_ref(), ..against() };
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
        ("Closed", "Softly", Some("TurnedBack"), OLD, State::Failed),
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
    let halts = |update: &NodeUpdate, retry| stands(update, retry).went_back;
    assert!(
        halts(&went_back(TARGET), None) && halts(&went_back(TARGET), Some("2026-01-01T00:00:00Z"))
    );
    assert!(!halts(&went_back(TARGET), Some("2026-01-03T00:00:00Z")), "it is retried");
    assert!(!halts(&went_back(Digest([3; 32])), None), "from another config");
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
fn what_failed_for_a_config_stays_failed_where_a_newer_tread_makes_its_digest_in_another_way() {
    let (older, another) = (Digest([9; 32]), "rendered-other");
    let of = |name: &str, (stage, phase): (&str, &str), current| {
        let mut order = order(stage, "Reboot", older, false);
        order["config"]["name"] = json!(name);
        order["escalated"] = json!("2026-01-02T00:00:00.000000Z");
        update(Some(order), Some(phase), Some(current))
    };
    for phase in ["WentBack", "TurnedBack"] {
        let failed = stands(&of(NAME, ("Closed", phase), OLD), None);
        assert_eq!((failed.state, failed.step_failed), (State::Failed, true), "{phase}");
        assert_eq!((failed.went_back, failed.is_well), (phase == "WentBack", true), "{phase}");
        let due = stands(&of(another, ("Closed", phase), OLD), None);
        assert_eq!((due.state, due.step_failed), (State::Due(Disrupts::Softly), false), "{phase}");
    }
    // Its step failed, and it booted to get there: its agent has said so by the new digest.
    let booted = stands(&of(NAME, ("Closed", "Done"), TARGET), None);
    assert_eq!((booted.state, booted.step_failed), (State::Updated, true));
    assert!(!stands(&of(another, ("Closed", "Done"), TARGET), None).step_failed);
    // All of its attempts are used up.
    let retry = Retry { attempts: 2, first_after: Duration::from_secs(600) };
    let now = time("2027-01-01T00:00:00Z".parse().unwrap()).unwrap();
    let degraded = |name: &str| {
        let mut update = of(name, ("Go", "Degraded"), OLD);
        let order = update.spec.order.as_mut().unwrap();
        (order.tried, order.retries) = (2, Some("0".repeat(31) + "6"));
        order.failed_at = serde_json::from_value(json!("2026-01-01T00:00:00.000000Z")).unwrap();
        let by_itself = Against { retry: Some(retry), now, ..against() };
        standing(Some(&update), by_itself, |_| Planned::NotYet)
    };
    let given_up = degraded(NAME);
    assert_eq!((given_up.state, given_up.again, given_up.unwell), (State::Failed, None, true));
    assert_eq!(degraded(another).state, State::Due(Disrupts::Reboot), "nothing of it was tried");
}

#[test]
fn a_node_whose_clock_is_wrong_is_begun_again_once_for_each_time_that_an_admin_asks() {
    let now = time("2026-01-02T12:00:00Z".parse().unwrap()).unwrap();
    let is_retried = |given: &str, failed: &str, asked: &str| {
        let mut order = order("Closed", "Reboot", TARGET, false);
        order["goSince"] = json!(given);
        let mut failed_at = update(Some(order), Some("WentBack"), Some(OLD));
        failed_at.status.as_mut().unwrap().since = serde_json::from_value(json!(failed)).unwrap();
        let retry = At(asked.parse().unwrap());
        let against = Against { now, retry_before: Some(&retry), ..against() };
        let standing =
            standing(Some(&failed_at), against, |_| Planned::Ready(Disrupts::Softly, None));
        standing.state != State::Failed
    };
    let (given, asked) = ("2026-01-02T10:00:00.000000Z", "2026-01-02T11:00:00Z");
    let again = "2026-01-02T11:00:01.000000Z";
    for failed in ["2026-01-01T00:00:00.000000Z", "2027-01-01T00:00:00.000000Z"] {
        assert!(is_retried(given, failed, asked), "{failed}");
        assert!(!is_retried(again, failed, asked), "{failed}: it failed once more");
    }
    // A clock that may be right is believed, also where the API server's is known only to the second.
    let (late, asked_now) = ("2026-01-02T12:00:00.900000Z", "2026-01-02T12:00:00Z");
    assert!(!is_retried(given, late, asked_now), "it failed after that");
    assert!(is_retried(given, "2026-01-02T10:59:00.000000Z", asked));
    assert!(!is_retried(given, "2026-01-02T11:01:00.000000Z", asked));
}

#[test]
fn a_node_of_which_too_little_is_known_is_not_begun() {
    let against = against();
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
    update.status.as_mut().unwrap().message = Some("/etc/a is not as it was left".to_owned());
    assert_eq!(stands(&update, None).state, State::Failed);
    let retried = Some("2026-01-03T00:00:00Z");
    assert_eq!(stands(&update, retried).state, State::Due(Disrupts::Softly));
    update.spec.order.as_mut().unwrap().withdrawn = true;
    // What agents say of an order that was withdrawn.
    for says in [
        None,
        Some("the order was withdrawn before anything was written"),
        Some("it was withdrawn before it was begun"),
    ] {
        update.status.as_mut().unwrap().message = says.map(str::to_owned);
        assert_eq!(stands(&update, None).state, State::Due(Disrupts::Softly), "{says:?}");
    }
}

#[test]
fn a_step_that_failed_stops_its_pool_until_it_is_retried_or_the_config_is_another_one() {
    let escalated = |stage: &str, phase: &str, config| {
        let mut order = order(stage, "Reboot", config, false);
        order["escalated"] = json!("2026-01-02T00:00:00.000000Z");
        update(Some(order), Some(phase), Some(if phase == "Done" { config } else { OLD }))
    };
    let (before, after) = (Some("2026-01-01T00:00:00Z"), Some("2026-01-03T00:00:00Z"));
    for (stage, phase, state, retried) in [
        ("Prepare", "NeedsBoot", State::UnderWay(Disrupts::Reboot), true),
        ("Go", "Begun", State::UnderWay(Disrupts::Reboot), true),
        ("Closed", "Done", State::Updated, false),
        ("Closed", "WentBack", State::Failed, false),
        // It is begun again, and nobody knows yet what comes of it.
        ("Go", "Degraded", State::Failed, true),
    ] {
        let of_this = escalated(stage, phase, TARGET);
        let stands = |retry| stands(&of_this, retry);
        assert_eq!((stands(None).state, stands(None).step_failed), (state, true), "{phase}");
        assert!(stands(before).step_failed, "{phase}");
        assert_eq!(stands(after).step_failed, retried, "{phase}: until it booted");
        let of_another = escalated(stage, phase, Digest([3; 32]));
        let against = against();
        let other = standing(Some(&of_another), against, |_| Planned::NotYet);
        assert!(!other.step_failed, "{phase}");
    }
    let booted = update(Some(order("Closed", "Reboot", TARGET, false)), Some("Done"), Some(TARGET));
    assert!(!stands(&booted, None).step_failed, "its plan had the boot");
    // Somebody removed the NodeUpdate, and what is ordered is made of its slot.
    for stage in ["Withdrawn", "Prepare", "Go"] {
        let lost =
            update(Some(order(stage, "Reboot", TARGET, false)), Some("NeedsBoot"), Some(OLD));
        assert!(stands(&lost, None).step_failed, "{stage}");
        let begun = update(Some(order(stage, "Reboot", TARGET, false)), Some("Begun"), Some(OLD));
        assert!(!stands(&begun, None).step_failed, "{stage}");
    }
}

#[test]
fn one_that_is_begun_again_by_itself_is_unwell_until_it_got_there_and_one_that_somebody_retries_is_not()
 {
    let degraded = update(Some(order("Go", "Reboot", TARGET, false)), Some("Degraded"), Some(OLD));
    let retry = Retry { attempts: 3, first_after: Duration::from_secs(60) };
    let now = time("2026-01-02T01:00:00Z".parse().unwrap()).unwrap();
    let by_itself = Against { retry: Some(retry), now, ..against() };
    let again = standing(Some(&degraded), by_itself, |_| Planned::NotYet);
    assert_eq!((again.state, again.unwell), (State::Due(Disrupts::Reboot), true));
    let asked = stands(&degraded, Some("2026-01-03T00:00:00Z"));
    assert_eq!((asked.state, asked.unwell), (State::Due(Disrupts::Reboot), false));
    let retries = |stage: &str, phase: &str, failed_at: &str| {
        let mut order = order(stage, "Reboot", TARGET, true);
        order["retries"] = json!("0".repeat(31) + "6");
        order["failedAt"] = json!(failed_at);
        update(Some(order), Some(phase), Some(OLD))
    };
    let failed_at = "2026-01-02T00:00:00.000000Z";
    let begun = retries("Go", "Begun", failed_at);
    assert!(stands(&begun, None).unwell);
    assert!(stands(&begun, Some("2026-01-01T00:00:00Z")).unwell, "somebody asked before it failed");
    assert!(!stands(&begun, Some("2026-01-03T00:00:00Z")).unwell, "somebody asks since it failed");
    // What was ordered is another config by now.
    let against_newer = Against { target: OLD, ..against() };
    assert!(!standing(Some(&begun), against_newer, |_| Planned::NotYet).unwell);
    let mut done = retries("Closed", "Done", failed_at);
    done.spec.order.as_mut().unwrap().unwell = false;
    done.status.as_mut().unwrap().current.as_mut().unwrap().digest = TARGET.to_string();
    let done = stands(&done, None);
    assert_eq!((done.state, done.unwell), (State::Updated, false));
}

#[test]
fn a_plan_without_a_boot_that_left_its_node_unwell_stops_its_pool_as_a_step_does_that_failed() {
    let of = |disrupts: &str, stage: &str, phase: &str, unwell: bool, given: bool| {
        let mut order = order(stage, disrupts, TARGET, unwell);
        order["given"] = json!(given);
        order["goSince"] = json!("2026-01-01T12:00:00.000000Z");
        update(Some(order), Some(phase), Some(OLD))
    };
    for (disrupts, stage, phase, unwell, given, expected) in [
        ("Nothing", "Go", "Degraded", false, true, true),
        ("Softly", "Go", "Degraded", false, true, true),
        ("Drain", "Go", "Degraded", false, true, true),
        ("Softly", "Closed", "TurnedBack", true, true, true),
        // It refused the order, or nobody had it.
        ("Softly", "Closed", "TurnedBack", false, true, false),
        ("Nothing", "Closed", "Degraded", true, false, false),
        ("Softly", "Go", "Begun", false, true, false),
        ("Reboot", "Go", "Degraded", false, true, false),
    ] {
        let update = of(disrupts, stage, phase, unwell, given);
        assert_eq!(stands(&update, None).step_failed, expected, "{disrupts} {stage} {phase}");
    }
    let degraded = of("Softly", "Go", "Degraded", false, true);
    let again = stands(&degraded, Some("2026-01-03T00:00:00Z"));
    assert_eq!((again.state, again.step_failed), (State::Due(Disrupts::Reboot), true));
    // By itself it is begun again, too.
    let retry = Retry { attempts: 1, first_after: Duration::from_secs(60) };
    let now = time("2026-01-02T01:00:00Z".parse().unwrap()).unwrap();
    let against = Against { retry: Some(retry), now, ..against() };
    let again = standing(Some(&degraded), against, |_| Planned::NotYet);
    assert_eq!((again.state, again.step_failed), (State::Due(Disrupts::Reboot), true));
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
        let against = Against { overwrites, ..against() };
        let standing = standing(Some(&update), against, |_| Planned::NotYet);
        assert_eq!(standing.state, State::Due(Disrupts::Reboot));
        let says = standing.not_yet.is_some_and(|why| why.contains("/etc/a differs"));
        assert_eq!(says, held);
    }
}

#[test]
fn only_a_node_that_would_be_begun_waits_for_its_agent() {
    let of = |known: Option<u32>, mut update: NodeUpdate| {
        update.status.as_mut().unwrap().form = known;
        let against = Against { form: 2, ..against() };
        standing(Some(&update), against, |_| Planned::Ready(Disrupts::Softly, None))
    };
    let due = || update(None, None, Some(OLD));
    for known in [None, Some(1)] {
        let waits = of(known, due());
        assert!(waits.needs_agent && waits.not_yet.unwrap().starts_with("NeedsAgent"), "{known:?}");
    }
    assert!(of(Some(1), update(None, None, None)).needs_agent, "it has not said what it has");
    assert!(!of(None, update(None, None, None)).needs_agent, "its agent has said nothing yet");
    for knows in [2, 3] {
        let begins = of(Some(knows), due());
        assert_eq!((begins.needs_agent, begins.not_yet), (false, None));
    }
    let has_it = of(None, update(None, None, Some(TARGET)));
    assert_eq!((has_it.state, has_it.needs_agent), (State::Updated, false));
    let under_way = update(Some(order("Go", "Softly", TARGET, false)), Some("Begun"), Some(OLD));
    assert!(!of(None, under_way).needs_agent, "it goes on");
}

#[test]
fn one_that_is_unwell_is_begun_again_by_itself_as_often_as_is_said_and_no_other_one_is() {
    let at = |text: &str| time(text.parse().unwrap()).unwrap();
    let retry = Retry { attempts: 2, first_after: std::time::Duration::from_secs(600) };
    let of = |update: &NodeUpdate, now: &str| {
        let against = Against { retry: Some(retry), now: at(now), ..against() };
        standing(Some(update), against, |_| Planned::Ready(Disrupts::Softly, None))
    };
    // It failed at midnight.
    let degraded = |tried: u32| {
        let order = order("Go", "Reboot", TARGET, false);
        let mut update = update(Some(order), Some("Degraded"), Some(OLD));
        update.spec.order.as_mut().unwrap().tried = tried;
        update
    };
    let waits = of(&degraded(0), "2026-01-02T00:09:59Z");
    assert_eq!((waits.state, waits.again), (State::Failed, Some(at("2026-01-02T00:10:00Z"))));
    let again = of(&degraded(0), "2026-01-02T00:10:00Z");
    assert_eq!(again.state, State::Due(Disrupts::Reboot));
    assert_eq!(again.retries, Some("0".repeat(31) + "7"));
    assert_eq!(of(&degraded(1), "2026-01-02T00:19:59Z").state, State::Failed);
    assert_eq!(of(&degraded(1), "2026-01-02T00:20:00Z").state, State::Due(Disrupts::Reboot));
    let given_up = of(&degraded(2), "2027-01-01T00:00:00Z");
    assert_eq!((given_up.state, given_up.again), (State::Failed, None));
    // No agent was given the last order: its window ended in its drain.
    let not_tried = |tried: u32| {
        let mut order = order("Closed", "Reboot", TARGET, true);
        (order["given"], order["tried"]) = (json!(false), json!(tried));
        update(Some(order), Some("Degraded"), Some(OLD))
    };
    assert_eq!(of(&not_tried(2), "2026-01-02T00:19:59Z").state, State::Failed);
    assert_eq!(of(&not_tried(2), "2026-01-02T00:20:00Z").state, State::Due(Disrupts::Reboot));
    assert_eq!(of(&not_tried(1), "2026-01-02T00:10:00Z").state, State::Due(Disrupts::Reboot));
    // One that went back is well: it halts its pool for that config.
    let order = order("Closed", "Reboot", TARGET, false);
    let went_back = update(Some(order), Some("WentBack"), Some(OLD));
    let halts = of(&went_back, "2027-01-01T00:00:00Z");
    assert_eq!((halts.state, halts.again), (State::Failed, None));
    assert_eq!(stands(&degraded(0), None).again, None, "nobody asked for it");
}

#[test]
fn what_an_agent_says_at_length_is_repeated_in_short() {
    let mut update = update(None, None, None);
    update.status.as_mut().unwrap().message = Some("ä\n".repeat(700_000));
    let why = stands(&update, None).not_yet.unwrap();
    assert!(why.starts_with(&format!("{HAS_NONE}: ä")) && why.ends_with('…'), "{why}");
    assert!(why.len() <= 1024 + ": ".len() + HAS_NONE.len(), "{}", why.len());
    for part in ["it has none of its config", "newNodes: Overwrite in its Rollout"] {
        assert!(why.contains(part), "{part}: {why}");
    }
}

#[test]
fn while_no_config_is_made_nodes_have_the_last_one_or_wait() {
    let rollout = |target: Option<Digest>| -> Rollout {
        let target = target.map(|it| json!({"name": "rendered-last", "digest": it.to_string()}));
        serde_json::from_value(json!({
            "apiVersion": "tread.dev/v1alpha1", "kind": "Rollout", "metadata": {"name": "worker"},
            "spec": {}, "status": {"target": target},
        }))
        .unwrap()
    };
    for (current, last, has_it) in [
        (Some(OLD), Some(OLD), true),
        (Some(OLD), Some(TARGET), false),
        (Some(OLD), None, false),
        (None, Some(OLD), false),
        (None, None, false),
    ] {
        let standing =
            standing_without(Some(&update(None, None, current)), Some(&rollout(last)), of_order);
        assert_eq!(standing.state == State::Updated, has_it, "{current:?} {last:?}");
        assert_eq!(standing.not_yet.is_none(), has_it, "{current:?} {last:?}");
    }
    assert!(standing_without(None, None, of_order).not_yet.is_some());
}

#[test]
fn an_agent_that_does_not_end_its_order_is_taken_for_lost_until_that_is_retried() {
    let order = |stage: &str, disrupts: &str| {
        let mut order = order(stage, disrupts, TARGET, false);
        order["goSince"] = json!("2026-01-02T00:00:00.000000Z");
        order
    };
    let stands = |stage: &str, disrupts: &str, phase, now: &str, retry: Option<&str>| {
        let retry = retry.map(|at| At(at.parse().unwrap()));
        let now = time(now.parse().unwrap()).unwrap();
        let against = Against { now, retry_before: retry.as_ref(), ..against() };
        let update = update(Some(order(stage, disrupts)), phase, Some(OLD));
        let standing = standing(Some(&update), against, |_| Planned::NotYet);
        (standing.state, standing.lost.is_some())
    };
    let (soon, late) = ("2026-01-02T00:59:00Z", "2026-01-02T01:01:00Z");
    let boots = State::UnderWay(Disrupts::Reboot);
    assert_eq!(stands("Go", "Reboot", Some("Begun"), soon, None), (boots, false));
    assert_eq!(stands("Go", "Reboot", Some("Begun"), late, None), (State::Failed, true));
    assert_eq!(stands("Go", "Reboot", None, late, None), (State::Failed, true));
    let retried = Some("2026-01-02T00:30:00Z");
    assert_eq!(stands("Go", "Reboot", Some("Begun"), late, retried), (boots, false));
    // It is waited for once more, and not for ever.
    let much_later = "2026-01-02T01:31:00Z";
    let again = stands("Go", "Reboot", Some("Begun"), much_later, retried);
    assert_eq!(again, (State::Failed, true));
    let early = Some("2026-01-01T23:00:00Z");
    assert_eq!(stands("Go", "Reboot", Some("Begun"), late, early), (State::Failed, true));
    // Nor does one end whose order was withdrawn, and which does not turn back.
    assert_eq!(stands("Withdrawn", "Reboot", None, soon, None), (boots, false));
    assert_eq!(stands("Withdrawn", "Reboot", None, late, None), (State::Failed, true));
    assert_eq!(stands("Withdrawn", "Reboot", None, late, retried), (boots, false));
    let turned_back = stands("Withdrawn", "Reboot", Some("TurnedBack"), late, None);
    assert_eq!(turned_back, (boots, false));
    // One that is done and never proved does not come back either.
    for phase in ["Done", "WentBack"] {
        assert_eq!(stands("Go", "Reboot", Some(phase), soon, None), (boots, false), "{phase}");
        assert_eq!(stands("Go", "Reboot", Some(phase), late, None), (State::Failed, true));
    }
    // So it is while the config of its pool cannot be made.
    let late_without = standing_without(
        Some(&update(Some(order("Go", "Reboot")), Some("Begun"), Some(OLD))),
        None,
        |target| Against { target, now: time(late.parse().unwrap()).unwrap(), ..against() },
    );
    assert_eq!((late_without.state, late_without.is_under_way), (State::Failed, true));
    assert!(late_without.lost.is_some());
    // What only writes disrupts nobody: it did not fail, and nobody waits for it.
    let writes = State::UnderWay(Disrupts::Nothing);
    assert_eq!(stands("Go", "Nothing", Some("Begun"), soon, None), (writes, false));
    assert_eq!(stands("Go", "Nothing", Some("Begun"), late, None), (writes, true));
    // Whoever waits for room, or for pods, is not lost.
    let needs = stands("Go", "Softly", Some("NeedsBoot"), late, None);
    assert_eq!(needs, (State::NeedsBoot, false));
    assert!(!stands("Prepare", "Reboot", None, late, None).1);
    let done = stands("Closed", "Reboot", Some("Done"), late, None);
    assert!(!done.1);
}

#[test]
fn an_agent_is_waited_for_as_long_as_nobody_may_act_on_its_node_or_since_somebody_may() {
    let at = |text: &str| time(text.parse().unwrap()).unwrap();
    let given = || {
        let mut order = order("Go", "Reboot", TARGET, false);
        order["goSince"] = json!("2026-01-02T00:00:00.000000Z");
        update(Some(order), Some("Begun"), Some(OLD))
    };
    let failed = |update: &NodeUpdate, acts_since: Option<&str>, retry: Option<&str>| {
        let retry = retry.map(|at| At(at.parse().unwrap()));
        let now = at("2026-01-02T06:00:00Z");
        let acts_since = acts_since.map(at);
        let against = Against { now, acts_since, retry_before: retry.as_ref(), ..against() };
        let standing = standing(Some(update), against, |_| Planned::NotYet);
        assert_eq!(standing.state == State::Failed, standing.lost.is_some());
        // Nobody retries it where it is in no pool.
        let outside = is_lost(Some(update), (now, against.lost_after), (acts_since, None));
        assert!(outside == standing.lost.is_some() || retry.is_some());
        standing.lost.is_some()
    };
    let (soon, long_ago) = (Some("2026-01-02T05:30:00Z"), Some("2026-01-02T04:59:59Z"));
    assert!(failed(&given(), long_ago, None), "it had an hour");
    assert!(!failed(&given(), soon, None), "it was somebody else's, or nobody led");
    assert!(!failed(&given(), None, None), "it is somebody else's");
    // Whoever led before had waited for long enough.
    let mut said = given();
    let condition = json!({"type": "Updated", "status": "False", "reason": "Lost", "message": "",
        "lastTransitionTime": "2026-01-02T01:00:00Z"});
    let status = said.status.as_mut().unwrap();
    status.conditions = vec![serde_json::from_value(condition).unwrap()];
    for acts_since in [None, soon, long_ago] {
        assert!(failed(&said, acts_since, None), "{acts_since:?}");
        assert!(!failed(&said, acts_since, Some("2026-01-02T05:00:01Z")), "{acts_since:?}");
    }
}

#[test]
fn a_node_of_which_nothing_is_heard_is_lost_also_for_a_leader_that_comes_from_an_older_version() {
    let at = |text: &str| time(text.parse().unwrap()).unwrap();
    let mut order = order("Go", "Reboot", TARGET, false);
    order["goSince"] = json!("2026-01-02T00:00:00.000000Z");
    // That version did not say of it that it is lost.
    let update = update(Some(order), Some("Begun"), Some(OLD));
    let now = at("2026-01-02T06:00:00Z");
    let is_gone = |acts_since: Option<&str>, unheard_since: Option<&str>, retry: Option<&str>| {
        let retry = retry.map(|at| At(at.parse().unwrap()));
        let (acts_since, unheard_since) = (acts_since.map(at), unheard_since.map(at));
        let retry_before = retry.as_ref();
        let against = Against { now, acts_since, unheard_since, retry_before, ..against() };
        let standing = standing(Some(&update), against, |_| Planned::NotYet);
        assert_eq!(standing.state == State::Failed, standing.lost.is_some());
        let since = (acts_since, unheard_since);
        let outside = is_lost(Some(&update), (now, against.lost_after), since);
        assert!(outside == standing.lost.is_some() || retry_before.is_some());
        standing.lost.is_some()
    };
    let (leads_since, long_ago) = (Some("2026-01-02T05:55:00Z"), Some("2026-01-02T00:10:00Z"));
    assert!(is_gone(leads_since, long_ago, None));
    assert!(!is_gone(leads_since, None, None), "it may wait for a permit");
    assert!(!is_gone(leads_since, Some("2026-01-02T05:30:00Z"), None), "not for long");
    assert!(!is_gone(None, long_ago, None), "nobody may act on it");
    assert!(!is_gone(leads_since, long_ago, Some("2026-01-02T05:30:00Z")), "it is retried");
}
