//! What the registry knows of the cluster: the newest snapshots of the index, and the
//! policies as they were read.

use crate::index::{All, Differences, Index, Object, differences, last_read};
use crate::policies::read::{self, Policy};
use crate::policies::snapshot::{Allowed, Place, PolicyMap};
use futures::StreamExt as _;
use futures::stream::{BoxStream, SelectAll, select_all};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use tread_kube::api::openshift::MACHINE_CONFIGURATION;
use tread_kube::watching::parsed::Parsed;

/// All objects of one of the kinds, as they are now.
pub(super) enum Moment {
    Policies(All<String, Object>),
    ConfigMaps(All<Place, PolicyMap>),
    Namespaces(All<String, Allowed>),
    MachineConfiguration(All<String, Object>),
}

/// The moments of all kinds.
pub(super) fn moments(index: &Index) -> SelectAll<BoxStream<'static, Moment>> {
    select_all([
        index.policies.moments().map(Moment::Policies).boxed(),
        index.config_maps.moments().map(Moment::ConfigMaps).boxed(),
        index.namespaces.moments().map(Moment::Namespaces).boxed(),
        index.machine_configuration.moments().map(Moment::MachineConfiguration).boxed(),
    ])
}

/// What is known of the cluster.
#[derive(Debug, Default)]
pub(super) struct Known {
    objects: Option<All<String, Object>>,
    /// The policies, as they could be read last.
    policies: BTreeMap<String, Policy>,
    config_maps: Option<All<Place, PolicyMap>>,
    namespaces: Option<All<String, Allowed>>,
    /// MachineConfiguration `cluster`, if it is there; None: it was not listed yet.
    machine_configuration: Option<Option<Object>>,
}

impl Known {
    /// Whether everything was listed once.
    pub(super) fn is_complete(&self) -> bool {
        self.objects.is_some()
            && self.config_maps.is_some()
            && self.namespaces.is_some()
            && self.machine_configuration.is_some()
    }

    pub(super) fn take(&mut self, moment: Moment) {
        match moment {
            Moment::Policies(now) => self.read(now),
            Moment::ConfigMaps(now) => self.config_maps = Some(now),
            Moment::Namespaces(now) => self.namespaces = Some(now),
            Moment::MachineConfiguration(now) => {
                let before = self.machine_configuration.take().flatten();
                let now = now.get(MACHINE_CONFIGURATION);
                self.machine_configuration = Some(last_read(before, now));
            }
        }
    }

    fn read(&mut self, now: All<String, Object>) {
        let before = self.objects.take().unwrap_or_default();
        let Differences { gone, there } = differences(&before, &now);
        for name in gone {
            self.policies.remove(name);
        }
        for (name, object) in there {
            if let Parsed::Read(object) = &**object {
                self.policies.insert(name.clone(), read::policy(object.clone()));
            }
        }
        self.objects = Some(now);
    }

    /// The DisruptionPolicies, by name.
    pub(super) fn policies(&self) -> impl Iterator<Item = (&String, &Policy)> {
        self.policies.iter()
    }

    /// The ConfigMaps that are labelled as policies.
    pub(super) fn config_maps(&self) -> All<Place, PolicyMap> {
        self.config_maps.clone().unwrap_or_default()
    }

    /// The namespaces whose ConfigMaps may be policies.
    pub(super) fn namespaces(&self) -> All<String, Allowed> {
        self.namespaces.clone().unwrap_or_default()
    }

    /// What OpenShift's object says of disruption, if it says anything.
    pub(super) fn node_disruption_policy(&self) -> Option<&Value> {
        let Parsed::Read(object) = &**self.machine_configuration.as_ref()?.as_ref()? else {
            return None;
        };
        let said = object.data.pointer("/spec/nodeDisruptionPolicy")?;
        let is_empty = said.is_null() || said.as_object().is_some_and(Map::is_empty);
        (!is_empty).then_some(said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;

    fn object(name: &str, uid: &str, spec: &Value) -> (String, Object) {
        let object = json!({"metadata": {"name": name, "uid": uid}, "spec": spec});
        (name.to_owned(), Arc::new(serde_json::from_value(object).unwrap()))
    }

    #[test]
    fn what_cannot_be_read_any_more_stays_as_it_was_for_as_long_as_it_is_the_same_object() {
        let deep = (0..200).fold(json!(1), |inside, _| json!({"a": inside}));
        let rules = |path: &str| json!({"rules": [{"match": [path]}]});
        let mut known = Known::default();
        let mut rules_of = |policies: &[(String, Object)]| {
            known.take(Moment::Policies(Arc::new(policies.iter().cloned().collect())));
            let all = known.policies().map(|(_, it)| it.object.spec.rules.clone());
            all.map(|rules| serde_json::to_value(rules).unwrap()[0]["match"][0].clone())
                .collect::<Vec<Value>>()
        };
        let fine = object("a", "1", &rules("file:/a"));
        assert_eq!(rules_of(std::slice::from_ref(&fine)), ["file:/a"]);
        assert_eq!(rules_of(&[object("a", "1", &deep)]), ["file:/a"]);
        assert_eq!(rules_of(&[object("a", "1", &rules("file:/b"))]), ["file:/b"]);
        assert!(rules_of(&[object("a", "2", &deep)]).is_empty(), "it is another object");
        assert_eq!(rules_of(&[fine]), ["file:/a"]);
        assert!(rules_of(&[]).is_empty());
    }

    #[test]
    fn what_the_operator_is_told_counts_where_it_says_something() {
        let said = |policy: Value| {
            let (name, object) = object("cluster", "1", &json!({"nodeDisruptionPolicy": policy}));
            let mut known = Known::default();
            let now = Arc::new(BTreeMap::from([(name, object)]));
            known.take(Moment::MachineConfiguration(now));
            known.node_disruption_policy().cloned()
        };
        let files = json!({"files": []});
        assert_eq!(said(files.clone()), Some(files));
        assert_eq!((said(json!({})), said(Value::Null)), (None, None));
    }
}
