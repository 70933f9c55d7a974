//! What tread and its agents may write, as a real API server has it, with real tokens.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a helper of a test fails the test"
)]

use crate::manifests::{enforcing, yaml};
use kube::api::{Patch, PatchParams, PostParams};
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};
use tread_front::manifests::{Options, all};
use tread_kube::api::NodeUpdate;
use tread_test_bed::{ControlPlane, eventually, unique};

const AGENTS: &str = "tread-system-agents";
const SERVICE: &str = "tread-system";

/// A cluster with all of it, and two nodes with a NodeUpdate and an agent's pod each. Tests use it
/// one after the other.
fn installed() -> ControlPlane {
    let objects = all(&Options { with_inputs: true, ..enforcing() }).unwrap();
    let (definitions, others): (Vec<Value>, Vec<Value>) =
        objects.into_iter().partition(|it| it["kind"] == "CustomResourceDefinition");
    let definitions = serde_json::from_value::<Vec<_>>(definitions.into()).unwrap();
    let options = ControlPlane::options().with_definitions(&definitions);
    let plane = options.with_objects(&yaml(&others)).maybe_used().start().unwrap();
    for node in ["node-0", "node-1"] {
        let metadata = json!({"name": node, "labels": {"zone": "a"}});
        for object in [
            json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata}),
            json!({"apiVersion": "tread.dev/v1alpha1", "kind": "NodeUpdate",
                "metadata": {"name": node}, "spec": {"pool": "worker"}}),
            json!({"apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": node, "namespace": AGENTS},
                "spec": {"nodeName": node, "serviceAccountName": "tread-agent",
                    "containers": [{"name": "tread", "image": "tread"}]}}),
        ] {
            plane.apply(&object.to_string()).unwrap();
        }
    }
    plane
}

/// A token as the kubelet asks for, bound to a pod; or to nothing.
fn token(plane: &ControlPlane, pod: Option<&str>) -> String {
    let mut args = vec!["create", "token", "tread-agent", "-n", AGENTS];
    if let Some(pod) = pod {
        args.extend(["--bound-object-kind", "Pod", "--bound-object-name", pod]);
    }
    plane.kubectl(&args).unwrap().success().unwrap().trim().to_owned()
}

/// Whoever has this token, and nothing else.
async fn with_token(plane: &ControlPlane, token: &str) -> Client {
    let text = std::fs::read_to_string(plane.kubeconfig()).unwrap();
    let mut value: Value = serde_json::from_str(&text).unwrap();
    value["users"][0]["user"] = json!({"token": token});
    let read: Kubeconfig = serde_json::from_value(value).unwrap();
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(read, &options).await.unwrap();
    config.default_retry = false;
    Client::try_from(config).unwrap()
}

/// What became of a write: the API server's words, if it refused.
fn refusal<T>(done: kube::Result<T>) -> Option<String> {
    match done {
        Ok(_) => None,
        Err(kube::Error::Api(status)) if status.code == 403 || status.code == 422 => {
            Some(status.message.clone())
        }
        Err(error) => panic!("{error}"),
    }
}

async fn says(client: &Client, node: &str, step: &str) -> Option<String> {
    let api: Api<NodeUpdate> = Api::all(client.clone());
    let status = Patch::Merge(json!({"status": {"step": step}}));
    refusal(api.patch_status(node, &PatchParams::default(), &status).await)
}

/// Policies are in force a moment after they were made.
async fn until_in_force(client: &Client, node: &str) {
    eventually("the policy is in force", async || says(client, node, "early").await).await;
}

#[tokio::test]
async fn an_agent_writes_the_status_of_its_own_nodes_update_and_of_no_other() {
    let plane = installed();
    let own = with_token(&plane, &token(&plane, Some("node-0"))).await;
    until_in_force(&own, "node-1").await;
    assert_eq!(says(&own, "node-0", "reload crio.service").await, None);
    let step = ["get", "nup", "node-0", "-o", "jsonpath={.status.step}"];
    assert_eq!(plane.kubectl(&step).unwrap().success().unwrap(), "reload crio.service");

    let other = says(&own, "node-1", "done").await.unwrap();
    for part in ["of the agent on node node-0", "NodeUpdate node-0 alone, and not of node-1"] {
        assert!(other.contains(part), "{part}: {other}");
    }
    let of_second = with_token(&plane, &token(&plane, Some("node-1"))).await;
    assert_eq!(says(&of_second, "node-1", "restart crio.service").await, None);
    assert!(says(&of_second, "node-0", "done").await.is_some());

    // A token that no pod has says no node.
    let nobody = with_token(&plane, &token(&plane, None)).await;
    let why = says(&nobody, "node-0", "done").await.unwrap();
    assert!(why.contains("says no node") && why.contains("1.32"), "{why}");
}

