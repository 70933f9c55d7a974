//! The config that each pool is to have: rendered by each replica, the same by all, and written
//! by the one that leads.

use super::settings::Settings;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tread_cluster::plans::MadeOf;
use tread_cluster::pools::Pool;
use tread_cluster::previews::{BodyKey, Cluster};
use tread_kube::api::conditions::cut;
use tread_kube::api::{MachineConfig, MachineConfigPool};
use tread_kube::asking::{Backoff, Call, CallOutcome, Failed, ask};
use tread_model::digest::Digest;
use tread_model::read::Input;
use tread_model::rendering::{self, Rendered, Unrendered};

const CONFIGS: &str = "machineconfigs";
const POOLS: &str = "machineconfigpools";
/// How long is waited after something could not be read, at first and at most.
const WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// Changes that go on are rendered after so many times what is waited after one.
const MOST_WAITS: u32 = 6;
/// How many bytes of what is still to be written are kept, of all pools together: of forty pools
/// that are as large as can be.
const ROOM: usize = 64 << 20;
/// The longest sentence on why something cannot be made: a condition holds it.
const LONGEST_WHY: usize = 8 << 10;

/// What a pool is to have, or why that cannot be made.
pub(crate) type Made = Result<Arc<ToHave>, NotMade>;

/// What a pool is to have.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToHave {
    pub(crate) name: String,
    pub(crate) digest: Digest,
    /// The MachineConfig, as JSON, as long as it is not in the cluster and there is room for it.
    object: Option<String>,
    /// The MachineConfigs that it is made of, in the order in which they are merged.
    sources: Vec<String>,
    of: MadeOfVersions,
}

/// What a pool is made of, by versions.
#[derive(Debug, Clone, Default, PartialEq)]
struct MadeOfVersions {
    configs: Vec<BodyKey>,
    mirrors: Vec<Arc<[u8]>>,
}

impl MadeOfVersions {
    fn of(pool: &Pool, cluster: &Cluster) -> MadeOfVersions {
        let names = tread_cluster::pools::sources(pool, &cluster.configs);
        MadeOfVersions {
            configs: names.into_iter().filter_map(|name| cluster.configs.key(name)).collect(),
            mirrors: cluster.mirrors.values().map(|it| Arc::clone(&it.body)).collect(),
        }
    }
}

#[cfg(test)]
impl ToHave {
    /// One of this name.
    pub(crate) fn named(name: &str) -> ToHave {
        ToHave {
            name: name.to_owned(),
            digest: Digest([1; 32]),
            object: None,
            sources: vec!["00-source".to_owned()],
            of: MadeOfVersions::default(),
        }
    }
}

/// Why the config of a pool could not be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotMade {
    /// A word for it, as conditions have.
    pub(crate) word: &'static str,
    /// A sentence.
    pub(crate) why: String,
}

/// What was rendered for a pool, and of what: of that, which may be large, a digest is kept.
#[derive(Debug)]
struct Known {
    uid: String,
    /// Nothing where it could not be read.
    of: Option<Digest>,
    made: Made,
}

impl Known {
    /// Whether all of it is known that has to be written.
    fn is_whole(&self, is_there: impl Fn(&str) -> bool) -> bool {
        self.made.as_ref().map_or(true, |made| made.object.is_some() || is_there(&made.name))
    }
}

/// What was rendered for each pool.
#[derive(Debug, Default)]
struct Renderer {
    made: BTreeMap<String, Known>,
}

