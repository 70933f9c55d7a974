//! Which crate may use which: what a crate can do is seen from what it depends on, and
//! which writes what.
//! That files within a crate use each other in one direction. And that the pages keep
//! their word: tests and links that they name are there, and a promise is one sentence
//! with a number. That nothing goes on of tests that are interrupted, and that CI tests what
//! its clone has.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[path = "house/ci.rs"]
mod ci;
#[path = "house/circles.rs"]
mod circles;
#[path = "house/image.rs"]
mod image;
#[path = "house/interrupted.rs"]
mod interrupted;
#[path = "house/literals.rs"]
mod literals;
#[path = "house/profile.rs"]
mod profile;
#[path = "house/writes.rs"]
mod writes;

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The crates of the host, and those of them that each may use.
const ARROWS: [(&str, &[&str]); 13] = [
    ("tread-model", &[]),
    ("tread-engine", &["tread-model"]),
    ("tread-kube", &["tread-model"]),
    ("tread-cluster", &["tread-engine", "tread-kube", "tread-model"]),
    ("tread-enforce", &["tread-cluster", "tread-kube", "tread-model"]),
    ("tread-front", &["tread-kube", "tread-model"]),
    ("tread-console", &["tread-model"]),
    ("tread-node", &["tread-model"]),
    ("tread-agent", &["tread-kube", "tread-model", "tread-node"]),
    ("tread-loading", &["tread-console", "tread-engine", "tread-model"]),
    ("tread-authoring", &["tread-console", "tread-engine", "tread-loading", "tread-model"]),
    (
        "tread",
        &[
            "tread-agent",
            "tread-authoring",
            "tread-cluster",
            "tread-console",
            "tread-enforce",
            "tread-engine",
            "tread-front",
            "tread-kube",
            "tread-loading",
            "tread-model",
            "tread-node",
        ],
    ),
    ("tread-image", &["tread"]),
];

/// What must not be in a crate, whichever way it would come there.
const WITHOUT: [(&str, &[&str]); 9] = [
    ("tread-model", &["kube", "tokio", "wasmtime"]),
    ("tread-engine", &["kube"]),
    ("tread-kube", &["wasmtime"]),
    ("tread-front", &["wasmtime"]),
    ("tread-console", &["kube", "tokio", "wasmtime"]),
    ("tread-node", &["kube", "wasmtime"]),
    ("tread-agent", &["wasmtime"]),
    ("tread-loading", &["kube", "tokio"]),
    ("tread-authoring", &["kube", "tokio"]),
];

fn metadata() -> Value {
    let out = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .arg("--manifest-path")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

/// What each package depends on, by id: without what only its tests and its build
/// need.
fn uses(metadata: &Value) -> BTreeMap<&str, Vec<&str>> {
    let nodes = metadata["resolve"]["nodes"].as_array().unwrap();
    nodes.iter().map(|node| (text(node, "id"), used(node))).collect()
}

fn used(node: &Value) -> Vec<&str> {
    let all = node["deps"].as_array().unwrap().iter();
    all.filter(|used| is_used(used)).map(|used| text(used, "pkg")).collect()
}

fn is_used(used: &Value) -> bool {
    used["dep_kinds"].as_array().unwrap().iter().any(|kind| kind["kind"].is_null())
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap()
}

fn names(metadata: &Value) -> BTreeMap<&str, &str> {
    let packages = metadata["packages"].as_array().unwrap();
    packages.iter().map(|package| (text(package, "id"), text(package, "name"))).collect()
}

#[test]
fn each_crate_of_the_host_uses_those_below_it_and_no_other() {
    let metadata = metadata();
    let (uses, names) = (uses(&metadata), names(&metadata));
    let in_host: BTreeMap<&str, &str> = names
        .iter()
        .filter(|(id, name)| name.starts_with("tread") && id.contains("/host/"))
        .map(|(id, name)| (*name, *id))
        .collect();
    let stated: BTreeSet<&str> = ARROWS.iter().map(|(name, _)| *name).collect();
    assert_eq!(in_host.keys().copied().collect::<BTreeSet<_>>(), stated);
    for (name, below) in ARROWS {
        let used = uses[in_host[name]].iter().map(|id| names[id]);
        let used: BTreeSet<&str> = used.filter(|name| in_host.contains_key(name)).collect();
        assert_eq!(used, below.iter().copied().collect(), "{name}");
    }
}

#[test]
fn what_decides_is_built_without_what_it_must_not_reach() {
    let metadata = metadata();
    let (uses, names) = (uses(&metadata), names(&metadata));
    for (name, without) in WITHOUT {
        let (id, _) = names.iter().find(|(_, other)| **other == name).unwrap();
        let mut reached = BTreeSet::new();
        let mut next = vec![*id];
        while let Some(id) = next.pop() {
            if reached.insert(names[id]) {
                next.extend(&uses[id]);
            }
        }
        for unwanted in without {
            assert!(!reached.contains(unwanted), "{name} reaches {unwanted}");
        }
    }
}

/// The names of all functions below a folder.
fn functions(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            functions(&path, names);
        } else if path.extension().is_some_and(|it| it == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let declared = text.split("fn ").skip(1).filter_map(|rest| rest.split_once('('));
            names.extend(declared.map(|(name, _)| name.to_owned()));
        }
    }
}

