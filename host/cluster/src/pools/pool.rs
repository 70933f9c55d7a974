//! What has to be known of a MachineConfigPool.

use super::config::ConfigMeta;
use super::node::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Selector, SelectorExt as _};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tread_kube::api::MachineConfigPool;
use tread_kube::api::machine_config::PoolConfiguration;

/// The pools, by name.
pub type Pools = BTreeMap<String, Arc<Pool>>;

/// What has to be known of a MachineConfigPool.
#[derive(Debug, Clone, Default)]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// Which one of that name.
    pub uid: String,
    /// Whether its nodes stay as they are.
    pub paused: bool,
    /// Selects its nodes; None: it has none.
    pub nodes: Option<Selector>,
    /// Selects its MachineConfigs; None: it has none.
    pub configs: Option<Selector>,
    /// The rendered config that its nodes are to get. Where there is one,
    /// OpenShift's operator rolls it out.
    pub target: Option<Configuration>,
    /// The one that all updated nodes had when the last rollout ended.
    pub settled: Option<Configuration>,
    /// What cannot be read in it, and so is left out.
    pub problem: Option<String>,
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
        let mut problem = None;
        let mut selector = |field: &str, given: Option<&LabelSelector>| {
            let given = given?;
            match Selector::try_from(given.clone()) {
                // It would select everything; to OpenShift it means nothing.
                Ok(selector) if selector.selects_all() => None,
                Ok(selector) => Some(selector),
                Err(error) => {
                    problem = Some(format!("spec.{field}: {error}"));
                    None
                }
            }
        };
        let spec = &object.spec;
        let nodes = selector("nodeSelector", spec.node_selector.as_ref());
        let configs = selector("machineConfigSelector", spec.machine_config_selector.as_ref());
        let status = object.status.as_ref();
        Pool {
            name: object.metadata.name.clone().unwrap_or_default(),
            uid: object.metadata.uid.clone().unwrap_or_default(),
            paused: spec.paused,
            nodes,
            configs,
            target: spec.configuration.as_ref().and_then(Configuration::of),
            settled: status
                .and_then(|status| status.configuration.as_ref())
                .and_then(Configuration::of),
            problem,
        }
    }

    /// Whether its nodes are selected by the same labels as those of another.
    pub fn selects_like(&self, other: &Pool) -> bool {
        self.nodes == other.nodes
    }

    /// Whether a MachineConfig is one of those that it is made of.
    pub fn is_made_of(&self, config: &ConfigMeta) -> bool {
        self.configs.as_ref().is_some_and(|it| it.matches(&config.labels))
    }

    fn selects(&self, node: &Node) -> bool {
        self.nodes.as_ref().is_some_and(|selector| selector.matches(&node.labels))
    }
}

impl Configuration {
    fn of(given: &PoolConfiguration) -> Option<Configuration> {
        let name = given.name.clone().filter(|name| !name.is_empty())?;
        let sources = given.source.iter().flatten().filter_map(|it| it.name.clone()).collect();
        Some(Configuration { name, sources })
    }
}

/// The pool of a node: a pool of its own name beats `worker`, and `master` beats
/// both. Of several pools of their own names no one can say which is meant.
pub(super) fn pool_of<'p>(node: &Node, pools: &'p Pools) -> Result<Option<&'p str>, Vec<&'p str>> {
    if node.is_windows() {
        return Ok(None);
    }
    let all: Vec<&str> =
        pools.values().filter(|pool| pool.selects(node)).map(|pool| pool.name.as_str()).collect();
    if all.contains(&"master") {
        return Ok(Some("master"));
    }
    let custom: Vec<&str> = all.iter().copied().filter(|name| *name != "worker").collect();
    match custom.as_slice() {
        [] => Ok(all.first().copied()),
        [one] => Ok(Some(one)),
        _ => Err(custom),
    }
}
