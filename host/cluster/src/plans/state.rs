//! What the watches say of the cluster, put together.

use crate::pools::{ConfigMeta, Node, Pool, modified, pools_of};
use crate::previews::{Cluster, Mirror, MirrorKey, Release};
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;
use kube::core::{DynamicObject, PartialObjectMeta};
use kube::runtime::watcher::Event;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tread_kube::api::POOL_KIND;
use tread_kube::api::conditions::reason;
use tread_kube::api::disruption_plan::Cause;
use tread_kube::api::{ClusterVersion, DisruptionPlan, MachineConfig, MachineConfigPool};
use tread_model::digest::Digest;

/// What the watches say.
#[derive(Debug)]
pub(super) enum News {
    Pool(Event<MachineConfigPool>),
    Node(Event<PartialObjectMeta<core::Node>>),
    Config(Event<PartialObjectMeta<MachineConfig>>),
    Mirror(&'static str, Event<DynamicObject>),
    MachineConfiguration(Event<DynamicObject>),
    Release(Event<ClusterVersion>),
    Plan(Event<DisruptionPlan>),
}

/// What has to be known of a DisruptionPlan that stands in the cluster.
#[derive(Debug, Clone)]
pub(super) struct Standing {
    pub(super) uid: String,
    pub(super) version: String,
    pub(super) pool: String,
    pub(super) cause: Cause,
    /// The UIDs of the pools that own it.
    pub(super) owners: Vec<String>,
    pub(super) created: i64,
    /// Of what its status says, times aside.
    pub(super) says: Digest,
    pub(super) stale: bool,
    pub(super) conditions: Vec<Condition>,
}

/// Everything that the watches said so far.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) plans: BTreeMap<String, Standing>,
    /// Names that a list which is not complete yet has had so far.
    listing: BTreeMap<&'static str, BTreeSet<String>>,
    /// Lists that were complete once.
    complete: BTreeSet<&'static str>,
}

/// What an event concerns.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Touched {
    pub(super) pools: BTreeSet<String>,
    pub(super) all: bool,
}

impl Touched {
    pub(super) fn everything() -> Touched {
        Touched { pools: BTreeSet::new(), all: true }
    }

    fn nothing() -> Touched {
        Touched::default()
    }

    fn pools(pools: BTreeSet<String>) -> Touched {
        Touched { pools, all: false }
    }
}

/// What an event means, whatever a list says in between.
enum Means<K> {
    There(K),
    Gone(String),
    /// These are all.
    Only(BTreeSet<String>),
    Nothing,
}

impl State {
    /// Whether everything was seen once.
    pub(super) fn is_complete(&self) -> bool {
        self.complete.len() == super::run::LISTS
    }

