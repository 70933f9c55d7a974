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
use tread_cluster::previews::Cluster;
use tread_kube::api::{MachineConfig, MachineConfigPool};
use tread_kube::asking::{Backoff, Call, CallOutcome, Failed, ask};
use tread_model::digest::Digest;
use tread_model::read::Input;
use tread_model::rendering::{self, Rendered, Unrendered};

const CONFIGS: &str = "machineconfigs";
const POOLS: &str = "machineconfigpools";
/// How long is waited after something could not be read, at first and at most.
const WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// What a pool is to have, or why that cannot be made.
pub(crate) type Made = Result<Arc<ToHave>, NotMade>;

/// What a pool is to have.
#[derive(Debug, PartialEq)]
pub(crate) struct ToHave {
    pub(crate) name: String,
    pub(crate) digest: Digest,
    /// The MachineConfig, as JSON.
    object: String,
    /// The MachineConfigs that it is made of, in the order in which they are merged.
    sources: Vec<String>,
}

#[cfg(test)]
impl ToHave {
    /// One of this name.
    pub(crate) fn named(name: &str) -> ToHave {
        ToHave {
            name: name.to_owned(),
            digest: Digest([1; 32]),
            object: String::new(),
            sources: vec!["00-source".to_owned()],
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

/// What was rendered for each pool, and of what.
#[derive(Debug, Default)]
struct Renderer {
    made: BTreeMap<String, (String, MadeOf, Made)>,
}

impl Renderer {
    /// Renders all pools that are made of something else than before; says whether all of it
    /// could be read.
    async fn render(&mut self, settings: &Settings, cluster: &Cluster) -> bool {
        let mut is_whole = true;
        self.made.retain(|name, _| cluster.pools.contains_key(name));
        for (name, pool) in &cluster.pools {
            let made_of = match settings.previewer.made_of(pool, cluster).await {
                Ok(made_of) => made_of,
                Err(error) => {
                    is_whole = false;
                    // What was made before still stands.
                    let why = NotMade { word: "NotRead", why: error.to_string() };
                    self.made.entry(name.clone()).or_insert_with(|| {
                        let nothing = MadeOf { configs: Vec::new(), mirrors: Vec::new() };
                        (String::new(), nothing, Err(why))
                    });
                    continue;
                }
            };
            let known = self.made.get(name);
            if known.is_some_and(|(uid, of, _)| *uid == pool.uid && *of == made_of) {
                continue;
            }
            let made = rendered(pool, cluster, made_of.clone()).await;
            if let Err(not_made) = &made {
                tracing::warn!(pool = name, why = not_made.why, "its config cannot be made");
            }
            self.made.insert(name.clone(), (pool.uid.clone(), made_of, made));
        }
        is_whole
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
    backoff: Backoff,
}

impl Default for Rendering {
    fn default() -> Rendering {
        Rendering {
            tasks: JoinSet::new(),
            renderer: Some(Renderer::default()),
            made: BTreeMap::new(),
            due: None,
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

    /// That something changed: what changes until then is rendered together.
    pub(crate) fn soon(&mut self, wait: Duration) {
        self.due = Some(Instant::now() + wait);
    }

    pub(crate) fn begin_if_due(&mut self, settings: &Settings, cluster: &Cluster) {
        if self.due.is_none_or(|due| due > Instant::now()) {
            return;
        }
        let Some(mut renderer) = self.renderer.take() else { return };
        self.due = None;
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
        let made = renderer.made.iter().map(|(pool, (.., made))| (pool.clone(), made.clone()));
        if is_whole || !renderer.made.is_empty() {
            self.made = made.collect();
        }
        self.renderer = Some(renderer);
    }
}

async fn rendered(pool: &Arc<Pool>, cluster: &Cluster, made_of: MadeOf) -> Made {
    let sources = tread_cluster::pools::sources(pool, &cluster.configs);
    let sources = sources.into_iter().map(str::to_owned).collect();
    let pool = Arc::clone(pool);
    let rendering = tokio::task::spawn_blocking(move || render(&pool, &made_of));
    match rendering.await {
        Ok(Ok(Rendered { name, object, digest, .. })) => {
            Ok(Arc::new(ToHave { name, digest, object: object.to_string(), sources }))
        }
        Ok(Err(error)) => Err(NotMade { word: error.word(), why: error.to_string() }),
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
/// version of it that was known when that was decided.
pub(crate) async fn deliver(
    settings: &Settings,
    pool: &Pool,
    cluster: &Cluster,
    made: &ToHave,
) -> Result<(), Failed> {
    let metrics = &settings.acts.metrics;
    if !cluster.configs.contains_key(&made.name) {
        let api: Api<MachineConfig> = Api::all(settings.acts.client.clone());
        let call = Call::new("create", CONFIGS);
        let object = serde_json::from_str(&made.object)
            .map_err(|error| call.clone().refused(error.to_string()))?;
        match ask(metrics, call, api.create(&PostParams::default(), &object)).await {
            // It has this name by what it says.
            Err(failed) if failed.outcome != CallOutcome::Conflict => return Err(failed),
            _ => {}
        }
    }
    let is_named = pool.target.as_ref().is_some_and(|target| {
        target.name == made.name
            && target.sources.len() == made.sources.len()
            && made.sources.iter().all(|name| target.sources.contains(name))
    });
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
