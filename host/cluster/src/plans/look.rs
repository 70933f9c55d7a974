//! A look at some pools: what their nodes will go through, and what has to be
//! written for it.

use super::ask::{NotKnown, Previewer, Take, Together, inputs};
use super::budget::Counted;
use super::compared::{Compared, Deciders};
use super::settings::Settings;
use super::standing::Standing;
use super::told;
use super::write::{OfPool, Pruned, Wrote, mark_stale, write};
use crate::previews::{Cluster, Described, Preview, decisions, few, work};
use futures::{StreamExt as _, stream};
use k8s_openapi::jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};
use tread_kube::metrics::WithEffect;
use tread_kube::watching::Unwritten;
use tread_model::digest::Digest;
use tread_model::effect::Effect;

/// How many pools are looked at at the same time.
const AT_ONCE: usize = 8;

/// What the last look at each pool found, so that what did not change is not
/// planned again.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pools: BTreeMap<String, Remembered>,
    /// What a change of policies made of the plans of each.
    compared: Compared,
    /// Of what was told that cannot be planned as it is meant.
    told: BTreeSet<(String, String)>,
    /// What was written of how often each policy decides.
    decisions: Option<BTreeMap<String, i64>>,
    /// What is still to be told on policies.
    untold: Vec<told::Untold>,
    /// Pools of which plans were not written, and why.
    unwritten: BTreeMap<String, Unwritten>,
    /// What the API server left of what was written.
    pruned: Pruned,
}

#[derive(Debug, Clone)]
struct Remembered {
    inputs: Digest,
    /// What the ways of its nodes begin with.
    from: BTreeSet<String>,
    plans: Vec<Arc<Described>>,
    /// How often each policy decides in them.
    decisions: BTreeMap<String, i64>,
}

/// What a look is at.
pub(super) struct Look {
    pub(super) pools: BTreeSet<String>,
    pub(super) standing: BTreeMap<String, Standing>,
    /// Since when it is known what pools have that nobody renders.
    pub(super) known_since: i64,
}

/// What came of it.
pub(super) struct Looked {
    pub(super) memory: Memory,
    /// Pools to look at again, after a pause.
    pub(super) again: BTreeSet<String>,
    /// Pools whose nodes have what they are to have.
    pub(super) rolled_out: BTreeSet<String>,
}

