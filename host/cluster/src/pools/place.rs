//! Where a node belongs, exactly by OpenShift's rules: the one function for all who ask.

use super::node::Node;
use super::pool::{MASTER, Pools, WORKER};
use super::selector::Selects;
use crate::labels::Labels;

const OS: &str = "kubernetes.io/os";

/// Where a node belongs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Place {
    /// In no pool.
    #[default]
    Nowhere,
    /// In this pool.
    Pool(String),
    /// In `master`, though this pool of its own name selects it too, and gives it nothing.
    MasterBeside(String),
    /// No one can say to which of these: OpenShift leaves it alone.
    Several(Vec<String>),
    /// The selectors of these pools cannot be read: OpenShift places no node at all.
    Unplaced(Vec<String>),
    /// In no pool, whatever its labels say: it registered as joining, and has not joined.
    Joining,
}

impl Place {
    /// The pool, if it belongs to one.
    pub fn pool(&self) -> Option<&str> {
        match self {
            Place::Pool(name) => Some(name),
            Place::MasterBeside(_) => Some(MASTER),
            Place::Nowhere | Place::Several(_) | Place::Unplaced(_) | Place::Joining => None,
        }
    }
}

/// Where a node with these labels belongs. A pool of its own name beats `worker`, and
/// `master` beats one such pool. Of several no one can say which is meant, beside `master`
/// neither. Windows nodes are in no pool.
pub fn pool_of(labels: &Labels, pools: &Pools) -> Place {
    if labels.get(OS).is_some_and(|os| os == "windows") {
        return Place::Nowhere;
    }
    let unreadable = unreadable(pools);
    if !unreadable.is_empty() {
        return Place::Unplaced(unreadable);
    }
    let (mut master, mut worker, mut custom) = (false, false, Vec::new());
    for pool in pools.values().filter(|pool| pool.nodes.matches(labels)) {
        match pool.name.as_str() {
            MASTER => master = true,
            WORKER => worker = true,
            name => custom.push(name),
        }
    }
    match (custom.as_slice(), master, worker) {
        ([one], true, _) => Place::MasterBeside((*one).to_owned()),
        ([one], false, _) => Place::Pool((*one).to_owned()),
        ([], true, _) => Place::Pool(MASTER.to_owned()),
        ([], false, true) => Place::Pool(WORKER.to_owned()),
        ([], false, false) => Place::Nowhere,
        (several, ..) => Place::Several(several.iter().map(|&name| name.to_owned()).collect()),
    }
}

/// Where a node belongs: one that has not joined yet nowhere, whatever its labels say.
pub fn place_of(node: &Node, pools: &Pools) -> Place {
    if node.joins { Place::Joining } else { pool_of(&node.labels, pools) }
}

/// The pools whose selectors of nodes cannot be read.
pub fn unreadable(pools: &Pools) -> Vec<String> {
    let is_unreadable = |nodes: &Selects| matches!(nodes, Selects::Unreadable(_));
    let all = pools.values().filter(|pool| is_unreadable(&pool.nodes));
    all.map(|pool| pool.name.clone()).collect()
}

/// What it means that pools, or their selectors, cannot be read.
pub fn says_unplaced(pools: &[String]) -> String {
    let (noun, which) = match pools {
        [_] => ("pool", "it, or its spec.nodeSelector, cannot be read"),
        _ => ("pools", "they, or their spec.nodeSelectors, cannot be read"),
    };
    format!(
        "no node is placed in any pool, and nothing is rolled out, until somebody mends the {noun} {}: \
         {which} (tread pools names the field)",
        pools.join(", ")
    )
}

#[cfg(test)]
mod tests;
