//! What the control plane consists of does what a cluster's own does.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, reason = "how long things took is printed, not asserted")]

use std::collections::BTreeMap;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod, Secret};
use k8s_openapi::api::policy::v1::{Eviction, PodDisruptionBudget};
use kube::api::{DeleteParams, ListParams, ObjectMeta, PostParams};
use kube::{Api, Client, Error};
use serde_json::json;
use tread_test_bed::{ControlPlane, shared, unique};

/// Until it holds; a test that waits for what never comes is ended by its suite.
async fn until<F: Future<Output = bool>>(mut holds: impl FnMut() -> F) {
    while !holds().await {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

fn code_of<T: std::fmt::Debug>(result: Result<T, Error>) -> u16 {
    match result.unwrap_err() {
        Error::Api(status) => status.code,
        other => panic!("{other:?}"),
    }
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}

#[tokio::test]
async fn it_answers_with_the_version_that_it_is_pinned_to() {
    let plane = shared().unwrap();
    println!("the control plane with all its parts took {:?}", plane.took());
    let version = plane.client().await.unwrap().apiserver_version().await;
    assert_eq!(version.unwrap().git_version, "v1.36.3");
    let version = plane.kubectl(&["version", "-o", "json"]).unwrap();
    let version: serde_json::Value = serde_json::from_str(&version.success().unwrap()).unwrap();
    assert_eq!(version["clientVersion"]["gitVersion"], "v1.36.3");
    assert_eq!(version["serverVersion"]["gitVersion"], "v1.36.3");
}

#[test]
fn etcd_and_the_api_server_alone_are_a_control_plane_too() {
    let plane = ControlPlane::start().unwrap();
    println!("etcd and the API server took {:?}", plane.took());
    let namespaces = plane.kubectl(&["get", "namespaces", "-o", "name"]).unwrap();
    assert!(namespaces.success().unwrap().contains("namespace/default"));
}

#[test]
fn a_custom_resource_is_established_and_its_rules_are_kept() {
    let plane = shared().unwrap();
    plane
        .apply(
            r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: kettles.bed.tread.dev}
spec:
  group: bed.tread.dev
  scope: Cluster
  names: {kind: Kettle, plural: kettles}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {cups: {type: integer}}
            x-kubernetes-validations:
            - {rule: "self.cups > 0", message: a kettle holds a cup at least}
"#,
        )
        .unwrap();
    let established = "--for=condition=Established";
    let wait = plane.kubectl(&["wait", established, "crd/kettles.bed.tread.dev"]);
    wait.unwrap().success().unwrap();
    let kettle = |cups: i32| {
        let object = json!({
            "apiVersion": "bed.tread.dev/v1", "kind": "Kettle",
            "metadata": {"name": "mine"}, "spec": {"cups": cups},
        });
        plane.apply(&object.to_string())
    };
    let refused = format!("{:?}", kettle(0).unwrap_err());
    assert!(refused.contains("a kettle holds a cup at least"), "{refused}");
    kettle(2).unwrap();
}

#[tokio::test]
async fn the_second_who_writes_a_lease_from_what_they_read_gets_a_conflict() {
    let plane = shared().unwrap();
    let namespace = plane.namespace("lease").unwrap();
    let leases: Api<Lease> = Api::namespaced(plane.client().await.unwrap(), &namespace);
    let lease = Lease { metadata: named("node"), ..Lease::default() };
    let mut first = leases.create(&PostParams::default(), &lease).await.unwrap();
    let mut second = first.clone();
    first.spec.get_or_insert_default().holder_identity = Some("first".to_owned());
    second.spec.get_or_insert_default().holder_identity = Some("second".to_owned());
    let write = PostParams::default();
    leases.replace("node", &write, &first).await.unwrap();
    assert_eq!(code_of(leases.replace("node", &write, &second).await), 409);
}

#[tokio::test]
async fn a_service_account_may_do_what_its_role_says_and_nothing_else() {
    let plane = shared().unwrap();
    let namespace = plane.namespace("rbac").unwrap();
    let account = plane.service_account(&namespace, "reader").unwrap();
    let client = account.client().await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
    let all = ListParams::default();
    assert_eq!(code_of(maps.list(&all).await), 403);
    let role = ["create", "role", "reader", "--verb=list", "--resource=configmaps"];
    let subject = format!("--serviceaccount={namespace}:reader");
    let binding = ["create", "rolebinding", "reader", "--role=reader", &subject];
    for command in [&role[..], &binding[..]] {
        let mut command = command.to_vec();
        command.extend(["-n", &namespace]);
        plane.kubectl(&command).unwrap().success().unwrap();
    }
    // The authorizer learns of it by a watch.
    until(|| async { maps.list(&all).await.is_ok() }).await;
    let secrets: Api<Secret> = Api::namespaced(client, &namespace);
    assert_eq!(code_of(secrets.list(&all).await), 403);
}

#[test]
fn anybody_can_be_impersonated_with_their_groups() {
    let plane = shared().unwrap();
    let nobody = plane.impersonate("nobody", &[]).unwrap();
    let ask = ["auth", "can-i", "delete", "nodes"];
    assert_eq!(nobody.kubectl(&ask).unwrap().stdout.trim(), "no");
    let master = plane.impersonate("nobody", &["system:masters"]).unwrap();
    assert_eq!(master.kubectl(&ask).unwrap().stdout.trim(), "yes");
}

#[test]
fn a_user_with_a_token_of_their_own_is_who_the_token_says() {
    let plane = ControlPlane::options().with_user("alice", &["admins", "cooks"]).start().unwrap();
    let alice = plane.user("alice").unwrap();
    let who = alice.kubectl(&["auth", "whoami", "-o", "json"]).unwrap();
    let who: serde_json::Value = serde_json::from_str(&who.success().unwrap()).unwrap();
    assert_eq!(who["status"]["userInfo"]["username"], "alice");
    assert_eq!(
        who["status"]["userInfo"]["groups"],
        json!(["admins", "cooks", "system:authenticated"])
    );
}

#[tokio::test]
async fn many_nodes_become_ready_and_keep_a_lease() {
    let plane = shared().unwrap();
    let began = std::time::Instant::now();
    let names = plane.create_nodes(&unique("many"), 100).await.unwrap();
    println!("100 nodes were Ready after {:?}", began.elapsed());
    assert_eq!(names.len(), 100);
    let client = plane.client().await.unwrap();
    let leases: Api<Lease> = Api::namespaced(client, "kube-node-lease");
    let last = names.last().unwrap();
    until(|| async { leases.get_opt(last).await.unwrap().is_some() }).await;
}

fn pod(name: &str, node: &str, app: &str, annotations: &[&str]) -> Pod {
    let annotations: BTreeMap<String, String> =
        annotations.iter().map(|&annotation| (annotation.to_owned(), "true".to_owned())).collect();
    serde_json::from_value(json!({
        "metadata": {"name": name, "labels": {"app": app}, "annotations": annotations},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "main", "image": "registry.example/main"}],
        },
    }))
    .unwrap()
}

