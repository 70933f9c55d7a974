use super::*;
use crate::digest::Sha256;
use crate::verdict::FailureKind;

fn policy(name: &str, layer: Layer) -> PolicyIdentity {
    PolicyIdentity {
        policy: name.to_owned(),
        layer,
        version: "1.0.0".to_owned(),
        digest: Sha256::of(name.as_bytes()),
        settings_digest: Sha256::of(b"{}"),
    }
}

/// What was said, in short: `abstain`, `refuse`, `fail`, or actions such as
/// `reload a.service, drain`; `-` is an empty list.
fn said(text: &str) -> Said {
    let answer = match text {
        "abstain" => Answer::Abstain,
        "refuse" => Answer::Refuse,
        "fail" => {
            return Said::Failed(Failure { kind: FailureKind::Trap, message: "boom".to_owned() });
        }
        "-" => Answer::Act(Vec::new()),
        actions => Answer::Act(actions.split(", ").map(action).collect()),
    };
    Said::Verdict(Verdict { answer, reason: "Because.".to_owned() })
}

fn action(text: &str) -> Action {
    match text.split_once(' ') {
        Some(("reload", unit)) => Action::Reload(unit.to_owned()),
        Some(("restart", unit)) => Action::Restart(unit.to_owned()),
        _ => match text {
            "drain" => Action::Drain,
            "reboot" => Action::Reboot,
            "reboot-undrained" => Action::RebootUndrained,
            "daemon-reload" => Action::DaemonReload,
            other => panic!("no such action: {other}"),
        },
    }
}

/// Decides on statements such as `("a", "restart x.service")`, where the first
/// letter names the layer: `a`dmin, `t`emplate, `r`elaxing template, `b`uiltin.
fn decided(change: &str, statements: &[(&str, &str)]) -> (ChangeOutcome, String) {
    let policies: Vec<PolicyIdentity> = statements
        .iter()
        .map(|(name, _)| {
            policy(
                name,
                match name.chars().next() {
                    Some('a') => Layer::Admin,
                    Some('b') => Layer::Builtin,
                    _ => Layer::Template,
                },
            )
        })
        .collect();
    let mut all: Vec<Statement<'_>> = policies
        .iter()
        .zip(statements)
        .map(|(policy, (name, text))| Statement {
            policy,
            may_relax: name.starts_with('r'),
            said: said(text),
        })
        .collect();
    let decision = decide(change, &all);
    let by = decision.by.map(|index| all[index].policy.policy.clone());
    all.reverse();
    let reversed = decide(change, &all);
    assert_eq!(by, reversed.by.map(|index| all[index].policy.policy.clone()), "{statements:?}");
    assert_eq!(decision.reason, reversed.reason, "{statements:?}");
    assert_eq!(decision.actions, reversed.actions, "{statements:?}");
    let actions: Vec<String> =
        decision.actions.iter().map(|action| Step::from(action).to_string()).collect();
    (decision.outcome, actions.join(", "))
}

#[test]
fn every_law_of_deciding_holds_in_any_order() {
    use ChangeOutcome::{Decided, Failed, Fallback, Refused};
    type Case = (&'static [(&'static str, &'static str)], ChangeOutcome, &'static str);
    let cases: &[Case] = &[
        // Law 1: no answer means reboot.
        (&[], Fallback, "reboot"),
        (&[("b", "abstain"), ("t", "abstain"), ("a", "abstain")], Fallback, "reboot"),
        // Law 2: a failure costs a reboot, and hides nobody's stronger word.
        (&[("b", "fail")], Failed, "reboot"),
        (&[("t", "fail"), ("b", "-")], Failed, "reboot"),
        (&[("t", "fail"), ("b", "refuse")], Refused, ""),
        (&[("a", "fail"), ("b", "-")], Failed, "reboot"),
        (&[("a", "fail"), ("b", "refuse")], Refused, ""),
        (&[("a", "fail"), ("t", "refuse"), ("b", "-")], Refused, ""),
        (&[("a1", "fail"), ("a2", "-"), ("b", "refuse")], Refused, ""),
        // Law 3: the higher layer decides.
        (&[("a", "-"), ("t", "reboot"), ("b", "restart x.service")], Decided, ""),
        (&[("a", "restart x.service"), ("t", "refuse")], Decided, "restart x.service"),
        (&[("a", "-"), ("t", "fail")], Decided, ""),
        (&[("a", "abstain"), ("b", "reload x.service")], Decided, "reload x.service"),
        (&[("a1", "-"), ("a2", "reload x.service")], Decided, "reload x.service"),
        (&[("a1", "-"), ("a2", "refuse")], Refused, ""),
        // Law 4: a template may add …
        (&[("t", "-")], Decided, ""),
        (&[("t", "-"), ("b", "abstain")], Decided, ""),
        (&[("t", "-"), ("b", "reload x.service")], Decided, "reload x.service"),
        (
            &[("t", "restart y.service"), ("b", "reload x.service")],
            Decided,
            "reload x.service, restart y.service",
        ),
        (&[("t", "refuse"), ("b", "-")], Refused, ""),
        (&[("t", "-"), ("b", "refuse")], Refused, ""),
        // … an admin may let it relax, where it acts.
        (&[("r", "-"), ("b", "reboot")], Decided, ""),
        (&[("r", "-"), ("b", "refuse")], Decided, ""),
        (&[("r", "abstain"), ("b", "reboot")], Decided, "reboot"),
        (&[("r", "refuse"), ("b", "-")], Refused, ""),
        (&[("r", "-"), ("b", "fail")], Failed, "reboot"),
        (&[("r", "-"), ("t", "restart y.service"), ("b", "reboot")], Decided, "restart y.service"),
    ];
    for (statements, outcome, actions) in cases {
        let (got, done) = decided("file:/etc/a", statements);
        assert_eq!((got, done.as_str()), (*outcome, *actions), "{statements:?}");
    }
}

#[test]
fn what_takes_effect_at_boot_never_plans_less_than_a_reboot_but_for_an_admin() {
    for change in ["kernel-arguments", "kernel-type", "os-image", "extensions"] {
        assert_eq!(decided(change, &[("b", "-")]).1, "reboot");
        assert_eq!(decided(change, &[("r", "restart x.service"), ("b", "reboot")]).1, "reboot");
        assert_eq!(decided(change, &[("t", "drain")]).1, "reboot");
        assert_eq!(decided(change, &[("a", "-"), ("b", "reboot")]).1, "");
        assert_eq!(decided(change, &[("t", "refuse")]), (ChangeOutcome::Refused, String::new()));
    }
}

#[test]
fn the_reason_names_what_others_add_to_the_decider() {
    let (restart, reload) = (policy("one", Layer::Builtin), policy("two", Layer::Template));
    let statements = [
        Statement { policy: &restart, may_relax: false, said: said("restart x.service") },
        Statement { policy: &reload, may_relax: false, said: said("reload y.service") },
    ];
    let decision = decide("file:/etc/a", &statements);
    assert_eq!(decision.by, Some(0));
    assert_eq!(decision.reason, "Because.");
    assert_eq!(decision.also, ["two adds reload y.service: Because."]);
}

#[test]
fn a_failure_is_named_in_the_reason() {
    let broken = policy("broken", Layer::Template);
    let statements = [Statement { policy: &broken, may_relax: false, said: said("fail") }];
    let decision = decide("file:/etc/a", &statements);
    assert_eq!(decision.reason, "The policy broken failed (trap: boom), so this costs a reboot.");
}
