//! From what the command line names to the set of policies.

use crate::args::PolicyArgs;
use crate::builtins;
use crate::file::{self, check_standard_input};
use crate::given::{self, Given};
use crate::settings::{self, Settings, Taker};
use anyhow::{Result, anyhow, bail};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use tread_console::exit::UsageError;
use tread_console::inputs::{self, NamedBytes};
use tread_engine::inspect;
use tread_engine::limits::Limits;
use tread_engine::policy::{Policy, PolicySet, Wishes};
use tread_model::description::Description;
use tread_model::problem::Problems;
use tread_model::read::Input;
use tread_model::read::fields::unknown;
use tread_model::rules::{self, RulesPolicy};
use tread_model::verdict::{Failure, Layer};

/// All policies that the command line names, the built-in ones included, and
/// what an admin should know of them.
pub fn named(args: &PolicyArgs, limits: &Limits) -> Result<(PolicySet, Vec<String>)> {
    named_of(args, limits, |_| true)
}

/// The same without the admin layer, which decides over all others.
pub fn named_below_admin(args: &PolicyArgs, limits: &Limits) -> Result<(PolicySet, Vec<String>)> {
    named_of(args, limits, |layer| layer != Layer::Admin)
}

fn named_of(
    args: &PolicyArgs,
    limits: &Limits,
    wanted: impl Fn(Layer) -> bool,
) -> Result<(PolicySet, Vec<String>)> {
    let read = Read::new(args, limits)?;
    check(args, &read, &[], &[], limits)?;
    read.load(args, limits, wanted)
}

/// What the command line names, read and not loaded yet.
pub(crate) struct Read {
    pub(crate) settings: Settings,
    given: Vec<Given>,
    rules: Vec<GivenRules>,
    warnings: Vec<String>,
}

/// Rules, and the file that they stand in.
pub(crate) struct GivenRules {
    pub(crate) place: String,
    pub(crate) rules: RulesPolicy,
}

impl Read {
    pub(crate) fn new(args: &PolicyArgs, limits: &Limits) -> Result<Read> {
        let settings = settings::parse(&args.settings)?;
        let (mut given, mut warnings) = (Vec::new(), Vec::new());
        check_standard_input(args.paths())?;
        for path in &args.policy {
            let (policies, unread) = given::read(path, limits)?;
            given.extend(policies);
            warnings.extend(unread);
        }
        let rules = read_rules(&args.rules, &mut warnings)?;
        Ok(Read { settings, given, rules, warnings })
    }

    /// With the built-in policies; of rules only those of layers that are `wanted`.
    pub(crate) fn load(
        self,
        args: &PolicyArgs,
        limits: &Limits,
        wanted: impl Fn(Layer) -> bool,
    ) -> Result<(PolicySet, Vec<String>)> {
        let mut warnings = self.warnings;
        let mut all =
            builtins::load(limits, |name| wishes(args, &self.settings, name, Map::new()))?;
        for given in self.given {
            let place = given.place.clone();
            let policy = component(given, args, &self.settings, limits)
                .map_err(|failure| anyhow!("{place}: {failure}"))?;
            all.push(policy);
        }
        for GivenRules { rules, .. } in self.rules.into_iter().filter(|it| wanted(it.rules.layer)) {
            let (policy, more) = rules_policy(rules, limits)?;
            warnings.extend(more);
            all.push(policy);
        }
        let set = PolicySet::new(all).map_err(UsageError)?;
        Ok((set, warnings))
    }
}

fn wishes(args: &PolicyArgs, set: &Settings, name: &str, packed: Map<String, Value>) -> Wishes {
    Wishes {
        settings: set.get(name).cloned().unwrap_or_default(),
        packed,
        may_relax: args.may_relax.iter().any(|named| named == name),
        read_secrets: args.read_secrets.iter().any(|named| named == name),
    }
}

/// A policy of a template owner.
pub(crate) fn component(
    given: Given,
    args: &PolicyArgs,
    set: &Settings,
    limits: &Limits,
) -> Result<Policy, Failure> {
    let wishes = wishes(args, set, &given.description.name, given.settings);
    Policy::new(Cow::Owned(given.component), None, Layer::Template, wishes, limits)
}

/// A policy of rules, and what an admin should know of it.
pub(crate) fn rules_policy(read: RulesPolicy, limits: &Limits) -> Result<(Policy, Vec<String>)> {
    let warnings = rules::warnings(&read);
    let wishes =
        Wishes { settings: object(read.settings), may_relax: read.may_relax, ..Wishes::default() };
    let policy = builtins::load_rules(read.layer, wishes, limits)?;
    Ok((policy.named(read.name, "Rules of an admin".to_owned(), read.claims).by_rules(), warnings))
}

/// Settings and trust have to be for policies that can take them: those that
/// decide, and those that are only tried.
pub(crate) fn check(
    args: &PolicyArgs,
    read: &Read,
    tried: &[Given],
    tried_rules: &[GivenRules],
    limits: &Limits,
) -> Result<()> {
    check_names(read, tried, tried_rules)?;
    let given: Vec<&Given> = read.given.iter().chain(tried).collect();
    let rules: Vec<&RulesPolicy> =
        read.rules.iter().chain(tried_rules).map(|given| &given.rules).collect();
    check_settings(&read.settings, &given, &rules, limits)?;
    check_trust(args, &given, &rules)?;
    Ok(())
}

