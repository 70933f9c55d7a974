//! What is told besides plans: what a policy does to those that wait, on the
//! policy itself; and what cannot be planned as it is meant, on whatever it is.

use super::Settings;
use super::state::Standing;
use super::write::answered;
use crate::api::DisruptionPolicy;
use crate::api::words::MANAGER;
use crate::events::Note;
use crate::policies::current::Current;
use crate::pools::POOL_KIND;
use crate::previews::{Cluster, Described};
use crate::told::told;
use crate::watching::seen::{Seen, each_by_itself};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Resource as _, ResourceExt as _};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// How many plans are named.
const NAMED: usize = 3;
/// How many nodes that are in several pools are told of.
const NODES_TOLD_OF: usize = 20;
/// How often something is written that others write at the same time.
const TRIES: usize = 5;

/// Writes how often each policy decided in the plans that wait; whether that
/// went well.
pub(super) async fn decisions(settings: &Settings, counts: &BTreeMap<String, i64>) -> bool {
    let Some(objects) = list(settings).await else { return false };
    let mut well = true;
    for object in objects {
        let status = object.status.as_ref();
        let Some(name) = status.and_then(|status| status.name.as_ref()) else { continue };
        let count = counts.get(name).copied().unwrap_or_default();
        if status.and_then(|status| status.decisions).unwrap_or_default() != count {
            well &= patch(settings, &object, json!({"decisions": count})).await;
        }
    }
    well
}

/// Tells, once for as long as it is true, of pools that cannot be read and of
/// nodes that are in several pools: neither can be planned as it is meant.
pub(super) async fn troubles(
    settings: &Settings,
    cluster: &Cluster,
    told: &mut BTreeSet<(String, String)>,
) {
    let mut notes = Vec::new();
    for pool in cluster.pools.values() {
        if let Some(problem) = &pool.problem {
            let text = format!("{problem}: it counts as not set until that is mended.");
            let kind = ("machineconfiguration.openshift.io/v1", POOL_KIND);
            let about = about(kind, &pool.name, &pool.uid);
            notes.push((about, "PoolUnreadable", text));
        }
    }
    for (node, pools) in cluster.members.in_doubt().take(NODES_TOLD_OF) {
        let text = format!(
            "It is in the pools {}, and no one can say which config it is to have: leave the label \
             of one.",
            pools.join(", ")
        );
        // Where kubectl looks for what is told of a node.
        notes.push((about(("v1", "Node"), node, node), "InSeveralPools", text));
    }
    let mut still = BTreeSet::new();
    for (about, reason, text) in notes {
        let trouble = (about.name.clone().unwrap_or_default(), text);
        if !told.contains(&trouble) {
            let (name, text) = trouble.clone();
            if !settings.leads.now() {
                return;
            }
            tracing::warn!(name, reason, "{text}");
            settings.events.tell(&about, &Note { reason, warns: true, text }).await;
        }
        still.insert(trouble);
    }
    *told = still;
}

fn about((version, kind): (&str, &str), name: &str, uid: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some(version.to_owned()),
        kind: Some(kind.to_owned()),
        name: Some(name.to_owned()),
        uid: Some(uid.to_owned()),
        ..ObjectReference::default()
    }
}

/// Tells of the plans that a change of policies made gentler or harsher.
pub(super) async fn policies_changed(
    settings: &Settings,
    before: &Current,
    after: &Current,
    plans_before: &BTreeMap<String, Vec<Described>>,
    plans_after: &BTreeMap<String, Vec<Described>>,
    standing: &BTreeMap<String, Standing>,
) {
    let (gentler, harsher) = compare(plans_before, plans_after);
    let Some(text) = sentence(&gentler, &harsher) else { return };
    let changed = changed(before, after);
    let note = Note { reason: "PlansChanged", warns: !harsher.is_empty(), text: text.clone() };
    let Some(objects) = list(settings).await else { return };
    for object in objects {
        let name = object.status.as_ref().and_then(|status| status.name.as_ref());
        if name.is_some_and(|name| changed.contains(name.as_str())) {
            patch(settings, &object, json!({"pendingPlans": text})).await;
            settings.events.tell(&object.object_ref(&()), &note).await;
        }
    }
    // One that is gone cannot be told on itself.
    let there: BTreeSet<&str> = names(after).into_keys().collect();
    for name in changed.iter().filter(|name| !there.contains(*name)) {
        tracing::info!(policy = name, "is gone: {text}");
    }
    for plan in plans_after.values().flatten() {
        let is_named = |all: &[&str]| all.contains(&plan.name.as_str());
        let word = match (is_named(&gentler), is_named(&harsher)) {
            (true, _) => "gentler",
            (_, true) => "harsher",
            _ => continue,
        };
        let policies = changed.iter().copied().collect::<Vec<_>>().join(", ");
        let effect = plan.status.effect.as_deref().unwrap_or_default();
        let text = format!("{word} than before, {effect}, since this changed: {policies}");
        let note = Note { reason: "PlanChanged", warns: word == "harsher", text };
        let uid = standing.get(&plan.name).map_or("", |it| it.uid.as_str());
        let about = about(("tread.dev/v1alpha1", "DisruptionPlan"), &plan.name, uid);
        settings.events.tell(&about, &note).await;
    }
}

