//! The system that a command is about, and how a command ends.

use super::elsewhere;
use super::error::NodeError;
use crate::host::ThisHost;
use crate::operation::{Node, Patience};
use crate::permits::Permits;
use crate::prepare::Label;
use crate::progress::Reporter;
use crate::systemd::Manager;
use crate::terms::Terms;
use crate::tree::{PathError, Tree};
use clap::Args;
use std::io;
use std::path::{Path, PathBuf};
use tokio::signal::unix::{SignalKind, signal};

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

    /// The tree of another system.
    pub(super) fn path(&self) -> Option<&Path> {
        self.root.as_deref()
    }

    /// A text whose commands are about this system.
    pub(super) fn named(&self, text: &str) -> String {
        self.path().map_or_else(|| text.to_owned(), |root| elsewhere::named(text, root))
    }

    pub(super) fn tree(&self) -> Result<Tree, NodeError> {
        let root = self.root.as_deref().unwrap_or(Path::new("/"));
        Ok(Tree::open(root).map_err(|error| PathError::io(&root.display().to_string(), error))?)
    }

    pub(super) fn host(&self, tree: &Tree) -> Result<ThisHost, NodeError> {
        Ok(ThisHost::read(tree, self.runs())?)
    }
}

pub(super) fn blocking<T>(future: impl Future<Output = T>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(future))
}

/// As [`blocking`]; a process that gets a signal to end does so where nothing is half done, which
/// is wherever it waits.
pub(super) fn until_terminated<T>(future: impl Future<Output = T>) -> Result<T, NodeError> {
    blocking(async {
        let mut terminated = signal(SignalKind::terminate())?;
        let mut interrupted = signal(SignalKind::interrupt())?;
        let mut hung_up = signal(SignalKind::hangup())?;
        tokio::select! {
            done = future => Ok(done),
            _ = terminated.recv() => Err(NodeError::Terminated),
            _ = interrupted.recv() => Err(NodeError::Terminated),
            _ = hung_up.recv() => Err(NodeError::Terminated),
        }
    })?
}

/// This node, for an operation on these terms.
pub(super) fn this_node<'n>(
    tree: &Tree,
    (host, label): (&'n ThisHost, &'n Label<'n>),
    manager: &'n Manager,
    (permits, terms): (&'n dyn Permits, Terms),
    reporter: &'n dyn Reporter,
) -> Node<'n> {
    let (patience, kernel) = (Patience::default(), &Manager::reboot_by_kernel);
    let tree = tree.clone();
    Node { tree, host, label, manager, permits, reporter, terms, patience, kernel }
}
