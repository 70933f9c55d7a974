//! All that is known about boot images, folded from what watches or lists say.

use super::booted::Booted;
use super::kinds::{CLUSTER_OPERATOR, CLUSTER_VERSION, MACHINE_CONFIGURATION, POOL, the_one};
use super::machine::{Key, Machine, Unread, makes_machines, read_template};
use super::standing::Standing;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;
use kube::core::DynamicObject;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tread_kube::api::BootImages;
use tread_kube::api::machines::{INFRASTRUCTURE, Kind, PROVISIONING};
use tread_kube::api::words::STREAM_LABEL;
use tread_model::boot_images::catalogue::essence;
use tread_model::boot_images::{Boots, Catalogue, Release, shown};
use tread_model::joining::USER_DATA;

/// A release, as it is written and as it is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// As it is written.
    pub text: String,
    /// As it is compared, if it can be.
    pub release: Option<Release>,
}

impl Written {
    fn of(text: &str) -> Written {
        Written { text: shown(text), release: Release::parse(text) }
    }
}

/// What ClusterVersion says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Versions {
    /// The release that was completed last.
    pub running: Option<Written>,
    /// The release that was completed first, and when that was.
    pub installed: Option<(Written, Option<Timestamp>)>,
}

/// Stream metadata in a ConfigMap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamped {
    /// The release that it is of; none: nobody stamped it.
    pub release: Option<String>,
    /// What it holds, or why that cannot be read.
    pub catalogues: Result<Vec<Catalogue>, String>,
    /// What is worth keeping of it.
    pub essence: String,
}

/// All that is known. A clone shares what is large.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// BootImages `cluster`.
    pub object: Option<Arc<BootImages>>,
    /// Machine resources.
    pub machines: BTreeMap<Key, Arc<Machine>>,
    /// Infrastructure templates.
    pub templates: BTreeMap<Key, Arc<Result<Boots, String>>>,
    /// The streams of pools that name one.
    pub pools: BTreeMap<Key, String>,
    /// What cannot be read, and why.
    pub unread: BTreeMap<Key, String>,
    /// Releases.
    pub versions: Option<Versions>,
    /// The status of MachineConfiguration `cluster`, as an object.
    pub operator: Option<Arc<Value>>,
    /// ClusterOperator `tread`.
    pub cluster_operator: Option<Arc<Standing>>,
    /// Why there is nothing to judge, by Infrastructure.
    single_node: bool,
    bare_metal: bool,
    provisions_by_url: bool,
    /// The stream metadata of the running release.
    pub current: Option<Arc<Stamped>>,
    /// What tread keeps, by the release.
    pub kept: Arc<BTreeMap<String, Vec<Catalogue>>>,
    /// What an admin gave, by the ConfigMap's name.
    pub given: BTreeMap<String, Arc<Stamped>>,
    /// From which image the newest node of a resource booted first, where agents say so.
    pub booted: Arc<Booted>,
    /// Whether all was listed that says what an image has to be.
    pub limits_known: bool,
}

impl Facts {
    /// Takes an object of one of the others' kinds.
    pub fn take(&mut self, kind: &Kind, object: &DynamicObject) {
        let key = Key::of(kind, object);
        self.unread.remove(&key);
        if the_one(kind).is_some_and(|name| name != key.name) {
            return;
        }
        let data = &object.data;
        let text = |path: &str| data.pointer(path).and_then(Value::as_str).unwrap_or_default();
        match kind.name {
            _ if makes_machines(kind) => {
                self.machines.insert(key, Arc::new(Machine::read(kind, object)));
            }
            name if name == CLUSTER_VERSION.name => {
                self.versions = Some(versions(data));
            }
            name if name == MACHINE_CONFIGURATION.name => {
                self.operator = Some(Arc::new(operator(data)));
            }
            name if name == POOL.name => {
                let label = object.labels().get(STREAM_LABEL).map(String::as_str);
                let named = label.unwrap_or_else(|| text("/spec/osImageStream/name"));
                match named {
                    "" => self.pools.remove(&key),
                    named => self.pools.insert(key, named.to_owned()),
                };
            }
            name if name == CLUSTER_OPERATOR.name => {
                self.cluster_operator = Some(Arc::new(Standing::read(object)));
            }
            name if name == INFRASTRUCTURE.name => {
                self.single_node = text("/status/controlPlaneTopology") == "SingleReplica";
                self.bare_metal = text("/status/platformStatus/type") == "BareMetal";
            }
            name if name == PROVISIONING.name => {
                self.provisions_by_url = !text("/spec/provisioningOSDownloadURL").is_empty();
            }
            _ => {
                self.templates.insert(key, Arc::new(read_template(kind, object)));
            }
        }
    }

    /// Takes an object that cannot be read: what makes machines makes them all
    /// the same, of an image that nobody knows.
    pub fn take_unread(&mut self, kind: &Kind, unread: &Unread) {
        let key = Key::of_metadata(kind, &unread.metadata);
        let why = format!("{} cannot be read: {}", kind.kind, shown(&unread.why));
        if makes_machines(kind) {
            let machine = Machine::unread(kind, &unread.metadata, why.clone());
            self.machines.insert(key.clone(), Arc::new(machine));
        } else if the_one(kind).is_none() && *kind != POOL {
            self.templates.insert(key.clone(), Arc::new(Err(why.clone())));
        }
        self.unread.insert(key, why);
    }

