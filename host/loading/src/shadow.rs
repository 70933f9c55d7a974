//! The policies that are only tried, beside those that decide.

use crate::args::PolicyArgs;
use crate::builtins;
use crate::file::{check_standard_input, no_directory, one};
use crate::given::{Module, Packed, WASM, kinds_of_manifest, packed};
use crate::policies::{GivenRules, Read, check, component, named, rules_policy, with_hints};
use anyhow::Result;
use std::path::{Path, PathBuf};
use tread_console::exit::UsageError;
use tread_console::inputs::NamedBytes;
use tread_engine::planner::Shadows;
use tread_engine::policy::{Policy, PolicySet, compile_ahead};
use tread_engine::sandbox::Sandbox;
use tread_model::digest::Sha256;
use tread_model::plan::compare::ShadowPolicy;
use tread_model::read::Input;
use tread_model::rules;
use tread_model::verdict::{Failure, FailureKind, Layer};

/// All policies that decide, with what an admin should know of them, and those
/// in the files `paths`, which are only tried.
pub fn policies_and_shadows(
    args: &PolicyArgs,
    paths: &[PathBuf],
    sandbox: &Sandbox,
) -> Result<(PolicySet, Vec<String>, Option<Shadows>)> {
    let limits = sandbox.limits();
    if paths.is_empty() {
        let (set, warnings) = named(args, limits)?;
        return Ok((set, warnings, None));
    }
    check_standard_input(args.paths().chain(paths.iter().map(PathBuf::as_path)))?;
    let read = Read::new(args, limits)?;
    let (mut given, mut given_rules, mut broken) = (Vec::new(), Vec::new(), Vec::new());
    let mut notes = Vec::new();
    for path in paths {
        no_directory(path)?;
        let file = one(path)?;
        let modules = if let Some(Packed { modules, rules }) = packed(&file)? {
            let name = &file.name;
            notes.extend(rules.map(|kind| {
                format!(
                    "{name} holds a {kind} too, which is not tried: give it with --shadow in a \
                     file of its own."
                )
            }));
            modules
        } else if holds_rules(path, &file) {
            let read = rules::read_shadow(&Input { name: &file.name, bytes: &file.bytes });
            let place = |rules| GivenRules { place: file.name.clone(), rules };
            given_rules.extend(read.map_err(with_hints)?.into_iter().map(place));
            continue;
        } else {
            vec![Module::alone(file)]
        };
        for module in modules {
            match module.described(limits) {
                Ok(policy) => given.push(policy),
                Err((Module { place, component, .. }, failure)) => {
                    broken.push(broken_policy(place, Sha256::of(&component), failure));
                }
            }
        }
    }
    check(args, &read, &given, &given_rules, limits)?;

    let mut tried = Vec::new();
    for given in given {
        let (place, digest) = (given.place.clone(), Sha256::of(&given.component));
        if let Some(failure) = taken(&given.description.name) {
            broken.push(broken_policy(place, digest, failure));
            continue;
        }
        match component(given, args, &read.settings, limits) {
            Ok(policy) => tried.push(policy),
            Err(failure) => broken.push(broken_policy(place, digest, failure)),
        }
    }
    for GivenRules { rules, .. } in given_rules {
        let (policy, more) = rules_policy(rules, limits)?;
        notes.extend(more);
        tried.push(policy);
    }
    let (set, warnings) = read.load(args, limits, |_| true)?;
    let replaces = |policy: &Policy| {
        set.policies().iter().any(|own| {
            let (own, other) = (&own.identity, &policy.identity);
            (own.layer, &own.policy) == (other.layer, &other.policy)
        })
    };
    compile_ahead(&tried, sandbox);
    let mut shown: Vec<ShadowPolicy> = tried
        .iter()
        .map(|it| ShadowPolicy::new(&it.identity, replaces(it), it.check(sandbox).err()))
        .collect();
    shown.extend(broken);
    let with = set.with(tried).map_err(UsageError)?;
    Ok((set, warnings, Some(Shadows { with, policies: shown, warnings: notes })))
}

/// No policy has the name of a built-in one. To one that decides this is an
/// error; of one that is only tried, the plan must not depend.
fn taken(name: &str) -> Option<Failure> {
    let is_taken = builtins::BUILTINS.iter().any(|builtin| builtin.name == name);
    is_taken.then(|| Failure { kind: FailureKind::BadDescription, message: builtins::taken(name) })
}

/// It costs nothing that it cannot be loaded: it is only tried.
fn broken_policy(name: String, digest: Sha256, failure: Failure) -> ShadowPolicy {
    ShadowPolicy {
        policy: name,
        layer: Layer::Template,
        version: None,
        digest,
        settings_digest: None,
        replaces: false,
        failure: Some(failure.kind.name()),
        message: Some(failure.message),
    }
}

/// Whether a file holds rules, and no component: by its name or, as that of a pipe tells nothing, by
/// what is in it.
fn holds_rules(path: &Path, file: &NamedBytes) -> bool {
    if file.bytes.starts_with(WASM) {
        return false;
    }
    let named =
        path.extension().is_some_and(|ext| ["yaml", "yml", "json"].iter().any(|it| ext == *it));
    named || kinds_of_manifest(file).is_some_and(|kinds| !kinds.is_empty())
}
