//! The whole way, as an admin sees it: a policy in a ConfigMap, a change, its
//! warning, its plan, and what a laptop says of it; with the rights of
//! `tread manifests`, each of which is used.

use crate::openshift::asked;
use crate::replica::{self, NAMESPACE, Replica, free, install, installed};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use tread_front::manifests::agents_namespace;
use tread_front::manifests::grants::{self, Scope};
use tread_kube::api::{DisruptionPlan, DisruptionPolicy, MachineConfig, crds};
use tread_test_bed::{ControlPlane, Ran, eventually};

const CONFIG: &str = "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\n\
    metadata:\n  name: NAME\n  labels: {machineconfiguration.openshift.io/role: worker}\n\
    spec:\n  config:\n    ignition: {version: 3.4.0}\n    storage:\n      files:\n      \
    - {path: /etc/PATH, mode: 0644, contents: {source: 'data:,TEXT'}}\n";

pub fn config(name: &str, path: &str, text: &str) -> String {
    CONFIG.replace("NAME", name).replace("PATH", path).replace("TEXT", text)
}

/// A cluster where tread is [`installed`] gets a pool of three nodes, and tread beside it.
pub async fn cluster(plane: &ControlPlane) -> Replica<'_> {
    cluster_with(plane, &[]).await
}

/// The same with these variables set for tread.
pub async fn cluster_with<'a>(plane: &'a ControlPlane, variables: &[(&str, &str)]) -> Replica<'a> {
    pool(plane);
    let replica = Replica::start_with(plane, variables);
    replica.ready().await;
    asked(&replica).await;
    replica
}

/// The same in a cluster that knows nothing of tread.
pub async fn cluster_of_nothing(plane: &ControlPlane) -> Replica<'_> {
    install(plane, &free());
    let wait = ["wait", "--for=condition=Established", "--timeout=600s", "crd", "--all"];
    plane.kubectl(&wait).unwrap().success().unwrap();
    pool(plane);
    let replica = Replica::start(plane);
    replica.ready().await;
    // What is not there at first is found when it comes.
    plane.define(&crds::openshift()).unwrap();
    asked(&replica).await;
    replica
}

/// The pool `worker`, of three nodes.
fn pool(plane: &ControlPlane) {
    let label = "node-role.kubernetes.io/worker";
    let node = |number: i32| {
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {
            "name": format!("node-{number}"), "labels": {label: ""}}})
    };
    let pool = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool",
        "metadata": {"name": "worker"},
        "spec": {
            "machineConfigSelector":
                {"matchLabels": {"machineconfiguration.openshift.io/role": "worker"}},
            "nodeSelector": {"matchLabels": {label: ""}},
        },
    });
    replica::apply(plane, &[node(0), node(1), node(2), pool]);
    plane.apply(&config("00-worker", "motd", "hello")).unwrap();
}

/// What somebody is told who applies this for a try, once it is what it has to
/// be: on a busy machine the API server may give the webhook up.
pub async fn warned(plane: &ControlPlane, change: &str, expected: &str) -> String {
    eventually(expected, async || {
        let said = tried(plane, change).stderr;
        said.contains(expected).then_some(said)
    })
    .await
}

/// What somebody is told who applies this for a try. The API server takes it or not: kubectl would
/// take five times as long to find out by itself.
pub fn tried(plane: &ControlPlane, change: &str) -> Ran {
    let apply = ["apply", "--server-side", "--force-conflicts", "--validate=false"];
    let apply = [&apply[..], &["--dry-run=server", "-f", "-"]].concat();
    plane.admin().kubectl_with_input(&apply, change).unwrap()
}

/// What `tread` says with the kubeconfig of the admin, but for what it waits for meanwhile, which it
/// tells on a busy machine.
pub fn tread(plane: &ControlPlane, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tread"));
    plane.prepare(&mut command);
    let output = command.args(args).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let err = without_waiting(&text(&output.stderr));
    (output.status.code().unwrap(), text(&output.stdout), err)
}

/// These lines without those that say for what `tread plan -f` waits.
fn without_waiting(said: &str) -> String {
    let mut waits = false;
    let others = said.split_inclusive('\n').filter(|line| {
        let begins = *line == "warning: waiting for the cluster:\n";
        waits = begins || waits && line.starts_with("  ");
        !waits
    });
    others.collect()
}

