//! The built-in policies' components as they are committed, and whether they
//! are still what their source gives.

use crate::build::source::build;
use anyhow::{Context as _, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use tread_console::exit::Exit;
use tread_model::digest::{Digest, Fields, Sha256};

/// The arguments of `tread policy prebuilt`.
#[derive(Debug, clap::Args)]
pub struct PrebuiltArgs {
    /// Check instead of writing
    #[arg(long)]
    pub check: bool,
    /// Write the components here, and leave those of the tree alone
    #[arg(long, value_name = "DIR", conflicts_with = "check")]
    pub into: Option<PathBuf>,
    /// The source tree
    #[arg(default_value = ".")]
    pub tree: PathBuf,
}

/// Builds the built-in policies of a source tree again, or checks them.
pub fn run(args: &PrebuiltArgs, out: &mut impl Write) -> Result<Exit> {
    if args.check {
        let count = check(&args.tree)?;
        writeln!(out, "{count} built-in policies are what their source gives")?;
        return Ok(Exit::Done);
    }
    let mut lines = Vec::new();
    refresh(&args.tree, args.into.as_deref(), |built| {
        let changed = if built.changed { "changed" } else { "as before" };
        lines.push(format!("{:<20} {:>7} bytes, {changed}", built.name, built.size));
    })?;
    lines.iter().try_for_each(|line| writeln!(out, "{line}"))?;
    Ok(Exit::Done)
}

/// What the manifest says of one component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// The digest of its bytes.
    component: String,
    /// The digest of what it was built from.
    source: String,
}

/// By the policy's name, which is also its crate's directory.
type Manifest = BTreeMap<String, Entry>;

/// Where the components and their manifest are in a source tree.
const PLACE: &str = "policies/prebuilt";

/// What to do about a stale component.
const REFRESH: &str = "build them again with `cargo run --release -- policy prebuilt`, \
    and commit policies/prebuilt";

/// A component that was built again.
#[derive(Debug)]
struct Refreshed {
    /// The policy's name.
    name: String,
    /// Its bytes.
    size: usize,
    /// Whether they are others than before.
    changed: bool,
}

/// Builds all built-in policies of the source tree `tree` from source, and
/// writes their components and the manifest to where they are committed, or
/// `into` another directory. `each` is told of every one.
fn refresh(tree: &Path, into: Option<&Path>, mut each: impl FnMut(&Refreshed)) -> Result<()> {
    let place = into.map_or_else(|| tree.join(PLACE), Path::to_owned);
    fs::create_dir_all(&place).with_context(|| format!("{} cannot be made", place.display()))?;
    let old = read(tree).unwrap_or_default();
    let mut manifest = Manifest::new();
    for name in crates(tree)? {
        // Before the build: what changes meanwhile makes it stale.
        let source = source(tree, &name)?;
        let dir = tree.join("policies").join(&name);
        let built = build(&dir, Some(&component(&place, &name)))?;
        let named = &built.description.name;
        ensure!(*named == name, "the policy in {} calls itself {named}", dir.display());
        let entry = Entry { component: built.digest.to_string(), source: source.to_string() };
        let changed = old.get(&name).map(|old| &old.component) != Some(&entry.component);
        each(&Refreshed { name: name.clone(), size: built.size, changed });
        manifest.insert(name, entry);
    }
    for gone in old.keys().filter(|name| !manifest.contains_key(*name)) {
        fs::remove_file(component(&place, gone)).ok();
    }
    let mut text = serde_json::to_string_pretty(&manifest)?;
    text.push('\n');
    let path = place.join("manifest.json");
    fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))
}

/// Fails if a committed component is not what the source of the tree gives, by
/// the digests of the manifest; builds nothing. Returns how many there are.
fn check(tree: &Path) -> Result<usize> {
    let manifest = read(tree)?;
    let crates = crates(tree)?;
    let mut faults = Vec::new();
    for name in &crates {
        if let Some(fault) = fault(tree, name, manifest.get(name))? {
            faults.push(format!("{name}: {fault}"));
        }
    }
    for name in manifest.keys().filter(|name| !crates.contains(name)) {
        faults.push(format!("{name}: there is no such policy any more"));
    }
    if !faults.is_empty() {
        bail!("prebuilt policies are stale:\n  {}\n{REFRESH}", faults.join("\n  "));
    }
    Ok(crates.len())
}

fn fault(tree: &Path, name: &str, entry: Option<&Entry>) -> Result<Option<&'static str>> {
    let Some(entry) = entry else { return Ok(Some("it was never built")) };
    if source(tree, name)?.to_string() != entry.source {
        return Ok(Some("its source has changed"));
    }
    let Ok(bytes) = fs::read(component(&tree.join(PLACE), name)) else {
        return Ok(Some("its component is missing"));
    };
    let same = Sha256::of(&bytes).to_string() == entry.component;
    Ok((!same).then_some("its component is not the one of the manifest"))
}

fn read(tree: &Path) -> Result<Manifest> {
    let path = tree.join(PLACE).join("manifest.json");
    let text =
        fs::read(&path).with_context(|| format!("{} cannot be read; {REFRESH}", path.display()))?;
    serde_json::from_slice(&text)
        .with_context(|| format!("{} is no manifest; {REFRESH}", path.display()))
}

fn component(place: &Path, name: &str) -> PathBuf {
    place.join(format!("{name}.wasm"))
}

/// The policies of the tree: the crates in `policies/` that make a module.
fn crates(tree: &Path) -> Result<Vec<String>> {
    let (policies, _) = split(tree)?;
    ensure!(!policies.is_empty(), "{} has no policies", tree.join("policies").display());
    Ok(policies)
}

