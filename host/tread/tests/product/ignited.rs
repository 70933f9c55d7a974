//! A machine that Ignition itself makes one of a pool, by the stub that `tread pools stub` prints:
//! systemd boots it once, and Kubernetes' own kubelet registers it by what Ignition wrote.
//!
//! The kubelet is the program that nodes run, with Kubernetes' fake of a container runtime as the
//! unit that it asks to run pods. It reads its configuration and its kubeconfig where tread served
//! them, and gets its certificate from the controller manager.

use crate::cluster::{Cluster, GROUP, nobody_is_forbidden_anything};
use crate::machines::{KUBELET, KUBERNETES, image, kubeconfig, made, status, text};
use crate::recorded::Version;
use crate::service::{BOOTSTRAP_SECRET, NAMESPACE, Service, TREAD};
use kube::Api;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use tread_kube::api::Rollout;
use tread_model::joining::{BOOTED, BOOTSTRAP, KUBELET as KUBELETS_CONFIG, TAINT};
use tread_test_bed::{ControlPlane, Shared, eventually, free_port};
use tread_test_machine::{Machine, TARGET};

const POOL: &str = "infra";
const LABEL: &str = "node-role.kubernetes.io/infra";
/// By which nodes are workers here: kubelets say it by themselves.
const WORKER: (&str, &str) = ("kubernetes.io/os", "linux");
const NODE: &str = "infra-0";
/// What only nodes of the pool have.
const FILE: (&str, &str) = ("/etc/infra.conf", "infra\n");
/// How many pods a node takes here and nowhere else.
const PODS: &str = "123";
/// Who a machine is to the API server before it has a certificate.
const SITE: &str = "system:bootstrap:site";
const RUNTIME: &str = "container-runtime.service";
const SOCKET: &str = "/run/container-runtime.sock";

static BED: Shared = Shared::new(|| {
    let options = ControlPlane::options().with_scheduler().with_registering_nodes();
    options.with_user(SITE, &["system:bootstrappers"])
});

/// As OpenShift's template has it, but for where its program is.
fn kubelet() -> String {
    format!(
        "[Unit]\n\
         Requires={RUNTIME}\n\
         After={RUNTIME}\n\
         [Service]\n\
         Type=notify\n\
         TimeoutStartSec=infinity\n\
         ExecStart={KUBERNETES} kubelet --config={KUBELETS_CONFIG} \
         --bootstrap-kubeconfig={BOOTSTRAP} --kubeconfig=/var/lib/kubelet/kubeconfig\n\
         Restart=always\n\
         RestartSec=1\n\
         [Install]\n\
         WantedBy={TARGET}\n"
    )
}

/// All machines have the network of the test, and no control groups for pods that nothing runs.
/// That the disk of whoever tests is full is nothing to a node.
fn kubelets_config() -> String {
    format!(
        "apiVersion: kubelet.config.k8s.io/v1beta1\n\
         kind: KubeletConfiguration\n\
         port: {}\n\
         healthzPort: 0\n\
         maxPods: {PODS}\n\
         containerRuntimeEndpoint: unix://{SOCKET}\n\
         authentication: {{webhook: {{enabled: false}}, anonymous: {{enabled: false}}}}\n\
         authorization: {{mode: AlwaysAllow}}\n\
         failSwapOn: false\n\
         cgroupsPerQOS: false\n\
         enforceNodeAllocatable: []\n\
         makeIPTablesUtilChains: false\n\
         evictionHard: {{memory.available: 0%, nodefs.available: 0%, imagefs.available: 0%}}\n",
        free_port()
    )
}

fn config(name: &str, role: &str, files: &[(&str, &str)], units: &Value) -> Value {
    let file = |(path, text): &(&str, &str)| {
        let text = base64_simd::STANDARD.encode_to_string(text);
        json!({"path": path, "mode": 420, "overwrite": true,
            "contents": {"source": format!("data:;base64,{text}")}})
    };
    let files: Vec<Value> = files.iter().map(file).collect();
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": "MachineConfig",
        "metadata": {"name": name, "labels": {format!("{GROUP}/role"): role}},
        "spec": {"config": {"ignition": {"version": "3.4.0"},
            "storage": {"files": files}, "systemd": {"units": units}}}})
}

fn pool(name: &str, roles: &[&str], labels: &Value) -> Value {
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": "MachineConfigPool",
        "metadata": {"name": name}, "spec": {
            "machineConfigSelector": {"matchExpressions": [
                {"key": format!("{GROUP}/role"), "operator": "In", "values": roles}]},
            "nodeSelector": {"matchLabels": labels}}})
}