async fn ready_pod(pods: &Api<Pod>, pod: &Pod) {
    pods.create(&PostParams::default(), pod).await.unwrap();
    let name = pod.metadata.name.as_deref().unwrap();
    until(|| async { is_ready(&pods.get(name).await.unwrap()) }).await;
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| &status.conditions);
    conditions.flatten().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

async fn evict(client: &Client, namespace: &str, pod: &str) -> Result<(), Error> {
    let eviction = Eviction { metadata: named(pod), ..Eviction::default() };
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let answer: Result<serde_json::Value, Error> =
        pods.create_subresource("eviction", pod, &PostParams::default(), &eviction).await;
    answer.map(|_| ())
}

#[tokio::test]
async fn an_eviction_that_a_disruption_budget_forbids_is_refused() {
    let plane = shared().unwrap();
    let namespace = plane.namespace("budget").unwrap();
    let client = plane.client().await.unwrap();
    let nodes = plane.create_nodes(&unique("budget"), 1).await.unwrap();
    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    ready_pod(&pods, &pod("guarded", &nodes[0], "guarded", &[])).await;
    ready_pod(&pods, &pod("free", &nodes[0], "free", &[])).await;
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(client.clone(), &namespace);
    let budget = serde_json::from_value(json!({
        "metadata": {"name": "guard"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "guarded"}}},
    }));
    budgets.create(&PostParams::default(), &budget.unwrap()).await.unwrap();
    until(|| async {
        let status = budgets.get("guard").await.unwrap().status;
        status.is_some_and(|status| status.observed_generation == Some(1))
    })
    .await;
    let refused = evict(&client, &namespace, "guarded").await;
    assert_eq!(code_of(refused), 429);
    evict(&client, &namespace, "free").await.unwrap();
    until(|| async { pods.get_opt("free").await.unwrap().is_none() }).await;
    assert!(pods.get_opt("guarded").await.unwrap().is_some());
}

