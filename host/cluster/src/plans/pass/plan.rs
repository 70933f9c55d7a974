//! The second step of a pass: the plans of each pool, made anew where anything
//! changed that they are made of.

use super::super::ask::inputs;
use super::super::make::{Take, Together};
use super::super::previewer::{NotKnown, Previewer};

use super::again::Again;
use super::prepare::Prepared;
use crate::policies::current::Current;
use crate::previews::{Described, Preview, decisions, limited, work};
use futures::{StreamExt as _, stream};
use k8s_openapi::jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::time::Instant;
use tread_model::digest::Digest;

/// How many pools are planned at the same time.
const AT_ONCE: usize = 8;

/// What was planned for a pool, and from what.
#[derive(Debug, Clone)]
pub(super) struct Remembered {
    inputs: Digest,
    /// What the ways of its nodes begin with.
    from: BTreeSet<String>,
    /// Whether OpenShift's operator rolls them out.
    operated: bool,
    plans: Vec<Arc<Described>>,
    /// How often each policy decides in them.
    pub(super) decisions: BTreeMap<String, i64>,
    /// When they are made again, where a policy failed for a moment.
    pub(super) again: Option<Again>,
}

/// The plans that there have to be.
#[derive(Debug, Default)]
pub(super) struct Planned {
    /// By pool.
    pub(super) wanted: BTreeMap<String, Vec<Arc<Described>>>,
    /// The pools of which it is not known, and why.
    pub(super) failed: BTreeMap<String, NotKnown>,
}

/// Plans the pools of which everything is known, and remembers it.
pub(super) async fn plan(
    previewer: &Previewer,
    current: &Arc<Current>,
    prepared: &Prepared,
    remembered: &mut BTreeMap<String, Remembered>,
) -> Planned {
    let cluster = &prepared.cluster;
    let answers = Arc::new(previewer.answers(cluster));
    let rules = cluster.operators_rules();
    let together =
        Together { cluster, current, answers: &answers, rules: &rules, hides_secrets: false };
    let pools = stream::iter(prepared.known.clone());
    let found: Vec<(String, Result<Option<Remembered>, NotKnown>)> = pools
        .map(async |name: String| {
            let before = remembered.get(&name);
            let found = pool(previewer, &together, &name, before).await;
            (name, found)
        })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let mut planned = Planned { failed: prepared.unknown.clone(), ..Planned::default() };
    for (name, found) in found {
        match found {
            Ok(Some(now)) => {
                planned.wanted.insert(name.clone(), now.plans.clone());
                remembered.insert(name, now);
            }
            Ok(None) => {
                remembered.remove(&name);
                planned.wanted.insert(name, Vec::new());
            }
            Err(why) => {
                planned.failed.insert(name, why);
            }
        }
    }
    for (pool, why) in &planned.failed {
        tracing::warn!(pool, "what its nodes will go through is not known: {why}");
    }
    planned
}

/// The plans of a pool; None: there is nothing to plan.
#[tracing::instrument(name = "plan", skip_all, fields(pool = name))]
async fn pool(
    previewer: &Previewer,
    together: &Together<'_>,
    name: &str,
    before: Option<&Remembered>,
) -> Result<Option<Remembered>, NotKnown> {
    let Together { cluster, current, .. } = together;
    let Some(work) = work(cluster, name) else { return Ok(None) };
    let inputs = inputs(&work, cluster, current);
    let from: BTreeSet<String> = work.ways.iter().map(|way| way.from_name.clone()).collect();
    let (now, operated) = (Instant::now(), work.operated);
    let same = before.filter(|before| before.inputs == inputs && before.from == from);
    let same = same.filter(|before| before.operated == operated);
    let again = same.and_then(|same| same.again.as_ref());
    match same {
        // Only nodes came, went or moved on.
        Some(before) if again.is_none_or(|again| !again.is_due(now)) => {
            let mut now = before.clone();
            now.plans.iter_mut().for_each(|plan| Arc::make_mut(plan).moved(&work.ways));
            Ok(Some(now))
        }
        _ => {
            let once = Arc::clone(&previewer.once);
            // What a preview holds besides goes at once.
            let take: Take<_> = Arc::new(move |preview: Preview| {
                let mut plans = limited(&preview, inputs, Timestamp::now());
                once.share(&mut plans);
                let plans: Vec<_> = plans.into_iter().map(Arc::new).collect();
                (plans, decisions([&preview]), preview.lasts())
            });
            let (plans, decisions, lasts) = previewer.compute(work, together, &take).await?;
            let again = if lasts { None } else { Again::after(again, now) };
            if let Some(again) = &again {
                tracing::info!("a policy had no time or no room: it is asked again {again}");
            }
            Ok(Some(Remembered { inputs, from, operated, plans, decisions, again }))
        }
    }
}
