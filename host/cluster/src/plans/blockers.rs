//! Who would block a drain: budgets that allow no disruption until somebody changes something, two
//! that hold the same pod, which is never evicted then, and their pods on the nodes that a plan is
//! for.
//!
//! Budgets are listed in pages, of which little is kept; pods only by the selector of such a
//! budget, and not all of them. Nothing is watched, and what was found counts for a minute. While plans
//! that drain are pending, it is looked for again every few minutes.

mod listed;

use super::previewer::Previewer;
use super::undrained::is_skipped;
use crate::previews::{Cluster, Described};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::ListParams;
use kube::core::Selector;
use kube::{Api, Client, ResourceExt as _};
use listed::{Budgets, budgets};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};
use tread_kube::api::disruption_plan::{BlockedPod, DrainBlocker};
use tread_kube::asking::{Call, CallOutcome, Failed, ask};
use tread_kube::budgets::{Both, both, holds};
use tread_kube::metrics::Metrics;
use tread_model::effect::Effect;

/// Of so many budgets pods are looked for: a cluster with more has another problem.
const MOST: usize = 20;
/// How many budgets of a namespace are checked for pods in common: each is compared with each.
const KEPT: usize = 200;
/// So many pairs of them are kept: those that surely hold the same pods first.
const PAIRS: usize = 1_000;
/// So many pods of a budget are looked at.
const PODS: u32 = 200;
/// How many of them are named.
const NAMED: usize = 5;
/// For so long an answer is as good as a new one.
const LASTS: Duration = Duration::from_secs(60);
/// How long budgets and their pods are waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long before budgets are listed again that could not be.
const AGAIN: Duration = Duration::from_secs(5);

/// A budget that never lets a pod go, and its pods.
#[derive(Debug, Clone)]
struct Found {
    budget: String,
    why: String,
    /// Its pods, by node; nothing where they may not be listed.
    pods: Option<Vec<BlockedPod>>,
    /// Whether there are more of them than were looked at.
    has_more: bool,
}

/// All that were found.
#[derive(Debug, Clone, Default)]
pub struct Blockers {
    found: Vec<Found>,
    /// How many budgets were not looked at.
    left_out: usize,
}

impl Blockers {
    /// Looks for them.
    pub async fn find(client: &Client, metrics: &Metrics) -> Result<Blockers, Failed> {
        let Budgets { all: mut budgets, mut left_out } = budgets(client, metrics).await?;
        budgets.sort_by_key(|(budget, _)| (budget.namespace(), budget.name_any()));
        let mut looks = Looks { client, metrics, may_list: true };
        let full = budgets.iter().filter_map(|(budget, why)| Some((budget, why.as_ref()?)));
        let mut found = Vec::new();
        for (budget, why) in full {
            if found.len() == MOST {
                left_out += 1;
                continue;
            }
            let listed = looks.pods(budget).await?;
            let has_more = listed.as_ref().is_some_and(|(_, has_more)| *has_more);
            let pods = listed.map(|(pods, _)| pods.iter().filter_map(on_a_node).collect());
            found.push(Found { budget: named(budget), why: why.clone(), pods, has_more });
        }
        let all: Vec<&PodDisruptionBudget> = budgets.iter().map(|(budget, _)| budget).collect();
        let pairs = pairs(&all);
        left_out += pairs.len().saturating_sub(MOST);
        for (one, other, is_sure) in pairs.into_iter().take(MOST) {
            found.extend(looks.twice(one, other, is_sure).await?);
        }
        Ok(Blockers { found, left_out })
    }

    /// The budgets, by namespace and name.
    pub fn budgets(&self) -> Vec<&str> {
        self.found.iter().map(|found| found.budget.as_str()).collect()
    }

    /// Says in a plan that drains what would block it, on the nodes of its pool.
    pub fn note_in(&self, plan: &mut Described, cluster: &Cluster) {
        let pool = plan.pool.as_str();
        let (blockers, left_out) = match drains(plan) && is_drained(pool, cluster) {
            true => self.of(|node| {
                let member = cluster.members.get(node);
                member.and_then(|member| member.place.pool()) == Some(pool)
                    && !is_skipped(node, pool, cluster)
            }),
            false => (Vec::new(), 0),
        };
        plan.status.drain_blockers = blockers;
        plan.status.drain_blockers_left_out = left_out;
    }

