use super::*;
use crate::change::DropinState;
use crate::digest::{Digest, Sha256};
use crate::plan::{Decided, PolicyIdentity, Said, Statement, build};
use crate::verdict::{Answer, Layer, Verdict};

const SERVICE: &str = "[Service]\nExecStart=/usr/bin/app\n";
const INSTALLED: &str =
    "[Service]\nExecStart=/usr/bin/app\n[Install]\nWantedBy=multi-user.target\n";

/// A unit that a config says this of.
fn unit(contents: &'static str, enabled: Option<bool>, masked: bool) -> State<'static> {
    let contents = match contents {
        "" => Content::Absent,
        text => Content::Bytes(text.as_bytes().into()),
    };
    State::Unit(UnitState { contents, enabled, masked: Some(masked), dropins: Vec::new() })
}

fn with_dropin(state: State<'static>, text: &'static str) -> State<'static> {
    let State::Unit(mut unit) = state else { panic!("no unit") };
    let contents = Content::Bytes(text.as_bytes().into());
    unit.dropins.push(DropinState { name: "a.conf".into(), contents });
    State::Unit(unit)
}

fn restart() -> Vec<Action> {
    vec![Action::Restart("app.service".to_owned())]
}

fn reload() -> Vec<Action> {
    vec![Action::Reload("app.service".to_owned())]
}

