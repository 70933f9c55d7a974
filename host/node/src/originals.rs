//! What stood under a path before tread: it comes back when no config has the path any
//! more.

use crate::journal::{Owned, STATE};
use crate::prepare::{Target, Wanted};
use crate::shadow::{self, Hash, Shadow};
use crate::shipped;
use crate::tree::{Kind, Owner, PathError, Tree};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tread_model::digest::Digest;

/// What stood there, by path. A path that is missing here had nothing that tread knows of.
pub type Originals = BTreeMap<String, Original>;

/// The largest file that is kept.
const MOST: u64 = 64 << 20;
/// Where copies of files are, in tread's own folder.
const FOLDER: &str = "originals";

/// What stood under a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "lowercase")]
pub enum Original {
    /// A file, whose copy is kept.
    File {
        /// Whose it was.
        owner: Owner,
    },
    /// A link.
    Link {
        /// Where it led.
        target: String,
    },
    /// The password of a user, whose hash is kept as a copy.
    Password,
}

/// Where the copy of a file is.
fn copy_of(path: &str) -> String {
    format!("{STATE}/{FOLDER}/{}", Digest::of(path.as_bytes()).hex())
}

/// Keeps what stands under a path that a config takes for the first time: what is noted,
/// and the copy that has to be made.
pub fn keep(
    tree: &Tree,
    path: &str,
) -> Result<Option<(Original, Option<Target<'static>>)>, PathError> {
    let failed = |error| PathError::io(path, error);
    if let Some(user) = shadow::user_of(path) {
        let Some((folder, name)) = tree.place(shadow::FILE)? else { return Ok(None) };
        let there = Shadow::read(&folder, name).map_err(failed)?;
        let hash = there.and_then(|there| there.hash(user).ok());
        let bytes = hash.map(|hash| hash.as_bytes().to_vec());
        return Ok(bytes.map(|bytes| (Original::Password, Some(copy(path, bytes)))));
    }
    let Some((folder, name)) = tree.place(path)? else { return Ok(None) };
    let Some(stat) = folder.stat(name).map_err(failed)? else { return Ok(None) };
    match stat.kind {
        Kind::Link => {
            let target = folder.link(name).map_err(failed)?;
            Ok(Some((Original::Link { target }, None)))
        }
        Kind::File => {
            let Some(bytes) = folder.read(name, MOST).map_err(failed)? else { return Ok(None) };
            Ok(Some((Original::File { owner: stat.owner }, Some(copy(path, bytes)))))
        }
        Kind::Folder | Kind::Other => Ok(None),
    }
}

/// The copy of what stood under a path, for root alone.
fn copy(path: &str, bytes: Vec<u8>) -> Target<'static> {
    let private = Owner { uid: 0, gid: 0, mode: 0o600 };
    let wanted = Wanted::File { bytes: bytes.into(), owner: private };
    let folders = Owned::User(Owner { mode: 0o700, ..private });
    Target { path: copy_of(path), wanted, folders }
}

/// What has to be done so that a path is as it was before tread, else as the system ships
/// it, else free.
pub fn restore(
    tree: &Tree,
    originals: &Originals,
    path: &str,
) -> Result<Vec<Target<'static>>, PathError> {
    if let Some(user) = shadow::user_of(path) {
        let kept = match originals.get(path) {
            Some(_) => tree.read(&copy_of(path), MOST)?.and_then(Hash::kept),
            None => None,
        };
        // A user who needed no password before gets none that anybody could use.
        let hash = kept.filter(|hash| !hash.is_open()).unwrap_or_else(Hash::locked);
        let wanted = Wanted::Password { user: user.to_owned(), hash };
        let restored = Target { path: path.to_owned(), wanted, folders: Owned::Root };
        return Ok(std::iter::once(restored).chain(forget(originals, path)).collect());
    }
    let target = |wanted| Target { path: path.to_owned(), wanted, folders: Owned::Root };
    match originals.get(path) {
        Some(Original::Link { target: to }) => {
            Ok(vec![target(Wanted::Link { target: to.clone() })])
        }
        Some(Original::File { owner }) => {
            let copy = copy_of(path);
            let missing = || PathError::io(&copy, std::io::ErrorKind::NotFound.into());
            let bytes = tree.read(&copy, MOST)?.ok_or_else(missing)?;
            let restored = target(Wanted::File { bytes: bytes.into(), owner: *owner });
            Ok(std::iter::once(restored).chain(forget(originals, path)).collect())
        }
        Some(Original::Password) | None => Ok(vec![target(shipped(tree, path)?)]),
    }
}

/// What has to be done so that no copy of what stood under a path is left.
pub fn forget(originals: &Originals, path: &str) -> Option<Target<'static>> {
    match originals.get(path)? {
        Original::File { .. } | Original::Password => {
            let (path, wanted) = (copy_of(path), Wanted::Absent);
            Some(Target { path, wanted, folders: Owned::Root })
        }
        Original::Link { .. } => None,
    }
}

/// What the system ships for a path below /etc: ostree has it in /usr/etc.
fn shipped(tree: &Tree, path: &str) -> Result<Wanted<'static>, PathError> {
    let Some(from) = shipped::path_of(path) else { return Ok(Wanted::Absent) };
    let failed = |error| PathError::io(&from, error);
    let Some((folder, name)) = tree.place(&from)? else { return Ok(Wanted::Absent) };
    let Some(stat) = folder.stat(name).map_err(failed)? else { return Ok(Wanted::Absent) };
    Ok(match stat.kind {
        Kind::File => match folder.read(name, MOST).map_err(failed)? {
            Some(bytes) => Wanted::File { bytes: bytes.into(), owner: stat.owner },
            None => Wanted::Absent,
        },
        Kind::Link => Wanted::Link { target: folder.link(name).map_err(failed)? },
        Kind::Folder | Kind::Other => Wanted::Absent,
    })
}
