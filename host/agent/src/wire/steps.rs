//! How far an operation is, for whoever looks at its NodeUpdate.

use tread_node::program::CURRENT_PATH;
use tread_node::progress::{Phase, Progress, StepState};

/// What is done now: a step of the plan, with its place in it, or what comes between steps.
pub(super) fn step(progress: &Progress) -> String {
    let mut steps = progress.steps.iter().zip(1..);
    let running = steps.find(|(step, _)| step.state == StepState::Running);
    let between = match progress.phase {
        Phase::Staging => "stage",
        Phase::Booting => "reboot",
        Phase::Proving => "prove",
        Phase::GoingBack => "go back",
        _ => "",
    };
    let all = progress.steps.len();
    running
        .map_or_else(|| between.to_owned(), |(step, at)| format!("{} ({at} of {all})", step.step))
}

/// What an admin has to know of it.
pub(super) fn message(progress: &Progress) -> String {
    let said = [&progress.message, &progress.warning];
    let said: Vec<&str> =
        said.into_iter().map(String::as_str).filter(|it| !it.is_empty()).collect();
    runnable(&said.join("; "))
}

/// The same text, with commands as they can be run there: on a node of a cluster the program is in no
/// PATH.
pub(super) fn runnable(text: &str) -> String {
    text.replace("tread node ", &format!("{CURRENT_PATH} node "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tread_model::digest::Digest;
    use tread_model::plan::Step;

    #[test]
    fn a_step_is_told_with_its_place_in_the_plan() {
        let steps = [Step::Drain, Step::Write, Step::Reload { unit: "a.service".to_owned() }];
        let mut progress = Progress::new("one", Digest([1; 32]), &steps);
        assert_eq!(step(&progress), "");
        progress.begins(1);
        assert_eq!(step(&progress), "write (2 of 3)");
        progress.ends(1, StepState::Done, "");
        progress.begins(2);
        assert_eq!(step(&progress), "reload a.service (3 of 3)");
        progress.ends(2, StepState::Failed, "it does not start");
        progress.phase = Phase::Booting;
        assert_eq!(step(&progress), "reboot");
    }

    #[test]
    fn what_is_to_be_run_on_a_node_is_named_by_the_path_that_the_program_has_there() {
        let refused = Progress::refused("one", "let it stay: tread node adopt --keep; it differs");
        let expected =
            "let it stay: /var/lib/tread/bin/current/tread node adopt --keep; it differs";
        assert_eq!(message(&refused), expected);
        let others = "tread nodes; tread rollout retry worker";
        assert_eq!(runnable(others), others);
    }
}
