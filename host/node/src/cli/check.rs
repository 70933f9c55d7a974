//! `tread node check`: everything on the disk against the config last applied.

use super::error::NodeError;
use super::show;
use super::system::{BUS, NOT_WELL, RootArgs, WELL, blocking};
use crate::applied::Applied;
use crate::change::{OrderError, wanted};
use crate::drift::{Drift, drift, noted};
use crate::operation::{OperationError, drift_of_os};
use crate::os::{Os, OsLimits, Wish};
use crate::progress::{Phase, Progress};
use crate::systemd::{Limits, Manager};
use crate::tree::Tree;

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
        let waits = Progress::read(&tree)?.is_some_and(|it| it.phase == Phase::WaitsForBoot);
        let mut of_os = Vec::new();
        if self.runs() && waits {
            show::line("what only a boot brings into effect is staged, and waits for one")?;
        } else if self.runs() {
            of_os = of_the_system(&tree, &Wish::of(&config))?;
        }
        of_os.retain(|drift| !applied.accepted.contains_key(&drift.path));
        for Drift { path, differs, .. } in found.iter().chain(&of_os) {
            show::line(&format!("{path}: {differs}"))?;
        }
        for Drift { path, differs, .. } in noted(&tree, &desired)? {
            show::line(&format!("noted, since others own it: {path}: {differs}"))?;
        }
        show::line(&format!("{} of {} paths differ", found.len(), desired.pieces.len()))?;
        Ok(if found.is_empty() && of_os.is_empty() { WELL } else { NOT_WELL })
    }
}

/// What of the operating system is not as a config wants it.
pub(super) fn of_the_system(tree: &Tree, wish: &Wish) -> Result<Vec<Drift>, NodeError> {
    Ok(blocking(asked_by("check", tree, wish))??)
}

/// The same for who asks by this name, over a connection to the bus that nobody keeps.
pub(super) async fn asked_by(
    operation: &str,
    tree: &Tree,
    wish: &Wish,
) -> Result<Vec<Drift>, OperationError> {
    let manager = Manager::new(BUS, Limits::default());
    let os = Os { tree, manager: &manager, limits: OsLimits::default(), operation };
    drift_of_os(&os, wish).await
}
