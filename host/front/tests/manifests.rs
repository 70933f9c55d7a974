//! What is installed: what is committed is what the code makes, and a real API
//! server takes it.

#![allow(unreachable_pub, reason = "modules of one test")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a helper of a test fails the test"
)]

use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;
use tread_front::manifests::{Ignition, Mode, OfHost, Options, all};
use tread_kube::node_lease;
use tread_node::agent::confinement;
use tread_test_bed::{ControlPlane, golden};

pub fn options() -> Options {
    Options {
        mode: Mode::Advise,
        namespace: "tread-system".to_owned(),
        image: "registry.example.com/tread:1".to_owned(),
        with_inputs: false,
        without_definitions: false,
        with_monitoring: false,
        block_upgrades: false,
        delete_pods: false,
        outside: None,
        ignition: None,
        leases: node_lease::NAMESPACE.to_owned(),
        ready_for: None,
        boot_for: None,
        bootstrap: None,
        joining: Vec::new(),
        host: OfHost::default(),
    }
}

/// Where tread rolls out.
pub fn enforcing() -> Options {
    let host = OfHost {
        mounts: confinement::MOUNTS.map(|mount| (mount.path, mount.kind)).to_vec(),
        user: confinement::USER,
        capabilities: confinement::CAPABILITIES.to_vec(),
    };
    Options { mode: Mode::Enforce, host, ..options() }
}

fn variants() -> [(&'static str, Options); 7] {
    [
        ("advise", options()),
        ("enforce", enforcing()),
        ("monitored", Options { with_monitoring: true, with_inputs: true, ..options() }),
        (
            "ignition",
            Options {
                ignition: Ignition::read("192.0.2.1:30623"),
                bootstrap: Some("site-bootstrap".to_owned()),
                joining: vec!["--bootstrap-secret=site-bootstrap".to_owned()],
                ..enforcing()
            },
        ),
        (
            "other",
            Options {
                leases: "node-leases".to_owned(),
                ready_for: Some(Duration::from_secs(90)),
                boot_for: Some(Duration::from_secs(7200)),
                delete_pods: true,
                ..enforcing()
            },
        ),
        ("blocking", Options { block_upgrades: true, ..options() }),
        ("outside", Options { outside: Some("https://192.0.2.1:8443".to_owned()), ..options() }),
    ]
}

pub fn yaml(objects: &[Value]) -> String {
    objects
        .iter()
        .map(|object| format!("---\n{}", serde_saphyr::to_string(object).unwrap()))
        .collect()
}

pub fn find<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    let mut found = objects.iter().filter(|object| object["kind"] == kind);
    found.next().unwrap_or_else(|| panic!("no {kind}"))
}

#[test]
fn a_change_of_what_is_installed_is_seen_in_review() {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/manifests");
    for (name, options) in variants() {
        let objects = all(&options).unwrap();
        assert_eq!(objects, all(&options).unwrap());
        // Definitions are long, and held by another test.
        let made: Vec<Value> = objects
            .into_iter()
            .map(|object| match object["kind"].as_str() {
                Some("CustomResourceDefinition") => {
                    json!({"kind": object["kind"], "metadata": object["metadata"]})
                }
                _ => object,
            })
            .collect();
        let made = yaml(&made);
        golden(&dir.join(format!("{name}.yaml")), &made).unwrap();
    }
    assert_eq!(std::fs::read_dir(dir).unwrap().count(), variants().len());
}

#[test]
fn everything_can_be_found_by_its_label_and_what_has_a_namespace_is_in_the_given_one() {
    let elsewhere = |options| {
        let namespace = "elsewhere".to_owned();
        all(&Options { namespace, with_monitoring: true, ..options }).unwrap()
    };
    for object in [elsewhere(options()), elsewhere(enforcing())].concat() {
        let kind = object["kind"].as_str().unwrap();
        if kind != "CustomResourceDefinition" {
            assert_eq!(
                object["metadata"]["labels"]["app.kubernetes.io/part-of"], "tread",
                "{kind}"
            );
        }
        let text = object.to_string();
        assert!(!text.contains("tread-system"), "{kind}: {text}");
        assert!(object["status"].is_null(), "{kind}");
    }
}

