//! What a unit said when it failed, read from the host's journal at the moment in which root
//! looks at it in a terminal. tread keeps none of it and tells it to nobody else (law 10).

use crate::progress::{Progress, StepProgress, StepState};
use crate::systemd::Manager;
use std::time::Duration;
use tokio::time::timeout;

/// For so many seconds after a step failed, what its unit says counts.
const AFTER: u64 = 5;

/// How long a status may wait for that.
const LIMIT: Duration = Duration::from_secs(10);

/// The unit of a step, where it is about one.
fn unit_of(step: &str) -> Option<&str> {
    let (verb, unit) = step.split_once(' ')?;
    matches!(verb, "reload" | "restart").then_some(unit)
}

/// Between which moments of the journal a step was, whichever way the clock was set meanwhile.
fn moments(step: &StepProgress) -> Option<(u64, u64)> {
    let (began, ended) = (step.started?, step.ended?);
    Some((began.min(ended), began.max(ended) + AFTER))
}

/// The last lines of each unit whose step failed; none for whoever is not root.
pub(super) async fn of_what_failed(manager: &Manager, progress: &Progress) -> Vec<String> {
    if !rustix::process::geteuid().is_root() {
        return Vec::new();
    }
    let late = || vec!["what its unit said is not known: journald was not read in time".to_owned()];
    timeout(LIMIT, said(manager, progress)).await.unwrap_or_else(|_| late())
}

async fn said(manager: &Manager, progress: &Progress) -> Vec<String> {
    let mut lines = Vec::new();
    for step in progress.steps.iter().filter(|step| step.state == StepState::Failed) {
        let Some((unit, between)) = unit_of(&step.step).zip(moments(step)) else { continue };
        let said = manager.excerpt_between(unit, between).await;
        if !said.is_empty() {
            lines.push(format!("what {unit} said, from journald:"));
            lines.extend(said.into_iter().map(|line| format!("  | {line}")));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::{moments, unit_of};
    use crate::progress::{Progress, StepState};
    use tread_model::digest::Digest;
    use tread_model::plan::Step;

    #[test]
    fn a_step_is_about_a_unit_where_it_tells_one() {
        for (step, unit) in [
            ("reload crio.service", Some("crio.service")),
            ("restart a.service", Some("a.service")),
            ("write", None),
            ("update-ca-trust", None),
        ] {
            assert_eq!(unit_of(step), unit, "{step}");
        }
    }

    #[test]
    fn what_a_unit_said_is_found_also_where_the_clock_was_set_in_the_middle_of_its_step() {
        let mut progress = Progress::new("one", Digest([1; 32]), &[Step::Write]);
        progress.begins(0);
        progress.ends(0, StepState::Failed, "");
        let step = progress.steps.first_mut().unwrap();
        for (began, ended, between) in
            [(100, 160, (100, 165)), (1000, 100, (100, 1005)), (100, 90_000, (100, 90_005))]
        {
            (step.started, step.ended) = (Some(began), Some(ended));
            assert_eq!(moments(step), Some(between));
        }
    }
}
