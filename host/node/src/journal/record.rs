//! What an operation is to do, on the disk before anything is done.

use super::entry::{Entry, Made};
use super::error::{JournalError, io_at};
use super::names::{LOG, LOG_ROOM, OPERATION, RECORD, STATE};
use crate::tree::{Folder, Owner};
use serde::{Deserialize, Serialize};
use std::io;
use tread_model::digest::Digest;

/// The version of the journal.
pub const SCHEMA: &str = "tread.dev/journal/v1";

/// What an operation is to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// What it is called, once and for all.
    pub id: String,
    /// What the caller has to know of it after a crash; null if there is nothing more to do
    /// than to write.
    pub order: serde_json::Value,
    /// The operation that waits for a boot, and that this one takes along: it stands again unless this
    /// one is committed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub takes_along: Option<String>,
    /// Where everything new is staged: the path of each stage.
    pub stages: Vec<String>,
    /// The folders that are made, each after the one that it stands in.
    pub made: Vec<Made>,
    /// The names that change, and those that are held.
    pub entries: Vec<Entry>,
}

/// What stands before a record: enough for any version to know whether it is complete,
/// and whether to touch it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) schema: String,
    pub(super) tread: String,
    pub(super) digest: Digest,
}

const OWNER: Owner = Owner { uid: 0, gid: 0, mode: 0o600 };

/// Makes the folder of an operation under a name, with its record. The state before it is whole: a
/// record that is not complete says that nothing was done. The folder's own name is on the
/// disk once the stages are.
pub(super) fn begin(state: &Folder, name: &str, record: &Record) -> Result<Folder, JournalError> {
    let at = state.path_of(name);
    sweep(state, name)?;
    let encoded = |error: serde_json::Error| io_at(&at)(error.into());
    let body = serde_json::to_vec(record).map_err(encoded)?;
    let head = Head {
        schema: SCHEMA.to_owned(),
        tread: env!("CARGO_PKG_VERSION").to_owned(),
        digest: Digest::of(&body),
    };
    let mut bytes = serde_json::to_vec(&head).map_err(encoded)?;
    bytes.push(b'\n');
    bytes.extend_from_slice(&body);
    let written = || {
        state.make_private_folder(name)?;
        let operation = state.folder(name)?;
        let owner = own(operation.stat(".")?.map_or(OWNER, |stat| stat.owner));
        operation.create(RECORD, &bytes, owner, &[])?;
        operation.sync_file(RECORD)?;
        operation.create(LOG, b"", owner, &[])?;
        operation.reserve(LOG, LOG_ROOM)?;
        operation.sync()?;
        Ok(operation)
    };
    written().map_err(io_at(&at))
}

/// Of whoever runs, for nobody else.
fn own(folder: Owner) -> Owner {
    Owner { mode: OWNER.mode, ..folder }
}

/// There is no operation any more, whatever else is left of it.
pub(super) fn forget(state: &Folder) -> Result<(), JournalError> {
    let forgotten = || {
        let operation = state.folder(OPERATION)?;
        operation.remove(RECORD)?;
        operation.sync()
    };
    forgotten().map_err(io_at(STATE))
}

/// Removes what is left under a name of an operation that is over, or that never began.
pub(super) fn sweep(state: &Folder, name: &str) -> Result<(), JournalError> {
    let swept = || {
        if state.stat(name)?.is_none() {
            return Ok(());
        }
        let operation = state.folder(name)?;
        // The record first: without it nothing else means anything.
        operation.remove(RECORD)?;
        for name in operation.names()? {
            match operation.remove(&name) {
                Err(error) if error.kind() == io::ErrorKind::IsADirectory => {}
                removed => removed?,
            }
        }
        match state.remove_folder(name) {
            // Somebody put a folder into it.
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => state.put_aside(name),
            removed => removed,
        }
    };
    swept().map_err(io_at(STATE))
}
