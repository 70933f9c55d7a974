//! Doubts whether two sides, which can both be read, are two states of one node.

use super::makeup::Makeup;
use super::side::Side;
use crate::text::listed;
use std::collections::BTreeSet;

/// How many MachineConfigs a doubt names.
const NAMED: usize = 5;

/// What an admin should know who compares these sides: each can be read, but
/// they are hardly two states of one node.
pub fn doubts(old: &Side<'_>, new: &Side<'_>) -> Vec<String> {
    let mut doubts = Vec::new();
    let mixed = match (&old.makeup, &new.makeup) {
        (Makeup::Rendered(_), Makeup::Single(_)) => Some(("OLD", "NEW", "removed")),
        (Makeup::Single(_), Makeup::Rendered(_)) => Some(("NEW", "OLD", "added")),
        _ => None,
    };
    if let Some((whole, single, counts)) = mixed {
        doubts.push(format!(
            "{whole} is a rendered config, which holds all that a node has, and {single} is made \
             of single MachineConfigs: whatever these leave out counts as {counts}. Give rendered \
             configs on both sides, or the same set of single ones."
        ));
    }
    if let (Some(from), Some(to)) = (old.makeup.pool(), new.makeup.pool())
        && from != to
    {
        doubts.push(format!(
            "OLD is of the pool {from}, NEW of the pool {to}: this is what it takes to make a node \
             of one into a node of the other. Give configs of one pool if a change to that pool is \
             meant."
        ));
    }
    doubts.extend(lacking(("OLD", old), ("NEW", new), "removed"));
    if doubts.is_empty() && machine_configs(old).is_some_and(|names| names.is_empty()) {
        doubts.extend(lacking(("NEW", new), ("OLD", old), "added"));
    }
    doubts
}

/// That one side has hardly any of the MachineConfigs of the other: mostly somebody
/// gave only what is new. One that goes, or that has another name, is an ordinary change.
fn lacking(whole: (&str, &Side<'_>), part: (&str, &Side<'_>), counts: &str) -> Option<String> {
    let (all, found) = (machine_configs(whole.1)?, machine_configs(part.1)?);
    let missing: Vec<&str> = all.difference(&found).copied().collect();
    let single = |side: &Side<'_>| matches!(side.makeup, Makeup::Single(_));
    let is_most = single(whole.1)
        && single(part.1)
        && missing.len() >= 2
        && missing.len().saturating_mul(2) > all.len();
    if missing.is_empty() || !(found.is_empty() || is_most) {
        return None;
    }
    let (whole, part, names) = (whole.0, part.0, listed(&missing, NAMED));
    let (what, they) = match missing.len() {
        1 => (format!("MachineConfig {names} of {whole} is not in {part}"), "it holds"),
        more => {
            let what = format!("{more} MachineConfigs of {whole} are not in {part} ({names})");
            (what, "they hold")
        }
    };
    Some(format!(
        "{what}, so all that {they} counts as {counts}: a side is everything that the pool gets. \
         Give all of it on both sides, or ask a cluster what one change does there, with \
         `tread plan -f FILE`."
    ))
}

/// The names of the MachineConfigs of a side; nothing where it has a raw Ignition config,
/// which has no name.
fn machine_configs<'s>(side: &'s Side<'_>) -> Option<BTreeSet<&'s str>> {
    let places = &side.config.places;
    if places.iter().any(|place| place.config.is_empty()) {
        return None;
    }
    Some(match places.len() > side.mirrors.len() {
        true => side.config.name.split('+').collect(),
        false => BTreeSet::new(),
    })
}
