//! Which MachineConfigs a pool is made of, in the order in which they are merged.

use super::pool::{Pool, Pools};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::SelectorExt as _;
use std::collections::BTreeMap;
use std::sync::Arc;
use tread_kube::api::POOL_KIND;
use tread_kube::api::machine_config::ROLE_LABEL;

/// The name of the MachineConfig in which OpenShift's operator renders mirrors
/// is `99-`, the pool's name, and this.
pub const GENERATED_REGISTRIES: &str = "-generated-registries";

const GENERATED_BY: &str = "machineconfiguration.openshift.io/generated-by-controller-version";

/// The MachineConfigs, by name, without what they hold.
pub type Configs = BTreeMap<String, Arc<ConfigMeta>>;

/// What has to be known of a MachineConfig besides what it holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigMeta {
    /// Which one of its name.
    pub uid: String,
    /// Changes with every write.
    pub version: String,
    /// Pools select it by these.
    pub labels: BTreeMap<String, String>,
    /// Whether it is a pool's rendered config.
    pub rendered: bool,
    /// Whether OpenShift's operator made it, of which version.
    pub generated_by: Option<String>,
    /// When it was made, in seconds.
    pub created: i64,
    /// When it was last written, in seconds.
    pub modified: i64,
}

impl ConfigMeta {
    /// From the metadata of a MachineConfig.
    pub fn of(metadata: &mut ObjectMeta) -> ConfigMeta {
        let created = metadata.creation_timestamp.as_ref().map_or(0, |time| time.0.as_second());
        let owners = metadata.owner_references.iter().flatten();
        let rendered = owners.clone().any(|owner| owner.kind == POOL_KIND);
        let annotations = metadata.annotations.take().unwrap_or_default();
        ConfigMeta {
            uid: metadata.uid.take().unwrap_or_default(),
            version: metadata.resource_version.take().unwrap_or_default(),
            labels: metadata.labels.take().unwrap_or_default(),
            rendered,
            generated_by: annotations.get(GENERATED_BY).cloned(),
            created,
            modified: modified(metadata).max(created),
        }
    }
}

/// When an object was last written, as far as it says so.
pub(crate) fn modified(metadata: &ObjectMeta) -> i64 {
    let written = metadata.managed_fields.iter().flatten();
    // Who writes a status says nothing.
    let written = written.filter(|fields| fields.subresource.as_deref().unwrap_or("").is_empty());
    written
        .filter_map(|fields| fields.time.as_ref())
        .map(|time| time.0.as_second())
        .max()
        .unwrap_or(0)
}

/// The pools that a MachineConfig is a part of, or that it was rendered for.
pub fn pools_of<'c>(
    pools: &'c Pools,
    name: &'c str,
    config: &'c ConfigMeta,
) -> impl Iterator<Item = String> + 'c {
    let is_part = move |pool: &Pool| {
        let selected =
            pool.configs.as_ref().is_some_and(|selector| selector.matches(&config.labels));
        let named = [&pool.target, &pool.settled]
            .into_iter()
            .flatten()
            .any(|it| it.name == name || it.sources.contains(name));
        !config.rendered && selected || named
    };
    let pools = pools.iter().filter(move |(_, pool)| is_part(pool));
    pools.map(|(name, _)| name.clone())
}

/// The names of the MachineConfigs that a pool selects, in the order in which
/// they are merged: those of the worker role by name, then the others by name.
pub fn sources<'c>(pool: &Pool, configs: &'c Configs) -> Vec<&'c str> {
    let Some(selector) = &pool.configs else { return Vec::new() };
    let selected = configs
        .iter()
        .filter(|(_, config)| !config.rendered && selector.matches(&config.labels))
        .map(|(name, config)| (is_custom(config), name));
    let mut selected: Vec<(bool, &str)> =
        selected.map(|(custom, name)| (custom, name.as_str())).collect();
    selected.sort_unstable();
    selected.into_iter().map(|(_, name)| name).collect()
}

/// Where among the sources of a pool one stands that is made for the pool.
pub fn place(pool: &Pool, configs: &Configs, sources: &[&str], name: &str) -> usize {
    let is_custom = |name: &str| configs.get(name).is_some_and(|it| is_custom(it));
    let own = (pool.name != "worker", name);
    sources.partition_point(|name| (is_custom(name), *name) < own)
}

fn is_custom(config: &ConfigMeta) -> bool {
    config.labels.get(ROLE_LABEL).is_none_or(|role| role != "worker")
}

#[cfg(test)]
mod tests;
