//! How far an operation is, in the words of the protocol.

use tread_model::protocol;
use tread_node::progress::{Phase, Progress, StepState};

/// What is known of an operation on its node.
#[derive(Debug, Clone, Copy)]
pub struct Known<'k> {
    /// What host/node tells of it; nothing before it was begun.
    pub progress: Option<&'k Progress>,
    /// Whether it was refused while another operation stands that is in its way.
    pub is_blocked: bool,
    /// Whether a permit to write was given.
    pub permitted: bool,
    /// Whether it asks for a boot that its plan does not have.
    pub needs_boot: bool,
}

/// How far it is.
pub fn phase(known: &Known<'_>) -> protocol::Phase {
    use protocol::Phase as Is;
    let Some(progress) = known.progress else {
        return if known.permitted { Is::Begun } else { Is::Waiting };
    };
    let has_begun = known.permitted || has_written(progress);
    match progress.phase {
        Phase::Done | Phase::WaitsForBoot | Phase::Fetched => Is::Done,
        Phase::WentBack => Is::WentBack,
        Phase::Degraded => Is::Degraded,
        // What stands of another operation is in the way: somebody has to see to that.
        Phase::Refused if known.is_blocked => Is::Degraded,
        Phase::Refused => Is::TurnedBack,
        _ if known.needs_boot => Is::NeedsBoot,
        Phase::Writing | Phase::Waiting if !has_begun => Is::Waiting,
        Phase::Writing
        | Phase::Waiting
        | Phase::Staging
        | Phase::Stopped
        | Phase::Acting
        | Phase::Booting
        | Phase::Proving
        | Phase::GoingBack => Is::Begun,
    }
}

/// Whether the first step that a node does itself, which writes, is over.
fn has_written(progress: &Progress) -> bool {
    let writes = progress.steps.iter().find(|step| step.step == "write");
    writes.is_some_and(|step| step.state == StepState::Done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::Phase as Is;
    use tread_model::digest::Digest;
    use tread_model::plan::Step;

    fn progress(phase: Phase, has_written: bool) -> Progress {
        let steps = [Step::Drain, Step::Write, Step::Reload { unit: "a.service".to_owned() }];
        let mut progress = Progress::new("one", Digest([1; 32]), &steps);
        progress.phase = phase;
        if has_written {
            progress.ends(1, StepState::Done, "");
        }
        progress
    }

    #[test]
    fn each_phase_of_a_node_is_one_of_the_protocols() {
        let (no, yes) = (false, true);
        // What host/node says, whether it wrote, whether it was permitted to, whether it asks for
        // a boot that was not planned, whether something is in its way: and what that is.
        let table = [
            (Phase::Writing, no, no, no, no, Is::Waiting),
            (Phase::Waiting, no, no, no, yes, Is::Waiting),
            (Phase::Writing, no, yes, no, yes, Is::Begun),
            (Phase::Waiting, yes, no, no, yes, Is::Begun),
            (Phase::Waiting, yes, yes, no, yes, Is::Begun),
            (Phase::Waiting, yes, yes, yes, yes, Is::NeedsBoot),
            (Phase::Waiting, yes, no, yes, yes, Is::NeedsBoot),
            (Phase::Staging, yes, yes, no, yes, Is::Begun),
            (Phase::Stopped, yes, yes, no, yes, Is::Begun),
            (Phase::Acting, yes, yes, no, yes, Is::Begun),
            (Phase::Booting, yes, yes, no, yes, Is::Begun),
            (Phase::Proving, yes, yes, no, yes, Is::Begun),
            (Phase::GoingBack, yes, yes, no, yes, Is::Begun),
            (Phase::Done, yes, yes, no, no, Is::Done),
            (Phase::WaitsForBoot, yes, yes, no, yes, Is::Done),
            (Phase::Fetched, no, no, no, no, Is::Done),
            (Phase::WentBack, yes, yes, no, no, Is::WentBack),
            (Phase::WentBack, yes, yes, yes, no, Is::WentBack),
            (Phase::Degraded, yes, yes, no, yes, Is::Degraded),
            (Phase::Refused, no, no, no, no, Is::TurnedBack),
            (Phase::Refused, no, yes, no, no, Is::TurnedBack),
            (Phase::Refused, no, no, no, yes, Is::Degraded),
        ];
        for (at, has_written, permitted, needs_boot, is_blocked, is) in table {
            let progress = progress(at, has_written);
            let known = Known { progress: Some(&progress), is_blocked, permitted, needs_boot };
            assert_eq!(phase(&known), is, "{known:?}");
        }
    }

    #[test]
    fn before_anything_is_told_it_waits_unless_it_was_permitted_to_write() {
        let known =
            Known { progress: None, is_blocked: false, permitted: false, needs_boot: false };
        assert_eq!(phase(&known), Is::Waiting);
        assert_eq!(phase(&Known { permitted: true, ..known }), Is::Begun);
    }
}
