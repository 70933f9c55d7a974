//! What OpenShift's own operator would do with a change, by its own rules.
//!
//! Beside the operator its daemon acts, not tread: a preview must never promise
//! what will not happen. So nothing here is better than the operator is: what
//! it counts as a difference counts, what it forgets is forgotten, and its order
//! and repetitions stay as they are.

mod action;
mod because;
mod defaults;
mod policies;
mod reconcile;
mod registries;
mod rendered;
mod written;

pub use because::Because;
pub(crate) use defaults::{UNIT as DEFAULT_UNIT, paths as default_paths};
pub use policies::Policies;
pub use rendered::{Layer, Rendered};
pub use written::Alike;

use crate::claim::Kind;
use crate::config::Fault;
use crate::effect::Effect;
use crate::path::REGISTRIES_CONF;
use crate::text::listed;
use action::OperatorAction;
use policies::Entry;
use serde::Serialize;
use std::collections::BTreeSet;

/// How many differences a summary names.
const NAMED: usize = 5;

/// What the operator would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Forecast {
    /// The most disruptive part of it; `refuse`: it would reject the config, and
    /// degrade the pool.
    pub effect: Effect,
    /// The same in one line: `reload crio.service`, `drain + reboot`.
    pub summary: String,
    /// Whether it drains the node first.
    pub drain: bool,
    /// Whether it boots the node.
    pub reboot: bool,
    /// What it runs besides, each once, in the order in which it comes first.
    pub actions: Vec<String>,
    /// Which differences it counts, and what each of them costs, by id.
    pub because: Vec<Because>,
}

/// How the cluster is built, as far as it changes what the operator does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topology {
    /// Pods can go elsewhere.
    HighlyAvailable,
    /// There is no elsewhere: the operator never drains.
    SingleReplica,
}

/// What the operator's daemon does when it goes from one rendered config to
/// another.
pub fn forecast(
    old: &Rendered,
    new: &Rendered,
    policies: &Policies,
    topology: Topology,
) -> Forecast {
    let rejected = reconcile::rejections(old, new);
    if !rejected.is_empty() {
        return refused(rejected);
    }
    let mut because = Vec::new();
    let mut taken: Vec<&OperatorAction> = Vec::new();
    for id in whole_node_differences(old, new) {
        because.push(reboot(id, "needs a reboot by the operator's own rules"));
    }
    for path in Rendered::differing(&old.files, &new.files) {
        let (id, found) = (format!("file:{path}"), policies.for_file(path));
        judge(id, found, &mut because, &mut taken);
    }
    for name in Rendered::differing(&old.units, &new.units) {
        let (id, found) = (format!("unit:{name}"), policies.for_unit(name));
        judge(id, found, &mut because, &mut taken);
    }
    if old.passwd != new.passwd {
        judge("passwd".to_owned(), Some(policies.for_ssh_keys()), &mut because, &mut taken);
    }
    because.sort_by(|a, b| a.id.cmp(&b.id));

    let reboot = because.iter().any(|part| part.effect == Effect::Reboot);
    let special = taken.iter().any(|action| **action == OperatorAction::Special);
    let mut drain = reboot || taken.iter().any(|action| **action == OperatorAction::Drain);
    if special && !drain {
        match registries::unsafe_change(old, new) {
            Ok(None) => {}
            Ok(Some(why)) => {
                drain = true;
                note_drain(&mut because, &why);
            }
            Err(problem) => return refused(vec![registries::rejection(problem)]),
        }
    }
    drain &= topology == Topology::HighlyAvailable;
    let actions = match reboot {
        true => Vec::new(),
        false => commands(&taken),
    };
    let effect = match (reboot, drain) {
        (true, _) => Effect::Reboot,
        (false, true) => Effect::Drain,
        // With nowhere to drain to, what it runs is left.
        (false, false) => worst(&taken),
    };
    let summary = summary(drain, reboot, &actions);
    Forecast { effect, summary, drain, reboot, actions, because }
}

/// What the operator makes of a config that Ignition's parser rejects: it reads
/// none that has such faults. Of other faults it knows nothing.
pub fn unparsable(faults: &[Fault]) -> Option<Forecast> {
    let because = faults.iter().filter(|fault| fault.by_parser).map(|fault| Because {
        id: fault.id.clone(),
        effect: Effect::Refuse,
        rule: format!("the parser of the operator rejects it: {}: {}", fault.field, fault.reason),
    });
    let mut because: Vec<Because> = because.collect();
    because.sort_by(|a, b| a.id.cmp(&b.id));
    because.dedup_by(|later, first| later.id == first.id);
    (!because.is_empty()).then(|| refused(because))
}

/// The most disruptive among actions, the drain left aside.
fn worst(taken: &[&OperatorAction]) -> Effect {
    let others = taken.iter().filter(|action| ***action != OperatorAction::Drain);
    others.map(|action| action.effect()).max().unwrap_or(Effect::None)
}

fn refused(because: Vec<Because>) -> Forecast {
    let ids: Vec<&str> = because.iter().map(|part| part.id.as_str()).collect();
    let summary = format!("rejected, the pool degrades: {}", listed(&ids, NAMED));
    Forecast {
        effect: Effect::Refuse,
        summary,
        drain: false,
        reboot: false,
        actions: Vec::new(),
        because,
    }
}

fn reboot(id: impl Into<String>, rule: &str) -> Because {
    Because { id: id.into(), effect: Effect::Reboot, rule: rule.to_owned() }
}

/// What is set once and needs a reboot whatever any policy says.
fn whole_node_differences(old: &Rendered, new: &Rendered) -> Vec<&'static str> {
    let differs = [
        (Kind::Extensions, old.extensions != new.extensions),
        (Kind::KernelArguments, old.kernel_arguments != new.kernel_arguments),
        (Kind::KernelType, old.kernel_type != new.kernel_type),
        (Kind::OsImage, old.os_image != new.os_image),
    ];
    differs.into_iter().filter(|(_, differs)| *differs).map(|(kind, _)| kind.as_str()).collect()
}

/// Counts one difference: with the entry that decides on it, or a reboot.
fn judge<'p>(
    id: String,
    found: Option<&'p Entry>,
    because: &mut Vec<Because>,
    taken: &mut Vec<&'p OperatorAction>,
) {
    let Some(entry) = found else {
        because.push(reboot(
            id,
            "no entry of nodeDisruptionPolicy matches; an admin can add one (`tread policy rules \
             --to-openshift`)",
        ));
        return;
    };
    taken.extend(&entry.actions);
    let effect = entry.actions.iter().map(OperatorAction::effect).max().unwrap_or(Effect::None);
    because.push(Because { id, effect, rule: entry.describe() });
}

fn note_drain(because: &mut [Because], why: &str) {
    let id = format!("file:{}", REGISTRIES_CONF);
    if let Some(part) = because.iter_mut().find(|part| part.id == id) {
        part.effect = Effect::Drain;
        part.rule = format!("{}; drains, since {why}", part.rule);
    }
}

/// What is run, in the operator's order, each command once: it repeats them,
/// which changes nothing.
fn commands(taken: &[&OperatorAction]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let commands = taken.iter().filter_map(|action| action.command());
    commands.filter(|command| seen.insert(command.clone())).collect()
}

fn summary(drain: bool, reboot: bool, actions: &[String]) -> String {
    let mut parts: Vec<&str> = Vec::new();
    if drain {
        parts.push("drain");
    }
    if reboot {
        parts.push("reboot");
    }
    parts.extend(actions.iter().map(String::as_str));
    match parts.as_slice() {
        [] => "none".to_owned(),
        parts => parts.join(" + "),
    }
}
