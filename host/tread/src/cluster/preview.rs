//! `tread plan -f FILE`: what a change would do to a cluster's pools, as the
//! service there would say.

use super::connect::{cluster, in_words, wait_for};
use super::rollouts::NOT_KNOWN;
use super::waiting::{may_not_read, until_ready};
use super::{beyond, objects};
use crate::plan::args::{PlanArgs, PlanOutput};
use crate::shipped::shipped;
use anyhow::{Result, anyhow, bail};
use k8s_openapi::jiff::Timestamp;
use kube::api::ListParams;
use kube::core::DynamicObject;
use kube::{Api, Client};
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::Write;
use tokio::sync::watch;
use tread_cluster::index;
use tread_cluster::membership::gather::operator_rolls_out;
use tread_cluster::plans::{self, Blockers, NotKnown, Previewer, Retention};
use tread_cluster::policies::current::Published;
use tread_cluster::policies::registry;
use tread_cluster::policies::snapshot::Room;
use tread_cluster::previews::{Cluster, Described, Edit, describe};
use tread_console::exit::{Exit, UsageError, unless_nobody_reads};
use tread_console::inputs;
use tread_console::print::{json, line, warn, yaml};
use tread_console::table;
use tread_engine::limits::Limits;
use tread_kube::advice::INSTALL_INPUTS;
use tread_kube::api::disruption_plan::Cause;
use tread_kube::api::{POOL_KIND, Rollout};
use tread_kube::asking::{self, Call, CallOutcome, Failed};
use tread_kube::events::Events;
use tread_kube::leadership::Leading;
use tread_kube::metrics::Metrics;
use tread_kube::watching::Watches;
use tread_loading::sandbox;
use tread_model::digest::Digest;
use tread_model::effect::Effect;
use tread_model::read::{Input, document_values};
use tread_model::text::listed;

/// The name and version of the JSON form.
const SCHEMA: &str = "tread.dev/preview/v1";
/// What changes would do to the pools of a cluster.
pub fn run(args: &PlanArgs, out: &mut impl Write) -> Result<Exit> {
    let changes = read(args)?;
    let all = wait_for(async {
        let client = cluster(&args.cluster).await?.client;
        let by_tread = rolls_out(&client).await?;
        let limits = Limits::default();
        let sandbox = sandbox::for_one(limits)?;
        // Whoever asks from outside writes nothing.
        let (_never, leads) = watch::channel(false);
        let leads = Leading::without_election(leads, None);
        let (metrics, watches) = (Metrics::new(), Watches::default());
        let asked = client.clone();
        let leases = args.lease_namespace.as_str();
        let (index, indexing) = index::start_where(&client, leases, &watches, &metrics, by_tread);
        let (policies, registry) = registry::start(registry::Settings {
            client: client.clone(),
            index: index.clone(),
            namespace: args.namespace.clone(),
            replica: "tread plan".to_owned(),
            sandbox: sandbox.clone(),
            shipped: shipped()?,
            room: Room::default(),
            leads: leads.clone(),
            watches: watches.clone(),
            metrics: metrics.clone(),
            events: Events::new(client.clone(), "tread plan", "Load", &metrics),
        });
        let published = policies.clone();
        let (previewer, controller) = plans::start(plans::Settings {
            client: client.clone(),
            index,
            sandbox,
            policies,
            leads,
            watches: watches.clone(),
            events: Events::new(client, "tread plan", "Plan", &metrics),
            metrics,
            keep: Retention::default(),
            by_tread,
        });
        tokio::select! {
            answer = ask(&previewer, &published, &watches, &changes, args, &asked) => answer,
            () = indexing => bail!("watching the cluster ended; please report it"),
            () = registry => bail!("loading the policies ended; please report it"),
            () = controller => bail!("watching the cluster ended; please report it"),
        }
    })?;
    let Answer { pools, notes } = all;
    unless_nobody_reads(print(args, &pools, &notes, out))?;
    let mut plans = pools.iter().flat_map(OfPool::plans);
    let unknown = plans.find_map(|plan| Some((plan, not_planned(plan)?)));
    if let Some((plan, why)) = unknown {
        warn(&format!("what the nodes of pool {} go through is not known: {why}", plan.pool));
        return Ok(Exit::Error);
    }
    let worst = pools.iter().flat_map(OfPool::judged).map(|plan| plan.effect).max();
    Ok(match (worst, args.max) {
        (Some(Effect::Refuse), _) => {
            let pools: Vec<_> = pools.iter().map(|pool| pool.judged().collect()).collect();
            warn(&beyond::refused(&pools));
            Exit::Refused
        }
        (Some(worst), Some(max)) if worst > max => {
            let pools: Vec<_> = pools.iter().map(|pool| pool.judged().collect()).collect();
            warn(&beyond::in_words(&pools, max));
            Exit::TooDisruptive
        }
        _ => Exit::Done,
    })
}