    /// Takes in what a watch says; what has to be looked at again for it.
    pub(super) fn take(&mut self, news: News, cluster: &mut Cluster) -> Touched {
        let now = Timestamp::now().as_second();
        match news {
            News::Pool(event) => match self.means("pools", event) {
                Means::There(object) => put_pool(cluster, &object),
                Means::Gone(name) => remove_pool(cluster, &name),
                Means::Only(names) => {
                    let gone: Vec<String> = other_keys(cluster.pools.keys(), &names);
                    for name in gone {
                        remove_pool(cluster, &name);
                    }
                    Touched::everything()
                }
                Means::Nothing => Touched::nothing(),
            },
            News::Node(event) => {
                let means = self.means("nodes", event);
                let Cluster { members, pools, .. } = cluster;
                let members = Arc::make_mut(members);
                Touched::pools(match means {
                    Means::There(mut object) => {
                        let name = object.name_any();
                        members.put(&name, Node::of(&mut object.metadata), pools)
                    }
                    Means::Gone(name) => members.remove(&name),
                    Means::Only(names) => members.keep_only(&names),
                    Means::Nothing => BTreeSet::new(),
                })
            }
            News::Config(event) => match self.means("configs", event) {
                Means::There(mut object) => {
                    let name = object.name_any();
                    let config = Arc::new(ConfigMeta::of(&mut object.metadata));
                    if cluster.configs.get(&name) == Some(&config) {
                        return Touched::nothing();
                    }
                    let before = cluster.configs.insert(name.clone(), Arc::clone(&config));
                    cluster.note_lost(&name, before.as_deref(), now);
                    cluster.gone_configs.remove(&name);
                    let had = had(cluster, &name).filter(|_| before.is_none());
                    let both = before.iter().chain([&config]);
                    let made_of_it = both.flat_map(|it| pools_of(&cluster.pools, &name, it));
                    Touched::pools(made_of_it.chain(had).collect())
                }
                Means::Gone(name) => match cluster.configs.remove(&name) {
                    Some(before) => {
                        cluster.note_lost(&name, Some(&before), now);
                        let made_of_it = pools_of(&cluster.pools, &name, &before);
                        Touched::pools(made_of_it.chain(had(cluster, &name)).collect())
                    }
                    None => Touched::nothing(),
                },
                Means::Only(names) => {
                    let gone = other_keys(cluster.configs.keys(), &names);
                    for name in gone {
                        let before = cluster.configs.remove(&name);
                        cluster.note_lost(&name, before.as_deref(), now);
                    }
                    Touched::everything()
                }
                Means::Nothing => Touched::nothing(),
            },
            News::Mirror(kind, event) => self.mirror(kind, event, cluster),
            News::MachineConfiguration(event) => {
                let before = cluster.machine_configuration.take();
                match self.means("machine configurations", event) {
                    Means::There(mut object) if object.name_any() == "cluster" => {
                        object.metadata.managed_fields = None;
                        object.metadata.resource_version = None;
                        cluster.machine_configuration =
                            serde_json::to_value(object).ok().map(Arc::new);
                    }
                    Means::Gone(name) if name == "cluster" => {}
                    Means::Only(names) if !names.contains("cluster") => {}
                    _ => cluster.machine_configuration.clone_from(&before),
                }
                match before == cluster.machine_configuration {
                    true => Touched::nothing(),
                    false => Touched::everything(),
                }
            }
            News::Release(event) => {
                let Means::There(object) = self.means("releases", event) else {
                    return Touched::nothing();
                };
                let release = release(&object);
                if release == cluster.release {
                    return Touched::nothing();
                }
                cluster.release = release;
                Touched::everything()
            }
            News::Plan(event) => self.plan(event, cluster),
        }
    }

    fn mirror(
        &mut self,
        kind: &'static str,
        event: Event<DynamicObject>,
        cluster: &mut Cluster,
    ) -> Touched {
        let now = Timestamp::now().as_second();
        match self.means(kind, event) {
            Means::There(mut object) => {
                let key = (kind, object.name_any());
                let created =
                    object.metadata.creation_timestamp.as_ref().map_or(0, |it| it.0.as_second());
                let modified = modified(&object.metadata).max(created);
                object.metadata.managed_fields = None;
                let Ok(text) = serde_json::to_vec(&object) else { return Touched::nothing() };
                let mirror = Arc::new(Mirror { created, modified, body: text.into() });
                cluster.gone_mirrors.remove(&key);
                if cluster.mirrors.insert(key, Arc::clone(&mirror)) == Some(mirror) {
                    return Touched::nothing();
                }
            }
            Means::Gone(name) => remove_mirror(cluster, (kind, name), now),
            Means::Only(names) => {
                let of_kind = cluster.mirrors.keys().filter(|(of, _)| *of == kind);
                let gone: Vec<MirrorKey> =
                    of_kind.filter(|(_, name)| !names.contains(name)).cloned().collect();
                gone.into_iter().for_each(|key| remove_mirror(cluster, key, now));
            }
            Means::Nothing => return Touched::nothing(),
        }
        Touched::everything()
    }

    fn plan(&mut self, event: Event<DisruptionPlan>, cluster: &mut Cluster) -> Touched {
        match self.means("plans", event) {
            Means::There(object) => {
                let (name, standing) = (object.name_any(), standing(object));
                // A pool that waited, and does not any more, goes on.
                let waited = standing.conditions.iter().any(|condition| {
                    condition.type_ == "Pending" && condition.reason == reason("Paused")
                });
                if waited && cluster.pools.get(&standing.pool).is_some_and(|pool| !pool.paused) {
                    cluster.unpaused.insert(standing.pool.clone());
                }
                let pool = standing.pool.clone();
                let before = self.plans.insert(name, standing);
                let same = before.is_some_and(|before| {
                    self.plans.values().any(|it| it.uid == before.uid && it.says == before.says)
                });
                if same { Touched::nothing() } else { Touched::pools([pool].into()) }
            }
            // Somebody deleted it: if it is still true, it comes back.
            Means::Gone(name) => {
                Touched::pools(self.plans.remove(&name).map(|plan| plan.pool).into_iter().collect())
            }
            Means::Only(names) => {
                self.plans.retain(|name, _| names.contains(name));
                Touched::everything()
            }
            Means::Nothing => Touched::nothing(),
        }
    }