    fn of(&self, is_of: impl Fn(&str) -> bool) -> (Vec<DrainBlocker>, i64) {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let blockers = self.found.iter().filter_map(|found| {
            let Found { budget, why, pods, has_more } = found;
            let (budget, why) = (budget.clone(), why.clone());
            let Some(pods) = pods else {
                return Some(DrainBlocker { budget, why, ..DrainBlocker::default() });
            };
            let own: Vec<_> = pods.iter().filter(|it| is_of(&it.node)).cloned().collect();
            let more_pods = number(own.len().saturating_sub(NAMED)) + i64::from(*has_more);
            let pods: Vec<BlockedPod> = own.into_iter().take(NAMED).collect();
            (!pods.is_empty()).then_some(DrainBlocker { budget, why, pods, more_pods })
        });
        (blockers.collect(), number(self.left_out))
    }
}

/// Whether nodes are drained by a plan, whoever rolls it out.
pub(super) fn drains(plan: &Described) -> bool {
    let steps = plan.status.transitions.iter().flat_map(|way| &way.steps);
    let drains = steps.into_iter().any(|step| step.r#do == "drain");
    drains || matches!(plan.effect, Effect::Drain | Effect::Reboot)
}

/// Whether any node of a pool is drained when its plan says so.
fn is_drained(pool: &str, cluster: &Cluster) -> bool {
    let mut nodes = cluster.members.of_pool(pool).flat_map(|(_, nodes)| nodes).peekable();
    nodes.peek().is_none() || nodes.any(|node| !is_skipped(node, pool, cluster))
}

/// Budgets of a namespace that may hold the same pods, or surely do.
fn pairs<'b>(
    budgets: &[&'b PodDisruptionBudget],
) -> Vec<(&'b PodDisruptionBudget, &'b PodDisruptionBudget, bool)> {
    let (mut sure, mut perhaps) = (Vec::new(), Vec::new());
    // They are sorted by their namespaces.
    for of_namespace in budgets.chunk_by(|one, other| one.namespace() == other.namespace()) {
        for (at, one) in of_namespace.iter().take(KEPT).enumerate() {
            for other in of_namespace.iter().take(KEPT).skip(at + 1) {
                match both(one, other) {
                    Both::Surely if sure.len() < PAIRS => sure.push((*one, *other, true)),
                    Both::Perhaps if perhaps.len() < PAIRS => perhaps.push((*one, *other, false)),
                    _ => {}
                }
            }
        }
    }
    sure.append(&mut perhaps);
    sure
}

fn named(budget: &PodDisruptionBudget) -> String {
    format!("{}/{}", budget.namespace().unwrap_or_default(), budget.name_any())
}

fn on_a_node(pod: &Pod) -> Option<BlockedPod> {
    let node = pod.spec.as_ref()?.node_name.clone().filter(|node| !node.is_empty())?;
    let namespace = pod.namespace().unwrap_or_default();
    Some(BlockedPod { pod: format!("{namespace}/{}", pod.name_any()), node })
}

/// Budgets of one that does not run, or goes, are not asked.
fn is_held(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    pod.metadata.deletion_timestamp.is_none() && phase == Some("Running")
}

/// Looks at pods, as long as that is allowed.
struct Looks<'l> {
    client: &'l Client,
    metrics: &'l Metrics,
    may_list: bool,
}

impl Looks<'_> {
    /// The first pods of a budget, and whether there are more; nothing where they may not be
    /// listed.
    async fn pods(
        &mut self,
        budget: &PodDisruptionBudget,
    ) -> Result<Option<(Vec<Pod>, bool)>, Failed> {
        if !self.may_list {
            return Ok(None);
        }
        match pods(self.client, self.metrics, budget).await {
            // In the mode `advise` tread reads nobody's pods.
            Err(failed) if failed.outcome == CallOutcome::Forbidden => {
                self.may_list = false;
                Ok(None)
            }
            pods => pods,
        }
    }

    /// The pods that are under both budgets, if there are any.
    async fn twice(
        &mut self,
        one: &PodDisruptionBudget,
        other: &PodDisruptionBudget,
        is_sure: bool,
    ) -> Result<Option<Found>, Failed> {
        let listed = self.pods(one).await?;
        let why = format!(
            "pods of it are under the PodDisruptionBudget {} too, and the API server evicts none \
             that two hold",
            named(other)
        );
        let found = |pods, has_more| Found { budget: named(one), why, pods, has_more };
        let Some((pods, has_more)) = listed else { return Ok(is_sure.then(|| found(None, false))) };
        let under_both = pods.iter().filter(|pod| is_held(pod) && holds(other, pod.labels()));
        let pods: Vec<BlockedPod> = under_both.filter_map(on_a_node).collect();
        Ok((!pods.is_empty()).then(|| found(Some(pods), has_more)))
    }
}

