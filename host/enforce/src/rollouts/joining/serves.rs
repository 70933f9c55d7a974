//! Each pool says whether its machines get a kubeconfig to register with: the leader writes that
//! into the pool's Rollout.

use super::super::settings::Settings;
use super::bootstrap::{Flaw, SERVES, brings, found};
use super::run::maybe;
use super::serving::Joining;
use futures::{StreamExt as _, stream};
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;
use tread_cluster::pools::Pool;
use tread_kube::api::Rollout;
use tread_kube::api::conditions::{Finding, set};
use tread_kube::asking::{Backoff, Call, CallOutcome, ask};

/// What happens at the same time is told together.
const TOGETHER: Duration = Duration::from_millis(500);
/// How long is waited after a failure, at first and at most.
const WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// What was found before.
#[derive(Debug, Default)]
struct Before {
    /// None: nothing was logged yet.
    logged: Option<Option<Flaw>>,
    /// By its name, whether a config has a kubeconfig: what is rendered stays as it is.
    brings: BTreeMap<String, bool>,
}

/// Tells of it, as the leader, for as long as it is polled.
pub(super) async fn run(joining: Joining) {
    joining.settings.previewer.ready().await;
    let mut changes = stream::select_all([
        joining.bootstraps().boxed(),
        joining.known.rollouts().moments().map(drop).boxed(),
    ]);
    let mut pools = joining.settings.previewer.changes();
    let mut leads = joining.settings.leads.watch();
    let mut backoff = Backoff::new(WAITS);
    let mut before = Before::default();
    let mut due = Some(Instant::now());
    loop {
        let soon = || Some(Instant::now() + TOGETHER);
        tokio::select! {
            Some(()) = changes.next() => due = due.or_else(soon),
            Ok(()) = pools.changed() => due = due.or_else(soon),
            Ok(()) = leads.changed() => due = due.or_else(soon),
            () = maybe(due) => match look(&joining, &mut before).await {
                Ok(()) => {
                    backoff.reset();
                    due = None;
                }
                Err(why) => {
                    tracing::warn!(why, "pools cannot say whether machines get a kubeconfig");
                    due = Some(Instant::now() + backoff.next_wait());
                }
            }
        }
    }
}

async fn look(joining: &Joining, before: &mut Before) -> Result<(), String> {
    let settings = &joining.settings;
    if !settings.leads.now() {
        before.logged = None;
        return Ok(());
    }
    let (Some(bootstrap), Some(rollouts)) = (joining.bootstrap(), joining.known.rollouts().now())
    else {
        return Ok(());
    };
    // Where no machine is served nothing is to be said.
    let is_served = settings.joining.first_boots.is_some();
    let flaw = bootstrap.err();
    let named = (settings.acts.namespace.as_str(), settings.joining.bootstrap.as_str());
    if is_served && before.logged.replace(flaw) != Some(flaw) {
        match flaw {
            Some(flaw) => tracing::warn!(
                "machines that boot get no kubeconfig to register with, unless the config of their pool brings \
                 it: {}",
                flaw.says(named)
            ),
            None => tracing::info!(secret = named.1, "machines that boot get its kubeconfig"),
        }
    }
    let cluster = settings.previewer.snapshot();
    let target = |pool: &Pool| pool.target.as_ref().map(|it| it.name.clone());
    before.brings.retain(|name, _| cluster.configs.contains_key(name));
    // What cannot be read of one pool keeps nothing from the others.
    let mut done = Ok(());
    for (name, pool) in &cluster.pools {
        let Some(rollout) = rollouts.get(name) else { continue };
        let mut has = false;
        if let (true, Some(_), Some(config)) = (is_served, flaw, target(pool)) {
            match has_one(settings, before, &config).await {
                Ok(known) => has = known,
                Err(why) => {
                    done = done.and(Err(why));
                    continue;
                }
            }
        }
        let finding = is_served.then(|| found(flaw, has, named));
        done = done.and(say(settings, rollout, finding).await);
    }
    done
}

/// Whether a config has a kubeconfig itself.
async fn has_one(settings: &Settings, before: &mut Before, config: &str) -> Result<bool, String> {
    if let Some(known) = before.brings.get(config) {
        return Ok(*known);
    }
    let body = settings.previewer.body(config).await.map_err(|why| why.to_string())?;
    let read = tokio::task::spawn_blocking(move || brings(&body)).await;
    let has = read.map_err(|_| "it was interrupted".to_owned())?;
    before.brings.insert(config.to_owned(), has);
    Ok(has)
}

/// Says it where that is something else than what stands there; nothing takes it away.
async fn say(
    settings: &Settings,
    rollout: &Rollout,
    finding: Option<Finding>,
) -> Result<(), String> {
    // One that has no status yet gets it from what tells how far it is, and comes again.
    let Some(status) = &rollout.status else { return Ok(()) };
    let mut conditions = status.conditions.clone();
    let generation = rollout.metadata.generation.unwrap_or_default();
    let stands = status.conditions.iter().find(|it| it.type_ == SERVES);
    match finding {
        Some(finding) => {
            set(&mut conditions, finding, generation, Timestamp::now());
            let says = conditions.iter().find(|it| it.type_ == SERVES);
            let same = stands.zip(says).is_some_and(|(a, b)| {
                (&a.status, &a.reason, &a.message) == (&b.status, &b.reason, &b.message)
            });
            if same {
                return Ok(());
            }
        }
        None if stands.is_none() => return Ok(()),
        None => conditions.retain(|it| it.type_ != SERVES),
    }
    // The list is replaced as a whole, and others write it too.
    let version = &rollout.metadata.resource_version;
    let patch =
        json!({"metadata": {"resourceVersion": version}, "status": {"conditions": conditions}});
    let name = rollout.metadata.name.as_deref().unwrap_or_default();
    let api: Api<Rollout> = Api::all(settings.acts.client.clone());
    let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
    let call = Call::new("patch", "rollouts").of_status();
    match ask(&settings.acts.metrics, call, api.patch_status(name, &params, &patch)).await {
        // The watch brings what somebody else wrote.
        Err(it) if !matches!(it.outcome, CallOutcome::Conflict | CallOutcome::Gone) => {
            Err(it.to_string())
        }
        _ => Ok(()),
    }
}