#[test]
fn a_load_balancer_shows_where_machines_ask_from_and_a_port_of_nodes_is_one_of_all_of_them() {
    for (address, kind, policy) in [
        ("ignition.example.com:22623", "LoadBalancer", json!("Local")),
        ("192.0.2.1:30623", "NodePort", Value::Null),
    ] {
        let ignition = Ignition::read(address);
        let objects = all(&Options { ignition, ..enforcing() }).unwrap();
        let service = objects.iter().find(|it| it["spec"]["type"] == kind).unwrap();
        assert_eq!(service["spec"]["externalTrafficPolicy"], policy, "{address}");
    }
}

#[test]
fn nobody_waits_for_the_webhook_and_nobody_is_blocked_by_it() {
    let objects = all(&options()).unwrap();
    let webhooks = find(&objects, "ValidatingWebhookConfiguration")["webhooks"].clone();
    assert_eq!(webhooks.as_array().unwrap().len(), 2);
    for webhook in webhooks.as_array().unwrap() {
        assert_eq!(webhook["failurePolicy"], "Ignore");
        assert_eq!(webhook["timeoutSeconds"], 2);
        assert_eq!(webhook["sideEffects"], "None");
        assert_eq!(webhook["matchPolicy"], "Equivalent");
        assert!(webhook["clientConfig"]["caBundle"].is_null());
    }
}

#[test]
fn the_pod_has_no_rights_that_it_does_not_need() {
    let objects = all(&options()).unwrap();
    let deployment = find(&objects, "Deployment");
    assert_eq!(deployment["spec"]["replicas"], 2);
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    let container = &pod["containers"][0];
    assert_eq!(
        container["securityContext"],
        json!({
            "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": true,
        })
    );
    // The only place that it may write to is the cache, in a directory of its own.
    let mounts = container["volumeMounts"].as_array().unwrap();
    assert_eq!(mounts.len(), 1);
    let cache =
        container["env"].as_array().unwrap().iter().find(|set| set["name"] == "TREAD_CACHE_DIR");
    let cache = cache.unwrap()["value"].as_str().unwrap();
    assert!(cache.starts_with(&format!("{}/", mounts[0]["mountPath"].as_str().unwrap())));
}

#[test]
fn whoever_plans_from_a_laptop_is_bound_to_a_role_without_a_right_to_write() {
    const ROLE: &str = "tread-read.tread-system";
    let most = Options { block_upgrades: true, delete_pods: true, ..enforcing() };
    for options in [options(), enforcing(), most] {
        let objects = all(&options).unwrap();
        let role = objects.iter().find(|it| it["metadata"]["name"] == ROLE).unwrap();
        assert_eq!(role["kind"], "ClusterRole");
        let looks = ["get", "list", "watch"].map(Value::from);
        let kept_back = ["secrets", "pods", "validatingwebhookconfigurations"].map(Value::from);
        for rule in role["rules"].as_array().unwrap() {
            let verbs = rule["verbs"].as_array().unwrap();
            assert!(!verbs.is_empty() && verbs.iter().all(|it| looks.contains(it)), "{rule}");
            let resources = rule["resources"].as_array().unwrap();
            assert!(!resources.iter().any(|it| kept_back.contains(it)), "{rule}");
        }
        // An admin says to whom.
        assert!(objects.iter().all(|it| it["roleRef"]["name"] != ROLE));
    }
}