/// With the pools `worker` and `infra`, which have no node, and what their machines register by.
async fn installed() -> Cluster {
    let plane = BED.get().unwrap();
    let cluster = Cluster::of(plane, Service::with_machines(plane).await).await;
    let site = plane.user(SITE).unwrap().kubeconfig();
    let site: Value = serde_json::from_slice(&std::fs::read(site).unwrap()).unwrap();
    let site = kubeconfig(plane, "/etc/kubernetes/ca.crt", site["users"][0]["user"].clone());
    cluster.apply(&json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": BOOTSTRAP_SECRET, "namespace": NAMESPACE},
        "stringData": {"kubeconfig": site}}));
    let units = json!([{"name": KUBELET, "enabled": true, "contents": kubelet()}]);
    let kubelets = kubelets_config();
    cluster.apply(&config("40-kubelet", "worker", &[(KUBELETS_CONFIG, &kubelets)], &units));
    cluster.apply(&config("50-infra", POOL, &[FILE], &json!([])));
    cluster.apply(&pool("worker", &["worker"], &json!({WORKER.0: WORKER.1})));
    cluster.apply(&pool(POOL, &["worker", POOL], &json!({LABEL: ""})));
    cluster
        .within("the pool says that its machines get a kubeconfig", async || {
            let conditions = rollout(&cluster).await?.status?.conditions;
            conditions.iter().any(|it| it.type_ == "Serves" && it.status == "True").then_some(())
        })
        .await;
    cluster
}

async fn rollout(cluster: &Cluster) -> Option<Rollout> {
    Api::<Rollout>::all(cluster.client.clone()).get_opt(POOL).await.ok()?
}

/// What an admin gives the machines of the pool as their user data.
async fn user_data(plane: &ControlPlane) -> String {
    let secret = eventually("the stub of the pool is printed", async || {
        let mut command = Command::new(TREAD);
        plane.prepare(&mut command);
        let said = command.args(["pools", "stub", POOL]).output().unwrap();
        said.status.success().then_some(said.stdout)
    })
    .await;
    let secret: Value = serde_json::from_slice(&secret).unwrap();
    secret["stringData"]["userData"].as_str().unwrap().to_owned()
}

/// A machine of an image that has what the kubelet needs, before Ignition. What the kubelet sets and
/// reads of the kernel of whoever tests is played: files say that it is set, and there is no log.
fn new_machine(cluster: &Cluster) -> Machine {
    let tunables = [
        ("vm/overcommit_memory", "1"),
        ("vm/panic_on_oom", "0"),
        ("kernel/panic", "10"),
        ("kernel/panic_on_oops", "1"),
        ("kernel/keys/root_maxkeys", "1000000"),
        ("kernel/keys/root_maxbytes", "25000000"),
    ];
    let of_it = |name: &str| format!("/etc/tunables/{name}");
    let mounts: String = tunables
        .iter()
        .map(|(name, _)| format!("ExecStart=mount --bind {} /proc/sys/{name}\n", of_it(name)))
        .collect();
    let runtime = format!(
        "[Service]\nExecStart={KUBERNETES} container-runtime {SOCKET}\n\
         ExecStartPost=/bin/sh -c 'until [ -S {SOCKET} ]; do sleep 0.05; done'\n"
    );
    let sets = format!(
        "[Unit]\nBefore={KUBELET}\n[Service]\nType=oneshot\nRemainAfterExit=yes\n{mounts}\
         ExecStart=ln -s null /dev/kmsg\n\
         [Install]\nWantedBy={TARGET}\n"
    );
    let image = image(cluster.plane, cluster.service.agents)
        .file("/etc/hostname", NODE)
        // What Ignition enables is enabled when a machine boots that never did, and nothing else.
        .file("/etc/machine-id", "uninitialized\n")
        .file("/etc/systemd/system-preset/10-image.preset", "enable kernel.service\n")
        .file("/etc/systemd/system-preset/90-systemd.preset", "disable *\n")
        // Nobody is there to be asked what the machine is to be called.
        .link("/etc/systemd/system/systemd-firstboot.service", "/dev/null")
        .unit(RUNTIME, &runtime)
        .unit("kernel.service", &sets);
    made(tunables.iter().fold(image, |image, (name, is)| image.file(of_it(name), is)))
}

/// Runs the stages of Ignition that fetch and write, as a machine's initramfs does.
fn ignites(machine: &Machine, user_data: &str) {
    let program = std::env::var_os("TREAD_IGNITION").unwrap_or_else(|| {
        panic!(
            "TREAD_IGNITION is not set: `tests/run --only cluster` builds Ignition and says where"
        )
    });
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    std::fs::write(at("user-data"), user_data).unwrap();
    for stage in ["fetch-offline", "fetch", "files"] {
        let words = [
            "timeout".to_owned(),
            "--signal=KILL".to_owned(),
            "600".to_owned(),
            Path::new(&program).display().to_string(),
            "--platform=file".to_owned(),
            "--log-to-stdout".to_owned(),
            format!("--stage={stage}"),
            format!("--root={}", machine.sysroot().display()),
            format!("--config-cache={}", at("cache")),
            format!("--state-file={}", at("state")),
            format!("--neednet={}", at("neednet")),
        ];
        let mut command = machine.before_boot(words).unwrap();
        let said = command.env("IGNITION_CONFIG_FILE", at("user-data")).output().unwrap();
        let log = String::from_utf8_lossy(&said.stdout);
        assert!(said.status.success(), "Ignition's stage {stage}: {}\n{log}", said.status);
        assert!(Path::new(&at("neednet")).exists(), "the stub needs the network\n{log}");
    }
}

