//! `tread node check`: everything on the disk against the config last applied.

use super::error::NodeError;
use super::{NOT_WELL, RootArgs, WELL, show};
use crate::applied::Applied;
use crate::change::{OrderError, wanted};
use crate::drift::{Drift, drift, noted};

pub(super) const EXAMPLES: &str = "\
Examples:
  tread node check                   what differs from the config last applied

Exit codes:
  0  nothing
  1  it cannot be checked
  5  the paths that were listed";

impl RootArgs {
    pub(super) fn check(&self) -> Result<u8, NodeError> {
        let tree = self.tree()?;
        let applied = Applied::read(&tree)?.ok_or(OrderError::Unknown)?;
        let config = applied.documents.config()?;
        let desired = wanted(&config, &self.host(&tree)?)?;
        let found = drift(&tree, &desired, &applied.accepted)?;
        for Drift { path, differs, .. } in &found {
            show::line(&format!("{path}: {differs}"))?;
        }
        for Drift { path, differs, .. } in noted(&tree, &desired)? {
            show::line(&format!("noted, since others own it: {path}: {differs}"))?;
        }
        show::line(&format!("{} of {} paths differ", found.len(), desired.pieces.len()))?;
        Ok(if found.is_empty() { WELL } else { NOT_WELL })
    }
}
