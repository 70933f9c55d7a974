//! What is reported besides plans: what a policy does to those that wait, on the
//! policy itself; and what cannot be planned as it is meant, on whatever it is.

use super::compared::{Compared, Deciders, Effects, Made, effect};
use super::settings::Settings;
use super::standing::Standing;
use crate::pools::{Place, RollsOut};
use crate::previews::{Cluster, Described};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Resource as _, ResourceExt as _};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tread_kube::api::POOL_KIND;
use tread_kube::api::disruption_plan::FlaggedNode;
use tread_kube::api::words::MANAGER;
use tread_kube::api::{DisruptionPlan, DisruptionPolicy};
use tread_kube::asking::{Call, CallOutcome, Failed, ask};
use tread_kube::clean::cleaned;
use tread_kube::events::{Note, Reason};
use tread_kube::watching::parsed::{Parsed, each_by_itself};
use tread_model::effect::Effect;
use tread_model::read::MACHINE_CONFIG_API;
use tread_model::text::listed;

const POLICIES: &str = "disruptionpolicies";
const POOL: (&str, &str) = (MACHINE_CONFIG_API, POOL_KIND);
/// How many plans are named.
const NAMED: usize = 3;
/// How often something is tried to be reported on a policy.
pub(super) const MOST_TRIES: u32 = 8;
/// How many nodes that are in several pools are reported.
const NODES_REPORTED: usize = 20;
/// How often something is written that others write at the same time.
const TRIES: usize = 5;

/// On which policies something was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SaidOn {
    /// On all that there are.
    All,
    /// On those that have a status, which says what they are called in plans. That of a new one may be
    /// on its way.
    Some,
    /// Not on all of these, since a request failed.
    Failed,
}

/// Writes how often each policy decided in the plans that wait.
pub(super) async fn decisions(settings: &Settings, counts: &BTreeMap<String, i64>) -> SaidOn {
    let Some(objects) = list(settings).await else { return SaidOn::Failed };
    let mut said = SaidOn::All;
    for object in objects {
        let status = object.status.as_ref();
        if status.is_none_or(|status| status.state.is_none()) {
            said = SaidOn::Some;
        }
        let Some(name) = status.and_then(|status| status.name.as_ref()) else { continue };
        let count = counts.get(name).copied().unwrap_or_default();
        let is_said = status.and_then(|status| status.decisions).unwrap_or_default() == count;
        // The others would fare no better.
        if !is_said && !patch(settings, &object, json!({"decisions": count})).await {
            return SaidOn::Failed;
        }
    }
    said
}

/// Reports, once for as long as it is true, pools that cannot be read and
/// nodes that are in several pools: neither can be planned as it is meant.
pub(super) async fn troubles(
    settings: &Settings,
    cluster: &Cluster,
    reported: &mut BTreeSet<(String, String)>,
) {
    let mut notes = Vec::new();
    for pool in cluster.pools.values() {
        for text in pool.problems() {
            notes.push((about(POOL, &pool.name, &pool.uid), Reason::PoolUnreadable, text));
        }
    }
    let doubtful = cluster.members.all().filter_map(|(node, member)| match &member.place {
        Place::Several(pools) => {
            let pools = pools.join(", ");
            let text = format!(
                "It is in the pools {pools}, and no one can say which config it is to have: leave the \
                 label of one."
            );
            Some((node, Reason::InSeveralPools, text))
        }
        Place::MasterBeside(pool) => {
            let text = format!(
                "It is in the pool master, and pool {pool} selects it too: it gets the config of \
                 master, and nothing of {pool}. If that is not meant, take the label of {pool} away."
            );
            Some((node, Reason::MasterCounts, text))
        }
        Place::Nowhere | Place::Pool(_) | Place::Unplaced(_) | Place::Joining => None,
    });
    for (node, reason, text) in doubtful.take(NODES_REPORTED) {
        // Where kubectl looks for the Events about a node.
        notes.push((about(("v1", "Node"), node, node), reason, text));
    }
    let mut still = BTreeSet::new();
    for (about, reason, text) in notes {
        let trouble = (about.name.clone().unwrap_or_default(), text);
        if !reported.contains(&trouble) {
            let (name, text) = trouble.clone();
            if !settings.leads.now() {
                return;
            }
            tracing::warn!(name, reason = reason.word(), "{text}");
            settings.events.report(&about, &Note { reason, warns: true, text }).await;
        }
        still.insert(trouble);
    }
    *reported = still;
}

