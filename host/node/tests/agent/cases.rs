//! Orders of every kind, one after the other on one node.

use crate::bed::{Bed, config, plan, reload};
use tread_model::plan::{PlanOutcome, Step, VerifiablePlan};
use tread_node::documents::{Document, Documents};
use tread_node::orders::Does;
use tread_node::progress::Phase;
use tread_node::terms::Terms;

fn unit() -> String {
    "a.service".to_owned()
}

fn apply(config: Documents, plan: VerifiablePlan, drained: bool) -> Does {
    Does::Apply { config, plan: Some(Box::new(plan)), accept: Vec::new(), drained }
}

fn nothing(word: &str) -> VerifiablePlan {
    let mut plan = VerifiablePlan { outcome: PlanOutcome::Nothing, ..plan(word, word, &[]) };
    plan.digest = plan.computed_digest();
    plan
}

fn text(text: &str) -> Documents {
    Documents(vec![Document { name: "config.yaml".to_owned(), text: text.to_owned() }])
}

/// What is ordered, how it ends, what the message says, and what the unit is told.
struct Case {
    what: &'static str,
    order: Does,
    ends: Phase,
    says: &'static str,
    logs: &'static [&'static str],
}

fn refused(what: &'static str, order: Does, says: &'static str) -> Case {
    Case { what, order, ends: Phase::Refused, says, logs: &[] }
}

fn done(what: &'static str, order: Does, logs: &'static [&'static str]) -> Case {
    Case { what, order, ends: Phase::Done, says: "", logs }
}

fn cases() -> Vec<Case> {
    let altered = VerifiablePlan { steps: vec![Step::Write], ..plan("one", "two", &reload()) };
    let restart = [Step::Write, Step::Restart { unit: unit() }];
    let both = [Step::Write, Step::DaemonReload, Step::Restart { unit: unit() }];
    let drained = [Step::Drain, Step::Write, Step::Restart { unit: unit() }, Step::Uncordon];
    let two = || config("two");
    vec![
        done("the same config", apply(config("one"), nothing("one"), false), &[]),
        refused(
            "no MachineConfig",
            apply(text(""), plan("one", "one", &reload()), false),
            "config",
        ),
        refused(
            "half a config",
            apply(text("{"), plan("one", "two", &reload()), false),
            "config.yaml",
        ),
        refused("a plan that was altered", apply(two(), altered, false), "digest"),
        refused("another beginning", apply(two(), plan("six", "two", &reload()), false), "from"),
        refused("another end", apply(two(), plan("one", "six", &reload()), false), ""),
        refused(
            "a node that is not drained",
            apply(two(), plan("one", "two", &drained), false),
            "--no-drain",
        ),
        done("nothing but the files", apply(two(), plan("one", "two", &[Step::Write]), false), &[]),
        done(
            "a restart",
            apply(config("six"), plan("two", "six", &restart), false),
            &["start six"],
        ),
        done(
            "a restart of a drained node",
            apply(two(), plan("six", "two", &drained), true),
            &["start two"],
        ),
        done(
            "a restart after systemd read its units",
            apply(config("six"), plan("two", "six", &both), false),
            &["start six"],
        ),
        done("nothing to go on with", Does::Resume, &[]),
        done("a reload", apply(two(), plan("six", "two", &reload()), false), &["reload two"]),
    ]
}

#[test]
fn each_kind_of_order_ends_as_it_should_and_tells_the_unit_no_more() {
    let bed = Bed::with("one", |machine| machine);
    let _agent = bed.agent();
    bed.adopt("one");
    for Case { what, order, ends, says, logs } in cases() {
        let before = bed.log().len();
        let resumes = order == Does::Resume;
        let id = bed.order(order, Terms::default());
        if resumes {
            bed.is_taken_away(&id);
        } else {
            bed.ends(&id, ends);
        }
        let message = bed.progress().unwrap().message;
        assert!(message.contains(says), "{what}: {message}");
        assert_eq!(bed.log().split_off(before), logs, "{what}");
    }
    assert_eq!(bed.machine.boots().len(), 1);
}

#[test]
fn what_is_no_order_is_put_aside() {
    let bed = Bed::with("one", |machine| machine);
    let _agent = bed.agent();
    bed.adopt("one");
    let at = bed.machine.root().unwrap().join("var/lib/tread/orders");
    let unknown = r#"{"schema": "tread.dev/order/v1", "id": "1", "order": {"is": "repartition"}}"#;
    std::fs::write(at.join("next"), unknown).unwrap();
    std::fs::rename(at.join("next"), at.join("1.json")).unwrap();
    bed.machine.wait_for("a verdict", || at.join("1.json.refused").exists()).unwrap();
    let id = bed.apply("one", "two", &reload(), Terms::default());
    bed.ends(&id, Phase::Done);
}
