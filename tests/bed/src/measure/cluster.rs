//! The cluster that it is measured on.

use anyhow::{Context, Result};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use hyper_util::client::legacy::Client as Http;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::{
    DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube::client::{Body, ConfigExt as _};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client, Config};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tower::{BoxError, ServiceBuilder};
use tread_test_bed::ControlPlane;

const ROLE: &str = "machineconfiguration.openshift.io/role";
pub(crate) const GROUP: &str = "machineconfiguration.openshift.io";
/// How many objects are made at the same time.
const AT_ONCE: usize = 16;
/// A file of a usual size.
const FILE: usize = 2048;

/// The cluster that it is measured on.
pub(crate) struct Cluster {
    pub(crate) plane: ControlPlane,
    pub(crate) client: Client,
    pools: usize,
}

impl Cluster {
    pub(crate) async fn start(pools: usize) -> Result<Cluster> {
        let plane = ControlPlane::options().with_audit_log().start()?;
        let client = prompt(plane.admin().client_config().await?)?;
        Ok(Cluster { plane, client, pools })
    }

    pub(crate) fn api(&self, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::all_with(self.client.clone(), &kind)
    }

    fn configs(&self) -> Api<DynamicObject> {
        self.api(GROUP, "v1", "MachineConfig")
    }

    pub(crate) fn pool(&self, number: usize) -> String {
        match number % self.pools {
            0 => "worker".to_owned(),
            number => format!("pool-{number}"),
        }
    }

    /// Pools, their MachineConfigs, each rendered and rolled out unless tread does that, and nodes.
    pub(crate) async fn fill(&self, nodes: usize, configs: usize, by_tread: bool) -> Result<()> {
        let api = self.configs();
        create(&api, (0..configs).map(|number| config(number, &self.pool(number)))).await?;
        let pools = self.api(GROUP, "v1", "MachineConfigPool");
        let made = create(&pools, (0..self.pools).map(|number| pool(&self.pool(number)))).await?;
        if !by_tread {
            self.render(configs, &made).await?;
        }
        let api: Api<Node> = Api::all(self.client.clone());
        let all = (0..nodes).map(|number| node(number, &self.pool(number)));
        create(&api, all).await?;
        Ok(())
    }