impl Renderer {
    /// Renders all pools that are made of something else than before; says whether all of it
    /// could be read.
    async fn render(&mut self, settings: &Settings, cluster: &Cluster) -> bool {
        let mut is_whole = true;
        let is_there = |name: &str| cluster.configs.contains_key(name);
        self.made.retain(|name, _| cluster.pools.contains_key(name));
        for (name, pool) in &cluster.pools {
            // What it is made of is not known.
            if let Some(why) = &pool.unread {
                let why = cut(format!("the pool cannot be read: {why}"), LONGEST_WHY);
                let made = Err(NotMade { word: "NotRead", why });
                self.made.insert(name.clone(), Known { uid: String::new(), of: None, made });
                continue;
            }
            let made_of = match settings.previewer.made_of(pool, cluster).await {
                Ok(made_of) => made_of,
                Err(error) => {
                    is_whole = false;
                    // What was made before still stands.
                    let why = NotMade { word: "NotRead", why: error.to_string() };
                    let known = Known { uid: String::new(), of: None, made: Err(why) };
                    self.made.entry(name.clone()).or_insert(known);
                    continue;
                }
            };
            let of = Some(Digest::of_value(&(&made_of.configs, &made_of.mirrors)));
            let known = self.made.get_mut(name).filter(|it| it.uid == pool.uid && it.of == of);
            let is_known = known.is_some();
            if let Some(known) = known.filter(|known| known.is_whole(is_there)) {
                // Its sources may have been written, and say the same.
                let now = MadeOfVersions::of(pool, cluster);
                if let Some(made) = known.made.as_mut().ok().filter(|made| made.of != now) {
                    Arc::make_mut(made).of = now;
                }
                continue;
            }
            let made = rendered(pool, cluster, made_of).await;
            if let (Err(not_made), false) = (&made, is_known) {
                tracing::warn!(pool = name, why = not_made.why, "its config cannot be made");
            }
            self.made.insert(name.clone(), Known { uid: pool.uid.clone(), of, made });
            self.forget_written(is_there, ROOM);
        }
        self.forget_written(is_there, ROOM);
        is_whole
    }

    /// Drops the text of each config that is in the cluster, and of those for which there is no
    /// room: these are rendered again once others were written.
    fn forget_written(&mut self, is_there: impl Fn(&str) -> bool, room: usize) {
        let mut left = room;
        for known in self.made.values_mut() {
            let Ok(made) = &mut known.made else { continue };
            let Some(object) = &made.object else { continue };
            match left.checked_sub(object.len()).filter(|_| !is_there(&made.name)) {
                Some(rest) => left = rest,
                None => Arc::make_mut(made).object = None,
            }
        }
    }
}

/// Who renders, one task at a time, and what was rendered last.
pub(crate) struct Rendering {
    tasks: JoinSet<(Renderer, bool)>,
    /// Not here while it renders.
    renderer: Option<Renderer>,
    made: BTreeMap<String, Made>,
    /// When the pools are rendered again.
    due: Option<Instant>,
    /// When the first of all changes was that are waiting for that.
    changed: Option<Instant>,
    backoff: Backoff,
}

impl Default for Rendering {
    fn default() -> Rendering {
        Rendering {
            tasks: JoinSet::new(),
            renderer: Some(Renderer::default()),
            made: BTreeMap::new(),
            due: None,
            changed: None,
            backoff: Backoff::new(WAITS),
        }
    }
}

impl Rendering {
    pub(crate) fn made(&self) -> &BTreeMap<String, Made> {
        &self.made
    }

    /// When it is to begin, unless it renders.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due.filter(|_| self.renderer.is_some())
    }

    /// That something changed: what changes until then is rendered together, and waits no longer
    /// where changes do not end.
    pub(crate) fn soon(&mut self, now: Instant, wait: Duration) {
        let first = *self.changed.get_or_insert(now);
        self.due = Some((now + wait).min(first + wait * MOST_WAITS));
    }

    pub(crate) fn begin_if_due(&mut self, settings: &Settings, cluster: &Cluster) {
        if self.due.is_none_or(|due| due > Instant::now()) {
            return;
        }
        let Some(mut renderer) = self.renderer.take() else { return };
        (self.due, self.changed) = (None, None);
        let (settings, cluster) = (settings.clone(), cluster.clone());
        self.tasks.spawn(async move {
            let is_whole = renderer.render(&settings, &cluster).await;
            (renderer, is_whole)
        });
    }

    /// Notes what was rendered, as soon as it is.
    pub(crate) async fn ended(&mut self) {
        let Some(joined) = self.tasks.join_next().await else {
            return std::future::pending().await;
        };
        // What was rendered is lost with an interrupted task, and what was made of it stands.
        let (renderer, is_whole) = joined.unwrap_or_default();
        if is_whole {
            self.backoff.reset();
        } else {
            let again = Instant::now() + self.backoff.next_wait();
            self.due = Some(self.due.map_or(again, |due| due.min(again)));
        }
        let made = renderer.made.iter().map(|(pool, known)| (pool.clone(), known.made.clone()));
        if is_whole || !renderer.made.is_empty() {
            self.made = made.collect();
        }
        self.renderer = Some(renderer);
    }
}

