//! The policies that tread brings: their components are part of the binary.

use anyhow::{Context as _, Result, ensure};
use std::borrow::Cow;
use std::fs;
use std::path::Path;
use tread_engine::limits::Limits;
use tread_engine::policy::{Policy, Wishes};
use tread_model::digest::Sha256;
use tread_model::verdict::Layer;

/// A component that is part of the binary.
#[derive(Debug)]
pub struct Prebuilt {
    /// The crate's directory in `policies/`, and the policy's name.
    pub name: &'static str,
    /// The component.
    pub component: &'static [u8],
}

macro_rules! prebuilt {
    ($($name:literal),* $(,)?) => {
        &[$(Prebuilt {
            name: $name,
            component: include_bytes!(concat!("../../../policies/prebuilt/", $name, ".wasm")),
        }),*]
    };
}

/// Those that decide on every plan.
pub const BUILTINS: &[Prebuilt] = prebuilt![
    "certificates",
    "kernel-arguments",
    "network",
    "node-services",
    "os-image",
    "registries",
    "ssh-keys",
];

/// The one that carries out rules; it is loaded once for each set of rules.
const RULES: &[Prebuilt] = prebuilt!["rules"];

/// The digests as they were when the components were built, so that nothing has
/// to be hashed at each start.
const MANIFEST: &str = include_str!("../../../policies/prebuilt/manifest.json");

/// All the built-in policies, each with what an admin wishes of it.
pub fn load(limits: &Limits, mut wishes: impl FnMut(&str) -> Wishes) -> Result<Vec<Policy>> {
    let digests = digests()?;
    BUILTINS
        .iter()
        .map(|prebuilt| load_one(prebuilt, &digests, Layer::Builtin, wishes(prebuilt.name), limits))
        .collect()
}

/// As [`load`], with the components in a directory instead of those of the
/// binary: for those who just built them.
pub fn load_from(
    dir: &Path,
    limits: &Limits,
    mut wishes: impl FnMut(&str) -> Wishes,
) -> Result<Vec<Policy>> {
    BUILTINS
        .iter()
        .map(|it| load_file(dir, it.name, Layer::Builtin, wishes(it.name), limits))
        .collect()
}

/// As [`load_rules`], from a directory.
pub fn load_rules_from(
    dir: &Path,
    layer: Layer,
    wishes: Wishes,
    limits: &Limits,
) -> Result<Policy> {
    load_file(dir, "rules", layer, wishes, limits)
}

fn load_file(
    dir: &Path,
    name: &str,
    layer: Layer,
    wishes: Wishes,
    limits: &Limits,
) -> Result<Policy> {
    let path = dir.join(name).with_extension("wasm");
    let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Policy::new(Cow::Owned(bytes), None, layer, wishes, limits)
        .with_context(|| path.display().to_string())
}

/// A component that is part of the binary, and its digest.
pub type Digested = (&'static Prebuilt, Sha256);

/// Those that decide on every plan, and the one that carries out rules, for those
/// who load them one by one.
pub fn all() -> Result<(Vec<Digested>, Digested)> {
    let digests = digests()?;
    let digested = |it: &'static Prebuilt| Ok((it, digest(it, &digests)?));
    let [rules] = RULES else { anyhow::bail!("the binary has no policy for rules") };
    Ok((BUILTINS.iter().map(digested).collect::<Result<_>>()?, digested(rules)?))
}

/// The policy that carries out rules, with these as its settings.
pub fn load_rules(layer: Layer, wishes: Wishes, limits: &Limits) -> Result<Policy> {
    let [rules] = RULES else { anyhow::bail!("the binary has no policy for rules") };
    load_one(rules, &digests()?, layer, wishes, limits)
}

fn load_one(
    prebuilt: &Prebuilt,
    digests: &serde_json::Map<String, serde_json::Value>,
    layer: Layer,
    wishes: Wishes,
    limits: &Limits,
) -> Result<Policy> {
    let digest = digest(prebuilt, digests)?;
    Policy::new(Cow::Borrowed(prebuilt.component), Some(digest), layer, wishes, limits)
        .with_context(|| broken(prebuilt))
}

fn digest(
    prebuilt: &Prebuilt,
    digests: &serde_json::Map<String, serde_json::Value>,
) -> Result<Sha256> {
    let entry = digests.get(prebuilt.name).and_then(|entry| entry.get("component")?.as_str());
    entry.and_then(Sha256::parse).with_context(|| broken(prebuilt))
}

fn broken(prebuilt: &Prebuilt) -> String {
    format!("the built-in policy {} of this binary is broken", prebuilt.name)
}

fn digests() -> Result<serde_json::Map<String, serde_json::Value>> {
    serde_json::from_str(MANIFEST).context("the manifest of the built-in policies is broken")
}

/// Whether a policy may have this name. `component` is its digest: a built-in one
/// has its own name.
pub fn check_name(name: &str, component: Option<Sha256>) -> Result<()> {
    let builtin = BUILTINS.iter().find(|builtin| builtin.name == name);
    let own = builtin.is_none_or(|it| component == Some(Sha256::of(it.component)));
    ensure!(own, "{}", taken(name));
    Ok(())
}

/// Why no policy has the name of a built-in one.
pub fn taken(name: &str) -> String {
    format!(
        "a policy is named {name}, which is the name of a built-in one: rename it (`NAME` in its \
         source, mostly the crate's name; `metadata.name` of rules)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_policy_is_what_the_manifest_says_and_describes_itself_by_its_name() {
        let digests = digests().unwrap();
        for prebuilt in BUILTINS.iter().chain(RULES) {
            let layer = Layer::Builtin;
            let policy =
                load_one(prebuilt, &digests, layer, Wishes::default(), &Limits::default()).unwrap();
            assert_eq!(policy.identity.digest, Sha256::of(prebuilt.component), "{}", prebuilt.name);
            assert_eq!(policy.identity.policy, prebuilt.name);
        }
    }

    #[test]
    fn only_a_built_in_policy_has_the_name_of_one() {
        let own = BUILTINS.first().unwrap();
        assert!(check_name("chrony", None).is_ok());
        assert!(check_name(own.name, Some(Sha256::of(own.component))).is_ok());
        for other in [None, Some(Sha256::of(b"other"))] {
            let error = check_name(own.name, other).unwrap_err().to_string();
            assert!(error.contains(own.name) && error.contains("rename it"), "{error}");
        }
    }
}
