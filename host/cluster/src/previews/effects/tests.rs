use super::*;
use tread_model::change::Edit;
use tread_model::digest::Digest;
use tread_model::plan::PlannedChange;
use tread_model::verdict::Action;

fn change(id: &str, outcome: ChangeOutcome, decided: Vec<Action>) -> PlannedChange {
    PlannedChange {
        id: id.to_owned(),
        edit: Edit::Changed,
        outcome,
        actions: decided.iter().map(Step::from).collect(),
        decided,
        decided_by: None,
        reason: String::new(),
        also: Vec::new(),
        advice: None,
        answers: Vec::new(),
        instead_of: None,
        difference: None,
    }
}

fn plan(outcome: PlanOutcome, steps: Vec<Step>, changes: Vec<PlannedChange>) -> Plan {
    Plan {
        schema: tread_model::plan::SCHEMA,
        outcome,
        effect: Effect::Reboot,
        summary: String::new(),
        drain: true,
        reboot: true,
        steps,
        changes,
        policies: Vec::new(),
        deciders: Vec::new(),
        warnings: Vec::new(),
        reproducible: true,
        digest: Digest::of(b""),
        from: Digest::of(b""),
        to: Digest::of(b""),
    }
}

fn reload(unit: &str) -> Action {
    Action::Reload(unit.to_owned())
}

fn restart(unit: &str) -> Action {
    Action::Restart(unit.to_owned())
}

fn ids(ids: &[&str]) -> BTreeSet<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

#[test]
fn a_part_of_a_plan_costs_what_its_own_changes_ask_for() {
    use ChangeOutcome::{Decided, Fallback};
    let changes = vec![
        change("file:/etc/a", Decided, vec![reload("a.service")]),
        change("file:/etc/b", Decided, vec![restart("a.service"), restart("b.service")]),
        change("file:/etc/c", Fallback, vec![Action::Reboot]),
        change("file:/etc/d", Decided, vec![]),
        change("unit:e.service", Decided, vec![]),
        change("file:/etc/f", Decided, vec![Action::Drain, restart("f.service")]),
        change("file:/etc/g", Decided, vec![Action::RebootUndrained, restart("g.service")]),
    ];
    let steps = vec![Step::Drain, Step::Write, Step::Reboot, Step::Uncordon];
    let plan = plan(PlanOutcome::Apply, steps, changes);
    for (own, expected) in [
        (&["file:/etc/a"][..], "reload a.service"),
        (&["file:/etc/a", "file:/etc/b"], "restart a.service + restart b.service"),
        (&["file:/etc/c"], "drain + reboot"),
        (&["file:/etc/a", "file:/etc/c"], "drain + reboot"),
        (&["file:/etc/d"], "none"),
        (&["unit:e.service"], "daemon-reload"),
        (&["file:/etc/f"], "drain + restart f.service"),
        // Another change drains, and that is none of its.
        (&["file:/etc/g"], "reboot"),
        (&["file:/etc/f", "file:/etc/g"], "drain + reboot"),
        (&["file:/etc/unknown"], "none"),
    ] {
        assert_eq!(of_tread(&plan, Some(&ids(own))).1, expected, "{own:?}");
    }
    assert_eq!(of_tread(&plan, None), (Effect::Reboot, "drain + reboot".to_owned()));
}

#[test]
fn a_refusal_is_that_of_the_part_that_is_refused() {
    let changes = vec![
        change("file:/etc/a", ChangeOutcome::Decided, vec![reload("a.service")]),
        change("fips", ChangeOutcome::Refused, vec![]),
    ];
    let plan = plan(PlanOutcome::Refuse, Vec::new(), changes);
    assert_eq!(of_tread(&plan, Some(&ids(&["fips"]))).0, Effect::Refuse);
    assert_eq!(of_tread(&plan, None).0, Effect::Refuse);
    assert_eq!(of_tread(&plan, Some(&ids(&["file:/etc/a"]))).1, "reload a.service");
}

#[test]
fn the_operators_word_on_users_is_that_of_whoever_changes_users() {
    let part = |id: &str, effect| tread_model::operator::Because {
        id: id.to_owned(),
        effect,
        rule: String::new(),
    };
    let forecast = Forecast {
        effect: Effect::Reboot,
        summary: "drain + reboot".to_owned(),
        drain: true,
        reboot: true,
        actions: Vec::new(),
        because: vec![part("passwd", Effect::None), part("kernel-arguments", Effect::Reboot)],
    };
    let word = |own: &[&str]| of_operator(&forecast, Some(&ids(own))).1;
    assert_eq!(word(&["ssh-keys:core"]), "none");
    assert_eq!(word(&["kernel-arguments"]), "drain + reboot");
    assert_eq!(of_operator(&forecast, None).1, "drain + reboot");
}
