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
/// How often something is tried to be told on a policy.
const MOST_TRIES: u32 = 8;
/// How many nodes that are in several pools are told of.
const NODES_TOLD_OF: usize = 20;

/// Writes how often each policy decided in the plans that wait; whether that
/// went well.
pub(super) async fn decisions(settings: &Settings, counts: &BTreeMap<String, i64>) -> bool {
    let Some(objects) = list(settings).await else { return false };
    for object in objects {
        let status = object.status.as_ref();
        let Some(name) = status.and_then(|status| status.name.as_ref()) else { continue };
        let count = counts.get(name).copied().unwrap_or_default();
        let is_said = status.and_then(|status| status.decisions).unwrap_or_default() == count;
        // The others would fare no better.
        if !is_said && !patch(settings, &object, json!({"decisions": count})).await {
            return false;
        }
    }
    true
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

/// What is to be told on a policy.
#[derive(Debug)]
pub(super) struct Untold {
    policy: String,
    text: String,
    warns: bool,
    /// How often that was tried in vain.
    tries: u32,
}

/// Tells of the plans that a change of policies made gentler or harsher: on the
/// plans themselves. What is to be told on the policies comes back.
pub(super) async fn policies_changed(
    settings: &Settings,
    before: &Current,
    after: &Current,
    plans_before: &BTreeMap<String, Vec<Described>>,
    plans_after: &BTreeMap<String, Vec<Described>>,
    standing: &BTreeMap<String, Standing>,
) -> Vec<Untold> {
    let (gentler, harsher) = compare(plans_before, plans_after);
    let Some(text) = sentence(&gentler, &harsher) else { return Vec::new() };
    let changed = changed(before, after);
    // One that is gone cannot be told on itself.
    let there: BTreeSet<&str> = names(after).into_keys().collect();
    let untold = changed.iter().filter(|name| there.contains(*name)).map(|name| Untold {
        policy: (*name).to_owned(),
        text: text.clone(),
        warns: !harsher.is_empty(),
        tries: 0,
    });
    let untold = untold.collect();
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
    untold
}

/// What was to be told of the same policies before is not news any more.
pub(super) fn queue(untold: &mut Vec<Untold>, news: Vec<Untold>) {
    untold.retain(|it| !news.iter().any(|other| other.policy == it.policy));
    untold.extend(news);
}

/// Tells it on the policies; what could not be told comes back. The status of a
/// new policy, which says what it is called in plans, may be on its way.
pub(super) async fn on_policies(settings: &Settings, untold: Vec<Untold>) -> Vec<Untold> {
    if untold.is_empty() {
        return untold;
    }
    let objects = list(settings).await.unwrap_or_default();
    let mut still = Vec::new();
    for mut it in untold {
        let is_it = |object: &&DisruptionPolicy| {
            let name = object.status.as_ref().and_then(|status| status.name.as_ref());
            name.is_some_and(|name| *name == it.policy)
        };
        let found = objects.iter().find(is_it);
        let told = match found {
            Some(object) => patch(settings, object, json!({"pendingPlans": it.text})).await,
            None => false,
        };
        match found.filter(|_| told) {
            Some(object) => {
                let note = Note { reason: "PlansChanged", warns: it.warns, text: it.text };
                settings.events.tell(&object.object_ref(&()), &note).await;
            }
            None if it.tries < MOST_TRIES => {
                it.tries = it.tries.saturating_add(1);
                still.push(it);
            }
            None => tracing::warn!(policy = it.policy, "not told on itself: {}", it.text),
        }
    }
    still
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
    let patch = Patch::Merge(json!({ "status": status }));
    match answered(api.patch_status(&object.name_any(), &params, &patch)).await {
        Ok(_) => true,
        Err(kube::Error::Api(status)) if status.is_not_found() => true,
        Err(error) => {
            settings.metrics.api_error("patch", "disruptionpolicies", &error);
            tracing::warn!(policy = object.name_any(), "not written: {}", told(&error));
            false
        }
    }
}
