//! What a cluster says of its rollouts: how far each node is, how its pool gets its newest
//! config, and who holds it.

mod watching;

pub(super) use watching::Watching;

use super::connect::Cluster;
use anyhow::Result;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::ListParams;
use kube::{Api, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use tokio::time::Instant;
use tread_cluster::membership::gather::operator_rolls_out;
use tread_console::exit::UsageError;
use tread_console::print::warn;
use tread_kube::api::node_update::{NEEDS_AGENT, UpdateOrder, UpdatePhase, UpdateStage};
use tread_kube::api::words::{OPERATORS_DAEMON, OPERATORS_NAMESPACE};
use tread_kube::api::{NodeUpdate, Rollout};
use tread_kube::asking::{Call, CallOutcome, Failed};
use tread_kube::dated;
use tread_kube::metrics::Metrics;
use tread_kube::node_lease;
use tread_kube::paging::in_pages;
use tread_kube::watching::parsed::{Parsed, each_by_itself};
use tread_model::protocol::Time;
use tread_model::text::listed;

/// So many objects are listed at a time.
const PAGE: u32 = 500;

/// All that is known, by name.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    pub(super) updates: BTreeMap<String, NodeUpdate>,
    /// NodeUpdates that are there and cannot be read.
    pub(super) unreadable: BTreeSet<String>,
    pub(super) rollouts: BTreeMap<String, Rollout>,
    /// Those of nodes.
    pub(super) leases: BTreeMap<String, Lease>,
    /// Nodes that are cordoned for an operation of tread's, where that was asked for.
    pub(super) cordons: BTreeMap<String, String>,
    /// Nodes that have a slot, with their pools, where that was asked for.
    pub(super) slots: BTreeMap<String, String>,
    /// Why nobody can read which ones have.
    pub(super) slots_unread: Option<String>,
    /// What is not known, since it may not be listed.
    pub(super) unknown: Vec<String>,
}

/// The pools that were asked for, if they have Rollouts; all of them, if none was named.
pub(super) fn chosen(there: &BTreeMap<String, Rollout>, asked: &[String]) -> Result<Vec<String>> {
    if let Some(missing) = asked.iter().find(|name| !there.contains_key(*name)) {
        let names: Vec<&String> = there.keys().collect();
        let there = match names.as_slice() {
            [] => "there is none yet that can be read".to_owned(),
            names => format!("there are {}", listed(names, 10)),
        };
        let why = format!(
            "there is no Rollout {missing}: tread makes one for each MachineConfigPool, by its name; {there}"
        );
        return Err(UsageError(why).into());
    }
    Ok(match asked {
        [] => there.keys().cloned().collect(),
        asked => asked.to_vec(),
    })
}

/// The API server's time, counted on from when it was asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    at: Time,
    since: Instant,
}

impl Clock {
    pub(super) fn now(&self) -> Time {
        Time(self.at.0 + self.since.elapsed())
    }

    /// When it was asked.
    pub(super) fn asked(&self) -> Time {
        self.at
    }
}

/// Asks for the time, and whether there is anything of rollouts at all.
pub(super) async fn clock(cluster: &Cluster) -> Result<Clock> {
    let since = Instant::now();
    let call = Call::new("list", "rollouts");
    let path = format!("{}?limit=1", Rollout::url_path(&(), None));
    let asked = dated::read::<Value>(&cluster.client, &Metrics::new(), call, &path).await;
    let asked = asked.map_err(|failed| cluster.failed("Rollouts", &failed))?;
    match asked.object {
        Some(_) => Ok(Clock { at: asked.at, since }),
        None => Err(cluster.rolls_out_nothing()),
    }
}

/// The Rollouts of a cluster.
pub(super) async fn rollouts(cluster: &Cluster) -> Result<BTreeMap<String, Rollout>> {
    by_name(cluster, Api::all(cluster.client.clone()), "rollouts").await
}

/// The NodeUpdates of a cluster.
pub(super) async fn updates(cluster: &Cluster) -> Result<BTreeMap<String, NodeUpdate>> {
    let all = by_name(cluster, Api::all(cluster.client.clone()), "nodeupdates").await?;
    Ok(all.into_iter().map(|(name, update)| (name, without_plan(update))).collect())
}

/// Nobody looks at the plan here, which is most of it.
fn without_plan(mut update: NodeUpdate) -> NodeUpdate {
    if let Some(order) = &mut update.spec.order {
        order.plan = None;
    }
    update
}

/// What is told where nobody may see whether OpenShift's daemon is there.
pub(super) const NOT_KNOWN: &str = "who rolls out here is not known, and it is told as where OpenShift's \
    operator does";

/// Warns where OpenShift's operator rolls out: what tread left there says nothing of nodes any more. To whoever
/// may not see that, nothing is said of it.
pub(super) async fn warn_of_operator(cluster: &Cluster) {
    let found = operator_rolls_out(&cluster.client, &Metrics::new()).await;
    if found.is_ok_and(|by_operator| by_operator) {
        warn(&format!(
            "the DaemonSet {OPERATORS_DAEMON} is in {OPERATORS_NAMESPACE}: OpenShift's operator rolls out, tread \
             does nothing on any node, and nobody follows its Rollouts; `tread plans` says what is about to happen"
        ));
    }
}

/// How far nodes and pools are, once.
pub(super) async fn progress(cluster: &Cluster) -> Result<Known> {
    let (updates, rollouts) = (updates(cluster).await?, rollouts(cluster).await?);
    Ok(Known { updates, rollouts, ..Known::default() })
}

