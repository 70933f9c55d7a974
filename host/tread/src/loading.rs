//! From what the command line names to the set of policies and the sandbox.

use crate::cli::PolicyArgs;
use crate::{UsageError, builtins, inputs};
use anyhow::{Context as _, Result, anyhow};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tread_engine::compile::Compiler;
use tread_engine::limits::Limits;
use tread_engine::policy::{Policy, PolicySet, Wishes};
use tread_engine::sandbox::{Options, Sandbox};
use tread_model::read::Input;
use tread_model::rules;
use tread_model::verdict::Layer;

/// All policies that the command line names, the built-in ones included, and
/// what an admin should know of them.
pub fn policies(args: &PolicyArgs, limits: &Limits) -> Result<(PolicySet, Vec<String>)> {
    let settings = settings(&args.settings)?;
    let wishes = |name: &str| Wishes {
        settings: settings.get(name).cloned().unwrap_or_default(),
        may_relax: args.may_relax.iter().any(|named| named == name),
        read_secrets: args.read_secrets.iter().any(|named| named == name),
    };
    let mut all = builtins::load(limits, wishes)?;
    for path in &args.policy {
        let file = inputs::read_file(path)?;
        let name = tread_engine::inspect::description(&file.bytes, limits)
            .map_err(|failure| anyhow!("{}: {failure}", file.name))?
            .name;
        let policy =
            Policy::new(Cow::Owned(file.bytes), None, Layer::Template, wishes(&name), limits)
                .map_err(|failure| anyhow!("{}: {failure}", file.name))?;
        all.push(policy);
    }
    check_settings(&all, &settings)?;
    let mut warnings = Vec::new();
    for path in &args.rules {
        let file = inputs::read_file(path)?;
        for read in rules::read(&Input { name: &file.name, bytes: &file.bytes })? {
            warnings.extend(read.warnings);
            let wishes = Wishes {
                settings: object(read.settings),
                may_relax: read.may_relax,
                read_secrets: false,
            };
            let policy = builtins::load_rules(read.layer, wishes, limits)?;
            all.push(policy.named(read.name, "Rules of an admin".to_owned(), read.claims));
        }
    }
    check_names(&all, args)?;
    let set = PolicySet::new(all).map_err(UsageError)?;
    Ok((set, warnings))
}

/// A setting has to be of a policy that can take one, which rules are not.
fn check_settings(
    all: &[Policy],
    settings: &BTreeMap<String, Map<String, Value>>,
) -> Result<(), UsageError> {
    let names: Vec<&str> = all.iter().map(|policy| policy.identity.policy.as_str()).collect();
    match settings.keys().find(|name| !names.contains(&name.as_str())) {
        Some(name) => {
            let names = names.join(", ");
            Err(UsageError(format!("--set names {name}, but the policies are: {names}")))
        }
        None => Ok(()),
    }
}

/// Policies to be trusted with more have to be among those that were given.
fn check_names(all: &[Policy], args: &PolicyArgs) -> Result<()> {
    let known = |name: &str| {
        all.iter().any(|policy| {
            policy.identity.policy == name && policy.identity.layer == Layer::Template
        })
    };
    for (flag, name) in [("--may-relax", &args.may_relax), ("--read-secrets", &args.read_secrets)]
        .into_iter()
        .flat_map(|(flag, names)| names.iter().map(move |name| (flag, name)))
    {
        if !known(name) {
            let message = format!("{flag} {name}: no policy of that name was given with --policy");
            return Err(UsageError(message).into());
        }
    }
    Ok(())
}

/// `registries.drain=always`, several of them, by policy.
fn settings(given: &[String]) -> Result<BTreeMap<String, Map<String, Value>>> {
    let mut all: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for setting in given {
        let parts = setting
            .split_once('=')
            .and_then(|(key, value)| key.split_once('.').map(|(policy, key)| (policy, key, value)));
        let Some((policy, key, value)) = parts else {
            let message = format!("--set {setting}: write POLICY.KEY=VALUE");
            return Err(UsageError(message).into());
        };
        // JSON where it is JSON (true, 5, ["a"]), text where it is not.
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        all.entry(policy.to_owned()).or_default().insert(key.to_owned(), value);
    }
    Ok(all)
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

/// The sandbox, with its compiled modules kept where the user keeps caches.
pub fn sandbox(limits: Limits) -> Result<Sandbox> {
    sandbox_in(cache_dir(), limits)
}

/// A sandbox that compiles each module anew.
pub fn sandbox_without_cache(limits: Limits) -> Result<Sandbox> {
    sandbox_in(None, limits)
}

fn sandbox_in(cache_dir: Option<PathBuf>, limits: Limits) -> Result<Sandbox> {
    // A hostile module may take long to compile, and much memory: it gets a
    // process of its own, which can be killed.
    let compiler = match std::env::current_exe() {
        Ok(program) => Compiler::Child { program, args: vec!["compile-module".into()] },
        Err(_) => Compiler::InProcess,
    };
    let options = Options { cache_dir, limits, slots: 1, compiler };
    Sandbox::new(options).context("cannot set up the sandbox")
}

fn cache_dir() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    set("TREAD_CACHE_DIR").map(PathBuf::from).or_else(|| {
        let base = set("XDG_CACHE_HOME").map(PathBuf::from);
        let base = base.or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".cache")))?;
        Some(base.join("tread"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_json_where_they_can_be_and_text_where_not() {
        let read = settings(&["a.x=always".into(), "a.y=5".into(), "b.z=\"5\"".into()]).unwrap();
        assert_eq!(read["a"]["x"], "always");
        assert_eq!(read["a"]["y"], 5);
        assert_eq!(read["b"]["z"], "5");
    }

    #[test]
    fn a_setting_without_policy_or_value_is_a_usage_error() {
        for bad in ["drain=always", "registries.drain", ""] {
            let error = settings(&[bad.to_owned()]).unwrap_err();
            assert!(error.downcast_ref::<UsageError>().is_some(), "{bad}");
        }
    }
}
