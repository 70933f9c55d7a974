//! What an operation that was given up leaves to an admin: kept beside the journal until it is
//! mended.

use super::names::STATE;
use crate::tree::{Folder, Found, Kind, Owner, PathError, Tree};
use serde::{Deserialize, Serialize};
use std::io;

const FILE: &str = "given-up";
const MOST: u64 = 16 << 20;

/// One path that an admin has to see to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByHand {
    /// The operation that was given up.
    pub operation: String,
    /// The path.
    pub path: String,
    /// Why it could not be settled, and what to do, without contents.
    pub why: String,
    /// What stands there; nothing where that says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<Found>,
    /// What should stand there, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub right: Option<Found>,
}

impl ByHand {
    /// Whether somebody saw to it, by what stands there now.
    pub fn is_mended(&self, there: &Found) -> bool {
        self.right.as_ref() == Some(there) || self.left.as_ref().is_some_and(|left| left != there)
    }

    /// All that was left, mended or not. What cannot be read is to be looked at itself.
    pub fn read(tree: &Tree) -> Result<Vec<ByHand>, PathError> {
        let path = format!("{STATE}/{FILE}");
        let Some((folder, name)) = tree.place(&path)? else { return Ok(Vec::new()) };
        let there = folder.stat(name).map_err(|error| PathError::io(&path, error))?;
        let Some(there) = there else { return Ok(Vec::new()) };
        let bytes = match there.kind {
            Kind::File => folder.read(name, MOST).map_err(|error| PathError::io(&path, error))?,
            _ => None,
        };
        let all = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let why = "tread keeps there what is left by hand, and it cannot be read; look at it, then remove it";
        let (operation, why) = ("unknown".to_owned(), why.to_owned());
        Ok(all.unwrap_or_else(|| vec![ByHand { operation, path, why, left: None, right: None }]))
    }

    /// Keeps what was left besides what is kept already.
    pub(super) fn add(tree: &Tree, state: &Folder, all: &[ByHand]) -> Result<(), PathError> {
        if all.is_empty() {
            return Ok(());
        }
        let is_new = |known: &ByHand| !all.iter().any(|it| it.path == known.path);
        let mut kept = ByHand::read(tree).unwrap_or_default();
        let own = format!("{STATE}/{FILE}");
        kept.retain(|known| is_new(known) && known.path != own);
        kept.extend_from_slice(all);
        let written = || -> io::Result<()> {
            let owner = Owner { mode: 0o600, ..state.own_stat()?.owner };
            let next = format!("{FILE}.next");
            state.remove_own(&next)?;
            state.create(&next, &serde_json::to_vec(&kept)?, owner, &[])?;
            state.sync_file(&next)?;
            state.replace_own(&next, FILE)?;
            state.sync()
        };
        written().map_err(|error| PathError::io(&own, error))
    }
}