/// What stands in backticks and reads like the name of a test: many words, and no
/// metric.
fn tests_named_in(page: &str) -> impl Iterator<Item = &str> {
    page.split('`').skip(1).step_by(2).filter(|quoted| {
        quoted.len() > 24
            && quoted.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
            && !quoted.starts_with("tread_")
    })
}

fn tree() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn text_of(page: &Path) -> String {
    std::fs::read_to_string(page).unwrap()
}

/// All Markdown pages below a folder: without what is built, hidden or linked.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let (entry, hidden) = entry.map(|it| (it.path(), it.file_name())).unwrap();
        let hidden = hidden.to_string_lossy().starts_with('.');
        if hidden || entry.is_symlink() || entry.ends_with("target") {
            continue;
        }
        if entry.is_dir() {
            found.extend(pages(&entry));
        } else if entry.extension().is_some_and(|it| it == "md") {
            found.push(entry);
        }
    }
    found
}

/// The names of all functions in the tree.
fn all_functions() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for folder in ["host", "guest-sdk", "policies", "tests"] {
        functions(&tree().join(folder), &mut names);
    }
    names
}

#[test]
fn every_test_that_a_page_names_is_there() {
    let names = all_functions();
    let at_the_top = ["SECURITY.md", "SPECIFICATION.md", "CONTRIBUTING.md"];
    let mut all: Vec<PathBuf> = at_the_top.iter().map(|page| tree().join(page)).collect();
    for page in &all {
        assert!(
            tests_named_in(&text_of(page)).next().is_some(),
            "{} names no test",
            page.display()
        );
    }
    all.extend(["host", "policies"].iter().flat_map(|folder| pages(&tree().join(folder))));
    for page in all {
        let text = text_of(&page);
        let missing: Vec<&str> = tests_named_in(&text).filter(|it| !names.contains(*it)).collect();
        assert!(
            missing.is_empty(),
            "{} names tests that are not there: {missing:?}",
            page.display()
        );
    }
}

/// The lines of a page that are no code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut code = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        !fence && !code
    })
}

/// A text without what stands in backticks.
fn without_code(text: &str) -> String {
    text.split('`').step_by(2).collect()
}

/// The targets of all links of a page.
fn links(text: &str) -> Vec<String> {
    let prose: Vec<&str> = prose(text).collect();
    let prose = without_code(&prose.join("\n"));
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| target.to_owned()).collect()
}

/// The anchors of a page's headings, by GitHub's rule.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    let headings = prose(text).filter(|line| line.starts_with('#'));
    headings
        .map(|heading| {
            let heading = heading.trim_start_matches('#').trim().to_lowercase();
            let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
            let before = found.entry(anchor.clone()).or_default();
            *before += 1;
            match *before {
                1 => anchor,
                more => format!("{anchor}-{}", more - 1),
            }
        })
        .collect()
}

#[test]
fn anchors_are_those_that_github_makes() {
    let page =
        "# `tread plan -f`\n## Who wins, and why?\n```\n# no heading\n```\n## Who wins, and why?\n";
    let expected = ["tread-plan--f", "who-wins-and-why", "who-wins-and-why-1"];
    assert_eq!(anchors(page), expected.map(str::to_owned).into_iter().collect());
}

