//! Writing into the tree of a system that does not run.

use super::error::NodeError;
use crate::journal::{Journal, JournalError};
use crate::prepare::Ready;
use crate::progress::{Phase, Progress, StepState};
use crate::tree::Tree;
use tread_model::digest::Digest;
use tread_model::plan::Step;

const WRITTEN: &str =
    "its files are written, and no unit was told; the next boot of this system brings the rest";

/// Writes it, and leaves for `tread node status` how far it is. What is cut short is settled by
/// the next boot of the system, or by `tread node settle --root`.
pub(super) fn write(
    tree: &Tree,
    (to, steps): (Digest, &[Step]),
    ready: &Ready<'_>,
) -> Result<(), NodeError> {
    let journal = Journal::open(tree)?;
    if journal.standing()?.is_some() {
        return Err(JournalError::Unsettled.into());
    }
    let mut progress = Progress::new(&ready.record.id, to, steps);
    let writes = steps.iter().position(|step| *step == Step::Write);
    writes.iter().for_each(|index| progress.begins(*index));
    // On a full disk it cannot be told: the next line says so.
    let _ = progress.write(tree);
    if let Err(error) = journal.write(&ready.record, &ready.new) {
        if !matches!(journal.standing(), Ok(Some(_))) {
            let _ = Progress::refused(&ready.record.id, &error.to_string()).write(tree);
        }
        return Err(error.into());
    }
    for (index, step) in steps.iter().enumerate() {
        match step {
            Step::Write => progress.ends(index, StepState::Done, ""),
            Step::Drain | Step::Uncordon => progress.ends(index, StepState::Left, ""),
            _ => {}
        }
    }
    progress.phase = Phase::Done;
    if !steps.is_empty() {
        progress.message = WRITTEN.to_owned();
    }
    let noted = progress.write(tree);
    journal.finish()?;
    let _ = noted.or_else(|_| progress.write(tree));
    Ok(())
}
