//! Whatever computes is optimised.

use super::{metadata, names, text, text_of, tree, uses};
use std::collections::BTreeSet;

/// The packages that the manifest of the workspace has built with less optimisation.
fn built_with_less() -> BTreeSet<String> {
    let manifest = text_of(&tree().join("Cargo.toml"));
    let sections = manifest.split("[profile.release.package.").skip(1);
    let low = sections.filter_map(|section| {
        let (name, rest) = section.split_once(']')?;
        let rest = rest.split("\n[").next()?;
        let low = rest.lines().any(|line| matches!(line, "opt-level = 0" | "opt-level = 1"));
        low.then(|| name.trim_matches('"').to_owned())
    });
    low.collect()
}

#[test]
fn nothing_that_the_model_or_the_sandbox_is_made_of_is_built_with_less_optimisation() {
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
    let low = built_with_less();
    assert!(low.contains("tread") && low.contains("k8s-openapi"), "{low:?}");
    let wrong: Vec<&String> = low.iter().filter(|name| reached.contains(name.as_str())).collect();
    assert!(wrong.is_empty(), "Cargo.toml builds {wrong:?} with less optimisation");
}
