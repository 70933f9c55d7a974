//! What the newest version of a policy is made of, and whether there is room for it.

use super::jobs::shown;
use super::origin::{Origin, Recipe};
use super::state::Registry;
use crate::policies::load::{Body, Terms};
use crate::policies::register::config_map_of;
use crate::policies::snapshot::Snapshot;
use kube::ResourceExt as _;
use std::collections::BTreeMap;
use tread_kube::api::DisruptionPolicy;
use tread_model::verdict::{Failure, FailureKind};

/// What of a policy has no room beside the policies that came before it, and why.
#[derive(Debug)]
pub(super) struct Over {
    pub(super) newest: Option<Failure>,
    pub(super) last: Option<Failure>,
}

impl Registry {
    /// What a policy's newest version is made of.
    pub(super) fn recipe(&self, snapshot: &Snapshot, object: &DisruptionPolicy) -> Recipe {
        let spec = &object.spec;
        let terms = Terms {
            layer: spec.layer().into(),
            limits: spec.limits.clone(),
            may_relax: spec.may_relax,
            read_secrets: spec.read_secrets,
        };
        Recipe {
            origin: self.origin(snapshot, object),
            settings: spec.settings.clone().unwrap_or_default(),
            pin: spec.digest.clone(),
            terms,
        }
    }

    fn origin(&self, snapshot: &Snapshot, object: &DisruptionPolicy) -> Origin {
        let missing = |message| Origin::Nothing(Failure { kind: FailureKind::Missing, message });
        if let Some(source) = config_map_of(object) {
            let place = (source.namespace, source.name);
            let Some(map) = snapshot.config_maps.get(&place) else {
                return missing(format!(
                    "there is no ConfigMap {} with the label tread.dev/policy=true: restore it, \
                     or delete this policy",
                    shown(&place)
                ));
            };
            return Origin::ConfigMap {
                place,
                uid: map.uid.clone(),
                resource_version: map.resource_version.clone(),
                key: source.key.or_else(|| map.key.clone()),
            };
        }
        let Some(source) = &object.spec.source else {
            let rules = serde_json::to_value(&object.spec.rules);
            return Origin::Here(Body::Rules(rules.unwrap_or_default()));
        };
        match (&source.builtin, self.known.node_disruption_policy()) {
            (Some(name), _) => Origin::Here(Body::Builtin(name.clone())),
            (None, Some(rules)) => Origin::Here(Body::NodeDisruptionPolicy(rules.clone())),
            (None, None) => {
                missing("MachineConfiguration/cluster has no nodeDisruptionPolicy".to_owned())
            }
        }
    }

    /// The policies whose modules are more than there is room for: who came first stays. What goes on
    /// deciding in place of a newest version takes room too.
    pub(super) fn beyond_room(&self, snapshot: &Snapshot) -> BTreeMap<String, Over> {
        let mut modules: Vec<_> = snapshot
            .policies
            .values()
            .filter_map(|object| {
                let source = config_map_of(object)?;
                let place = (source.namespace, source.name);
                let created = snapshot.config_maps.get(&place)?.created;
                let uid = object.uid()?;
                let entry = self.entries.get(&uid)?;
                let newest = entry.tried().and_then(|it| Some(it.loaded.policy.as_ref()?.size));
                let named = object.status.as_ref().and_then(|status| status.digest.as_ref());
                let last = entry.last.as_ref();
                let last = last.filter(|it| named == Some(&it.version.digest.to_string()));
                Some((created, place, uid, newest, last.map(|it| it.policy.size)))
            })
            .collect();
        modules.sort();
        let most = snapshot.room.bytes;
        let mut bytes = 0_usize;
        let mut over = BTreeMap::new();
        for (_, _, uid, newest, last) in modules {
            let fits = |size: &usize| bytes.saturating_add(*size) <= most;
            let why = |size: usize| too_large(size, bytes, most);
            let of = Over {
                newest: newest.filter(|size| !fits(size)).map(why),
                last: last.filter(|size| !fits(size)).map(why),
            };
            let taken = newest.filter(fits).max(last.filter(fits)).unwrap_or_default();
            if of.newest.is_some() || of.last.is_some() {
                over.insert(uid, of);
            }
            bytes = bytes.saturating_add(taken);
        }
        over
    }
}

fn too_large(size: usize, others: usize, most: usize) -> Failure {
    let sum = others.saturating_add(size);
    let message = format!(
        "all modules together may have {most} bytes, and with the {size} of this one they would \
         have {sum}: remove another policy, or make this one smaller"
    );
    Failure { kind: FailureKind::TooLarge, message }
}