async fn rendered(pool: &Arc<Pool>, cluster: &Cluster, made_of: MadeOf) -> Made {
    let sources = tread_cluster::pools::sources(pool, &cluster.configs);
    let sources = sources.into_iter().map(str::to_owned).collect();
    let of = MadeOfVersions::of(pool, cluster);
    let pool = Arc::clone(pool);
    let rendering = tokio::task::spawn_blocking(move || render(&pool, &made_of));
    match rendering.await {
        Ok(Ok(Rendered { name, object, digest, .. })) => {
            let object = Some(object.to_string());
            Ok(Arc::new(ToHave { name, digest, object, sources, of }))
        }
        Ok(Err(error)) => {
            Err(NotMade { word: error.word(), why: cut(error.to_string(), LONGEST_WHY) })
        }
        Err(_) => Err(NotMade {
            word: "Interrupted",
            why: "rendering it was interrupted; please report it with these MachineConfigs"
                .to_owned(),
        }),
    }
}

fn render(pool: &Pool, made_of: &MadeOf) -> Result<Rendered, Unrendered> {
    fn inputs(all: &[(String, Arc<[u8]>)]) -> Vec<Input<'_>> {
        all.iter().map(|(name, bytes)| Input { name, bytes }).collect()
    }
    let of = rendering::Pool { name: &pool.name, uid: &pool.uid };
    rendering::render(&of, &inputs(&made_of.configs), &inputs(&made_of.mirrors))
}

/// Writes what a pool is to have: the MachineConfig, and then the pool that names it, onto the
/// version of it that was known when that was decided. What was made of something else than the pool
/// is made of now is not written: another replica may have made, and written, what is newer.
pub(crate) async fn deliver(
    settings: &Settings,
    pool: &Pool,
    cluster: &Cluster,
    made: &ToHave,
) -> Result<(), Failed> {
    let is_there = cluster.configs.contains_key(&made.name);
    let is_named = pool.target.as_ref().is_some_and(|target| {
        target.name == made.name
            && target.sources.len() == made.sources.len()
            && made.sources.iter().all(|name| target.sources.contains(name))
    });
    if is_there && is_named || made.of != MadeOfVersions::of(pool, cluster) {
        return Ok(());
    }
    let metrics = &settings.acts.metrics;
    if !is_there {
        let api: Api<MachineConfig> = Api::all(settings.acts.client.clone());
        let call = Call::new("create", CONFIGS);
        // It is rendered again, and then written.
        let Some(object) = &made.object else { return Ok(()) };
        let object = serde_json::from_str(object)
            .map_err(|error| call.clone().refused(error.to_string()))?;
        match ask(metrics, call, api.create(&PostParams::default(), &object)).await {
            // It has this name by what it says.
            Err(failed) if failed.outcome != CallOutcome::Conflict => return Err(failed),
            _ => {}
        }
    }
    if is_named {
        return Ok(());
    }
    let patch = Patch::Merge(names(pool, made));
    let api: Api<MachineConfigPool> = Api::all(settings.acts.client.clone());
    let params = PatchParams::default();
    let call = Call::new("patch", POOLS);
    ask(metrics, call, api.patch(&pool.name, &params, &patch)).await?;
    tracing::info!(pool = pool.name, config = made.name, "the pool is to have this config");
    Ok(())
}

