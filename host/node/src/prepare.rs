//! From what is wanted to what has to change: everything that can be known to go wrong
//! does so here, before the first byte is written.

mod held;

pub use held::{Pinned, hold};

use crate::journal::{Entry, JournalError, Made, Owned, Prepared, Record, STAGE, STATE, kept};
use crate::shadow::{self, Hash, Shadow, ShadowError};
use crate::tree::{Attribute, Folder, Found, Kind, Owner, PathError, Reached, Stat, Tree};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use tread_model::digest::Digest;

/// No file system takes a longer name, in bytes; a folder that is yet to be made cannot be asked.
const LONGEST_NAME: usize = 255;

/// What is to stand under a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted<'c> {
    /// A file.
    File {
        /// All that it holds.
        bytes: Cow<'c, [u8]>,
        /// Whose it is.
        owner: Owner,
    },
    /// A symbolic link.
    Link {
        /// Where it leads.
        target: String,
    },
    /// A hash in the line of a user of /etc/shadow, whatever else stands there.
    Password {
        /// Whose.
        user: String,
        /// The hash.
        hash: Hash,
    },
    /// Nothing.
    Absent,
}

impl Wanted<'_> {
    /// What is seen where it stands.
    pub fn seen(&self) -> Found {
        match self {
            Wanted::File { bytes, owner } => {
                Found::File { digest: Digest::of(bytes), owner: *owner }
            }
            Wanted::Link { target } => Found::Link { target: target.clone() },
            Wanted::Password { hash, .. } => hash.seen(),
            Wanted::Absent => Found::Absent,
        }
    }
}

/// What is to stand under a path, and whose the folders are that have to be made for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target<'c> {
    /// The path.
    pub path: String,
    /// What stands there afterwards.
    pub wanted: Wanted<'c>,
    /// Whose the folders are.
    pub folders: Owned,
}

/// The label of a new file, by its path and what it is: an extended attribute, where
/// the host has labels.
pub type Label<'l> = dyn Fn(&str, Kind) -> Result<Option<Attribute>, String> + 'l;

/// An operation, ready to be written.
#[derive(Debug)]
pub struct Ready<'c> {
    /// What the journal keeps.
    pub record: Record,
    /// What is staged, for each of its entries.
    pub new: Vec<Prepared<'c>>,
}

/// What has to change so that every target is as it is wanted: only what differs from
/// what is there.
pub fn prepare<'c>(
    tree: &Tree,
    id: &str,
    targets: Vec<Target<'c>>,
    label: &Label<'_>,
) -> Result<Ready<'c>, JournalError> {
    let record = Record {
        id: id.to_owned(),
        order: serde_json::Value::Null,
        takes_along: None,
        stages: Vec::new(),
        made: Vec::new(),
        entries: Vec::new(),
    };
    let mut ready = Ready { record, new: Vec::new() };
    let mut stages = Stages { tree, id, of_mounts: BTreeMap::new() };
    for Target { path, wanted, folders } in targets {
        if let Wanted::Password { user, hash } = wanted {
            password(tree, &mut ready, &mut stages, (path, user, hash))?;
            continue;
        }
        if path.split('/').any(|name| name.len() > LONGEST_NAME) {
            return Err(JournalError::TooLong { path });
        }
        let failed = |error| JournalError::from(PathError::io(&path, error));
        let Place { folder, missing, name, there, own, old } = place(tree, &path)?;
        let new = wanted.seen();
        if old == new {
            continue;
        }
        may_change(&path, there.as_ref(), &own)?;
        if old == Found::Other {
            let what = "a file larger than any of a config, or a link that is no text,";
            return Err(JournalError::Occupied { path, what });
        }
        let immutable = own.immutable || there.is_some_and(|there| there.immutable);
        may_be_changed(immutable).map_err(failed)?;
        let stage = stages.index(&mut ready.record, &folder, own.mount).map_err(failed)?;
        let kept = match old {
            Found::File { owner, .. } => Some(kept(&folder, name, &owner, &new).map_err(failed)?),
            _ => None,
        };
        // Policies know paths without links.
        let labelled = |real: &str, kind| -> Result<Vec<Attribute>, JournalError> {
            let label = label(real, kind).map_err(io::Error::other);
            Ok(label.map_err(failed)?.into_iter().collect())
        };
        let folder = make(&mut ready.record, &folder, &missing, (folders, stage), labelled)?;
        let real = format!("{}/{name}", folder.trim_end_matches('/'));
        let prepared = match (wanted, kept) {
            (Wanted::File { bytes, .. }, Some(attributes)) => Prepared::File { bytes, attributes },
            (Wanted::File { bytes, .. }, None) => {
                Prepared::File { bytes, attributes: labelled(&real, Kind::File)? }
            }
            (Wanted::Link { .. }, _) => Prepared::Link { attributes: labelled(&real, Kind::Link)? },
            (Wanted::Password { .. } | Wanted::Absent, _) => Prepared::Nothing,
        };
        let (name, password_of, shipped) = (name.to_owned(), None, None);
        let entry = Entry { path, folder, name, password_of, stage, old, new, shipped };
        ready.record.entries.push(entry);
        ready.new.push(prepared);
    }
    stand_apart(&ready.record)?;
    Ok(ready)
}

