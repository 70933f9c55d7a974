//! Names that have what the booted image ships: another image may ship something else there, which the
//! next boot would bring.

use super::{Label, Ready, Stages, Target, Wanted, stand_apart};
use crate::journal::{Entry, JournalError, Prepared, Shipped, kept};
use crate::shipped::is_as_shipped;
use crate::tree::{Found, Kind, PathError, Reached, Tree};
use std::collections::BTreeSet;
use std::io;

/// Has the names held that the config sets to what the booted image ships, for a boot into another
/// deployment. What cannot be changed here is not held: it is held against the config after that boot.
pub fn hold(
    tree: &Tree,
    ready: &mut Ready<'_>,
    pinned: Vec<Target<'static>>,
    label: &Label<'_>,
) -> Result<(), JournalError> {
    let of_config: BTreeSet<&str> = pinned.iter().map(|target| target.path.as_str()).collect();
    for entry in &mut ready.record.entries {
        if is_as_shipped(tree, &entry.path, &entry.new)? {
            let is_set = of_config.contains(entry.path.as_str());
            entry.shipped = Some(if is_set { Shipped::Config } else { Shipped::Image });
        }
    }
    let changes: BTreeSet<String> =
        ready.record.entries.iter().map(|entry| entry.path.clone()).collect();
    let known = ready.record.clone();
    let mut stages = Stages::of(tree, &known)?;
    for target in pinned.into_iter().filter(|target| !changes.contains(&target.path)) {
        hold_one(tree, ready, &mut stages, (target, label))?;
    }
    stand_apart(&ready.record)
}

fn hold_one(
    tree: &Tree,
    ready: &mut Ready<'_>,
    stages: &mut Stages<'_>,
    (target, label): (Target<'static>, &Label<'_>),
) -> Result<(), JournalError> {
    let Target { path, wanted, .. } = target;
    let failed = |error| JournalError::from(PathError::io(&path, error));
    let (folder, name) = Tree::split(&path)?;
    let Reached { folder, missing } = tree.reach(folder)?;
    let there = match missing.is_empty() {
        true => folder.stat(name).map_err(failed)?,
        false => None,
    };
    let own = folder.own_stat().map_err(failed)?;
    let new = wanted.seen();
    let old = match there {
        Some(_) => folder.see(name).map_err(failed)?,
        None => Found::Absent,
    };
    let immutable = own.immutable || there.is_some_and(|there| there.immutable);
    if old != new || immutable {
        return Ok(());
    }
    let stage = stages.index(&mut ready.record, &folder, own.mount).map_err(failed)?;
    let prepared = match wanted {
        Wanted::File { bytes, owner } => {
            let attributes = kept(&folder, name, &owner, &new).map_err(failed)?;
            Prepared::File { bytes, attributes }
        }
        Wanted::Link { .. } => {
            let attributes = label(&folder.path_of(name), Kind::Link).map_err(io::Error::other);
            Prepared::Link { attributes: attributes.map_err(failed)?.into_iter().collect() }
        }
        Wanted::Password { .. } | Wanted::Absent => Prepared::Nothing,
    };
    let mut real = folder.path().trim_end_matches('/').to_owned();
    for name in &missing {
        real = format!("{real}/{name}");
    }
    let (name, shipped) = (name.to_owned(), Some(Shipped::Config));
    let entry = Entry { path, folder: real, name, password_of: None, stage, old, new, shipped };
    ready.record.entries.push(entry);
    ready.new.push(prepared);
    Ok(())
}
