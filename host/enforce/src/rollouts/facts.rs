//! What has to be known of a Node: small, since there are thousands.

use crate::cordon_mark;
use k8s_openapi::api::core::v1::{Node, Taint};
use std::collections::BTreeMap;
use std::sync::Arc;
use tread_cluster::pools::LastingTaints;
use tread_kube::dated::time;
use tread_kube::held::{Maintained, Mark, cordon, held};
use tread_model::joining::{TAINT, claim_of};
use tread_model::protocol::{Cordon, HeldBy, Time};

/// On a Node: an admin holds it back.
pub const PAUSED_ANNOTATION: &str = "tread.dev/paused";
const ZONE: &str = "topology.kubernetes.io/zone";

/// What has to be known of a Node.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Facts {
    pub(crate) uid: String,
    /// Changes with every write.
    pub(crate) version: String,
    pub(crate) created: Time,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) is_ready: bool,
    /// Since when nothing is heard of its kubelet, by the control plane's clock.
    pub(crate) unheard_since: Option<Time>,
    pub(crate) cordon: Option<Cordon>,
    /// By marks on the node itself.
    pub(crate) held: Option<HeldBy>,
    /// The mark on it by which somebody else has it, its cordon only if there is no other one.
    pub(crate) mark: Option<Arc<Mark>>,
    pub(crate) is_paused: bool,
    /// Whether the mark of a cordon of tread stands there that somebody else undid.
    pub(crate) has_old_mark: bool,
    /// What pods have to tolerate to be put there.
    pub(crate) taints: LastingTaints,
    /// Where it registered as joining, and has not joined.
    pub(crate) joins: Option<Arc<Registered>>,
}

/// What a node says that registered as joining.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Registered {
    pub(crate) claim: String,
    /// Its other taints, as they were when it had this version.
    pub(crate) taints: Vec<Taint>,
}

impl Registered {
    pub(crate) fn of(node: &Node) -> Option<Registered> {
        let taints = node.spec.as_ref()?.taints.as_deref()?;
        let said = |it: &Taint| (it.key.clone(), it.value.clone(), it.effect.clone());
        let said: Vec<_> = taints.iter().map(said).collect();
        let said = said.iter().map(|(key, value, effect)| (&**key, value.as_deref(), &**effect));
        let claim = claim_of(said)?.to_owned();
        let taints = taints.iter().filter(|taint| taint.key != TAINT).cloned().collect();
        Some(Registered { claim, taints })
    }
}

impl Facts {
    pub(crate) fn of(node: &Node) -> Facts {
        let metadata = &node.metadata;
        let conditions = node.status.as_ref().and_then(|it| it.conditions.as_ref());
        let ready = conditions.into_iter().flatten().find(|it| it.type_ == "Ready");
        let unheard = ready.filter(|it| it.status == "Unknown");
        let unheard_since = unheard.and_then(|it| time(it.last_transition_time.as_ref()?.0));
        let annotation = |name: &str| metadata.annotations.as_ref()?.get(name);
        let cordon = cordon(node);
        let by_cordon = || (cordon == Cordon::Anothers).then(|| Mark::of_cordon(node));
        Facts {
            uid: metadata.uid.clone().unwrap_or_default(),
            version: metadata.resource_version.clone().unwrap_or_default(),
            created: metadata
                .creation_timestamp
                .as_ref()
                .and_then(|at| time(at.0))
                .unwrap_or_default(),
            labels: metadata.labels.clone().unwrap_or_default(),
            is_ready: ready.is_some_and(|it| it.status == "True"),
            unheard_since,
            cordon: Some(cordon),
            mark: Mark::of(node).or_else(by_cordon).map(Arc::new),
            held: held(node, Maintained::default()),
            taints: LastingTaints::of(node),
            joins: Registered::of(node).map(Arc::new),
            is_paused: annotation(PAUSED_ANNOTATION).is_some_and(|it| it == "true"),
            has_old_mark: cordon_mark::is_old(node),
        }
    }

    pub(crate) fn zone(&self) -> &str {
        self.labels.get(ZONE).map_or("", String::as_str)
    }

    /// Whether pods of another node have a place there, be it now or once it is well and not
    /// cordoned.
    pub(crate) fn takes_pods_of(&self, other: &Facts) -> bool {
        self.taints.takes_pods_of(&other.taints)
    }

    /// Whether tread cordoned it.
    pub(crate) fn is_cordoned_by_tread(&self) -> bool {
        matches!(self.cordon, Some(Cordon::Ours(..)))
    }

    /// Whether somebody else did.
    pub(crate) fn is_cordoned_by_others(&self) -> bool {
        self.cordon == Some(Cordon::Anothers)
    }
}
