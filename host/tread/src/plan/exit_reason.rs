//! Why a plan ends a pipeline, for whoever reads its log.

use super::args::PlanOutput;
use super::too_disruptive::TooDisruptive;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt as _;
use tread_console::print::warn;
use tread_console::sentence::sentence;
use tread_model::plan::{ChangeOutcome, Plan};

/// Says on standard error why a plan ends with another exit code than 0, unless the
/// plan that says so was printed to the very same place.
pub(super) fn print_beside(
    plan: &Plan,
    too_disruptive: Option<&TooDisruptive>,
    output: PlanOutput,
) {
    let refusal = refusal(plan);
    let reason = too_disruptive.map(TooDisruptive::sentence).or(refusal);
    let Some(reason) = reason else { return };
    if output != PlanOutput::Human || !is_one_place(io::stdout().as_fd(), io::stderr().as_fd()) {
        warn(&reason);
    }
}

/// Who refuses what, and why, of many changes the first few.
fn refusal(plan: &Plan) -> Option<String> {
    const MOST: usize = 3;
    let refused = || plan.changes.iter().filter(|it| it.outcome == ChangeOutcome::Refused);
    refused().next()?;
    let reasons = refused().take(MOST).map(|change| {
        let (reason, advice) = (sentence(&change.reason), change.advice.as_deref());
        let said = format!("{reason} {}", advice.unwrap_or_default());
        match change.decided_by {
            Some(_) => format!("{}: {}", change.id, said.trim_end()),
            // What tread itself refuses begins with the field.
            None => said.trim_end().to_owned(),
        }
    });
    let reasons = reasons.collect::<Vec<_>>().join(" ");
    let more = match refused().count().saturating_sub(MOST) {
        0 => "",
        _ => " The plan has the others.",
    };
    Some(format!("{}. {reasons}{more}", plan.summary))
}

/// Whether both are the same terminal, pipe or file.
fn is_one_place(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> bool {
    let place = |it: BorrowedFd<'_>| {
        let metadata = File::from(it.try_clone_to_owned().ok()?).metadata().ok()?;
        Some((metadata.dev(), metadata.ino()))
    };
    place(one).is_some_and(|one| place(other) == Some(one))
}
