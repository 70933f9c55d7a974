//! Whoever reads the documentation finds an example with everything.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::fs;
use std::path::{Path, PathBuf};

/// Not part of what an author uses.
const INTERNAL: [&str; 4] = ["allocator.rs", "bump.rs", "component.rs", "settings.rs"];

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            sources(&path, found);
        } else if !INTERNAL.contains(&name) {
            found.push(path);
        }
    }
}

/// The public items of a source, each with the comment above it.
fn items(source: &str) -> Vec<(String, String)> {
    let code = source.split("#[cfg(test)]\nmod tests").next().unwrap();
    let (mut found, mut comment) = (Vec::new(), String::new());
    let (mut in_policy, mut exported) = (false, false);
    for line in code.lines() {
        let bare = line.trim();
        if bare.starts_with("///") {
            comment += bare;
            continue;
        }
        // Between a comment and its item are attributes, some of several lines.
        exported |= bare == "#[macro_export]";
        if bare.starts_with('#') || bare.starts_with(')') {
            continue;
        }
        in_policy = in_policy && line != "}" || line.starts_with("pub trait");
        let kinds = ["fn", "const fn", "struct", "enum", "trait", "type"];
        let public = kinds.iter().any(|kind| bare.starts_with(&format!("pub {kind} ")))
            || exported && bare.starts_with("macro_rules! ")
            || in_policy && bare.starts_with("fn ");
        if public {
            found.push((bare.to_owned(), comment.clone()));
        }
        comment.clear();
        exported = false;
    }
    found
}

#[test]
fn every_public_item_has_an_example() {
    let mut files = Vec::new();
    let root = std::env::var_os("CARGO_MANIFEST_DIR").unwrap();
    sources(&Path::new(&root).join("src"), &mut files);
    // Of use to `export!` and to tread alone, and left out of the documentation.
    files.retain(|file| {
        !file.parent().is_some_and(|dir| dir.ends_with("component")) && !file.ends_with("units.rs")
    });
    let all: Vec<(String, String, String)> = files
        .iter()
        .flat_map(|file| {
            let name = file.display().to_string();
            let items = items(&fs::read_to_string(file).unwrap());
            items.into_iter().map(move |(item, comment)| (name.clone(), item, comment))
        })
        .collect();
    assert!(all.len() > 80, "only {} items were found", all.len());
    assert!(all.iter().any(|(_, item, _)| item.starts_with("fn classify(")));
    assert!(all.iter().any(|(_, item, _)| item.starts_with("macro_rules! export")));
    let without: Vec<String> = all
        .iter()
        .filter(|(_, _, comment)| !comment.contains("```"))
        .map(|(file, item, _)| format!("{file}: {item}"))
        .collect();
    assert!(without.is_empty(), "without an example:\n{}", without.join("\n"));
}

#[test]
fn an_item_without_an_example_would_be_found() {
    let source = "/// With one.\n///\n/// ```\n/// ```\n#[derive(Debug)]\npub struct A;\n\n\
                  /// Without.\npub fn b() {}\n\npub fn c() {}\n";
    let without: Vec<String> = items(source)
        .into_iter()
        .filter(|(_, comment)| !comment.contains("```"))
        .map(|(item, _)| item)
        .collect();
    assert_eq!(without, ["pub fn b() {}", "pub fn c() {}"]);
}
