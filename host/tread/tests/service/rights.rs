//! What tread may do where it rolls out: enough for a node to go from one config to the next,
//! and nothing that nobody needs.

use crate::replica::NAMESPACE;
use crate::story::used;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tread_enforce::drain::Asked;
use tread_enforce::{
    Aim, Clock, Ended, Machine, Maintained, Room, Settings, Still, Target, Turn, forget, step,
};
use tread_front::manifests::grants::{Scope, deleting, enforcing};
use tread_front::manifests::{Mode, OfHost, Options, all};
use tread_kube::api::NodeUpdate;
use tread_kube::api::machines;
use tread_kube::api::node_update::UpdateStage;
use tread_kube::metrics::Metrics;
use tread_kube::node_lease;
use tread_model::digest::Digest;
use tread_model::protocol::{Disrupts, Limits, Terms};
use tread_test_bed::{ControlPlane, eventually};

/// Rights, roles and policies, without what would run.
fn grant(plane: &ControlPlane) {
    let options = Options {
        mode: Mode::Enforce,
        namespace: NAMESPACE.to_owned(),
        image: "tread".to_owned(),
        with_inputs: true,
        without_definitions: false,
        with_monitoring: false,
        block_upgrades: false,
        delete_pods: true,
        outside: None,
        ignition: None,
        leases: node_lease::NAMESPACE.to_owned(),
        ready_for: None,
        boot_for: None,
        bootstrap: None,
        joining: Vec::new(),
        host: OfHost::default(),
    };
    let runs = ["Deployment", "DaemonSet", "ValidatingWebhookConfiguration"];
    let mut objects = all(&options).unwrap();
    objects.retain(|object| !runs.iter().any(|kind| object["kind"] == *kind));
    plane
        .apply(&json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string())
        .unwrap();
    let wait = ["wait", "--for=condition=Established", "--timeout=600s", "crd", "--all"];
    plane.kubectl(&wait).unwrap().success().unwrap();
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

async fn settings(plane: &ControlPlane) -> Settings {
    let service = plane.service_account(NAMESPACE, "tread").unwrap();
    // As tread makes it where nobody did.
    let space = ["create", "namespace", node_lease::NAMESPACE];
    service.kubectl(&space).unwrap().success().unwrap();
    Settings {
        client: tread_kube::client::client(service.client_config().await.unwrap()).unwrap(),
        metrics: Metrics::new(),
        namespace: NAMESPACE.to_owned(),
        leases: node_lease::NAMESPACE.to_owned(),
        holder: node_lease::holder("0000"),
        terms: Terms {
            lease: seconds(120),
            skew: seconds(5),
            drift: seconds(2),
            step: seconds(10),
            boot: seconds(20),
            pass: seconds(15),
        },
        at_slots: Turn::default(),
        clock: Clock::default(),
        ready_for: seconds(1),
    }
}

/// A pod that a budget holds, one of a DaemonSet, and the node's NodeUpdate.
async fn prepare(plane: &ControlPlane, node: &str) {
    let nodes: Api<Node> = Api::all(plane.client().await.unwrap());
    let uid = nodes.get(node).await.unwrap().metadata.uid;
    let owner = json!({"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid});
    let labels = json!({"app": "held"});
    let containers = json!([{"name": "a", "image": "a"}]);
    let template = json!({"metadata": {"labels": {"app": "daemon"}},
        "spec": {"containers": containers, "tolerations": [{"operator": "Exists"}]}});
    for object in [
        json!({"apiVersion": "tread.dev/v1alpha1", "kind": "NodeUpdate",
            "metadata": {"name": node, "ownerReferences": [owner]}, "spec": {"pool": "worker"}}),
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": "held", "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}}}),
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "held", "namespace": "default", "labels": labels},
            "spec": {"nodeName": node, "containers": containers}}),
        json!({"apiVersion": "apps/v1", "kind": "DaemonSet",
            "metadata": {"name": "daemon", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "daemon"}}, "template": template}}),
    ] {
        plane.apply(&object.to_string()).unwrap();
    }
    for pod in ["app=held", "app=daemon"] {
        eventually("its pods run", async || {
            let get = ["get", "pods", "-l", pod, "-o", "jsonpath={.items[*].status.phase}"];
            (plane.kubectl(&get).unwrap().stdout == "Running").then_some(())
        })
        .await;
    }
}