    /// What each pool is made of, rendered as OpenShift's operator does.
    async fn render(&self, configs: usize, made: &[DynamicObject]) -> Result<()> {
        let (api, pools) = (self.configs(), self.api(GROUP, "v1", "MachineConfigPool"));
        let of_pool = |number: usize| (number..configs).step_by(self.pools);
        // Times have only seconds: what is made in the second in which it is rendered
        // counts as changed since.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let rendered = (0..self.pools).map(|number| {
            let numbers = of_pool(0).chain(of_pool(number).filter(|_| number > 0));
            rendered(&self.pool(number), numbers.collect(), made)
        });
        create(&api, rendered).await?;
        for number in 0..self.pools {
            let sources: Vec<Value> = of_pool(0)
                .chain(of_pool(number).filter(|_| number > 0))
                .map(|number| json!({"name": name_of(number)}))
                .collect();
            let name = self.pool(number);
            let configuration = json!({"name": format!("rendered-{name}-1"), "source": sources});
            let params = PatchParams::default();
            let spec = json!({"spec": {"configuration": configuration}});
            pools.patch(&name, &params, &Patch::Merge(spec)).await?;
            let status = json!({"status": {"configuration": configuration}});
            pools.patch_status(&name, &params, &Patch::Merge(status)).await?;
        }
        Ok(())
    }

    /// A MachineSet for each pool, whose nodes get the labels that it selects.
    pub(crate) async fn machine_sets(&self) -> Result<()> {
        let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let name = "machinesets.machine.openshift.io";
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition", "metadata": {"name": name}, "spec": {
                "group": "machine.openshift.io", "scope": "Namespaced",
                "names": {"kind": "MachineSet", "plural": "machinesets", "singular": "machineset"},
                "versions": [{"name": "v1beta1", "served": true, "storage": true, "schema": {
                    "openAPIV3Schema": {"type": "object", "properties": {"spec": anything}}}}]}});
        self.plane.apply(&definition.to_string())?;
        let wait = ["wait", "--for=condition=Established", "--timeout=600s", "crd", name];
        self.plane.kubectl(&wait)?.success()?;
        let sets: Api<DynamicObject> = Api::namespaced_with(
            self.client.clone(),
            "default",
            &ApiResource::from_gvk(&GroupVersionKind::gvk(
                "machine.openshift.io",
                "v1beta1",
                "MachineSet",
            )),
        );
        create(&sets, (0..self.pools).map(|number| machine_set(&self.pool(number)))).await?;
        Ok(())
    }

    /// As many policies of as many digests.
    pub(crate) async fn policies(&self, file: &Path, count: usize) -> Result<()> {
        let component = std::fs::read(file).with_context(|| file.display().to_string())?;
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
            "name": "policies", "labels": {"tread.dev/policies": "allowed"}}});
        self.plane.apply(&namespace.to_string())?;
        // A namespace has room for 50.
        let more = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
            "name": "more-policies", "labels": {"tread.dev/policies": "allowed"}}});
        self.plane.apply(&more.to_string())?;
        for number in 0..count {
            let namespace = if number % 2 == 0 { "policies" } else { "more-policies" };
            let mut bytes = component.clone();
            // A custom section that says nothing, so that each is another one.
            let text = format!("measured-{number:04}");
            bytes.extend([0, u8::try_from(text.len() + 1)?, u8::try_from(text.len())?]);
            bytes.extend(text.bytes());
            let map: ConfigMap = ConfigMap {
                metadata: serde_json::from_value(json!({
                    "name": format!("policy-{number}"), "labels": {"tread.dev/policy": "true"},
                }))?,
                binary_data: Some([("policy.wasm".to_owned(), ByteString(bytes))].into()),
                ..ConfigMap::default()
            };
            let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
            api.create(&PostParams::default(), &map).await?;
        }
        Ok(())
    }

    /// How long it takes from a new MachineConfig to its plan.
    pub(crate) async fn preview(&self, number: usize) -> Result<Duration> {
        let plans = self.api("tread.dev", "v1alpha1", "DisruptionPlan");
        let version = plans.list_metadata(&ListParams::default().limit(1)).await?;
        let version = version.metadata.resource_version.unwrap_or_default();
        let mut events = plans.watch(&WatchParams::default(), &version).await?.boxed();
        let name = format!("timed-{number}");
        let begun = Instant::now();
        let role = self.pool(1 + number % self.pools.saturating_sub(1).max(1));
        let object = new_config(&name, &role, number)?;
        self.configs().create(&PostParams::default(), &object).await?;
        while let Some(event) = events.try_next().await? {
            let (WatchEvent::Added(plan) | WatchEvent::Modified(plan)) = event else { continue };
            let is_its =
                plan.data.pointer("/spec/cause/name").and_then(Value::as_str) == Some(&name);
            if is_its && plan.data.pointer("/status/effect").is_some() {
                break;
            }
        }
        let time = begun.elapsed();
        self.configs().delete(&name, &DeleteParams::default()).await?;
        Ok(time)
    }

    /// How long it takes to be warned of a new MachineConfig, the API server's own
    /// work included; and whether there was a warning.
    pub(crate) async fn warning(&self, number: usize) -> Result<(Duration, bool)> {
        let role = self.pool(1 + number % self.pools.saturating_sub(1).max(1));
        self.ask(new_config(&format!("asked-{number}"), &role, number)?).await
    }

    /// The same of one that concerns every pool, and says what no other one says.
    pub(crate) async fn wide_warning(&self, number: usize) -> Result<(Duration, bool)> {
        self.ask(new_config(&format!("asked-{number}"), "worker", 100_000 + number)?).await
    }

    /// The same of one that concerns none: tread says so, and plans nothing.
    pub(crate) async fn warning_of_no_pool(&self, number: usize) -> Result<(Duration, bool)> {
        self.ask(new_config(&format!("asked-{number}"), "nobody", 100_000 + number)?).await
    }

    /// How long the same takes where tread is not asked: of a rendered config.
    pub(crate) async fn no_warning(&self, number: usize) -> Result<(Duration, bool)> {
        let mut object = new_config(&format!("asked-{number}"), &self.pool(number), number)?;
        object.metadata.owner_references = Some(vec![serde_json::from_value(json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": "MachineConfigPool", "name": "worker",
            "uid": "0"}))?]);
        self.ask(object).await
    }

    /// A request that asks for as much as one can: it names 150,000 files.
    pub(crate) async fn hostile_request(&self, number: usize) -> Result<(Duration, bool)> {
        self.ask(many_files(&format!("hostile-{number}"), 150_000)?).await
    }

    /// Makes objects for all pools that hold as much as one can: two that name 60,000
    /// files each, and one with 5,000. Gives their names.
    pub(crate) async fn hostile_objects(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for (number, files) in [5000, 60_000, 60_000].into_iter().enumerate() {
            let name = format!("99-hostile-{number}");
            let object = many_files(&name, files)?;
            self.configs().create(&PostParams::default(), &object).await?;
            self.planned(&name).await?;
            names.push(name);
        }
        Ok(names)
    }

    /// Makes a MachineConfig of all pools, until each has a plan for it.
    pub(crate) async fn change_of_all(&self) -> Result<()> {
        let object = new_config("99-of-all", "worker", 0)?;
        self.configs().create(&PostParams::default(), &object).await?;
        self.planned("99-of-all").await
    }

    /// Waits until every pool has a plan for a MachineConfig.
    async fn planned(&self, name: &str) -> Result<()> {
        let plans = self.api("tread.dev", "v1alpha1", "DisruptionPlan");
        let begun = Instant::now();
        loop {
            let all = plans.list(&ListParams::default()).await?;
            let is_its = |plan: &&DynamicObject| {
                let cause = plan.data.pointer("/spec/cause/name").and_then(Value::as_str);
                cause == Some(name) && plan.data.pointer("/status/effect").is_some()
            };
            let count = all.iter().filter(is_its).count();
            if count >= self.pools {
                return Ok(());
            }
            if begun.elapsed() > Duration::from_secs(300) {
                anyhow::bail!("{count} of {} pools have a plan for {name}", self.pools);
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }

    /// Removes MachineConfigs.
    pub(crate) async fn remove(&self, names: &[String]) -> Result<()> {
        for name in names {
            self.configs().delete(name, &DeleteParams::default()).await?;
        }
        Ok(())
    }

    async fn ask(&self, object: DynamicObject) -> Result<(Duration, bool)> {
        let request = kube::core::Request::new(format!("/apis/{GROUP}/v1/machineconfigs"));
        let params = PostParams { dry_run: true, ..PostParams::default() };
        let request = request.create(&params, serde_json::to_vec(&object)?)?;
        let begun = Instant::now();
        let answer = self.client.send(request.map(kube::client::Body::from)).await?;
        Ok((begun.elapsed(), answer.headers().contains_key("warning")))
    }

    /// Where the log of requests ends now.
    pub(crate) fn audit(&self) -> Result<u64> {
        Ok(std::fs::metadata(self.plane.audit_log())?.len())
    }

    pub(crate) fn audit_log(&self) -> PathBuf {
        self.plane.audit_log()
    }
}

/// A client that sends what it has at once, as kubectl does; that of kube adds the
/// 40 ms in which the system waits for the other side.
pub(crate) fn prompt(config: Config) -> Result<Client> {
    let mut sockets = HttpConnector::new();
    sockets.enforce_http(false);
    sockets.set_nodelay(true);
    let connector = config.rustls_https_connector_with_connector(sockets)?;
    let http: Http<_, Body> = Http::builder(TokioExecutor::new()).build(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .map_err(BoxError::from)
        .service(http);
    Ok(Client::new(service, config.default_namespace))
}

pub(crate) async fn create<K>(api: &Api<K>, all: impl Iterator<Item = Value>) -> Result<Vec<K>>
where
    K: Clone + serde::de::DeserializeOwned + serde::Serialize + std::fmt::Debug,
{
    stream::iter(all)
        .map(async |object| {
            let object: K = serde_json::from_value(object)?;
            loop {
                match api.create(&PostParams::default(), &object).await {
                    // New definitions need a moment.
                    Err(kube::Error::Api(status)) if status.code == 429 => {
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                    result => return anyhow::Ok(result?),
                }
            }
        })
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await
}

pub(crate) fn name_of(number: usize) -> String {
    format!("{number:03}-config")
}

fn files(number: usize) -> Value {
    let file = |index: usize| {
        let text = format!("{number}.{index}.").repeat(FILE / 6);
        json!({"path": format!("/etc/measured/{number}/{index}"), "mode": 0o644, "overwrite": true,
            "contents": {"source": format!("data:,{text}")}})
    };
    json!([file(0), file(1), file(2)])
}

pub(crate) fn config(number: usize, role: &str) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "MachineConfig",
        "metadata": {"name": name_of(number), "labels": {ROLE: role}},
        "spec": {"config": {"ignition": {"version": "3.4.0"}, "storage": {"files": files(number)}}},
    })
}

