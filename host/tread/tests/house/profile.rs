//! Whatever computes is optimised, and each crate is built once.

use super::{metadata, names, text, text_of, tree, uses};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// The packages that have a section in this profile of the workspace's manifest, and the level of
/// optimisation that it says.
fn levels(profile: &str) -> BTreeMap<String, String> {
    let manifest = text_of(&tree().join("Cargo.toml"));
    let begin = format!("[profile.{profile}.package.");
    let sections = manifest.split(&begin).skip(1);
    let named = sections.filter_map(|section| {
        let (name, rest) = section.split_once(']')?;
        let mut lines = rest.split("\n[").next()?.lines();
        let level = lines.find_map(|line| line.strip_prefix("opt-level = "))?;
        Some((name.trim_matches('"').to_owned(), level.to_owned()))
    });
    named.collect()
}

/// The packages that are built without optimisation, so that whoever builds tread waits less.
fn built_without() -> BTreeSet<String> {
    let levels = levels("release").into_iter();
    levels.filter(|(_, level)| level == "0").map(|(name, _)| name).collect()
}

/// The packages that are optimised, but less than others, so that whoever builds tread waits less.
fn built_with_less() -> BTreeSet<String> {
    let levels = levels("release").into_iter();
    levels
        .filter(|(_, level)| !["0", "3"].contains(&level.as_str()))
        .map(|(name, _)| name)
        .collect()
}

/// They work at each request, command or operation, so that they are optimised where tread is shipped.
const AT_EACH_REQUEST: [&str; 5] = ["clap_builder", "hyper", "rustls", "zbus", "zbus_utils"];

/// Never called: another target than the processor, modules printed as text, texts that are not UTF-8,
/// and errors of YAML drawn with their lines.
const NEVER_CALLED: [&str; 4] =
    ["annotate-snippets", "encoding_rs", "pulley-interpreter", "wasmprinter"];

#[test]
fn nothing_that_the_model_or_the_sandbox_is_made_of_is_built_without_optimisation() {
    let metadata = metadata();
    let (uses, names) = (uses(&metadata), names(&metadata));
    let packages = metadata["packages"].as_array().unwrap().iter();
    // What runs in the compiler.
    let macros: BTreeSet<&str> = packages
        .filter(|it| {
            it["targets"].as_array().unwrap().iter().any(|it| it["kind"][0] == "proc-macro")
        })
        .map(|it| text(it, "id"))
        .collect();
    let mut reached = BTreeSet::new();
    let mut next: Vec<&str> = names.keys().copied().collect();
    next.retain(|id| ["tread-model", "tread-engine"].contains(&names[id]));
    assert_eq!(next.len(), 2);
    while let Some(id) = next.pop() {
        if !macros.contains(id) && reached.insert(id) {
            next.extend(&uses[id]);
        }
    }
    let reached: BTreeSet<&str> = reached.into_iter().map(|id| names[id]).collect();
    assert!(reached.contains("cranelift-codegen") && reached.contains("serde_json"));
    let mut low = built_without();
    assert!(NEVER_CALLED.iter().all(|&name| low.remove(name) && reached.contains(name)));
    assert!(low.contains("tread") && low.contains("k8s-openapi"), "{low:?}");
    let wrong: Vec<&String> = low.iter().filter(|name| reached.contains(name.as_str())).collect();
    assert!(wrong.is_empty(), "Cargo.toml builds {wrong:?} without optimisation");
}

#[test]
fn all_of_tread_and_all_that_computes_for_it_is_optimised_as_it_is_shipped() {
    let metadata = metadata();
    let own = |name: &String| name.starts_with("tread") && name != "tread-test-bed";
    let named: BTreeSet<&str> = names(&metadata).into_values().collect();
    let mut expected = built_with_less();
    assert!(expected.contains("cranelift-codegen") && expected.contains("tread-model"));
    expected.extend(built_without().into_iter().filter(own));
    expected.extend(AT_EACH_REQUEST.map(str::to_owned));
    assert!(expected.iter().all(|name| named.contains(name.as_str())), "{expected:?}");
    let shipped = levels("dist");
    assert_eq!(expected, shipped.keys().cloned().collect());
    assert!(shipped.values().all(|level| level == "3"), "{shipped:?}");
    let dockerfile = text_of(&tree().join("Dockerfile"));
    let builds: Vec<&str> =
        dockerfile.lines().filter(|line| line.contains("cargo build")).collect();
    assert_eq!(builds.len(), 2, "{builds:?}");
    assert!(builds.iter().all(|line| line.contains("--profile dist")), "{builds:?}");
    assert!(!dockerfile.contains("/release/"), "it takes what another profile built");
}

/// A build script asks for what reads archives with it, and tread for what writes files for a linker.
const BUILT_TWICE: [&str; 2] = ["crc32fast", "object"];

#[test]
fn what_macros_and_tread_are_both_made_of_is_built_once() {
    // How cargo builds tread is told by an option that is not stable yet.
    let out = Command::new(env!("CARGO"))
        .args(["build", "--release", "--locked", "--offline", "-p", "tread"])
        .args(["-Z", "unstable-options", "--unit-graph"])
        .env("RUSTC_BOOTSTRAP", "1")
        .current_dir(tree())
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let graph: Value = serde_json::from_slice(&out.stdout).unwrap();
    let mut built: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for unit in graph["units"].as_array().unwrap() {
        let kind = unit["target"]["kind"][0].as_str().unwrap();
        if text(unit, "mode") == "build" && !["bin", "custom-build"].contains(&kind) {
            let how = format!("{} {}", text(&unit["profile"], "opt_level"), unit["features"]);
            built.entry(text(unit, "pkg_id")).or_default().push(how);
        }
    }
    assert!(built.len() > 200, "{} crates", built.len());
    built.retain(|_, hows| hows.len() > 1);
    let excused = |id: &str| BUILT_TWICE.iter().any(|name| id.contains(&format!("#{name}@")));
    assert_eq!(built.keys().filter(|id| excused(id)).count(), BUILT_TWICE.len(), "{built:#?}");
    built.retain(|id, _| !excused(id));
    assert!(
        built.is_empty(),
        "give each one level in [profile.release] and the features of both, as \
         host/engine/Cargo.toml does, so that it is built once: {built:#?}"
    );
}