/// All that is known of rollouts, with who holds which node.
pub(super) async fn known(cluster: &Cluster, leases: &str) -> Result<Known> {
    let mut known = progress(cluster).await?;
    let api: Api<Lease> = Api::namespaced(cluster.client.clone(), leases);
    match all(api, "leases").await {
        Ok(all) => known.leases = named(all, "leases"),
        Err(failed) => warn(&unknown_holders(&failed)),
    }
    Ok(known)
}

fn unknown_holders(failed: &Failed) -> String {
    format!("who holds which node is not known: {failed}")
}

async fn by_name<K>(
    cluster: &Cluster,
    api: Api<K>,
    kind: &'static str,
) -> Result<BTreeMap<String, K>>
where
    K: Resource + Clone + DeserializeOwned + fmt::Debug,
{
    match all(api, kind).await {
        Ok(all) => Ok(named(all, kind)),
        Err(failed) if failed.outcome == CallOutcome::Gone => Err(cluster.rolls_out_nothing()),
        Err(failed) => Err(cluster.failed(kind, &failed)),
    }
}

async fn all<K>(api: Api<K>, kind: &'static str) -> Result<Vec<Parsed<K>>, Failed>
where
    K: Resource + Clone + DeserializeOwned + fmt::Debug,
{
    let api = each_by_itself(api);
    let list = async |params| api.list(&params).await;
    let call = Call::new("list", kind);
    in_pages(PAGE, &Metrics::new(), call, ListParams::default(), list, Some).await
}

fn named<K: Resource + Clone>(all: Vec<Parsed<K>>, kind: &str) -> BTreeMap<String, K> {
    all.into_iter().filter_map(|seen| Some((seen.name_any(), readable(seen, kind)?))).collect()
}

/// One that cannot be read is told of, and hides no other.
fn readable<K: Resource + Clone>(seen: Parsed<K>, kind: &str) -> Option<K> {
    if let Parsed::Unreadable(metadata, why) = &seen {
        let name = metadata.name.as_deref().unwrap_or_default();
        warn(&format!(
            "{kind} {name}: {why}; it is left out: a newer version of tread may have written it"
        ));
    }
    seen.read()
}

/// The order of a node that something may still come of.
pub(super) fn open_order(update: &NodeUpdate) -> Option<&UpdateOrder> {
    update.spec.order.as_ref().filter(|order| order.stage != UpdateStage::Closed)
}

/// How far the agent is with the order that is open, or was with the last one.
pub(super) fn phase(update: &NodeUpdate) -> Option<UpdatePhase> {
    let status = update.status.as_ref()?;
    let is_of_this = |order: &UpdateOrder| status.operation.as_ref() == Some(&order.operation);
    status.phase.filter(|_| open_order(update).is_none_or(is_of_this))
}

/// Whether a node failed, and nothing more is done by itself.
pub(super) fn has_failed(update: &NodeUpdate) -> bool {
    phase(update) == Some(UpdatePhase::Degraded)
}

/// Whether a node failed on its way to the config of its pool, went back from it, or its agent refused
/// the order; and nobody asked since to try that again.
pub(super) fn has_failed_for(update: &NodeUpdate, rollout: &Rollout, now: Time) -> bool {
    let target = rollout.status.as_ref().and_then(|status| status.target.as_ref());
    let current = update.status.as_ref().and_then(|status| status.current.as_ref());
    let retried = rollout.spec.retry_failed_before.as_ref();
    let is_retried =
        || retried.is_some_and(|before| update.failed_at(now).is_none_or(|at| at < before.0));
    let stands = |order: &UpdateOrder| {
        let is_for_it = target.is_some_and(|it| it.name == order.config.name);
        let has_it = current.is_some_and(|it| it.name == order.config.name);
        is_for_it && !has_it && !is_retried()
    };
    let order = update.spec.order.as_ref();
    match phase(update) {
        Some(UpdatePhase::Degraded) => true,
        Some(UpdatePhase::WentBack) => order.is_some_and(stands),
        Some(UpdatePhase::TurnedBack) => order.is_some_and(|it| stands(it) && !it.withdrawn),
        _ => false,
    }
}

/// In a word: the agent's phase, or the stage of an order that it has said nothing of.
pub(super) fn phase_word(update: &NodeUpdate) -> Option<String> {
    let order = open_order(update);
    match (phase(update), order) {
        (_, None) if needs_agent(update) => Some(NEEDS_AGENT.to_owned()),
        (Some(phase), _) => Some(format!("{phase:?}")),
        (None, order) => order.map(|order| format!("{:?}", order.stage)),
    }
}

/// Whether its agent has to be upgraded before it gets an order.
fn needs_agent(update: &NodeUpdate) -> bool {
    let conditions = update.status.iter().flat_map(|status| &status.conditions);
    let mut of_config = conditions.filter(|it| it.type_ == "Updated" && it.status != "True");
    of_config.any(|it| it.reason == NEEDS_AGENT)
}

/// The Lease of a node.
pub(super) fn lease_of<'k>(known: &'k Known, node: &str) -> Option<&'k Lease> {
    known.leases.get(&node_lease::name(node)?)
}

/// Who holds a Lease.
pub(super) fn holder(lease: &Lease) -> Option<&str> {
    let holder = lease.spec.as_ref()?.holder_identity.as_deref()?;
    Some(holder).filter(|holder| !holder.is_empty())
}

/// Whether it is a tread's, of whichever installation.
pub(super) fn is_treads(holder: &str) -> bool {
    holder.starts_with(&node_lease::holder(""))
}
