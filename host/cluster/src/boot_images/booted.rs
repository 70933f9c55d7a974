//! From which images nodes booted first, by their own word.

use super::machine::Key;
use std::collections::BTreeMap;
use tread_kube::api::boot_images::BootImagesStatus;
use tread_kube::api::machines;
use tread_model::boot_images::KnownBy;

/// By machine resource: its newest node that says so.
pub type Booted = BTreeMap<Key, NewestNode>;

/// A node that says from which image it booted first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewestNode {
    /// When it registered, in seconds.
    pub created: u64,
    /// The version of the image, as anybody on the node may have written it.
    pub image: String,
}

/// What the service says that it has by nodes, as far as it lists it.
pub(super) fn of_status(status: &BootImagesStatus) -> Booted {
    let by_nodes = status.resources.iter().filter(|it| it.known_by == KnownBy::Aleph.as_str());
    let newest = by_nodes.filter_map(|it| {
        let is_it = |kind: &&machines::Kind| it.kind == format!("{}.{}", kind.kind, kind.group);
        let kind = machines::ALL.iter().find(is_it)?.name;
        let image = it.version.as_deref()?.split(' ').next()?.to_owned();
        let key = Key { kind, namespace: it.namespace.clone(), name: it.name.clone() };
        Some((key, NewestNode { created: 0, image }))
    });
    newest.collect()
}
