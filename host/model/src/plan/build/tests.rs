use super::*;
use crate::digest::Sha256;
use crate::verdict::{Layer, Verdict};

fn policy(name: &str, layer: Layer) -> PolicyIdentity {
    PolicyIdentity {
        policy: name.to_owned(),
        layer,
        version: "1.0.0".to_owned(),
        digest: Sha256::of(name.as_bytes()),
        settings_digest: Sha256::of(b"{}"),
    }
}

fn acts<'p>(policy: &'p PolicyIdentity, actions: &[Action]) -> Statement<'p> {
    let reason = "Because.".to_owned();
    let said = Said::Verdict(Verdict { answer: Answer::Act(actions.to_vec()), reason });
    Statement { policy, may_relax: false, said }
}

fn abstains(policy: &PolicyIdentity) -> Statement<'_> {
    let said = Said::Verdict(Verdict { answer: Answer::Abstain, reason: String::new() });
    Statement { policy, may_relax: false, said }
}

fn changed<'p>(id: &str, statements: Vec<Statement<'p>>) -> Decided<'p> {
    Decided { id: id.to_owned(), edit: Edit::Changed, statements, settled: None }
}

fn built(changes: Vec<Decided<'_>>) -> Plan {
    build((Digest::of(b"old"), Digest::of(b"new")), changes, &[], Vec::new(), true)
}

fn reload(unit: &str) -> Action {
    Action::Reload(unit.to_owned())
}

#[test]
fn the_answer_in_one_line_says_what_does_not_happen_too() {
    let builtin = policy("b", Layer::Builtin);
    let cases: &[(&[Action], &str)] = &[
        (&[reload("crio.service")], "reload crio.service; no drain, no reboot"),
        (&[], "no action; no drain, no reboot"),
        (&[Action::Drain, reload("crio.service")], "drain, reload crio.service; no reboot"),
        (&[Action::Reboot], "drain, reboot"),
        (&[Action::RebootUndrained], "reboot; no drain"),
    ];
    for (actions, expected) in cases {
        let plan = built(vec![changed("file:/etc/a", vec![acts(&builtin, actions)])]);
        assert_eq!(plan.summary, *expected);
    }
    assert_eq!(built(Vec::new()).summary, "nothing to do; both configs mean the same");
    assert_eq!(built(Vec::new()).outcome, PlanOutcome::Nothing);
}

#[test]
fn one_refused_change_refuses_the_whole_plan_and_the_others_stay_explained() {
    let builtin = policy("b", Layer::Builtin);
    let refusal = Refusal {
        id: "fips".to_owned(),
        edit: Edit::Changed,
        field: "spec.fips".to_owned(),
        reason: "Reprovision the node.".to_owned(),
    };
    let changes = vec![changed("file:/etc/a", vec![acts(&builtin, &[Action::Reboot])])];
    let plan = build((Digest::of(b"a"), Digest::of(b"b")), changes, &[refusal], Vec::new(), true);
    assert_eq!(plan.outcome, PlanOutcome::Refuse);
    assert_eq!((plan.drain, plan.reboot, plan.steps.len()), (false, false, 0));
    assert_eq!(plan.changes.len(), 2);
    assert_eq!(plan.summary, "refused; a running node cannot take: fips");
    assert_eq!(plan.changes[1].reason, "spec.fips: Reprovision the node.");
}

#[test]
fn a_unit_file_brings_a_daemon_reload_that_a_reboot_absorbs() {
    let builtin = policy("b", Layer::Builtin);
    let plan = built(vec![changed("unit:a.service", vec![acts(&builtin, &[])])]);
    assert_eq!(plan.steps, [Step::Write, Step::DaemonReload]);
    let plan = built(vec![changed("unit:a.service", vec![acts(&builtin, &[Action::Reboot])])]);
    assert!(!plan.steps.contains(&Step::DaemonReload));
}

#[test]
fn the_digest_covers_configs_deciders_and_steps_and_nothing_else() {
    let (one, two) = (policy("one", Layer::Builtin), policy("two", Layer::Template));
    let change = |statements| vec![changed("file:/etc/a", statements)];
    let base = built(change(vec![acts(&one, &[reload("a.service")])]));

    let with_abstainer = built(change(vec![abstains(&two), acts(&one, &[reload("a.service")])]));
    assert_eq!(base.digest, with_abstainer.digest);

    let other_decider = built(change(vec![acts(&two, &[reload("a.service")])]));
    assert_ne!(base.digest, other_decider.digest);

    let other_steps = built(change(vec![acts(&one, &[reload("b.service")])]));
    assert_ne!(base.digest, other_steps.digest);

    let mut other_settings = one.clone();
    other_settings.settings_digest = Sha256::of(b"{\"drain\":\"always\"}");
    let other_settings = built(change(vec![acts(&other_settings, &[reload("a.service")])]));
    assert_ne!(base.digest, other_settings.digest);

    let changes = change(vec![acts(&one, &[reload("a.service")])]);
    let other_target = build((base.from, Digest::of(b"x")), changes, &[], Vec::new(), true);
    assert_ne!(base.digest, other_target.digest);
}

