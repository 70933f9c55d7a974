//! From the entries of a nodeDisruptionPolicy to rules.
//!
//! OpenShift takes the longest path *as written* that is the changed path or a
//! directory above it; rules take the most specific pattern. The two agree
//! except where a path is written longer than it is (`/etc/foo/`), so an entry
//! that a longer one above it always beats is left out here.

use crate::claim::escaped;
use crate::effect::Effect;
use crate::operator::default_paths;
use crate::path::{REGISTRIES_CONF, clean};
use crate::plan::effect_of;
use crate::rules::matching::deciding_rule;
use crate::rules::rule::{Rule, RuleAction, Then};
use crate::text::shortened;
use std::collections::BTreeSet;

/// A reason ends at 512 bytes; of a path that is longer than this, in characters, it
/// names the beginning.
const LONGEST: usize = 100;

/// An entry of the user.
#[derive(Debug)]
pub(super) struct Entry<'v> {
    /// Its place in the list.
    pub(super) index: u32,
    /// The path of a file or directory, or the name of a unit.
    pub(super) name: &'v str,
    /// What it lists.
    pub(super) actions: Actions,
}

/// A list of actions. Both an empty list and `None` say that nothing is to be done.
#[derive(Debug, Default)]
pub(super) struct Actions {
    /// As listed; `None` is no action.
    pub(super) actions: Vec<RuleAction>,
    /// Not even `None` is listed.
    pub(super) is_empty: bool,
}

