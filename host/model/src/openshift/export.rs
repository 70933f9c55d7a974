//! From rules and claims to a nodeDisruptionPolicy: whatever is answered by the
//! path, unit or key alone.
//!
//! An entry is written only where OpenShift, which takes the longest path that
//! is the changed one or a directory above it, comes to what tread comes to.
//! Where something below an exported directory cannot be said, it gets an entry
//! with a reboot: what OpenShift does without any. The same holds where one of
//! OpenShift's own defaults would decide and do less than a rule, or the policy
//! of an owner, might ask for. So a node is never treated more gently than these
//! say, except where a policy abstains; where only a built-in policy would look
//! at the contents, OpenShift's default goes on deciding.

mod answer;
mod defaults;
mod entry;

use super::convert::DEFAULTS;
use super::{API_VERSION, MOST_ENTRIES, check_service};
use crate::claim::{Kind, Pattern, Shape, is_below};
use crate::description::Claim;
use crate::effect::Effect;
use crate::plan::{UNIT_DIRECTORIES, needs_daemon_reload};
use crate::rules::{Rule, RuleSet, RulesPolicy, Then};
use crate::unit_name::is_unit_name;
use crate::verdict::{Action, Layer};
use answer::{Place, answer};
use entry::{Act, entry, runs_something};
use serde::{Deserialize as _, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Somebody who answers: rules, which are known whole, or a policy, of which
/// the claims are known.
#[derive(Debug, Clone)]
pub struct Voice {
    /// What it is called.
    pub name: String,
    /// Who speaks.
    pub layer: Layer,
    /// Whether its actions stand against the built-ins' answers.
    pub may_relax: bool,
    /// What it says.
    pub says: Says,
}

/// What somebody says, as far as it is known without asking.
#[derive(Debug, Clone)]
pub enum Says {
    /// These rules, and nothing else.
    Rules(Vec<Rule>),
    /// Something within the range of each claim.
    Claims(Vec<Claim>),
}

impl From<&RulesPolicy> for Voice {
    fn from(policy: &RulesPolicy) -> Voice {
        let rules = RuleSet::deserialize(&policy.settings).unwrap_or_default().rules;
        Voice {
            name: policy.name.clone(),
            layer: policy.layer,
            may_relax: policy.may_relax,
            says: Says::Rules(rules),
        }
    }
}

/// What became of an export.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Export {
    /// The object `MachineConfiguration/cluster`, with nothing but the policy.
    pub manifest: MachineConfiguration,
    /// What it does not say, by policy and pattern.
    pub left_out: Vec<LeftOut>,
    /// Where it means something else than it does in tread.
    pub notes: Vec<String>,
}

/// A pattern or claim that OpenShift's object does not carry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct LeftOut {
    /// Whose it is.
    pub policy: String,
    /// As it is written there.
    pub pattern: String,
    /// Why.
    pub reason: String,
}

