//! Why nothing can be rendered for a pool.

use super::size::TooLarge;
use crate::config::Fault;
use crate::problem::Problems;
use crate::text::{and_more, listed};
use std::fmt;

/// How many problems are listed.
const MOST_LISTED: usize = 5;

/// Why nothing can be rendered for a pool. No contents are in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unrendered {
    /// The pool selects nothing.
    #[error(
        "the pool {pool} selects no MachineConfig: mend its machineConfigSelector, or the labels \
         of the MachineConfigs. Until then its nodes keep what they have"
    )]
    NoSources {
        /// Its name.
        pool: String,
    },
    /// Objects that cannot be read.
    #[error("what the pool is made of cannot be read. {}", Lines::of(&.0.0))]
    Unreadable(Problems),
    /// What can be read and would reach no node.
    #[error("what the pool is made of cannot be rendered. {}", Lines::of(.0))]
    Rejected(Vec<Rejection>),
    /// What the API server cannot hold.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// What was rendered would be read as something else: nobody gets it.
    #[error(
        "what was rendered would be read as something else than what it was rendered from ({}), \
         so that nothing is rolled out. That is a defect of tread: report it with these \
         MachineConfigs",
        listed(ids, MOST_LISTED)
    )]
    ReadsOtherwise {
        /// What differs, by the ids of changes.
        ids: Vec<String>,
    },
}

impl Unrendered {
    /// A word for it, as conditions have.
    pub fn word(&self) -> &'static str {
        match self {
            Unrendered::NoSources { .. } => "NoMachineConfigs",
            Unrendered::Unreadable(_) => "Unreadable",
            Unrendered::Rejected(_) => "Rejected",
            Unrendered::TooLarge(_) => "TooLarge",
            Unrendered::ReadsOtherwise { .. } => "ReadsOtherwise",
        }
    }
}

/// A field that cannot be rendered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// The MachineConfig that it stands in; empty where several say it together.
    pub object: String,
    /// Its path: `spec.config.storage.files[3].path`.
    pub field: String,
    /// Why, and the way out.
    pub reason: String,
}

impl Rejection {
    pub(super) fn of(fault: &Fault, object: String) -> Rejection {
        Rejection { object, field: fault.field.clone(), reason: fault.reason.clone() }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.object.is_empty() {
            write!(f, "{}, ", self.object)?;
        }
        write!(f, "{}: {}", self.field, self.reason)
    }
}

/// The first few of many problems, one behind the other.
struct Lines<'p, T>(&'p [T]);

impl<'p, T> Lines<'p, T> {
    fn of(all: &'p [T]) -> Lines<'p, T> {
        Lines(all)
    }
}

impl<T: fmt::Display> fmt::Display for Lines<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first: Vec<String> = self.0.iter().take(MOST_LISTED).map(T::to_string).collect();
        write!(f, "{}{}", first.join("; "), and_more(self.0.len(), MOST_LISTED))
    }
}
