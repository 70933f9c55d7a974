//! A machine that goes down by itself as it boots, while it proves itself, or while it goes back: a
//! kernel that panics, or a watchdog. How often that may be is bounded.

use super::going::Going;
use super::node::Kept;
use crate::journal::{Direction, Journal, JournalError, Note, Standing};
use crate::systemd::boot_id_of;
use crate::tree::Tree;
use std::collections::BTreeSet;

/// In so many boots the machine may go down before the proof has ended. It is more than one,
/// since nobody can tell a crash from an admin who boots the node meanwhile.
const MOST_CUT_SHORT: usize = 3;

/// Notes that the machine booted with what stands, or that this boot ends in order.
pub fn note_boot(
    tree: &Tree,
    journal: &Journal,
    standing: &Standing,
    ends: bool,
) -> Result<(), JournalError> {
    let Some((_, boot)) = booted_since(tree, standing) else { return Ok(()) };
    if standing.direction() == Direction::Undone {
        return Ok(());
    }
    let booted = Note::Booted { boot: boot.clone() };
    let is_noted = standing.notes.contains(&booted);
    match (ends, is_noted) {
        (false, false) => journal.note(&booted),
        (true, true) => journal.note(&Note::WentDown { boot }),
        (false, true) | (true, false) => Ok(()),
    }
}

/// Why the names go back before anything else of this boot reads them: the machine went down too often
/// already, and perhaps never comes as far as `tread-resume.service`, which decides that otherwise.
/// Nothing where that is for others to decide: an image would stay with the old names, and names in the
/// `/etc` of another deployment are another operation's.
pub fn why_back_early(tree: &Tree, standing: &Standing) -> Option<String> {
    let (kept, boot) = booted_since(tree, standing)?;
    let is_for_others = kept.os.is_some() || standing.is_in_another_etc(tree);
    match standing.direction() {
        Direction::Forward if !is_for_others => went_down_too_often(&standing.notes, &boot),
        _ => None,
    }
}

/// What an operation began with, and this boot, if it is another one than that in which it began.
pub(super) fn booted_since(tree: &Tree, standing: &Standing) -> Option<(Kept, String)> {
    let kept: Kept = serde_json::from_value(standing.record.order.clone()).ok()?;
    let boot = boot_id_of(tree).ok()?;
    (kept.boot != boot).then_some((kept, boot))
}

/// Why no further boot is spent on it, where the machine went down too often already.
fn went_down_too_often(notes: &[Note], boot: &str) -> Option<String> {
    let decides = |note: &&Note| matches!(note, Note::Committed { .. } | Note::Back { .. });
    let before = match notes.iter().rfind(decides) {
        Some(Note::Back { .. }) => "it had gone back",
        _ => "it had proved that it is well",
    };
    let count = cut_short(notes, boot);
    (count >= MOST_CUT_SHORT)
        .then(|| format!("the node went down in {count} boots before {before}"))
}

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
        went_down_too_often(&self.standing.notes, &self.boot)
    }

    /// Whether it was found out in this boot already that all else is well, and reported.
    pub(super) fn was_well_otherwise(&self) -> bool {
        let has = |note: Note| self.standing.notes.contains(&note);
        let boot = || self.boot.clone();
        has(Note::Tried { boot: boot() }) && has(Note::Degraded { boot: boot() })
    }
}

/// In how many boots before this one the machine went down by itself, or its proof began and came to no
/// end: since a boot was last asked for, since the direction last changed, and since it last was over or
/// an admin's.
fn cut_short(notes: &[Note], this_boot: &str) -> usize {
    let begins_anew = |note: &Note| {
        matches!(
            note,
            Note::BootAsked { .. } | Note::Back { .. } | Note::Waits { .. } | Note::Degraded { .. }
        )
    };
    let since = notes.iter().rposition(begins_anew).map_or(0, |at| at + 1);
    let boots = |of: fn(&Note) -> Option<&String>| -> BTreeSet<&String> {
        notes.iter().skip(since).filter_map(of).filter(|boot| *boot != this_boot).collect()
    };
    let tried = boots(|note| match note {
        Note::Tried { boot } => Some(boot),
        _ => None,
    });
    let booted = boots(|note| match note {
        Note::Booted { boot } => Some(boot),
        _ => None,
    });
    let in_order = boots(|note| match note {
        Note::WentDown { boot } => Some(boot),
        _ => None,
    });
    tried.union(&(&booted - &in_order)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_boots_whose_proof_came_to_no_end_are_counted_since_a_boot_was_last_asked_for() {
        let booted = |boot: &str| Note::Booted { boot: boot.to_owned() };
        let down = |boot: &str| Note::WentDown { boot: boot.to_owned() };
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
            // It went down before anything was resumed.
            (vec![asked("0"), booted("1"), booted("2"), booted("3"), booted("now")], 3),
            // Somebody booted it in order meanwhile, but not in the middle of its proof.
            (vec![asked("0"), booted("1"), down("1"), booted("2"), booted("3"), down("3")], 1),
            (vec![asked("0"), booted("1"), tried("1"), down("1"), booted("2")], 2),
        ] {
            assert_eq!(cut_short(&notes, "now"), expected, "{notes:?}");
        }
    }
}
