//! What machines are served that boot for the first time.

use super::super::facts::Facts;
use super::super::known::Known;
use super::super::settings::Settings;
use super::super::time::Asking;
use super::bootstrap::{self, Flaw};
use super::choose::{chosen, is_of};
use super::fetches::{self, Missing, Served};
use super::first_boot;
use super::kept::{self, Fetched, Record, Until};
use super::noting::Noting;
use super::report::{self, News};
use super::secrets::Held;
use futures::future::{BoxFuture, FutureExt as _, join_all};
use futures::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::runtime::watcher::Config;
use kube::{Api, ResourceExt};
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{Semaphore, watch};
use tokio::time::sleep;
use tread_cluster::index::{Kept, keep};
use tread_kube::watching::follow;
use tread_model::digest::Digest;
use tread_model::joining::first_boot::FirstBoot;
use tread_model::joining::{
    self, Claim, Id, KEYS_SECRET as KEYS, Key, Mark, SKEW, TOKENS_SECRET as TOKENS, Tokens,
    Unserved, needs_agent, served,
};

/// A config that is served is kept for so much longer than asked, so that it is noted once an hour.
const SLACK: u64 = 3600;
/// So long a node is waited for that registers at the last moment, in seconds: its claim has to be
/// looked at, and bound.
const SETTLES: u64 = 300;
/// So often it is asked what time it is: a replica that does not lead may hear it nowhere else.
const TIME_AGAIN: Duration = Duration::from_secs(3600);
/// So many texts are kept, of megabytes each at most: pools that boot at the same time.
const TEXTS: usize = 16;
/// So many are made at a time.
const MADE_AT_A_TIME: usize = 2;

/// What one machine boots with: the same for all but the claim.
#[derive(Clone)]
pub struct Boots {
    /// What stands before the claim.
    pub head: Arc<[u8]>,
    /// What its node registers with.
    pub claim: String,
    /// What follows.
    pub tail: Arc<[u8]>,
    /// Of which pool, which claim, and when.
    fetch: (Mark, Id, u64),
}

/// Why a machine is served nothing.
#[derive(Debug, thiserror::Error)]
pub enum NotServed {
    /// Asking again may help.
    #[error("{0}; ask again")]
    NotYet(String),
    /// Somebody has to do something.
    #[error(transparent)]
    Unserved(#[from] Unserved),
}

pub(super) type Pools = BTreeMap<String, Tokens>;

/// What is known for joining, and what machines boot with. Clones share everything.
#[derive(Clone)]
pub struct Joining {
    pub(super) settings: Settings,
    pub(super) known: Known,
    pub(super) news: News,
    pub(super) keys: Kept<String, Arc<Held<Vec<Key>>>>,
    pub(super) tokens: Kept<String, Arc<Held<Pools>>>,
    pub(super) record: Kept<String, Arc<Record>>,
    /// The kubeconfig by which kubelets register.
    bootstrap: Kept<String, Result<Arc<str>, Flaw>>,
    texts: Arc<Mutex<Vec<(Asked, Text)>>>,
    making: Arc<Semaphore>,
    noting: Arc<Noting>,
    noted: Served,
    /// Machines that registered no node, as far as this replica leads.
    pub(super) missing: Arc<watch::Sender<Missing>>,
    /// The token that whoever asks has shown.
    token: Arc<str>,
}

/// What a text is made for.
#[derive(Clone, PartialEq, Eq)]
struct Asked {
    pool: String,
    config: String,
    minor: Option<u8>,
    bootstrap: Option<Arc<str>>,
    first_boot: Option<FirstBoot>,
}

/// It holds the kubeconfig by which kubelets register, and the pool's token.
impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Asked { pool, config, minor, .. } = self;
        let mut shown = f.debug_struct("Asked");
        shown.field("pool", pool).field("config", config).field("minor", minor);
        shown.finish_non_exhaustive()
    }
}

#[derive(Clone)]
struct Text {
    head: Arc<[u8]>,
    tail: Arc<[u8]>,
    /// Whether the config has what Ignition cannot bring.
    needs_agent: bool,
}

/// It holds all that a machine boots with.
impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.head.len() + self.tail.len();
        f.debug_struct("Text").field("bytes", &bytes).finish_non_exhaustive()
    }
}

