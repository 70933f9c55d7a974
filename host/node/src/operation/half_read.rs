//! A boot that found some of the names that an operation changes old and others new: what started before
//! they were put back may have read half a config, so that the node boots once more.

use super::tries::booted_since;
use crate::journal::{Journal, Note, Standing, has_to_go_back};
use crate::tree::Tree;
use tread_model::plan::Step;

/// Why the node boots once more after this boot, by what stands before its names are put back; nothing
/// where this boot found none that were to be. It is noted as the way back, which is by a boot.
pub fn why_half_read(tree: &Tree, standing: &Standing) -> Option<String> {
    let (kept, _) = booted_since(tree, standing)?;
    // What nobody has to be told of when it comes, nobody has to be told of when it goes.
    let tells = |step: &Step| !matches!(step, Step::Drain | Step::Write | Step::Uncordon);
    let was_asked = standing.notes.iter().any(|note| matches!(note, Note::BootAsked { .. }));
    if !kept.plan.steps.iter().any(tells) || was_asked {
        return None;
    }
    let decides = |note: &&Note| matches!(note, Note::Committed { .. } | Note::Back { .. });
    let went_down = match standing.notes.iter().rfind(decides) {
        None => "the node went down in the middle of the write".to_owned(),
        Some(Note::Back { because, by_units: true }) => {
            format!("{because}; the node went down before its files were back")
        }
        Some(_) => return None,
    };
    // What nobody can look at may have been read.
    let was_read = has_to_go_back(tree).unwrap_or(true);
    was_read.then(|| format!("{went_down}, and came up with some of the new ones"))
}

/// Notes it, where it is so. Without room for the note, as on a full disk, names are put back all the
/// same.
pub(super) fn note(tree: &Tree, journal: &Journal, standing: &mut Standing) {
    let Some(because) = why_half_read(tree, standing) else { return };
    let note = Note::Back { because, by_units: false };
    match journal.note(&note) {
        Ok(()) => standing.notes.push(note),
        Err(error) => tracing::warn!(%error, "that the node has to boot once more was not noted"),
    }
}
