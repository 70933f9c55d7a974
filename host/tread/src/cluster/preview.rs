//! `tread plan -f FILE`: what a change would do to a cluster's pools, as the
//! service there would say.

use super::connect::{client, wait_for};
use super::objects;
use crate::cli::{PlanArgs, PlanOutput};
use crate::render::{json, line, yaml};
use crate::{Exit, UsageError, builtins, inputs, loading, warn};
use anyhow::{Context as _, Result, anyhow, bail};
use k8s_openapi::jiff::Timestamp;
use kube::api::ListParams;
use kube::core::DynamicObject;
use kube::{Api, Client};
use serde::Serialize;
use std::io::Write;
use std::time::Duration;
use tokio::sync::watch;
use tread_cluster::api::DisruptionPolicy;
use tread_cluster::api::disruption_plan::Cause;
use tread_cluster::events::Events;
use tread_cluster::leadership::Leading;
use tread_cluster::metrics::Metrics;
use tread_cluster::plans::{self, Previewer, Retention};
use tread_cluster::policies::registry;
use tread_cluster::policies::snapshot::Room;
use tread_cluster::previews::{Change, Described, describe};
use tread_cluster::watching::Watches;
use tread_engine::limits::Limits;
use tread_model::digest::Digest;
use tread_model::effect::Effect;
use tread_model::read::{Input, document_values};

/// The name and version of the JSON form.
const SCHEMA: &str = "tread.dev/preview/v1";
/// When somebody who waits is told for what.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long a watch may fail before it is given up.
const GIVE_UP: Duration = Duration::from_secs(15);

/// What changes would do to the pools of a cluster.
pub fn run(args: &PlanArgs, out: &mut impl Write) -> Result<Exit> {
    let changes = read(args)?;
    let all = wait_for(async {
        let client = client(&args.cluster).await?;
        let limits = Limits::default();
        let sandbox = loading::sandbox(limits)?;
        // Whoever asks from outside writes nothing.
        let (_never, leads) = watch::channel(false);
        let leads = Leading::told(leads, None);
        let (metrics, watches) = (Metrics::new(), Watches::default());
        let asked = client.clone();
        let (policies, registry) = registry::start(registry::Settings {
            client: client.clone(),
            namespace: args.namespace.clone(),
            replica: "tread plan".to_owned(),
            sandbox: sandbox.clone(),
            shipped: builtins::shipped()?,
            room: Room::default(),
            leads: leads.clone(),
            watches: watches.clone(),
            metrics: metrics.clone(),
            events: Events::new(client.clone(), "tread plan", "Load"),
        });
        let (previewer, controller) = plans::start(plans::Settings {
            client: client.clone(),
            sandbox,
            policies,
            leads,
            watches: watches.clone(),
            metrics,
            events: Events::new(client, "tread plan", "Plan"),
            keep: Retention::default(),
        });
        tokio::select! {
            answer = ask(&previewer, &watches, &changes, args, &asked) => answer,
            () = registry => bail!("loading the policies ended; please report it"),
            () = controller => bail!("watching the cluster ended; please report it"),
        }
    })?;
    let Answer { plans, notes } = all;
    print(args, &plans, &notes, out)?;
    let unknown = plans.iter().find_map(|plan| Some((plan, not_planned(plan)?)));
    if let Some((plan, why)) = unknown {
        warn(&format!("what the nodes of pool {} go through is not known: {why}", plan.pool));
        return Ok(Exit::Error);
    }
    let worst = plans.iter().max_by_key(|plan| plan.effect);
    Ok(match (worst, args.max) {
        (Some(plan), _) if plan.effect == Effect::Refuse => Exit::Refused,
        (Some(plan), Some(max)) if plan.effect > max => {
            warn(&format!(
                "more disruptive than --max {max}: pool {}: this is a {}{}",
                plan.pool,
                plan.effect,
                costliest(plan)
            ));
            Exit::TooDisruptive
        }
        _ => Exit::Done,
    })
}

/// Why a plan could not be made.
fn not_planned(plan: &Described) -> Option<&str> {
    let mut conditions = plan.status.conditions.iter();
    let planned = conditions.find(|it| it.type_ == "Planned" && it.status == "False")?;
    Some(&planned.message)
}

/// The change that costs most, and who could make it cost less.
fn costliest(plan: &Described) -> String {
    let ways = plan.status.transitions.iter().filter(|way| way.effect == Some(plan.effect));
    // The most disruptive changes come first.
    let Some(change) = ways.flat_map(|way| &way.changes).next() else { return String::new() };
    match &change.advice {
        Some(advice) => format!(", because of {}. {advice}", change.id),
        None => format!(", because of {}: {}", change.id, change.reason),
    }
}

/// What a cluster says of changes.
struct Answer {
    plans: Vec<Described>,
    /// Of changes that concern no node.
    notes: Vec<String>,
}

/// The changes that the files hold.
fn read(args: &PlanArgs) -> Result<Vec<(Change, Cause)>> {
    let mut changes = Vec::new();
    for path in &args.file {
        for file in inputs::read(path)?.files {
            let input = Input { name: &file.name, bytes: &file.bytes };
            for document in document_values(&input)? {
                let object: DynamicObject = serde_json::from_value(document.value)
                    .with_context(|| format!("{}: is no Kubernetes object", file.name))?;
                let kind = object.types.as_ref().map_or("", |types| types.kind.as_str());
                let change = plans::change(kind, &object, args.delete).ok_or_else(|| {
                    anyhow!(
                        "{}: nodes do not follow a {kind}: expected MachineConfig, \
                         ImageContentSourcePolicy, ImageDigestMirrorSet or ImageTagMirrorSet",
                        file.name
                    )
                })?;
                changes.push(change);
            }
        }
    }
    Ok(changes)
}