/// Whether tread rolls out in this cluster: then there are Rollouts, which stay there when it goes back to
/// advising, and no daemon of OpenShift's.
async fn rolls_out(client: &Client) -> Result<bool> {
    let metrics = Metrics::new();
    let unknown = |failed: &Failed| {
        anyhow!("whether tread rolls out here cannot be found out: {}", in_words(failed))
    };
    let api: Api<Rollout> = Api::all(client.clone());
    let call = Call::new("list", "rollouts");
    let first = ListParams::default().limit(1);
    match asking::ask(&metrics, call, api.list_metadata(&first)).await {
        Ok(found) if found.items.is_empty() => return Ok(false),
        Ok(_) => {}
        // Where it does, whoever may read plans may read these too.
        Err(failed) if matches!(failed.outcome, CallOutcome::Gone | CallOutcome::Forbidden) => {
            return Ok(false);
        }
        Err(failed) => return Err(unknown(&failed)),
    }
    match operator_rolls_out(client, &metrics).await {
        Ok(by_operator) => Ok(!by_operator),
        Err(failed) if failed.outcome == CallOutcome::Forbidden => {
            warn(&format!("{NOT_KNOWN}: {failed}"));
            Ok(false)
        }
        Err(failed) => Err(unknown(&failed)),
    }
}

/// Why a plan could not be made.
fn not_planned(plan: &Described) -> Option<&str> {
    let mut conditions = plan.status.conditions.iter();
    let planned = conditions.find(|it| it.type_ == "Planned" && it.status == "False")?;
    Some(&planned.message)
}

/// What a cluster says of changes.
struct Answer {
    pools: Vec<OfPool>,
    /// Of changes that concern no node.
    notes: Vec<String>,
}

/// What will happen to the nodes of a pool.
struct OfPool {
    /// All that is rolled out together, where that is more than one change.
    whole: Option<Described>,
    /// Each change that was asked about.
    own: Vec<Described>,
    /// What is pending besides.
    others: Vec<Described>,
}

impl OfPool {
    /// What a pool goes through: all of it together.
    fn together(&self) -> Option<&Described> {
        self.whole.as_ref().or(self.own.first())
    }

    /// All of it together first, then each change by itself.
    fn plans(&self) -> impl Iterator<Item = &Described> {
        self.whole.iter().chain(&self.own)
    }

    fn plans_mut(&mut self) -> impl Iterator<Item = &mut Described> {
        self.whole.iter_mut().chain(&mut self.own)
    }

    /// What a pipeline has to answer for: not for what was pending before.
    fn judged(&self) -> impl Iterator<Item = &Described> {
        let whole = self.whole.iter().filter(|_| self.others.is_empty());
        whole.chain(&self.own)
    }
}

/// The changes that the files hold.
fn read(args: &PlanArgs) -> Result<Vec<(Edit, Cause)>> {
    let mut changes = Vec::new();
    for path in &args.file {
        for file in inputs::read(path)?.files {
            let input = Input { name: &file.name, bytes: &file.bytes };
            for document in document_values(&input)? {
                let object: DynamicObject =
                    serde_json::from_value(document.value).map_err(|_| {
                        anyhow!(
                            "{}: is no Kubernetes object: expected apiVersion, kind and metadata",
                            file.name
                        )
                    })?;
                let kind = object.types.as_ref().map_or("", |types| types.kind.as_str());
                let change = plans::change(kind, &object, args.delete)
                    .ok_or_else(|| anyhow!("{}: {}", file.name, not_followed(kind, &object)))?;
                changes.push(change);
            }
        }
    }
    Ok(changes)
}

