//! An order of an admin's, carried out by the unit of the host, and told on the terminal.

use super::error::NodeError;
use super::show::Terminal;
use super::system::{BUS, NOT_WELL, WELL, blocking};
use super::{files, show, words};
use crate::operation_unit::{UNIT, follow, hand_over};
use crate::orders::{Does, Given};
use crate::progress::{Phase, Progress};
use crate::systemd::{Limits, Manager};
use crate::tree::Tree;
use std::io::{self, IsTerminal as _};
use std::path::Path;

/// Hands it over, and tells how it goes on until it ends. It goes on if nobody listens.
pub(super) fn by_the_unit(tree: &Tree, given: &Given) -> Result<u8, NodeError> {
    let manager = Manager::new(BUS, Limits::default());
    let terminal = Terminal::default();
    let program = Path::new(files::OWN_EXECUTABLE);
    let (progress, words) = blocking(async {
        hand_over(tree, &manager, program, given).await?;
        let id = &given.id;
        show::line(&format!("{UNIT} carries {id} out, also if you leave: tread node status"))?;
        // What is gone on with has a name of its own.
        let followed = (given.order != Does::Resume).then_some(id.as_str());
        let progress = follow(tree, &manager, (UNIT, followed), &terminal).await?;
        let words = match &progress {
            // They are for whoever sits there, and for no file that this is written to.
            Some(progress) if io::stdout().is_terminal() => {
                words::of_what_failed(&manager, progress).await
            }
            _ => Vec::new(),
        };
        Ok::<_, NodeError>((progress, words))
    })??;
    words.iter().try_for_each(|text| show::line(text))?;
    let refused = Progress::read_refused(tree)?.filter(|it| it.operation == given.id);
    if let Some(refused) = refused.filter(|_| given.order == Does::Resume) {
        return Err(NodeError::Said(refused.message));
    }
    let Some(progress) = progress else {
        let why = format!("{UNIT} ended before it began; see journalctl -u {UNIT}");
        return Err(NodeError::Said(why));
    };
    ended(progress)
}

fn ended(progress: Progress) -> Result<u8, NodeError> {
    match progress.phase {
        Phase::Done => {
            show::line("done: the node has this config, and is well")?;
            Ok(WELL)
        }
        Phase::WaitsForBoot | Phase::Fetched => Ok(WELL),
        Phase::Booting => {
            show::line("the node boots; afterwards: tread node status")?;
            Ok(WELL)
        }
        Phase::Refused => Err(NodeError::Said(progress.message)),
        Phase::WentBack | Phase::Degraded => Ok(NOT_WELL),
        Phase::Writing
        | Phase::Waiting
        | Phase::Staging
        | Phase::Acting
        | Phase::Stopped
        | Phase::Proving
        | Phase::GoingBack => {
            let why = format!(
                "{UNIT} ended in the middle; see journalctl -u {UNIT}, then: tread node resume"
            );
            Err(NodeError::Said(why))
        }
    }
}
