//! What has to be known of a node.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use std::collections::BTreeMap;

const CURRENT: &str = "machineconfiguration.openshift.io/currentConfig";
const TOPOLOGY: &str = "machineconfiguration.openshift.io/controlPlaneTopology";
/// In place of what is no name: nobody has such a config.
const NO_NAME: &str = "(no name of a config)";
const OS: &str = "kubernetes.io/os";

/// What has to be known of a node: small, since there are thousands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    /// Pools select it by these.
    pub labels: BTreeMap<String, String>,
    /// The rendered config that it has, as far as it says so.
    pub current: Option<String>,
    /// Whether there is nowhere to move its pods to.
    pub single_replica: bool,
}

impl Node {
    /// From the metadata of a Node.
    pub fn of(metadata: &mut ObjectMeta) -> Node {
        let annotations = metadata.annotations.take().unwrap_or_default();
        Node {
            labels: metadata.labels.take().unwrap_or_default(),
            current: annotations.get(CURRENT).filter(|name| !name.is_empty()).map(|name| {
                // Whoever is root on the node writes here what they like.
                let given = if is_name(name) { name } else { NO_NAME };
                given.to_owned()
            }),
            single_replica: annotations.get(TOPOLOGY).is_some_and(|it| it == "SingleReplica"),
        }
    }

    /// Windows nodes are in no pool.
    pub(super) fn is_windows(&self) -> bool {
        self.labels.get(OS).is_some_and(|os| os == "windows")
    }
}

/// Whether an object can have this name.
pub fn is_name(text: &str) -> bool {
    let fine = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'.');
    text.len() <= 253 && text.bytes().all(fine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_node_says_that_it_has_is_a_name_or_is_not_repeated() {
        for (said, current) in [
            (None, None),
            (Some(""), None),
            (Some("rendered-worker-1"), Some("rendered-worker-1")),
            (Some("\u{1b}[2Jrendered"), Some(NO_NAME)),
            (Some("../../secrets/x"), Some(NO_NAME)),
            (Some("a".repeat(254).as_str()), Some(NO_NAME)),
        ] {
            let annotations = said.map(|said| [(CURRENT.to_owned(), said.to_owned())].into());
            let mut metadata = ObjectMeta { annotations, ..ObjectMeta::default() };
            assert_eq!(Node::of(&mut metadata).current.as_deref(), current, "{said:?}");
        }
    }
}