#[test]
fn an_agent_gets_of_its_host_what_is_listed_and_no_more() {
    let objects = all(&enforcing()).unwrap();
    let pod = &find(&objects, "DaemonSet")["spec"]["template"]["spec"];
    let of_host: Vec<(&str, &str)> = pod["volumes"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|volume| {
            let path = volume.get("hostPath")?;
            Some((path["path"].as_str()?, path["type"].as_str()?))
        })
        .collect();
    assert_eq!(of_host, confinement::MOUNTS.map(|mount| (mount.path, mount.kind)));
    let container = &pod["containers"][0];
    for mount in container["volumeMounts"].as_array().unwrap() {
        let volumes = pod["volumes"].as_array().unwrap();
        let volume = volumes.iter().find(|volume| volume["name"] == mount["name"]).unwrap();
        match volume.get("hostPath") {
            Some(of_host) => assert_eq!(of_host["path"], mount["mountPath"], "under the same path"),
            None => assert_eq!(mount["readOnly"], true, "{mount}"),
        }
    }
    let security = &container["securityContext"];
    assert_eq!(security["runAsUser"], confinement::USER);
    assert_eq!(security["capabilities"], json!({"drop": ["ALL"]}));
    assert_eq!(security["seLinuxOptions"], json!({"type": "spc_t"}));
    for is_not_asked in ["hostPID", "hostIPC", "shareProcessNamespace"] {
        assert!(pod[is_not_asked].is_null(), "{is_not_asked}");
    }
    assert!(security["privileged"].is_null() && pod["automountServiceAccountToken"] == false);
}

#[test]
fn agents_come_to_each_node_whatever_openshift_selects_by_default() {
    let objects = all(&enforcing()).unwrap();
    let daemon_set = find(&objects, "DaemonSet");
    let is_its = |it: &&Value| it["metadata"]["name"] == daemon_set["metadata"]["namespace"];
    let namespace = objects.iter().find(is_its).unwrap();
    assert_eq!(namespace["kind"], "Namespace");
    assert_eq!(namespace["metadata"]["annotations"]["openshift.io/node-selector"], "");
    let selector = &daemon_set["spec"]["template"]["spec"]["nodeSelector"];
    assert_eq!(*selector, json!({"kubernetes.io/os": "linux"}));
}

#[test]
fn in_advise_nothing_of_what_rolls_out_is_installed() {
    let kinds = ["DaemonSet", "FlowSchema", "ValidatingAdmissionPolicy"];
    let advise = all(&options()).unwrap();
    assert!(!advise.iter().any(|object| kinds.iter().any(|kind| object["kind"] == *kind)));
    let text = json!(advise).to_string();
    for word in ["nodeupdates", "rollouts", "pods/eviction", "tread-agent", "8444"] {
        assert!(!text.contains(word), "{word}");
    }
    // What leaves the definitions out leaves these out, too.
    let without = all(&Options { without_definitions: true, ..enforcing() }).unwrap();
    assert!(without.iter().all(|object| object["kind"] != "CustomResourceDefinition"));
}

#[test]
fn openshifts_prometheus_may_look_for_what_it_scrapes_where_tread_is_and_nowhere_else() {
    let mut objects = all(&Options { with_monitoring: true, ..options() }).unwrap();
    objects
        .retain(|it| ["Namespace", "Role", "RoleBinding"].map(Value::from).contains(&it["kind"]));
    let plane = ControlPlane::options().with_objects(&yaml(&objects)).maybe_used().start().unwrap();
    let whom = "--as=system:serviceaccount:openshift-monitoring:prometheus-k8s";
    let may = |verb: &str, what: &str, namespace: &str| {
        let asked = plane.kubectl(&["auth", "can-i", verb, what, "-n", namespace, whom]).unwrap();
        asked.stdout.trim() == "yes"
    };
    for what in ["services", "endpoints", "pods", "endpointslices.discovery.k8s.io"] {
        for verb in ["get", "list", "watch"] {
            assert!(may(verb, what, "tread-system"), "{verb} {what}");
            assert!(!may(verb, what, "default"), "{verb} {what}");
        }
        assert!(!may("delete", what, "tread-system"), "{what}");
    }
    assert!(!may("get", "secrets", "tread-system"));
    // What it scrapes is where it looks for it.
    let objects = all(&Options { with_monitoring: true, ..options() }).unwrap();
    let labels = &find(&objects, "Namespace")["metadata"]["labels"];
    assert_eq!(labels["openshift.io/cluster-monitoring"], "true");
    assert_eq!(find(&objects, "ServiceMonitor")["metadata"]["namespace"], "tread-system");
}

