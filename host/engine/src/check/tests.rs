use super::*;
use tread_model::change::State;

fn change(id: &str) -> Change<'static> {
    Change { id: id.to_owned(), before: State::Absent, after: State::Text("x".into()) }
}

fn verdict(change: u32, answer: v1::Answer) -> v1::Verdict {
    v1::Verdict { change, answer, reason: "why".to_owned() }
}

fn restart(unit: &str) -> v1::Answer {
    v1::Answer::Act(vec![v1::Action::Restart(unit.to_owned())])
}

fn check(
    claims: &[Claim],
    ids: &[&str],
    layer: Layer,
    verdicts: Vec<v1::Verdict>,
) -> Result<Vec<Option<Verdict>>, Failure> {
    let changes: Vec<_> = ids.iter().map(|id| change(id)).collect();
    let changes: Vec<_> = changes.iter().collect();
    let (ranges, limits) = (Ranges::new(claims).unwrap(), Limits::default());
    Offer { changes: &changes, ranges: &ranges, layer, speaker: Speaker::Policy, limits: &limits }
        .check(verdicts)
}

#[test]
fn the_claims_that_match_a_change_give_its_range_together() {
    let claims = [
        Claim::on("file:/etc/**", Effect::Reload, Effect::Reload),
        Claim::on("file:/etc/a/*", Effect::Drain, Effect::Drain),
        Claim::on("file:/usr/**", Effect::None, Effect::Refuse),
    ];
    let ranges = Ranges::new(&claims).unwrap();
    for (id, range) in [
        ("file:/etc/b", Some((Effect::Reload, Effect::Reload))),
        ("file:/etc/a/x", Some((Effect::Reload, Effect::Drain))),
        ("file:/usr/x", Some((Effect::None, Effect::Refuse))),
        ("file:/var/x", None),
    ] {
        assert_eq!(ranges.range(id), range, "{id}");
    }
}

#[test]
fn an_answer_is_held_to_the_range_on_both_sides() {
    use v1::{Action, Answer};
    let act = |action| Answer::Act(vec![action]);
    for (least, most, answer, fits) in [
        (Effect::None, Effect::Restart, restart("a.service"), true),
        (Effect::None, Effect::Reload, restart("a.service"), false),
        (Effect::Drain, Effect::Reboot, restart("a.service"), false),
        // Updating the CA trust counts as a reload.
        (Effect::Reload, Effect::Reload, restart("coreos-update-ca-trust.service"), true),
        (Effect::Reload, Effect::Reload, act(Action::DaemonReload), true),
        (Effect::None, Effect::None, Answer::Act(Vec::new()), true),
        (Effect::Reload, Effect::Reboot, Answer::Act(Vec::new()), false),
        (Effect::Drain, Effect::Drain, act(Action::Drain), true),
        (Effect::None, Effect::Drain, act(Action::Reboot), false),
        (Effect::Reboot, Effect::Reboot, act(Action::Reboot), true),
        (Effect::None, Effect::Refuse, Answer::Refuse, true),
        (Effect::None, Effect::Reboot, Answer::Refuse, false),
        // Abstaining is always within it.
        (Effect::Reboot, Effect::Reboot, Answer::Abstain, true),
    ] {
        let text = format!("{least} to {most}: {answer:?}");
        let claims = [Claim::on("os-image", least, most)];
        let checked = check(&claims, &["os-image"], Layer::Builtin, vec![verdict(0, answer)]);
        let kind = checked.err().map(|failure| failure.kind);
        assert_eq!(kind, (!fits).then_some(FailureKind::BeyondClaim), "{text}");
    }
}

#[test]
fn the_order_of_verdicts_is_free_and_silence_is_none() {
    let claims = [Claim::on("file:/**", Effect::None, Effect::Restart)];
    let ids = ["file:/a", "file:/b", "file:/c"];
    let verdicts = vec![verdict(2, restart("c.service")), verdict(0, v1::Answer::Abstain)];
    let checked = check(&claims, &ids, Layer::Template, verdicts).unwrap();
    let answers: Vec<_> = checked.iter().map(|it| it.as_ref().map(|it| &it.answer)).collect();
    let act = Answer::Act(vec![Action::Restart("c.service".to_owned())]);
    assert_eq!(answers, [Some(&Answer::Abstain), None, Some(&act)]);
}

#[test]
fn abstaining_twice_is_bad_output_too() {
    let claims = [Claim::on("file:/**", Effect::None, Effect::Restart)];
    let verdicts = vec![verdict(0, v1::Answer::Abstain), verdict(0, v1::Answer::Abstain)];
    let failure = check(&claims, &["file:/a"], Layer::Template, verdicts).unwrap_err();
    assert_eq!(failure.kind, FailureKind::BadOutput);
}

#[test]
fn a_reboot_without_a_drain_is_for_the_admin_layer() {
    let claims = [Claim::on("file:/**", Effect::None, Effect::Reboot)];
    for (layer, fits) in [(Layer::Admin, true), (Layer::Template, false), (Layer::Builtin, false)] {
        let answer = v1::Answer::Act(vec![v1::Action::RebootUndrained]);
        let checked = check(&claims, &["file:/a"], layer, vec![verdict(0, answer)]);
        assert_eq!(checked.is_ok(), fits, "{layer}");
    }
}

#[test]
fn only_a_complete_name_of_a_unit_that_can_run_is_taken() {
    let claims = [Claim::on("file:/**", Effect::None, Effect::Restart)];
    for (unit, fits) in [
        ("crio.service", true),
        ("app@blue.service", true),
        ("crio", false),
        ("app@.service", false),
        ("", false),
        ("../x.service", false),
        ("a.service b.service", false),
    ] {
        let checked =
            check(&claims, &["file:/a"], Layer::Template, vec![verdict(0, restart(unit))]);
        let kind = checked.err().map(|failure| failure.kind);
        assert_eq!(kind, (!fits).then_some(FailureKind::InvalidUnit), "{unit:?}");
    }
}
