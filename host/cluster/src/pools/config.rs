//! What has to be known of a MachineConfig besides what it holds.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use std::collections::BTreeMap;
use std::sync::Arc;
use tread_kube::api::POOL_KIND;
use tread_kube::api::words::MACHINE_CONFIG_GROUP;
use tread_model::read::GENERATED_BY;
use tread_model::rendering::RENDERED_BY;

/// What has to be known of a MachineConfig besides what it holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigMeta {
    /// Its UID, by which it is told from others of its name.
    pub uid: String,
    /// Changes with every write.
    pub version: Arc<str>,
    /// Pools select it by these.
    pub labels: BTreeMap<String, String>,
    /// Whether OpenShift's operator made it, of which version.
    pub generated_by: Option<String>,
    /// Whether tread rendered it.
    pub by_tread: bool,
    /// The pool that it was rendered for, where it says so.
    pub owner: Option<Owned>,
    /// When it was made, in seconds.
    pub created: i64,
    /// When it was last written, in seconds.
    pub modified: i64,
}

impl ConfigMeta {
    /// From the metadata of a MachineConfig.
    pub fn of(metadata: &mut ObjectMeta) -> ConfigMeta {
        let created = metadata.creation_timestamp.as_ref().map_or(0, |time| time.0.as_second());
        let owner = Owned::of(metadata.owner_references.take().unwrap_or_default());
        let annotations = metadata.annotations.take().unwrap_or_default();
        ConfigMeta {
            uid: metadata.uid.take().unwrap_or_default(),
            version: metadata.resource_version.take().unwrap_or_default().into(),
            labels: metadata.labels.take().unwrap_or_default(),
            generated_by: annotations.get(GENERATED_BY).cloned(),
            by_tread: annotations.get(RENDERED_BY).is_some_and(|by| by.starts_with("tread ")),
            owner,
            created,
            modified: modified(metadata).max(created),
        }
    }
}

/// The pool that a config is owned by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owned {
    /// The pool's name.
    pub name: String,
    /// Its UID, by which it is told from others of its name.
    pub uid: String,
}

impl Owned {
    /// By the owners that an object names: only a pool counts, whoever stands first.
    fn of(mut owners: Vec<OwnerReference>) -> Option<Owned> {
        let is_pool = |it: &OwnerReference| {
            let group = it.api_version.split_once('/').map(|(group, _)| group);
            it.kind == POOL_KIND && group == Some(MACHINE_CONFIG_GROUP)
        };
        owners.retain(is_pool);
        owners.sort_by_key(|it| it.controller != Some(true));
        let owner = owners.into_iter().next()?;
        Some(Owned { name: owner.name, uid: owner.uid })
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
