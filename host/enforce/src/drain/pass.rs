//! One pass of a drain.

use super::asked::Asked;
use super::budgets::{Budgets, Held};
use super::evict::{Evicted, How, evict, has_too_much_to_do, is_budgets, why};
use super::filter::Fate;
use super::look::{Left, full_name};
use crate::settings::Settings;
use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::time::Instant;
use tread_kube::asking::{Failed, PATIENCE, lacks_rights};

/// So many evictions are on their way at a time.
const AT_ONCE: usize = 5;

/// Why a pod does not move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// Its namespace and name.
    pub pod: String,
    /// What its eviction came to.
    pub by: Evicted,
}

impl Blocked {
    fn of(pod: &Pod, by: Evicted) -> Blocked {
        Blocked { pod: full_name(pod), by }
    }
}

/// Asks for the pods to go that were left, until this time at most: by eviction, or, where it
/// takes too long and the Rollout says so, by deletion. Those are returned that do not go. As soon
/// as the API server has too much to do, no more pods are asked for: the next pass does it.
pub(crate) async fn pass(
    settings: &Settings,
    left: &Left,
    asked: &Asked,
    is_late: bool,
    until: Instant,
) -> Vec<Blocked> {
    let mut deletes = is_late && asked.deletes;
    let mut blocked = Vec::new();
    if deletes {
        match deleted(settings, left, asked, until).await {
            Some(refused) => blocked = refused,
            None => deletes = false,
        }
    }
    if !deletes {
        let next = left.next(false);
        blocked = refused(settings, next, How::Evict, asked, until).await;
        if is_late && asked.deletes {
            for one in &mut blocked {
                one.by = Evicted::NotDeleted(Box::new(one.by.clone()));
            }
        }
    }
    blocked.extend(came_back(settings, left, asked, until).await);
    blocked.extend(left.pods.iter().filter_map(|(pod, fate)| match fate {
        Fate::Refused(refusal) => Some(Blocked::of(pod, Evicted::Refused(*refusal))),
        Fate::WaitedFor if !deletes => Some(Blocked::of(pod, Evicted::WaitedFor)),
        _ => None,
    }));
    blocked.sort_by(|a, b| a.pod.cmp(&b.pod));
    // Nobody waits for these.
    blocked.extend(left.came_back.iter().map(|pod| Blocked::of(pod, Evicted::Stays)));
    blocked
}

/// Why those that came back could not be evicted now.
async fn came_back(
    settings: &Settings,
    left: &Left,
    asked: &Asked,
    until: Instant,
) -> Vec<Blocked> {
    let pods = left.pods.iter().filter(|(_, fate)| *fate == Fate::CameBack).map(|(pod, _)| pod);
    let pods: Vec<&Pod> = pods.collect();
    let mut held = refused(settings, pods.clone(), How::DryRun, asked, until).await;
    if held.is_empty() {
        // Each could be evicted by itself, and its budget allows no more of them at a time.
        let mut budgets = Budgets::default();
        for pod in pods {
            let holding = budgets.of(settings, pod).await.unwrap_or_default();
            let names = holding.into_iter().map(|it| it.name).collect();
            held.push(Blocked::of(pod, Evicted::Blocked(names)));
        }
    }
    let why = |it: Blocked| Blocked { by: Evicted::CameBack(Box::new(it.by)), ..it };
    held.into_iter().map(why).collect()
}

/// What would keep a node from ever being drained, as it is now: found without evicting a pod. An
/// error where the API server has too much to do to say so.
pub(crate) async fn blocked_for_good(
    settings: &Settings,
    left: &Left,
    asked: &Asked,
) -> Result<Vec<Blocked>, Failed> {
    let refusals = left.pods.iter().filter_map(|(pod, fate)| match fate {
        Fate::Refused(refusal) => Some(Blocked::of(pod, Evicted::Refused(*refusal))),
        _ => None,
    });
    let mut blocked: Vec<Blocked> = refusals.collect();
    // Once it takes too long, no budget counts.
    if !asked.deletes {
        let mut budgets = Budgets::default();
        let mut held = Vec::new();
        for (pod, fate) in &left.pods {
            let is_going = pod.metadata.deletion_timestamp.is_some();
            if fate.is_evicted()
                && !is_going
                && budgets.of(settings, pod).await.is_none_or(|it| !it.is_empty())
            {
                held.push(pod);
            }
        }
        let until = Instant::now() + PATIENCE;
        let refused = ask_for_all(settings, held, How::DryRun, asked, until).await;
        if let Some((_, failed)) = refused.iter().find(|(_, failed)| has_too_much_to_do(failed)) {
            return Err(failed.clone());
        }
        let refused = named(settings, refused, How::DryRun).await;
        blocked.extend(refused.into_iter().filter(|it| it.by.is_for_good()));
    }
    blocked.sort_by(|a, b| a.pod.cmp(&b.pod));
    Ok(blocked)
}