#[test]
fn the_plan_is_the_same_whatever_the_order_of_changes_and_answers() {
    let (one, two) = (policy("one", Layer::Builtin), policy("two", Layer::Template));
    let a = || changed("file:/etc/a", vec![acts(&one, &[reload("a.service")]), abstains(&two)]);
    let b = || changed("file:/etc/b", vec![acts(&two, &[Action::Drain])]);
    let mut swapped = a();
    swapped.statements.reverse();
    assert_eq!(built(vec![a(), b()]), built(vec![b(), swapped]));
}

#[test]
fn an_unanswered_change_says_what_to_do_about_it() {
    let plan = built(vec![changed("file:/etc/a", Vec::new())]);
    assert_eq!(plan.changes[0].outcome, ChangeOutcome::Fallback);
    assert_eq!(plan.changes[0].decided_by, None);
    assert!(plan.changes[0].advice.as_deref().unwrap().contains("file:/etc/a"));
    assert_eq!(plan.summary, "drain, reboot");
    // As a rule has to name it, which is a pattern.
    let plan = built(vec![changed("file:/etc/[a].d/*", Vec::new())]);
    let advice = plan.changes[0].advice.as_deref().unwrap();
    assert!(advice.contains(r"a rule for file:/etc/\[a\].d/\* (--rules)"), "{advice}");
}

fn refuses<'p>(policy: &'p PolicyIdentity) -> Statement<'p> {
    let verdict = Verdict { answer: Answer::Refuse, reason: "Not now.".to_owned() };
    Statement { policy, may_relax: false, said: Said::Verdict(verdict) }
}

#[test]
fn a_refusal_by_a_policy_names_it_and_what_to_do_and_is_not_laid_on_the_node() {
    let (rules, strict) = (policy("mine", Layer::Admin), policy("strict", Layer::Template));
    let plan = built(vec![changed("file:/etc/a", vec![refuses(&rules)])]);
    assert_eq!(plan.summary, "refused; mine (admin) refuses: file:/etc/a");
    let advice = plan.changes[0].advice.as_deref().unwrap();
    assert!(advice.contains("mine") && advice.contains("file:/etc/a"), "{advice}");

    let refusal = Refusal {
        id: "fips".to_owned(),
        edit: Edit::Changed,
        field: "spec.fips".to_owned(),
        reason: "Reprovision the node.".to_owned(),
    };
    let changes = vec![changed("file:/etc/a", vec![refuses(&strict)])];
    let plan = build((Digest::of(b"a"), Digest::of(b"b")), changes, &[refusal], Vec::new(), true);
    let both = "refused; a running node cannot take: fips; strict (template) refuses: file:/etc/a";
    assert_eq!(plan.summary, both);
    assert!(plan.changes[0].advice.as_deref().unwrap().contains("--rules"));
}

#[test]
fn a_refusal_of_many_changes_names_the_first_and_counts_the_others() {
    let rules = policy("mine", Layer::Admin);
    let names: Vec<String> = (10..50).map(|n| format!("file:/etc/{n}")).collect();
    let plan = built(names.iter().map(|name| changed(name, vec![refuses(&rules)])).collect());
    assert!(plan.summary.ends_with("file:/etc/14 and 35 more"), "{}", plan.summary);
}

#[test]
fn what_others_add_follows_the_reason_as_a_sentence_of_its_own() {
    let (one, two) = (policy("one", Layer::Builtin), policy("two", Layer::Template));
    let mut restart = acts(&one, &[Action::Restart("x.service".to_owned())]);
    if let Said::Verdict(verdict) = &mut restart.said {
        verdict.reason = "x reads it when it starts".to_owned();
    }
    let plan =
        built(vec![changed("file:/etc/a", vec![restart, acts(&two, &[reload("y.service")])])]);
    let also = "two adds reload y.service: Because.";
    assert_eq!(plan.changes[0].reason, format!("x reads it when it starts. {also}"));
    assert_eq!(plan.changes[0].also, [also]);
}
