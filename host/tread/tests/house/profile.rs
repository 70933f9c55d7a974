//! Whatever computes is optimised.

use super::{metadata, names, text, text_of, tree, uses};
use std::collections::BTreeSet;

/// The packages whose section of this profile in the manifest of the workspace has one of these lines.
fn built_with(profile: &str, lines: &[&str]) -> BTreeSet<String> {
    let manifest = text_of(&tree().join("Cargo.toml"));
    let begin = format!("[profile.{profile}.package.");
    let sections = manifest.split(&begin).skip(1);
    let named = sections.filter_map(|section| {
        let (name, rest) = section.split_once(']')?;
        let rest = rest.split("\n[").next()?;
        let has = rest.lines().any(|line| lines.contains(&line));
        has.then(|| name.trim_matches('"').to_owned())
    });
    named.collect()
}

/// The packages that are built without optimisation, so that whoever builds tread waits less.
fn built_without() -> BTreeSet<String> {
    built_with("release", &["opt-level = 0"])
}

/// The packages that are built small in place of fast, for the same.
fn built_small() -> BTreeSet<String> {
    built_with("release", &["opt-level = \"s\""])
}

/// They work at each request or command, so that they are optimised where tread is shipped.
const ANSWERING: [&str; 3] = ["clap_builder", "hyper", "rustls"];

/// Of the sandbox, and never called: another target than the processor, and modules printed as text.
const NEVER_CALLED: [&str; 2] = ["pulley-interpreter", "wasmprinter"];

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
    let mut expected = built_small();
    assert!(expected.contains("cranelift-codegen") && expected.contains("tread-model"));
    expected.extend(built_without().into_iter().filter(own));
    expected.extend(ANSWERING.map(str::to_owned));
    assert!(expected.iter().all(|name| named.contains(name.as_str())), "{expected:?}");
    assert_eq!(expected, built_with("dist", &["opt-level = 3"]));
    let dockerfile = text_of(&tree().join("Dockerfile"));
    let builds: Vec<&str> =
        dockerfile.lines().filter(|line| line.contains("cargo build")).collect();
    assert_eq!(builds.len(), 2, "{builds:?}");
    assert!(builds.iter().all(|line| line.contains("--profile dist")), "{builds:?}");
    assert!(!dockerfile.contains("/release/"), "it takes what another profile built");
}
