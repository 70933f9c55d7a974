//! Whoever lets changes come to nodes that somebody has, and whoever takes a node that is to change,
//! is warned, and nobody is blocked.

use crate::replica::{NAMESPACE, Replica, free, installed};
use crate::story::{cluster, config, plan, tread, tried, warned, written};
use crate::support::Bench;
use serde_json::{Value, json};
use tread_front::names::PATH;
use tread_kube::agents::FORM;
use tread_kube::node_lease;
use tread_test_bed::{ControlPlane, eventually};

/// What this prints as a dry run, once it is what it has to be.
async fn dry_run_says(plane: &ControlPlane, args: &[&str], expected: &str) -> String {
    let args = [args, &["--dry-run=server"]].concat();
    eventually(expected, async || {
        let ran = plane.kubectl(&args).unwrap();
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stderr.contains(expected).then_some(ran.stderr)
    })
    .await
}

fn lease(name: &str, holder: &str) -> String {
    let now = k8s_openapi::jiff::Timestamp::now();
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": name, "namespace": node_lease::NAMESPACE},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 3600,
            "acquireTime": format!("{now:.6}"), "renewTime": format!("{now:.6}")}});
    lease.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_warns_of_nodes_that_somebody_has_and_whoever_takes_one_of_what_is_due() {
    let plane = installed();
    let _replica = cluster(&plane).await;
    plane.kubectl(&["create", "namespace", node_lease::NAMESPACE]).unwrap().success().unwrap();
    plane.apply(&lease("node-node-0", "node-maintenance")).unwrap();
    plane.kubectl(&["cordon", "node-1"]).unwrap().success().unwrap();

    // A change says who has the nodes that it comes to, and the plan of a laptop does.
    let change = config("50-a", "a", "1");
    let said = warned(&plane, &change, "2 nodes of pool worker are flagged for maintenance").await;
    let lease_of = "node-0 (Lease medik8s-leases/node-node-0 held by node-maintenance since ";
    assert!(said.contains("pool worker, 3 nodes: drain + reboot"), "{said}");
    assert!(said.contains(lease_of), "{said}");
    let file = written("flagged.yaml", &change);
    let (code, out, err) = tread(&plane, &["plan", "-f", file.to_str().unwrap()]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    for line in [
        "flagged for maintenance: node-0: Lease medik8s-leases/node-node-0 held by \
         node-maintenance since ",
        "flagged for maintenance: node-1: somebody cordoned it\n",
    ] {
        assert!(out.contains(line), "{line}: {out}");
    }

    // So does an update of the cluster, and a pool that goes on after a pause.
    plane.apply(&change).unwrap();
    let made = plan(&plane, "MachineConfig/50-a created").await;
    eventually("the plan names them", async || {
        let flagged = ["get", "dplan", "-o", "jsonpath={.items[*].status.flagged[*].node}"];
        (plane.kubectl(&flagged).unwrap().stdout == "node-0 node-1").then_some(())
    })
    .await;
    let (_, out, _) = tread(&plane, &["plans", made.metadata.name.as_deref().unwrap()]);
    assert!(out.contains("flagged for maintenance: node-1: somebody cordoned it"), "{out}");
    let version = json!({"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion",
        "metadata": {"name": "version"}, "spec": {"desiredUpdate": {"version": "4.20.1"}}});
    plane.apply(&version.to_string()).unwrap();
    let update = json!({"spec": {"desiredUpdate": {"version": "4.20.2"}}}).to_string();
    let update = ["patch", "clusterversion", "version", "--type=merge", "-p", &update];
    dry_run_says(&plane, &update, "2 nodes of pool worker are flagged for maintenance").await;
    let pauses = |paused: bool| json!({"spec": {"paused": paused}}).to_string();
    let (stop, go) = (pauses(true), pauses(false));
    let pool = ["patch", "mcp", "worker", "--type=merge", "-p"];
    plane.kubectl(&[&pool[..], &[&stop]].concat()).unwrap().success().unwrap();
    let goes_on = [&pool[..], &[&go]].concat();
    dry_run_says(&plane, &goes_on, "2 nodes of pool worker are flagged for maintenance").await;
    plane.kubectl(&goes_on).unwrap().success().unwrap();

    // Whoever takes a node is told what is due.
    let due = "tread: node node-2 is due in the rollout of pool worker (MachineConfig/50-a created: \
        drain + reboot)";
    dry_run_says(&plane, &["cordon", "node-2"], due).await;
    warned(&plane, &lease("node-node-2", "somebody"), due).await;
    let maintenance = json!({"apiVersion": "nodemaintenance.medik8s.io/v1beta1",
        "kind": "NodeMaintenance", "metadata": {"name": "disk"}, "spec": {"nodeName": "node-2"}});
    warned(&plane, &maintenance.to_string(), due).await;

    // Nor is anybody told who renews, takes what tread has, or takes a node of no pool.
    let none = async |what: &str| {
        let ran = tried(&plane, what);
        assert!(ran.code == 0 && !ran.stderr.contains("is due"), "{}", ran.stderr);
    };
    none(&lease("node-node-0", "node-maintenance")).await;
    none(&lease("node-node-2", "tread/1")).await;
    none(&lease("node-elsewhere", "somebody")).await;
}

/// Where tread rolls out: as it is installed, but that the API server asks this process.
fn rolling_out(plane: &ControlPlane) -> Replica<'_> {
    let args = ["manifests", "--mode=enforce", "--with-inputs", "--image=tread", "-o", "json"];
    let mut list = Bench::new().tread(&args).json();
    let objects = list["items"].as_array_mut().unwrap();
    let is_webhook = |it: &Value| it["kind"] == "ValidatingWebhookConfiguration";
    let mut webhooks = objects.iter().find(|it| is_webhook(it)).unwrap().clone();
    objects.retain(|it| !is_webhook(it) && it["kind"] != "Deployment");
    plane.apply(&list.to_string()).unwrap();
    let wait = ["wait", "--for=condition=Established", "--timeout=600s", "crd", "--all"];
    plane.kubectl(&wait).unwrap().success().unwrap();
    let agents = free().to_string();
    let args = ["--mode=enforce", "--listen-agents", &agents];
    let replica = Replica::start_so(plane, NAMESPACE, &[], &args);
    for webhook in webhooks["webhooks"].as_array_mut().unwrap() {
        webhook["clientConfig"] = json!({"url": format!("https://{}{PATH}", replica.tls)});
    }
    plane.apply(&webhooks.to_string()).unwrap();
    replica
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_that_goes_on_warns_of_nodes_that_somebody_has_and_none_is_due_while_it_is_paused()
 {
    let plane = ControlPlane::start().unwrap();
    let _replica = rolling_out(&plane);
    let does = |args: &[&str]| plane.kubectl(args).unwrap().success().unwrap();
    let label = "node-role.kubernetes.io/worker";
    for node in ["node-0", "node-1"] {
        let node = json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": node, "labels": {label: ""}}});
        plane.apply(&node.to_string()).unwrap();
    }
    let role = json!({"machineconfiguration.openshift.io/role": "worker"});
    let pool = json!({"apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfigPool", "metadata": {"name": "worker"},
        "spec": {"machineConfigSelector": {"matchLabels": role},
            "nodeSelector": {"matchLabels": {label: ""}}}});
    plane.apply(&pool.to_string()).unwrap();
    plane.apply(&config("00-worker", "motd", "hello")).unwrap();
    let target = eventually("the pool has a config", async || {
        let get = ["get", "rollout", "worker", "-o", "jsonpath={.status.target}"];
        serde_json::from_str::<Value>(&plane.kubectl(&get).unwrap().stdout).ok()
    })
    .await;
    // What its agent says; nothing is begun on a node that is cordoned, or that an admin pauses.
    does(&["cordon", "node-0"]);
    does(&["annotate", "node", "node-1", "tread.dev/paused=true"]);
    for node in ["node-0", "node-1"] {
        let says = json!({"status": {"current": target, "form": FORM}}).to_string();
        let says = ["patch", "nup", node, "--subresource=status", "--type=merge", "-p", &says];
        eventually("its NodeUpdate is there", async || {
            (plane.kubectl(&says).unwrap().code == 0).then_some(())
        })
        .await;
    }
    let pauses = |paused: bool| json!({"spec": {"paused": paused}}).to_string();
    let (stop, go) = (pauses(true), pauses(false));
    let rollout = ["patch", "rollout", "worker", "--type=merge", "-p"];
    does(&[&rollout[..], &[&stop]].concat());
    plane.apply(&config("50-a", "a", "1")).unwrap();
    let goes_on = [&rollout[..], &[&go]].concat();
    let flagged = "tread: 1 node of pool worker is flagged for maintenance: node-0";
    dry_run_says(&plane, &goes_on, flagged).await;
    let cordons = ["cordon", "node-1"];
    eventually("nothing is due while it is paused", async || {
        let ran = plane.kubectl(&[&cordons[..], &["--dry-run=server"]].concat()).unwrap();
        (ran.code == 0 && !ran.stderr.contains("is due")).then_some(())
    })
    .await;
    does(&goes_on);
    dry_run_says(&plane, &cordons, "tread: node node-1 is due in the rollout of pool worker").await;
}
