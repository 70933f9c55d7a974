//! Rendered configs that nobody names any more go.

use super::known::Moment;
use super::render::Made;
use super::settings::Settings;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Preconditions};
use std::collections::{BTreeMap, BTreeSet};
use tread_cluster::previews::Cluster;
use tread_kube::api::{DisruptionPlan, MachineConfig};
use tread_kube::asking::{Call, CallOutcome, Failed, ask};
use tread_kube::paging::in_pages;
use tread_kube::watching::parsed::{Parsed, each_by_itself};
use tread_model::rendering::{Existing, Pool, unneeded};

/// How many plans are listed at a time: they are large.
const PAGE: u32 = 20;

/// What stays though nothing names it yet: configs that machines boot with, which their nodes may
/// name until their claims end, and configs that pools are to have, which may have been delivered
/// just now.
pub(crate) fn kept(served: &[String], made: &BTreeMap<String, Made>) -> BTreeSet<String> {
    let made = made.values().flatten().map(|made| &made.name);
    served.iter().chain(made).cloned().collect()
}

/// Removes what nobody names any more, but for what is kept.
pub(crate) async fn tidy(
    settings: &Settings,
    cluster: &Cluster,
    moment: &Moment,
    kept: BTreeSet<String>,
) -> Result<(), Failed> {
    let mut named = named(cluster, moment);
    named.extend(kept);
    if idle(cluster, &named).is_empty() {
        return Ok(());
    }
    let api = each_by_itself(Api::<DisruptionPlan>::all(settings.acts.client.clone()));
    let list = |params: ListParams| {
        let api = api.clone();
        async move { api.list(&params).await }
    };
    let names = |plan: Parsed<DisruptionPlan>| match plan {
        Parsed::Read(plan) => {
            let ways = plan.status.unwrap_or_default().transitions.into_iter();
            Some(Ok(ways.flat_map(|way| [way.from, way.to]).collect::<Vec<String>>()))
        }
        Parsed::Unreadable(metadata, why) => Some(Err((metadata.name, why))),
    };
    let (metrics, call) = (&settings.acts.metrics, Call::new("list", "disruptionplans"));
    let planned = in_pages(PAGE, metrics, call, ListParams::default(), list, names).await?;
    // What one of them names is not known where it cannot be read.
    match planned.into_iter().collect::<Result<Vec<_>, _>>() {
        Ok(names) => named.extend(names.into_iter().flatten()),
        Err((plan, why)) => {
            tracing::warn!(
                plan,
                why,
                "this DisruptionPlan cannot be read: no old config is removed"
            );
            return Ok(());
        }
    }
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
    // What a pool names is not known while it cannot be read.
    if cluster.pools.values().any(|pool| pool.unread.is_some()) {
        return Vec::new();
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollouts::render::{NotMade, ToHave};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use serde_json::json;
    use std::sync::Arc;
    use tread_cluster::pools::{ConfigMeta, Configs};

    /// A rendered config of the pool, made in this minute.
    fn config(minute: u32) -> ConfigMeta {
        let mut metadata: ObjectMeta = serde_json::from_value(json!({
            "name": format!("rendered-worker-{minute}"), "uid": minute.to_string(),
            "creationTimestamp": format!("2026-01-01T00:{minute:02}:00Z"),
            "annotations": {tread_model::rendering::RENDERED_BY: "tread 1.0.0"},
            "ownerReferences": [{"apiVersion": "machineconfiguration.openshift.io/v1",
                "kind": "MachineConfigPool", "name": "worker", "uid": "1", "controller": true}],
        }))
        .unwrap();
        ConfigMeta::of(&mut metadata)
    }

    #[test]
    fn what_a_pool_was_told_just_now_is_kept_though_nobody_was_seen_to_name_it() {
        let mut configs = Configs::default();
        for minute in 1..=6 {
            configs.insert(format!("rendered-worker-{minute}"), Arc::new(config(minute)));
        }
        let cluster = Cluster { configs, ..Cluster::default() };
        let idle_in = |cluster: &Cluster, kept: BTreeSet<String>| -> Vec<String> {
            let mut named = named(cluster, &Moment::empty());
            named.extend(kept);
            idle(cluster, &named).into_iter().map(str::to_owned).collect()
        };
        let idle = |kept: BTreeSet<String>| idle_in(&cluster, kept);
        let none = BTreeMap::new();
        let all = ["rendered-worker-1", "rendered-worker-2", "rendered-worker-3"];
        assert_eq!(idle(kept(&[], &none)), all);
        // Somebody took a change back: the pool gets the first one again.
        let not = NotMade { word: "Unreadable", why: "it cannot be read".to_owned() };
        let made = BTreeMap::from([
            ("worker".to_owned(), Ok(Arc::new(ToHave::named("rendered-worker-1")))),
            ("other".to_owned(), Err(not)),
        ]);
        assert_eq!(idle(kept(&[], &made)), ["rendered-worker-2", "rendered-worker-3"]);
        // What it names is not known.
        let unread =
            tread_cluster::pools::Pool::unread(&ObjectMeta::default(), "spec.x: it is odd");
        let pools = [("infra".to_owned(), Arc::new(unread))].into();
        let with_unread = Cluster { pools, ..cluster.clone() };
        assert_eq!(idle_in(&with_unread, kept(&[], &made)), [""; 0]);
        let served = ["rendered-worker-2".to_owned()];
        assert_eq!(idle(kept(&served, &made)), ["rendered-worker-3"]);
    }
}
