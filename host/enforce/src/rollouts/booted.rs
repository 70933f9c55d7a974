//! From which image the newest node of each machine resource booted first, by its own word: for
//! whoever judges boot images.

use super::facts::Facts;
use super::known::Known;
use super::named::OfNode;
use futures::{StreamExt as _, stream};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;
use tread_cluster::boot_images::machine::Key;
use tread_cluster::boot_images::{Booted, Known as Images, NewestNode};
use tread_kube::api::NodeUpdate;
use tread_kube::api::machines::{CAPI_MACHINE_SET, CONTROL_PLANE_MACHINE_SET, Kind, MACHINE_SET};

/// What happens at the same time is looked at together.
const TOGETHER: Duration = Duration::from_secs(1);
/// What makes Machines of OpenShift, and what makes those of Cluster API.
const MAKERS: [&[Kind]; 2] = [&[MACHINE_SET, CONTROL_PLANE_MACHINE_SET], &[CAPI_MACHINE_SET]];

/// Publishes it for as long as it is polled.
pub(super) async fn publish(known: Known, images: Images) {
    let machines = known.machines().each_ref().map(|it| it.moments().map(drop).boxed());
    let others =
        [known.nodes().moments().map(drop).boxed(), known.updates().moments().map(drop).boxed()];
    let mut changes = stream::select_all(machines.into_iter().chain(others));
    while changes.next().await.is_some() {
        sleep(TOGETHER).await;
        let [of_openshift, of_cluster_api] = known.machines().each_ref().map(|it| it.now());
        let (Some(one), Some(two)) = (of_openshift, of_cluster_api) else { continue };
        let (Some(nodes), Some(updates)) = (known.nodes().now(), known.updates().now()) else {
            continue;
        };
        let made = one.values().map(|it| (it, 0)).chain(two.values().map(|it| (it, 1)));
        let made = made.filter_map(|(it, api)| Some((it.as_ref()?, *MAKERS.get(api)?)));
        images.set_booted(booted(made, &nodes, &updates));
    }
}

fn booted<'m>(
    machines: impl Iterator<Item = (&'m OfNode, &'static [Kind])>,
    nodes: &BTreeMap<String, Arc<Facts>>,
    updates: &BTreeMap<String, Arc<NodeUpdate>>,
) -> Booted {
    let mut all = Booted::new();
    for (machine, makers) in machines {
        let Some((kind, name)) = &machine.made_by else { continue };
        let Some(maker) = makers.iter().find(|maker| maker.kind == kind) else { continue };
        let (Some(node), Some(update)) = (nodes.get(&machine.node), updates.get(&machine.node))
        else {
            continue;
        };
        // Another node of this name may have said it.
        let owners = update.metadata.owner_references.iter().flatten();
        let is_of = owners.into_iter().any(|it| it.kind == "Node" && it.uid == node.uid);
        let image = update.status.as_ref().and_then(|status| status.boot_image.as_ref());
        let Some(image) = image.filter(|_| is_of) else { continue };
        let key = Key {
            kind: maker.name,
            namespace: machine.machine.namespace.clone(),
            name: name.clone(),
        };
        let newest = NewestNode { created: node.created.0.as_secs(), image: image.clone() };
        let known = all.entry(key).or_insert_with(|| newest.clone());
        if newest.created > known.created {
            *known = newest;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remediation::Machine;
    use k8s_openapi::api::core::v1::Node;
    use serde_json::json;

    fn node(name: &str, uid: &str, at: &str, image: Option<&str>) -> (Arc<Facts>, Arc<NodeUpdate>) {
        let node: Node = serde_json::from_value(json!({
            "metadata": {"name": name, "uid": uid, "creationTimestamp": at}}))
        .unwrap();
        let update = json!({
            "apiVersion": "tread.dev/v1alpha1", "kind": "NodeUpdate",
            "metadata": {"name": name, "ownerReferences": [
                {"apiVersion": "v1", "kind": "Node", "name": name, "uid": "1"}]},
            "spec": {"pool": "worker"}, "status": {"bootImage": image},
        });
        (Arc::new(Facts::of(&node)), Arc::new(serde_json::from_value(update).unwrap()))
    }

    fn made(node: &str, kind: &str, name: &str) -> OfNode {
        OfNode {
            node: node.to_owned(),
            machine: Machine { namespace: "m".to_owned(), name: format!("m-{node}") },
            made_by: Some((kind.to_owned(), name.to_owned())),
            goes: None,
            is_marked: false,
        }
    }

    #[test]
    fn the_newest_node_of_a_resource_says_what_that_boots() {
        let at = |hour: u8| format!("2026-01-01T{hour:02}:00:00Z");
        let all = [
            ("a", "1", at(1), Some("old")),
            ("b", "1", at(3), Some("new")),
            ("c", "1", at(2), Some("between")),
            ("d", "1", at(9), None),
            ("e", "2", at(9), Some("another's")),
            ("f", "1", at(1), Some("of Cluster API")),
            ("g", "1", at(1), Some("of masters")),
        ];
        let known = all.iter().map(|(name, uid, at, image)| (*name, node(name, uid, at, *image)));
        let known: Vec<_> = known.collect();
        let nodes = known.iter().map(|(name, it)| ((*name).to_owned(), it.0.clone())).collect();
        let updates = known.iter().map(|(name, it)| ((*name).to_owned(), it.1.clone())).collect();
        let ours = ["a", "b", "c", "d", "e", "gone"].map(|node| made(node, "MachineSet", "w"));
        let theirs = made("f", "MachineSet", "w");
        let masters = made("g", "ControlPlaneMachineSet", "cluster");
        let other = made("g", "Job", "cluster");
        let machines = ours.iter().chain([&masters, &other]).map(|it| (it, MAKERS[0]));
        let found = booted(machines.chain([(&theirs, MAKERS[1])]), &nodes, &updates);
        let says: Vec<_> =
            found.iter().map(|(key, it)| (key.kind, &*key.name, &*it.image)).collect();
        assert_eq!(
            says,
            [
                (CONTROL_PLANE_MACHINE_SET.name, "cluster", "of masters"),
                (CAPI_MACHINE_SET.name, "w", "of Cluster API"),
                (MACHINE_SET.name, "w", "new"),
            ]
        );
    }
}
