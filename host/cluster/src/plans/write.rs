//! What the leader writes: DisruptionPlans. Whatever fails is written at the
//! next pass, which a failure brings about by itself.

use super::foreign;
use super::settings::{Retention, Settings};
use super::standing::{PLANS, Standing, says};
use crate::pools::{Configuration, Pool};
use crate::previews::{self, Described};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tread_kube::api::POOL_KIND;
use tread_kube::api::conditions::{self, Finding, cut};
use tread_kube::api::words::MANAGER;
use tread_kube::api::{DisruptionPlan, DisruptionPlanSpec, DisruptionPlanStatus};
use tread_kube::asking::{Call, CallOutcome, Failed, ask, lacks_rights};
use tread_kube::clean::cleaned;
use tread_kube::watching::Pruned;
use tread_model::read::MACHINE_CONFIG_API;

const PENDING: &str = "Pending";
/// Why a plan is pending no more that lost its place to others.
const LEFT_OUT: &str = "LeftOut";

/// The DisruptionPlans of a pool, as they have to be and as they are.
pub(super) struct OfPool<'p> {
    pub(super) name: &'p str,
    /// None: the pool is gone, and its plans go with it.
    pub(super) pool: Option<&'p Pool>,
    pub(super) wanted: &'p [Arc<Described>],
    pub(super) standing: &'p BTreeMap<String, Standing>,
    /// Since when tread knows what the nodes of a pool have that nobody renders.
    pub(super) known_since: i64,
    pub(super) keep: Retention,
    /// What the API server left of what was written.
    pub(super) pruned: &'p mut Pruned,
}

/// How writing went.
#[derive(Debug, Default)]
pub(super) struct Wrote {
    /// What failed, in words.
    pub(super) failed: Option<String>,
    /// tread's roles do not allow it.
    pub(super) lacks_rights: bool,
    /// A plan that somebody else wrote first: its pool has to be looked at again.
    pub(super) overtaken: Option<String>,
}

/// Brings the plans of a pool to what they have to be.
#[tracing::instrument(name = "write", skip_all, fields(pool = of_pool.name))]
pub(super) async fn write_pool(settings: &Settings, of_pool: OfPool<'_>) -> Wrote {
    let api: Api<DisruptionPlan> = Api::all(settings.client.clone());
    let Some(pool) = of_pool.pool else { return Wrote::default() };
    let (mut problems, mut overtaken) = (Vec::new(), None);
    let mut forbidden = None;
    let mut note = |name: &str, result: Result<(), Failed>| {
        let Err(failed) = result else { return };
        match failed.outcome {
            // The watch says so.
            CallOutcome::Gone => {}
            // The watch brings what they wrote, unless that says the same.
            CallOutcome::Conflict => {
                let verb = failed.verb();
                tracing::debug!(plan = name, verb, "somebody was faster: {failed}");
                overtaken = Some(format!("{name}: somebody was faster: {failed}"));
            }
            CallOutcome::Forbidden
            | CallOutcome::Unauthenticated
            | CallOutcome::Refused
            | CallOutcome::Unanswered
            | CallOutcome::Unreadable => {
                problems.push(format!("{name}: {failed}"));
                forbidden = Some(failed);
            }
        }
    };
    // The next leader may know better by now.
    let leads = || settings.leads.now();
    for wanted in of_pool.wanted.iter().filter(|_| leads()) {
        let standing = of_pool.standing.get(&wanted.name);
        let put = put(settings, &api, (pool, wanted), standing, &mut *of_pool.pruned);
        note(&wanted.name, put.await);
    }
    let is_wanted = |name: &str| of_pool.wanted.iter().any(|it| it.name == name);
    of_pool.pruned.keep(|name| is_wanted(name) || !of_pool.standing.contains_key(name));
    let now = Timestamp::now();
    let mut ended = Vec::new();
    for (name, standing) in of_pool.standing.iter().filter(|(_, it)| it.pool == of_pool.name) {
        if !leads() || of_pool.wanted.iter().any(|wanted| wanted.name == *name) {
            continue;
        }
        let ended_at = match ended_before(standing) {
            Some(at) => Some(at),
            None => {
                let whole = of_pool.wanted.last().filter(|it| it.left_out.contains(name));
                let finding = match whole {
                    Some(whole) => left_out(&whole.name),
                    None => over(pool, (name, standing), of_pool.known_since),
                };
                let is_over = finding.status != Some(true);
                let since = since(standing, &finding.reason).unwrap_or(now.as_second());
                note(name, end(settings, &api, (name, standing), finding, now).await);
                is_over.then_some(since)
            }
        };
        ended.extend(ended_at.map(|at| (at, name)));
    }
    ended.sort_unstable_by(|a, b| b.cmp(a));
    let oldest = now.as_second().saturating_sub(of_pool.keep.seconds);
    for (index, (ended_at, name)) in ended.into_iter().enumerate() {
        if leads() && (index >= of_pool.keep.count || ended_at < oldest) {
            let Some(standing) = of_pool.standing.get(name) else { continue };
            // Another leader may have found since that it is pending.
            let (uid, version) = (standing.uid.clone(), standing.version.clone());
            let as_seen = Preconditions { uid: Some(uid), resource_version: Some(version) };
            let params = DeleteParams { preconditions: Some(as_seen), ..DeleteParams::default() };
            let deleted = api.delete(name, &params);
            note(name, ask(&settings.metrics, Call::new("delete", PLANS), deleted).await.map(drop));
        }
    }
    let lacks_rights = match &forbidden {
        Some(failed) => lacks_rights(&settings.client, &settings.metrics, failed).await,
        None => false,
    };
    let failed = (!problems.is_empty()).then(|| cut(problems.join("; "), 2048));
    Wrote { failed, lacks_rights, overtaken }
}

