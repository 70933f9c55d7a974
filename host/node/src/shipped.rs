//! What the booted image ships below `/etc`: ostree has that in `/usr/etc`. When it makes a deployment
//! of another image, what is the same in both counts as never changed, and becomes what the other image ships.

use crate::shadow;
use crate::tree::{Found, PathError, Tree};

const FOLDER: &str = "/usr/etc";

/// Where the image has what it ships for a path; nothing where it ships nothing there.
pub fn path_of(path: &str) -> Option<String> {
    let is_below = path.starts_with("/etc/") && shadow::user_of(path).is_none();
    is_below.then(|| format!("/usr{path}"))
}

/// Whether this is what the booted image ships for a path; of a system whose images ship no `/etc`
/// nothing is.
pub fn is_as_shipped(tree: &Tree, path: &str, seen: &Found) -> Result<bool, PathError> {
    let Some(shipped) = path_of(path) else { return Ok(false) };
    if tree.folder(FOLDER)?.is_none() {
        return Ok(false);
    }
    let there = match tree.place(&shipped)? {
        Some((folder, name)) => folder.see(name).map_err(|it| PathError::io(&shipped, it))?,
        None => Found::Absent,
    };
    Ok(there == *seen)
}