#[tokio::test]
async fn a_real_api_server_takes_all_of_it_and_warns_of_nothing() {
    for options in [options(), enforcing()] {
        taken(&all(&Options { with_inputs: true, ..options }).unwrap()).await;
    }
}

async fn taken(objects: &[Value]) {
    let plane = ControlPlane::start().unwrap();
    let applied = plane.admin().kubectl_with_input(&["apply", "-f", "-"], &yaml(objects)).unwrap();
    assert_eq!((applied.code, applied.stderr.as_str()), (0, ""));
    // Once more changes nothing: what is sent is what is kept.
    let again = plane.admin().kubectl_with_input(&["apply", "-f", "-"], &yaml(objects)).unwrap();
    assert_eq!((again.code, again.stderr.as_str()), (0, ""));
    // The selector of a disruption budget is one that kubectl always sends.
    let same = |line: &str| line.ends_with("unchanged") || line.starts_with("poddisruptionbudget.");
    assert!(again.stdout.lines().all(same), "{}", again.stdout);
    // As JSON it is the same.
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
    let json = plane.admin().kubectl_with_input(&["apply", "-f", "-"], &list).unwrap();
    assert!(json.stdout.lines().all(same), "{}", json.stdout);
    if objects.iter().any(|object| object["kind"] == "DaemonSet") {
        let template = &find(objects, "DaemonSet")["spec"]["template"];
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "one", "namespace": "tread-system-agents"},
            "spec": template["spec"],
        });
        let args = ["create", "--dry-run=server", "-f", "-"];
        let made = plane.admin().kubectl_with_input(&args, &pod.to_string()).unwrap();
        assert_eq!((made.code, made.stderr.as_str()), (0, ""));
    }
    // The namespace takes only pods that are restricted; this is one.
    let template = &find(objects, "Deployment")["spec"]["template"];
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "one", "namespace": "tread-system", "labels": template["metadata"]["labels"]},
        "spec": template["spec"],
    });
    let args = ["create", "--dry-run=server", "-f", "-"];
    let made = plane.admin().kubectl_with_input(&args, &pod.to_string()).unwrap();
    assert_eq!((made.code, made.stderr.as_str()), (0, ""));
    let mut loose = pod;
    loose["spec"]["securityContext"] = Value::Null;
    let refused = plane.admin().kubectl_with_input(&args, &loose.to_string()).unwrap();
    assert!(
        refused.stderr.contains("restricted"),
        "the namespace takes anything: {}",
        refused.stderr
    );
    // All of it goes as it came.
    let gone = plane
        .admin()
        .kubectl_with_input(
            &["delete", "--wait=false", "--ignore-not-found", "-f", "-"],
            &yaml(objects),
        )
        .unwrap();
    assert_eq!(gone.code, 0, "{}", gone.stderr);
    let kinds = "clusterrole,clusterrolebinding,crd,flowschema,validatingadmissionpolicy,\
         validatingadmissionpolicybinding";
    let there = plane.kubectl(&["get", kinds, "-o", "json"]).unwrap().success().unwrap();
    let there: Value = serde_json::from_str(&there).unwrap();
    for object in there["items"].as_array().unwrap() {
        let metadata = &object["metadata"];
        let name = metadata["name"].as_str().unwrap();
        if name.contains("tread") || name.contains("machineconfig") {
            // How fast the API server removes what a definition defines is its own matter.
            assert!(metadata["deletionTimestamp"].is_string(), "{object}");
            let waits = json!(["customresourcecleanup.apiextensions.k8s.io"]);
            assert_eq!(metadata["finalizers"], waits, "{name}");
        }
    }
}
