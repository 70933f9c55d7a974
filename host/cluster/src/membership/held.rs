//! Nodes that registered as joining and have not joined, for the command line.

use crate::pools::Pools;
use k8s_openapi::api::core::v1::Node;
use serde::Serialize;
use std::collections::BTreeMap;
use tread_kube::api::NodeUpdate;
use tread_model::joining::{Claim, JOINED, Mark, claim_of};

/// A node that is held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldNode {
    /// Its name.
    pub node: String,
    /// The pool that its claim names. Whether the claim is good only the service knows.
    pub claims: Option<String>,
    /// Why, as a word.
    pub reason: String,
    /// Why, and what to do.
    pub message: String,
}

/// NodeUpdates by their names; nothing where they may not be read.
pub(super) type Updates = Option<BTreeMap<String, NodeUpdate>>;

/// Whether a node is held, and why, as far as its NodeUpdate says.
pub(super) fn held(node: &Node, updates: &Updates, pools: &Pools) -> Option<HeldNode> {
    let name = node.metadata.name.clone().unwrap_or_default();
    let update = updates.as_ref().and_then(|updates| updates.get(&name));
    let taints = node.spec.as_ref()?.taints.as_deref()?.iter();
    let claim = claim_of(taints.map(|it| (&*it.key, it.value.as_deref(), &*it.effect)))?;
    let mark = Claim::unproved(claim).map(|claim| claim.pool);
    let pool = pools.values().find(|pool| Some(Mark::of_pool(&pool.uid)) == mark);
    let conditions = update.and_then(|it| it.status.as_ref()).map(|it| it.conditions.as_slice());
    let says = conditions.into_iter().flatten();
    let says = says.into_iter().find(|it| it.type_ == JOINED && it.status == "False");
    let (reason, message) = match says {
        Some(it) => (it.reason.clone(), it.message.clone()),
        None if updates.is_none() => (
            "Joining".to_owned(),
            "it registered as joining; its NodeUpdate says more, which you may not read".to_owned(),
        ),
        None => (
            "Joining".to_owned(),
            "it registered as joining, and tread has not said yet what becomes of it; if it stays so, see \
             whether tread runs: its pods' log, and /readyz"
                .to_owned(),
        ),
    };
    Some(HeldNode { node: name, claims: pool.map(|pool| pool.name.clone()), reason, message })
}
