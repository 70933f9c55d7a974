//! `tread plans`

use super::connect::{Cluster, ClusterArgs, cluster, wait_for};
use super::{objects, unreadable};
use crate::render::output::ListOutput;
use anyhow::{Result, anyhow};
use clap::Args;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use std::io::Write;
use tread_cluster::listed;
use tread_console::exit::{Exit, UsageError};
use tread_console::print::{json, line, warn, yaml};
use tread_console::table;
use tread_kube::advice::INSTALL_INPUTS;
use tread_kube::api::{DisruptionPlan, MachineConfigPool};
use tread_kube::asking::{Call, CallOutcome, ask};
use tread_kube::metrics::Metrics;

const EXAMPLES: &str = "\
Examples:
  tread plans                  what is about to happen to nodes
  tread plans NAME             one plan: each change with its verdict and reason
  tread plans --all            those that are over too
  kubectl tread plans -o json

Exit codes:
  0  listed
  1  the cluster cannot be asked, or there is no such plan
  2  the command line is wrong, or there is no such pool

PENDING says what a plan waits for: NotRolledOut (its nodes are on their way), NotRendered, Paused
(nothing happens until somebody unpauses the pool), RolloutPaused (no more nodes are begun until somebody
resumes it), NotKnown (tread was started since, and cannot say); stale: its policies or configs have
changed since, and it is made again.";

/// The arguments of `tread plans`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PlansArgs {
    /// Show this plan alone, with everything that it holds
    pub name: Option<String>,
    /// List plans that are over too
    #[arg(long)]
    pub all: bool,
    /// Of this pool alone
    #[arg(long, value_name = "POOL")]
    pub pool: Option<String>,
    /// Which cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// How to print the list
    #[arg(short, long, value_enum, default_value_t = ListOutput::Human)]
    pub output: ListOutput,
}

/// Lists the plans of a cluster.
pub fn run(args: &PlansArgs, out: &mut impl Write) -> Result<Exit> {
    let (mut plans, missing) = wait_for(async {
        let cluster = cluster(&args.cluster).await?;
        let mut params = ListParams::default();
        if let Some(pool) = &args.pool {
            params = params.fields(&format!("spec.pool={pool}"));
        }
        let plans = listed::plans(cluster.client.clone(), &params).await;
        let plans = plans.map_err(|error| cluster.failed("plans", &error))?;
        let missing = if plans.is_empty() { without_plans(&cluster, args).await? } else { None };
        Ok((plans, missing))
    })?;
    if let Some(missing) = &missing {
        warn(missing);
    }
    plans.sort_by_cached_key(|it| (it.object.spec.pool.clone(), it.object.name_any()));
    if let Some(name) = &args.name {
        plans.retain(|it| it.object.name_any() == *name);
        unreadable("plan", &plans);
        let found = plans.first();
        let found =
            found.ok_or_else(|| anyhow!("there is no plan {name}: `tread plans` lists them"))?;
        match args.output {
            ListOutput::Json => json(out, &found.value)?,
            ListOutput::Yaml => yaml(out, &found.value)?,
            ListOutput::Human | ListOutput::Wide => {
                let plan = &found.object;
                let status = plan.status.clone().unwrap_or_default();
                objects::plan(out, &plan.spec.pool, &status)?;
            }
        }
        return Ok(Exit::Done);
    }
    if !args.all {
        plans.retain(|it| it.unreadable.is_some() || is_pending(&it.object));
    }
    unreadable("plan", &plans);
    let values: Vec<_> = plans.iter().map(|it| &it.value).collect();
    match args.output {
        ListOutput::Json => json(out, &values)?,
        ListOutput::Yaml => yaml(out, &values)?,
        ListOutput::Human | ListOutput::Wide if plans.is_empty() => {
            if missing.is_none() {
                writeln!(out, "Nothing is about to happen to any node.")?;
            }
        }
        ListOutput::Human | ListOutput::Wide => {
            let wide = args.output == ListOutput::Wide;
            let mut heads = vec!["NAME", "POOL", "CAUSE", "EFFECT", "TREAD", "NODES", "FALLBACKS"];
            heads.push("PENDING");
            heads.extend(wide.then_some("STALE"));
            heads.push("BECAUSE OF");
            table::print(
                out,
                &table::with_heads(&heads, plans.iter().map(|it| row(&it.object, wide))),
            )?;
        }
    }
    Ok(Exit::Done)
}

