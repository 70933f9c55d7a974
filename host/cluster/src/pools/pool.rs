//! What has to be known of a MachineConfigPool.

use super::config::ConfigMeta;
use super::selector::{Selects, determined, gives};
use crate::labels::Labels;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tread_kube::api::MachineConfigPool;
use tread_kube::api::machine_config::PoolConfiguration;
use tread_kube::api::rollout::MADE_ANNOTATION;
use tread_model::joining::{Ambiguous, Determined};

/// The pools, by name.
pub type Pools = BTreeMap<String, Arc<Pool>>;

/// The pool of the control plane.
pub const MASTER: &str = "master";
/// The pool of all nodes for which there is none of its own name.
pub const WORKER: &str = "worker";

/// What has to be known of a MachineConfigPool.
#[derive(Debug, Clone, Default)]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// Its UID, by which it is told from others of its name.
    pub uid: String,
    /// Changes with every write, also of its status.
    pub version: String,
    /// Whether its nodes stay as they are.
    pub paused: bool,
    /// Which nodes it selects.
    pub nodes: Selects,
    /// The labels that leave no choice by which it selects nodes: what OpenShift's operator
    /// would give a node so that it belongs here.
    pub labels: Labels,
    /// The keys of those that may have any value.
    pub any_value: BTreeSet<String>,
    /// The labels that a node gets that joins it, or why nobody can say which.
    pub gives: Option<Result<Determined, Ambiguous>>,
    /// Which MachineConfigs it selects.
    pub configs: Selects,
    /// The rendered config that its nodes are to get.
    pub target: Option<Configuration>,
    /// The one that all updated nodes had when the last rollout ended.
    pub settled: Option<Configuration>,
    /// How many of its nodes may be out of service at a time, as it is written, and how many
    /// are, as its status says.
    pub unavailable: (Option<String>, i64),
    /// How many of its nodes failed, as its status says.
    pub degraded: i64,
    /// Whether a node has its newest config, as its status says: the next machine gets that.
    pub served_newest: bool,
    /// Whether its Rollout was made once.
    pub had_rollout: bool,
    /// Why the object cannot be read: this stands in its place, so that it counts as there.
    pub unread: Option<String>,
}

/// A rendered config, and the MachineConfigs that it is made of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Configuration {
    /// Its name.
    pub name: String,
    /// The names of what it is made of.
    pub sources: BTreeSet<String>,
}

impl Pool {
    /// From the object.
    pub fn of(object: &MachineConfigPool) -> Pool {
        let spec = &object.spec;
        let status = object.status.as_ref();
        let annotations = object.metadata.annotations.as_ref();
        let count = |given: Option<i32>| i64::from(given.unwrap_or_default());
        let determined = determined(spec.node_selector.as_ref());
        Pool {
            name: object.metadata.name.clone().unwrap_or_default(),
            uid: object.metadata.uid.clone().unwrap_or_default(),
            version: object.metadata.resource_version.clone().unwrap_or_default(),
            paused: spec.paused,
            nodes: Selects::of(spec.node_selector.as_ref()),
            labels: determined.given(&Labels::new()),
            any_value: determined.any_value,
            gives: Some(gives(spec.node_selector.as_ref())),
            configs: Selects::of(spec.machine_config_selector.as_ref()),
            target: spec.configuration.as_ref().and_then(Configuration::of),
            settled: status
                .and_then(|status| status.configuration.as_ref())
                .and_then(Configuration::of),
            unavailable: (
                spec.max_unavailable.as_ref().map(|it| match it {
                    IntOrString::Int(number) => number.to_string(),
                    IntOrString::String(text) => text.clone(),
                }),
                count(status.and_then(|it| it.unavailable_machine_count)),
            ),
            degraded: count(status.and_then(|it| it.degraded_machine_count)),
            served_newest: count(status.and_then(|it| it.updated_machine_count)) > 0,
            had_rollout: annotations.is_some_and(|all| all.contains_key(MADE_ANNOTATION)),
            unread: None,
        }
    }

    /// What stands in the place of an object that cannot be read, and of which no former version is
    /// known. Nobody knows which nodes it selects: were it not there, its nodes would be those of
    /// another pool.
    pub fn unread(metadata: &ObjectMeta, why: &str) -> Pool {
        Pool {
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            version: metadata.resource_version.clone().unwrap_or_default(),
            nodes: Selects::Unreadable(why.to_owned()),
            // No selector leaves labels open here: none could be read.
            gives: Some(Ok(Determined::default())),
            unread: Some(why.to_owned()),
            ..Pool::default()
        }
    }

    /// Whether a MachineConfig is one of those that it is made of.
    pub fn is_made_of(&self, config: &ConfigMeta) -> bool {
        self.configs.matches(&config.labels)
    }

    /// The labels that a node gets that joins it, or why nobody can say which.
    pub fn gives(&self) -> Result<Determined, Ambiguous> {
        self.gives.clone().unwrap_or(Err(Ambiguous::Nothing))
    }

    /// These labels, and those that leave no choice. A key that may have any value keeps the one
    /// that it has.
    pub(crate) fn with_labels(&self, labels: &Labels) -> Labels {
        let stays = |key: &String| self.any_value.contains(key) && labels.contains_key(key);
        let new = self.labels.iter().filter(|(key, _)| !stays(key));
        let new = new.map(|(key, value)| (key.clone(), value.clone()));
        labels.clone().into_iter().chain(new).collect()
    }

    /// What cannot be read in it, and what that means; there may be nothing.
    pub fn problems(&self) -> Vec<String> {
        if let Some(why) = &self.unread {
            return vec![format!(
                "{why}: it cannot be read, so that nobody knows which nodes it selects: no node is placed in \
                 any pool, and nothing is rolled out, until that is mended."
            )];
        }
        let mut problems = Vec::new();
        if let Selects::Unreadable(why) = &self.nodes {
            problems.push(format!(
                "spec.nodeSelector: {why}: OpenShift places no node in any pool, and rolls nothing \
                 out, until that is mended."
            ));
        }
        if let Selects::Unreadable(why) = &self.configs {
            let text = "it counts as not set until that is mended.";
            problems.push(format!("spec.machineConfigSelector: {why}: {text}"));
        }
        problems
    }
}

impl Configuration {
    fn of(given: &PoolConfiguration) -> Option<Configuration> {
        let name = given.name.clone().filter(|name| !name.is_empty())?;
        let sources = given.source.iter().flatten().filter_map(|it| it.name.clone()).collect();
        Some(Configuration { name, sources })
    }
}