#[tokio::test]
async fn an_agent_writes_no_spec_and_reads_nothing_even_where_somebody_grants_it_more() {
    let plane = installed();
    let own = with_token(&plane, &token(&plane, Some("node-0"))).await;
    until_in_force(&own, "node-1").await;
    let api: Api<NodeUpdate> = Api::all(own.clone());
    let params = PatchParams::default();
    let spec = Patch::Merge(json!({"spec": {"pool": "mine"}, "metadata": {"labels": {"a": "b"}}}));
    assert!(refusal(api.patch("node-0", &params, &spec).await).is_some());
    assert!(refusal(api.get("node-0").await).is_some());
    // What comes with a status besides is dropped by the API server.
    let both = Patch::Merge(json!({"spec": {"pool": "mine"}, "status": {"step": "x"},
        "metadata": {"labels": {"a": "b"}}}));
    let left = api.patch_status("node-0", &params, &both).await.unwrap();
    assert_eq!((left.spec.pool.as_str(), left.metadata.labels), ("worker", None));

    let bind = ["create", "clusterrolebinding", "too-much", "--clusterrole=cluster-admin"];
    let whom = format!("--serviceaccount={AGENTS}:tread-agent");
    plane.kubectl(&[&bind[..], &[&whom]].concat()).unwrap().success().unwrap();
    let why = eventually("it is granted", async || {
        let why = refusal(api.patch("node-0", &params, &spec).await).unwrap();
        why.contains("ValidatingAdmissionPolicy").then_some(why)
    })
    .await;
    assert!(why.contains("writes the status of its NodeUpdate alone"), "{why}");
    assert!(refusal(api.delete("node-0", &Default::default()).await).is_some());
    assert!(says(&own, "node-1", "done").await.is_some());
}

fn of_pools(client: &Client, kind: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("machineconfiguration.openshift.io", "v1", kind);
    Api::all_with(client.clone(), &ApiResource::from_gvk(&kind))
}

