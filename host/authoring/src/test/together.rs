//! Calls that offer several changes at once, as plans do: edits of every kind
//! beside each other, of one claim and of several.

use super::generate::Sample;
use std::collections::BTreeSet;
use tread_model::change::{Change, State};

/// What can be offered for one claim.
pub(super) struct Pool {
    /// The names that the claim matches, or some of them.
    pub(super) ids: Vec<String>,
    /// Changes, each of which can be that of any of the names.
    pub(super) samples: Vec<Sample>,
}

/// What is offered in one call, in the order of ids.
pub(super) struct Offered {
    pub(super) label: String,
    pub(super) changes: Vec<Change<'static>>,
}

/// Names that are put together by twos.
const NAMES: usize = 8;
/// Calls with as many changes as there are names.
const FULL: usize = 48;
/// Changes of one call.
const MOST: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edit {
    Adds,
    Removes,
    Changes,
}

const EDITS: [Edit; 3] = [Edit::Adds, Edit::Removes, Edit::Changes];

impl Edit {
    fn of(change: &Change<'_>) -> Edit {
        match (&change.before, &change.after) {
            (State::Absent, _) => Edit::Adds,
            (_, State::Absent) => Edit::Removes,
            _ => Edit::Changes,
        }
    }

    fn in_words(self) -> &'static str {
        match self {
            Edit::Adds => "added",
            Edit::Removes => "removed",
            Edit::Changes => "changed",
        }
    }
}

/// A name of a claim, and what can become of it.
struct Place<'p> {
    id: &'p str,
    pool: &'p Pool,
}

impl Place<'_> {
    /// The change of this name by the `number`th sample of an edit.
    fn change(&self, edit: Edit, number: usize) -> Option<Change<'static>> {
        let of = || self.pool.samples.iter().filter(|it| Edit::of(&it.change) == edit);
        let Change { before, after, .. } = &of().nth(number % of().count().max(1))?.change;
        Some(Change { id: self.id.to_owned(), before: before.clone(), after: after.clone() })
    }
}

/// All calls; none where the claims match one name only.
pub(super) fn calls(pools: &[Pool]) -> Vec<Offered> {
    let places = places(pools);
    let mut calls = Vec::new();
    // Of each claim a few, so that all claims come together with each other.
    let few: Vec<&Place<'_>> = places.iter().take(NAMES).collect();
    let mut number = 0;
    for (index, one) in few.iter().enumerate() {
        for other in few.iter().skip(index + 1) {
            for (edit, beside) in EDITS.iter().flat_map(|edit| EDITS.map(|beside| (*edit, beside)))
            {
                // Other contents each time.
                number += 7;
                let pair = [one.change(edit, number), other.change(beside, number + 3)];
                let label = format!(
                    "{} {} and {} {} in one call",
                    one.id,
                    edit.in_words(),
                    other.id,
                    beside.in_words()
                );
                calls.extend(offered(label, pair.into_iter().flatten()));
            }
            calls.extend(moved(one, other));
        }
    }
    for round in 0..FULL {
        let changes = places.iter().take(MOST).enumerate().filter_map(|(index, place)| {
            let edit = EDITS.get((round + index * (1 + round / 3)) % EDITS.len())?;
            place.change(*edit, round * 11 + index * 5)
        });
        calls.extend(offered(format!("{} changes in one call", places.len().min(MOST)), changes));
    }
    calls
}

/// Every name once: first one of each claim, then the second of each, and so on.
fn places(pools: &[Pool]) -> Vec<Place<'_>> {
    let longest = pools.iter().map(|pool| pool.ids.len()).max().unwrap_or(0);
    let mut seen = BTreeSet::new();
    (0..longest)
        .flat_map(|round| pools.iter().filter_map(move |pool| Some((pool.ids.get(round)?, pool))))
        .filter(|(id, _)| seen.insert(id.as_str()))
        .map(|(id, pool)| Place { id, pool })
        .collect()
}

/// What one name loses the other gets.
fn moved(one: &Place<'_>, other: &Place<'_>) -> Option<Offered> {
    let added = one.change(Edit::Adds, 5)?;
    let back = other.change(Edit::Removes, 0)?;
    // Only between two of a kind.
    if std::mem::discriminant(&added.after) != std::mem::discriminant(&back.before) {
        return None;
    }
    let removed = Change { before: added.after.clone(), after: State::Absent, ..back };
    offered(format!("what {} had moves to {}", other.id, one.id), [added, removed])
}

/// None of fewer than two.
fn offered(label: String, changes: impl IntoIterator<Item = Change<'static>>) -> Option<Offered> {
    let mut changes: Vec<Change<'static>> = changes.into_iter().collect();
    changes.sort_by(|a, b| a.id.cmp(&b.id));
    (changes.len() > 1).then_some(Offered { label, changes })
}

#[cfg(test)]
mod tests {
    use super::super::generate::samples;
    use super::*;
    use tread_model::claim::Kind;

    fn pool(kind: Kind, ids: &[&str]) -> Pool {
        let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
        Pool { samples: samples(kind, &ids, &[]), ids }
    }

    #[test]
    fn every_two_edits_of_two_names_come_together_in_one_call() {
        let pools = [
            pool(Kind::File, &["file:/etc/a", "file:/etc/b"]),
            pool(Kind::Unit, &["unit:c.service"]),
        ];
        let calls = calls(&pools);
        let ids = ["file:/etc/a", "file:/etc/b", "unit:c.service"];
        for (index, one) in ids.iter().enumerate() {
            for other in &ids[index + 1..] {
                for edit in EDITS {
                    for beside in EDITS {
                        let found = calls.iter().any(|call| {
                            let is = |id: &str, edit| {
                                call.changes.iter().any(|it| it.id == id && Edit::of(it) == edit)
                            };
                            call.changes.len() == 2 && is(one, edit) && is(other, beside)
                        });
                        assert!(found, "{one} {edit:?}, {other} {beside:?}");
                    }
                }
            }
        }
        assert!(calls.iter().any(|call| call.changes.len() == 3));
        for Offered { label, changes } in &calls {
            assert!(changes.is_sorted_by(|a, b| a.id < b.id), "{label}");
            assert!(changes.iter().all(|it| it.before != it.after), "{label}");
        }
        let moves =
            calls.iter().find(|call| call.label.starts_with("what file:/etc/b had")).unwrap();
        assert_eq!(moves.changes[0].after, moves.changes[1].before);
    }

    #[test]
    fn the_same_pools_give_the_same_calls_and_one_name_gives_none() {
        let made = || calls(&[pool(Kind::File, &["file:/etc/a", "file:/etc/b"])]);
        let changes = |all: Vec<Offered>| all.into_iter().map(|it| it.changes).collect::<Vec<_>>();
        assert!(changes(made()) == changes(made()));
        assert!(calls(&[pool(Kind::File, &["file:/etc/a"])]).is_empty());
        assert!(calls(&[]).is_empty());
    }
}