/// By which a pool names its config.
fn names(pool: &Pool, made: &ToHave) -> Value {
    let source = |name: &String| {
        json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
            "name": name})
    };
    let source: Vec<Value> = made.sources.iter().map(source).collect();
    json!({
        "metadata": {"uid": pool.uid, "resourceVersion": pool.version},
        "spec": {"configuration": {"name": made.name, "source": source}},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_pools_are_to_have_only_so_much_text_is_kept_as_is_still_to_be_written() {
        let made = |pool: &str, bytes: usize| {
            let to_have = ToHave {
                object: Some("x".repeat(bytes)),
                ..ToHave::named(&format!("rendered-{pool}-1"))
            };
            Known { uid: "1".to_owned(), of: None, made: Ok(Arc::new(to_have)) }
        };
        let all = [("a", 40), ("b", 40), ("c", 40), ("d", 15)];
        let all = all.map(|(pool, bytes)| (pool.to_owned(), made(pool, bytes)));
        let mut renderer = Renderer { made: all.into() };
        let not = NotMade { word: "NotRead", why: "later".to_owned() };
        let not = Known { uid: "1".to_owned(), of: None, made: Err(not) };
        renderer.made.insert("e".to_owned(), not);
        let kept = |renderer: &Renderer| -> Vec<String> {
            let has = |known: &Known| known.made.as_ref().is_ok_and(|made| made.object.is_some());
            let made = renderer.made.iter().filter(|(_, known)| has(known));
            made.map(|(pool, _)| pool.clone()).collect()
        };
        let whole = |renderer: &Renderer, there: &str| -> Vec<String> {
            let made = renderer.made.iter();
            let made = made.filter(|(_, known)| known.is_whole(|name| name == there));
            made.map(|(pool, _)| pool.clone()).collect()
        };
        let first = "rendered-a-1";
        renderer.forget_written(|_| false, 100);
        assert_eq!(kept(&renderer), ["a", "b", "d"], "there is no room for another one");
        renderer.forget_written(|name| name == first, 100);
        assert_eq!(kept(&renderer), ["b", "d"], "the first one was written");
        // What has to be written without a text is rendered again, and nothing else is.
        assert_eq!(whole(&renderer, first), ["a", "b", "d", "e"]);
        // Somebody removed what was written.
        assert_eq!(whole(&renderer, ""), ["b", "d", "e"]);
        let names = renderer.made.values().filter_map(|known| known.made.as_ref().ok());
        assert_eq!(names.filter(|made| made.sources.len() == 1).count(), 4, "all else stays");
    }

    #[test]
    fn changes_that_do_not_end_are_rendered_all_the_same() {
        let (wait, mut rendering) = (Duration::from_secs(5), Rendering::default());
        let begun = Instant::now();
        rendering.soon(begun, wait);
        assert_eq!(rendering.due(), Some(begun + wait));
        for count in 1..=20 {
            rendering.soon(begun + Duration::from_secs(2) * count, wait);
        }
        assert_eq!(rendering.due(), Some(begun + wait * MOST_WAITS));
    }

    #[test]
    fn a_pool_is_written_onto_the_version_that_was_known() {
        let object = json!({"apiVersion": "machineconfiguration.openshift.io/v1",
            "kind": "MachineConfigPool",
            "metadata": {"name": "worker", "uid": "1", "resourceVersion": "41"}, "spec": {}});
        let object: MachineConfigPool = serde_json::from_value(object).unwrap();
        let written = names(&Pool::of(&object), &ToHave::named("rendered-worker-1"));
        assert_eq!(written["metadata"], json!({"uid": "1", "resourceVersion": "41"}));
        assert_eq!(written["spec"]["configuration"]["name"], "rendered-worker-1");
        assert_eq!(written["spec"]["configuration"]["source"][0]["name"], "00-source");
    }
}
