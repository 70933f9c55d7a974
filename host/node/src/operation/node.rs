//! A node, how an operation on it ends, and what the operation knows of itself.

use crate::change::OrderError;
use crate::desired::Host;
use crate::journal::{JournalError, Standing};
use crate::os::{Due, OsError, OsLimits};
use crate::permits::Permits;
use crate::prepare::Label;
use crate::progress::Reporter;
use crate::systemd::{Manager, Problem, Reboot, Unable};
use crate::terms::Terms;
use crate::tree::{PathError, Tree};
use serde::{Deserialize, Serialize};
use std::io;
use std::time::Duration;
use tread_model::plan::VerifiablePlan;

/// A node, and all that an operation on it needs.
pub struct Node<'n> {
    /// Its files.
    pub tree: Tree,
    /// What is known of its users and units.
    pub host: &'n dyn Host,
    /// How its files are labelled.
    pub label: &'n Label<'n>,
    /// Its systemd.
    pub manager: &'n Manager,
    /// Who says whether something may be done now.
    pub permits: &'n dyn Permits,
    /// Who is told how far it is.
    pub reporter: &'n dyn Reporter,
    /// On which terms a new operation is carried out.
    pub terms: Terms,
    /// How long things may take.
    pub patience: Patience,
    /// The last resort to boot.
    pub kernel: &'n dyn Fn() -> io::Result<()>,
}

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// How a boot is asked for.
    pub reboot: Reboot,
    /// How long what changes the operating system may take.
    pub os: OsLimits,
    /// For how long it counts that an API server was reached, or was not.
    pub recently: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        let (reboot, os) = (Reboot::default(), OsLimits::default());
        Patience { reboot, os, recently: Duration::from_secs(60) }
    }
}

/// How an operation ended, as far as this process is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// There was none.
    Nothing,
    /// The node has the new config, and is well.
    Done,
    /// The node has the new config, and is well; a part of it takes effect with the next
    /// boot, which somebody else has to cause.
    WaitsForBoot,
    /// The node has the old config again.
    WentBack {
        /// The reason, in words.
        because: String,
    },
    /// The node is not well, and tread does nothing more by itself.
    Degraded {
        /// The reason, in words.
        because: String,
    },
}

/// Why the steps of a plan were not carried out to the last one.
pub(super) enum Stopped {
    /// One of them failed, and why.
    Failed(String),
    /// The node was cut off before all of them were permitted, and from what.
    CutOff(String),
}

/// Why an operation did not begin, or does not go on. Nothing was told to any unit.
#[derive(Debug, thiserror::Error)]
pub enum OperationError {
    /// The order is not carried out.
    #[error(transparent)]
    Order(#[from] OrderError),
    /// The journal stopped.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A path leads nowhere.
    #[error(transparent)]
    Path(#[from] PathError),
    /// systemd was not asked.
    #[error(transparent)]
    Systemd(#[from] Problem),
    /// A step cannot be carried out as planned.
    #[error("the plan cannot be carried out as it is: {}; use the plan that is always allowed (drain, write, reboot, uncordon), by --reboot or --no-drain", listed(.0))]
    Unable(Vec<Unable>),
    /// Drain and uncordon are a controller's.
    #[error(
        "the plan drains the node or uncordons it, which tread cannot do from the node itself; drain it, then say so: --no-drain"
    )]
    Drain,
    /// It takes the system itself.
    #[error(
        "{0} is changed by a tool of the system itself, while it runs; start this system, and apply it there"
    )]
    NotHere(&'static str),
    /// The operating system is not changed.
    #[error("{0}; nothing was written")]
    Os(#[from] OsError),
    /// It may not be done now.
    #[error("it may not be done now: {0}")]
    Forbidden(String),
    /// Nothing more of it may be done, now or later.
    #[error("{0}")]
    Over(String),
    /// The operation that stands was begun by something else.
    #[error("the operation that stands cannot be gone on with: {0}")]
    Foreign(String),
}

/// Why the plan that is always allowed takes the place of one.
pub(super) fn instead(why: &[Unable]) -> String {
    let why = listed(why);
    format!("the plan cannot be carried out as it is ({why}): the node boots instead")
}

fn listed(all: &[Unable]) -> String {
    let texts: Vec<String> = all.iter().map(Unable::to_string).collect();
    texts.join("; ")
}

/// What an operation has to know of itself after a crash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Kept {
    pub(super) plan: VerifiablePlan,
    /// Why this one, where it took another one's place.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) instead: String,
    /// The boot in which it began.
    pub(super) boot: String,
    /// The units that were well before, and have to be well after it.
    pub(super) well: Vec<String>,
    /// Whether the kubelet answered before.
    pub(super) kubelet: bool,
    /// The API server that was reached before, and has to be reached afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reached: Option<String>,
    /// Whether that one proved that it is one.
    #[serde(default)]
    pub(super) proven: bool,
    /// On which terms it goes on.
    #[serde(default)]
    pub(super) terms: Terms,
    /// What of the operating system is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) os: Option<Due>,
}

/// The terms of an operation that stands.
pub fn terms_of(standing: &Standing) -> Terms {
    let kept: Option<Kept> = serde_json::from_value(standing.record.order.clone()).ok();
    kept.map(|kept| kept.terms).unwrap_or_default()
}

/// Why a permit counts for nothing.
pub(super) const ENDED: &str = "the permit ended before it was used";
