//! `tread policies --cluster`

use super::connect::{ClusterArgs, cluster, wait_for};
use super::unreadable;
use crate::render::output::ListOutput;
use anyhow::Result;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt as _;
use std::io::Write;
use tread_cluster::listed::{self, Listed};
use tread_cluster::policies::status::WAITING;
use tread_console::exit::Exit;
use tread_console::print::{json, yaml};
use tread_console::table;
use tread_kube::api::DisruptionPolicy;
use tread_kube::clean::clean;

/// Lists the policies of a cluster, as `kubectl get disruptionpolicies` does,
/// and says what is wrong with those that are not well.
pub fn run(args: &ClusterArgs, output: ListOutput, out: &mut impl Write) -> Result<Exit> {
    let mut policies = wait_for(async {
        let cluster = cluster(args).await?;
        let listed = listed::policies(cluster.client.clone()).await;
        listed.map_err(|error| cluster.failed("policies", &error))
    })?;
    policies.sort_by_cached_key(|it| (it.object.spec.layer() as u8, it.object.name_any()));
    unreadable("policy", &policies);
    let values: Vec<_> = policies.iter().map(|it| &it.value).collect();
    match output {
        ListOutput::Json => json(out, &values)?,
        ListOutput::Yaml => yaml(out, &values)?,
        ListOutput::Human | ListOutput::Wide => {
            let wide = output == ListOutput::Wide;
            let mut heads =
                vec!["NAME", "LAYER", "SOURCE", "VERSION", "STATE", "MODE", "CLAIMS", "EFFECTS"];
            heads.extend(wide.then_some(["DIGEST", "DECISIONS"]).into_iter().flatten());
            let rows = policies.iter().map(|it| row(&it.object, wide));
            table::print(out, &table::with_heads(&heads, rows))?;
            for Listed { object, .. } in &policies {
                unwell(out, object)?;
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

/// Why a policy does not decide as it should, and which new versions wait.
fn unwell(out: &mut impl Write, policy: &DisruptionPolicy) -> Result<()> {
    let conditions = policy.status.iter().flat_map(|status| &status.conditions);
    let is_unwell = |it: &&Condition| it.status == "False" || it.reason == WAITING;
    for condition in conditions.filter(is_unwell) {
        let text = format!("{}: {}: {}", policy.name_any(), condition.reason, condition.message);
        // Line breaks become sentences; whoever wrote it may have been an older tread.
        writeln!(out, "\n{}", clean(&text))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_new_version_that_waits_is_told_and_what_is_switched_off_is_not() {
        let condition = |reason: &str| {
            json!({"type": "Loaded", "status": "Unknown", "reason": reason, "message": "So it is.",
                "lastTransitionTime": "2026-01-02T03:04:05Z"})
        };
        let object = |reason: &str| json!({"metadata": {"name": "a"}, "spec": {}, "status": {"conditions": [condition(reason)]}});
        let mut out = Vec::new();
        for reason in ["Disabled", WAITING] {
            unwell(&mut out, &serde_json::from_value(object(reason)).unwrap()).unwrap();
        }
        assert_eq!(String::from_utf8(out).unwrap(), "\na: Waiting: So it is.\n");
    }

    #[test]
    fn a_condition_of_several_lines_is_one_line_without_holes() {
        let object = json!({"metadata": {"name": "a"}, "spec": {}, "status": {"conditions": [{
            "type": "Loaded", "status": "False", "reason": "BadOutput",
            "message": "two problems:\n  one.\n  two\u{1b}[31m", "lastTransitionTime": "2026-01-02T03:04:05Z",
        }]}});
        let mut out = Vec::new();
        unwell(&mut out, &serde_json::from_value(object).unwrap()).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert_eq!(out, "\na: BadOutput: two problems: one. two [31m\n");
    }
}
