//! `tread policies --cluster`

use super::connect::{ClusterArgs, client, failed, wait_for};
use crate::Exit;
use crate::cli::ListOutput;
use crate::render::{json, line, table, yaml};
use anyhow::Result;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use std::io::Write;
use tread_cluster::api::DisruptionPolicy;

/// Lists the policies of a cluster, as `kubectl get disruptionpolicies` does,
/// and says what is wrong with those that are not well.
pub fn run(args: &ClusterArgs, output: ListOutput, out: &mut impl Write) -> Result<Exit> {
    let mut policies = wait_for(async {
        let api: Api<DisruptionPolicy> = Api::all(client(args).await?);
        api.list(&ListParams::default()).await.map_err(|error| failed("policies", &error))
    })?
    .items;
    policies.sort_by_cached_key(|it| (it.spec.layer() as u8, it.name_any()));
    match output {
        ListOutput::Json => json(out, &policies)?,
        ListOutput::Yaml => yaml(out, &policies)?,
        ListOutput::Human | ListOutput::Wide => {
            let wide = output == ListOutput::Wide;
            let mut heads =
                vec!["NAME", "LAYER", "SOURCE", "VERSION", "STATE", "MODE", "CLAIMS", "EFFECTS"];
            heads.extend(wide.then_some(["DIGEST", "DECISIONS"]).into_iter().flatten());
            let rows = policies.iter().map(|policy| row(policy, wide));
            table::print(out, &table::with_heads(&heads, rows))?;
            for policy in &policies {
                unwell(out, policy)?;
            }
        }
    }
    Ok(Exit::Done)
}

fn row(policy: &DisruptionPolicy, wide: bool) -> Vec<String> {
    let status = policy.status.clone().unwrap_or_default();
    let word = |value: Option<String>| value.unwrap_or_default();
    let mut row = vec![
        policy.name_any(),
        format!("{:?}", policy.spec.layer()).to_lowercase(),
        word(status.source),
        word(status.version),
        status.state.map(|state| format!("{state:?}")).unwrap_or_default(),
        format!("{:?}", policy.spec.mode),
        word(status.claims_summary),
        word(status.effects),
    ];
    if wide {
        row.push(word(status.digest));
        row.push(status.decisions.unwrap_or_default().to_string());
    }
    row
}

/// Why a policy does not decide as it should.
fn unwell(out: &mut impl Write, policy: &DisruptionPolicy) -> Result<()> {
    let conditions = policy.status.iter().flat_map(|status| &status.conditions);
    for condition in conditions.filter(|condition| condition.status == "False") {
        let text = format!("{}: {}: {}", policy.name_any(), condition.reason, condition.message);
        writeln!(out, "\n{}", line(&text))?;
    }
    Ok(())
}
