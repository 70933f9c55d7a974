//! The crate as others get it: whatever it is built from lies inside it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};

fn sources(dir: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => sources(&path, all),
            false => all.push(path),
        }
    }
}

/// The paths that a source names, as seen from its own directory.
fn named(text: &str) -> Vec<&str> {
    let begins = ["include_str!(\"", "include_bytes!(\"", "include!(\"", "#[path = \""];
    let found = begins.iter().flat_map(|begin| text.split(begin).skip(1));
    found.filter_map(|rest| rest.split_once('"')).map(|(path, _)| path).collect()
}

#[test]
fn all_that_the_crate_includes_lies_inside_it() {
    let root = fs::canonicalize(std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).unwrap();
    let mut all = Vec::new();
    sources(&root.join("src"), &mut all);
    let mut seen = Vec::new();
    for source in all {
        let real = fs::canonicalize(&source).unwrap();
        assert!(real.starts_with(&root), "{} is a link to elsewhere", source.display());
        let Ok(text) = fs::read_to_string(&source) else { continue };
        for path in named(&text) {
            let found = fs::canonicalize(source.parent().unwrap().join(path));
            let found =
                found.unwrap_or_else(|error| panic!("{}: {path}: {error}", source.display()));
            assert!(found.starts_with(&root), "{} includes {path}", source.display());
            seen.push(path.to_owned());
        }
    }
    assert!(seen.iter().any(|path| path == "system-units.txt"), "{seen:?}");
}
