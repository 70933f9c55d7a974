//! Why a command came to nothing.

use super::elsewhere::named;
use super::files::FileError;
use crate::applied::AppliedError;
use crate::change::OrderError;
use crate::host::HostError;
use crate::journal::JournalError;
use crate::operation::OperationError;
use crate::operation_unit::UnitError;
use crate::orders::BadOrder;
use crate::tree::PathError;
use crate::watch::ServiceError;
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use tread_model::plan::PlanFault;
use tread_model::problem::Problems;

/// Why a command came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// A file that was named cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The host is not known.
    #[error(transparent)]
    Host(#[from] HostError),
    /// What was applied last is not known.
    #[error(transparent)]
    Applied(#[from] AppliedError),
    /// A config cannot be read.
    #[error("{0}")]
    Config(#[from] Problems),
    /// The plan is none.
    #[error(transparent)]
    Plan(#[from] PlanFault),
    /// It is not carried out.
    #[error(transparent)]
    Operation(#[from] OperationError),
    /// It was not begun, or was gone back from: as the unit that carried it out says.
    #[error("{0}")]
    Said(String),
    /// Another order had its id.
    #[error(
        "an order that has ended has the id {0}, and it was another one; give this one an id of its own"
    )]
    IdIsTaken(String),
    /// A signal came.
    #[error("it was told to end; what it began stands, and is gone on with by tread node resume")]
    Terminated,
    /// The order is none.
    #[error(transparent)]
    Order(#[from] BadOrder),
    /// The unit that carries it out was not started, or is not followed.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// A path leads nowhere.
    #[error(transparent)]
    Path(#[from] PathError),
    /// Nothing can be watched.
    #[error(transparent)]
    Watch(#[from] ServiceError),
    /// Whoever runs it may not do it.
    #[error("{0}; tread changes and reads a node as root: run this as root")]
    NotRoot(Box<NodeError>),
    /// It is about the tree of another system.
    #[error("{}", named(&error.to_string(), .root))]
    Elsewhere {
        /// What the system, or the part below, said.
        error: Box<NodeError>,
        /// The tree.
        root: PathBuf,
    },
    /// The system does not answer.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl From<OrderError> for NodeError {
    fn from(error: OrderError) -> NodeError {
        NodeError::Operation(error.into())
    }
}

impl From<JournalError> for NodeError {
    fn from(error: JournalError) -> NodeError {
        NodeError::Operation(error.into())
    }
}

impl NodeError {
    /// The same, where it is about the tree of another system.
    pub(super) fn about(self, root: Option<&Path>) -> NodeError {
        match root {
            Some(root) => NodeError::Elsewhere { error: Box::new(self), root: root.to_owned() },
            None => self,
        }
    }

    /// The same, with what to do about it where only root may do it.
    pub(super) fn or_not_root(self) -> NodeError {
        let mut cause: Option<&(dyn Error + 'static)> = Some(&self);
        while let Some(error) = cause {
            let io = error.downcast_ref::<io::Error>();
            if io.is_some_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
                && !rustix::process::geteuid().is_root()
            {
                return NodeError::NotRoot(Box::new(self));
            }
            cause = match io {
                // Its own cause is what it holds.
                Some(error) => error.get_ref().map(|held| held as &(dyn Error + 'static)),
                None => error.source(),
            };
        }
        self
    }
}