/// Every policy has a name of its own, among those that decide and among those
/// that are tried. One that is tried may stand for one of its layer.
fn check_names(read: &Read, tried: &[Given], tried_rules: &[GivenRules]) -> Result<(), UsageError> {
    let of = |given: &[Given], rules: &[GivenRules], tried: bool| -> Vec<Named> {
        let given = given.iter().map(|it| Named {
            name: it.description.name.clone(),
            layer: Layer::Template,
            place: it.place.clone(),
            tried,
        });
        let rules = rules.iter().map(|it| Named {
            name: it.rules.name.clone(),
            layer: it.rules.layer,
            place: it.place.clone(),
            tried,
        });
        given.chain(rules).collect()
    };
    let mut all = of(&read.given, &read.rules, false);
    if let Some(one) =
        all.iter().find(|one| builtins::BUILTINS.iter().any(|it| it.name == one.name))
    {
        return Err(UsageError(format!("{}: {}", one.place, builtins::taken(&one.name))));
    }
    all.extend(of(tried, tried_rules, true));
    all.sort();
    let mut pairs = all.iter().zip(all.iter().skip(1));
    let same = pairs.find(|(one, other)| {
        one.name == other.name && (one.tried == other.tried || one.layer != other.layer)
    });
    match same {
        None => Ok(()),
        Some((one, other)) => Err(UsageError(format!(
            "two policies are named {}: one in {} ({} layer) and one in {} ({} layer): rename one \
             (`NAME` in its source, `metadata.name` of rules), or leave one out",
            one.name, one.place, one.layer, other.place, other.layer
        ))),
    }
}

/// Who a policy is, and where it comes from.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Named {
    name: String,
    tried: bool,
    layer: Layer,
    place: String,
}

fn read_rules(paths: &[PathBuf], warnings: &mut Vec<String>) -> Result<Vec<GivenRules>> {
    let mut all = Vec::new();
    for path in paths {
        for file in files_of(path, warnings)? {
            if file.bytes.starts_with(b"\0asm") {
                bail!("{}: is WebAssembly, and no rules: give a policy with --policy", file.name);
            }
            let read = rules::read(&Input { name: &file.name, bytes: &file.bytes });
            let place = |rules| GivenRules { place: file.name.clone(), rules };
            all.extend(read.map_err(with_hints)?.into_iter().map(place));
        }
    }
    Ok(all)
}

/// A file, standard input, or all files of a directory.
fn files_of(path: &Path, warnings: &mut Vec<String>) -> Result<Vec<NamedBytes>> {
    if !path.is_dir() {
        return Ok(vec![file::one(path)?]);
    }
    let found = inputs::read(path)?;
    warnings.extend(inputs::left_out(path, &found.left_out));
    Ok(found.files)
}

/// Says of what is no rules, but something else that tread reads, where it belongs.
pub(crate) fn with_hints(Problems(mut problems): Problems) -> Problems {
    const HINTS: [(&str, &str); 5] = [
        ("ConfigMap", "a packed policy is given with --policy"),
        ("MachineConfig", "configs are given as OLD and NEW"),
        ("ImageContentSourcePolicy", "mirrors are given as a part of OLD and NEW"),
        ("ImageDigestMirrorSet", "mirrors are given as a part of OLD and NEW"),
        ("ImageTagMirrorSet", "mirrors are given as a part of OLD and NEW"),
    ];
    for problem in &mut problems {
        let is_found = |(kind, _): &&(&str, &str)| problem.found_kind.as_deref() == Some(*kind);
        if let Some((_, hint)) = HINTS.iter().find(is_found) {
            problem.message.push_str(&format!(" ({hint})"));
        }
    }
    Problems(problems)
}

/// Settings have to be for policies that take them.
fn check_settings(
    set: &Settings,
    given: &[&Given],
    rules: &[&RulesPolicy],
    limits: &Limits,
) -> Result<()> {
    if set.is_empty() {
        return Ok(());
    }
    let builtins: Vec<Description> = builtins::BUILTINS
        .iter()
        .map(|it| inspect::description(it.component, limits))
        .collect::<Result<_, _>>()
        .map_err(|failure| anyhow!("a built-in policy of this binary is broken: {failure}"))?;
    let all = builtins.iter().chain(given.iter().map(|it| &it.description));
    let takers: Vec<Taker<'_>> =
        all.map(|it| Taker { name: &it.name, settings: it.settings.as_ref() }).collect();
    let rules: Vec<&str> = rules.iter().map(|rules| rules.name.as_str()).collect();
    settings::check(set, &takers, &rules)?;
    Ok(())
}

/// Policies to be trusted with more have to be among those that were given, and
/// of a kind for which that means something.
fn check_trust(
    args: &PolicyArgs,
    given: &[&Given],
    rules: &[&RulesPolicy],
) -> Result<(), UsageError> {
    let names: Vec<&str> = given.iter().map(|it| it.description.name.as_str()).collect();
    for (flag, name) in [("--may-relax", &args.may_relax), ("--read-secrets", &args.read_secrets)]
        .into_iter()
        .flat_map(|(flag, names)| names.iter().map(move |name| (flag, name.as_str())))
    {
        if names.contains(&name) {
            continue;
        }
        let why = if let Some(rules) = rules.iter().find(|rules| rules.name == name) {
            match (flag, rules.layer) {
                ("--may-relax", Layer::Template) => {
                    "it is made of rules: write `mayRelax: true` in their spec instead"
                }
                ("--may-relax", _) => "rules of the admin layer decide over all others already",
                _ => "it is made of rules, which read no contents",
            }
            .to_owned()
        } else if builtins::BUILTINS.iter().any(|it| it.name == name) {
            "it is built in, and this is for policies given with --policy".to_owned()
        } else if names.is_empty() {
            "no policy of that name was given with --policy".to_owned()
        } else {
            let unknown = unknown("policy", name, &names);
            format!("no policy of that name was given with --policy: {unknown}")
        };
        return Err(UsageError(format!("{flag} {name}: {why}")));
    }
    Ok(())
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}