    /// Forgets an object of one of the others' kinds.
    pub fn forget(&mut self, kind: &Kind, key: &Key) {
        self.machines.remove(key);
        self.templates.remove(key);
        self.unread.remove(key);
        self.pools.remove(key);
        if the_one(kind) == Some(key.name.as_str()) {
            self.forget_the_one(kind);
        }
    }

    fn forget_the_one(&mut self, kind: &Kind) {
        match kind.name {
            name if name == CLUSTER_VERSION.name => self.versions = None,
            name if name == MACHINE_CONFIGURATION.name => self.operator = None,
            name if name == CLUSTER_OPERATOR.name => self.cluster_operator = None,
            name if name == PROVISIONING.name => self.provisions_by_url = false,
            name if name == INFRASTRUCTURE.name => {
                (self.single_node, self.bare_metal) = (false, false);
            }
            _ => {}
        }
    }

    /// Why there is nothing to judge, as OpenShift has it.
    pub fn nothing(&self) -> Option<&'static str> {
        if self.bare_metal && !self.provisions_by_url {
            return Some(
                "machines are installed from images that come with each release: this bare metal \
                 cluster names no provisioningOSDownloadURL",
            );
        }
        self.single_node.then_some("the cluster has a single node, and makes no machines")
    }

    /// The stream of the pool whose user data new machines get.
    pub fn stream_of_pool(&self, user_data: &str) -> Option<&str> {
        let by_operator = || {
            let user_data = user_data.strip_suffix("-managed").unwrap_or(user_data);
            user_data.strip_suffix("-user-data")
        };
        self.stream_of(user_data.strip_suffix(USER_DATA).or_else(by_operator)?)
    }

    /// The stream that a pool names.
    pub fn stream_of(&self, pool: &str) -> Option<&str> {
        let mut pools = self.pools.iter();
        pools.find(|(key, _)| key.name == pool).map(|(_, stream)| stream.as_str())
    }

    /// The release that the cluster runs.
    pub fn running(&self) -> Option<&Written> {
        self.versions.as_ref()?.running.as_ref()
    }

    /// The release that the cluster was installed with.
    pub fn installed(&self) -> Option<&(Written, Option<Timestamp>)> {
        self.versions.as_ref()?.installed.as_ref()
    }
}

fn versions(data: &Value) -> Versions {
    let history = data.pointer("/status/history").and_then(Value::as_array);
    let completed =
        |entry: &&Value| entry.get("state").and_then(Value::as_str) == Some("Completed");
    let written = |entry: &Value| {
        Written::of(entry.get("version").and_then(Value::as_str).unwrap_or_default())
    };
    let mut all = history.into_iter().flatten().filter(completed);
    let running = all.next();
    let installed = all.next_back().or(running);
    let at = |entry: &Value| {
        let text = entry.get("completionTime").and_then(Value::as_str)?;
        text.parse::<Timestamp>().ok()
    };
    Versions {
        running: running.map(written),
        installed: installed.map(|entry| (written(entry), at(entry))),
    }
}

/// Only what is read of it.
fn operator(data: &Value) -> Value {
    let part = |name: &str| data.pointer(&format!("/status/{name}")).cloned().unwrap_or_default();
    json!({"status": {
        "conditions": part("conditions"),
        "managedBootImagesStatus": part("managedBootImagesStatus"),
        "bootImageSkewEnforcementStatus": part("bootImageSkewEnforcementStatus"),
    }})
}

/// What a ConfigMap says that holds stream metadata. `stamps` names the keys that
/// say of which release it is: the first has to be there, and the others, where
/// they are, have to say the same.
pub fn stamped(map: &ConfigMap, stamps: &[&str]) -> Stamped {
    let empty = BTreeMap::new();
    let data = map.data.as_ref().unwrap_or(&empty);
    let said = stamps.first().and_then(|key| data.get(*key));
    let agreed =
        |said: &&String| stamps.iter().filter_map(|key| data.get(*key)).all(|it| it == *said);
    let stamp = said.filter(agreed).map(|text| shown(text));
    let parsed = stamp.as_deref().and_then(Release::parse);
    let streams =
        data.iter().filter(|(key, text)| *key == "stream" || text.contains("\"architectures\""));
    let name = map.name_any();
    let catalogues = match parsed {
        None => Ok(Vec::new()),
        Some(release) => streams
            .clone()
            .map(|(key, text)| {
                Catalogue::parse(text, release)
                    .map_err(|why| format!("{name}, {}: {why}", shown(key)))
            })
            .collect::<Result<Vec<_>, _>>()
            .and_then(|all| match all.is_empty() {
                true => {
                    Err(format!("{name} holds no stream metadata: expected it in the key stream"))
                }
                false => Ok(all),
            }),
    };
    let essence = streams.filter_map(|(_, text)| essence(text)).collect::<Vec<_>>();
    Stamped { release: stamp, catalogues, essence: Value::Array(essence).to_string() }
}

/// What tread kept: by release, a list of stream metadata.
pub fn kept(map: &ConfigMap) -> BTreeMap<String, Vec<Catalogue>> {
    let read = |(text, streams): (&String, &String)| {
        let release = Release::parse(text)?;
        let streams: Vec<Value> = serde_json::from_str(streams).ok()?;
        let all = streams.iter().filter_map(|it| Catalogue::parse(&it.to_string(), release).ok());
        Some((text.clone(), all.collect()))
    };
    map.data.iter().flatten().filter_map(read).collect()
}