async fn ask(
    previewer: &Previewer,
    watches: &Watches,
    changes: &[(Change, Cause)],
    args: &PlanArgs,
    client: &Client,
) -> Result<Answer> {
    let ready = previewer.ready();
    tokio::pin!(ready);
    let waiting = || watches.waiting().join("\n  ");
    if tokio::time::timeout(PATIENCE, &mut ready).await.is_err() {
        is_installed(watches)?;
        is_allowed(watches)?;
        warn(&format!("waiting for the cluster:\n  {}", waiting()));
        if tokio::time::timeout(GIVE_UP, &mut ready).await.is_err() {
            let failing = watches.subscribe().borrow().values().any(|it| it.error.is_some());
            if failing {
                bail!("the cluster does not say what is needed:\n  {}", waiting());
            }
            is_served(client).await?;
            ready.await;
        }
    }
    let pools = previewer.snapshot().pools;
    if pools.is_empty() {
        bail!(
            "this cluster has no MachineConfigPool, so no node follows any change; where OpenShift \
             brings no definition of them, `tread manifests --with-inputs` does"
        );
    }
    for pool in &args.pool {
        if !pools.contains_key(pool) {
            let names: Vec<&str> = pools.keys().map(String::as_str).collect();
            let message = format!("--pool {pool}: there are {}", names.join(", "));
            return Err(UsageError(message).into());
        }
    }
    let causes: Vec<&Cause> = changes.iter().map(|(_, cause)| cause).collect();
    let changes: Vec<Change> = changes.iter().map(|(change, _)| change.clone()).collect();
    let notes = changes.iter().filter_map(|change| previewer.unselected(change)).collect();
    let previews = previewer.preview(&changes).await.map_err(|why| anyhow!(why))?;
    let mut all = Vec::new();
    for preview in previews {
        let pool = &preview.work.pool.name;
        if !args.pool.is_empty() && !args.pool.contains(pool) {
            continue;
        }
        let plans = describe(&preview, Digest::of(b""), Timestamp::now());
        let concerns = |plan: &Described| {
            causes
                .iter()
                .any(|cause| cause.kind == plan.cause.kind && cause.name == plan.cause.name)
        };
        if plans.iter().any(concerns) {
            all.extend(plans.into_iter().filter(|plan| concerns(plan)));
        }
    }
    Ok(Answer { plans: all, notes })
}

/// Without tread nobody says who decides, and waiting for it would have no end.
fn is_installed(watches: &Watches) -> Result<()> {
    let all = watches.subscribe().borrow().clone();
    if all.get("disruptionpolicies").is_some_and(|it| it.not_installed) {
        bail!(
            "tread is not installed in this cluster, so it is not known who decides there: \
             `tread manifests | kubectl apply --server-side -f -` installs it, and `tread plan OLD \
             NEW` plans without a cluster"
        );
    }
    Ok(())
}

/// What is forbidden stays so, however long one waits.
fn is_allowed(watches: &Watches) -> Result<()> {
    let all = watches.subscribe().borrow().clone();
    let forbidden: Vec<&str> = all
        .values()
        .filter_map(|it| it.error.as_deref())
        .filter(|error| error.contains("forbidden"))
        .collect();
    if forbidden.is_empty() {
        return Ok(());
    }
    bail!(
        "you may not read what tread reads, which `tread plan -f` plans with: an admin can bind \
         the ClusterRole tread to you; `tread plans` and warnings need no such rights:\n  {}",
        forbidden.join("\n  ")
    );
}

/// Whether the policies that come with tread are listed, which is what
/// `tread serve` does first.
async fn is_served(client: &Client) -> Result<()> {
    let api: Api<DisruptionPolicy> = Api::all(client.clone());
    // Whatever is wrong with that, the watches say.
    let Ok(there) = api.list(&ListParams::default()).await else { return Ok(()) };
    let sources = there.items.iter().filter_map(|it| it.spec.source.as_ref()?.builtin.as_deref());
    let sources: Vec<&str> = sources.collect();
    let shipped = builtins::shipped()?.builtins;
    match shipped.iter().find(|it| !sources.contains(&it.name)) {
        None => Ok(()),
        Some(missing) => bail!(
            "the cluster lists no policy {}, which comes with tread, so it is not known who decides \
             there: `tread serve` lists it, so see whether that runs, and is as new as this program",
            missing.name
        ),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Output<'p> {
    schema: &'static str,
    plans: &'p [Described],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    notes: &'p [String],
}

fn print(args: &PlanArgs, all: &[Described], notes: &[String], out: &mut impl Write) -> Result<()> {
    let output = || Output { schema: SCHEMA, plans: all, notes };
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
            for (index, plan) in all.iter().enumerate() {
                if index > 0 {
                    writeln!(out)?;
                }
                objects::plan(out, &plan.pool, &plan.status)?;
            }
        }
    }
    Ok(())
}
