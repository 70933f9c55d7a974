//! OpenShift's own defaults, which go on deciding where nothing is exported:
//! whether they might do less than somebody asks for.

use super::answer::{Place, demands};
use super::voice::Voice;
use crate::operator::Policies;
use crate::plan::{Step, needs_daemon_reload, steps};

/// Whether what OpenShift does by default for a change of this id is less than
/// what rules, or the policies of owners, might ask for at this place. The
/// built-in policies do not count: what they leave to the contents, the default
/// decides.
pub(super) fn do_less(voices: &[Voice], place: Place<'_>, id: &str) -> bool {
    let Some(default) = Policies::default().steps_for(id) else { return false };
    demands(voices, place).iter().any(|demand| match demand {
        Some(actions) => !covers(&default, &steps(actions, needs_daemon_reload(id))),
        None => true,
    })
}

/// Whether one list of steps has all that the other one does to a node.
fn covers(steps: &[Step], others: &[Step]) -> bool {
    let has = |step: &Step| match step {
        Step::Write => true,
        // A restart reads the configuration too.
        Step::Reload { unit } => {
            let restart = Step::Restart { unit: unit.clone() };
            steps.contains(step) || steps.contains(&restart)
        }
        step => steps.contains(step),
    };
    steps.contains(&Step::Reboot) || others.iter().all(has)
}