/// What stands under a path.
struct Place<'p> {
    /// The last folder on the way that is there.
    folder: Folder,
    /// The ones after it, which are not.
    missing: Vec<String>,
    name: &'p str,
    there: Option<Stat>,
    /// The folder's own.
    own: Stat,
    old: Found,
}

fn place<'p>(tree: &Tree, path: &'p str) -> Result<Place<'p>, PathError> {
    let failed = |error| PathError::io(path, error);
    let (folder, name) = Tree::split(path)?;
    let Reached { folder, missing } = tree.reach(folder)?;
    let there = match missing.is_empty() {
        true => folder.stat(name).map_err(failed)?,
        false => None,
    };
    let own = folder.own_stat().map_err(failed)?;
    let old = match there {
        Some(_) => folder.see(name).map_err(failed)?,
        None => Found::Absent,
    };
    Ok(Place { folder, missing, name, there, own, old })
}

/// Has one field of /etc/shadow changed, if it differs.
fn password(
    tree: &Tree,
    ready: &mut Ready<'_>,
    stages: &mut Stages<'_>,
    (path, user, hash): (String, String, Hash),
) -> Result<(), JournalError> {
    let failed = |error| JournalError::from(PathError::io(shadow::FILE, error));
    let missing = || ShadowError::Missing { user: user.clone() };
    let (folder, name) = tree.place(shadow::FILE)?.ok_or_else(missing)?;
    let there = folder.stat(name).map_err(failed)?.ok_or_else(missing)?;
    let own = folder.own_stat().map_err(failed)?;
    may_change(shadow::FILE, Some(&there), &own)?;
    if there.kind != Kind::File {
        let what = there.kind.as_str();
        return Err(JournalError::Occupied { path: shadow::FILE.to_owned(), what });
    }
    let old = Shadow::read(&folder, name).map_err(failed)?.ok_or_else(missing)?.seen(&user)?;
    let new = hash.seen();
    if old == new {
        return Ok(());
    }
    may_be_changed(own.immutable || there.immutable).map_err(failed)?;
    let stage = stages.index(&mut ready.record, &folder, own.mount).map_err(failed)?;
    let (folder, name, password_of) = (folder.path().to_owned(), name.to_owned(), Some(user));
    let shipped = None;
    let entry = Entry { path, folder, name, password_of, stage, old, new, shipped };
    ready.record.entries.push(entry);
    ready.new.push(Prepared::Password { hash, day: shadow::today() });
    Ok(())
}

fn may_be_changed(immutable: bool) -> io::Result<()> {
    match immutable {
        true => {
            Err(io::Error::other("it, or its folder, is immutable; remove that by `chattr -i`"))
        }
        false => Ok(()),
    }
}