/// A config of every pool with as many files as possible in as many bytes.
fn many_files(name: &str, count: usize) -> Result<DynamicObject> {
    let files: Vec<Value> = (0..count).map(|n| json!({"path": format!("/a{n}")})).collect();
    Ok(serde_json::from_value(json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "MachineConfig",
        "metadata": {"name": name, "labels": {ROLE: "worker"}},
        "spec": {"config": {"ignition": {"version": "3.4.0"}, "storage": {"files": files}}},
    }))?)
}

/// A config that every measured policy is asked about.
fn new_config(name: &str, role: &str, number: usize) -> Result<DynamicObject> {
    let mut object = config(1000 + number, role);
    if let Some(path) = object.pointer_mut("/spec/config/storage/files/0/path") {
        *path = json!("/etc/acts/reload");
    }
    if let Some(place) = object.pointer_mut("/metadata/name") {
        *place = json!(name);
    }
    Ok(serde_json::from_value(object)?)
}

fn pool(name: &str) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "MachineConfigPool",
        "metadata": {"name": name},
        "spec": {
            "machineConfigSelector": {"matchExpressions": [
                {"key": ROLE, "operator": "In", "values": ["worker", name]}]},
            "nodeSelector": {"matchLabels": {format!("node-role.kubernetes.io/{name}"): ""}},
        },
    })
}

