//! An order that has ended already: it is not carried out again.

use super::error::NodeError;
use crate::documents::digest;
use crate::operation::Ended;
use crate::orders::{Does, Given};
use crate::progress::{Phase, Progress};
use crate::tree::Tree;
use tread_model::plan::VerifiablePlan;

/// How this order ended, if it has ended and only the process that carried it out died after that.
/// Where another order had its id, nobody looked at this one.
pub(super) fn ended_before(tree: &Tree, given: &Given) -> Result<Option<Ended>, NodeError> {
    let is_it = |known: &Progress| known.operation == given.id;
    // One that went back may be told of beside what waited for a boot before it.
    let went_back = |known: &Progress| is_it(known) && known.phase == Phase::WentBack;
    let progress = match Progress::read(tree)?.filter(is_it) {
        None => Progress::read_refused(tree)?.filter(went_back),
        progress => progress,
    };
    let Some(progress) = progress else { return Ok(None) };
    let was_it = was_for(&progress, given);
    let because = progress.message;
    let ended = match progress.phase {
        Phase::Done => Ok(Ended::Done),
        Phase::WaitsForBoot => Ok(Ended::WaitsForBoot),
        Phase::Fetched => Ok(Ended::Nothing),
        Phase::WentBack => Ok(Ended::WentBack { because }),
        Phase::Refused => Err(NodeError::Said(because)),
        _ => return Ok(None),
    };
    match was_it {
        true => ended.map(Some),
        false => Err(NodeError::IdIsTaken(given.id.clone())),
    }
}

/// Whether an operation that has ended was for this order, as far as that is known.
fn was_for(progress: &Progress, given: &Given) -> bool {
    if let Some(order) = progress.order {
        return given.digest() == Some(order);
    }
    let fetches = matches!(given.order, Does::Fetch { .. });
    match progress.phase {
        Phase::Refused => {}
        Phase::Fetched if !fetches => return false,
        Phase::Fetched => {}
        _ if fetches => return false,
        _ => {}
    }
    has_its_config(progress, given) && has_its_plan(progress, given)
}

fn has_its_config(progress: &Progress, given: &Given) -> bool {
    let (Some(to), Some(config)) = (progress.to, given.order.config()) else { return true };
    // One that cannot be read was never carried out.
    config.config().and_then(|config| digest(&config)).is_ok_and(|asked| asked == to)
}

fn has_its_plan(progress: &Progress, given: &Given) -> bool {
    let Does::Apply { plan: Some(asked), .. } = &given.order else { return true };
    let instead = || VerifiablePlan::always_allowed(asked.from, asked.to).digest;
    progress.plan.is_none_or(|plan| plan == asked.digest || plan == instead())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use crate::documents::{Document, Documents};
    use crate::journal::STATE;
    use tread_model::plan::Step;

    fn config(word: &str) -> Documents {
        let text = format!(
            r#"{{"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
                "metadata": {{"name": "rendered-worker-1",
                              "labels": {{"machineconfiguration.openshift.io/role": "worker"}}}},
                "spec": {{"config": {{"ignition": {{"version": "3.4.0"}}, "storage": {{"files": [
                    {{"path": "/etc/a.conf", "contents": {{"source": "data:,{word}"}}}}]}}}}}}}}"#
        );
        Documents(vec![Document { name: "config.yaml".to_owned(), text }])
    }

    fn plan(steps: &[Step]) -> Box<VerifiablePlan> {
        let digest = |word: &str| digest(&config(word).config().unwrap()).unwrap();
        let mut plan = VerifiablePlan::always_allowed(digest("one"), digest("two"));
        plan.steps = steps.to_vec();
        plan.digest = plan.computed_digest();
        Box::new(plan)
    }

    fn apply(word: &str, plan: Option<Box<VerifiablePlan>>, drained: bool) -> Given {
        let order = Does::Apply { config: config(word), plan, accept: Vec::new(), drained };
        Given::new("one", order)
    }

    #[test]
    fn an_order_with_the_id_of_another_one_that_has_ended_is_not_answered_in_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let tree = Tree::open(dir.path()).unwrap();
        drop(tree.private_folder(STATE).unwrap());
        let of = |word: &str| digest(&config(word).config().unwrap()).unwrap();
        let ended = |phase: Phase| {
            let steps = [Step::Write];
            let progress = Progress::new("one", of("two"), &steps).by(plan(&steps).digest);
            Progress { phase, ..progress }
        };
        let refused = |given: &Given| Progress::refused("one", "why").of_order(given.digest());
        let write = || Some(plan(&[Step::Write]));
        let its_own = apply("two", write(), true);
        let fetch = || Given::new("one", Does::Fetch { config: config("two") });
        // Where the plan could not be carried out, the one that is always allowed took its place.
        let instead = plan(&[Step::Drain, Step::Write, Step::Reboot, Step::Uncordon]).digest;
        for (known, given, is_it) in [
            (ended(Phase::Done), its_own.clone(), true),
            (ended(Phase::Done).by(instead), its_own.clone(), true),
            (ended(Phase::WentBack), its_own.clone(), true),
            (ended(Phase::WaitsForBoot), apply("two", None, true), true),
            (ended(Phase::Done), apply("three", write(), true), false),
            (ended(Phase::WentBack), apply("three", None, true), false),
            (ended(Phase::Done), apply("two", Some(plan(&[Step::Reboot])), true), false),
            (ended(Phase::Done), fetch(), false),
            (ended(Phase::Fetched), fetch(), true),
            (ended(Phase::Fetched), its_own.clone(), false),
            (refused(&its_own), its_own.clone(), true),
            (refused(&its_own), apply("two", write(), false), false),
            (refused(&its_own), apply("three", write(), true), false),
            // As an older version tells of it.
            (Progress::refused("one", "why"), its_own.clone(), true),
            (ended(Phase::Refused), apply("three", write(), true), false),
        ] {
            known.write(&tree).unwrap();
            match ended_before(&tree, &given) {
                Err(NodeError::IdIsTaken(id)) => assert!(!is_it && id == "one", "{known:?}"),
                Err(NodeError::Said(why)) => {
                    assert!(is_it && known.phase == Phase::Refused, "{known:?}: {why}");
                }
                other => assert!(is_it && matches!(other, Ok(Some(_))), "{known:?}: {other:?}"),
            }
        }
        // One that has not ended, or with another id, is carried out.
        ended(Phase::Degraded).write(&tree).unwrap();
        assert!(matches!(ended_before(&tree, &apply("three", None, true)), Ok(None)));
        ended(Phase::Done).write(&tree).unwrap();
        let other = Given::new("two", Does::Resume);
        assert!(matches!(ended_before(&tree, &other), Ok(None)));
        // One that went back is known beside what waited for a boot before it; one that was refused
        // beside that is tried again.
        let waits = Progress::new("other", of("one"), &[]);
        let waits = Progress { phase: Phase::WaitsForBoot, ..waits };
        for (known, is_known) in [(ended(Phase::WentBack), true), (refused(&its_own), false)] {
            known.write(&tree).unwrap();
            Progress::keep_beside(&tree, "other").unwrap();
            waits.write(&tree).unwrap();
            let before = ended_before(&tree, &its_own).unwrap();
            assert_eq!(before.is_some(), is_known, "{known:?}: {before:?}");
        }
    }
}
