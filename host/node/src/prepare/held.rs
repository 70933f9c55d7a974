//! Names that have what the booted image ships: another image may ship something else there, which the
//! next boot would bring.

use super::{Label, Place, Ready, Stages, Target, Wanted, place, stand_apart};
use crate::journal::{Entry, JournalError, Prepared, Shipped, kept};
use crate::shipped::{is_as_shipped, is_below};
use crate::tree::{Kind, PathError, Tree};
use std::collections::BTreeSet;

const ETC: &str = "/etc";

/// The names of a config that have what the booted image ships.
#[derive(Debug, Default)]
pub struct Pinned {
    /// What the config sets there.
    pub targets: Vec<Target<'static>>,
    /// All paths that the config or tread itself has: they are never the image's.
    pub owned: BTreeSet<String>,
}

/// Has the names held that the config sets to what the booted image ships, for a boot into another
/// deployment. What is not of the deployment's own `/etc`, what is immutable, and what nobody can label is not
/// held: it is held against the config after that boot.
pub fn hold(
    tree: &Tree,
    ready: &mut Ready<'_>,
    pinned: Pinned,
    label: &Label<'_>,
) -> Result<(), JournalError> {
    let Pinned { targets, owned } = pinned;
    let set: BTreeSet<&str> = targets.iter().map(|target| target.path.as_str()).collect();
    for entry in &mut ready.record.entries {
        if is_as_shipped(tree, &entry.path, &entry.new)? {
            entry.shipped = match (set.contains(&*entry.path), owned.contains(&entry.path)) {
                (true, _) => Some(Shipped::Config),
                (false, true) => None,
                (false, false) => Some(Shipped::Image),
            };
        }
    }
    let Some(etc) = tree.folder(ETC)? else { return Ok(()) };
    let mount = etc.own_stat().map_err(|error| PathError::io(ETC, error))?.mount;
    let known = ready.record.clone();
    let mut stages = Stages::of(tree, &known)?;
    for target in targets {
        hold_one(tree, ready, (&mut stages, mount), (target, label))?;
    }
    stand_apart(&ready.record)
}

fn hold_one(
    tree: &Tree,
    ready: &mut Ready<'_>,
    (stages, mount): (&mut Stages<'_>, u64),
    (target, label): (Target<'static>, &Label<'_>),
) -> Result<(), JournalError> {
    let Target { path, wanted, .. } = target;
    let failed = |error| JournalError::from(PathError::io(&path, error));
    let Place { folder, missing, name, there, own, old } = place(tree, &path)?;
    let new = wanted.seen();
    let mut real = folder.path().trim_end_matches('/').to_owned();
    for name in &missing {
        real = format!("{real}/{name}");
    }
    let is_known = |entry: &Entry| entry.folder == real && entry.name == name;
    let immutable = own.immutable || there.is_some_and(|there| there.immutable);
    let elsewhere = own.mount != mount || !is_below(folder.path(), ETC);
    if old != new || immutable || elsewhere || ready.record.entries.iter().any(is_known) {
        return Ok(());
    }
    let prepared = match wanted {
        Wanted::File { bytes, owner } => {
            let attributes = kept(&folder, name, &owner, &new).map_err(failed)?;
            Prepared::File { bytes, attributes }
        }
        Wanted::Link { .. } => {
            let Ok(attribute) = label(&folder.path_of(name), Kind::Link) else { return Ok(()) };
            Prepared::Link { attributes: attribute.into_iter().collect() }
        }
        Wanted::Password { .. } | Wanted::Absent => Prepared::Nothing,
    };
    let stage = stages.index(&mut ready.record, &folder, own.mount).map_err(failed)?;
    let (name, shipped) = (name.to_owned(), Some(Shipped::Config));
    let entry = Entry { path, folder: real, name, password_of: None, stage, old, new, shipped };
    ready.record.entries.push(entry);
    ready.new.push(prepared);
    Ok(())
}