/// Deletes the pods that were left; those that were not accepted. Nothing where tread may delete
/// none: what protects one pod, as an admission policy does, answers alike.
async fn deleted(
    settings: &Settings,
    left: &Left,
    asked: &Asked,
    until: Instant,
) -> Option<Vec<Blocked>> {
    let mut next = left.next(true);
    if let Some(first) = next.first().copied() {
        let has_too_much = AtomicBool::new(false);
        match ask_for(settings, first, How::Delete, asked, (until, &has_too_much)).await {
            Some((_, failed)) => {
                if lacks_rights(&settings.client, &settings.metrics, &failed).await {
                    return None;
                }
            }
            None => drop(next.remove(0)),
        }
    }
    Some(refused(settings, next, How::Delete, asked, until).await)
}

/// Asks for these pods to go; those whose eviction was not accepted.
async fn refused(
    settings: &Settings,
    pods: Vec<&Pod>,
    how: How,
    asked: &Asked,
    until: Instant,
) -> Vec<Blocked> {
    named(settings, ask_for_all(settings, pods, how, asked, until).await, how).await
}

async fn ask_for_all<'p>(
    settings: &Settings,
    pods: Vec<&'p Pod>,
    how: How,
    asked: &Asked,
    until: Instant,
) -> Vec<(&'p Pod, Failed)> {
    let has_too_much = AtomicBool::new(false);
    let ends = (until, &has_too_much);
    let asking = pods.into_iter().map(|pod| ask_for(settings, pod, how, asked, ends));
    let asking: Vec<_> = asking.collect();
    let refused: Vec<Option<(&Pod, Failed)>> =
        stream::iter(asking).buffered(AT_ONCE).collect().await;
    refused.into_iter().flatten().collect()
}

/// Why each of them does not go. After the answers: what a budget says then is newer than what it
/// was asked.
async fn named(settings: &Settings, refused: Vec<(&Pod, Failed)>, how: How) -> Vec<Blocked> {
    let mut budgets = Budgets::default();
    let mut blocked = Vec::new();
    for (pod, failed) in refused {
        let by = match is_budgets(&failed) && how != How::Delete {
            true => by_budgets(settings, budgets.of(settings, pod).await, failed),
            false => Evicted::failed(&failed),
        };
        blocked.push(Blocked::of(pod, by));
    }
    blocked
}

/// Why a pod does not go that these budgets hold. That several do is an answer, and all else counts as
/// an error, unless it was one anyway.
fn by_budgets(settings: &Settings, budgets: Option<Vec<Held>>, failed: Failed) -> Evicted {
    let by = why(budgets, &failed);
    if !matches!(by, Evicted::Never(_)) {
        drop(failed.counted_unless_answer(&settings.metrics));
    }
    by
}

/// Nothing if it is on its way out, there is no time left for it, or the API server has too much
/// to do.
async fn ask_for<'p>(
    settings: &Settings,
    pod: &'p Pod,
    how: How,
    asked: &Asked,
    (until, has_too_much): (Instant, &AtomicBool),
) -> Option<(&'p Pod, Failed)> {
    if Instant::now() >= until || has_too_much.load(Ordering::Relaxed) {
        return None;
    }
    let failed = evict(settings, pod, how, asked.grace, until).await.err()?;
    has_too_much.fetch_or(has_too_much_to_do(&failed), Ordering::Relaxed);
    Some((pod, failed))
}
