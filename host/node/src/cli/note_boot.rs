//! `tread node note-boot`: by what it notes, a machine that goes down in each boot is told apart from one
//! that somebody boots.

use super::error::NodeError;
use super::show;
use super::system::WELL;
use crate::journal::{Journal, JournalError};
use crate::operation::note_boot;
use crate::tree::Tree;
use clap::Args;
use std::path::Path;

pub(super) const EXAMPLES: &str = "\
Examples:
  tread node note-boot               as tread-boot.service does, before anything else is done
  tread node note-boot --ends        and as this boot ends

Exit codes:
  0  it is noted, or nothing stands
  1  it could not be noted";

/// Which end of the boot.
#[derive(Debug, Args)]
pub struct NoteBootArgs {
    /// The boot ends, in order
    #[arg(long)]
    ends: bool,
}

impl NoteBootArgs {
    pub(super) fn run(&self) -> Result<u8, NodeError> {
        let tree = Tree::open(Path::new("/"))?;
        // Whoever carries an operation out may be about to end as well.
        let opened = match self.ends {
            true => Journal::open_soon(&tree),
            false => Journal::open(&tree),
        };
        let journal = match opened {
            Err(JournalError::Busy) => {
                show::line("not noted: somebody else has the journal")?;
                return Ok(WELL);
            }
            opened => opened?,
        };
        if let Some(standing) = journal.standing()? {
            note_boot(&tree, &journal, &standing, self.ends)?;
        }
        Ok(WELL)
    }
}