/// Looks at some pools.
pub(super) async fn look(
    settings: Settings,
    previewer: Previewer,
    mut memory: Memory,
    look: Look,
) -> Looked {
    let current = settings.policies.borrow().clone();
    let (cluster, unknown) = prepared(&previewer, &look.pools).await;
    let cluster = Arc::new(cluster);
    // What is known there and not here yet brings its pools again.
    let waits = |name: &String| {
        let unheard = cluster.unheard_of(name);
        unheard.first().inspect(|config| {
            tracing::debug!(pool = name, config, "waits until it is known what is in it");
        });
        !unheard.is_empty() && !unknown.contains_key(name)
    };
    let known: BTreeSet<String> = look.pools.iter().filter(|it| !waits(it)).cloned().collect();
    let answers = Arc::new(previewer.answers(&cluster));
    let together = Together {
        cluster: &cluster,
        current: &current,
        answers: &answers,
        hides_secrets: false,
        counted: Counted::default(),
    };
    let found: Vec<(String, Result<Found, NotKnown>)> = stream::iter(known)
        .map(async |name: String| {
            let known = memory.pools.get(&name);
            let found = match unknown.get(&name) {
                Some(why) => Err(why.clone()),
                None => one(&previewer, &together, &name, known).await,
            };
            (name, found)
        })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;

    let (mut again, mut rolled_out) = (BTreeSet::new(), BTreeSet::new());
    let mut wanted: BTreeMap<String, Vec<Arc<Described>>> = BTreeMap::new();
    for (name, found) in found {
        match found {
            Ok(found) => {
                if found.described.is_empty() {
                    rolled_out.insert(name.clone());
                }
                match found.remembered {
                    Some(remembered) => memory.pools.insert(name.clone(), remembered),
                    None => memory.pools.remove(&name),
                };
                wanted.insert(name, found.described);
            }
            Err(why) => {
                tracing::warn!(pool = name, "what its nodes will go through is not known: {why}");
                again.insert(name);
            }
        }
    }
    publish(&previewer, &cluster, &wanted);
    previewer.once.forget();
    let deciders = Arc::new(Deciders::of(&current));
    memory.compared.note(&deciders, &wanted);
    memory.compared.keep(|pool| cluster.pools.contains_key(pool));
    measure(&settings, &previewer);
    if settings.leads.now() {
        for name in &again {
            for (plan, standing) in look.standing.iter().filter(|(_, it)| it.pool == *name) {
                // It is tried again with the pool.
                let _ = mark_stale(&settings, plan, standing).await;
            }
        }
        for (name, wanted) in &wanted {
            let of_pool = OfPool {
                name,
                pool: cluster.pools.get(name).map(Arc::as_ref),
                wanted,
                standing: &look.standing,
                known_since: look.known_since,
                keep: settings.keep,
                pruned: &memory.pruned,
            };
            let Wrote { failed, lacks_rights, overtaken } = write(&settings, of_pool).await;
            if let Some(why) = &failed {
                tracing::warn!(pool = name, "plans were not written, and will be: {why}");
            }
            memory.unwritten.remove(name);
            if let Some(why) = failed.or(overtaken) {
                again.insert(name.clone());
                memory.unwritten.insert(name.clone(), Unwritten { why, lacks_rights });
            }
        }
        let about = told::Plans { standing: &look.standing, described: &previewer.plans() };
        told::troubles(&settings, &cluster, &mut memory.told).await;
        let counts = sum(memory.pools.values().map(|it| &it.decisions));
        if memory.decisions.as_ref() != Some(&counts) {
            match told::decisions(&settings, &counts).await {
                true => memory.decisions = Some(counts),
                // With whichever pool.
                false => again.extend(wanted.keys().next().cloned()),
            }
        }
        let said = told::policies_changed(&settings, &deciders, &mut memory.compared, &about).await;
        memory.untold.extend(said);
        memory.untold = told::on_policies(&settings, std::mem::take(&mut memory.untold)).await;
        if !memory.untold.is_empty() {
            again.extend(look.pools.first().cloned());
        }
    }
    // Whoever leads writes and tells.
    if !settings.leads.now() {
        memory.compared.untold.clear();
        memory.untold.clear();
        memory.unwritten.clear();
    }
    memory.unwritten.retain(|pool, _| cluster.pools.contains_key(pool));
    settings.watches.unwritten("plans", memory.unwritten.values().next().cloned());
    Looked { memory, again, rolled_out }
}

struct Found {
    described: Vec<Arc<Described>>,
    remembered: Option<Remembered>,
}

#[tracing::instrument(name = "plan", skip_all, fields(pool = name))]
async fn one(
    previewer: &Previewer,
    together: &Together<'_>,
    name: &str,
    known: Option<&Remembered>,
) -> Result<Found, NotKnown> {
    let Together { cluster, current, .. } = together;
    let Some(work) = work(cluster, name) else {
        return Ok(Found { described: Vec::new(), remembered: None });
    };
    let inputs = inputs(&work, cluster, current);
    let from: BTreeSet<String> = work.ways.iter().map(|way| way.from_name.clone()).collect();
    let remembered = match known {
        // Only nodes came, went or moved on.
        Some(known) if known.inputs == inputs && known.from == from => {
            let mut known = known.clone();
            known.plans.iter_mut().for_each(|plan| Arc::make_mut(plan).moved(&work.ways));
            known
        }
        _ => {
            let once = Arc::clone(&previewer.once);
            // What a preview holds besides goes at once.
            let take: Take<_> = Arc::new(move |preview: Preview| {
                let mut plans = few(&preview, inputs, Timestamp::now());
                once.share(&mut plans);
                let plans: Vec<_> = plans.into_iter().map(Arc::new).collect();
                (plans, decisions([&preview]))
            });
            let (plans, decisions) = previewer.compute(work, together, &take).await?;
            Remembered { inputs, from, plans, decisions }
        }
    };
    Ok(Found { described: remembered.plans.clone(), remembered: Some(remembered) })
}