impl Joining {
    /// Begins to watch; what watches and tells, for as long as it is polled.
    pub(super) fn start(settings: &Settings, known: &Known) -> (Joining, BoxFuture<'static, ()>) {
        let mut tasks: Vec<BoxFuture<'static, ()>> = Vec::new();
        let named = |name: &str| Config::default().fields(&format!("metadata.name={name}"));
        let secrets = || -> Api<Secret> {
            Api::namespaced(settings.acts.client.clone(), &settings.acts.namespace)
        };
        let metrics = &settings.acts.metrics;
        let watched =
            |name: &str| follow(secrets(), named(name), "secrets", &settings.watches, metrics);
        let (keys, task) =
            keep(watched(KEYS), ResourceExt::name_any, |it| Arc::new(Held::of(KEYS, &it)));
        tasks.push(task.boxed());
        let (tokens, task) =
            keep(watched(TOKENS), ResourceExt::name_any, |it| Arc::new(Held::of(TOKENS, &it)));
        tasks.push(task.boxed());
        let bootstrap = watched(&settings.joining.bootstrap);
        let (bootstrap, task) = keep(bootstrap, ResourceExt::name_any, |it| bootstrap::read(&it));
        tasks.push(task.boxed());
        let maps: Api<ConfigMap> =
            Api::namespaced(settings.acts.client.clone(), &settings.acts.namespace);
        let maps = follow(maps, named(kept::NAME), "configmaps", &settings.watches, metrics);
        let (record, task) = keep(maps, ResourceExt::name_any, |it| Arc::new(Record::of(it)));
        tasks.push(task.boxed());
        let (news, queue) = News::new();
        let (noted, to_note) = Served::new();
        let joining = Joining {
            news,
            settings: settings.clone(),
            known: known.clone(),
            keys,
            tokens,
            record,
            bootstrap,
            texts: Arc::default(),
            making: Arc::new(Semaphore::new(MADE_AT_A_TIME)),
            noting: Arc::default(),
            noted,
            missing: Arc::default(),
            token: Arc::default(),
        };
        let record = joining.record.clone();
        tasks.push(fetches::note(settings.acts.clone(), record, to_note).boxed());
        tasks.push(report::write(settings.clone(), known.updates().clone(), queue).boxed());
        tasks.push(keep_time(settings.clone()).boxed());
        (joining, join_all(tasks).map(drop).boxed())
    }

    /// The kubeconfig by which kubelets register, or why there is none. None: nobody knows yet.
    pub(super) fn bootstrap(&self) -> Option<Result<Arc<str>, Flaw>> {
        self.bootstrap.now().map(|all| one(&all).unwrap_or(Err(Flaw::NoSecret)))
    }

    /// Whenever that changes.
    pub(super) fn bootstraps(&self) -> impl Stream<Item = ()> + Send + use<> {
        self.bootstrap.moments().map(drop)
    }

    /// What is kept; nothing where it is not there yet. None: nobody knows yet.
    pub(super) fn record(&self) -> Option<Option<Arc<Record>>> {
        self.record.now().map(|all| one(&all))
    }

    /// The configs that claims may still name. None: nobody knows yet.
    pub(crate) fn served(&self) -> Option<Vec<String>> {
        let record = self.record()?;
        let nodes = self.known.nodes().now()?;
        let joins = |node: &str| nodes.get(node).is_some_and(|it| it.joins.is_some());
        let now = self.seconds();
        Some(record.iter().flat_map(|record| record.served(now, joins)).cloned().collect())
    }

    /// The config that the machine of a node booted with, where it has not registered again since.
    pub(crate) fn booted(&self, node: &str, uid: &str) -> Option<String> {
        let record = self.record()??;
        let mark = record.booted(node, uid)?;
        let cluster = self.settings.previewer.snapshot();
        let is_it = |name: &&Arc<str>| Mark::of_config(name) == mark;
        cluster.configs.keys().find(is_it).map(ToString::to_string)
    }

    /// Whether a config was rendered for this pool.
    pub(crate) fn is_of(&self, pool: &str, config: &str) -> bool {
        let cluster = self.settings.previewer.snapshot();
        cluster.pools.get(pool).is_some_and(|pool| is_of(pool, config, &cluster.configs))
    }

    /// The API server's time, in seconds since 1970; before its first answer that of this machine's clock.
    pub(super) fn seconds(&self) -> u64 {
        let own = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.settings.acts.clock.now().map_or_else(own, |now| now.0).as_secs()
    }

    /// Whether a token is one of this pool's; none as long as that is not known. It takes as long
    /// where there is no such pool.
    pub fn admit(&self, pool: &str, token: &str) -> Option<bool> {
        if !self.settings.previewer.is_ready() {
            return None;
        }
        let tokens = self.tokens.now()?;
        let held = one(&tokens)?;
        let tokens = held.read.as_ref().ok()?.get(pool);
        let cluster = self.settings.previewer.snapshot();
        let known = cluster.pools.get(pool);
        let is_of = |tokens: &Tokens| known.is_some_and(|pool| pool.uid == tokens.pool);
        // Where the API server does not know the kind of pools for a moment, there seems to be none.
        let may_come = cluster.pools.is_empty();
        match tokens.filter(|tokens| may_come || is_of(tokens)) {
            Some(tokens) if may_come => (!tokens.admit(token)).then_some(false),
            Some(tokens) => Some(tokens.admit(token)),
            None => {
                let _ = Tokens::fresh("", [0; 32]).admit(token);
                Some(false)
            }
        }
    }