/// What stands behind a list without plans, where it is not that nothing happens.
/// A pool that is none is an error.
async fn without_plans(cluster: &Cluster, args: &PlansArgs) -> Result<Option<String>> {
    let pools: Api<MachineConfigPool> = Api::all(cluster.client.clone());
    let params = ListParams::default();
    let listed = pools.list_metadata(&params);
    let call = Call::new("list", "machineconfigpools");
    let found = match (ask(&Metrics::new(), call, listed).await, &args.pool) {
        (Ok(found), _) => found,
        (Err(failed), _) if failed.outcome == CallOutcome::Gone => {
            return Ok(Some(format!(
                "this cluster knows no MachineConfigPool, so no node follows any change, and no plan \
                 will ever be there; where OpenShift does not bring the definitions, {INSTALL_INPUTS}"
            )));
        }
        (Err(failed), Some(pool)) => {
            return Ok(Some(format!(
                "--pool {pool}: it has no plan, and whether there is such a pool is not known: \
                 {failed}"
            )));
        }
        // Whoever may only read plans may not ask for pools.
        (Err(_), None) => return Ok(None),
    };
    let names: Vec<String> = found.items.iter().map(|pool| pool.name_any()).collect();
    match &args.pool {
        Some(pool) if !names.contains(pool) => {
            let there = match names.as_slice() {
                [] => "none".to_owned(),
                names => names.join(", "),
            };
            Err(UsageError(format!("--pool {pool}: there are {there}")).into())
        }
        _ => Ok(None),
    }
}

/// What a plan waits for, and whether it can be believed, as kubectl shows it.
fn standing(plan: &DisruptionPlan) -> String {
    let status = plan.status.as_ref();
    let conditions = status.into_iter().flat_map(|status| &status.conditions);
    let unplanned = conditions.clone().find(|it| it.type_ == "Planned" && it.status == "False");
    let pending = objects::pending(plan).map(|(_, reason)| reason.to_owned());
    let stale = status.is_some_and(|status| status.stale).then(|| "stale".to_owned());
    let said = [pending, unplanned.map(|it| it.reason.clone()), stale];
    said.into_iter().flatten().filter(|it| !it.is_empty()).collect::<Vec<_>>().join(", ")
}

fn is_pending(plan: &DisruptionPlan) -> bool {
    objects::pending(plan).is_none_or(|(status, _)| status != "False")
}

fn row(plan: &DisruptionPlan, wide: bool) -> Vec<String> {
    let status = plan.status.clone().unwrap_or_default();
    let number = |number: Option<i64>| number.unwrap_or_default().to_string();
    let mut row = vec![
        plan.name_any(),
        plan.spec.pool.clone(),
        plan.spec.cause.to_string(),
        status.effect.clone().unwrap_or_default(),
        status.tread.clone().unwrap_or_default(),
        number(status.nodes),
        number(status.fallbacks),
    ];
    row.push(standing(plan));
    if wide {
        row.push(status.stale.to_string());
    }
    row.push(line(&status.because.unwrap_or_default()));
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn what_does_not_just_happen_is_told_apart_in_every_list() {
        let plan = |conditions: Value, stale: bool| -> DisruptionPlan {
            serde_json::from_value(json!({"metadata": {"name": "a"},
                "spec": {"pool": "worker",
                    "cause": {"kind": "MachineConfig", "name": "a", "event": "Created"}},
                "status": {"effect": "drain + reboot", "stale": stale, "conditions": conditions}}))
            .unwrap()
        };
        let condition = |type_: &str, status: &str, reason: &str| {
            json!({"type": type_, "status": status, "reason": reason, "message": "",
                "lastTransitionTime": "2026-01-02T03:04:05Z"})
        };
        for (conditions, stale, said) in [
            (vec![condition("Pending", "True", "Paused")], false, "Paused"),
            (vec![condition("Pending", "Unknown", "NotKnown")], true, "NotKnown, stale"),
            (
                vec![
                    condition("Planned", "False", "CannotBeRead"),
                    condition("Pending", "True", "NotRolledOut"),
                ],
                false,
                "NotRolledOut, CannotBeRead",
            ),
            (
                vec![
                    condition("Planned", "True", "Planned"),
                    condition("Pending", "True", "NotRolledOut"),
                ],
                false,
                "NotRolledOut",
            ),
            (vec![], false, ""),
        ] {
            let plan = plan(Value::Array(conditions), stale);
            for wide in [false, true] {
                assert_eq!(row(&plan, wide).get(7).map(String::as_str), Some(said));
            }
        }
    }
}