/// Whether no two entries are one place, and none stands where a folder is to be for
/// another.
fn stand_apart(record: &Record) -> Result<(), JournalError> {
    let mut places: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    let twice = |path: &str, other: &str| {
        let (path, other) = (path.to_owned(), other.to_owned());
        Err(JournalError::Twice { path, other })
    };
    for entry in &record.entries {
        if let Some(other) = places.insert((&entry.folder, &entry.name), &entry.path) {
            return twice(other, &entry.path);
        }
    }
    for made in &record.made {
        if let Some(path) = places.get(&(made.folder.as_str(), made.name.as_str())) {
            let start = format!("{}/{}", made.folder.trim_end_matches('/'), made.name);
            let below = |entry: &&Entry| Path::new(&entry.folder).starts_with(&start);
            let other = record.entries.iter().find(below);
            return twice(path, other.map_or(&start, |entry| &entry.path));
        }
    }
    Ok(())
}

/// Whether what stands under a path is something that tread replaces.
fn may_change(path: &str, there: Option<&Stat>, folder: &Stat) -> Result<(), JournalError> {
    let occupied = |what| Err(JournalError::Occupied { path: path.to_owned(), what });
    match there {
        Some(there) if there.mount != folder.mount => occupied("a mount point"),
        Some(Stat { kind: kind @ (Kind::Folder | Kind::Other), .. }) => occupied(kind.as_str()),
        _ => Ok(()),
    }
}

/// Has the folders made that are missing, each once; returns where the last one is.
fn make(
    record: &mut Record,
    folder: &Folder,
    missing: &[String],
    (owned, stage): (Owned, usize),
    labelled: impl Fn(&str, Kind) -> Result<Vec<Attribute>, JournalError>,
) -> Result<String, JournalError> {
    let mut at = folder.path().to_owned();
    for name in missing {
        let parent = at.clone();
        at = format!("{}/{name}", parent.trim_end_matches('/'));
        let known = |it: &Made| it.folder == parent && it.name == *name;
        if !record.made.iter().any(known) {
            let attributes = labelled(&at, Kind::Folder)?;
            let made = Made { folder: parent, name: name.clone(), owned, stage, attributes };
            record.made.push(made);
        }
    }
    Ok(at)
}

/// A stage for each mount on which something changes.
struct Stages<'t> {
    tree: &'t Tree,
    id: &'t str,
    of_mounts: BTreeMap<u64, usize>,
}

impl<'t> Stages<'t> {
    /// Those of an operation that has some already.
    fn of(tree: &'t Tree, record: &'t Record) -> Result<Stages<'t>, JournalError> {
        let mut of_mounts = BTreeMap::new();
        for (index, path) in record.stages.iter().enumerate() {
            let Some((parent, _)) = tree.place(path)? else { continue };
            let own = parent.own_stat().map_err(|error| PathError::io(path, error))?;
            of_mounts.insert(own.mount, index);
        }
        Ok(Stages { tree, id: &record.id, of_mounts })
    }
}

impl Stages<'_> {
    /// The stage on a mount, which may be the first use of it.
    fn index(&mut self, record: &mut Record, folder: &Folder, mount: u64) -> io::Result<usize> {
        if let Some(index) = self.of_mounts.get(&mount) {
            return Ok(*index);
        }
        let at = self.place(folder, mount)?;
        let at = if at == "/" { "" } else { &at };
        record.stages.push(format!("{at}/{STAGE}{}", self.id));
        let index = record.stages.len() - 1;
        self.of_mounts.insert(mount, index);
        Ok(index)
    }

    /// Where a mount has its stage: below tread's own folder if that is on it, else in the
    /// highest folder of the mount on the way that can be changed.
    fn place(&self, folder: &Folder, mount: u64) -> io::Result<String> {
        let found = |path: &str| self.tree.folder(path).map_err(io::Error::other);
        let is_on_it = |folder: &Folder| -> io::Result<bool> {
            let stat = folder.own_stat()?;
            Ok(stat.mount == mount && !stat.immutable)
        };
        if let Some(state) = found(STATE)?
            && is_on_it(&state)?
        {
            return Ok(STATE.to_owned());
        }
        let ends = folder.path().match_indices('/').map(|(at, _)| at).skip(1);
        let parents = ends.filter_map(|at| folder.path().get(..at));
        for path in std::iter::once("/").chain(parents) {
            if let Some(parent) = found(path)?
                && is_on_it(&parent)?
            {
                return Ok(path.to_owned());
            }
        }
        Ok(folder.path().to_owned())
    }
}