#[tokio::test]
async fn the_service_writes_of_nodes_pools_and_leases_what_it_has_to_and_no_more() {
    let plane = installed();
    let config = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "spec": {},
        "kind": "MachineConfig", "metadata": {"name": "99-admins"}});
    plane.apply(&config.to_string()).unwrap();
    let pool = json!({"apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfigPool", "metadata": {"name": "worker"},
        "spec": {"paused": false, "machineConfigSelector": {}, "nodeSelector": {}}});
    plane.apply(&pool.to_string()).unwrap();
    let client = plane.service_account(SERVICE, "tread").unwrap().client().await.unwrap();
    let params = PatchParams::default();

    let lease = |name: &str| json!({"metadata": {"name": name}, "spec": {"holderIdentity": "x"}});
    let leases = |namespace: &str| -> Api<k8s_openapi::api::coordination::v1::Lease> {
        Api::namespaced(client.clone(), namespace)
    };
    let make = async |namespace: &str, name: &str| {
        let lease = serde_json::from_value(lease(name)).unwrap();
        refusal(leases(namespace).create(&PostParams::default(), &lease).await)
    };
    let spaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(client.clone());
    let space = async |name: &str| {
        let space = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        refusal(spaces.create(&PostParams::default(), &space).await)
    };
    eventually("the policy is in force", async || space("mine").await).await;
    assert_eq!(space("medik8s-leases").await, None);
    assert_eq!(make("medik8s-leases", "node-node-0").await, None);
    let why = make("kube-system", "kube-scheduler").await.unwrap();
    assert!(why.contains("writes Leases in tread-system and medik8s-leases alone"), "{why}");

    let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(client.clone());
    let node = async |patch: Value| {
        refusal(nodes.patch("node-0", &params, &Patch::Strategic(patch)).await)
    };
    let mark = json!({"annotations": {"tread.dev/cordoned-for": "1"}});
    assert_eq!(node(json!({"metadata": mark, "spec": {"unschedulable": true}})).await, None);
    assert_eq!(node(json!({"spec": {"unschedulable": null}})).await, None);
    let why = node(json!({"metadata": {"labels": {"zone": "b"}}})).await.unwrap();
    assert!(why.contains("no labels of nodes but node.kubernetes.io/exclude-from"), "{why}");
    let excluded = "node.kubernetes.io/exclude-from-external-load-balancers";
    for label in [json!(""), json!(null)] {
        assert_eq!(node(json!({"metadata": {"labels": {excluded: label}}})).await, None);
    }
    let taint = json!({"taints": [{"key": "a", "effect": "NoExecute"}]});
    let why = node(json!({"spec": taint})).await.unwrap();
    assert!(why.contains("of the spec of nodes unschedulable alone"), "{why}");
    // It lets a node in that registered as joining, by what its pool has; and no other.
    let joining = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "joins"},
        "spec": {"taints": [{"key": "tread.dev/joining", "value": "1", "effect": "NoSchedule"}]}});
    plane.apply(&joining.to_string()).unwrap();
    let joins =
        async |patch: Value| refusal(nodes.patch("joins", &params, &Patch::Merge(patch)).await);
    assert!(joins(json!({"metadata": {"labels": {"zone": "b"}}})).await.is_some());
    let both = json!([{"key": "tread.dev/joining", "value": "2", "effect": "NoSchedule"}]);
    assert!(joins(json!({"spec": {"taints": both}})).await.is_some());
    let other = json!({"metadata": {"labels": {"role": "b"}}, "spec": {"taints": [], "podCIDR": "10.1.0.0/24"}});
    assert!(joins(other).await.unwrap().contains("unschedulable alone"));
    let joined = json!({"metadata": {"labels": {"role": "b"}},
        "spec": {"taints": [{"key": "dedicated", "effect": "NoSchedule"}]}});
    assert_eq!(joins(joined).await, None);
    assert!(joins(json!({"spec": {"taints": null}})).await.is_some(), "it has joined");
    let condition = json!({"type": "Drained", "status": "True", "reason": "TreadUpdate"});
    let status = json!({"status": {"conditions": [condition]}, "metadata": {"labels": {"a": "b"}}});
    let labelled = nodes.patch_status("node-0", &params, &Patch::Strategic(status)).await;
    assert!(refusal(labelled).unwrap().contains("no labels"));
    let status = json!({"status": {"conditions": [condition]}});
    nodes.patch_status("node-0", &params, &Patch::Strategic(status)).await.unwrap();

    let configs = of_pools(&client, "MachineConfig");
    let config = async |name: &str| {
        let config = serde_json::from_value(json!({
            "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
            "metadata": {"name": name}, "spec": {}}));
        refusal(configs.create(&PostParams::default(), &config.unwrap()).await)
    };
    assert_eq!(config("rendered-worker-1").await, None);
    assert!(config("99-mine").await.unwrap().contains("alone that it rendered"));
    assert!(refusal(configs.delete("99-admins", &Default::default()).await).is_some());
    configs.delete("rendered-worker-1", &Default::default()).await.unwrap();

    let pools = of_pools(&client, "MachineConfigPool");
    let pool = async |spec: Value| {
        let patch = Patch::Merge(json!({"spec": spec}));
        refusal(pools.patch("worker", &params, &patch).await)
    };
    assert_eq!(pool(json!({"configuration": {"name": "rendered-worker-1"}})).await, None);
    let why = pool(json!({"paused": true})).await.unwrap();
    assert!(why.contains("of the spec of machineconfigpools configuration alone"), "{why}");
    assert!(pool(json!({"nodeSelector": null})).await.is_some());
}

/// What makes the garbage collector remove an object, and what keeps one that is removed.
fn held_otherwise() -> [Value; 3] {
    let gone = json!({"apiVersion": "v1", "kind": "Namespace", "name": "gone", "uid": "0"});
    let owner = json!({"apiVersion": "v1", "kind": "Namespace", "name": "default", "uid": "1"});
    [
        json!({"ownerReferences": [owner, gone]}),
        json!({"finalizers": null}),
        json!({"finalizers": ["example.com/kept", "example.com/mine"]}),
    ]
}

