//! Machines, as far as they are about a node.

use crate::remediation::{Machine, is_marked};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::DynamicObject;
use std::sync::Arc;
use tread_kube::held::Mark;

/// On a Machine that is the first to go when a MachineSet shrinks.
const GOES: [&str; 2] = ["cluster.x-k8s.io/delete-machine", "machine.openshift.io/delete-machine"];

/// What has to be known of a Machine that has a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OfNode {
    pub(crate) node: String,
    pub(crate) machine: Machine,
    /// What made it: kind and name.
    pub(crate) made_by: Option<(String, String)>,
    /// What says that it is being removed, or is to be.
    pub(crate) goes: Option<Arc<Mark>>,
    /// Whether tread keeps others from replacing it.
    pub(crate) is_marked: bool,
}

/// What has to be known of a Machine; nothing if it never got a node.
pub(crate) fn of_machine(object: &DynamicObject, holder: &str) -> Option<OfNode> {
    let metadata = &object.metadata;
    let annotations = metadata.annotations.as_ref();
    let marked = annotations.and_then(|all| GOES.into_iter().find(|it| all.contains_key(*it)));
    let goes = marked.is_some() || metadata.deletion_timestamp.is_some();
    let node = object.data.get("status")?.get("nodeRef")?.get("name")?.as_str()?;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    Some(OfNode {
        node: node.to_owned(),
        machine: Machine { namespace: text(&metadata.namespace), name: text(&metadata.name) },
        made_by: made_by(metadata.owner_references.as_deref()),
        goes: goes.then(|| Arc::new(Mark::of_machine(metadata, marked))),
        is_marked: is_marked(object, holder),
    })
}

/// What made a Machine: kind and name.
fn made_by(owners: Option<&[OwnerReference]>) -> Option<(String, String)> {
    let made = owners?.iter().find(|it| it.controller == Some(true))?;
    Some((made.kind.clone(), made.name.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn the_node_of_a_machine_that_goes_is_known() {
        let machine = |metadata: Value| -> DynamicObject {
            let status = json!({"nodeRef": {"name": "n"}});
            serde_json::from_value(json!({"metadata": metadata, "status": status})).unwrap()
        };
        let goes = |machine: &DynamicObject| {
            of_machine(machine, "tread/1").filter(|it| it.goes.is_some()).map(|it| it.node)
        };
        assert_eq!(goes(&machine(json!({}))), None);
        for mark in GOES {
            let marked = machine(json!({"annotations": {mark: ""}}));
            assert_eq!(goes(&marked).as_deref(), Some("n"));
        }
        let deleted = machine(json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}));
        assert_eq!(goes(&deleted).as_deref(), Some("n"));
        // It never got a node.
        let none = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
        assert_eq!(goes(&serde_json::from_value(none).unwrap()), None);
    }
}
