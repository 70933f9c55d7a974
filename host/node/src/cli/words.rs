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
        let StepProgress { step, started: Some(from), seconds: Some(took), .. } = step else {
            continue;
        };
        let Some(unit) = unit_of(step) else { continue };
        let said = manager.excerpt_between(unit, (*from, from + took + AFTER)).await;
        if !said.is_empty() {
            lines.push(format!("what {unit} said, from journald:"));
            lines.extend(said.into_iter().map(|line| format!("  | {line}")));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::unit_of;

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
}