/// Lets the service delete what the policy holds it to: whoever may not is refused other owners as on
/// OpenShift, before any policy is asked.
async fn may_delete(plane: &ControlPlane) {
    const NAME: &str = "may-delete";
    let all = ["nodes", "nodes/status", "machineconfigpools", "machines"];
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": NAME},
        "rules": [{"apiGroups": ["*"], "resources": all, "verbs": ["delete"]}]});
    plane.apply(&role.to_string()).unwrap();
    let (role, whom) =
        (format!("--clusterrole={NAME}"), format!("--serviceaccount={SERVICE}:tread"));
    let bind = ["create", "clusterrolebinding", NAME, &role, &whom];
    plane.kubectl(&bind).unwrap().success().unwrap();
    let user = format!("--as=system:serviceaccount:{SERVICE}:tread");
    eventually("it may delete nodes", async || {
        let asked = plane.kubectl(&["auth", "can-i", "delete", "nodes", &user]).unwrap();
        (asked.stdout.trim() == "yes").then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_service_has_nothing_collected_and_tells_of_a_node_its_maintenance_alone() {
    let plane = installed();
    may_delete(&plane).await;
    let kept = json!({"name": "kept", "finalizers": ["example.com/kept"]});
    let pool = json!({"apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfigPool", "metadata": kept,
        "spec": {"paused": false, "machineConfigSelector": {}, "nodeSelector": {}}});
    plane.apply(&pool.to_string()).unwrap();
    plane
        .apply(&json!({"apiVersion": "v1", "kind": "Node", "metadata": kept}).to_string())
        .unwrap();
    let of_kubelet = json!({"status": {
        "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}],
        "capacity": {"cpu": "4", "memory": "8148036Ki"},
        "allocatable": {"cpu": "3500m", "memory": "8148036Ki"},
        "images": [{"names": ["a.example/b@sha256:1"], "sizeBytes": 7}],
        "conditions": [
            {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": null},
            {"type": "Drained", "status": "False", "reason": "AdminRequested"},
            {"type": "DiskPressure", "status": "False"},
        ],
    }});
    let patch = ["patch", "node", "kept", "--subresource=status", "--type=strategic", "-p"];
    plane.kubectl(&[&patch[..], &[&of_kubelet.to_string()]].concat()).unwrap().success().unwrap();

    let client = plane.service_account(SERVICE, "tread").unwrap().client().await.unwrap();
    let params = PatchParams::default();
    let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(client.clone());
    let pools = of_pools(&client, "MachineConfigPool");
    eventually("the policy is in force", async || {
        let patch = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
        refusal(nodes.patch("kept", &params, &patch).await)
    })
    .await;
    for metadata in held_otherwise() {
        let patch = Patch::Merge(json!({"metadata": metadata}));
        let of_node = refusal(nodes.patch("kept", &params, &patch).await);
        let by_status = refusal(nodes.patch_status("kept", &params, &patch).await);
        let of_pool = refusal(pools.patch("kept", &params, &patch).await);
        for why in [of_node, by_status, of_pool] {
            let why = why.unwrap_or_else(|| panic!("{metadata}"));
            assert!(why.contains("no ownerReferences and no finalizers of"), "{why}");
        }
    }
    let mark = Patch::Merge(json!({"metadata": {"annotations": {"tread.dev/a": "1"}}}));
    assert_eq!(refusal(nodes.patch("kept", &params, &mark).await), None);
    assert_eq!(refusal(pools.patch("kept", &params, &mark).await), None);

    let status = async |status: Value| {
        let patch = Patch::Strategic(json!({"status": status}));
        refusal(nodes.patch_status("kept", &params, &patch).await)
    };
    for other in [
        json!({"addresses": [{"type": "InternalIP", "address": "192.0.2.9"}]}),
        json!({"addresses": [{"$patch": "replace"}]}),
        json!({"capacity": {"cpu": "400"}}),
        json!({"allocatable": null}),
        json!({"phase": "Terminated"}),
        json!({"daemonEndpoints": {"kubeletEndpoint": {"Port": 1}}}),
        json!({"conditions": [{"type": "Ready", "status": "Unknown"}]}),
        json!({"conditions": [{"type": "Ready", "$patch": "delete"}]}),
        json!({"conditions": [{"type": "NetworkUnavailable", "status": "True"}]}),
    ] {
        let why = status(other.clone()).await.unwrap_or_else(|| panic!("{other}"));
        let said = "of the status of nodes the conditions MaintenancePlanned, \
            MaintenanceInProgress, DrainInProgress, Drained alone";
        assert!(why.contains(said), "{why}");
    }
    let own = |type_: &str, status: &str| json!({"type": type_, "status": status, "reason": "TreadUpdate"});
    for conditions in [
        json!([own("MaintenancePlanned", "True")]),
        json!([own("DrainInProgress", "True"), own("Drained", "False"),
            {"type": "MaintenancePlanned", "$patch": "delete"}]),
        json!([
            own("DrainInProgress", "False"),
            own("Drained", "True"),
            own("MaintenanceInProgress", "True")
        ]),
        json!([{"type": "Drained", "$patch": "delete"}, {"type": "DrainInProgress", "$patch": "delete"},
            {"type": "MaintenanceInProgress", "$patch": "delete"}]),
    ] {
        assert_eq!(status(json!({"conditions": conditions})).await, None, "{conditions}");
    }
    // A node of which nothing is known yet.
    let bare = Patch::Strategic(json!({"status": {"conditions": [own("Drained", "True")]}}));
    assert_eq!(refusal(nodes.patch_status("node-1", &params, &bare).await), None);
}

#[tokio::test]
async fn the_service_marks_a_machine_by_an_annotation_and_changes_nothing_else_of_it() {
    let plane = installed();
    may_delete(&plane).await;
    let group = "cluster.x-k8s.io";
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("machines.{group}"),
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"}},
        "spec": {"group": group, "scope": "Namespaced",
            "names": {"plural": "machines", "kind": "Machine"},
            "versions": [{"name": "v1beta1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": open}}]}});
    plane.apply(&crd.to_string()).unwrap();
    let wait = ["wait", "--for=condition=Established", "--timeout=600s", "crd", "--all"];
    plane.kubectl(&wait).unwrap().success().unwrap();
    let machine = json!({"apiVersion": format!("{group}/v1beta1"), "kind": "Machine",
        "metadata": {"name": "one", "namespace": "default", "finalizers": ["example.com/kept"]},
        "spec": {"providerID": "a"}, "status": {"phase": "Running"}});
    eventually("Machines are served", async || plane.apply(&machine.to_string()).ok()).await;
    let client = plane.service_account(SERVICE, "tread").unwrap().client().await.unwrap();
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1beta1", "Machine"));
    let machines: Api<DynamicObject> = Api::namespaced_with(client, "default", &kind);
    let written = async |patch: Value| {
        refusal(machines.patch("one", &PatchParams::default(), &Patch::Merge(patch)).await)
    };
    let why = eventually("the policy is in force", async || {
        written(json!({"spec": {"providerID": unique("b")}})).await
    })
    .await;
    assert!(why.contains("of the spec of machines nothing"), "{why}");
    assert!(written(json!({"spec": {"more": true}})).await.is_some());
    assert!(written(json!({"spec": {"providerID": null}})).await.is_some());
    assert!(written(json!({"metadata": {"labels": {"a": "b"}}})).await.is_some());
    for metadata in held_otherwise() {
        let why = written(json!({"metadata": metadata})).await.unwrap();
        assert!(why.contains("no ownerReferences and no finalizers of machines"), "{why}");
    }
    let why = written(json!({"status": {"phase": "Failed"}})).await.unwrap();
    assert!(why.contains("of the status of machines nothing"), "{why}");
    let mark = json!({"cluster.x-k8s.io/skip-remediation": "tread"});
    assert_eq!(written(json!({"metadata": {"annotations": mark}})).await, None);
    let mark = json!({"cluster.x-k8s.io/skip-remediation": null});
    assert_eq!(written(json!({"metadata": {"annotations": mark}})).await, None);
}

