//! What the cluster says of policies, at one moment.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use std::collections::BTreeMap;
use std::sync::Arc;
use tread_kube::api::DisruptionPolicy;
use tread_kube::api::conditions::cut;

/// Of a key in a ConfigMap, in bytes.
const LONGEST_KEY: usize = 253;

/// Where a ConfigMap is: its namespace and name.
pub type Place = (String, String);

/// What the cluster says of policies, at one moment.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// tread's own namespace, whose ConfigMaps may always be policies.
    pub own_namespace: String,
    /// The DisruptionPolicy objects, by name.
    pub policies: BTreeMap<String, Arc<DisruptionPolicy>>,
    /// The ConfigMaps that are labelled as policies, wherever they are.
    pub config_maps: Arc<BTreeMap<Place, PolicyMap>>,
    /// The namespaces whose ConfigMaps may be policies, by name.
    pub allowed: Arc<BTreeMap<String, Allowed>>,
    /// Whether MachineConfiguration/cluster has a nodeDisruptionPolicy.
    pub has_node_disruption_policy: bool,
    /// The names of the policies that come with tread.
    pub builtins: Vec<String>,
    /// How many policies there may be.
    pub room: Room,
}

/// A ConfigMap that is labelled as a policy: what is known of it without
/// fetching what it holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicyMap {
    /// Which one it is, among all of its name.
    pub uid: String,
    /// Changes with every write.
    pub resource_version: String,
    /// When it was made, in seconds.
    pub created: i64,
    /// The key of its module, where it says so.
    pub key: Option<String>,
}

/// A namespace whose ConfigMaps may be policies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowed {
    /// The claims that they may make, one a line; none: all but the wide ones.
    pub claims: Option<String>,
}

/// How many policies there may be. Who came first stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Of all namespaces together.
    pub registered: usize,
    /// Of one namespace.
    pub registered_of_namespace: usize,
    /// Bytes of all modules together.
    pub bytes: usize,
}

impl Default for Room {
    fn default() -> Room {
        Room { registered: 200, registered_of_namespace: 50, bytes: 48 << 20 }
    }
}

impl PolicyMap {
    /// From the metadata of a ConfigMap.
    pub fn of(metadata: &ObjectMeta) -> PolicyMap {
        let annotation = |name: &str| metadata.annotations.as_ref()?.get(name).cloned();
        PolicyMap {
            uid: metadata.uid.clone().unwrap_or_default(),
            resource_version: metadata.resource_version.clone().unwrap_or_default(),
            created: metadata.creation_timestamp.as_ref().map_or(0, |time| time.0.as_second()),
            // No key is longer, and anybody may write here what they like.
            key: annotation(tread_kube::api::words::KEY_ANNOTATION)
                .map(|key| cut(key, LONGEST_KEY)),
        }
    }
}

impl Allowed {
    /// From the metadata of a namespace.
    pub fn of(metadata: &ObjectMeta) -> Allowed {
        let annotations = metadata.annotations.as_ref();
        Allowed {
            claims: annotations
                .and_then(|it| it.get(tread_kube::api::words::CLAIMS_ANNOTATION))
                .cloned(),
        }
    }
}

impl Snapshot {
    /// Whether a namespace's ConfigMaps may be policies.
    pub fn allows(&self, namespace: &str) -> bool {
        namespace == self.own_namespace || self.allowed.contains_key(namespace)
    }

    /// The claims that policies from a namespace may make.
    pub fn claims_of(&self, namespace: &str) -> Option<&str> {
        self.allowed.get(namespace)?.claims.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_of_a_config_map_is_small_whatever_is_written_into_it() {
        let key = |text: &str| {
            let annotation = (tread_kube::api::words::KEY_ANNOTATION.to_owned(), text.to_owned());
            let metadata =
                ObjectMeta { annotations: Some([annotation].into()), ..ObjectMeta::default() };
            PolicyMap::of(&metadata).key.unwrap()
        };
        assert_eq!(key("policy.wasm"), "policy.wasm");
        assert_eq!(key(&"a".repeat(253)).len(), 253);
        assert!(key(&"ä".repeat(100_000)).len() <= 253);
    }
}
