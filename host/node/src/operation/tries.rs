//! A machine that goes down by itself while it proves itself, or while it goes back: a kernel
//! that panics, or a watchdog. How often that may be is bounded.

use super::going::Going;
use crate::journal::{Direction, Note};
use std::collections::BTreeSet;

/// In so many boots the machine may go down before the proof has ended. It is more than one,
/// since nobody can tell a crash from an admin who boots the node meanwhile.
const MOST_CUT_SHORT: usize = 3;

impl Going<'_> {
    /// Notes that the node begins to prove itself, or to go back, in this boot. Where there is no
    /// room for the note, as on a full disk, it goes on all the same.
    pub(super) fn begins_in_this_boot(&mut self) {
        let note = Note::Tried { boot: self.boot.clone() };
        // An operation that was not booted for has no boot to count.
        if !self.was_booted() || self.standing.notes.contains(&note) {
            return;
        }
        match self.journal.note(&note) {
            Ok(()) => self.standing.notes.push(note),
            Err(error) => tracing::warn!(%error, "that this boot is proved was not noted"),
        }
    }

    /// Why no further boot is spent on it, where the machine went down too often already.
    pub(super) fn keeps_going_down(&self) -> Option<String> {
        let count = cut_short(&self.standing.notes, &self.boot);
        let before = match self.standing.direction() {
            Direction::Back => "it had gone back",
            Direction::Forward | Direction::Undone => "it had proved that it is well",
        };
        (count >= MOST_CUT_SHORT)
            .then(|| format!("the node went down in {count} boots before {before}"))
    }

    /// Whether it was found out in this boot already that all else is well, and reported.
    pub(super) fn was_well_otherwise(&self) -> bool {
        let has = |note: Note| self.standing.notes.contains(&note);
        let boot = || self.boot.clone();
        has(Note::Tried { boot: boot() }) && has(Note::Degraded { boot: boot() })
    }
}

/// In how many boots before this one it was begun, and came to no end: since a boot was last asked
/// for, since the direction last changed, and since it last was over or an admin's.
fn cut_short(notes: &[Note], this_boot: &str) -> usize {
    let begins_anew = |note: &Note| {
        matches!(
            note,
            Note::BootAsked { .. } | Note::Back { .. } | Note::Waits { .. } | Note::Degraded { .. }
        )
    };
    let since = notes.iter().rposition(begins_anew).map_or(0, |at| at + 1);
    let boots = notes.iter().skip(since).filter_map(|note| match note {
        Note::Tried { boot } if boot != this_boot => Some(boot),
        _ => None,
    });
    boots.collect::<BTreeSet<&String>>().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_boots_whose_proof_came_to_no_end_are_counted_since_a_boot_was_last_asked_for() {
        let tried = |boot: &str| Note::Tried { boot: boot.to_owned() };
        let asked = |boot: &str| Note::BootAsked { boot: boot.to_owned() };
        let waits = |boot: &str| Note::Waits { boot: boot.to_owned() };
        let degraded = |boot: &str| Note::Degraded { boot: boot.to_owned() };
        let back = || Note::Back { because: String::new(), by_units: false };
        let replaced = |boot: &str| Note::Replaced { boot: boot.to_owned(), paths: Vec::new() };
        for (notes, expected) in [
            (vec![], 0),
            (vec![asked("0"), tried("now")], 0),
            (vec![asked("0"), tried("1"), tried("2"), tried("3"), tried("now")], 3),
            // The unit that carries it out was started anew in one boot.
            (vec![asked("0"), tried("1"), tried("1")], 1),
            // Nobody asked for the boot: the machine went down while its units were told.
            (vec![tried("1"), tried("2")], 2),
            // A new image takes one boot more, which is asked for.
            (vec![asked("0"), replaced("1"), asked("1"), tried("2")], 1),
            (vec![asked("0"), tried("1"), tried("2"), back(), asked("2"), tried("3")], 1),
            (vec![asked("0"), tried("1"), tried("2"), waits("2"), tried("3")], 1),
            (vec![back(), tried("1"), tried("2"), tried("3"), degraded("4"), tried("5")], 1),
        ] {
            assert_eq!(cut_short(&notes, "now"), expected, "{notes:?}");
        }
    }
}