/// The node's Machine, as Cluster API has it.
async fn machine(plane: &ControlPlane, node: &str) -> Machine {
    let definition = machines::definition(&machines::CAPI_MACHINE).unwrap();
    plane.define(&[definition]).unwrap();
    let object = json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Machine",
        "metadata": {"name": "machine", "namespace": "default"},
        "status": {"nodeRef": {"name": node}}});
    eventually("Machines are served", async || plane.apply(&object.to_string()).ok()).await;
    Machine { namespace: "default".to_owned(), name: "machine".to_owned() }
}

/// How the node is drained: after so long its pods are deleted.
fn asked(timeout: Duration) -> Arc<Asked> {
    let grace = Some(seconds(1));
    Arc::new(Asked { timeout: Some(timeout), deletes: true, grace, ..Asked::default() })
}

/// Says as an agent that the order was carried out.
fn is_done(plane: &ControlPlane, node: &str, update: &NodeUpdate) {
    let Some(order) = &update.spec.order else { return };
    let is_said = update.status.as_ref().is_some_and(|status| status.operation.is_some());
    if order.stage != UpdateStage::Go || is_said {
        return;
    }
    let now = k8s_openapi::jiff::Timestamp::now();
    let status = json!({"operation": order.operation, "phase": "Done", "current": order.config,
        "since": k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime(now)});
    let patch = json!({"status": status}).to_string();
    let args = ["patch", "nup", node, "--subresource=status", "--type=merge", "-p", &patch];
    plane.kubectl(&args).unwrap().success().unwrap();
}