/// OpenShift's object.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineConfiguration {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata,
    spec: Spec,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Metadata {
    name: &'static str,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    node_disruption_policy: NodeDisruptionPolicy,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
struct NodeDisruptionPolicy {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<FileEntry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    units: Vec<UnitEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sshkey: Option<KeyEntry>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct FileEntry {
    path: String,
    actions: Vec<Act>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct UnitEntry {
    name: String,
    actions: Vec<Act>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct KeyEntry {
    actions: Vec<Act>,
}

/// Says all that OpenShift's object can say of what these voices answer
/// together.
pub fn export(voices: &[Voice]) -> Export {
    let mut work = Work { voices, reasons: BTreeMap::new(), needless: false };
    let files = work.files();
    let units = work.units();
    let sshkey = work.keys();
    let left_out = work.left_out();
    let policy = NodeDisruptionPolicy { files, units, sshkey };
    let notes = work.notes(&policy);
    let manifest = MachineConfiguration {
        api_version: API_VERSION,
        kind: "MachineConfiguration",
        metadata: Metadata { name: "cluster" },
        spec: Spec { node_disruption_policy: policy },
    };
    Export { manifest, left_out, notes }
}

/// A path to which an entry may be given, and what of it is asked about.
#[derive(Debug, Default, Clone, Copy)]
struct Asked {
    exactly: bool,
    below: bool,
    /// OpenShift has an entry for it by default.
    default: bool,
}

impl Asked {
    fn is_asked(self) -> bool {
        self.exactly || self.below
    }
}

/// What becomes of one place.
type Found = Result<Option<Vec<Act>>, String>;

struct Work<'v> {
    voices: &'v [Voice],
    /// Why a place has no entry, by what stands for it in [`Shape`] and kind.
    reasons: BTreeMap<(Kind, Shape), String>,
    /// Whether answers need no entry, because OpenShift reboots without one.
    needless: bool,
}

impl Work<'_> {
    fn files(&mut self) -> Vec<FileEntry> {
        let asked = self.places();
        let mut entries: BTreeMap<String, Vec<Act>> = BTreeMap::new();
        // A directory sorts before what is in it.
        for (path, asked) in &asked {
            let found = self.found(path, *asked);
            let above = closest(path, &entries);
            let reboots = |list: &Vec<Act>| *list == [Act::Reboot];
            match (found, above) {
                (Ok(Some(list)), Above::Nothing) if reboots(&list) && !asked.default => {
                    self.needless |= asked.is_asked();
                }
                (Ok(Some(list)), Above::Entry(same)) if same == list && !asked.default => {}
                (Ok(Some(list)), _) => {
                    entries.insert(path.clone(), list);
                }
                // Nothing says how, but more than the default is asked for.
                (Err(_), above)
                    if (asked.default || matches!(above, Above::Default))
                        && self.defaults_do_less(path, *asked) =>
                {
                    entries.insert(path.clone(), vec![Act::Reboot]);
                }
                // OpenShift's own default goes on deciding.
                (Ok(None) | Err(_), _) if asked.default => {}
                (Ok(None) | Err(_), Above::Entry(list)) if !reboots(&list) => {
                    entries.insert(path.clone(), vec![Act::Reboot]);
                }
                (Ok(None) | Err(_), _) => {}
            }
        }
        self.within_limit(&mut entries);
        entries.into_iter().map(|(path, actions)| FileEntry { path, actions }).collect()
    }

    fn defaults_do_less(&self, path: &str, asked: Asked) -> bool {
        let (exact, inside) = (format!("file:{path}"), format!("file:{path}/x"));
        (asked.exactly && defaults::do_less(self.voices, Place::Id(&exact), &exact))
            || (asked.below && defaults::do_less(self.voices, Place::Below(path), &inside))
    }

    /// All paths at which the answer may change.
    fn places(&self) -> BTreeMap<String, Asked> {
        let mut asked: BTreeMap<String, Asked> = BTreeMap::new();
        for (_, _, pattern) in self.patterns().filter(|(_, _, it)| it.kind() == Kind::File) {
            for shape in pattern.shapes() {
                match &shape {
                    Shape::Exact(path) => asked.entry(path.clone()).or_default().exactly = true,
                    shape => {
                        let directory = shape.directory().unwrap_or_default();
                        asked.entry(directory.to_owned()).or_default().below = true;
                    }
                }
            }
        }
        for path in DEFAULTS {
            let place = asked.entry(path.to_owned()).or_default();
            place.default = true;
            match is_directory(path) {
                true => place.below = true,
                false => place.exactly = true,
            }
        }
        // OpenShift's / matches nothing.
        asked.remove("");
        for directory in UNIT_DIRECTORIES.map(|it| it.trim_end_matches('/')) {
            if asked.keys().any(|above| is_below(directory, above)) {
                asked.entry(directory.to_owned()).or_default().below = true;
            }
        }
        asked
    }

    /// What is answered for a path, as an entry.
    fn found(&mut self, path: &str, asked: Asked) -> Found {
        let id = format!("file:{path}");
        let reload = needs_daemon_reload(&id);
        let exactly = asked.exactly.then(|| self.listed(Place::Id(&id), reload));
        let reload = needs_daemon_reload(&format!("file:{path}/x"));
        let below = asked.below.then(|| self.listed(Place::Below(path), reload));
        let found = match (exactly, below) {
            (Some(one), Some(other)) => match (one, other) {
                (Ok(one), Ok(other)) if one == other => Ok(one),
                (Ok(_), Ok(_)) => Err("the answers for the path and for what lies below it \
                                       differ, and OpenShift has one entry for both"
                    .to_owned()),
                (Err(reason), _) | (_, Err(reason)) => Err(reason),
            },
            (Some(found), None) | (None, Some(found)) => found,
            (None, None) => Ok(None),
        };
        if let Err(reason) = &found {
            for shape in [Shape::Exact(path.to_owned()), Shape::Below(path.to_owned())] {
                self.reasons.insert((Kind::File, shape), reason.clone());
            }
        }
        found
    }

    fn listed(&self, place: Place<'_>, daemon_reload: bool) -> Found {
        match answer(self.voices, place)? {
            Some(actions) => entry(&actions, daemon_reload).map(Some),
            None => Ok(None),
        }
    }

    /// Leaves out whole trees, from the last on, until OpenShift takes the rest.
    fn within_limit(&mut self, entries: &mut BTreeMap<String, Vec<Act>>) {
        while entries.len() > MOST_ENTRIES {
            // Without an entry a default would decide, and perhaps do less.
            let default = |path: &str| DEFAULTS.into_iter().find(|it| is_at(path, it));
            let free = |path: &&String| default(path).is_none();
            let is_root =
                |path: &&String| !entries.keys().filter(free).any(|other| is_below(path, other));
            let root = entries.keys().rev().filter(free).find(is_root).cloned();
            let left_out: Vec<String> = match root {
                Some(root) => {
                    let tree = entries.keys().filter(|path| is_at(path, &root));
                    tree.filter(free).cloned().collect()
                }
                // One reboot stands for all that is below a default.
                None => {
                    let below = |it: &&str| entries.keys().any(|path| is_below(path, it));
                    let Some(default) = DEFAULTS.into_iter().find(below) else { return };
                    let tree = entries.keys().filter(|path| is_at(path, default));
                    let tree = tree.cloned().collect();
                    entries.insert(default.to_owned(), vec![Act::Reboot]);
                    tree
                }
            };
            for path in left_out {
                if !DEFAULTS.contains(&path.as_str()) {
                    entries.remove(&path);
                }
                for shape in [Shape::Exact(path.clone()), Shape::Below(path)] {
                    let reason =
                        format!("OpenShift takes {MOST_ENTRIES} entries for files at most");
                    self.reasons.insert((Kind::File, shape), reason);
                }
            }
        }
    }

    fn units(&mut self) -> Vec<UnitEntry> {
        let mut names: BTreeSet<String> = self
            .patterns()
            .filter(|(_, _, pattern)| pattern.kind() == Kind::Unit)
            .flat_map(|(_, _, pattern)| pattern.shapes())
            .filter_map(|shape| match shape {
                Shape::Exact(name) => Some(name),
                Shape::Below(_) | Shape::Glob { .. } => None,
            })
            .collect();
        names.remove(defaults::UNIT);
        let mut entries: Vec<UnitEntry> = self.default_unit().into_iter().collect();
        for name in names {
            let full = entries.len() >= MOST_ENTRIES;
            let found = self.listed(Place::Id(&format!("unit:{name}")), true);
            let found = found.and_then(|list| match list {
                Some(list) if list != [Act::Reboot] => {
                    check_service(&name, is_unit_name)?;
                    if full {
                        return Err(format!("OpenShift takes {MOST_ENTRIES} units at most"));
                    }
                    Ok(Some(list))
                }
                list => Ok(list),
            });
            match found {
                Ok(Some(list)) if list == [Act::Reboot] => self.needless = true,
                Ok(Some(actions)) => entries.push(UnitEntry { name, actions }),
                Ok(None) => {}
                Err(reason) => {
                    self.reasons.insert((Kind::Unit, Shape::Exact(name)), reason);
                }
            }
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        entries
    }

    /// The unit that is not rebooted for where it has no entry.
    fn default_unit(&mut self) -> Option<UnitEntry> {
        let name = defaults::UNIT.to_owned();
        let id = format!("unit:{name}");
        let actions = match self.listed(Place::Id(&id), true) {
            Ok(list) => list?,
            Err(reason) => {
                self.reasons.insert((Kind::Unit, Shape::Exact(name.clone())), reason);
                let less = defaults::do_less(self.voices, Place::Id(&id), &id);
                less.then(|| vec![Act::Reboot])?
            }
        };
        Some(UnitEntry { name, actions })
    }

    /// OpenShift has one answer for the keys and the password of its one user.
    fn keys(&mut self) -> Option<KeyEntry> {
        let of = |kind: Kind| self.listed(Place::Id(&format!("{}:{USER}", kind.as_str())), false);
        let (keys, password) = (of(Kind::SshKeys), of(Kind::Password));
        let reason = match (keys, password) {
            (Ok(None), Ok(None)) => return None,
            (Ok(keys), Ok(password)) => {
                // Nobody's answer is a reboot.
                let or_reboot = |list: Option<Vec<Act>>| list.unwrap_or_else(|| vec![Act::Reboot]);
                let (actions, password) = (or_reboot(keys), or_reboot(password));
                if actions == password {
                    return Some(KeyEntry { actions });
                }
                "the answers for keys and for the password differ, and OpenShift's sshkey is for \
                 both"
                    .to_owned()
            }
            (Err(reason), _) | (_, Err(reason)) => reason,
        };
        for kind in [Kind::SshKeys, Kind::Password] {
            for shape in [Shape::Exact(USER.to_owned()), Shape::Below(String::new())] {
                self.reasons.insert((kind, shape), reason.clone());
            }
        }
        // By default OpenShift does nothing for them.
        let less = |kind: Kind| {
            let id = format!("{}:{USER}", kind.as_str());
            defaults::do_less(self.voices, Place::Id(&id), &id)
        };
        let less = [Kind::SshKeys, Kind::Password].into_iter().any(less);
        less.then(|| KeyEntry { actions: vec![Act::Reboot] })
    }

    /// Every pattern that says something and is not, or not wholly, exported.
    fn left_out(&mut self) -> Vec<LeftOut> {
        let mut left = BTreeSet::new();
        let mut needless = false;
        for (voice, text, pattern) in self.patterns() {
            if voice.abstains_on(text) && !self.costs_more(&pattern) {
                continue;
            }
            if voice.only_reboots(text) && !pattern.kind().is_named() {
                needless = true;
                continue;
            }
            for shape in pattern.shapes() {
                let Some(reason) = self.why_not(pattern.kind(), &shape) else { continue };
                let (policy, pattern) = (voice.name.clone(), text.to_owned());
                left.insert(LeftOut { policy, pattern, reason });
            }
        }
        self.needless |= needless;
        left.into_iter().collect()
    }

    /// Whether a glob makes a whole directory cost what only a part of it does.
    fn costs_more(&self, pattern: &Pattern) -> bool {
        pattern.shapes().iter().any(|shape| match (shape, shape.directory()) {
            (Shape::Glob { .. }, Some(directory)) => {
                self.reasons.contains_key(&(pattern.kind(), Shape::Below(directory.to_owned())))
            }
            _ => false,
        })
    }

    fn why_not(&self, kind: Kind, shape: &Shape) -> Option<String> {
        if let Some(reason) = self.reasons.get(&(kind, shape.clone())) {
            return Some(reason.clone());
        }
        match (kind, shape) {
            (Kind::File, Shape::Below(directory)) if directory.is_empty() => {
                Some("OpenShift has no entry for everything: its / matches nothing".to_owned())
            }
            // Something wider says the same, or decides.
            (Kind::File, shape @ Shape::Glob { .. })
                if answer(self.voices, Place::Below(shape.directory().unwrap_or_default()))
                    .is_ok_and(|found| found.is_some()) =>
            {
                None
            }
            (Kind::File, Shape::Glob { .. }) => {
                Some("OpenShift has no globs: it takes whole paths and directories".to_owned())
            }
            (Kind::Unit, Shape::Below(_) | Shape::Glob { .. }) => {
                Some("OpenShift has no globs: it takes whole names of units".to_owned())
            }
            (Kind::SshKeys | Kind::Password, Shape::Exact(user)) if user != USER => {
                Some(format!("OpenShift knows no user but {USER}"))
            }
            (Kind::SshKeys | Kind::Password, Shape::Glob { .. }) => {
                Some(format!("OpenShift has no globs, and knows no user but {USER}"))
            }
            (Kind::File | Kind::Unit | Kind::SshKeys | Kind::Password, _) => None,
            (kind, _) => {
                Some(format!("OpenShift always reboots for a change of {}", kind.as_str()))
            }
        }
    }

    fn patterns(&self) -> impl Iterator<Item = (&Voice, &str, Pattern)> {
        self.voices.iter().flat_map(|voice| {
            let texts: Vec<&str> = match &voice.says {
                Says::Rules(rules) => {
                    rules.iter().flat_map(|rule| &rule.r#match).map(String::as_str).collect()
                }
                Says::Claims(claims) => claims.iter().map(|it| it.changes.as_str()).collect(),
            };
            let parsed = texts.into_iter().map(|text| (text, Pattern::parse(text)));
            parsed.filter_map(move |(text, pattern)| Some((voice, text, pattern.ok()?)))
        })
    }

    fn notes(&self, policy: &NodeDisruptionPolicy) -> Vec<String> {
        let mut notes = Vec::new();
        let lists = policy.files.iter().map(|it| &it.actions);
        let lists = lists.chain(policy.units.iter().map(|it| &it.actions));
        let running = lists.filter(|list| runs_something(list)).count();
        if running > 1 {
            notes.push(
                "Where several entries match one change, OpenShift runs the actions of each, in no \
                 fixed order and as often as they stand there; tread runs each once, in order."
                    .to_owned(),
            );
        }
        let lists = policy.files.iter().map(|it| &it.actions);
        let lists = lists.chain(policy.units.iter().map(|it| &it.actions));
        if lists.chain(policy.sshkey.iter().map(|it| &it.actions)).any(|it| *it == [Act::Reboot]) {
            notes.push(
                "An entry that says Reboot keeps a wider one, or a default of OpenShift's, from \
                 deciding on what is below it: do not remove it alone."
                    .to_owned(),
            );
        }
        if self.needless {
            notes.push(
                "What costs a reboot has no entry where none is needed: OpenShift reboots for \
                 whatever no entry names."
                    .to_owned(),
            );
        }
        if policy.sshkey.is_some() {
            notes.push(
                "sshkey is for the keys and for the password of core: OpenShift has one answer for \
                 both."
                    .to_owned(),
            );
        }
        let mut policies: Vec<&str> = self
            .voices
            .iter()
            .filter(
                |voice| matches!(&voice.says, Says::Claims(claims) if claims.iter().any(is_free)),
            )
            .map(|voice| voice.name.as_str())
            .collect();
        policies.sort_unstable();
        if !policies.is_empty() {
            notes.push(format!(
                "A policy may abstain on a single change, which then costs a reboot; what is \
                 exported of {} does not ask it any more.",
                policies.join(", ")
            ));
        }
        notes
    }
}

/// Whom OpenShift's configs can give keys and a password.
const USER: &str = "core";

fn is_free(claim: &Claim) -> bool {
    claim.least == Effect::None && claim.most == Effect::None
}

impl Voice {
    /// Whether what a pattern of it says is that others decide.
    fn abstains_on(&self, text: &str) -> bool {
        match &self.says {
            Says::Rules(rules) => rules
                .iter()
                .find(|rule| rule.r#match.iter().any(|it| it == text))
                .is_some_and(|rule| rule.then == Then::Abstain),
            Says::Claims(_) => false,
        }
    }

    /// Whether what a pattern of it says is always a reboot.
    fn only_reboots(&self, text: &str) -> bool {
        match &self.says {
            Says::Rules(rules) => rules
                .iter()
                .find(|rule| rule.r#match.iter().any(|it| it == text))
                .is_some_and(|rule| match &rule.then {
                    Then::Act { actions, .. } => {
                        actions.iter().any(|it| it.action() == Action::Reboot)
                    }
                    Then::Refuse { .. } | Then::Abstain => false,
                }),
            Says::Claims(claims) => claims
                .iter()
                .filter(|claim| claim.changes == text)
                .all(|claim| claim.least == Effect::Reboot && claim.most == Effect::Reboot),
        }
    }
}

/// Whether a path is this place, or lies below it.
fn is_at(path: &str, place: &str) -> bool {
    path == place || is_below(path, place)
}

/// What OpenShift would decide by without an entry of its own.
enum Above {
    Nothing,
    Default,
    Entry(Vec<Act>),
}

/// The closest directory above a path that has an entry or a default.
fn closest(path: &str, entries: &BTreeMap<String, Vec<Act>>) -> Above {
    let entry =
        entries.iter().filter(|(above, _)| is_below(path, above)).max_by_key(|it| it.0.len());
    let default = DEFAULTS.iter().filter(|above| is_below(path, above)).map(|it| it.len()).max();
    match (entry, default) {
        (Some((entry, list)), default) if default.is_none_or(|default| entry.len() >= default) => {
            Above::Entry(list.clone())
        }
        (_, Some(_)) => Above::Default,
        (_, None) => Above::Nothing,
    }
}

/// Which of OpenShift's defaults are directories.
fn is_directory(default: &str) -> bool {
    let name = default.rsplit_once('/').map_or(default, |(_, name)| name);
    !name.contains('.') || name.ends_with(".d")
}

#[cfg(test)]
mod tests;