fn rendered(pool: &str, numbers: Vec<usize>, pools: &[DynamicObject]) -> Value {
    let all: Vec<Value> = numbers
        .into_iter()
        .flat_map(|number| files(number).as_array().cloned().unwrap_or_default())
        .collect();
    let owner = pools.iter().find(|it| it.metadata.name.as_deref() == Some(pool));
    let uid = owner.and_then(|owner| owner.metadata.uid.clone());
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "MachineConfig",
        "metadata": {"name": format!("rendered-{pool}-1"), "ownerReferences": [{
            "apiVersion": format!("{GROUP}/v1"), "kind": "MachineConfigPool", "name": pool,
            "uid": uid, "controller": true}]},
        "spec": {"config": {"ignition": {"version": "3.4.0"}, "storage": {"files": all}}},
    })
}

fn machine_set(pool: &str) -> Value {
    let label = format!("node-role.kubernetes.io/{pool}");
    json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet",
        "metadata": {"name": pool, "namespace": "default"},
        "spec": {"replicas": 10, "template": {"spec": {
            "metadata": {"labels": {label: ""}},
            "providerSpec": {"value": {"userDataSecret": {"name": format!("{pool}-user-data")}}},
        }}},
    })
}

fn node(number: usize, pool: &str) -> Value {
    let mut labels: serde_json::Map<String, Value> =
        (0..20).map(|index| (format!("example.com/label-{index}"), json!("value"))).collect();
    labels.insert(format!("node-role.kubernetes.io/{pool}"), json!(""));
    let images: Vec<Value> = (0..50)
        .map(|index| {
            let digest = "0123456789abcdef".repeat(4);
            json!({"names": [format!("example.com/image-{index}@sha256:{digest}")], "sizeBytes": 1})
        })
        .collect();
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": format!("node-{number:05}"), "labels": labels, "annotations": {
            "machineconfiguration.openshift.io/currentConfig": format!("rendered-{pool}-1"),
            "machineconfiguration.openshift.io/desiredConfig": format!("rendered-{pool}-1"),
            "machineconfiguration.openshift.io/state": "Done"}},
        "status": {"images": images},
    })
}