async fn put(
    settings: &Settings,
    api: &Api<DisruptionPlan>,
    (pool, wanted): (&Pool, &Described),
    standing: Option<&Standing>,
    pruned: &mut Pruned,
) -> Result<(), Failed> {
    let mut status = cleaned(previews::cut(wanted.status.clone()));
    let says_now = says(&status);
    let standing = match standing {
        Some(standing) if !foreign::is_ours(standing, pool, wanted) => {
            foreign::remove(settings, api, pool, wanted).await?;
            None
        }
        standing => standing,
    };
    let version = match standing {
        Some(standing) if pruned.stands(&wanted.name, says_now, standing.says) => return Ok(()),
        Some(standing) => {
            keep_times(&mut status, standing);
            standing.version.clone()
        }
        None if !settings.leads.now() => return Ok(()),
        None => {
            let spec = DisruptionPlanSpec { pool: pool.name.clone(), cause: wanted.cause.clone() };
            let mut object = DisruptionPlan::new(&wanted.name, spec);
            object.metadata.owner_references = Some(vec![owner(pool)]);
            let params = PostParams::default();
            let call = || Call::new("create", PLANS);
            let make = || ask(&settings.metrics, call(), api.create(&params, &object));
            let made = match make().await {
                Err(failed) if failed.outcome == CallOutcome::Conflict => {
                    foreign::remove(settings, api, pool, wanted).await?;
                    if !settings.leads.now() {
                        return Ok(());
                    }
                    make().await?
                }
                made => made?,
            };
            tracing::info!(plan = wanted.name, effect = status.effect, "planned");
            made.resource_version().unwrap_or_default()
        }
    };
    if !settings.leads.now() {
        return Ok(());
    }
    let spec = DisruptionPlanSpec { pool: pool.name.clone(), cause: wanted.cause.clone() };
    let mut object = DisruptionPlan::new(&wanted.name, spec);
    object.metadata.resource_version = Some(version);
    object.status = Some(status);
    let params = PostParams::default();
    let replaced = api.replace_status(&wanted.name, &params, &object);
    let call = Call::new("update", PLANS).of_status();
    let there = ask(&settings.metrics, call, replaced).await?;
    let there = there.status.unwrap_or_default();
    let json =
        |status: Option<&DisruptionPlanStatus>| serde_json::to_value(status).unwrap_or_default();
    let (whole, left) = (json(object.status.as_ref()), json(Some(&there)));
    settings.watches.kept("disruptionplans", &whole, &left);
    pruned.note(&wanted.name, says_now, says(&there));
    Ok(())
}