/// The warnings of a plan with these changes, each with what a rule answers.
fn warnings(changes: &[(Change<'_>, Vec<Action>)]) -> Vec<String> {
    let policy = PolicyIdentity {
        policy: "mine".to_owned(),
        layer: Layer::Admin,
        version: "1.0.0".to_owned(),
        digest: Sha256::of(b"mine"),
        settings_digest: Sha256::of(b"{}"),
    };
    let decided = changes.iter().map(|(change, actions)| {
        let verdict = Verdict { answer: Answer::Act(actions.clone()), reason: String::new() };
        let said = Said::Verdict(verdict);
        let statements = vec![Statement { policy: &policy, may_relax: false, said }];
        Decided { id: change.id.clone(), edit: change.edit(), statements, settled: None }
    });
    let configs = (Digest::of(b"from"), Digest::of(b"to"));
    let plan = build(configs, decided.collect(), &[], Vec::new(), true);
    let changes: Vec<Change<'_>> = changes.iter().map(|(change, _)| change.clone()).collect();
    warnings_of_units(&plan, &changes)
}

fn app(before: State<'static>, after: State<'static>) -> Change<'static> {
    Change { id: "unit:app.service".to_owned(), before, after }
}

#[test]
fn a_unit_that_a_reload_or_restart_does_not_turn_on_or_off_is_a_warning() {
    let on = |what: &str| (format!("unit:app.service is {what}, "), "systemctl start app.service");
    let off = |what: &str| (format!("unit:app.service is {what}, "), "systemctl stop app.service");
    let own = |enabled| unit(SERVICE, enabled, false);
    let of_image = |enabled| unit("", enabled, false);
    let masked = || unit("", None, true);
    let oneshot = |text| unit(text, Some(true), false);
    let once = "[Service]\nType=oneshot\nExecStart=/usr/bin/app\n";
    let remaining = "[Service]\nType = oneshot\nRemainAfterExit=yes\n";
    for (before, after, actions, expected) in [
        (State::Absent, own(Some(true)), restart(), Some(on("new"))),
        (State::Absent, own(Some(true)), reload(), Some(on("new"))),
        (State::Absent, own(None), restart(), Some(on("new"))),
        (State::Absent, of_image(Some(true)), restart(), Some(on("enabled"))),
        (own(Some(false)), own(Some(true)), restart(), Some(on("enabled"))),
        (own(None), own(Some(true)), restart(), Some(on("enabled"))),
        (masked(), own(Some(true)), restart(), Some(on("unmasked"))),
        (masked(), State::Absent, restart(), Some(on("unmasked"))),
        (State::Absent, masked(), restart(), Some(off("masked"))),
        (own(Some(true)), masked(), restart(), Some(off("masked"))),
        (State::Absent, of_image(Some(false)), restart(), Some(off("disabled"))),
        (own(Some(true)), own(Some(false)), restart(), Some(off("disabled"))),
        (own(Some(true)), State::Absent, restart(), Some(off("removed"))),
        (own(None), State::Absent, reload(), Some(off("removed"))),
        (own(None), own(Some(true)), [restart(), reload()].concat(), Some(on("enabled"))),
        (
            own(None),
            own(Some(true)),
            [restart(), vec![Action::Drain, Action::DaemonReload]].concat(),
            Some(on("enabled")),
        ),
        // What runs once is started by a restart, and by nothing less.
        (State::Absent, oneshot(once), restart(), None),
        (State::Absent, oneshot(once), reload(), Some(on("new"))),
        (State::Absent, oneshot(remaining), restart(), Some(on("new"))),
        (
            State::Absent,
            with_dropin(oneshot(once), "[Service]\nType=simple\n"),
            restart(),
            Some(on("new")),
        ),
        (oneshot(once), State::Absent, restart(), Some(off("removed"))),
        // It is on or off as it was, or as nobody knows.
        (own(Some(true)), unit("[Service]\n", Some(true), false), restart(), None),
        (State::Absent, with_dropin(of_image(None), SERVICE), restart(), None),
        (with_dropin(of_image(None), SERVICE), State::Absent, restart(), None),
        (State::Absent, own(Some(false)), restart(), None),
        (masked(), own(Some(false)), restart(), None),
        (own(Some(true)), own(None), restart(), None),
        // Whoever answers so has not asked for the unit to run, or asks for more.
        (State::Absent, own(Some(true)), vec![], None),
        (State::Absent, own(Some(true)), vec![Action::Reboot], None),
        (State::Absent, own(Some(true)), vec![Action::RebootUndrained], None),
        (own(Some(true)), masked(), vec![Action::Restart("other.service".to_owned())], None),
        (
            own(Some(true)),
            masked(),
            [restart(), vec![Action::Restart("other.service".to_owned())]].concat(),
            None,
        ),
    ] {
        let change = app(before, after);
        let found = warnings(&[(change.clone(), actions.clone())]);
        let context = format!("{change:?} {actions:?}: {found:?}");
        let Some((begin, by_hand)) = expected else {
            assert!(found.is_empty(), "{context}");
            continue;
        };
        let [warning] = found.as_slice() else { panic!("{context}") };
        assert!(warning.starts_with(&begin) && warning.contains(by_hand), "{context}");
        assert!(warning.contains("mine answers with re"), "{context}");
        let sooner = match (change.after == oneshot(once), begin.contains("removed")) {
            (true, _) => "have mine answer with restart app.service, or",
            (_, true) => "Have mine answer with a reboot, or with no action",
            (false, false) => "have mine answer with a reboot, or",
        };
        assert!(warning.contains(sooner), "{context}");
    }
}

#[test]
fn a_unit_that_is_turned_on_or_off_and_that_no_action_touches_is_a_warning() {
    let on = |what: &str| (format!("unit:app.service is {what}, "), "systemctl start app.service");
    let off = |what: &str| (format!("unit:app.service is {what}, "), "systemctl stop app.service");
    let own = |enabled| unit(INSTALLED, enabled, false);
    let of_image = |enabled| unit("", enabled, false);
    let masked = || unit("", None, true);
    let bare = |enabled| unit(SERVICE, enabled, false);
    for (before, after, expected) in [
        (State::Absent, own(Some(true)), Some(on("new"))),
        (State::Absent, of_image(Some(true)), Some(on("enabled"))),
        (own(Some(false)), own(Some(true)), Some(on("enabled"))),
        (masked(), own(Some(true)), Some(on("unmasked"))),
        (State::Absent, with_dropin(bare(Some(true)), "[Install]\n"), Some(on("new"))),
        (State::Absent, masked(), Some(off("masked"))),
        (own(Some(true)), masked(), Some(off("masked"))),
        (State::Absent, of_image(Some(false)), Some(off("disabled"))),
        (own(Some(true)), own(Some(false)), Some(off("disabled"))),
        (own(Some(true)), State::Absent, Some(off("removed"))),
        (own(None), State::Absent, Some(off("removed"))),
        // Nothing says that it is to run: whoever needs it starts it.
        (State::Absent, own(None), None),
        (State::Absent, bare(Some(true)), None),
        (bare(None), bare(Some(true)), None),
        (masked(), own(None), None),
        (masked(), State::Absent, None),
        // It is on or off as it was, or as nobody knows.
        (own(Some(false)), State::Absent, None),
        (own(Some(true)), own(Some(true)), None),
        (own(Some(true)), own(None), None),
        (State::Absent, with_dropin(of_image(None), SERVICE), None),
    ] {
        for (actions, words) in [
            (vec![Action::DaemonReload], "daemon-reload"),
            (vec![Action::Drain], "drain"),
            (vec![Action::Drain, Action::DaemonReload], "drain, daemon-reload"),
            // Nothing is what whoever says so means.
            (vec![], ""),
        ] {
            let change = app(before.clone(), after.clone());
            let found = warnings(&[(change.clone(), actions.clone())]);
            let context = format!("{change:?} {actions:?}: {found:?}");
            let Some((begin, by_hand)) = expected.as_ref().filter(|_| !actions.is_empty()) else {
                assert!(found.is_empty(), "{context}");
                continue;
            };
            let [warning] = found.as_slice() else { panic!("{context}") };
            let begin = format!("{begin}and mine answers with {words}, which ");
            assert!(warning.starts_with(&begin) && warning.contains(by_hand), "{context}");
            assert!(warning.contains("have mine answer with a reboot, or"), "{context}");
            assert!(!warning.contains("that does not run"), "{context}");
        }
    }
}

#[test]
fn what_another_change_of_the_plan_starts_needs_no_warning() {
    let other = |unit: &str| {
        let file = Change {
            id: "file:/etc/a".to_owned(),
            before: State::Absent,
            after: State::Text("a".into()),
        };
        (file, vec![Action::Restart(unit.to_owned())])
    };
    let new = |text| app(State::Absent, unit(text, Some(true), false));
    let once = "[Service]\nType=oneshot\n[Install]\nWantedBy=multi-user.target\n";
    let pulled = "[Install]\nWantedBy=a.service multi-user.target\nRequiredBy=crio.service\n";
    for (change, restarted, warned) in [
        (new(INSTALLED), "crio.service", true),
        (new(INSTALLED), "app.service", true),
        (new(once), "app.service", false),
        (new(once), "crio.service", true),
        (new(pulled), "crio.service", false),
        (new(pulled), "a.service", false),
        (new(pulled), "b.service", true),
        (app(unit(pulled, Some(true), false), unit("", None, true)), "crio.service", true),
    ] {
        let found = warnings(&[other(restarted), (change.clone(), vec![Action::DaemonReload])]);
        assert_eq!(found.len(), usize::from(warned), "{change:?} {restarted}: {found:?}");
    }
}

#[test]
fn a_template_runs_nowhere_and_needs_no_warning() {
    let id = "unit:app@.service".to_owned();
    let change = Change { id, ..app(State::Absent, unit(INSTALLED, Some(true), false)) };
    assert_eq!(warnings(&[(change, vec![Action::DaemonReload])]), [""; 0]);
}

#[test]
fn where_the_plan_boots_anyway_nothing_waits_for_a_boot() {
    let enabled = || app(State::Absent, unit(SERVICE, Some(true), false));
    let other = |actions: &[Action]| {
        let file = Change {
            id: "file:/etc/a".to_owned(),
            before: State::Absent,
            after: State::Text("a".into()),
        };
        (file, actions.to_vec())
    };
    assert_eq!(warnings(&[other(&[]), (enabled(), restart())]).len(), 1);
    assert!(warnings(&[other(&[Action::Reboot]), (enabled(), restart())]).is_empty());
}
