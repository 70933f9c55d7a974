//! A cluster with machine resources, and the controller that judges them.

use futures::FutureExt as _;
use futures::future::join;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tread_cluster::boot_images::{self, Known, Settings};
use tread_cluster::index;
use tread_kube::api::{BootImages, BootImagesStatus, crds, machines};
use tread_kube::events::Events;
use tread_kube::leadership::Leading;
use tread_kube::metrics::Metrics;
use tread_kube::watching::Watches;
use tread_test_bed::{ControlPlane, Options, eventually};

pub(crate) const RUNNING: &str = "4.22.0";
const MCO: &str = "openshift-machine-config-operator";
const MACHINES: &str = "openshift-machine-api";

/// Stream metadata in OpenShift's form.
pub(crate) fn stream() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases/boot-images/stream.json");
    std::fs::read_to_string(path).unwrap()
}

/// A providerSpec of AWS with this image.
pub(crate) fn aws(ami: &str) -> Value {
    json!({
        "kind": "AWSMachineProviderConfig", "ami": {"id": ami},
        "placement": {"region": "eu-west-1"}, "userDataSecret": {"name": "worker-user-data"},
    })
}

pub(crate) struct Cluster {
    pub(crate) plane: ControlPlane,
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) metrics: Metrics,
}

/// The controller, until it is dropped.
pub(crate) struct Running {
    pub(crate) known: Known,
    pub(crate) settings: Settings,
    pub(crate) watches: Watches,
    task: JoinHandle<()>,
    _leads: watch::Sender<bool>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Cluster {
    /// A cluster with tread's own definitions only.
    pub(crate) async fn bare(options: Options) -> Cluster {
        let plane = options.with_definitions(&crds::own()).maybe_used().start().unwrap();
        let client = plane.client().await.unwrap();
        let namespace = plane.namespace("tread").unwrap();
        Cluster { plane, client, namespace, metrics: Metrics::new() }
    }

    /// A cluster of OpenShift on AWS that was installed with 4.12.0.
    pub(crate) async fn openshift() -> Cluster {
        Cluster::openshift_on(ControlPlane::options()).await
    }

    /// The same on a control plane that is special in some way.
    pub(crate) async fn openshift_on(options: Options) -> Cluster {
        let machine = machines::definition(&machines::MACHINE).unwrap();
        let definitions =
            [crds::openshift(), machines::definitions().unwrap(), vec![machine]].concat();
        let cluster = Cluster::bare(options.with_definitions(&definitions)).await;
        for namespace in [MCO, MACHINES] {
            cluster.kubectl(&["create", "namespace", namespace]);
        }
        cluster.version(&[RUNNING, "4.12.0"]);
        cluster.infrastructure("AWS", "HighlyAvailable");
        cluster.catalogue(RUNNING, RUNNING, &stream());
        cluster
    }

    pub(crate) fn kubectl(&self, args: &[&str]) -> String {
        self.plane.kubectl(args).unwrap().success().unwrap()
    }

    pub(crate) fn apply(&self, object: &Value) {
        self.plane.apply(&object.to_string()).unwrap();
    }

    /// Runs what tread tells an admin to run.
    pub(crate) fn shell(&self, command: &str) {
        let mut shell = std::process::Command::new("sh");
        self.plane.prepare(&mut shell);
        let ran = shell.args(["-c", command]).output().unwrap();
        assert!(ran.status.success(), "{command}: {}", String::from_utf8_lossy(&ran.stderr));
    }

    /// The releases that were completed, the newest first.
    pub(crate) fn version(&self, releases: &[&str]) {
        let history: Vec<Value> = releases
            .iter()
            .map(|it| json!({"state": "Completed", "version": it, "completionTime": "2020-01-01T00:00:00Z"}))
            .collect();
        self.apply(&json!({
            "apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion",
            "metadata": {"name": "version"}, "spec": {},
        }));
        let status = json!({"status": {"desired": {"version": releases[0]}, "history": history}});
        let to =
            ["patch", "clusterversion", "version", "--subresource=status", "--type=merge", "-p"];
        self.kubectl(&[&to[..], &[status.to_string().as_str()]].concat());
    }

    pub(crate) fn infrastructure(&self, platform: &str, topology: &str) {
        self.apply(&json!({
            "apiVersion": "config.openshift.io/v1", "kind": "Infrastructure",
            "metadata": {"name": "cluster"}, "spec": {},
            "status": {"platformStatus": {"type": platform}, "controlPlaneTopology": topology},
        }));
    }

    /// The stream metadata of a release, with the machine config operator's stamp.
    pub(crate) fn catalogue(&self, release: &str, stamp: &str, stream: &str) {
        self.apply(&json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "coreos-bootimages", "namespace": MCO},
            "data": {
                "stream": stream, "releaseVersion": release, "MCOReleaseImageVersion": stamp,
                "MCOVersionHash": "0",
            },
        }));
    }

    /// Stream metadata that an admin gives: with one image.
    pub(crate) fn given(&self, name: &str, release: &str, ami: &str) {
        let image = json!({"release": "414.92.202402051952-0", "image": ami});
        let stream = json!({"architectures": {"x86_64": {"images": {"aws": {"regions": {"eu-west-1": image}}}}}});
        self.apply(&json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": name, "namespace": self.namespace, "labels": {"tread.dev/boot-images": ""},
            },
            "data": {"stream": stream.to_string(), "release": release},
        }));
    }

    /// A MachineSet with these labels, annotations or owners.
    pub(crate) fn machine_set(&self, name: &str, metadata: Value, provider: &Value) {
        let mut object = json!({
            "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet", "metadata": metadata,
            "spec": {"replicas": 1, "template": {"spec": {"providerSpec": {"value": provider}}}},
        });
        object["metadata"]["name"] = json!(name);
        object["metadata"]["namespace"] = json!(MACHINES);
        self.apply(&object);
    }

    pub(crate) fn annotate(&self, name: &str, version: &str) {
        let annotation = format!("tread.dev/boot-image={version}");
        let kind = "machinesets.machine.openshift.io";
        self.kubectl(&["-n", MACHINES, "annotate", "--overwrite", kind, name, &annotation]);
    }

    pub(crate) fn spec(&self, spec: &str) {
        let patch = format!("{{\"spec\": {spec}}}");
        self.kubectl(&["patch", "bimg", "cluster", "--type=merge", "-p", &patch]);
    }

    /// The controller as the leader runs it.
    pub(crate) fn run(&self) -> Running {
        self.run_so(false)
    }

    /// The same as an admin runs it who wants updates to be held back.
    pub(crate) fn run_blocking(&self) -> Running {
        self.run_so(true)
    }

    fn run_so(&self, block_upgrades: bool) -> Running {
        let (leads, leading) = watch::channel(true);
        let watches = Watches::default();
        let (index, indexing) = index::start(&self.client, "default", &watches, &self.metrics);
        let settings = Settings {
            client: self.client.clone(),
            index,
            namespace: self.namespace.clone(),
            leads: Leading::without_election(leading, None),
            block_upgrades,
            watches: watches.clone(),
            metrics: self.metrics.clone(),
            events: Events::new(self.client.clone(), "test", "Judge", &self.metrics),
        };
        let (known, run) = boot_images::start(settings.clone());
        Running {
            known,
            settings,
            watches,
            task: tokio::spawn(join(indexing, run).map(drop)),
            _leads: leads,
        }
    }

    pub(crate) fn condition<'s>(status: &'s BootImagesStatus, kind: &str) -> &'s Condition {
        status.conditions.iter().find(|it| it.type_ == kind).unwrap()
    }

    pub(crate) fn message(status: &BootImagesStatus, kind: &str) -> String {
        Cluster::condition(status, kind).message.clone()
    }

    /// The status, as soon as a condition is so.
    pub(crate) async fn until(&self, kind: &str, is: &str, reason: &str) -> BootImagesStatus {
        let api: Api<BootImages> = Api::all(self.client.clone());
        eventually(&format!("{kind} is {is}, {reason}"), async || {
            let status = api.get_opt("cluster").await.ok()??.status?;
            let found = status.conditions.iter().find(|it| it.type_ == kind)?;
            (found.status == is && found.reason == reason).then_some(status)
        })
        .await
    }

    /// Waits until a condition says so.
    pub(crate) async fn says(&self, kind: &str, words: &str) {
        let api: Api<BootImages> = Api::all(self.client.clone());
        eventually(words, async || {
            let status = api.get_opt("cluster").await.ok()??.status?;
            let found = status.conditions.iter().find(|it| it.type_ == kind)?;
            found.message.contains(words).then_some(())
        })
        .await;
    }

    /// Waits for an Event.
    pub(crate) async fn event(&self, reason: &str) {
        let field = format!("reason={reason}");
        let args = ["get", "events", "-A", "--field-selector", &field, "-o", "name"];
        eventually(reason, async || (!self.kubectl(&args).is_empty()).then_some(())).await;
    }

    /// The releases whose stream metadata is kept.
    pub(crate) async fn kept_releases(&self) -> Vec<String> {
        let api: Api<k8s_openapi::api::core::v1::ConfigMap> =
            Api::namespaced(self.client.clone(), &self.namespace);
        eventually("stream metadata is kept", async || {
            let map = api.get_opt("tread-boot-images").await.ok()??;
            Some(map.data?.into_keys().collect())
        })
        .await
    }
}