/// Why a change of an object changes no node by itself, and what to give.
fn not_followed(kind: &str, object: &DynamicObject) -> String {
    match kind {
        // Every other one is followed.
        "MachineConfig" => format!(
            "{} was rendered for a pool from other MachineConfigs, and what it is rendered from next counts: \
             give those, or the old and the new rendered one as two files, without --file",
            object.metadata.name.as_deref().unwrap_or("this MachineConfig")
        ),
        kind => format!(
            "nodes do not follow a {kind}: expected MachineConfig, ImageContentSourcePolicy, \
             ImageDigestMirrorSet or ImageTagMirrorSet"
        ),
    }
}

async fn ask(
    previewer: &Previewer,
    policies: &Published,
    watches: &Watches,
    changes: &[(Edit, Cause)],
    args: &PlanArgs,
    client: &Client,
) -> Result<Answer> {
    until_ready(previewer, policies, watches, client).await?;
    let pools = previewer.snapshot().pools;
    if pools.is_empty() {
        bail!(
            "this cluster has no MachineConfigPool, so no node follows any change; where OpenShift \
             brings no definition of them, {INSTALL_INPUTS}"
        );
    }
    for pool in &args.pool {
        if !pools.contains_key(pool) {
            let names: Vec<&str> = pools.keys().map(String::as_str).collect();
            let message = format!("--pool {pool}: there are {}", names.join(", "));
            return Err(UsageError(message).into());
        }
    }
    are_there(changes, &previewer.snapshot())?;
    let causes: Vec<&Cause> = changes.iter().map(|(_, cause)| cause).collect();
    let changes: Vec<Edit> = changes.iter().map(|(change, _)| change.clone()).collect();
    let notes = changes.iter().filter_map(|change| previewer.unselected(change)).collect();
    let previews = previewer.preview(&changes).await.map_err(|NotKnown { why, failed }| {
        match failed.filter(|failed| failed.outcome == CallOutcome::Forbidden) {
            Some(failed) => anyhow!(may_not_read(&[(why, failed)])),
            None => anyhow!(why),
        }
    })?;
    let mut all = Vec::new();
    for preview in previews {
        let pool = &preview.work.pool.name;
        if !args.pool.is_empty() && !args.pool.contains(pool) {
            continue;
        }
        all.extend(of_pool(describe(&preview, Digest::of(b""), Timestamp::now()), &causes));
    }
    let cluster = previewer.snapshot();
    all.iter_mut().flat_map(OfPool::plans_mut).for_each(|plan| {
        plans::note_flagged(plan, &cluster);
        plans::note_undrained(plan, &cluster);
    });
    let drains = all.iter().flat_map(OfPool::plans).any(|it| it.effect >= Effect::Drain);
    if drains {
        blocked(&mut all, &cluster, client).await;
    }
    Ok(Answer { pools: all, notes })
}

/// Says who would block a drain, as far as whoever asks may see budgets and pods.
async fn blocked(all: &mut [OfPool], cluster: &Cluster, client: &Client) {
    match Blockers::find(client, &Metrics::new()).await {
        Ok(blockers) => all.iter_mut().flat_map(OfPool::plans_mut).for_each(|plan| {
            blockers.note_in(plan, cluster);
        }),
        Err(failed) => {
            warn(&format!("who would block a drain is not known: {failed}"));
        }
    }
}

/// What is to be deleted has to be there: who mistypes a name is not told that
/// nothing changes.
fn are_there(changes: &[(Edit, Cause)], cluster: &Cluster) -> Result<()> {
    let is_missing = |change: &Edit| match change {
        Edit::NoMachineConfig(name) => !cluster.configs.contains_key(name),
        Edit::NoMirror(key) => !cluster.mirrors.contains_key(key),
        Edit::MachineConfig { .. } | Edit::Mirror(..) => false,
    };
    let missing: Vec<String> = changes
        .iter()
        .filter(|(change, _)| is_missing(change))
        .map(|(_, cause)| format!("{} {}", cause.kind, cause.name))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    bail!("--delete: there is no {} in the cluster", missing.join(" and no "))
}

