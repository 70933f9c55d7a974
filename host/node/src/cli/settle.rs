//! `tread node settle`: what was cut short becomes whole, without a bus and without network.

use super::error::NodeError;
use super::show;
use super::system::{NOT_WELL, RootArgs, WELL, blocking};
use crate::journal::{Direction, Journal, JournalError, Note, Settled, Standing, is_mixed};
use crate::operation::{OperationError, why_back_early, why_half_read};
use crate::progress::{Phase, Progress};
use crate::systemd::{PRIVATE, reload_before_the_bus};
use crate::tree::Tree;
use std::io;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

pub(super) const EXAMPLES: &str = "\
Examples:
  tread node settle                  what was cut short, on this system
  tread node settle --root /mnt      of another system's tree

Exit codes:
  0  nothing is half done
  1  it could not be settled
  5  somebody else changed a name meanwhile: it was left as it is; or a mount is not there";

/// How long systemd may take to read its units, while everything else waits for it.
const RELOAD: Duration = Duration::from_secs(20);

const SETTLED: &str = "it was cut short once its files were written";
const BACK: &str = "it was cut short on its way back";
const UNDONE: &str = "it was cut short before anything took effect";
const BUT_FOR_ANOTHER_ETC: &str = "settled but for names in the /etc of another deployment";
/// How long names may be mixed: less than the unit may take.
const MIXED: Duration = Duration::from_secs(90);
/// How often it is looked whether they still are.
const AGAIN: Duration = Duration::from_millis(200);

impl RootArgs {
    pub(super) fn settle(&self) -> Result<u8, NodeError> {
        // A mount that needs the network would wait for that, and the network waits for this unit:
        // what is below it is settled once the node is up.
        let tree = self.tree()?.without_automounts();
        let settled = {
            let journal = match Journal::open(&tree) {
                // A service that needs this unit is restarted during an operation, by the
                // operation's own plan or while its names are mixed. The operation settles itself:
                // only mixed names are waited for.
                Err(JournalError::Busy) if self.runs() => {
                    let deadline = Instant::now() + MIXED;
                    // Where it cannot be looked, as while the operation ends, it is looked again.
                    while is_mixed(&tree).unwrap_or(true) {
                        if Instant::now() >= deadline {
                            return Err(JournalError::Busy.into());
                        }
                        sleep(AGAIN);
                    }
                    show::line("an operation is on its way, and settles itself")?;
                    return Ok(WELL);
                }
                opened => opened?,
            };
            match self.settled(&tree, &journal) {
                // Nothing that starts after this needs what is on a mount that is not there.
                Err(away) if self.runs() && is_away(&away) => {
                    show::line(&settled_but_for(&tree, &journal, &away)?)?;
                    reload()?;
                    return Ok(NOT_WELL);
                }
                settled => settled?,
            }
        };
        if settled.is_empty() {
            show::line("nothing to settle")?;
        }
        for settled in &settled {
            let which = match settled.direction {
                Direction::Forward => "the new config is whole",
                Direction::Undone | Direction::Back => "the old config is whole again",
            };
            show::line(&format!("settled: {which}"))?;
            if let Some(covered) = settled.covered() {
                show::line(&covered)?;
            }
            for path in &settled.left {
                show::line(&format!("left as it is, since somebody else changed it: {path}"))?;
            }
        }
        if self.runs() && settled.iter().any(|it| it.changed) {
            reload()?;
        }
        Ok(if settled.iter().all(|it| it.left.is_empty()) { WELL } else { NOT_WELL })
    }

    /// Settles what stands, and what waited for a boot before it, where that stands again.
    fn settled(&self, tree: &Tree, journal: &Journal) -> Result<Vec<Settled>, NodeError> {
        let first = journal.standing()?;
        let mut settled = Vec::from_iter(self.settled_one(tree, journal, first.as_ref())?);
        let id = first.map(|it| it.record.id);
        if let Some(waits) = journal.standing()?.filter(|it| id.as_ref() != Some(&it.record.id)) {
            // On a full disk it cannot be told: that keeps no kubelet from starting.
            let _ = Progress::keep_beside(tree, &waits.record.id);
            settled.extend(self.settled_one(tree, journal, Some(&waits))?);
        }
        Ok(settled)
    }

    fn settled_one(
        &self,
        tree: &Tree,
        journal: &Journal,
        standing: Option<&Standing>,
    ) -> Result<Option<Settled>, NodeError> {
        if let Some(standing) = standing.filter(|_| self.runs()) {
            goes_back_early(tree, journal, standing)?;
        }
        let settled = journal.settle()?;
        // What has no plan has no steps that would follow.
        let has_no_plan = standing.is_some_and(|it| it.record.order.is_null());
        let is_over = !self.runs() || has_no_plan;
        let direction = settled.as_ref().map(|it| it.direction);
        let ends = match direction {
            Some(Direction::Undone) => Some((Phase::WentBack, UNDONE)),
            Some(Direction::Forward) if is_over => Some((Phase::Done, SETTLED)),
            Some(Direction::Back) if is_over => Some((Phase::WentBack, BACK)),
            _ => None,
        };
        if let (Some(standing), Some((phase, why))) = (standing, ends) {
            // On a full disk it cannot be told: that keeps no kubelet from starting.
            let _ = Progress::ends_here(tree, &standing.record.id, phase, why);
        }
        // One that was undone is over already, and another one may stand.
        if is_over && matches!(direction, Some(Direction::Forward | Direction::Back)) {
            journal.finish()?;
        }
        Ok(settled)
    }
}

/// Whether a part of what is to be settled is not there.
fn is_away(error: &NodeError) -> bool {
    matches!(error, NodeError::Operation(OperationError::Journal(JournalError::Away { .. })))
}

/// What is said where that is so.
fn settled_but_for(tree: &Tree, journal: &Journal, away: &NodeError) -> Result<String, NodeError> {
    let is_elsewhere = journal.standing()?.is_some_and(|it| it.is_in_another_etc(tree));
    Ok(match is_elsewhere {
        true => format!("{BUT_FOR_ANOTHER_ETC}: tread node status"),
        false => format!("settled but for one mount: {away}"),
    })
}

/// A machine that goes down in each boot before it comes any further goes back by this, and one whose
/// boot found names that were cut short.
fn goes_back_early(tree: &Tree, journal: &Journal, standing: &Standing) -> io::Result<()> {
    let goes_down = why_back_early(tree, standing);
    let was_half_read = goes_down.is_none();
    let because = goes_down.or_else(|| why_half_read(tree, standing));
    let Some(because) = because else { return Ok(()) };
    let noted = journal.note(&Note::Back { because: because.clone(), by_units: false });
    // On a full disk there is room for no note: that keeps no kubelet from starting.
    let said = match (noted, was_half_read) {
        (Ok(()), false) => format!("{because}: it goes back"),
        (Err(why), false) => format!("{because}: it goes back only once that can be noted: {why}"),
        (Ok(()), true) => format!("{because}: its files go back, and the node boots once more"),
        (Err(why), true) => format!(
            "{because}: its files go back; that it has to boot once more cannot be noted ({why}): boot it"
        ),
    };
    show::line(&said)
}

/// Has systemd read its units again: it read them before the files were settled. If that fails, the
/// files are whole all the same, and whoever goes on with the operation tells systemd again.
fn reload() -> io::Result<()> {
    if let Err(problem) = blocking(reload_before_the_bus(Path::new(PRIVATE), RELOAD))? {
        show::line(&format!("systemd did not read its units again yet: {problem}"))?;
    }
    Ok(())
}
