//! What an order cannot have: said before anything else is looked at.

use crate::desired::Desired;
use crate::os::IDS;
use crate::prepare::Wanted;
use crate::tree::{Kind, PathError, Tree};
use std::collections::BTreeSet;

/// What no order can have.
#[derive(Debug, thiserror::Error)]
pub enum InTheWay {
    /// There is a file, and something is to stand below it: no two names change at one instant,
    /// so that it would be mixed for a moment.
    #[error(
        "{file} is a file, and the new config has {below}: a file cannot become a folder in one step. Apply a config with neither of them first, then this one"
    )]
    Folder {
        /// The file.
        file: String,
        /// What is to stand below it.
        below: String,
    },
    /// There is a folder, and it is to be a file.
    #[error(
        "{file} is a folder, and is to be a file: a folder cannot become a file in one step. Apply a config with nothing in {file} first, then remove the folder if nothing else is in it (find {file}; rm -r {file}), then apply this one"
    )]
    File {
        /// The path of both.
        file: String,
    },
    /// What is to be accepted belongs to neither config.
    #[error(
        "--accept-drift: {path} is in neither config, so it cannot have drifted{}; correct the path",
        or_nearest(.nearest.as_deref())
    )]
    NotOfAConfig {
        /// The path.
        path: String,
        /// One of a config's that is much like it.
        nearest: Option<String>,
    },
    /// A path leads nowhere.
    #[error(transparent)]
    Path(#[from] PathError),
}

fn or_nearest(path: Option<&str>) -> String {
    path.map(|path| format!(" (the nearest that is: {path})")).unwrap_or_default()
}

/// Whether every path that an admin accepts is one of a config's.
pub(super) fn are_of_a_config(
    accept: &[String],
    (before, after): (&Desired<'_>, &Desired<'_>),
) -> Result<(), InTheWay> {
    let known: BTreeSet<&str> =
        before.pieces.keys().chain(after.pieces.keys()).map(String::as_str).chain(IDS).collect();
    match accept.iter().find(|path| !known.contains(path.as_str())) {
        None => Ok(()),
        Some(path) => {
            let nearest = known.iter().map(|it| (distance(path, it), it)).min();
            // What shares less than half of it is not what was meant.
            let is_near = |(distance, it): &(usize, &&str)| *distance * 2 <= it.len();
            let nearest = nearest.filter(is_near).map(|(_, it)| (*it).to_owned());
            let path = tread_model::text::one_line_within(path, 300).0;
            Err(InTheWay::NotOfAConfig { path, nearest })
        }
    }
}

/// How many characters have to be put in, left out or replaced to get from one text to the
/// other.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (index, a) in one.chars().enumerate() {
        let mut diagonal = index;
        let mut left = index + 1;
        for (cell, b) in row.iter_mut().skip(1).zip(other.chars()) {
            let replaced = diagonal + usize::from(a != b);
            diagonal = *cell;
            left = replaced.min(diagonal + 1).min(left + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = index + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

/// Whether no file of the config last applied stands where the new one needs a folder, and no
/// folder where it has a file.
pub(super) fn no_file_becomes_a_folder(
    tree: &Tree,
    (before, after): (&Desired<'_>, &Desired<'_>),
) -> Result<(), InTheWay> {
    let stands = |path: &str| {
        let piece = before.pieces.get(path);
        piece.is_some_and(|piece| piece.wanted != Some(Wanted::Absent))
    };
    for (path, piece) in &after.pieces {
        if piece.wanted == Some(Wanted::Absent) {
            continue;
        }
        let folders = path.match_indices('/').skip(1).filter_map(|(at, _)| path.get(..at));
        if let Some(file) = folders.into_iter().find(|folder| stands(folder)) {
            let (file, below) = (file.to_owned(), path.clone());
            return Err(InTheWay::Folder { file, below });
        }
        if !stands(path) && is_folder(tree, path)? {
            return Err(InTheWay::File { file: path.clone() });
        }
    }
    Ok(())
}

fn is_folder(tree: &Tree, path: &str) -> Result<bool, PathError> {
    // What is in the way of it is told where it is prepared.
    let Ok(Some((folder, name))) = tree.place(path) else { return Ok(false) };
    let there = folder.stat(name).map_err(|error| PathError::io(path, error))?;
    Ok(there.is_some_and(|there| there.kind == Kind::Folder))
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn the_distance_of_two_texts_is_what_has_to_be_typed() {
        for (one, other, expected) in [
            ("", "", 0),
            ("a", "", 1),
            ("", "ab", 2),
            ("/etc/foo", "/etc/fo", 1),
            ("abc", "cab", 2),
        ] {
            assert_eq!(distance(one, other), expected, "{one} {other}");
        }
    }
}
