//! The config last applied here: what a plan has to begin at.

use crate::documents::Documents;
use crate::drift::Accepted;
use crate::journal::{Owned, STATE};
use crate::json::place;
use crate::originals::Originals;
use crate::prepare::{Target, Wanted};
use crate::tree::{Kind, Owner, PathError, Tree};
use serde::{Deserialize, Serialize};

/// The version of the file.
const SCHEMA: &str = "tread.dev/applied/v1";
/// More than any config has.
const MOST: u64 = 256 << 20;

/// What was applied here last, and what tread found before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Applied {
    schema: String,
    /// The version of tread that wrote this.
    pub tread: String,
    /// The config.
    pub documents: Documents,
    /// Where the disk differs from it, as an admin accepted.
    pub accepted: Accepted,
    /// What was there before tread.
    pub originals: Originals,
    /// The claim with which this node registers, while its config has no room for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<String>,
}

/// Why it is not known what was applied.
#[derive(Debug, thiserror::Error)]
pub enum AppliedError {
    /// It cannot be read.
    #[error(transparent)]
    Path(#[from] PathError),
    /// It is damaged.
    #[error(
        "{STATE}/applied cannot be read ({}), so nobody knows what this node has; let tread take it over again: tread node adopt --config CONFIG",
        place(.0)
    )]
    Damaged(serde_json::Error),
    /// Somebody put something else there.
    #[error(
        "{STATE}/applied is no file, so nobody knows what this node has; let tread take it over again, which puts it aside: tread node adopt --config CONFIG"
    )]
    NoFile,
    /// A newer version wrote it.
    #[error("{STATE}/applied was written by tread {0}; use that version or a later one")]
    Newer(String),
}

impl Applied {
    /// What is known right after a config was applied.
    pub fn new(documents: Documents, accepted: Accepted, originals: Originals) -> Applied {
        let (schema, tread) = (SCHEMA.to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        Applied { schema, tread, documents, accepted, originals, claim: None }
    }

    /// And with the claim that is kept meanwhile.
    #[must_use]
    pub fn keeping(self, claim: Option<String>) -> Applied {
        Applied { claim, ..self }
    }

    /// What was applied last; nothing if tread never managed this node.
    pub fn read(tree: &Tree) -> Result<Option<Applied>, AppliedError> {
        #[derive(Deserialize)]
        struct Head {
            schema: String,
            tread: String,
        }
        if is_no_file(tree)? {
            return Err(AppliedError::NoFile);
        }
        let Some(bytes) = tree.read(&path(), MOST)? else { return Ok(None) };
        let head: Head = serde_json::from_slice(&bytes).map_err(AppliedError::Damaged)?;
        if head.schema != SCHEMA {
            return Err(AppliedError::Newer(head.tread));
        }
        serde_json::from_slice(&bytes).map_err(AppliedError::Damaged).map(Some)
    }

    /// What somebody put in its place is put aside; whether there was something.
    pub fn put_aside(tree: &Tree) -> Result<bool, PathError> {
        if !is_no_file(tree)? {
            return Ok(false);
        }
        let path = path();
        let Some((folder, name)) = tree.place(&path)? else { return Ok(false) };
        folder.put_aside(name).map_err(|error| PathError::io(&path, error))?;
        Ok(true)
    }

    /// The file that says so: it changes together with all others.
    pub fn target(&self) -> Target<'static> {
        // Text keys and plain data: nothing in it can fail to be written.
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        let wanted = Wanted::File { bytes: bytes.into(), owner: OWNER };
        Target { path: path(), wanted, folders: Owned::Root }
    }
}

/// Whether something stands in its place that is no file.
fn is_no_file(tree: &Tree) -> Result<bool, PathError> {
    let path = path();
    let Some((folder, name)) = tree.place(&path)? else { return Ok(false) };
    let there = folder.stat(name).map_err(|error| PathError::io(&path, error))?;
    Ok(there.is_some_and(|there| there.kind != Kind::File))
}

const OWNER: Owner = Owner { uid: 0, gid: 0, mode: 0o600 };

fn path() -> String {
    format!("{STATE}/applied")
}