/// What did not change keeps its time.
fn keep_times(status: &mut DisruptionPlanStatus, standing: &Standing) {
    for condition in &mut status.conditions {
        let before = standing
            .conditions
            .iter()
            .find(|before| before.type_ == condition.type_ && before.status == condition.status);
        if let Some(before) = before {
            condition.last_transition_time.clone_from(&before.last_transition_time);
        }
    }
}

/// Since when a plan is over, where that was said already: it stays so. One that lost its place may be
/// pending still, and is looked at again.
fn ended_before(standing: &Standing) -> Option<i64> {
    let pending = standing.conditions.iter().find(|it| it.type_ == PENDING)?;
    let is_over = pending.status != "True" && pending.reason != LEFT_OUT && !standing.stale;
    is_over.then(|| pending.last_transition_time.0.as_second())
}

/// Since when it is said of a plan that it is pending no more, for the same reason.
fn since(standing: &Standing, reason: &str) -> Option<i64> {
    let pending = standing.conditions.iter().find(|it| it.type_ == PENDING)?;
    (pending.reason == reason).then(|| pending.last_transition_time.0.as_second())
}

/// What became of a plan that nothing makes necessary any more.
fn over(pool: &Pool, (name, standing): (&str, &Standing), known_since: i64) -> Finding {
    // Whether the pool is to have the config again that it had before this plan.
    let as_before = |target: &Configuration| {
        let settled = pool.settled.as_ref().unwrap_or(target);
        settled.name == target.name
            && previews::plan_name(pool, &standing.cause, &settled.name) == name
    };
    let withdrawn = pool.target.as_ref().map(as_before);
    let (status, reason, message) = match (withdrawn, standing.created < known_since) {
        (Some(false), _) => (Some(false), "Over", "It is rolled out, or it was withdrawn."),
        (Some(true), _) | (None, false) => {
            (Some(false), "Withdrawn", "What made it necessary is as it was before.")
        }
        (None, true) => (
            None,
            "NotKnown",
            "What these nodes have is not known any more: tread was started since, and nobody \
             renders for this pool.",
        ),
    };
    Finding { type_: PENDING, status, reason: reason.to_owned(), message: message.to_owned() }
}

/// It is still pending, among more than have plans of their own.
fn left_out(whole: &str) -> Finding {
    Finding {
        type_: PENDING,
        status: None,
        reason: LEFT_OUT.to_owned(),
        message: format!(
            "More changes are pending in this pool than have plans of their own: {whole} counts \
             them."
        ),
    }
}

async fn end(
    settings: &Settings,
    api: &Api<DisruptionPlan>,
    (name, standing): (&str, &Standing),
    finding: Finding,
    now: Timestamp,
) -> Result<(), Failed> {
    let mut conditions = standing.conditions.clone();
    conditions::set(&mut conditions, finding, 1, now);
    if conditions == standing.conditions && !standing.stale {
        return Ok(());
    }
    let patch = json!({
        "metadata": {"resourceVersion": standing.version},
        "status": {"conditions": conditions, "stale": false},
    });
    patch_status(settings, api, name, &patch).await
}

/// Says of plans that what they were made of is not true any more.
pub(super) async fn mark_stale(
    settings: &Settings,
    name: &str,
    standing: &Standing,
) -> Result<(), Failed> {
    if standing.stale || !settings.leads.now() {
        return Ok(());
    }
    let api: Api<DisruptionPlan> = Api::all(settings.client.clone());
    let patch = json!({
        "metadata": {"resourceVersion": standing.version}, "status": {"stale": true},
    });
    patch_status(settings, &api, name, &patch).await
}

async fn patch_status(
    settings: &Settings,
    api: &Api<DisruptionPlan>,
    name: &str,
    patch: &Value,
) -> Result<(), Failed> {
    let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    let patch = Patch::Merge(patch);
    let call = Call::new("patch", PLANS).of_status();
    ask(&settings.metrics, call, api.patch_status(name, &params, &patch)).await.map(drop)
}

fn owner(pool: &Pool) -> OwnerReference {
    OwnerReference {
        api_version: MACHINE_CONFIG_API.to_owned(),
        kind: POOL_KIND.to_owned(),
        name: pool.name.clone(),
        uid: pool.uid.clone(),
        ..OwnerReference::default()
    }
}
