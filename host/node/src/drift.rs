//! Whether the disk is as a config wants it.

use crate::desired::Desired;
use crate::shadow;
use crate::tree::{Folders, Owner, PathError, Seen, Tree};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One path that is not as the config wants it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drift {
    /// The path.
    pub path: String,
    /// What it is a part of.
    pub of: String,
    /// What stands there.
    pub there: Seen,
    /// What differs, in a sentence without contents.
    pub differs: String,
}

/// Differences that an admin accepted: by path, what stands there.
pub type Accepted = BTreeMap<String, Seen>;

/// Every path of a config that is not as it is wanted, but for what was accepted.
pub fn drift(
    tree: &Tree,
    desired: &Desired<'_>,
    accepted: &Accepted,
) -> Result<Vec<Drift>, PathError> {
    let (folders, mut found) = (Folders::new(tree), Vec::new());
    for (path, piece) in &desired.pieces {
        let (there, differs) = match seen(&folders, path) {
            Ok(there) => (there, None),
            Err(PathError::NoWay { at, what, .. }) => {
                (Seen::Other, Some(format!("{at} is {what}")))
            }
            Err(error) => return Err(error),
        };
        let differs = differs.or_else(|| match &piece.wanted {
            Some(wanted) => difference(&wanted.seen(), &there),
            // What it holds is known to nobody: it has to be there.
            None if there == Seen::Absent => Some("it is missing".to_owned()),
            None => None,
        });
        if let Some(differs) = differs
            && accepted.get(path) != Some(&there)
        {
            let (path, of) = (path.clone(), piece.of.clone());
            found.push(Drift { path, of, there, differs });
        }
    }
    Ok(found)
}

/// What stands under a path.
pub fn see(tree: &Tree, path: &str) -> Result<Seen, PathError> {
    seen(&Folders::new(tree), path)
}

fn seen(folders: &Folders<'_>, path: &str) -> Result<Seen, PathError> {
    let user = shadow::user_of(path);
    let file = if user.is_some() { shadow::FILE } else { path };
    let Some((folder, name)) = folders.place(file)? else { return Ok(Seen::Absent) };
    let seen = match user {
        Some(user) => shadow::see(&folder, name, user),
        None => folder.see(name),
    };
    seen.map_err(|error| PathError::io(path, error))
}

/// What differs, in a sentence; nothing if both are the same.
fn difference(wanted: &Seen, there: &Seen) -> Option<String> {
    if wanted == there {
        return None;
    }
    Some(match (wanted, there) {
        (Seen::File { digest, owner }, Seen::File { digest: other, owner: has }) => {
            let contents = (digest != other).then(|| "its contents differ".to_owned());
            let all: Vec<String> = contents.into_iter().chain(owners(*owner, *has)).collect();
            all.join(", ")
        }
        (Seen::Field { .. }, Seen::Field { .. }) => "the password differs".to_owned(),
        (Seen::Field { .. }, Seen::Absent) => format!("{} has no such user", shadow::FILE),
        (Seen::Field { .. }, _) => {
            format!("{} is no file, or the user's line in it is not as it has to be", shadow::FILE)
        }
        (Seen::Absent, _) => "it should not be there".to_owned(),
        (_, Seen::Absent) => "it is missing".to_owned(),
        (Seen::Link { target }, Seen::Link { target: other }) => {
            let fit = tread_model::text::one_line;
            format!("it leads to {}, and should lead to {}", fit(other), fit(target))
        }
        (Seen::Link { .. }, _) => "it is no link".to_owned(),
        (_, Seen::Link { .. }) => "it is a link".to_owned(),
        _ => "it is no file".to_owned(),
    })
}

fn owners(wanted: Owner, there: Owner) -> impl Iterator<Item = String> {
    let differs = |what: &str, wanted: String, there: String| {
        (wanted != there).then(|| format!("its {what} is {there}, and should be {wanted}"))
    };
    [
        differs("mode", format!("{:04o}", wanted.mode), format!("{:04o}", there.mode)),
        differs("user", wanted.uid.to_string(), there.uid.to_string()),
        differs("group", wanted.gid.to_string(), there.gid.to_string()),
    ]
    .into_iter()
    .flatten()
}