/// What is done with a kind, and where.
type Right = (Scope, &'static str, &'static [&'static str]);

/// What the service does of itself, which is seen where machines join it: [`not_done`].
const OF_THE_SERVICE: &[Right] = &[
    // A watch lists first.
    (Scope::Cluster, "poddisruptionbudgets", &["watch"]),
    (Scope::Cluster, "daemonsets", &["list", "watch"]),
    (Scope::Cluster, "customresourcedefinitions", &["list", "watch"]),
    // Rendering and pools.
    (Scope::Cluster, "machineconfigs", &["create"]),
    (Scope::Cluster, "machineconfigpools", &["patch"]),
    (Scope::Cluster, "machineconfigpools/status", &["patch"]),
    // Rollouts, and the NodeUpdates of nodes that come.
    (Scope::Cluster, "nodeupdates", &["create", "list", "watch"]),
    (Scope::Cluster, "rollouts", &["create", "list", "watch"]),
    (Scope::Cluster, "rollouts/status", &["patch", "update"]),
    // What machines that boot are served by.
    (Scope::Own, "secrets", &["list", "watch"]),
    // What agents trust.
    (Scope::Agents, "configmaps", &["create", "patch"]),
];

/// What is seen at neither place, each with the file and the name of a test that needs it.
const ELSEWHERE: &[(Right, &str, &str)] = &[
    (
        (Scope::Cluster, "machines", &["watch"]),
        "host/enforce/tests/rollouts/pools.rs",
        "a_node_that_is_maintained_or_whose_machine_goes_waits_for_that",
    ),
    (
        (Scope::Cluster, "machineconfigs", &["delete"]),
        "host/enforce/tests/rollouts/tidy.rs",
        "the_oldest_rendered_configs_that_nobody_names_go_and_what_a_plan_names_or_a_machine_was_served_stays",
    ),
    (
        (Scope::Cluster, "nodeupdates", &["patch"]),
        "host/enforce/tests/rollouts/moves.rs",
        "a_node_that_an_admin_moves_gets_the_other_pools_config_in_that_pools_turn",
    ),
    // A pool that comes later gets a token, too.
    (
        (Scope::Own, "secrets", &["patch"]),
        "host/tread/tests/service/joining.rs",
        "a_machine_becomes_a_node_of_its_pool_by_what_tread_prints",
    ),
    (
        (Scope::Own, "secrets", &["update"]),
        "host/front/tests/admission.rs",
        "certificates_are_exchanged_while_both_replicas_serve",
    ),
];

/// What is not seen of one node.
fn seen_elsewhere() -> impl Iterator<Item = Right> {
    OF_THE_SERVICE.iter().copied().chain(ELSEWHERE.iter().map(|(right, ..)| *right))
}

/// What the service is said to do of itself, and has not done here yet.
pub fn not_done(plane: &ControlPlane) -> Vec<(Scope, String, String)> {
    let used = used(plane);
    let each = |&(scope, resource, verbs): &Right| {
        verbs.iter().map(move |verb| (scope, resource.to_owned(), (*verb).to_owned()))
    };
    OF_THE_SERVICE.iter().flat_map(each).filter(|it| !used.contains(it)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rights_of_the_mode_enforce_are_enough_for_a_node_and_each_is_for_something() {
    let options = ControlPlane::options().with_scheduler().with_simulated_nodes();
    let plane = options.with_audit_log().start().unwrap();
    grant(&plane);
    let node = plane.create_nodes("node", 1).await.unwrap().remove(0);
    prepare(&plane, &node).await;
    let settings = settings(&plane).await;
    let machine = machine(&plane, &node).await;
    let digest = Digest([2; 32]);
    let mut aim = Aim {
        turns_back: false,
        is_lost: false,
        still: Still::default(),
        pool: "worker".to_owned(),
        target: Target { name: "rendered-worker-2".to_owned(), digest, plan: None },
        turn: Some(Disrupts::Drain),
        maintained: Maintained::default(),
        // It is drained although no other one takes its pods: the rights for that are needed.
        is_alone: false,
        joining: Vec::new(),
        retries: None,
        drain: asked(seconds(3600)),
        machine: Some(machine),
    };
    let limits = Limits { pool: 1, all: 1, soft: 1, one_by_one: false };
    let room = Room { limits, unavailable: Arc::default() };
    let updates: Api<NodeUpdate> = Api::all(plane.client().await.unwrap());
    let mut was_held = false;
    eventually("the node has its config", async || {
        let ended = step(&settings, &node, &aim, &room).await.unwrap();
        if let Ended::Drains(blocked, _) = &ended
            && !blocked.is_empty()
        {
            was_held = true;
            // From now on whatever its budget says.
            aim.drain = asked(seconds(0));
        }
        let update = updates.get(&node).await.unwrap();
        is_done(&plane, &node, &update);
        let lease = format!("node-{node}");
        let lease = ["-n", node_lease::NAMESPACE, "get", "lease", &lease];
        let is_held = plane.kubectl(&lease).unwrap().code == 0;
        let order = update.spec.order.filter(|_| !is_held)?;
        (order.stage == UpdateStage::Closed).then_some(())
    })
    .await;
    assert!(was_held, "a budget held a pod");
    let annotations =
        ["get", "machines.cluster.x-k8s.io", "machine", "-o", "jsonpath={.metadata.annotations}"];
    let annotations = plane.kubectl(&annotations).unwrap().stdout;
    assert!(annotations.contains("cluster.x-k8s.io/skip-remediation"), "{annotations}");
    assert!(!forget(&settings, &node).await.unwrap(), "its slot is given back");

    let audit = std::fs::read_to_string(plane.audit_log()).unwrap();
    let who = format!("serviceaccount:{NAMESPACE}:tread");
    let refused: Vec<&str> =
        audit.lines().filter(|line| line.contains(&who) && line.contains("\"code\":403")).collect();
    assert!(refused.is_empty(), "{refused:#?}");
    let used = used(&plane);
    let (mut idle, mut seen) = (BTreeSet::new(), BTreeSet::new());
    for grant in [enforcing(), deleting()].concat() {
        for verb in grant.verbs {
            let one = (grant.scope, grant.resource.to_owned(), (*verb).to_owned());
            let is_used = used.contains(&one);
            let is_elsewhere = seen_elsewhere().any(|(scope, resource, verbs)| {
                (scope, resource) == (grant.scope, grant.resource) && verbs.contains(verb)
            });
            match (is_used, is_elsewhere) {
                (false, false) => idle.insert(one),
                (true, true) => seen.insert(one),
                _ => false,
            };
        }
    }
    assert!(idle.is_empty(), "granted and not needed: {idle:#?}");
    assert!(seen.is_empty(), "needed here, and said to be needed elsewhere: {seen:#?}");
}

#[test]
fn what_is_needed_elsewhere_is_granted_and_has_a_test_that_needs_it() {
    for (scope, resource, verbs) in seen_elsewhere() {
        for verb in verbs {
            let is_granted = enforcing().iter().any(|grant| {
                (grant.scope, grant.resource) == (scope, resource) && grant.verbs.contains(verb)
            });
            assert!(is_granted, "{verb} {resource} {scope:?}");
        }
    }
    for (_, file, test) in ELSEWHERE {
        let text = std::fs::read_to_string(crate::support::tree().join(file)).unwrap();
        assert!(text.contains(&format!("fn {test}(")), "{test} in {file}");
    }
}