/// What is asked about, of a pool's plans; None if none of it concerns the pool.
fn of_pool(plans: Vec<Described>, asked: &[&Cause]) -> Option<OfPool> {
    let is_asked = |plan: &Described| {
        let Cause { kind, name, .. } = &plan.cause;
        asked.iter().any(|cause| cause.kind == *kind && cause.name == *name)
    };
    let (own, mut others): (Vec<_>, Vec<_>) = plans.into_iter().partition(is_asked);
    if own.is_empty() {
        return None;
    }
    // A pool is rolled out once, whatever makes it necessary.
    let whole = others.pop_if(|plan| plan.cause.kind == POOL_KIND);
    Some(OfPool { whole, own, others })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Output<'p> {
    schema: &'static str,
    /// The plan of each pool for all that is rolled out together.
    pools: Vec<Together<'p>>,
    plans: Vec<&'p Described>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    notes: &'p [String],
}

#[derive(Serialize)]
struct Together<'p> {
    pool: &'p str,
    effect: Effect,
    plan: &'p str,
}

fn print(args: &PlanArgs, all: &[OfPool], notes: &[String], out: &mut impl Write) -> Result<()> {
    let output = || Output {
        schema: SCHEMA,
        pools: all
            .iter()
            .filter_map(OfPool::together)
            .map(|it| Together { pool: &it.pool, effect: it.effect, plan: &it.name })
            .collect(),
        plans: all.iter().flat_map(OfPool::plans).collect(),
        notes,
    };
    if args.output == PlanOutput::Human {
        for note in notes {
            writeln!(out, "Note: {}.", line(note))?;
        }
    }
    match args.output {
        PlanOutput::Json => json(out, &output())?,
        PlanOutput::Yaml => yaml(out, &output())?,
        PlanOutput::Human if all.is_empty() => {
            writeln!(out, "Nothing changes on any node.")?;
        }
        PlanOutput::Human => {
            for (index, pool) in all.iter().enumerate() {
                if index > 0 {
                    writeln!(out)?;
                }
                if let Some(plan) = pool.together() {
                    objects::plan(out, &plan.pool, &plan.status)?;
                }
                if pool.whole.is_some() {
                    writeln!(out, "\n  All of it is one rollout. Each change by itself:")?;
                    table::print(out, &pool.own.iter().map(by_itself).collect::<Vec<_>>())?;
                }
                if pool.whole.is_some() && !pool.others.is_empty() {
                    writeln!(out, "  Pending already, and not asked about:")?;
                    table::print(out, &pool.others.iter().map(by_itself).collect::<Vec<_>>())?;
                }
            }
        }
    }
    Ok(())
}

/// A change in a line: what it is, what it costs by itself, and on what nodes.
fn by_itself(plan: &Described) -> Vec<String> {
    const NAMED: usize = 3;
    let ways = plan.status.transitions.iter();
    let ids: BTreeSet<&str> = ways.flat_map(|way| &way.changes).map(|it| it.id.as_str()).collect();
    let named = listed(&ids.into_iter().collect::<Vec<_>>(), NAMED);
    let mut effect = plan.status.effect.clone().unwrap_or_default();
    if let Some(tread) = &plan.status.tread {
        effect.push_str(&format!(" (tread: {tread})"));
    }
    vec!["   ".to_owned(), plan.cause.to_string(), effect, named]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn whoever_gives_a_rendered_config_is_told_what_to_give() {
        let object = |value| serde_json::from_value::<DynamicObject>(value).unwrap();
        let rendered = object(json!({
            "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
            "metadata": {"name": "rendered-worker-1", "ownerReferences": [{
                "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool",
                "name": "worker", "uid": "1", "controller": true}]},
        }));
        assert!(plans::change("MachineConfig", &rendered, false).is_none());
        let why = not_followed("MachineConfig", &rendered);
        assert!(why.starts_with("rendered-worker-1 was rendered for a pool"), "{why}");
        assert!(!why.contains("expected MachineConfig"), "{why}");
        let secret =
            object(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}));
        let why = not_followed("Secret", &secret);
        assert!(why.starts_with("nodes do not follow a Secret: expected MachineConfig"), "{why}");
    }
}
