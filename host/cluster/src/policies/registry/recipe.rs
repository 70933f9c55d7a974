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

    /// The policies whose modules are more than there is room for: who came
    /// first stays.
    pub(super) fn beyond_room(&self, snapshot: &Snapshot) -> BTreeMap<String, Failure> {
        let mut modules: Vec<_> = snapshot
            .policies
            .values()
            .filter_map(|object| {
                let source = config_map_of(object)?;
                let place = (source.namespace, source.name);
                let created = snapshot.config_maps.get(&place)?.created;
                let uid = object.uid()?;
                let loaded = &self.entries.get(&uid)?.tried()?.loaded;
                Some((created, place, uid, loaded.policy.as_ref()?.size))
            })
            .collect();
        modules.sort();
        let most = snapshot.room.bytes;
        let mut bytes = 0_usize;
        let mut over = BTreeMap::new();
        for (_, _, uid, size) in modules {
            let sum = bytes.saturating_add(size);
            if sum <= most {
                bytes = sum;
                continue;
            }
            let message = format!(
                "all modules together may have {most} bytes, and with the {size} of this one they \
                 would have {sum}: remove another policy, or make this one smaller"
            );
            over.insert(uid, Failure { kind: FailureKind::TooLarge, message });
        }
        over
    }
}
