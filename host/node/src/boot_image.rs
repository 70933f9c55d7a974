//! From which image a node booted first: CoreOS leaves that on the disk ("aleph").

use crate::tree::{PathError, Tree};
use serde::Deserialize;
use tread_model::text::one_line_within;

/// Where it stands, beneath the root: of a disk with deployments, and of one without.
const PLACES: [&str; 2] = ["/sysroot/.coreos-aleph-version.json", "/.coreos-aleph-version.json"];
/// It is a few hundred bytes.
const MOST: u64 = 64 << 10;
/// No version of an image is longer, in bytes.
const LONGEST: usize = 100;

#[derive(Deserialize)]
struct Aleph {
    version: Option<String>,
    /// As older images have it.
    build: Option<String>,
}

/// Where it is kept for whoever sees nothing of the host but tread's own folder.
const FOLDER: &str = "/var/lib/tread/boot";
const FILE: &str = "image";
const NEXT: &str = "image.next";

/// The version of the image that a node booted from first; none: nobody says it.
pub fn boot_image_of(tree: &Tree) -> Option<String> {
    let kept = tree.read(&format!("{FOLDER}/{FILE}"), MOST).ok().flatten();
    match kept.and_then(|kept| String::from_utf8(kept).ok()) {
        Some(kept) => Some(shown(&kept)).filter(|kept| !kept.is_empty()),
        None => said(tree),
    }
}

/// Keeps it, as the host says it.
pub fn keep(tree: &Tree) -> Result<(), PathError> {
    let Some(image) = said(tree) else { return Ok(()) };
    if boot_image_of(tree).as_ref() == Some(&image) && tree.folder(FOLDER)?.is_some() {
        return Ok(());
    }
    let folder = tree.private_folder(FOLDER)?;
    let written = || {
        folder.remove_own(NEXT)?;
        folder.append(NEXT, image.as_bytes())?;
        folder.replace_own(NEXT, FILE)
    };
    written().map_err(|error| PathError::io(FOLDER, error))
}

fn said(tree: &Tree) -> Option<String> {
    let read = |place: &&str| tree.read(place, MOST).ok().flatten();
    version(&PLACES.iter().find_map(read)?)
}

fn shown(text: &str) -> String {
    one_line_within(text, LONGEST).0
}

fn version(text: &[u8]) -> Option<String> {
    let Aleph { version, build } = serde_json::from_slice(text).ok()?;
    let said = version.or(build)?;
    Some(shown(&said)).filter(|said| !said.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_of_the_first_boot_is_what_the_disk_says_of_it() {
        let long = format!("{{\"build\": \"{}\"}}", "9".repeat(1000));
        for (text, expected) in [
            (
                r#"{"build":"49.84.202109241631-0","ref":"","ostree-commit":"c0","imgid":"rhcos.qcow2"}"#,
                Some("49.84.202109241631-0"),
            ),
            (r#"{"version":"416.94.202402051952-0","build":"x"}"#, Some("416.94.202402051952-0")),
            (r#"{"version":"9.6\u001b[31m\n"}"#, Some("9.6 [31m")),
            (r#"{"version":""}"#, None),
            (r#"{"version":7}"#, None),
            (r#"{"imgid":"x"}"#, None),
            ("[]", None),
            ("", None),
            (&long, Some(&*format!("{}…", "9".repeat(97)))),
        ] {
            assert_eq!(version(text.as_bytes()).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn it_is_read_where_coreos_leaves_it_within_bounds() {
        let dir = tempfile::tempdir().unwrap();
        let tree = Tree::open(dir.path()).unwrap();
        assert_eq!(boot_image_of(&tree), None);
        let put = |place: &str, text: &str| std::fs::write(dir.path().join(place), text).unwrap();
        put(".coreos-aleph-version.json", r#"{"build":"1"}"#);
        assert_eq!(boot_image_of(&tree).as_deref(), Some("1"));
        std::fs::create_dir(dir.path().join("sysroot")).unwrap();
        put("sysroot/.coreos-aleph-version.json", r#"{"build":"2"}"#);
        assert_eq!(boot_image_of(&tree).as_deref(), Some("2"));
        // As the agent sees it, which sees no more than that folder.
        keep(&tree).unwrap();
        keep(&tree).unwrap();
        put("sysroot/.coreos-aleph-version.json", &" ".repeat(100 << 10));
        std::fs::remove_file(dir.path().join(".coreos-aleph-version.json")).unwrap();
        keep(&tree).unwrap();
        assert_eq!(boot_image_of(&tree).as_deref(), Some("2"));
        put("var/lib/tread/boot/image", "3\u{1b}[31m");
        assert_eq!(boot_image_of(&tree).as_deref(), Some("3 [31m"));
        put("sysroot/.coreos-aleph-version.json", r#"{"build":"4"}"#);
        keep(&tree).unwrap();
        assert_eq!(boot_image_of(&tree).as_deref(), Some("4"));
    }
}