#[test]
fn every_link_of_a_page_leads_somewhere() {
    let mut dead = Vec::new();
    for page in pages(tree()) {
        let text = text_of(&page);
        for link in links(&text).into_iter().filter(|link| !link.contains("://")) {
            let (file, anchor) = link.split_once('#').unwrap_or((link.as_str(), ""));
            let mut target = match file {
                "" => page.clone(),
                file => page.parent().unwrap().join(file),
            };
            if target.is_dir() && !anchor.is_empty() {
                target.push("README.md");
            }
            let there = target.exists()
                && (anchor.is_empty() || anchors(&text_of(&target)).contains(anchor));
            if !there {
                dead.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(dead.is_empty(), "links that lead nowhere: {dead:#?}");
}

/// A row of the specification: its number, what it says, and its last cell.
struct Row<'p> {
    number: &'p str,
    says: &'p str,
    last: &'p str,
    is_promise: bool,
}

/// All rows of all tables of the specification.
fn rows(page: &str) -> Vec<Row<'_>> {
    let mut is_promise = false;
    let mut rows = Vec::new();
    for line in page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| ---")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [number, says, .., last] = cells.as_slice() else { panic!("{line}: too few cells") };
        if *number == "no." {
            is_promise = *says == "promise";
        } else {
            rows.push(Row { number, says, last, is_promise });
        }
    }
    rows
}

/// Whether a number is a letter and digits.
fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix(|c: char| c.is_ascii_uppercase()).unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// What shows a promise is one test, one file or one command, which is there.
fn shows(shown: &str, names: &BTreeSet<String>) -> bool {
    let Some(code) = shown.strip_prefix('`').and_then(|it| it.strip_suffix('`')) else {
        return false;
    };
    let program = code.split(' ').next().unwrap_or_default();
    match code.contains('`') {
        true => false,
        false if program == "cargo" => true,
        false if program.contains('/') => tree().join(program).is_file(),
        false => names.contains(code),
    }
}

#[test]
fn a_promise_is_one_sentence_with_a_number_and_one_test_and_all_are_read_in_five_minutes() {
    const MOST_WORDS: usize = 1600;
    let page = text_of(&tree().join("SPECIFICATION.md"));
    let names = all_functions();
    let (mut numbers, mut words) = (BTreeSet::new(), 0);
    for Row { number, says, last, is_promise } in rows(&page) {
        assert!(is_number(number), "{number:?} is no number: a letter and digits are expected");
        assert!(numbers.insert(number), "{number} stands there twice");
        if is_promise {
            let sentence = without_code(says);
            words += sentence.split_whitespace().count();
            let one = sentence.trim_end().ends_with('.') && !sentence.contains(". ");
            assert!(one, "{number}: one sentence is expected: {says}");
            assert!(
                shows(last, &names),
                "{number}: one test or command that is there is expected: {last}"
            );
        }
    }
    assert!(
        words > 0 && words <= MOST_WORDS,
        "{words} words of promises, and {MOST_WORDS} are a page"
    );
}

/// The numbers that the first lines of a page name: `D1 to D9, X2 and X4`.
fn detailed(text: &str) -> Vec<String> {
    let Some((_, rest)) = text.split_once("\nDetails of ") else { return Vec::new() };
    let (said, _) = rest.split_once(" in the [specification](").unwrap_or_default();
    let said = said.replace(" and ", ", ");
    let mut numbers = Vec::new();
    for part in said.split(',').map(str::trim) {
        let (first, last) = part.split_once(" to ").unwrap_or((part, part));
        let letter: String = first.chars().take(1).collect();
        let count = |number: &str| number.trim_start_matches(&letter).parse::<u32>().unwrap();
        assert!(is_number(first) && is_number(last), "{part}");
        numbers.extend((count(first)..=count(last)).map(|number| format!("{letter}{number}")));
    }
    numbers
}

#[test]
fn every_promise_has_its_details_on_a_page_that_names_it() {
    let page = text_of(&tree().join("SPECIFICATION.md"));
    let promised: BTreeSet<&str> = rows(&page).iter().map(|row| row.number).collect();
    let texts: Vec<String> = pages(tree()).iter().map(|page| text_of(page)).collect();
    let detailed: BTreeSet<String> = texts.iter().flat_map(|text| detailed(text)).collect();
    let detailed: BTreeSet<&str> = detailed.iter().map(String::as_str).collect();
    assert_eq!(detailed, promised);
}
