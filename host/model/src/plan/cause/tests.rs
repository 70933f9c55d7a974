use super::*;
use crate::change::Edit;
use crate::digest::{Digest, Sha256};
use crate::plan::{Decided, Said, Statement, build};
use crate::verdict::{Action, Answer, Failure, FailureKind, Layer, Verdict};

fn policy(name: &str, layer: Layer) -> PolicyIdentity {
    PolicyIdentity {
        policy: name.to_owned(),
        layer,
        version: "1.0.0".to_owned(),
        digest: Sha256::of(name.as_bytes()),
        settings_digest: Sha256::of(b"{}"),
    }
}

fn acts<'p>(policy: &'p PolicyIdentity, action: Action) -> Statement<'p> {
    let verdict = Verdict { answer: Answer::Act(vec![action]), reason: "Because.".to_owned() };
    Statement { policy, may_relax: false, said: Said::Verdict(verdict) }
}

fn plan(changes: Vec<(&str, Vec<Statement<'_>>)>) -> Plan {
    let changes = changes
        .into_iter()
        .map(|(id, statements)| Decided {
            id: id.to_owned(),
            edit: Edit::Changed,
            statements,
            settled: None,
        })
        .collect();
    build((Digest::of(b"a"), Digest::of(b"b")), changes, &[], Vec::new(), true)
}

fn shown(plan: &Plan, counts: impl Fn(Effect) -> bool) -> Vec<String> {
    causes(plan, counts).iter().map(Cause::to_string).collect()
}

#[test]
fn changes_of_one_cause_stand_together_and_cheaper_ones_are_left_out() {
    let (builtin, broken) = (policy("b", Layer::Builtin), policy("t", Layer::Template));
    let failure = Failure { kind: FailureKind::Trap, message: "boom".to_owned() };
    let failed = Statement { policy: &broken, may_relax: false, said: Said::Failed(failure) };
    let plan = plan(vec![
        ("file:/etc/1", vec![]),
        ("file:/etc/2", vec![failed]),
        ("file:/etc/3", vec![]),
        ("file:/etc/4", vec![acts(&builtin, Action::Reboot)]),
        ("file:/etc/5", vec![acts(&builtin, Action::Restart("a.service".to_owned()))]),
    ]);
    assert_eq!(
        shown(&plan, |effect| effect == plan.effect),
        [
            "file:/etc/1, file:/etc/3 (no policy answers)",
            "file:/etc/2 (the policy t failed)",
            "file:/etc/4 (decided by b)",
        ]
    );
    assert_eq!(
        shown(&plan, |effect| effect > Effect::None).last().unwrap().as_str(),
        "file:/etc/4, file:/etc/5 (decided by b)"
    );
}

#[test]
fn of_many_ids_the_first_are_named_and_the_others_counted() {
    let names: Vec<String> = (10..50).map(|n| format!("file:/etc/{n}")).collect();
    let plan = plan(names.iter().map(|name| (name.as_str(), vec![])).collect());
    let expected = "file:/etc/10, file:/etc/11, file:/etc/12 and 37 more (no policy answers)";
    assert_eq!(shown(&plan, |effect| effect == plan.effect), [expected]);
}

#[test]
fn a_unit_that_costs_nothing_itself_still_has_systemd_read_its_units_again() {
    let admin = policy("a", Layer::Admin);
    let verdict = Verdict { answer: Answer::Act(Vec::new()), reason: "Because.".to_owned() };
    let said = Said::Verdict(verdict);
    let plan =
        plan(vec![("unit:a.service", vec![Statement { policy: &admin, may_relax: false, said }])]);
    assert_eq!(plan.effect, Effect::Reload);
    let causes = causes(&plan, |effect| effect > Effect::None);
    assert_eq!(causes.len(), 1);
    assert_eq!(causes[0].by, By::Systemd);
}

#[test]
fn each_cause_says_who_could_make_it_cost_less() {
    let (admin, builtin) = (policy("a", Layer::Admin), policy("b", Layer::Builtin));
    for (by, words) in [
        (By::Nobody, &["a rule for it (--rules)", "(--policy)"][..]),
        (By::Failure(&builtin), &["mend b", "--rules"]),
        (By::Answer(&builtin), &["overrule b", "--rules"]),
        (By::Answer(&admin), &["the admin who set a"]),
        (By::Systemd, &["leave it out"]),
    ] {
        let way_out = Cause { ids: vec!["file:/etc/1"], by }.way_out();
        for word in words {
            assert!(way_out.contains(word), "{word:?} in {way_out}");
        }
        assert!(!in_a_cluster(&way_out).contains("--"), "{way_out}");
    }
}
