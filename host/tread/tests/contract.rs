//! The promise of the contract: what was built against a published version of it
//! loads, and answers as it did, for ever.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use support::{Bench, tree};
use tread_model::digest::Sha256;
use wit_component::{OutputToString, WitPrinter};
use wit_parser::{Resolve, WorldItem};

/// The directories of all published versions, by version.
fn versions() -> BTreeMap<String, PathBuf> {
    let entries = fs::read_dir(tree().join("tests/contract")).unwrap();
    let dirs = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let versions: BTreeMap<String, PathBuf> =
        dirs.map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), path)).collect();
    assert!(versions.contains_key("1.0.0"), "{versions:?}");
    versions
}

/// The components of a version, in order of name.
fn components(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|it| it == "wasm")).collect();
    all.sort();
    assert!(all.len() >= 4, "{all:?}");
    all
}

fn name(path: &Path) -> &str {
    path.file_stem().unwrap().to_str().unwrap()
}

#[test]
fn a_published_component_keeps_its_bytes() {
    for dir in versions().values() {
        let sums = fs::read_to_string(dir.join("SHA256SUMS")).unwrap();
        let written: Vec<(String, String)> = sums
            .lines()
            .map(|line| line.split_once("  ").unwrap())
            .map(|(sum, file)| (file.to_owned(), format!("sha256:{sum}")))
            .collect();
        let found: Vec<(String, String)> = components(dir)
            .iter()
            .map(|path| {
                let file = path.file_name().unwrap().to_str().unwrap().to_owned();
                (file, Sha256::of(&fs::read(path).unwrap()).to_string())
            })
            .collect();
        assert_eq!(found, written, "{}: published bytes never change", dir.display());
    }
}

#[test]
fn a_published_component_loads_and_answers_as_it_did() {
    let bench = Bench::new();
    for (version, dir) in versions() {
        for path in components(&dir) {
            let file = path.to_str().unwrap();
            let inspected = bench.tread(&["policy", "inspect", file, "-o", "json"]);
            let report = inspected.json();
            assert_eq!(inspected.code(), 0, "{}", inspected.out());
            assert_eq!(report["state"], "Loaded", "{file}");
            assert_eq!(report["contract"], version.as_str(), "{file}");
            assert_eq!(report["name"], name(&path));
            assert!(report["size"].as_u64().unwrap() <= 40 << 10, "{file} is small enough to keep");

            let cases = dir.join(format!("cases/{}.yaml", name(&path)));
            let cases = cases.to_str().unwrap();
            let ran = bench.tread(&["policy", "test", file, "--cases", cases, "-o", "json"]);
            let results = ran.json()["results"].as_array().unwrap().clone();
            let failed: Vec<&str> = results
                .iter()
                .filter(|row| row["outcome"] != "passed")
                .map(|row| row["title"].as_str().unwrap())
                .collect();
            // What kinds.wasm is for is to show in its reasons what it is offered.
            let quotes =
                |title: &&str| name(&path) == "kinds" && title.starts_with("no reason, no");
            assert!(failed.iter().all(quotes), "{file}: {failed:?}");
            let own = results.iter().filter(|row| row["file"] != "properties").count();
            assert!(own >= 2, "{file}: {own} cases");
        }
    }
}

/// The texts of all interfaces by name, comments aside, and what the world
/// imports and exports.
fn contract(text: &str) -> (BTreeMap<String, String>, Vec<String>, Vec<String>) {
    let mut resolve = Resolve::default();
    let package = resolve.push_str(Path::new("policy.wit"), text).unwrap();
    let world = resolve.select_world(&[package], Some("policy")).unwrap();
    let interfaces = resolve.packages.get(package).unwrap().interfaces.clone();
    let texts = interfaces
        .iter()
        .map(|(name, id)| {
            let mut printer = WitPrinter::new(OutputToString::default());
            printer.emit_docs(false).print_interface(&resolve, *id).unwrap();
            (name.clone(), String::from(printer.output))
        })
        .collect();
    let named = |items: Vec<&WorldItem>| {
        let ids = items.into_iter().map(|item| match item {
            WorldItem::Interface { id, .. } => resolve.id_of(*id).unwrap(),
            other => panic!("{other:?}"),
        });
        let mut names: Vec<String> = ids.collect();
        names.sort();
        names
    };
    let world = resolve.worlds.get(world).unwrap();
    (texts, named(world.imports.values().collect()), named(world.exports.values().collect()))
}

fn without_version(names: Vec<String>) -> Vec<String> {
    names.iter().map(|name| name.split('@').next().unwrap().to_owned()).collect()
}

/// What changed since a version was published, in sentences.
fn breaks(published: &str, today: &str) -> Vec<String> {
    let ((old, old_imports, old_exports), (new, new_imports, new_exports)) =
        (contract(published), contract(today));
    let mut found = Vec::new();
    for (name, text) in &old {
        match new.get(name) {
            Some(now) if now == text => {}
            Some(_) => found.push(format!("the interface {name} is not what it was")),
            None => found.push(format!("the interface {name} is gone")),
        }
    }
    // A policy of that version has no other exports, and may need its imports.
    let (old_imports, new_imports) = (without_version(old_imports), without_version(new_imports));
    for import in old_imports.iter().filter(|import| !new_imports.contains(import)) {
        found.push(format!("{import} cannot be imported any more"));
    }
    if without_version(old_exports) != without_version(new_exports) {
        found.push("the world has other exports".to_owned());
    }
    found
}

#[test]
fn the_contract_of_a_published_version_is_kept_within_its_major_version() {
    let today = fs::read_to_string(tree().join("wit/policy.wit")).unwrap();
    for (version, dir) in versions() {
        let published = fs::read_to_string(dir.join("policy.wit")).unwrap();
        assert!(published.contains(&format!("package tread:policy@{version};")));
        let major = |version: &str| version.split('.').next().unwrap().to_owned();
        let now = today.split("package tread:policy@").nth(1).unwrap().split(';').next().unwrap();
        if major(now) == major(&version) {
            assert_eq!(breaks(&published, &today), [""; 0], "against {version}");
        }
    }
}

#[test]
fn a_change_of_the_contract_that_breaks_policies_is_seen() {
    let today = fs::read_to_string(tree().join("wit/policy.wit")).unwrap();
    let with = |from: &str, to: &str| {
        assert!(today.contains(from), "{from}");
        breaks(&today, &today.replace(from, to))
    };
    for (from, to) in [
        ("with-unchanged: bool,", "with-unchanged: bool,\n        also: bool,"),
        ("mode: u32,", "mode: u64,"),
        (
            "        drain,\n        /// The node is drained and boots.",
            "        drain,\n        more,",
        ),
        ("        reboot-undrained,\n", ""),
        ("-> result<_, list<string>>", "-> result<_, string>"),
        ("log: func(line: string);", "log: func(line: string, level: u8);"),
        ("    export classifier;\n", "    export classifier;\n    export more;\n"),
        ("    import host;\n", ""),
    ] {
        let today = match to.contains("export more") {
            true => {
                let text = today.replace(from, to) + "interface more { more: func(); }\n";
                breaks(&today, &text)
            }
            false => with(from, to),
        };
        assert!(!today.is_empty(), "{from:?} to {to:?} is not seen");
    }
    // What may change: comments, and interfaces that are new.
    assert_eq!(with("/// What every policy exports.", "/// Another comment."), [""; 0]);
    let more = today.clone() + "interface more { more: func(); }\n";
    assert_eq!(breaks(&today, &more.replace("policy@1.2.0;", "policy@1.3.0;")), [""; 0]);
}
