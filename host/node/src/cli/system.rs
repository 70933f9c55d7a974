//! The system that a command is about, and how a command ends.

use super::error::NodeError;
use crate::host::ThisHost;
use crate::tree::Tree;
use clap::Args;
use std::io;
use std::path::{Path, PathBuf};

/// The bus of the system that runs.
pub(super) const BUS: &str = "unix:path=/run/dbus/system_bus_socket";

/// It is as it should be, or has become so.
pub(super) const WELL: u8 = 0;
/// It is not: it drifted, went back, or is degraded.
pub(super) const NOT_WELL: u8 = 5;

/// Which system.
#[derive(Debug, Args)]
pub struct RootArgs {
    /// The tree of another system: its files only, no unit is told
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

impl RootArgs {
    pub(super) fn runs(&self) -> bool {
        self.root.is_none()
    }

    pub(super) fn tree(&self) -> Result<Tree, NodeError> {
        Ok(Tree::open(self.root.as_deref().unwrap_or(Path::new("/")))?)
    }

    pub(super) fn host(&self, tree: &Tree) -> Result<ThisHost, NodeError> {
        Ok(ThisHost::read(tree, self.runs())?)
    }
}

pub(super) fn blocking<T>(future: impl Future<Output = T>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(future))
}