/// The claim in the kubelet's configuration on the machine's disk.
fn claim(machine: &Machine) -> String {
    let config = text(machine, KUBELETS_CONFIG);
    let (_, rest) = config.split_once(TAINT).unwrap_or_else(|| panic!("no {TAINT}: {config}"));
    rest.split('"').nth(1).unwrap().to_owned()
}

/// At each version the node is held by the claim, or in the pool and nothing else: at none it is
/// a plain worker. It gets no order, and never had another config than the one that it was served.
/// Whether it has joined.
fn judge(versions: &[Version], claim: &str, served: &Value) -> bool {
    let of_it = |kind: &'static str| {
        let of_it = move |it: &&Version| it.kind == kind && it.name == NODE;
        versions.iter().filter(of_it).map(|it| (it.number, &it.object))
    };
    let mut has_joined = false;
    let mut registered = 0;
    for (number, node) in of_it("Node") {
        let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
        let held: Vec<&Value> = taints.iter().filter(|it| it["key"] == TAINT).collect();
        let labels = &node["metadata"]["labels"];
        assert_eq!(labels[WORKER.0], WORKER.1, "{number}: without the claim it would be a worker");
        let is_in_pool = !labels[LABEL].is_null();
        match has_joined {
            false if !held.is_empty() => {
                assert_eq!(held.len(), 1, "{number}: {taints:?}");
                assert_eq!(
                    (&held[0]["value"], &held[0]["effect"]),
                    (&json!(claim), &json!("NoSchedule"))
                );
                assert!(!is_in_pool, "{number}: held and in the pool: {node}");
                registered += 1;
            }
            _ => {
                assert!(
                    held.is_empty() && is_in_pool,
                    "{number}: neither held nor in {POOL}: {node}"
                );
                has_joined = true;
            }
        }
    }
    for (number, update) in of_it("NodeUpdate") {
        assert!(update["spec"]["order"].is_null(), "{number}: {update}");
        assert_eq!(update["spec"]["pool"], POOL, "{number}");
        let current = &update["status"]["current"];
        assert!(current.is_null() || current == served, "{number}: {current} is not {served}");
    }
    assert!(registered > 0 || !has_joined, "it registers with its claim");
    has_joined
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_ignition_makes_by_the_stub_joins_its_pool_in_its_only_boot() {
    let mut cluster = installed().await;
    let machine = new_machine(&cluster);
    ignites(&machine, &user_data(cluster.plane).await);
    assert_eq!(text(&machine, FILE.0), FILE.1);
    assert!(text(&machine, BOOTSTRAP).contains(cluster.plane.url()));
    let claim = claim(&machine);
    let booted: Value = serde_json::from_str(&text(&machine, BOOTED)).unwrap();
    let served = json!({"name": booted["config"], "digest": booted["digest"]});
    assert_eq!(booted["pool"], POOL);

    machine.start().unwrap();
    cluster.has(NODE, machine);
    let update = cluster
        .within("the node is in its pool with what it was served", async || {
            // What must not be ends the wait.
            judge(&cluster.recorded.since(0), &claim, &served).then_some(())?;
            let status = rollout(&cluster).await?.status?;
            let target = serde_json::to_value(status.target?).unwrap();
            let has = (status.nodes, status.updated, status.under_way);
            (has == (1, 1, 0) && target["name"] == served["name"]).then_some(())?;
            let update = cluster.update(NODE).await.status?;
            update.current.is_some().then_some(update)
        })
        .await;
    assert_eq!(serde_json::to_value(update.current).unwrap(), served);
    cluster.node(NODE).machine.wait_until_running().unwrap();

    assert!(judge(&cluster.recorded.since(0), &claim, &served));
    cluster.recorded.missed_nothing();
    let machine = &cluster.node(NODE).machine;
    let boots = machine.boots();
    assert_eq!(boots.len(), 1, "its first boot is its only one: {boots:?}");
    assert_eq!(update.boot_id.as_ref(), Some(&boots[0].id));
    let status = cluster
        .within("its agent has looked for drift", async || {
            Some(status(machine)).filter(|it| it["drift"]["state"] == "Watching")
        })
        .await;
    assert_eq!(status["config"], served["digest"]);
    assert_eq!(status["drift"]["count"], 0, "what made it a node is none: {status}");
    let done = &status["operation"];
    assert!(done["operation"].as_str().unwrap().starts_with("adopt-"), "{status}");
    assert_eq!((&done["phase"], &done["steps"]), (&json!("Done"), &json!([])), "{status}");
    // The kubelet went by what was served: its configuration, and as whom it asks.
    let capacity = ["get", "node", NODE, "-o", "jsonpath={.status.capacity.pods}"];
    assert_eq!(cluster.kubectl(&capacity), PODS);
    let asked = ["get", "csr", "-o", "jsonpath={.items[*].spec.username}"];
    assert_eq!(cluster.kubectl(&asked), SITE);
    nobody_is_forbidden_anything(&cluster);
}
