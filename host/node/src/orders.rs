//! Orders as files: what is handed over to the unit of the host that carries it out, and what
//! root puts where an agent looks.

use crate::change::Adopt;
use crate::documents::Documents;
use crate::journal::STATE;
use crate::json::place;
use crate::terms::{LONGEST, Terms};
use crate::tree::{Folder, Kind, Owner, PathError, Tree};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::OwnedFd;
use tread_model::digest::Digest;
use tread_model::plan::{Step, VerifiablePlan};

/// The version of the file.
pub const SCHEMA: &str = "tread.dev/order/v1";
/// Where orders are that were handed over.
const FOLDER: &str = "/var/lib/tread/node/orders";
/// More than any order has: a config, and its plan.
const MOST: u64 = 256 << 20;

/// An order, as a file has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Given {
    /// The version of the file.
    pub schema: String,
    /// What it is called, once and for all: no two of a node have the same.
    pub id: String,
    /// What is to be done.
    pub order: Does,
    /// On which terms.
    #[serde(default)]
    pub terms: Terms,
    /// The operation that is ended first if it stands and is degraded: an admin asked to try again.
    /// Nobody knows then which contents the running services have read, so this order has to boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gives_up: Option<String>,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[serde(deny_unknown_fields)]
pub enum Does {
    /// From the config last applied to this one.
    Apply {
        /// The config.
        config: Documents,
        /// The plan; the one that is always allowed where there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        plan: Option<Box<VerifiablePlan>>,
        /// Paths whose difference from the config last applied is accepted.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        accept: Vec<String>,
        /// Whether the node is drained, or need not be.
        #[serde(default)]
        drained: bool,
    },
    /// What this config needs is fetched, as before the node is drained for it; nothing is
    /// changed.
    Fetch {
        /// The config.
        config: Documents,
    },
    /// The node is said to have this config.
    Adopt {
        /// The config.
        config: Documents,
        /// What is done about what differs.
        #[serde(default)]
        differs: Adopt,
        /// Whether the node is drained, or need not be.
        #[serde(default)]
        drained: bool,
        /// Whether an operation that stands is ended first.
        #[serde(default)]
        give_up: bool,
    },
    /// What stands is gone on with.
    Resume,
}

/// Why an order is none.
#[derive(Debug, thiserror::Error)]
pub enum BadOrder {
    /// It cannot be read.
    #[error(transparent)]
    Path(#[from] PathError),
    /// It is not there any more.
    #[error("the order {0} is gone: it has ended, or somebody removed it; give it again")]
    Gone(String),
    /// It is not as an order is.
    #[error("it is not an order of this version of tread ({SCHEMA}): {0}")]
    Form(String),
}

impl Given {
    /// An order on the usual terms: it asks nobody.
    pub fn new(id: &str, order: Does) -> Given {
        let (schema, id) = (SCHEMA.to_owned(), id.to_owned());
        Given { schema, id, order, terms: Terms::default(), gives_up: None }
    }

    /// Reads one. An order of another version, or with fields that this one does not know,
    /// is refused: nothing of it is left out.
    pub fn read(bytes: &[u8]) -> Result<Given, BadOrder> {
        #[derive(Deserialize)]
        struct Head {
            schema: String,
        }
        let form = |error: serde_json::Error| BadOrder::Form(place(&error));
        let head: Head = serde_json::from_slice(bytes).map_err(form)?;
        if head.schema != SCHEMA {
            return Err(BadOrder::Form(format!(
                "it is {}",
                tread_model::text::one_line_within(&head.schema, 100).0
            )));
        }
        let given: Given = serde_json::from_slice(bytes).map_err(form)?;
        if !given.terms.are_possible() {
            return Err(BadOrder::Form(format!(
                "wellFor, proof and cutOff are seconds, {LONGEST} at most, and proof is longer than wellFor"
            )));
        }
        if !given.terms.name_an_address() {
            return Err(BadOrder::Form("apiServer has to be HOST:PORT".to_owned()));
        }
        if given.gives_up.as_ref().is_some_and(|named| !is_a_name(named) || *named == given.id)
            || (given.gives_up.is_some() && !given.order.boots())
        {
            return Err(BadOrder::Form(
                "givesUp names another operation, in an order that boots a drained node".to_owned(),
            ));
        }
        match is_a_name(&given.id) {
            true => Ok(given),
            false => Err(BadOrder::Form(
                "its id has to be 1 to 100 letters, digits, `.`, `_` and `-`, and begin with a letter, a digit or `_`"
                    .to_owned(),
            )),
        }
    }
}

impl Given {
    /// What is to be done, on whatever terms: another order with its id has another one.
    pub fn digest(&self) -> Option<Digest> {
        serde_json::to_vec(&self.order).ok().map(|bytes| Digest::of(&bytes))
    }
}

impl Does {
    /// The config that it is about.
    pub fn config(&self) -> Option<&Documents> {
        match self {
            Does::Apply { config, .. } | Does::Fetch { config } | Does::Adopt { config, .. } => {
                Some(config)
            }
            Does::Resume => None,
        }
    }