/// The names of plans that are gentler than before, and of those that are harsher.
fn compare<'p>(
    before: &BTreeMap<String, Vec<Described>>,
    after: &'p BTreeMap<String, Vec<Described>>,
) -> (Vec<&'p str>, Vec<&'p str>) {
    let (mut gentler, mut harsher) = (Vec::new(), Vec::new());
    for (pool, plans) in after {
        for plan in plans {
            let earlier = before.get(pool).and_then(|it| it.iter().find(|it| it.name == plan.name));
            // What the operator does does not follow tread's policies.
            let effect = |plan: &Described| {
                plan.status.transitions.iter().filter_map(|way| way.effect).max()
            };
            match earlier.map(|earlier| effect(plan).cmp(&effect(earlier))) {
                Some(std::cmp::Ordering::Less) => gentler.push(plan.name.as_str()),
                Some(std::cmp::Ordering::Greater) => harsher.push(plan.name.as_str()),
                _ => {}
            }
        }
    }
    (gentler, harsher)
}

fn sentence(gentler: &[&str], harsher: &[&str]) -> Option<String> {
    let part = |plans: &[&str], word: &str| {
        let named = plans.iter().copied().take(NAMED).collect::<Vec<_>>().join(", ");
        let more = match plans.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let noun = if plans.len() == 1 { "plan" } else { "plans" };
        format!("{} pending {noun} {word} ({named}{more})", plans.len())
    };
    match (gentler, harsher) {
        ([], []) => None,
        (gentler, []) => Some(format!("It made {}.", part(gentler, "gentler"))),
        ([], harsher) => Some(format!("It made {}.", part(harsher, "harsher"))),
        (gentler, harsher) => {
            Some(format!("It made {} and {}.", part(gentler, "gentler"), part(harsher, "harsher")))
        }
    }
}

/// The policies that decide now and did not before, or otherwise.
fn changed<'c>(before: &'c Current, after: &'c Current) -> BTreeSet<&'c str> {
    let (before, after) = (names(before), names(after));
    let other = |one: &BTreeMap<&'c str, String>, other: &BTreeMap<&'c str, String>| {
        let differs = one.iter().filter(|(name, said)| other.get(*name) != Some(said));
        differs.map(|(name, _)| *name).collect::<Vec<&'c str>>()
    };
    other(&before, &after).into_iter().chain(other(&after, &before)).collect()
}

fn names(current: &Current) -> BTreeMap<&str, String> {
    let policies = current.policies.policies().iter();
    let said = policies.map(|policy| {
        let it = &policy.identity;
        let said = format!(
            "{} {} {} {} {}",
            it.layer, it.digest, it.settings_digest, policy.may_relax, policy.read_secrets
        );
        (it.policy.as_str(), said)
    });
    said.collect()
}

async fn list(settings: &Settings) -> Option<Vec<DisruptionPolicy>> {
    let api: Api<DisruptionPolicy> = Api::all(settings.client.clone());
    match answered(each_by_itself(api).list(&ListParams::default())).await {
        // Of what cannot be read the registry says so.
        Ok(list) => Some(list.items.into_iter().filter_map(Seen::read).collect()),
        Err(error) => {
            settings.metrics.api_error("list", "disruptionpolicies", &error);
            tracing::warn!("policies were not listed, and will be: {}", told(&error));
            None
        }
    }
}

async fn patch(settings: &Settings, object: &DisruptionPolicy, status: Value) -> bool {
    let api: Api<DisruptionPolicy> = Api::all(settings.client.clone());
    let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    let name = object.name_any();
    let mut version = object.resource_version();
    let failed = |verb: &'static str, error: &kube::Error| {
        settings.metrics.api_error(verb, "disruptionpolicies", error);
        tracing::warn!(policy = name, "not written: {}", told(error));
        false
    };
    for _ in 0..TRIES {
        // Who was stopped before the request is sent finds that another one wrote.
        if !settings.leads.now() {
            return false;
        }
        let metadata = json!({"uid": object.uid(), "resourceVersion": version});
        let patch = Patch::Merge(json!({"metadata": metadata, "status": status}));
        match answered(api.patch_status(&name, &params, &patch)).await {
            Ok(_) => return true,
            Err(kube::Error::Api(status)) if status.is_not_found() => return true,
            Err(kube::Error::Api(status)) if status.is_conflict() => {}
            Err(error) => return failed("patch", &error),
        }
        let params = ListParams::default().fields(&format!("metadata.name={name}"));
        match answered(api.list_metadata(&params)).await {
            Ok(now) => match now.items.first().filter(|now| now.uid() == object.uid()) {
                Some(now) => version = now.resource_version(),
                // It is gone, or another one of its name is there.
                None => return true,
            },
            Err(error) => return failed("list", &error),
        }
    }
    tracing::info!(policy = name, "others write it all the time: written at the next look");
    false
}
