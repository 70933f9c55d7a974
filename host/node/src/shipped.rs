//! What the booted image ships below `/etc`: ostree has that in `/usr/etc`. When it makes a deployment
//! of another image, what is the same in both counts as never changed, and becomes what the other image ships.

use crate::shadow;
use crate::tree::{Found, PathError, Tree};

const FOLDER: &str = "/usr/etc";

/// Where the image would have what it ships for a path below `/etc`; nothing for another path, and
/// for a password.
pub fn path_of(path: &str) -> Option<String> {
    let is_below = path.starts_with("/etc/") && shadow::user_of(path).is_none();
    is_below.then(|| format!("/usr{path}"))
}

/// Whether this is what the booted image ships for a path: a file, a link, or nothing. Of a system
/// whose images ship no `/etc` nothing is, nor is what a link leads out of there.
pub fn is_as_shipped(tree: &Tree, path: &str, seen: &Found) -> Result<bool, PathError> {
    let Some(shipped) = path_of(path) else { return Ok(false) };
    if *seen == Found::Other || tree.folder(FOLDER)?.is_none() {
        return Ok(false);
    }
    let there = match tree.place(&shipped) {
        Ok(Some((folder, _))) if !is_below(folder.path(), FOLDER) => return Ok(false),
        Ok(Some((folder, name))) => folder.see(name).map_err(|it| PathError::io(&shipped, it))?,
        // Something else is in the place of a folder.
        Ok(None) | Err(PathError::NoWay { .. } | PathError::Circle { .. }) => Found::Absent,
        Err(error) => return Err(error),
    };
    Ok(there == *seen)
}

/// Whether a folder is another one, or below it.
pub fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
