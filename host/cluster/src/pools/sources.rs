//! Which MachineConfigs a pool is made of, in the order in which they are merged.

use super::config::ConfigMeta;
use super::configs::Configs;
use super::pool::{Pool, Pools};
use std::collections::BTreeMap;
use tread_kube::api::machine_config::ROLE_LABEL;

/// The name of the MachineConfig in which OpenShift's operator renders mirrors
/// is `99-`, the pool's name, and this.
pub const GENERATED_REGISTRIES: &str = "-generated-registries";

/// The pools that a MachineConfig is a part of, or that it was rendered for.
pub fn pools_of<'c>(
    pools: &'c Pools,
    name: &'c str,
    config: &'c ConfigMeta,
) -> impl Iterator<Item = String> + 'c {
    let is_part = move |pool: &Pool| {
        let selected = pool.is_made_of(config);
        let named = [&pool.target, &pool.settled]
            .into_iter()
            .flatten()
            .any(|it| it.name == name || it.sources.contains(name));
        selected || named
    };
    let pools = pools.iter().filter(move |(_, pool)| is_part(pool));
    pools.map(|(name, _)| name.clone())
}

/// The names of the MachineConfigs that a pool selects, in the order in which
/// they are merged: those of the worker role by name, then the others by name. As with
/// OpenShift's operator labels alone count: a rendered one has none.
pub fn sources<'c>(pool: &Pool, configs: &'c Configs) -> Vec<&'c str> {
    let selected = configs.selected_by(pool);
    let mut selected: Vec<(bool, &str)> =
        selected.map(|(labels, name)| (is_custom(labels), name)).collect();
    selected.sort_unstable();
    selected.into_iter().map(|(_, name)| name).collect()
}

/// Where among the sources of a pool one stands that is made for the pool.
pub fn place(pool: &Pool, configs: &Configs, sources: &[&str], name: &str) -> usize {
    let is_custom = |name: &str| configs.get(name).is_some_and(|it| is_custom(&it.labels));
    let own = (pool.name != "worker", name);
    sources.partition_point(|name| (is_custom(name), *name) < own)
}

fn is_custom(labels: &BTreeMap<String, String>) -> bool {
    labels.get(ROLE_LABEL).is_none_or(|role| role != "worker")
}

#[cfg(test)]
mod tests;