#[tokio::test]
async fn a_pod_can_be_made_never_to_end_or_never_to_be_ready() {
    let plane = shared().unwrap();
    let namespace = plane.namespace("stuck").unwrap();
    let client = plane.client().await.unwrap();
    let nodes = plane.create_nodes(&unique("stuck"), 1).await.unwrap();
    let pods: Api<Pod> = Api::namespaced(client, &namespace);
    let sick = pod("sick", &nodes[0], "web", &["bed.tread.dev/not-ready"]);
    pods.create(&PostParams::default(), &sick).await.unwrap();
    let stays = pod("stays", &nodes[0], "web", &["bed.tread.dev/never-ends"]);
    ready_pod(&pods, &stays).await;
    ready_pod(&pods, &pod("goes", &nodes[0], "web", &[])).await;
    // The other two were treated after them, so that they had their chance.
    assert!(!is_ready(&pods.get("sick").await.unwrap()));
    let gone = DeleteParams::default();
    pods.delete("stays", &gone).await.unwrap();
    pods.delete("goes", &gone).await.unwrap();
    until(|| async { pods.get_opt("goes").await.unwrap().is_none() }).await;
    let stays = pods.get("stays").await.unwrap();
    assert!(stays.metadata.deletion_timestamp.is_some());
}

#[tokio::test]
async fn the_scheduler_places_the_pods_of_a_deployment() {
    let plane = shared().unwrap();
    let namespace = plane.namespace("scheduled").unwrap();
    plane.create_nodes(&unique("scheduled"), 1).await.unwrap();
    let image = "--image=registry.example/web";
    let create = ["create", "deployment", "web", image, "--replicas=3", "-n", &namespace];
    plane.kubectl(&create).unwrap().success().unwrap();
    let rollout = ["rollout", "status", "deployment/web", "-n", &namespace];
    plane.kubectl(&rollout).unwrap().success().unwrap();
}

#[tokio::test]
async fn what_belongs_to_a_deleted_object_is_collected() {
    let plane = shared().unwrap();
    let namespace = plane.namespace("garbage").unwrap();
    let client = plane.client().await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client, &namespace);
    let write = PostParams::default();
    let owner = ConfigMap { metadata: named("owner"), ..ConfigMap::default() };
    let owner = maps.create(&write, &owner).await.unwrap();
    let owned: ConfigMap = serde_json::from_value(json!({
        "metadata": {"name": "owned", "ownerReferences": [{
            "apiVersion": "v1", "kind": "ConfigMap", "name": "owner",
            "uid": owner.metadata.uid,
        }]},
    }))
    .unwrap();
    maps.create(&write, &owned).await.unwrap();
    maps.delete("owner", &DeleteParams::default()).await.unwrap();
    until(|| async { maps.get_opt("owned").await.unwrap().is_none() }).await;
}

#[tokio::test]
async fn a_node_that_is_told_to_stay_unready_does() {
    let plane = shared().unwrap();
    let name = unique("unready");
    let node: Node = serde_json::from_value(json!({
        "metadata": {"name": name, "annotations": {"bed.tread.dev/not-ready": "true"}},
    }))
    .unwrap();
    let nodes: Api<Node> = Api::all(plane.client().await.unwrap());
    nodes.create(&PostParams::default(), &node).await.unwrap();
    plane.create_nodes(&unique("ready"), 1).await.unwrap();
    // The other one was made later, and is Ready.
    let status = nodes.get(&name).await.unwrap().status.unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    assert!(!conditions.iter().any(|c| c.type_ == "Ready" && c.status == "True"));
}
