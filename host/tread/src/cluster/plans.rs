//! `tread plans`

use super::connect::{ClusterArgs, client, failed, wait_for};
use super::{objects, unreadable};
use crate::Exit;
use crate::cli::ListOutput;
use crate::render::{json, line, table, yaml};
use anyhow::{Result, anyhow};
use clap::Args;
use kube::ResourceExt as _;
use kube::api::ListParams;
use std::io::Write;
use tread_cluster::listed;
use tread_kube::api::DisruptionPlan;

const EXAMPLES: &str = "\
Examples:
  tread plans                  what is about to happen to nodes
  tread plans NAME             one plan: each change with its verdict and reason
  tread plans --all            those that are over too
  kubectl tread plans -o json

Exit codes:
  0  listed
  1  the cluster cannot be asked, or there is no such plan
  2  the command line is wrong";

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
    let mut plans = wait_for(async {
        let client = client(&args.cluster).await?;
        let mut params = ListParams::default();
        if let Some(pool) = &args.pool {
            params = params.fields(&format!("spec.pool={pool}"));
        }
        listed::plans(client, &params).await.map_err(|error| failed("plans", &error))
    })?;
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
            writeln!(out, "Nothing is about to happen to any node.")?;
        }
        ListOutput::Human | ListOutput::Wide => {
            let wide = args.output == ListOutput::Wide;
            let mut heads = vec!["NAME", "POOL", "CAUSE", "EFFECT", "TREAD", "NODES", "FALLBACKS"];
            heads.extend(wide.then_some(["STALE", "PENDING"]).into_iter().flatten());
            heads.push("BECAUSE OF");
            table::print(
                out,
                &table::with_heads(&heads, plans.iter().map(|it| row(&it.object, wide))),
            )?;
        }
    }
    Ok(Exit::Done)
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
    if wide {
        row.push(status.stale.to_string());
        row.push(objects::pending(plan).map_or("", |(_, reason)| reason).to_owned());
    }
    row.push(line(&status.because.unwrap_or_default()));
    row
}