/// The first pods of a budget, and whether there are more.
async fn pods(
    client: &Client,
    metrics: &Metrics,
    budget: &PodDisruptionBudget,
) -> Result<Option<(Vec<Pod>, bool)>, Failed> {
    let namespace = budget.namespace().unwrap_or_default();
    let selector = budget.spec.as_ref().and_then(|spec| spec.selector.clone());
    let Some(Ok(selector)) = selector.map(Selector::try_from) else { return Ok(None) };
    let api: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    let params = ListParams::default().labels_from(&selector).limit(PODS);
    let call = Call::new("list", "pods").within(&namespace);
    let listed = ask(metrics, call, api.list(&params)).await?;
    let has_more = listed.metadata.continue_.is_some_and(|token| !token.is_empty());
    Ok(Some((listed.items, has_more)))
}

/// What was found last, for plans that are made one after the other, and until when it counts.
#[derive(Debug, Default)]
pub(super) struct Recent(Option<(Instant, Blockers)>);

impl Recent {
    /// Says in the plans that drain what would block them. Where budgets cannot be listed, that is what
    /// was found before, if anything was.
    pub(super) async fn note_in(
        &mut self,
        previewer: &Previewer,
        cluster: &Cluster,
        wanted: &mut BTreeMap<String, Vec<Arc<Described>>>,
    ) {
        if !wanted.values().flatten().any(|plan| drains(plan)) {
            return;
        }
        if self.0.as_ref().is_none_or(|(until, _)| *until <= Instant::now()) {
            // Plans wait for it: a slow answer counts at the next look.
            let found = Blockers::find(&previewer.client, &previewer.metrics);
            match timeout(PATIENCE, found).await {
                Ok(found) => self.takes(found, Instant::now()),
                Err(_) => self.takes_nothing(Instant::now()),
            }
        }
        let Some((_, blockers)) = &self.0 else { return };
        let plans = wanted.values_mut().flatten();
        let says_something = !blockers.found.is_empty() || blockers.left_out > 0;
        for plan in plans.filter(|plan| drains(plan) && says_something) {
            blockers.note_in(Arc::make_mut(plan), cluster);
        }
    }

    fn takes(&mut self, found: Result<Blockers, Failed>, now: Instant) {
        match found {
            Ok(found) => self.0 = Some((now + LASTS, found)),
            Err(failed) => {
                tracing::debug!(error = %failed, "what would block drains is not known");
                self.takes_nothing(now);
            }
        }
    }

    /// What was found before stays.
    fn takes_nothing(&mut self, now: Instant) {
        let before = self.0.take().map(|(_, found)| found);
        self.0 = Some((now + AGAIN, before.unwrap_or_default()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_stays_where_budgets_cannot_be_listed_and_is_looked_for_again_soon() {
        let (mut recent, now) = (Recent::default(), Instant::now());
        let failed = || Call::new("list", "poddisruptionbudgets").refused("why".to_owned());
        recent.takes(Err(failed()), now);
        let (until, found) = recent.0.as_ref().unwrap();
        assert_eq!((*until, found.found.len()), (now + AGAIN, 0));
        recent.takes(Ok(Blockers { left_out: 3, ..Blockers::default() }), now);
        assert_eq!(recent.0.as_ref().unwrap().0, now + LASTS);
        recent.takes(Err(failed()), now);
        let (until, found) = recent.0.as_ref().unwrap();
        assert_eq!((*until, found.left_out), (now + AGAIN, 3));
    }

    #[test]
    fn only_pods_on_the_nodes_of_a_plan_are_told_of_and_not_all_of_them() {
        let pods = |count: usize, node: &str| -> Vec<BlockedPod> {
            let one = |at| BlockedPod { pod: format!("a/p{at}"), node: node.to_owned() };
            (0..count).map(one).collect()
        };
        let found = |budget: &str, pods: Option<Vec<BlockedPod>>, has_more| Found {
            budget: budget.to_owned(),
            why: "it wants 1 healthy pods, and there are to be 1".to_owned(),
            pods,
            has_more,
        };
        let blockers = Blockers {
            found: vec![
                found("a/here", Some(pods(NAMED + 2, "n")), false),
                found("a/elsewhere", Some(pods(1, "other")), false),
                found("a/unknown", None, false),
                found("a/many", Some(pods(1, "n")), true),
            ],
            left_out: 3,
        };
        let (names, left_out) = blockers.of(|node| node == "n");
        let names: Vec<(&str, usize, i64)> =
            names.iter().map(|it| (it.budget.as_str(), it.pods.len(), it.more_pods)).collect();
        assert_eq!(names, [("a/here", NAMED, 2), ("a/unknown", 0, 0), ("a/many", 1, 1)]);
        assert_eq!(left_out, 3);
    }
}
