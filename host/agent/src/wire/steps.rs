//! How far an operation is, for whoever looks at its NodeUpdate.

use tread_node::progress::{Phase, Progress, StepState};

/// What is done now: a step of the plan, or what comes between steps.
pub(super) fn step(progress: &Progress) -> String {
    let running = progress.steps.iter().find(|step| step.state == StepState::Running);
    let between = match progress.phase {
        Phase::Staging => "stage",
        Phase::Booting => "reboot",
        Phase::Proving => "prove",
        Phase::GoingBack => "go back",
        _ => "",
    };
    running.map_or_else(|| between.to_owned(), |step| step.step.clone())
}

/// What an admin has to know of it.
pub(super) fn message(progress: &Progress) -> String {
    let said = [&progress.message, &progress.warning];
    let said: Vec<&str> =
        said.into_iter().map(String::as_str).filter(|it| !it.is_empty()).collect();
    said.join("; ")
}
