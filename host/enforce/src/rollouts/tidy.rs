//! Rendered configs that nobody names any more go.

use super::known::Moment;
use super::settings::Settings;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Preconditions};
use std::collections::BTreeSet;
use tread_cluster::previews::Cluster;
use tread_kube::api::{DisruptionPlan, MachineConfig};
use tread_kube::asking::{Call, CallOutcome, Failed, ask};
use tread_kube::paging::in_pages;
use tread_model::rendering::{Existing, Pool, unneeded};

/// How many plans are listed at a time: they are large.
const PAGE: u32 = 20;

/// Removes what nobody names any more.
pub(crate) async fn tidy(
    settings: &Settings,
    cluster: &Cluster,
    moment: &Moment,
    served: Vec<String>,
) -> Result<(), Failed> {
    let mut named = named(cluster, moment);
    // Machines that boot with it may claim so until their claims end.
    named.extend(served);
    if idle(cluster, &named).is_empty() {
        return Ok(());
    }
    let api: Api<DisruptionPlan> = Api::all(settings.acts.client.clone());
    let list = |params: ListParams| {
        let api = api.clone();
        async move { api.list(&params).await }
    };
    let names = |plan: DisruptionPlan| {
        let ways = plan.status.unwrap_or_default().transitions.into_iter();
        Some(ways.flat_map(|way| [way.from, way.to]).collect::<Vec<String>>())
    };
    let (metrics, call) = (&settings.acts.metrics, Call::new("list", "disruptionplans"));
    let planned = in_pages(PAGE, metrics, call, ListParams::default(), list, names).await?;
    named.extend(planned.into_iter().flatten());
    for name in idle(cluster, &named) {
        let Some(config) = cluster.configs.get(name) else { continue };
        let api: Api<MachineConfig> = Api::all(settings.acts.client.clone());
        let preconditions = Preconditions { uid: Some(config.uid.clone()), resource_version: None };
        let params = DeleteParams::default().preconditions(preconditions);
        let call = Call::new("delete", "machineconfigs");
        match ask(metrics, call, api.delete(name, &params)).await {
            Err(failed) if failed.outcome == CallOutcome::Gone => {}
            deleted => drop(deleted?),
        }
        tracing::info!(config = name, "nobody names it any more: it is removed");
    }
    Ok(())
}

/// What pools, nodes and NodeUpdates name.
fn named(cluster: &Cluster, moment: &Moment) -> BTreeSet<String> {
    let of_pools = cluster.pools.values().flat_map(|pool| [&pool.target, &pool.settled]);
    let mut named: BTreeSet<String> = of_pools.flatten().map(|it| it.name.clone()).collect();
    named.extend(cluster.members.all().filter_map(|(_, member)| member.node.current.clone()));
    for update in moment.updates.values() {
        named.extend(update.spec.order.as_ref().map(|order| order.config.name.clone()));
        let status = update.status.as_ref();
        named.extend(status.and_then(|it| it.current.as_ref()).map(|it| it.name.clone()));
    }
    named
}

fn idle<'c>(cluster: &'c Cluster, named: &BTreeSet<String>) -> Vec<&'c str> {
    let there: Vec<Existing<'_>> = cluster
        .configs
        .iter()
        .map(|(name, config)| Existing {
            name,
            rendered_by: config.by_tread.then_some("tread "),
            owner: config.owner.as_ref().map(|it| Pool { name: &it.name, uid: &it.uid }),
            created: config.created,
        })
        .collect();
    unneeded(&there, &named.iter().map(String::as_str).collect())
}
