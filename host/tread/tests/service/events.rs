//! What is reported of policies and plans in Events.

use crate::replica::installed;
use crate::story::{cluster, config, plan};
use tread_test_bed::eventually;

#[tokio::test(flavor = "multi_thread")]
async fn what_a_policy_did_to_pending_plans_is_told_on_it_also_when_it_is_new() {
    let plane = installed();
    let _replica = cluster(&plane).await;
    plane.apply(&config("50-a", "a", "1")).unwrap();
    let pending = plan(&plane, "MachineConfig/50-a created").await;
    let name = pending.metadata.name.unwrap();
    let rules = |actions: &str| {
        format!(
            r#"{{"apiVersion": "tread.dev/v1alpha1", "kind": "DisruptionPolicy",
            "metadata": {{"name": "ours"}},
            "spec": {{"rules": [{{"match": ["file:/etc/a"], "actions": [{actions}]}}]}}}}"#
        )
    };
    for (actions, word) in [("", "gentler"), (r#"{"do": "drain"}"#, "harsher")] {
        plane.apply(&rules(actions)).unwrap();
        let said = format!("It made 1 pending plan {word} ({name}).");
        eventually(&said, async || {
            let args = [
                "get",
                "events",
                "-A",
                "-o",
                "custom-columns=R:.reason,N:.message,\
                K:.involvedObject.kind,O:.involvedObject.name",
                "--no-headers",
            ];
            let listed = plane.kubectl(&args).unwrap().success().unwrap();
            let is_it = |line: &str| {
                let words: Vec<&str> = line.split_whitespace().collect();
                line.starts_with("PlansChanged ")
                    && line.contains(&said)
                    && words.ends_with(&["DisruptionPolicy", "ours"])
            };
            let status = ["get", "dpol", "ours", "-o", "jsonpath={.status.pendingPlans}"];
            let status = plane.kubectl(&status).unwrap().success().unwrap();
            (listed.lines().any(is_it) && status == said).then_some(())
        })
        .await;
    }
}
