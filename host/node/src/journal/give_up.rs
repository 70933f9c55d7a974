//! An operation that cannot be settled, and ends as it is: what is left of it is named, and what
//! belongs there is kept.

use super::back::{Place, Resolved};
use super::by_hand::ByHand;
use super::error::{JournalError, io_at};
use super::names::{OPERATION, STAGE, STATE, given_up_name, new_name, old_name};
use super::password;
use super::record::Record;
use super::stage;
use super::standing::{Direction, Standing};
use crate::tree::{Folder, Found, Tree};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// What stays of an operation that is given up.
pub(super) struct Left {
    /// For an admin.
    pub(super) by_hand: Vec<ByHand>,
    /// The stages that hold what belongs there, by index.
    pub(super) stages: BTreeSet<usize>,
}

/// Names everything that was not settled, and keeps what belongs there: out of the way of the
/// next operation.
pub(super) fn left(tree: &Tree, standing: &Standing, resolved: &Resolved) -> Left {
    let record = &standing.record;
    let is_forward = standing.direction() == Direction::Forward;
    let failed = resolved.failed.iter().filter_map(|(place, _)| match place {
        Place::Entry(index) => Some(*index),
        Place::Made(_) | Place::Unsynced(_) => None,
    });
    let indexes = failed.chain(resolved.away.iter().chain(&resolved.left).copied());
    let kept = keep(tree, record, indexes, is_forward);
    let entry = |index: usize, left: bool, why: String| {
        let entry = record.entries.get(index)?;
        let right = if is_forward { &entry.new } else { &entry.old };
        let does = match (right, &entry.password_of, kept.places.get(&index)) {
            (Found::Absent, ..) => "remove it".to_owned(),
            (_, Some(user), _) => format!("set the password of {user}: passwd {user}"),
            (_, None, Some(kept)) => {
                let (kept, path) = (quoted(kept), quoted(&entry.path));
                format!("put it there: cp -a --remove-destination {kept} {path}")
            }
            (_, None, None) => "put it there from a backup".to_owned(),
        };
        let there = tree.folder(&entry.folder).ok().flatten();
        let there = there.and_then(|folder| password::see(&folder, &entry.name, entry).ok());
        Some(ByHand {
            operation: record.id.clone(),
            path: entry.path.clone(),
            why: format!("{why}; the {} state holds: {does}", state(is_forward)),
            left: there.filter(|_| left),
            right: Some(right.clone()),
        })
    };
    let folder = |path: &str, why: String| ByHand {
        operation: record.id.clone(),
        path: path.to_owned(),
        why,
        left: None,
        right: None,
    };
    let mut by_hand = Vec::new();
    for (place, error) in &resolved.failed {
        match place {
            Place::Entry(index) => by_hand.extend(entry(*index, true, error.to_string())),
            Place::Made(path) => {
                let made = ByHand { right: Some(Found::Absent), ..folder(path, String::new()) };
                let path = quoted(path);
                let why = format!("{error}; remove the folder if it is empty: rmdir {path}");
                by_hand.push(ByHand { why, ..made });
            }
            Place::Unsynced(path) => {
                let why = format!("{error}; what stands in it may not survive a power cut: sync");
                by_hand.push(folder(path, why));
            }
        }
    }
    for index in &resolved.away {
        let why = "its mount is not there; once it is".to_owned();
        by_hand.extend(entry(*index, false, why));
    }
    for index in &resolved.left {
        let why = "somebody else changed it meanwhile, and it was left as it is".to_owned();
        by_hand.extend(entry(*index, true, why));
    }
    for index in &resolved.covered {
        let why = "a mount that came since covers it: unmount it, and see whether it is there";
        let covered = entry(*index, false, why.to_owned());
        by_hand.extend(covered.map(|it| ByHand { right: None, ..it }));
    }
    Left { by_hand, stages: kept.stages }
}

/// As a shell takes it for one word.
fn quoted(path: &str) -> String {
    format!("'{}'", path.replace('\'', r"'\''"))
}

fn state(is_forward: bool) -> &'static str {
    if is_forward { "new" } else { "old" }
}

#[derive(Default)]
struct Kept {
    /// Where what belongs to an entry stands.
    places: BTreeMap<usize, String>,
    stages: BTreeSet<usize>,
}

/// Keeps what is staged for these entries, and nothing else of their stages. If a stage is missing,
/// so is the mount that it is on.
fn keep(
    tree: &Tree,
    record: &Record,
    indexes: impl Iterator<Item = usize>,
    is_forward: bool,
) -> Kept {
    let mut kept = Kept::default();
    let mut of_stages: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for index in indexes {
        if let Some(entry) = record.entries.get(index).filter(|it| it.password_of.is_none()) {
            of_stages.entry(entry.stage).or_default().push(index);
        }
    }
    let name = |index: usize| if is_forward { new_name(index) } else { old_name(index) };
    let opened = stage::open(tree, record);
    for (at, indexes) in of_stages {
        let Some(path) = record.stages.get(at) else { continue };
        kept.stages.insert(at);
        let is_there =
            |stage: &Folder, index: usize| matches!(stage.stat(&name(index)), Ok(Some(_)));
        let mut place = path.clone();
        let mut held = indexes;
        if let Some(Ok(Some(stage))) = opened.get(at) {
            held.retain(|index| is_there(stage, *index));
            let names: BTreeSet<String> = held.iter().map(|index| name(*index)).collect();
            place = stage::keep(tree, path, stage, &names);
        }
        kept.places
            .extend(held.into_iter().map(|index| (index, format!("{place}/{}", name(index)))));
    }
    kept
}

/// A journal that cannot be read: nobody knows which names changed. All that is there of it is
/// kept.
pub(super) fn put_aside(state: &Folder, error: &JournalError) -> Result<Vec<ByHand>, JournalError> {
    let kept = || -> io::Result<()> {
        for name in state.names()?.iter().filter(|name| name.starts_with(STAGE)) {
            state.rename(name, state, &given_up_name(name))?;
        }
        state.put_aside(OPERATION)?;
        state.sync()
    };
    kept().map_err(io_at(STATE))?;
    let path = state.path_of(&format!("{OPERATION}.aside"));
    let why = format!(
        "{error}. It was put aside, with what was staged ({STATE}/.given-up-*): nobody knows which names it changed; hold the node against a backup, then remove both"
    );
    let (operation, left) = ("unknown".to_owned(), Some(Found::Other));
    Ok(vec![ByHand { operation, path, why, left, right: None }])
}