/// The rules, and what an admin should know besides.
pub(super) fn convert(
    files: &[Entry<'_>],
    units: &[Entry<'_>],
    ssh_keys: Option<&Actions>,
) -> (Vec<Rule>, Vec<String>) {
    let mut warnings = Vec::new();
    let mut rules = file_rules(files, &mut warnings);
    for unit in units {
        warn_if_empty(unit, &mut warnings);
        let patterns = vec![format!("unit:{}", escaped(unit.name))];
        rules.push(acting(patterns, unit.name, &unit.actions));
    }
    match ssh_keys {
        Some(Actions { is_empty: true, .. }) => warnings.push(
            "The nodeDisruptionPolicy entry sshkey has no actions: OpenShift keeps its default \
             for it, and tread its own."
                .to_owned(),
        ),
        // OpenShift's `sshkey` decides on all that it can change of a user: keys and
        // password.
        Some(actions) => {
            let patterns = ["ssh-keys:*", "password:*"].map(str::to_owned).to_vec();
            rules.push(acting(patterns, "sshkey", actions));
        }
        None => {}
    }
    (rules, warnings)
}

/// A path of the user, or a default that the user has not replaced.
struct Candidate<'e> {
    path: &'e str,
    clean: String,
    user: Option<&'e Entry<'e>>,
    /// Of equally long paths the first wins.
    rank: usize,
}

impl Candidate<'_> {
    fn matches_nothing(&self) -> bool {
        !self.clean.starts_with('/') || self.clean == "/"
    }

    fn beats(&self, other: &Candidate<'_>) -> bool {
        let (length, others) = (self.path.len(), other.path.len());
        length > others || (length == others && self.rank < other.rank)
    }

    /// Whether it is a directory above the other.
    fn is_above(&self, other: &Candidate<'_>) -> bool {
        !self.matches_nothing()
            && other.clean.strip_prefix(&self.clean).is_some_and(|rest| rest.starts_with('/'))
    }

    /// The patterns for which it is the longest match of all.
    fn patterns(&self, all: &[Candidate<'_>]) -> Vec<String> {
        let beaten = |other: &Candidate<'_>| other.rank != self.rank && other.beats(self);
        let above = all.iter().any(|other| beaten(other) && other.is_above(self));
        let level = all.iter().any(|other| beaten(other) && other.clean == self.clean);
        let name = escaped(&self.clean);
        let mut patterns = Vec::new();
        if self.matches_nothing() || above {
            return patterns;
        }
        // OpenShift compares the whole path as written, and only directories
        // after cleaning them.
        if self.path == self.clean {
            patterns.push(format!("file:{name}"));
        }
        if !level {
            patterns.push(format!("file:{name}/**"));
        }
        patterns
    }
}

fn file_rules(files: &[Entry<'_>], warnings: &mut Vec<String>) -> Vec<Rule> {
    let kept = default_paths().filter(|path| files.iter().all(|file| file.name != *path));
    let paths =
        kept.map(|path| (path, None)).chain(files.iter().map(|file| (file.name, Some(file))));
    let all: Vec<Candidate<'_>> = paths
        .enumerate()
        .map(|(rank, (path, user))| Candidate { path, clean: clean(path), user, rank })
        .collect();
    let mut rules = Vec::new();
    let mut names = Vec::new();
    for candidate in &all {
        let patterns = candidate.patterns(&all);
        let Some(entry) = candidate.user else {
            // Where no entry of the user could match, abstaining goes without saying.
            let covered = |other: &Candidate<'_>| {
                other.user.is_some()
                    && (other.is_above(candidate) || other.clean == candidate.clean)
            };
            if !patterns.is_empty() && all.iter().any(covered) {
                rules.push(Rule { r#match: patterns, then: Then::Abstain });
                names.push("");
            }
            continue;
        };
        warn_if_empty(entry, warnings);
        if candidate.matches_nothing() {
            warnings.push(format!(
                "The nodeDisruptionPolicy entry for {:?} matches no file: OpenShift compares whole, \
                 absolute paths, and / is none.",
                entry.name
            ));
        } else if patterns.is_empty() {
            warnings.push(format!(
                "The nodeDisruptionPolicy entry for {} never decides: a longer one matches all \
                 that it matches.",
                entry.name
            ));
        } else {
            rules.push(acting(patterns, entry.name, &entry.actions));
            names.push(entry.name);
        }
    }
    warn_of_registries(&rules, &names, warnings);
    rules
}

fn acting(patterns: Vec<String>, entry: &str, actions: &Actions) -> Rule {
    let reason =
        format!("OpenShift's nodeDisruptionPolicy has an entry for {}.", shortened(entry, LONGEST));
    Rule { r#match: patterns, then: Then::Act { actions: actions.actions.clone(), reason } }
}

fn warn_if_empty(entry: &Entry<'_>, warnings: &mut Vec<String>) {
    if entry.actions.is_empty {
        warnings.push(format!(
            "The nodeDisruptionPolicy entry for {} lists no action: OpenShift takes that for \
             `type: None`; write that if it is meant.",
            entry.name
        ));
    }
}

/// Pieces of the registries configuration; the built-in that knows whether a
/// drain is needed reads them together with [`REGISTRIES_CONF`].
const REGISTRIES_DIRECTORY: &str = "/etc/containers/registries.conf.d";

/// An entry that decides on a file of the registries configuration takes the
/// decision from the built-in that knows whether a drain is needed.
fn warn_of_registries(rules: &[Rule], names: &[&str], warnings: &mut Vec<String>) {
    let piece = format!("{REGISTRIES_DIRECTORY}/any.conf");
    let mut files =
        vec![(REGISTRIES_CONF, REGISTRIES_CONF.to_owned()), (REGISTRIES_DIRECTORY, piece)];
    for name in names {
        let path = clean(name);
        let rest = path.strip_prefix(REGISTRIES_DIRECTORY).and_then(|rest| rest.strip_prefix('/'));
        if rest.is_some_and(|rest| rest.ends_with(".conf") && !rest.contains('/')) {
            files.push((*name, path));
        }
    }
    let mut warned = BTreeSet::new();
    for (what, file) in files {
        let decider = deciding_rule(rules, &format!("file:{file}"));
        let decider = decider.and_then(|at| Some((at, rules.get(at)?, *names.get(at)?)));
        let Some((at, Rule { then: Then::Act { actions, .. }, .. }, name)) = decider else {
            continue;
        };
        let actions: Vec<_> = actions.iter().map(RuleAction::action).collect();
        if effect_of(&actions) < Effect::Drain && warned.insert(at) {
            warnings.push(format!(
                "The nodeDisruptionPolicy entry for {name} replaces tread's check whether a pull \
                 could fail: when {what} changes, a drain that may be needed will not happen."
            ));
        }
    }
}
