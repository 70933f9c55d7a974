//! What the cluster says of configs, pools and nodes, at one moment.

use super::side::{Piece, Side};
use crate::flags::Flags;
use crate::pools::{ConfigMeta, Configs, Members, Pool, Pools, RollsOut, Strays, Wanted};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tread_model::object_name::is_possible;
use tread_model::operator;

/// What the cluster says of configs, pools and nodes, at one moment. Clones
/// share what is large.
#[derive(Debug, Clone, Default)]
pub struct Cluster {
    /// Whether tread rolls out in this cluster.
    pub by_tread: bool,
    /// The MachineConfigPools.
    pub pools: Pools,
    /// Their nodes.
    pub members: Arc<Members>,
    /// Those of them that booted into another pool than they count in.
    pub strays: Strays,
    /// The MachineConfigs, without what they hold.
    pub configs: Configs,
    /// The objects that redirect image pulls, whole: they are small.
    pub mirrors: Mirrors,
    /// MachineConfiguration/cluster, with OpenShift's own rules.
    pub machine_configuration: Option<Arc<Value>>,
    /// Which release the cluster runs, and which it is going to.
    pub release: Option<Release>,
    /// What the nodes of pools have that nobody renders, as far as tread has seen.
    pub baselines: BTreeMap<String, Arc<Baseline>>,
    /// Pools that were paused, and whose nodes did not all follow since.
    pub unpaused: BTreeSet<String>,
    /// Objects that redirected image pulls, and when they were gone, in seconds.
    pub gone_mirrors: BTreeMap<MirrorKey, i64>,
    /// Rendered configs that pools or nodes name, and that the API server says do not exist: that
    /// the watch has not shown one yet does not mean that.
    pub gone_configs: BTreeSet<String>,
    /// By pool, the MachineConfigs that it was made of and is not any more, and since
    /// when, in seconds.
    pub lost: Arc<BTreeMap<String, BTreeMap<String, i64>>>,
    /// Who else has nodes, by objects of their own.
    pub flags: Arc<Flags>,
    /// By pool, what an admin wants of its rollout, where tread rolls out.
    pub wanted: Arc<BTreeMap<String, Wanted>>,
    /// MachineConfigs that are not in the cluster yet, whole.
    pub incoming: BTreeMap<String, Piece>,
}

/// The objects that redirect image pulls.
pub type Mirrors = BTreeMap<MirrorKey, Arc<Mirror>>;

/// The kind of such an object, and its name.
pub type MirrorKey = (&'static str, String);

/// An object that redirects image pulls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirror {
    /// When it was made, in seconds.
    pub created: i64,
    /// When it was last written, in seconds.
    pub modified: i64,
    /// The whole object.
    pub body: Arc<[u8]>,
}

/// Releases of OpenShift.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Release {
    /// Which one the cluster is going to.
    pub desired: String,
    /// Which one it came to last.
    pub completed: Option<String>,
}

impl Release {
    /// Whether the cluster is on its way.
    pub fn is_under_way(&self) -> bool {
        self.completed.as_ref() != Some(&self.desired)
    }
}

/// What the nodes of a pool have that nobody renders: what the pool was made of
/// when tread saw it first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Baseline {
    /// What it is called.
    pub name: String,
    /// With everything that it holds.
    pub side: Side,
    /// Its MachineConfigs, by name, with their `resourceVersion`s.
    pub versions: BTreeMap<String, String>,
    /// Its mirror objects, with digests of what they held.
    pub mirrors: BTreeMap<MirrorKey, Arc<[u8]>>,
}

/// What somebody is about to write.
#[derive(Debug, Clone)]
pub enum Edit {
    /// A MachineConfig is there, or says something else.
    MachineConfig {
        /// Its name.
        name: String,
        /// Its labels.
        labels: BTreeMap<String, String>,
        /// The whole object.
        body: Arc<[u8]>,
    },
    /// A MachineConfig goes.
    NoMachineConfig(String),
    /// An object that redirects image pulls is there, or says something else.
    Mirror(MirrorKey, Arc<[u8]>),
    /// One goes.
    NoMirror(MirrorKey),
}

/// Whether something was written after the operator rendered, so that the operator has not seen it.
/// Times have only seconds: the same second counts as after.
pub(super) fn is_since(written: i64, rendered: i64) -> bool {
    written >= rendered
}

impl Cluster {
    /// Who rolls out what is rendered for a pool.
    pub fn rolls_out(&self, pool: &Pool) -> RollsOut {
        match &pool.target {
            _ if self.by_tread => RollsOut::Tread,
            Some(_) => RollsOut::Operator,
            None => RollsOut::Nobody,
        }
    }

    /// What OpenShift's operator does by its own rules.
    pub(crate) fn operators_rules(&self) -> Arc<operator::Policies> {
        Arc::new(operator::Policies::of(self.machine_configuration.as_deref()))
    }

    /// What an admin wants of the rollout of a pool.
    pub fn wanted(&self, pool: &str) -> Wanted {
        self.wanted.get(pool).copied().unwrap_or_default()
    }