    /// The same for whoever has shown this token of a pool: its machine reports by it.
    #[must_use]
    pub fn shown(&self, token: &str) -> Joining {
        Joining { token: Arc::from(token), ..self.clone() }
    }

    /// What a machine of a pool boots with that reads version 3.`minor` of Ignition's configs.
    pub async fn serve(&self, pool: &str, minor: Option<u8>) -> Result<Boots, NotServed> {
        let not_yet = |what: &str| NotServed::NotYet(what.to_owned());
        let keys = self.keys.now().and_then(|all| one(&all));
        let keys = keys.ok_or_else(|| not_yet("there is no key to sign claims with yet"))?;
        let key = keys.read.as_ref().map_err(|why| NotServed::NotYet(why.clone()))?.first();
        let key = key.ok_or_else(|| not_yet("there is no key to sign claims with"))?;
        let updates =
            self.known.updates().now().ok_or_else(|| not_yet("nodes are not known yet"))?;
        let cluster = self.settings.previewer.snapshot();
        let of = cluster.pools.get(pool).ok_or_else(|| not_yet("the pool is gone"))?;
        let nodes = self.known.nodes().now().ok_or_else(|| not_yet("nodes are not known yet"))?;
        let config = chosen(of, &cluster, &nodes, &updates);
        let config = config.ok_or_else(|| {
            not_yet("the pool has no config yet; its Rollout says why none can be made")
        })?;
        let first_boots = self.settings.joining.first_boots.as_ref();
        let first_boot = first_boot::first_boot(first_boots, pool, &self.token);
        let first_boot = first_boot.ok_or_else(|| not_yet(first_boot::NOT_YET))?;
        let bootstrap = self
            .bootstrap()
            .ok_or_else(|| not_yet("what kubelets register with is not known yet"))?;
        let bootstrap = bootstrap.ok();
        let asked = Asked { pool: pool.to_owned(), config, minor, bootstrap, first_boot };
        let text = self.text(&asked).await?;
        // Nodes are dated by it too, whatever this machine's own clock says.
        let now = self.settings.acts.clock.now();
        let now = now.ok_or_else(|| not_yet("the API server has not said yet what time it is"))?;
        let now = now.0.as_secs();
        self.note(&asked.config, text.needs_agent, now).await?;
        let id = getrandom::u64().map_err(|error| NotServed::NotYet(error.to_string()))?;
        let claim = Claim {
            pool: Mark::of_pool(&of.uid),
            config: Mark::of_config(&asked.config),
            issued: now,
            id: Id(id.to_be_bytes()),
        };
        let fetch = (claim.pool, claim.id, now);
        Ok(Boots { head: text.head, claim: claim.signed(key), tail: text.tail, fetch })
    }

    /// That a machine was served this: if it registers no node, that is told of.
    pub fn fetched(&self, boots: &Boots, from: IpAddr) {
        let (pool, id, at) = boots.fetch;
        let fetched = Fetched { pool: pool.to_string(), from: from.to_string(), at };
        self.noted.note(id.to_string(), fetched);
    }

    /// Machines that registered no node, by pool.
    pub(crate) fn missing(&self) -> watch::Receiver<Missing> {
        self.missing.subscribe()
    }

    /// Notes that the config may be asked for until claims for it end: nobody removes it before.
    async fn note(&self, config: &str, needs_agent: bool, now: u64) -> Result<(), NotServed> {
        let ends = ends(now, self.settings.joining.lasts);
        let until = Until { at: ends + SLACK, needs_agent };
        let is_noted = || {
            let known = self.record.now().and_then(|all| one(&all));
            let known = known.and_then(|record| record.until(config));
            known.is_some_and(|it| it.at >= ends && it.needs_agent == needs_agent)
        };
        let write = || kept::note_served(&self.settings.acts, config, until);
        let noted = self.noting.once(config, until, is_noted, write).await;
        noted.map_err(NotServed::NotYet)
    }

