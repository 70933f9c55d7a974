//! Which boot this is.

use crate::tree::{PathError, Tree};
use std::io;

/// Where the kernel says it, beneath the root.
pub const BOOT_ID: &str = "proc/sys/kernel/random/boot_id";

/// The id of this boot. `read` reads the text of a file beneath the root: of [`BOOT_ID`].
pub fn boot_id(read: impl FnOnce(&str) -> io::Result<String>) -> io::Result<String> {
    let text = read(BOOT_ID)?;
    let id = text.trim();
    let is_id = id.len() == 36 && id.chars().all(|c| c == '-' || c.is_ascii_hexdigit());
    if !is_id {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("/{BOOT_ID} does not hold the id of a boot. Is /proc mounted there?"),
        ));
    }
    Ok(id.to_owned())
}

/// The id of this boot, as the kernel says it in a tree.
pub fn boot_id_of(tree: &Tree) -> Result<String, PathError> {
    let read = |path: &str| {
        let text = tree.read(&format!("/{path}"), 4096).map_err(io::Error::other)?;
        let text = text.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        String::from_utf8(text).map_err(io::Error::other)
    };
    boot_id(read).map_err(|error| PathError::io(BOOT_ID, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_boot_is_what_the_kernel_writes_and_nothing_else() {
        let id = "0f6bd1a4-8b0a-4e4c-9f4c-2d8f5a1b3c7e";
        let read = |text: String| {
            boot_id(|path| (path == BOOT_ID).then_some(text).ok_or_else(|| io::Error::other("?")))
        };
        assert_eq!(read(format!("{id}\n")).unwrap(), id);
        for text in [
            "",
            "\n",
            "none",
            id.trim_start_matches('0'),
            &format!("{id}{id}"),
            &id.replace('b', "x"),
        ] {
            let error = read(text.to_owned()).unwrap_err();
            assert!(error.to_string().contains("/proc/sys/kernel/random/boot_id"), "{error}");
        }
    }
}