    /// A MachineConfig as it is to be, if there is one of the name.
    pub(super) fn piece(&self, name: &str) -> Option<Piece> {
        if let Some(piece) = self.incoming.get(name) {
            return Some(piece.clone());
        }
        Some(Piece::Stored(self.configs.key(name)?))
    }

    /// The rendered configs that a pool and its nodes name, and of which nothing is
    /// known yet: the pool may be told of them before they are.
    pub fn unheard_of(&self, pool: &str) -> BTreeSet<&str> {
        let mut named = self.named_by(pool);
        let known = |name: &str| {
            self.configs.contains_key(name)
                || self.gone_configs.contains(name)
                || !is_possible(name)
        };
        named.retain(|name| !known(name));
        named
    }

    /// Notes rendered configs that are not there, for as long as somebody names them.
    pub fn note_gone(&mut self, names: impl IntoIterator<Item = String>) {
        self.gone_configs.extend(names);
        if !self.gone_configs.is_empty() {
            let mut gone = std::mem::take(&mut self.gone_configs);
            let all: BTreeSet<&str> =
                self.pools.keys().flat_map(|pool| self.named_by(pool)).collect();
            gone.retain(|name| all.contains(name.as_str()));
            self.gone_configs = gone;
        }
    }

    fn named_by(&self, pool: &str) -> BTreeSet<&str> {
        let Some(it) = self.pools.get(pool).filter(|it| it.target.is_some()) else {
            return BTreeSet::new();
        };
        let own = [&it.target, &it.settled].into_iter().flatten().map(|it| it.name.as_str());
        own.chain(self.members.of_pool(pool).filter_map(|(from, _)| from)).collect()
    }

    /// Forgets mirrors that were gone before every pool's last rollout ended.
    pub fn forget_mirrors(&mut self) {
        let settled = self.pools.values().filter_map(|pool| pool.settled.as_ref());
        let oldest = settled.filter_map(|it| self.configs.get(&it.name)).map(|it| it.created).min();
        if let Some(oldest) = oldest {
            self.gone_mirrors.retain(|_, gone| *gone >= oldest);
        }
    }

    /// Notes which pools are made of a MachineConfig no more, and which are again,
    /// when it is another one or gone. A pool need not say what was rendered for it.
    pub fn note_lost(&mut self, name: &str, before: Option<&ConfigMeta>, at: i64) {
        let now = self.configs.get(name).cloned();
        for (pool, it) in &self.pools {
            if now.as_ref().is_some_and(|now| it.is_made_of(now)) {
                if self.lost.get(pool).is_some_and(|lost| lost.contains_key(name))
                    && let Some(lost) = Arc::make_mut(&mut self.lost).get_mut(pool)
                {
                    lost.remove(name);
                }
            } else if before.is_some_and(|before| it.is_made_of(before)) {
                let lost = Arc::make_mut(&mut self.lost).entry(pool.clone()).or_default();
                lost.insert(name.to_owned(), at);
            }
        }
    }

    /// Forgets MachineConfigs that pools lost before their last rollout ended.
    pub fn forget_lost(&mut self) {
        let Cluster { lost, pools, configs, .. } = self;
        if lost.is_empty() {
            return;
        }
        Arc::make_mut(lost).retain(|pool, lost| {
            let Some(pool) = pools.get(pool) else { return false };
            let settled = pool.settled.as_ref().or(pool.target.as_ref());
            let settled = settled.and_then(|it| configs.get(&it.name));
            lost.retain(|_, at| settled.is_none_or(|settled| *at >= settled.created));
            !lost.is_empty()
        });
    }

    /// The cluster as it will be after a change.
    #[must_use]
    pub fn with(&self, change: &Edit) -> Cluster {
        let mut after = self.clone();
        match change {
            Edit::MachineConfig { name, labels, body } => {
                let before = self.configs.get(name);
                let config = ConfigMeta {
                    labels: labels.clone(),
                    modified: i64::MAX,
                    created: before.map_or(i64::MAX, |before| before.created),
                    generated_by: before.and_then(|before| before.generated_by.clone()),
                    ..ConfigMeta::default()
                };
                after.configs.insert(name.as_str(), Arc::new(config));
                let piece = Piece::given(name.clone(), Arc::clone(body));
                after.incoming.insert(name.clone(), piece);
                after.note_lost(name, before.map(Arc::as_ref), i64::MAX);
            }
            Edit::NoMachineConfig(name) => {
                let before = after.configs.remove(name);
                after.note_lost(name, before.as_deref(), i64::MAX);
            }
            Edit::Mirror(key, body) => {
                let created = self.mirrors.get(key).map_or(i64::MAX, |before| before.created);
                let mirror = Mirror { created, modified: i64::MAX, body: Arc::clone(body) };
                after.mirrors.insert(key.clone(), Arc::new(mirror));
            }
            Edit::NoMirror(key) => {
                after.mirrors.remove(key);
                after.gone_mirrors.insert(key.clone(), i64::MAX);
            }
        }
        after
    }
}