    /// Whether the node, which is drained for it, boots.
    fn boots(&self) -> bool {
        match self {
            Does::Apply { plan, drained, .. } => {
                *drained && plan.as_ref().is_none_or(|plan| plan.steps.contains(&Step::Reboot))
            }
            Does::Adopt { differs, drained, .. } => *drained && *differs == Adopt::Overwrite,
            Does::Fetch { .. } | Does::Resume => false,
        }
    }
}

/// Whether it can be the name of a file.
fn is_a_name(id: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    (1..=100).contains(&id.len()) && !id.starts_with(['.', '-']) && id.chars().all(fits)
}

/// The orders that were handed over and are not carried out yet.
pub struct Handed(Folder);

/// That nobody else hands an order over: for as long as it lives.
pub struct Alone {
    _folder: OwnedFd,
}

impl Handed {
    /// Of this node.
    pub fn of(tree: &Tree) -> Result<Handed, PathError> {
        drop(tree.private_folder(STATE)?);
        Ok(Handed(tree.private_folder(FOLDER)?))
    }

    /// Keeps all others from handing an order over while this lives; nothing if another one does so
    /// now.
    pub fn alone(&self) -> Result<Option<Alone>, PathError> {
        let failed = |errno: Errno| PathError::io(self.0.path(), errno.into());
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(&self.0, ".", flags, Mode::empty()).map_err(failed)?;
        match rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Alone { _folder: folder })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(failed(errno)),
        }
    }

    /// Keeps an order for the unit that carries it out. Orders of others stay: the unit forgets all
    /// of them when it ends.
    pub fn put(&self, given: &Given) -> Result<(), PathError> {
        let put = || {
            let owner = Owner { mode: 0o600, ..self.0.own_stat()?.owner };
            self.0.remove_own(&given.id)?;
            let created = self.0.create(&given.id, &serde_json::to_vec(given)?, owner, &[]);
            if created.is_err() {
                // Half of one is none: as where the disk is full.
                self.0.remove(&given.id)?;
            }
            created
        };
        put().map_err(|error: io::Error| PathError::io(self.0.path(), error))
    }

    /// This one was not taken.
    pub fn take_back(&self, id: &str) -> Result<(), PathError> {
        self.0.remove(id).map_err(|error| PathError::io(self.0.path(), error))
    }

    /// The orders that were handed over and have not ended.
    pub fn ids(tree: &Tree) -> Result<Vec<String>, PathError> {
        let Some(folder) = tree.folder(FOLDER)? else { return Ok(Vec::new()) };
        let handed = Handed(folder);
        let ids = || {
            let mut ids = handed.0.names()?;
            ids.retain(|name| is_a_name(name) && !handed.is_folder(name).unwrap_or(true));
            Ok(ids)
        };
        ids().map_err(|error| PathError::io(FOLDER, error))
    }

    /// Whether somebody put a folder there, which is no order.
    fn is_folder(&self, name: &str) -> io::Result<bool> {
        Ok(self.0.stat(name)?.is_some_and(|stat| stat.kind == Kind::Folder))
    }

    /// The order of this name.
    pub fn get(&self, id: &str) -> Result<Given, BadOrder> {
        let failed = |error| PathError::io(self.0.path(), error);
        match self.0.read(id, MOST).map_err(failed)? {
            Some(bytes) => Given::read(&bytes),
            None => Err(BadOrder::Gone(id.to_owned())),
        }
    }

    /// None of them is carried out any more: for who is alone, or carries one out.
    pub fn forget_all(&self) -> Result<(), PathError> {
        let forget = |name: &String| match self.is_folder(name)? {
            true => Ok(()),
            false => self.0.remove(name),
        };
        let forgotten = || self.0.names()?.iter().try_for_each(forget);
        forgotten().map_err(|error| PathError::io(self.0.path(), error))
    }
}

#[cfg(test)]
mod tests;
