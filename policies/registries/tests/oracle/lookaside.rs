//! Pairs that differ in registries.d.

use crate::chance::Chance;
use crate::node::{Node, Pair};
use std::collections::BTreeSet;
use tread_policy_registries::Settings;

const FILES: &[&str] = &[
    "a.yaml",
    "b.yaml",
    "default.yaml",
    "registry.redhat.io.yaml",
    "a.yml",
    "more/a.yaml",
    "b.yaml.bak",
    ".yaml",
];
const NAMESPACES: &[&str] = &[
    "a.io",
    "a.io/p",
    "a.io:5000",
    "a.io:5000/p",
    "10.0.0.1:5000",
    "10.0.0.1",
    "registry.redhat.io",
    "registry.access.redhat.com",
    "\"b.io\"",
    "'b.io'",
    "b.io",
    "*.w.io",
    "[fd00::1]:5000",
    "1",
    "yes",
    "~",
];
const PLACES: &[&str] = &[
    "https://a.io/signatures",
    "\"https://a.io/signatures\"",
    "'http://10.0.0.1:8080'",
    "file:///var/lib/signatures",
    "file:/var/lib/signatures",
    "https://[fd00::1]:8080/x",
    "https://[fd00::1/x",
    "https://a.io/%zz",
    "https://a.io/%20",
    "https://a.io:port/",
    "https://user@a.io/x?y#z",
    "HTTPS://a.io",
    "ftp://a.io",
    "/var/lib/signatures",
    "a.io",
    ":a",
    "\"\"",
    "",
    "~",
    "1",
    "true",
    "[https://a.io]",
    "{a: b}",
    "&anchor https://a.io",
    "!!str https://a.io",
    "|\n        https://a.io",
];
const TRUTHS: &[&str] = &[
    "true", "false", "True", "yes", "'yes'", "off", "oN", "1", "\"true\"", "~", "", "[]", "maybe",
];
const PIECES: &[&str] = &[
    "docker:",
    "docker: {}",
    "default-docker:",
    "default-docker: {}",
    "default-docker: null",
    "default-docker: {use-sigstore-attachments: true}",
    "  a.io: {}",
    "  a.io:",
    "    lookaside: https://b.io",
    "\tlookaside: https://b.io",
    "---",
    "...",
    "%YAML 1.2",
    "# comment",
    "  #\tcomment",
    " # comment",
    "<<: *x",
    "? a",
    "- a",
    "other: [1, {a: b}]",
    "other: &x [1, 2",
    "other: \"a\\x41\"",
    "Docker: []",
    "docker: {a.io: {lookaside: https://c.io}}",
    "{\"docker\": {\"a.io\": {}}}",
    "text",
    "'",
    "\u{feff}",
];

fn namespace(chance: &mut Chance, indent: &str) -> String {
    let mut text = String::new();
    let mut keys = vec!["lookaside", "sigstore", "lookaside-staging", "use-sigstore-attachments"];
    for _ in 0..chance.below(3) {
        // Seldom twice.
        let at = chance.below(keys.len());
        let key = if chance.percent(4) { keys[at] } else { keys.remove(at) };
        let sane = chance.percent(85);
        let value = match (key, sane) {
            ("use-sigstore-attachments", true) => "true",
            ("use-sigstore-attachments", false) => chance.of(TRUTHS),
            (_, true) => PLACES[chance.below(4)],
            (_, false) => chance.of(PLACES),
        };
        text += &format!("{indent}{key}: {value}\n");
    }
    text
}

fn yaml(chance: &mut Chance) -> String {
    let mut text = String::new();
    if chance.percent(10) {
        text += "# where signatures are\n---\n";
    }
    if chance.percent(25) {
        text += "default-docker:\n";
        text += &namespace(chance, "  ");
    }
    if chance.percent(85) {
        text += "docker:\n";
    }
    for _ in 0..chance.below(3) {
        let sane = if chance.percent(85) { 8 } else { NAMESPACES.len() };
        let name = NAMESPACES[chance.below(sane)];
        match chance.below(8) {
            0 => text += &format!("  {name}: {{}}\n"),
            1 => text += &format!("  {name}: {{use-sigstore-attachments: true}}\n"),
            2 => text += &format!("  {name}: {{lookaside: {}}}\n", chance.of(PLACES)),
            _ => {
                text += &format!("  {name}:\n");
                text += &namespace(chance, "    ");
            }
        }
    }
    if chance.percent(15) { chance.spoiled(&text, PIECES) } else { text }
}

pub(crate) fn pair(chance: &mut Chance) -> Pair {
    let mut before = Node::default();
    for _ in 0..chance.below(3) {
        before.set_lookaside(chance.of(&FILES[..4]), yaml(chance));
    }
    let mut after = before.clone();
    for _ in 0..=chance.below(2) {
        let known = if chance.percent(90) { 4 } else { FILES.len() };
        after.set_lookaside(chance.of(&FILES[..known]), yaml(chance));
    }
    if chance.percent(10) {
        after.files.pop_first();
    }
    let repositories =
        ["a.io/r", "a.io/p/r", "a.io:5000/p/r", "10.0.0.1:5000/r", "b.io/r", "z.io/r"];
    let names: BTreeSet<String> = repositories.map(|name| format!("{name}:1")).into();
    Pair { before, after, names, settings: Settings::default() }
}