pub fn written(name: &str, text: &str) -> PathBuf {
    let dir =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("story-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

pub async fn plans(plane: &ControlPlane) -> Vec<DisruptionPlan> {
    let api: Api<DisruptionPlan> = Api::all(plane.client().await.unwrap());
    api.list(&Default::default()).await.unwrap().items
}

/// Waits for the plan with this cause.
pub async fn plan(plane: &ControlPlane, cause: &str) -> DisruptionPlan {
    eventually(cause, async || {
        plans(plane).await.into_iter().find(|plan| {
            plan.spec.cause.to_string() == cause
                && plan.status.as_ref().is_some_and(|it| it.effect.is_some())
        })
    })
    .await
}

/// Waits until a policy is in a state.
pub async fn policy(plane: &ControlPlane, name: &str, state: &str) {
    let api: Api<DisruptionPolicy> = Api::all(plane.client().await.unwrap());
    eventually(&format!("{name} {state}"), async || {
        let found = api.get_opt(name).await.unwrap()?.status?.state?;
        (format!("{found:?}") == state).then_some(())
    })
    .await;
}

/// A policy in a ConfigMap, apps/ours.
pub async fn ship(plane: &ControlPlane) {
    allow(plane);
    put(plane, "ours").await;
    policy(plane, "apps.ours", "Loaded").await;
}

/// The namespace apps, whose ConfigMaps may be policies.
pub fn allow(plane: &ControlPlane) {
    plane.kubectl(&["create", "namespace", "apps"]).unwrap().success().unwrap();
    let allow = ["label", "namespace", "apps", "tread.dev/policies=allowed"];
    plane.kubectl(&allow).unwrap().success().unwrap();
}

/// A component that was built for the first contract.
pub fn component(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/contract/1.0.0");
    std::fs::read(folder.join(name)).unwrap()
}

/// Another one that does the same: a custom section more says nothing.
pub fn another(component: &[u8]) -> Vec<u8> {
    [component, &[0, 2, 1, b'x']].concat()
}

/// A ConfigMap in the namespace apps, of this name, with these bytes as its policy.
pub fn map(name: &str, bytes: Vec<u8>) -> ConfigMap {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": name, "namespace": "apps", "labels": {"tread.dev/policy": "true"}}});
    let map: ConfigMap = serde_json::from_value(map).unwrap();
    let bytes = [("policy.wasm".to_owned(), ByteString(bytes))];
    ConfigMap { binary_data: Some(bytes.into()), ..map }
}

/// A policy in a ConfigMap there, of this name.
pub async fn put(plane: &ControlPlane, name: &str) {
    let maps: Api<ConfigMap> = Api::namespaced(plane.client().await.unwrap(), "apps");
    let map = map(name, component("acts.wasm"));
    maps.create(&PostParams::default(), &map).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_laptop_and_the_cluster_plan_alike() {
    let plane = installed();
    let replica = cluster(&plane).await;
    let change = config("50-a", "a", "1");
    let file = written("change.yaml", &change);
    let file = file.to_str().unwrap();

    // Nothing happens yet, and everybody knows what would.
    let said =
        warned(&plane, &change, "Warning: tread: pool worker, 3 nodes: drain + reboot").await;
    assert!(said.contains("file:/etc/a (no policy answers)"), "{said}");
    let (code, out, err) = tread(&plane, &["plan", "-f", file, "-o", "json"]);
    assert_eq!(code, 0, "{err}");
    let laptop: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(laptop["plans"][0]["pool"], "worker");
    let digest = laptop["plans"][0]["status"]["transitions"][0]["digest"].as_str().unwrap();
    assert_eq!(plans(&plane).await.len(), 0);

    // A pipeline may ask, too, and is told of a pool that is none.
    let (code, _, err) = tread(&plane, &["plan", "-f", file, "--max", "restart"]);
    assert_eq!(code, 3);
    let why = "pool worker: this is a reboot, because of file:/etc/a. If less is enough";
    assert!(err.contains(why) && err.contains("in a DisruptionPolicy"), "{err}");
    let (code, _, err) = tread(&plane, &["plan", "-f", file, "--pool", "infra"]);
    assert_eq!((code, err.contains("there are worker")), (2, true), "{err}");
    // What is mistyped is no "nothing happens".
    let (code, out, err) = tread(&plane, &["plan", "-f", file, "--delete"]);
    assert_eq!((code, out.as_str()), (1, ""), "{err}");
    assert!(err.contains("there is no MachineConfig 50-a in the cluster"), "{err}");
    let (code, out, err) = tread(&plane, &["plans", "--pool", "worrker"]);
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
    assert!(err.contains("--pool worrker: there are worker"), "{err}");
    let nothing = "Nothing is about to happen to any node.\n";
    let (code, out, err) = tread(&plane, &["plans", "--pool", "worker"]);
    assert_eq!((code, out.as_str(), err.as_str()), (0, nothing, ""));

    // A typing error in the role is no "nothing happens"; nor is what cannot be read.
    let nobodys = change.replace("role: worker", "role: workr");
    let said = "no MachineConfigPool selects 50-a (machineconfiguration.openshift.io/role=workr)";
    warned(&plane, &nobodys, said).await;
    let (code, out, _) = tread(&plane, &["plan", "-f", written("a", &nobodys).to_str().unwrap()]);
    assert!(code == 0 && out.contains(said), "{out}");
    let unread = change.replace("version: 3.4.0", "version: 9.9.0");
    let (code, _, err) = tread(&plane, &["plan", "-f", written("b", &unread).to_str().unwrap()]);
    assert!(code == 1 && err.contains("pool worker go through is not known"), "{err}");

    let ran = plane.admin().kubectl_with_input(&["apply", "-f", "-"], &change).unwrap();
    // On a busy machine the API server may give the webhook up.
    let warns = ran.stderr.contains("drain + reboot");
    assert!(ran.code == 0 && (warns || ran.stderr.is_empty()), "{}", ran.stderr);
    let made = plan(&plane, "MachineConfig/50-a created").await;
    let status = made.status.as_ref().unwrap();
    assert_eq!(status.transitions[0].digest.as_deref(), Some(digest));
    assert_eq!(laptop["plans"][0]["name"], made.name_any());

    // What is listed is what is there.
    let (_, out, _) = tread(&plane, &["plans"]);
    assert!(out.contains(&made.name_any()) && out.contains("drain + reboot"), "{out}");
    assert!(out.contains(" PENDING ") && out.contains(" NotRendered "), "{out}");
    let (_, out, _) = tread(&plane, &["plans", &made.name_any()]);
    assert!(out.contains("file:/etc/a") && out.contains(digest), "{out}");
    let (code, _, err) = tread(&plane, &["plans", "nothing"]);
    assert_eq!((code, err.contains("there is no plan nothing")), (1, true), "{err}");
    let (_, out, _) = tread(&plane, &["policies", "--cluster", "-o", "json"]);
    let policies: Vec<Value> = serde_json::from_str(&out).unwrap();
    assert_eq!(policies.len(), 7);

    // Where tread is gone nobody is blocked, and the laptop says the same.
    plane.stop(&replica.name).unwrap();
    plane.apply(&config("60-b", "b", "1")).unwrap();
    let (code, out, err) = tread(&plane, &["plan", "-f", file]);
    assert_eq!(code, 0, "{out}{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_laptop_says_where_tread_is_not_there_instead_of_waiting_for_it() {
    let plane = ControlPlane::start().unwrap();
    let file = written("nobody.yaml", &config("50-a", "a", "1"));
    let file = file.to_str().unwrap();
    let (code, out, err) = tread(&plane, &["plan", "-f", file]);
    assert_eq!(code, 1, "{out}{err}");
    assert!(err.contains("tread is not installed in this cluster"), "{err}");
    for asked in [&["plans"][..], &["policies", "--cluster"]] {
        let (code, out, err) = tread(&plane, asked);
        assert_eq!((code, out.as_str()), (1, ""), "{err}");
        assert!(err.contains("tread is not installed in the cluster at https://"), "{err}");
        assert!(err.contains("`tread manifests --help` says how to install it"), "{err}");
    }
    // Installed, and nothing runs.
    install(&plane, &free());
    let (code, out, err) = tread(&plane, &["plan", "-f", file]);
    assert_eq!(code, 1, "{out}{err}");
    assert!(err.contains("see whether that runs"), "{err}");
    // Runs, and there is nothing that it could look at.
    let replica = Replica::start(&plane);
    replica.ready().await;
    let (code, out, err) = tread(&plane, &["plan", "-f", file]);
    assert!(code == 1 && err.contains("has no MachineConfigPool"), "{out}{err}");
    // Whoever may not read what tread reads is told so at once, and once.
    let nobody = plane.impersonate("nobody", &[]).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tread"));
    nobody.prepare(&mut command);
    let output = command.args(["plan", "-f", file]).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(
        err.contains("an admin can bind tread's ClusterRole tread-read.NAMESPACE to you"),
        "{err}"
    );
    assert!(err.lines().count() < 40, "{err}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tread"));
    nobody.prepare(&mut command);
    let output = command.args(["plans"]).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(err.contains("tread's ClusterRole tread-view.NAMESPACE to you"), "{err}");
}

/// The lines of the page for operators by which a pipeline ships a version and waits for it.
fn ships_and_waits() -> Vec<String> {
    let page = crate::support::tree().join("examples/install/OPERATE.md");
    let page = std::fs::read_to_string(page).unwrap();
    let lines = page.lines().skip_while(|line| !line.starts_with("    digest=sha256:"));
    let lines = lines.map_while(|line| line.strip_prefix("    ")).map(str::to_owned);
    lines.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipeline_waits_for_a_new_version_by_the_lines_of_the_page_and_is_told_how_it_did() {
    let plane = installed();
    let replica = Replica::start(&plane);
    replica.ready().await;
    allow(&plane);
    let lines = ships_and_waits();
    let waits = lines.iter().filter(|line| line.starts_with("kubectl wait "));
    assert!(waits.count() == 4 && lines.len() == 6, "{lines:#?}");
    // Each says how it ended; a pipeline ends at the first that fails.
    let script: String = lines.iter().map(|line| format!("{line}\necho \"ended $?\"\n")).collect();
    let good = component("acts.wasm");
    for (what, bytes, expected) in [
        ("the very first one", good.clone(), [true, true, true, true]),
        ("a bad one", b"bad".to_vec(), [true, true, false, false]),
        ("one that nobody approved", component("abstains.wasm"), [true, true, true, false]),
        ("a good one", another(&good), [true, true, true, true]),
    ] {
        let wasm = written("chrony.wasm", "");
        std::fs::write(&wasm, &bytes).unwrap();
        let yaml = serde_json::to_string(&map("chrony", bytes)).unwrap();
        let folder = written("chrony.yaml", &yaml);
        let mut shell = Command::new("sh");
        plane.prepare(&mut shell);
        shell.current_dir(folder.parent().unwrap());
        let ran = shell.args(["-c", &script]).output().unwrap();
        let (out, err) =
            (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        let ended: Vec<bool> =
            out.lines().filter_map(|it| it.strip_prefix("ended ")).map(|it| it == "0").collect();
        let expected = [&[true, true][..], &expected].concat();
        assert_eq!(ended, expected, "{what}: {out}{err}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_right_of_the_manifests_is_needed() {
    let plane = ControlPlane::options().with_audit_log().start().unwrap();
    let first = cluster_of_nothing(&plane).await;
    let second = Replica::start(&plane);
    second.ready().await;

    // A policy comes, changes, goes bad, and goes.
    let component = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/contract/1.0.0");
    let component = std::fs::read(component.join("acts.wasm")).unwrap();
    plane.kubectl(&["create", "namespace", "apps"]).unwrap().success().unwrap();
    let allow = ["label", "namespace", "apps", "tread.dev/policies=allowed"];
    plane.kubectl(&allow).unwrap().success().unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(plane.client().await.unwrap(), "apps");
    let with = |bytes: Vec<u8>| Some([("policy.wasm".to_owned(), ByteString(bytes))].into());
    let map: ConfigMap = serde_json::from_value(json!({
        "metadata": {"name": "ours", "labels": {"tread.dev/policy": "true"}}}))
    .unwrap();
    let map = ConfigMap { binary_data: with(component.clone()), ..map };
    maps.create(&PostParams::default(), &map).await.unwrap();
    policy(&plane, "apps.ours", "Loaded").await;
    let params = PatchParams::default();
    let bad = ConfigMap { binary_data: with(b"bad".to_vec()), ..ConfigMap::default() };
    maps.patch("ours", &params, &Patch::Merge(&bad)).await.unwrap();
    policy(&plane, "apps.ours", "LastGood").await;
    // A custom section that says nothing makes it another one.
    let other = [&component[..], &[0, 2, 1, b'x']].concat();
    let good = ConfigMap { binary_data: with(other), ..ConfigMap::default() };
    maps.patch("ours", &params, &Patch::Merge(&good)).await.unwrap();
    policy(&plane, "apps.ours", "Loaded").await;
    maps.delete("ours", &Default::default()).await.unwrap();

    // More changes come and go than plans are kept. kubectl would take most of the time.
    let configs: Api<MachineConfig> = Api::all(plane.client().await.unwrap());
    for number in 0..22 {
        let name = format!("50-{number}");
        let change = json!({
            "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
            "metadata": {"name": name,
                "labels": {"machineconfiguration.openshift.io/role": "worker"}},
            "spec": {"config": {"ignition": {"version": "3.4.0"}, "storage": {"files": [
                {"path": format!("/etc/{name}"), "contents": {"source": "data:,1"}}]}}},
        });
        let change: MachineConfig = serde_json::from_value(change).unwrap();
        configs.create(&PostParams::default(), &change).await.unwrap();
        plan(&plane, &format!("MachineConfig/{name} created")).await;
        configs.delete(&name, &Default::default()).await.unwrap();
    }
    eventually("old plans go", async || (plans(&plane).await.len() <= 20).then_some(())).await;

    // Somebody asks by HTTP.
    let token = ["-n", NAMESPACE, "create", "token", "tread"];
    let token = plane.kubectl(&token).unwrap().success().unwrap();
    let server = format!("--server=https://{}", first.tls);
    let token = format!("--token={}", token.trim());
    let ask = ["get", "--raw", "/v1/plans", &server, "--insecure-skip-tls-verify", &token];
    // By a kubeconfig without certificates of its own.
    let nothing = written("nothing.yaml", "apiVersion: v1\nkind: Config\n");
    let kubeconfig = format!("--kubeconfig={}", nothing.display());
    let ask = [&ask[..], &[&kubeconfig]].concat();
    // On a busy machine the API server may take too long to say who asks.
    eventually("its answer", async || plane.kubectl(&ask).unwrap().success().ok()).await;

    let used = used(&plane);
    // What is needed, and cannot be seen here.
    let elsewhere = [
        // host/front/tests/admission.rs exchanges certificates.
        (Scope::Own, "secrets", "update"),
        // A patch that makes an object needs both, and is logged as a patch.
        (Scope::Own, "configmaps", "create"),
        // An Event that says the same again is counted: host/kube/src/events.rs.
        (Scope::Cluster, "events", "patch"),
        // After an update that was not answered: host/kube/tests/leadership.rs.
        (Scope::Own, "leases", "get"),
        // After somebody deleted it: the same.
        (Scope::Own, "leases", "create"),
        // Kinds that are not installed here: host/tread/tests/service/boot_images.rs.
        (Scope::Cluster, "clusteroperators", "delete"),
        (Scope::Cluster, "clusteroperators", "watch"),
        (Scope::Cluster, "infrastructures", "watch"),
        (Scope::Cluster, "nodemaintenances", "watch"),
        (Scope::Cluster, "provisionings", "watch"),
        (Scope::Cluster, "machines", "list"),
        (Scope::Cluster, "machinesets", "watch"),
        (Scope::Cluster, "controlplanemachinesets", "watch"),
        (Scope::Cluster, "machinedeployments", "watch"),
        (Scope::Cluster, "awsmachinetemplates", "watch"),
        (Scope::Cluster, "azuremachinetemplates", "watch"),
        (Scope::Cluster, "gcpmachinetemplates", "watch"),
        (Scope::Cluster, "metal3machinetemplates", "watch"),
        (Scope::Cluster, "vspheremachinetemplates", "watch"),
    ];
    let mut idle = Vec::new();
    for grant in grants::rules() {
        for verb in grant.verbs {
            let is_used =
                used.contains(&(grant.scope, grant.resource.to_owned(), (*verb).to_owned()));
            if !is_used && !elsewhere.contains(&(grant.scope, grant.resource, verb)) {
                idle.push(format!("{verb} {} {:?}", grant.resource, grant.scope));
            }
        }
    }
    assert!(idle.is_empty(), "granted and not needed: {idle:#?}");
}

/// What tread's service account did, by where it is granted.
pub fn used(plane: &ControlPlane) -> BTreeSet<(Scope, String, String)> {
    let audit = std::fs::read_to_string(plane.audit_log()).unwrap();
    let mut used = BTreeSet::new();
    for line in audit.lines() {
        let Ok(event) = serde_json::from_str::<Value>(line) else { continue };
        if event["user"]["username"] != format!("system:serviceaccount:{NAMESPACE}:tread") {
            continue;
        }
        let text = |field: &str| event["objectRef"][field].as_str().unwrap_or_default().to_owned();
        let mut resource = text("resource");
        let subresource = text("subresource");
        if !subresource.is_empty() {
            resource = format!("{resource}/{subresource}");
        }
        let verb = event["verb"].as_str().unwrap_or_default().to_owned();
        // A write in its own namespace is granted there; a read everywhere may
        // be of that namespace, too.
        let namespace = text("namespace");
        if namespace == NAMESPACE {
            used.insert((Scope::Own, resource.clone(), verb.clone()));
        }
        if namespace == agents_namespace(NAMESPACE) {
            used.insert((Scope::Agents, resource.clone(), verb.clone()));
        }
        used.insert((Scope::Cluster, resource, verb));
    }
    used
}