    fn means<K: kube::Resource>(&mut self, list: &'static str, event: Event<K>) -> Means<K> {
        match event {
            Event::Init => {
                self.listing.insert(list, BTreeSet::new());
                Means::Nothing
            }
            Event::InitApply(object) => {
                self.listing.entry(list).or_default().insert(object.name_any());
                Means::There(object)
            }
            Event::InitDone => {
                self.complete.insert(list);
                Means::Only(self.listing.remove(list).unwrap_or_default())
            }
            Event::Apply(object) => Means::There(object),
            Event::Delete(object) => Means::Gone(object.name_any()),
        }
    }
}

/// The pools of nodes that say that they have a config.
fn had<'c>(cluster: &'c Cluster, config: &str) -> impl Iterator<Item = String> + use<'c> {
    cluster.members.pools_with(config).map(str::to_owned)
}

fn put_pool(cluster: &mut Cluster, object: &MachineConfigPool) -> Touched {
    let pool = Pool::of(object);
    let name = pool.name.clone();
    let mut touched = BTreeSet::from([name.clone()]);
    let before = cluster.pools.insert(name.clone(), Arc::new(pool));
    let pool = cluster.pools.get(&name);
    let (Some(pool), Cluster { members, pools, unpaused, .. }) = (pool.cloned(), &mut *cluster)
    else {
        return Touched::nothing();
    };
    match &before {
        Some(before) if before.paused && !pool.paused => {
            unpaused.insert(name);
        }
        _ if pool.paused => {
            unpaused.remove(&name);
        }
        _ => {}
    }
    if before.is_none_or(|before| !before.selects_like(&pool)) {
        touched.extend(Arc::make_mut(members).sort_again(pools));
    }
    Touched::pools(touched)
}

fn remove_pool(cluster: &mut Cluster, name: &str) -> Touched {
    cluster.pools.remove(name);
    cluster.baselines.remove(name);
    cluster.unpaused.remove(name);
    let Cluster { members, pools, .. } = cluster;
    let mut touched = Arc::make_mut(members).sort_again(pools);
    touched.insert(name.to_owned());
    Touched::pools(touched)
}

/// Notes when it was gone: what is rendered may still have it.
fn remove_mirror(cluster: &mut Cluster, key: MirrorKey, now: i64) {
    if cluster.mirrors.remove(&key).is_some() {
        cluster.gone_mirrors.insert(key, now);
    }
}

fn release(object: &ClusterVersion) -> Option<Release> {
    let status = object.status.as_ref()?;
    let desired = status.desired.as_ref()?.version.clone()?;
    let completed = status.history.iter().flatten().find(|update| update.state == "Completed");
    Some(Release { desired, completed: completed.map(|update| update.version.clone()) })
}

pub(super) fn standing(object: DisruptionPlan) -> Standing {
    let status = object.status.unwrap_or_default();
    let owners = object.metadata.owner_references.unwrap_or_default().into_iter();
    let owners = owners.filter(|owner| owner.kind == POOL_KIND).map(|owner| owner.uid);
    Standing {
        cause: object.spec.cause,
        owners: owners.collect(),
        uid: object.metadata.uid.unwrap_or_default(),
        version: object.metadata.resource_version.unwrap_or_default(),
        pool: object.spec.pool,
        created: object.metadata.creation_timestamp.map_or(0, |time| time.0.as_second()),
        says: super::write::says(&status),
        stale: status.stale,
        conditions: status.conditions,
    }
}

fn other_keys<'k>(keys: impl Iterator<Item = &'k String>, names: &BTreeSet<String>) -> Vec<String> {
    keys.filter(|name| !names.contains(*name)).cloned().collect()
}
