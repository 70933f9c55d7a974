//! The marks of a cordon that somebody else undid. They are removed: otherwise the node's next
//! cordon, whoever makes it, would look like tread's own, and tread would undo it.

use crate::settings::Settings;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tread_kube::asking::{Call, Failed, ask};
use tread_kube::held::{CORDON_ANNOTATION, STAMP_ANNOTATION, cordon};
use tread_model::protocol::Cordon;

/// Whether a node has one of the marks and no cordon.
pub(crate) fn is_old(node: &Node) -> bool {
    let annotations = node.metadata.annotations.as_ref();
    let has = |mark: &str| annotations.is_some_and(|all| all.contains_key(mark));
    let is_marked = has(CORDON_ANNOTATION) || has(STAMP_ANNOTATION);
    is_marked && cordon(node) == Cordon::No
}

/// Takes them away; says whether any was there.
pub(crate) async fn tidy(settings: &Settings, node: &Node) -> Result<bool, Failed> {
    if !is_old(node) {
        return Ok(false);
    }
    let patch = Patch::Merge(json!({"metadata": {
        "uid": node.metadata.uid,
        // Somebody may cordon it meanwhile.
        "resourceVersion": node.metadata.resource_version,
        "annotations": {CORDON_ANNOTATION: Value::Null, STAMP_ANNOTATION: Value::Null},
    }}));
    let api: Api<Node> = Api::all(settings.client.clone());
    let name = node.metadata.name.clone().unwrap_or_default();
    let call = Call::new("patch", "nodes");
    ask(&settings.metrics, call, api.patch(&name, &PatchParams::default(), &patch)).await?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_old_where_the_node_is_not_cordoned() {
        let node = |mark: Option<&str>, cordoned: Option<bool>| -> Node {
            let annotations = mark.map(|mark| json!({CORDON_ANNOTATION: mark}));
            serde_json::from_value(json!({
                "metadata": {"annotations": annotations}, "spec": {"unschedulable": cordoned}}))
            .unwrap()
        };
        let ours = "00000000000000000000000000000007";
        assert!(is_old(&node(Some(ours), None)));
        assert!(is_old(&node(Some(ours), Some(false))));
        assert!(is_old(&node(Some("what nobody can read"), None)));
        assert!(!is_old(&node(Some(ours), Some(true))));
        assert!(!is_old(&node(None, None)));
        // What a version that knows of no stamps leaves where it uncordons.
        let stamped = json!({"metadata": {"annotations": {STAMP_ANNOTATION: ours}}});
        assert!(is_old(&serde_json::from_value(stamped).unwrap()));
    }
}
