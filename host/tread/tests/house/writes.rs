//! Which crate writes what: `host/enforce` alone has calls that write to the cluster's nodes,
//! pools, configs and pods.
//!
//! Whoever asks the API server says by a `Call` what for. Such a call is looked at in the sources:
//! its verb, and its kind by the literal or the constant that stands there.

use super::tree;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// What only `host/enforce` writes.
const ITS_OWN: [&str; 7] =
    ["evictions", "leases", "machineconfigpools", "machineconfigs", "nodes", "nodeupdates", "pods"];

/// What others write of these all the same, and why that is no harm.
const OTHERS: [(&str, &str); 2] = [
    // The status of its own node's, which an admission policy holds it to.
    ("agent/src/saying.rs", "nodeupdates"),
    // The Lease by which one replica leads: no node's.
    ("kube/src/leadership/elect.rs", "leases"),
];

/// Calls whose kind only whoever calls knows: what they are for.
const FOR_ALL_KINDS: [&str; 2] = [
    // A watch that failed: it lists or watches.
    "kube/src/asking.rs",
    // Reviews, which keep nothing.
    "front/src/http/asks.rs",
];

/// The sources of a crate without its tests: by their paths below `host`.
pub(super) fn sources(folder: &Path, found: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with("tests") || path.ends_with("tests.rs") {
            continue;
        }
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|it| it == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap().to_owned();
            found.insert(path.strip_prefix(tree().join("host")).unwrap().to_owned(), code);
        }
    }
    let of_tests: Vec<PathBuf> =
        found.iter().flat_map(|(file, code)| tests_of(file, code)).collect();
    found.retain(|file, _| !of_tests.contains(file));
}

/// The files that a file declares as modules for tests alone.
fn tests_of(file: &Path, code: &str) -> Vec<PathBuf> {
    let below =
        if file.ends_with("lib.rs") { file.with_file_name("") } else { file.with_extension("") };
    let declared = code.split("#[cfg(test)]\n").skip(1).filter_map(|rest| {
        let (_, rest) = rest.lines().next()?.split_once("mod ")?;
        rest.strip_suffix(';')
    });
    declared.map(|name| below.join(format!("{name}.rs"))).collect()
}

/// The names of constants that are a text, with these.
fn constants(code: &str) -> BTreeMap<&str, &str> {
    let named = code.split("const ").skip(1).filter_map(|rest| {
        let (name, rest) = rest.split_once(": &str = \"")?;
        let (value, _) = rest.split_once('"')?;
        name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_').then_some((name, value))
    });
    named.collect()
}

/// The verb and the kind of each call, as they are written.
fn calls(code: &str) -> impl Iterator<Item = (&str, &str)> {
    code.split("Call::new(").skip(1).filter_map(|rest| {
        let (arguments, _) = rest.split_once(')')?;
        let (verb, kind) = arguments.split_once(',')?;
        Some((verb.trim(), kind.trim().trim_end_matches(',')))
    })
}

fn quoted(text: &str) -> Option<&str> {
    text.strip_prefix('"')?.strip_suffix('"')
}

#[test]
fn only_the_crate_that_acts_has_calls_that_write_nodes_pools_configs_and_pods() {
    let mut by_enforce = BTreeSet::new();
    let mut wrong = Vec::new();
    for folder in fs::read_dir(tree().join("host")).unwrap() {
        let folder = folder.unwrap().path();
        let is_enforce = folder.ends_with("enforce");
        let mut files = BTreeMap::new();
        sources(&folder.join("src"), &mut files);
        let of_crate: BTreeMap<&str, &str> = files.values().flat_map(|it| constants(it)).collect();
        for (file, code) in &files {
            let own = constants(code);
            let named = |name: &str| own.get(name).or_else(|| of_crate.get(name)).copied();
            // A verb that is no literal may be any.
            let writes = calls(code)
                .filter(|(verb, _)| !["get", "list", "watch"].map(Some).contains(&quoted(verb)));
            for (verb, kind) in writes {
                let known = quoted(kind).or_else(|| named(kind));
                let is_others = |kind| {
                    OTHERS.iter().any(|it| (Path::new(it.0), it.1) == (file.as_path(), kind))
                };
                match known {
                    Some(kind) if is_enforce => drop(by_enforce.insert(kind.to_owned())),
                    _ if is_enforce => {}
                    Some(kind) if !ITS_OWN.contains(&kind) || is_others(kind) => {}
                    None if FOR_ALL_KINDS.iter().any(|it| Path::new(it) == file) => {}
                    _ => wrong.push(format!("{}: {verb}, {kind}", file.display())),
                }
            }
            let has_params =
                ["PatchParams", "PostParams", "DeleteParams"].iter().any(|it| code.contains(it));
            if has_params && !is_enforce && !code.contains("Call::new(") && !code.contains(".ask(")
            {
                wrong.push(format!("{}: it writes without a `Call`", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "what only host/enforce may do:\n{}", wrong.join("\n"));
    // That these are found at all.
    let missing: Vec<&str> = ITS_OWN.into_iter().filter(|it| !by_enforce.contains(*it)).collect();
    assert!(missing.is_empty(), "nothing writes {missing:?}");
}

#[test]
fn a_call_is_found_however_its_kind_is_named() {
    let code = "const KIND: &str = \"pods\";\nlet a = Call::new(\n    \"patch\",\n    KIND,\n);\nlet b = |verb| Call::new(verb, \"nodes\");";
    assert_eq!(calls(code).collect::<Vec<_>>(), [("\"patch\"", "KIND"), ("verb", "\"nodes\"")]);
    assert_eq!(constants(code).get("KIND"), Some(&"pods"));
    assert_eq!((quoted("\"patch\""), quoted("verb")), (Some("patch"), None));
}