/// By which rules of its own the API server let this wait.
async fn flow(client: &Client, request: http::Request<Vec<u8>>) -> String {
    let answer = client.send(request.map(kube::client::Body::from)).await.unwrap();
    let header = answer.headers().get("X-Kubernetes-PF-PriorityLevel-UID");
    header.unwrap().to_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_services_leases_do_not_wait_behind_what_its_agents_say() {
    let plane = installed();
    let service = plane.service_account(SERVICE, "tread").unwrap().client().await.unwrap();
    let agent = with_token(&plane, &token(&plane, Some("node-0"))).await;
    let level = |name: &str| {
        let get = ["get", "prioritylevelconfiguration", name, "-o", "jsonpath={.metadata.uid}"];
        plane.kubectl(&get).unwrap().success().unwrap()
    };
    let leases = "/apis/coordination.k8s.io/v1/namespaces/medik8s-leases/leases/node-node-0";
    let (before, common) = (level("leader-election"), level("workload-low"));
    eventually("the rule is in force", async || {
        let request = http::Request::get(leases).body(Vec::new()).unwrap();
        (flow(&service, request).await == before).then_some(())
    })
    .await;
    let patch = http::Request::patch("/apis/tread.dev/v1alpha1/nodeupdates/node-0/status")
        .header("Content-Type", "application/merge-patch+json")
        .body(br#"{"status": {"step": "x"}}"#.to_vec())
        .unwrap();
    assert_eq!(flow(&agent, patch).await, common);
}