/// Reports, once each, nodes on their way by OpenShift's operator that somebody else has.
pub(super) async fn flagged(
    settings: &Settings,
    cluster: &Cluster,
    described: &[Arc<Described>],
    reported: &mut BTreeSet<(String, String)>,
) {
    let mut still = BTreeSet::new();
    for pool in cluster.pools.values() {
        // Where tread rolls out it leaves them alone, and says that itself.
        if pool.paused || cluster.rolls_out(pool) != RollsOut::Operator {
            continue;
        }
        // The last one is that of all changes together.
        let Some(plan) = described.iter().rfind(|plan| plan.pool == pool.name) else { continue };
        for FlaggedNode { node, why } in &plan.status.flagged {
            let news = (plan.name.clone(), node.clone());
            let uid = cluster.members.get(node).map_or("", |member| member.node.uid.as_str());
            let text = format!(
                "It is flagged for maintenance ({why}), and OpenShift's operator, which does not \
                 wait for that, is about to bring it the new config of pool {}: {}. To wait, pause \
                 the pool.",
                pool.name,
                plan.status.effect.as_deref().unwrap_or_default()
            );
            let note = Note { reason: Reason::NodeFlagged, warns: true, text };
            let is_reported = reported.contains(&news) || {
                if !settings.leads.now() {
                    return;
                }
                let about = about(("v1", "Node"), node, uid);
                settings.events.report_each(&about, &note, &plan.name).await.is_ok()
            };
            if is_reported {
                still.insert(news);
            }
        }
    }
    *reported = still;
}

pub(crate) fn about((version, kind): (&str, &str), name: &str, uid: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some(version.to_owned()),
        kind: Some(kind.to_owned()),
        name: Some(name.to_owned()),
        uid: Some(uid.to_owned()),
        ..ObjectReference::default()
    }
}

/// The plans that are reported.
pub(super) struct Plans<'p> {
    pub(super) standing: &'p BTreeMap<String, Standing>,
    pub(super) described: &'p [Arc<Described>],
}

/// What is still to be reported on a policy.
#[derive(Debug)]
pub(super) struct Unreported {
    policy: String,
    /// News.
    text: String,
    /// All that it did to plans.
    sum: String,
    warns: bool,
    /// How often that was tried in vain.
    tries: u32,
}

/// Reports the plans that a change of policies made gentler or harsher: on the
/// plans themselves. What is to be reported on the policies comes back.
pub(super) async fn policies_changed(
    settings: &Settings,
    now: &Deciders,
    compared: &mut Compared,
    plans: &Plans<'_>,
) -> Vec<Unreported> {
    let mut unreported = Vec::new();
    for made in std::mem::take(&mut compared.unreported) {
        let sum = sentence(&compared.sum(now, &made));
        let text = sentence(&made);
        // Nothing can be reported on one that is gone.
        let (there, gone): (Vec<&String>, Vec<&String>) =
            made.by.iter().partition(|name| now.has(name));
        for name in gone {
            tracing::info!(policy = name, "is gone: {text}");
        }
        unreported.extend(there.into_iter().map(|name| Unreported {
            policy: name.clone(),
            text: text.clone(),
            sum: sum.clone(),
            warns: !made.harsher.is_empty(),
            tries: 0,
        }));
        let policies = made.by.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        for plan in plans.described {
            let (word, before) = match (made.gentler.get(&plan.name), made.harsher.get(&plan.name))
            {
                (Some(before), _) => ("gentler", *before),
                (_, Some(before)) => ("harsher", *before),
                _ => continue,
            };
            if !settings.leads.now() {
                return unreported;
            }
            let text = changed(plan, word, before, &policies);
            let note = Note { reason: Reason::PlanChanged, warns: word == "harsher", text };
            let uid = plans.standing.get(&plan.name).map_or("", |it| it.uid.as_str());
            let version = DisruptionPlan::api_version(&());
            let about = about((&*version, "DisruptionPlan"), &plan.name, uid);
            settings.events.report(&about, &note).await;
        }
    }
    unreported
}

/// What changed of a plan, from what to what. Beside OpenShift's operator that is
/// what tread would do, and not what happens to nodes.
fn changed(plan: &Described, word: &str, before: Option<Effect>, policies: &str) -> String {
    let named = |effect: Option<Effect>| effect.map_or("not known", Effect::as_str);
    let (from, to) = (named(before), named(effect(plan)));
    let happens = plan.status.effect.as_deref().unwrap_or_default();
    match &plan.status.tread {
        Some(tread) => format!(
            "What tread would do is {word} than before, {to} instead of {from} ({tread}), since this \
             changed: {policies}. It changes nothing for the nodes: OpenShift's operator rolls this \
             out ({happens}), and asks no policy of tread's."
        ),
        None => format!(
            "{word} than before, {to} instead of {from} ({happens}), since this changed: {policies}"
        ),
    }
}