/// The crates in `policies/`: those that make a module, and those that they share.
fn split(tree: &Path) -> Result<(Vec<String>, Vec<String>)> {
    let mut sides = (Vec::new(), Vec::new());
    for path in listed(&tree.join("policies"))? {
        // The link to the SDK, which lies elsewhere.
        if path.is_symlink() {
            continue;
        }
        let Ok(manifest) = fs::read_to_string(path.join("Cargo.toml")) else { continue };
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let side = if manifest.contains("\"cdylib\"") { &mut sides.0 } else { &mut sides.1 };
        side.push(name.to_owned());
    }
    Ok(sides)
}

/// The digest of all that a policy's component is made from: its own crate, the
/// crates that policies share, the SDK, the contract, and the lock file and
/// profile of the guests.
fn source(tree: &Path, name: &str) -> Result<Digest> {
    let policies = tree.join("policies");
    let mut files = vec![policies.join("Cargo.toml"), policies.join("Cargo.lock")];
    for shared in split(tree)?.1 {
        collect(&policies.join(shared), &mut files)?;
    }
    for dir in [policies.join(name), tree.join("guest-sdk"), tree.join("wit")] {
        collect(&dir, &mut files)?;
    }
    files.sort();
    let mut fields = Fields::new("tread prebuilt source 2");
    for file in files {
        let name = file.strip_prefix(tree).unwrap_or(&file);
        let bytes =
            fs::read(&file).with_context(|| format!("{} cannot be read", file.display()))?;
        fields.field(name.as_os_str().as_encoded_bytes());
        fields.field(&bytes);
    }
    Ok(fields.finish())
}

/// The files below `dir` that can go into a component.
fn collect(dir: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    const APART: [&str; 5] = ["tests", "benches", "examples", "target", "proptest-regressions"];
    for path in listed(dir)? {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with('.') || name.ends_with(".md") || APART.contains(&name) {
            continue;
        }
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// What is in `dir`, in order.
fn listed(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = |dir: &Path| -> std::io::Result<Vec<PathBuf>> {
        fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect()
    };
    let mut paths = entries(dir).with_context(|| format!("{} cannot be read", dir.display()))?;
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree with one policy whose component is up to date.
    fn tree() -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        for (file, text) in [
            ("policies/Cargo.toml", "[workspace]"),
            ("policies/Cargo.lock", "version = 4"),
            ("policies/chrony/Cargo.toml", "crate-type = [\"cdylib\", \"rlib\"]"),
            ("policies/chrony/src/lib.rs", "// policy"),
            ("policies/chrony/tests/all.rs", "// tests"),
            ("policies/shared/Cargo.toml", "[package]"),
            ("policies/shared/src/lib.rs", "// shared"),
            ("policies/prebuilt/chrony.wasm", "component"),
            ("guest-sdk/src/lib.rs", "// sdk"),
            ("wit/policy.wit", "package tread:policy;"),
        ] {
            write(tree.path(), file, text);
        }
        let entry = Entry {
            component: Sha256::of(b"component").to_string(),
            source: source(tree.path(), "chrony").unwrap().to_string(),
        };
        let manifest = serde_json::to_string(&Manifest::from([("chrony".into(), entry)])).unwrap();
        write(tree.path(), "policies/prebuilt/manifest.json", &manifest);
        tree
    }

    fn write(tree: &Path, file: &str, text: &str) {
        let path = tree.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_component_is_stale_when_anything_changes_that_it_is_made_of() {
        assert_eq!(check(tree().path()).unwrap(), 1);
        for file in [
            "policies/Cargo.toml",
            "policies/Cargo.lock",
            "policies/chrony/src/lib.rs",
            "policies/chrony/src/more.rs",
            "policies/shared/src/lib.rs",
            "guest-sdk/src/lib.rs",
            "wit/policy.wit",
        ] {
            let tree = tree();
            write(tree.path(), file, "// another");
            let error = check(tree.path()).unwrap_err().to_string();
            assert!(error.contains("chrony: its source has changed"), "{file}: {error}");
            assert!(error.contains("policy prebuilt"), "it says what to do: {error}");
        }
    }

    #[test]
    fn a_component_is_not_stale_when_its_tests_change() {
        let tree = tree();
        write(tree.path(), "policies/chrony/tests/all.rs", "// another");
        write(tree.path(), "policies/chrony/README.md", "# chrony");
        assert_eq!(check(tree.path()).unwrap(), 1);
    }

    #[test]
    fn every_other_way_of_being_stale_is_named() {
        let fault = |make: fn(&Path)| {
            let tree = tree();
            make(tree.path());
            check(tree.path()).unwrap_err().to_string()
        };
        let error = fault(|tree| write(tree, "policies/prebuilt/chrony.wasm", "edited"));
        assert!(error.contains("chrony: its component is not the one of the manifest"), "{error}");
        let error =
            fault(|tree| fs::remove_file(tree.join("policies/prebuilt/chrony.wasm")).unwrap());
        assert!(error.contains("chrony: its component is missing"), "{error}");
        let error = fault(|tree| write(tree, "policies/new/Cargo.toml", "[\"cdylib\"]"));
        assert!(error.contains("new: it was never built"), "{error}");
        let error = fault(|tree| {
            write(tree, "policies/other/Cargo.toml", "[\"cdylib\"]");
            fs::remove_dir_all(tree.join("policies/chrony")).unwrap();
        });
        assert!(error.contains("chrony: there is no such policy any more"), "{error}");
        let error = fault(|tree| write(tree, "policies/prebuilt/manifest.json", "{"));
        assert!(error.contains("is no manifest"), "{error}");
    }
}
