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

/// Makes the folder of an operation, with its record. The state before it is whole: a
/// record that is not complete says that nothing was done. The folder's own name is on the
/// disk once the stages are.
pub(super) fn begin(state: &Folder, record: &Record) -> Result<Folder, JournalError> {
    let at = state.path_of(OPERATION);
    sweep(state)?;
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
        state.make_private_folder(OPERATION)?;
        let operation = state.folder(OPERATION)?;
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

/// Removes what is left of an operation that is over, or that never began.
pub(super) fn sweep(state: &Folder) -> Result<(), JournalError> {
    let swept = || {
        if state.stat(OPERATION)?.is_none() {
            return Ok(());
        }
        let operation = state.folder(OPERATION)?;
        // The record first: without it nothing else means anything.
        operation.remove(RECORD)?;
        for name in operation.names()? {
            match operation.remove(&name) {
                Err(error) if error.kind() == io::ErrorKind::IsADirectory => {}
                removed => removed?,
            }
        }
        match state.remove_folder(OPERATION) {
            // Somebody put a folder into it.
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                state.put_aside(OPERATION)
            }
            removed => removed,
        }
    };
    swept().map_err(io_at(STATE))
}