/// Reports it on the policies; what could not be reported comes back. The status of a
/// new policy, which says what it is called in plans, may be on its way.
pub(super) async fn on_policies(
    settings: &Settings,
    unreported: Vec<Unreported>,
) -> Vec<Unreported> {
    if unreported.is_empty() {
        return unreported;
    }
    let Some(objects) = list(settings).await else { return unreported };
    let mut still = Vec::new();
    for mut it in unreported {
        let is_it = |object: &&DisruptionPolicy| {
            let name = object.status.as_ref().and_then(|status| status.name.as_ref());
            name.is_some_and(|name| *name == it.policy)
        };
        let found = objects.iter().find(is_it);
        let is_written = match found {
            Some(object) => patch(settings, object, json!({"pendingPlans": it.sum})).await,
            None => false,
        };
        match found.filter(|_| is_written) {
            Some(object) => {
                let note = Note { reason: Reason::PlansChanged, warns: it.warns, text: it.text };
                settings.events.report(&object.object_ref(&()), &note).await;
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

fn sentence(made: &Made) -> String {
    let part = |plans: &Effects, word: &str| {
        let named = listed(&plans.keys().collect::<Vec<_>>(), NAMED);
        let noun = if plans.len() == 1 { "plan" } else { "plans" };
        format!("{} pending {noun} {word} ({named})", plans.len())
    };
    let gentler = Some(&made.gentler).filter(|it| !it.is_empty()).map(|it| part(it, "gentler"));
    let harsher = Some(&made.harsher).filter(|it| !it.is_empty()).map(|it| part(it, "harsher"));
    let parts: Vec<String> = gentler.into_iter().chain(harsher).collect();
    format!("It made {}.", parts.join(" and "))
}

async fn list(settings: &Settings) -> Option<Vec<DisruptionPolicy>> {
    let api = each_by_itself(Api::<DisruptionPolicy>::all(settings.client.clone()));
    let params = ListParams::default();
    match ask(&settings.metrics, Call::new("list", POLICIES), api.list(&params)).await {
        // Of what cannot be read the registry says so.
        Ok(list) => Some(list.items.into_iter().filter_map(Parsed::read).collect()),
        Err(failed) => {
            tracing::warn!("policies were not listed, and will be: {failed}");
            None
        }
    }
}

async fn patch(settings: &Settings, object: &DisruptionPolicy, status: Value) -> bool {
    let api: Api<DisruptionPolicy> = Api::all(settings.client.clone());
    let status = cleaned(status);
    let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    let name = object.name_any();
    let mut version = object.resource_version();
    let not_written = |failed: &Failed| {
        tracing::warn!(policy = name, "not written: {failed}");
        false
    };
    for _ in 0..TRIES {
        // If this replica is paused here, and another one leads and writes meanwhile, the request
        // fails with a conflict.
        if !settings.leads.now() {
            return false;
        }
        let metadata = json!({"uid": object.uid(), "resourceVersion": version});
        let patch = Patch::Merge(json!({"metadata": metadata, "status": status}));
        let patched = api.patch_status(&name, &params, &patch);
        let call = Call::new("patch", POLICIES).of_status();
        match ask(&settings.metrics, call, patched).await {
            Ok(_) => return true,
            Err(failed) => match failed.outcome {
                CallOutcome::Gone => return true,
                CallOutcome::Conflict => {}
                _ => return not_written(&failed),
            },
        }
        let params = ListParams::default().fields(&format!("metadata.name={name}"));
        let listed = api.list_metadata(&params);
        match ask(&settings.metrics, Call::new("list", POLICIES), listed).await {
            Ok(now) => match now.items.first().filter(|now| now.uid() == object.uid()) {
                Some(now) => version = now.resource_version(),
                // It is gone, or another one of its name is there.
                None => return true,
            },
            Err(failed) => return not_written(&failed),
        }
    }
    tracing::info!(policy = name, "others write it all the time: written in the next pass");
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use tread_kube::api::disruption_plan::{Cause, Transition};

    #[test]
    fn beside_the_operator_it_is_said_which_of_both_effects_changed() {
        let mut plan = Described {
            name: "a".to_owned(),
            pool: "worker".to_owned(),
            cause: Cause::default(),
            effect: Effect::Reboot,
            status: Default::default(),
            happens: Vec::new(),
            reasons: Vec::new(),
            left_out: BTreeSet::new(),
        };
        plan.status.effect = Some("reload crio.service".to_owned());
        plan.status.transitions =
            vec![Transition { effect: Some(Effect::Reload), ..Transition::default() }];
        assert_eq!(
            changed(&plan, "gentler", Some(Effect::Reboot), "crio"),
            "gentler than before, reload instead of reboot (reload crio.service), since this \
             changed: crio"
        );
        plan.status.tread = plan.status.effect.replace("drain + reboot".to_owned());
        let text = changed(&plan, "gentler", Some(Effect::Reboot), "crio");
        assert!(
            text.starts_with(
                "What tread would do is gentler than before, reload instead of reboot"
            ),
            "{text}"
        );
        assert!(text.contains("changes nothing for the nodes"), "{text}");
        assert!(text.contains("operator rolls this out (drain + reboot)"), "{text}");
    }
}
