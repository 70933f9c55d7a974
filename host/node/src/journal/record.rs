//! What an operation is to do, on the disk before anything is done.

use super::entry::{Entry, Made};
use super::{JournalError, LOG, OPERATION, RECORD, STATE, Standing, io_at, log};
use crate::tree::{Folder, Owner};
use serde::{Deserialize, Serialize};
use tread_model::digest::Digest;

/// The version of the journal.
pub const SCHEMA: &str = "tread.dev/journal/v1";
/// More than any record has: a file of this size is something else.
pub(super) const MOST: u64 = 256 << 20;

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
    /// The names that change.
    pub entries: Vec<Entry>,
}

/// What stands before a record: enough for any version to know whether it is complete,
/// and whether to touch it.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    schema: String,
    tread: String,
    digest: Digest,
}

const OWNER: Owner = Owner { uid: 0, gid: 0, mode: 0o600 };

/// Makes the folder of an operation, with its record. The state before it is whole: a
/// record that is not complete says that nothing was done.
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
        operation.append(LOG, b"")?;
        operation.sync()?;
        state.sync()?;
        Ok(operation)
    };
    written().map_err(io_at(&at))
}

/// Of whoever runs, for nobody else.
fn own(folder: Owner) -> Owner {
    Owner { mode: OWNER.mode, ..folder }
}

/// The operation that stands; nothing if there is none, or if it did nothing yet.
pub(super) fn standing(state: &Folder) -> Result<Option<Standing>, JournalError> {
    let at = state.path_of(OPERATION);
    if state.stat(OPERATION).map_err(io_at(&at))?.is_none() {
        return Ok(None);
    }
    let operation = state.folder(OPERATION).map_err(io_at(&at))?;
    let read = |name: &str| operation.read(name, MOST).map_err(io_at(&at));
    // It is there before anything is done, and goes only once all is over.
    let Some(log) = read(LOG)? else { return Ok(None) };
    let damaged = |why: &str| JournalError::Damaged { why: why.to_owned() };
    let Some(bytes) = read(RECORD)? else { return Ok(None) };
    let line = bytes.iter().position(|byte| *byte == b'\n');
    let (head, body) = line.and_then(|at| bytes.split_at_checked(at)).unwrap_or_default();
    let body = body.get(1..).unwrap_or_default();
    let head: Head = match serde_json::from_slice(head) {
        Ok(head) => head,
        // It was cut short before anything followed from it.
        Err(_) if log.is_empty() => return Ok(None),
        Err(error) => return Err(damaged(&error.to_string())),
    };
    if head.schema != SCHEMA {
        return Err(JournalError::Newer { version: head.tread });
    }
    if head.digest != Digest::of(body) {
        return if log.is_empty() { Ok(None) } else { Err(damaged("its digest is another one")) };
    }
    let newer = |_| JournalError::Newer { version: head.tread.clone() };
    let record = serde_json::from_slice(body).map_err(|error| damaged(&error.to_string()))?;
    let notes = log::read(&log).map_err(newer)?;
    Ok(Some(Standing { record, notes }))
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
            operation.remove(&name)?;
        }
        state.remove_folder(OPERATION)
    };
    swept().map_err(io_at(STATE))
}