/// How often each policy decides, of several counts.
fn sum<'c>(counts: impl IntoIterator<Item = &'c BTreeMap<String, i64>>) -> BTreeMap<String, i64> {
    let mut all = BTreeMap::new();
    for (policy, count) in counts.into_iter().flatten() {
        *all.entry(policy.clone()).or_default() += count;
    }
    all
}

/// The cluster as it is now, with what has to be asked for. Of pools that nobody
/// renders it has to be known what they were made of before anything changed; of
/// the others, which configs that somebody names are gone. Those of which that
/// cannot be found out come with the reason.
async fn prepared(
    previewer: &Previewer,
    pools: &BTreeSet<String>,
) -> (Cluster, BTreeMap<String, NotKnown>) {
    let cluster = previewer.snapshot();
    let unknown = |name: &&String| {
        let attended = cluster.pools.get(*name).is_none_or(|pool| pool.target.is_some());
        !attended && !cluster.baselines.contains_key(*name)
    };
    let (mut found, mut not_found) = (Vec::new(), BTreeMap::new());
    for name in pools.iter().filter(unknown) {
        match previewer.baseline(&cluster, name).await {
            Ok(baseline) => found.push((name.clone(), Arc::new(baseline))),
            Err(why) => {
                not_found.insert(name.clone(), why);
            }
        }
    }
    let asked = pools.iter().flat_map(|pool| {
        let unheard = cluster.unheard_of(pool);
        unheard.into_iter().map(|config| (pool.clone(), config.to_owned())).collect::<Vec<_>>()
    });
    let mut answers = stream::iter(asked.collect::<Vec<_>>())
        .map(async |(pool, config): (String, String)| {
            (pool, previewer.is_there(&config).await, config)
        })
        .buffer_unordered(AT_ONCE);
    let mut gone = Vec::new();
    while let Some((pool, is_there, config)) = answers.next().await {
        match is_there {
            Ok(true) => {}
            Ok(false) => gone.push(config),
            Err(failed) => {
                not_found.insert(pool, failed.into());
            }
        }
    }
    drop(answers);
    let mut now = previewer.cluster.write().unwrap_or_else(PoisonError::into_inner);
    now.baselines.extend(found);
    // One that came meanwhile is there.
    gone.retain(|config| !now.configs.contains_key(config));
    now.note_gone(gone);
    (now.clone(), not_found)
}

fn publish(
    previewer: &Previewer,
    cluster: &Cluster,
    wanted: &BTreeMap<String, Vec<Arc<Described>>>,
) {
    let mut described = previewer.described.write().unwrap_or_else(PoisonError::into_inner);
    for (name, plans) in wanted {
        described.insert(name.clone(), plans.clone());
    }
    described.retain(|name, plans| cluster.pools.contains_key(name) && !plans.is_empty());
}

/// Plans by effect, and what they spare nodes.
fn measure(settings: &Settings, previewer: &Previewer) {
    let plans = previewer.described.read().unwrap_or_else(PoisonError::into_inner);
    let effects = [
        Effect::None,
        Effect::Reload,
        Effect::Restart,
        Effect::Drain,
        Effect::Reboot,
        Effect::Refuse,
    ];
    for effect in effects {
        let count = plans.values().flatten().filter(|plan| plan.effect == effect).count();
        let labels = WithEffect { effect: effect.as_str() };
        let gauge = settings.metrics.plans.get_or_create(&labels);
        gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
    }
    // The last plan of a pool is that of all its changes together.
    let (mut spared, mut not) = (0, 0);
    for plan in plans.values().filter_map(|plans| plans.last()) {
        for (effect, nodes) in &plan.happens {
            match effect {
                Effect::Reboot => not += nodes,
                // Nothing happens, and nothing is spared.
                Effect::Refuse => {}
                _ => spared += nodes,
            }
        }
    }
    settings.metrics.reboots_avoided.set(spared);
    settings.metrics.reboots.set(not);
}