    async fn text(&self, asked: &Asked) -> Result<Text, NotServed> {
        if let Some(text) = self.known_text(asked) {
            return Ok(text);
        }
        let not_yet = |why: String| NotServed::NotYet(why);
        let _turn = self.making.acquire().await;
        // Of many who ask for the same, one makes it.
        if let Some(text) = self.known_text(asked) {
            return Ok(text);
        }
        let body = self.settings.previewer.body(&asked.config).await;
        let body = body.map_err(|why| not_yet(why.to_string()))?;
        let made = {
            let (asked, kubelet) = (asked.clone(), self.settings.joining.kubelet.clone());
            tokio::task::spawn_blocking(move || text(&asked, &kubelet, &body)).await
        };
        let text = made.map_err(|_| not_yet("it was interrupted".to_owned()))??;
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        if texts.len() >= TEXTS {
            texts.remove(0);
        }
        texts.push((asked.clone(), text.clone()));
        Ok(text)
    }

    fn known_text(&self, asked: &Asked) -> Option<Text> {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let at = texts.iter().position(|(known, _)| known == asked)?;
        // The one that was asked for last goes last.
        let found = texts.remove(at);
        let text = found.1.clone();
        texts.push(found);
        Some(text)
    }
}

/// Asks what time it is where the last answer is old, for as long as it is polled.
async fn keep_time(settings: Settings) {
    let mut asking = Asking::default();
    loop {
        tokio::select! {
            () = asking.ended() => {}
            () = sleep(TIME_AGAIN) => asking.ask_if_old(&settings),
        }
    }
}

fn text(asked: &Asked, kubelet: &str, body: &[u8]) -> Result<Text, NotServed> {
    let unread = || NotServed::NotYet(format!("{} cannot be read", asked.config));
    let mut object: serde_json::Value = serde_json::from_slice(body).map_err(|_| unread())?;
    let spec = object.get_mut("spec").ok_or_else(unread)?;
    first_boot::add(spec, &asked.config, asked.first_boot.as_ref())?;
    let digest = digest(&asked.config, body).ok_or_else(unread)?;
    let boots = joining::Boots {
        pool: &asked.pool,
        config: &asked.config,
        digest,
        spec,
        kubelet,
        bootstrap: asked.bootstrap.as_deref(),
    };
    let text = served(&boots, asked.minor)?;
    let (head, tail) = (text.head.into_bytes().into(), text.tail.into_bytes().into());
    Ok(Text { head, tail, needs_agent: needs_agent(spec) })
}

/// Until when a node may join by a claim that is made now, so that what is noted of its config counts:
/// whether only an agent brings it.
fn ends(now: u64, lasts: Duration) -> u64 {
    now.saturating_add(lasts.as_secs()).saturating_add(SKEW).saturating_add(SETTLES)
}

/// The digest of what a config says of a node.
pub(crate) fn digest(name: &str, body: &[u8]) -> Option<Digest> {
    use tread_model::read::{Input, side_in_order};
    let side = side_in_order(name, &[Input { name, bytes: body }]).ok()?;
    Some(tread_model::config_digest::digests(&side.config).ok()?.config)
}

/// The only object of a kind.
pub(super) fn one<V: Clone>(all: &BTreeMap<String, V>) -> Option<V> {
    all.values().next().cloned()
}

/// When a node registered, in seconds since 1970.
pub(super) fn registered(facts: &Facts) -> u64 {
    facts.created.0.as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tread_model::joining::{Determined, Labels, PoolFacts, Settled, settle};

    #[test]
    fn what_is_noted_of_a_config_counts_as_long_as_a_node_joins_by_a_claim_for_it() {
        let (key, issued, lasts) = (Key::of([1; 32]), 1_800_000_000, Duration::from_secs(86_400));
        let claim = Claim {
            pool: Mark::of_pool("uid"),
            config: Mark::of_config("rendered"),
            issued,
            id: Id([7; 8]),
        };
        let (claim, labels) = (claim.signed(&key), Labels::new());
        let joins = |registered: u64| {
            let facts = joining::Facts { node: "n", registered, claim: &claim, labels: &labels };
            let name = "infra".to_owned();
            let pool = PoolFacts { name: name.clone(), labels: Ok(Determined::default()) };
            let keys = std::slice::from_ref(&key);
            let settled = settle(&facts, keys, lasts, |_| None, |_| Some(pool), |_| Ok(vec![name]));
            matches!(settled, Settled::Joins(_))
        };
        let last = issued + lasts.as_secs() + SKEW;
        assert!(joins(last) && !joins(last + 1));
        let until = Until { at: ends(issued, lasts), needs_agent: true };
        let object = json!({"data": {"served.rendered": until.to_string()}});
        let record = Record::of(serde_json::from_value(object).unwrap());
        let counts = |now: u64| record.served(now, |_| false).any(|it| it == "rendered");
        assert!(counts(last) && counts(last + SETTLES - 1));
    }
}
