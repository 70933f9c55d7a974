//! Policies that need no module.

use super::support::*;
use tread_cluster::policies::snapshot::Room;
use tread_kube::api::DisruptionPolicyStatus;
use tread_kube::api::disruption_policy::{Layer, State};

fn object(name: &str, pattern: &str) -> String {
    format!(
        "{{apiVersion: tread.dev/v1alpha1, kind: DisruptionPolicy, metadata: {{name: {name}}}, spec: \
         {{rules: [{{match: ['{pattern}'], actions: [{{do: restart, unit: {name}.service}}]}}]}}}}"
    )
}

#[tokio::test]
async fn inline_rules_decide_and_bad_ones_leave_the_last_good_ones() {
    let (plane, replica) = shared();
    let client = plane.client().await.unwrap();
    let name = four_letters();
    let path = format!("/etc/{name}.conf");
    plane.apply(&object(&name, &format!("file:{path}"))).unwrap();
    let first = until(&client, &name, |it| it.kept_in.is_some()).await;
    assert_eq!(first.state, Some(State::Loaded));
    assert_eq!(first.layer, Some(Layer::Admin));
    assert_eq!(first.source.as_deref(), Some("rules"));
    let restarts = format!("restart {name}.service");
    until_current(replica, |it| cost(it, &path, "") == restarts).await;

    // No schema can know that this is no pattern.
    plane.apply(&object(&name, "fiel:/etc/x")).unwrap();
    let status = until_state(&client, &name, State::LastGood).await;
    assert_eq!(status.settings_digest, first.settings_digest);
    let (_, reason, message) = condition(&status, "Loaded");
    assert_eq!(reason, "Invalid");
    assert!(message.starts_with("spec.rules[0].match"), "{message}");
    assert!(message.ends_with("? The rules before go on deciding."), "{message}");
    until_current(replica, |it| cost(it, &path, "") == restarts).await;
    // Also for who was not there when they were good.
    let fresh = self::replica(plane, false, Room::default());
    until_current(&fresh, |it| it.settled && cost(it, &path, "") == restarts).await;
    drop(fresh);

    plane.apply(&object(&name, "file:/etc/other.conf")).unwrap();
    until_state(&client, &name, State::Loaded).await;
    until_current(replica, |it| cost(it, "/etc/other.conf", "") == restarts).await;

    // What is valid and probably not meant is said, and decides.
    plane.apply(&object(&name, "file:/etc/twice', 'file:/etc/twice")).unwrap();
    let warning = format!("Rule 1 of {name} names file:/etc/twice twice.");
    let warned = |it: &DisruptionPolicyStatus| condition(it, "Loaded").2.contains(&warning);
    assert_eq!(until(&client, &name, warned).await.state, Some(State::Loaded));
    plane.kubectl(&["delete", "dpol", &name]).unwrap().success().unwrap();
    until_current(replica, |it| !has(it, &name)).await;
}

#[tokio::test]
async fn rules_that_say_nothing_are_invalid_and_a_unit_without_a_type_is_not_taken() {
    let (plane, _replica) = shared();
    let client = plane.client().await.unwrap();
    let name = four_letters();
    let typeless = object(&name, "file:/etc/x").replace(&format!("{name}.service"), &name);
    let refused = format!("{:#}", plane.apply(&typeless).unwrap_err());
    assert!(refused.contains("spec.rules[0].actions[0].unit"), "{refused}");

    // What no schema tells.
    plane.apply(&object(&name, "fiel:/etc/x")).unwrap();
    let status = until_state(&client, &name, State::Invalid).await;
    let (_, reason, message) = condition(&status, "Loaded");
    assert_eq!(reason, "Invalid");
    assert!(message.starts_with("spec.rules[0].match[0]: "), "{message}");
    assert!(message.ends_with(" It decides nothing."), "{message}");
    plane.kubectl(&["delete", "dpol", &name]).unwrap().success().unwrap();
}

#[tokio::test]
async fn rules_of_which_one_cannot_be_followed_cost_reboots_for_what_the_others_match() {
    let (plane, replica) = shared();
    let client = plane.client().await.unwrap();
    let unit = "{match: ['file:/etc/x'], actions: [{do: restart, unit: reboot.target}]}";
    for (rule, word) in [
        ("{match: ['/etc/x'], actions: []}", "spec.rules[1].match[0]: "),
        ("{match: ['file:/etc/../x'], actions: []}", "spec.rules[1].match[0]: "),
        (unit, "spec.rules[1].actions[0].unit: "),
        (
            "{match: ['file:/etc/x'], actions: [], reason: \"two\\nlines\"}",
            "spec.rules[1].reason: ",
        ),
    ] {
        let name = four_letters();
        // What a built-in policy knows to need less.
        let path = format!("/etc/containers/registries.conf.d/{name}.conf");
        let gentle = until_current(replica, |it| has(it, "registries")).await;
        assert_ne!(cost(&gentle, &path, ""), "drain, reboot");
        let object = format!(
            "{{apiVersion: tread.dev/v1alpha1, kind: DisruptionPolicy, metadata: {{name: {name}}}, \
             spec: {{rules: [{{match: ['file:{path}'], refuse: true, reason: Ask us.}}, \
             {rule}]}}}}"
        );
        plane.apply(&object).unwrap();
        let status = until_state(&client, &name, State::Invalid).await;
        let claims = status.claims_summary.clone().unwrap();
        assert!(claims.starts_with("file:/etc/containers/"), "{claims}");
        assert_eq!(status.effects.as_deref(), Some("reboot"));
        let (_, reason, message) = condition(&status, "Loaded");
        assert_eq!(reason, "Invalid");
        assert!(message.starts_with(word), "{message}");
        let then = "Until that is mended, every change that it claims costs a reboot.";
        assert!(message.ends_with(then), "{message}");
        let current = until_current(replica, |it| has(it, &name)).await;
        assert_eq!(cost(&current, &path, ""), "drain, reboot");
        let all = current.policies.policies();
        let it = all.iter().find(|it| it.identity.policy == name).unwrap();
        assert_eq!(it.identity.layer, tread_model::verdict::Layer::Admin);
        plane.kubectl(&["delete", "dpol", &name]).unwrap().success().unwrap();
        until_current(replica, |it| !has(it, &name)).await;
    }
}

#[tokio::test]
async fn the_clusters_own_node_disruption_policy_is_listed_and_followed() {
    let (plane, replica) = shared();
    let client = plane.client().await.unwrap();
    let cluster = |unit: &str| {
        format!(
            "{{apiVersion: operator.openshift.io/v1, kind: MachineConfiguration, metadata: \
             {{name: cluster}}, spec: {{nodeDisruptionPolicy: {{files: [{{path: /etc/ndp.conf, \
             actions: [{{type: Restart, restart: {{serviceName: {unit}}}}}]}}]}}}}}}"
        )
    };
    plane.apply(&cluster("one.service")).unwrap();
    let status = until_state(&client, "node-disruption-policy", State::Loaded).await;
    assert_eq!(status.layer, Some(Layer::Admin));
    assert_eq!(status.source.as_deref(), Some("nodeDisruptionPolicy"));
    until_current(replica, |it| cost(it, "/etc/ndp.conf", "") == "restart one.service").await;
    plane.apply(&cluster("two.service")).unwrap();
    until_current(replica, |it| cost(it, "/etc/ndp.conf", "") == "restart two.service").await;
    let none = "{apiVersion: operator.openshift.io/v1, kind: MachineConfiguration, \
                metadata: {name: cluster}, spec: {nodeDisruptionPolicy: {}}}";
    plane.kubectl(&["delete", "machineconfiguration", "cluster"]).unwrap().success().unwrap();
    until_gone(&client, "node-disruption-policy").await;
    until_current(replica, |it| cost(it, "/etc/ndp.conf", "") == "drain, reboot").await;

    // One entry that tread cannot follow, beside one that it can.
    let odd = cluster("one.service")
        .replace("files: [", "files: [{path: \"/etc/o\\ndd\", actions: []}, ");
    plane.apply(&odd).unwrap();
    let status = until_state(&client, "node-disruption-policy", State::Failed).await;
    let claims: Vec<&str> = status.claims.iter().map(|it| it.changes.as_str()).collect();
    assert_eq!(claims, ["file:/etc/ndp.conf", "file:/etc/ndp.conf/**"]);
    until_current(replica, |it| has(it, "node-disruption-policy")).await;
    plane.kubectl(&["delete", "machineconfiguration", "cluster"]).unwrap().success().unwrap();
    until_gone(&client, "node-disruption-policy").await;
    plane.apply(none).unwrap();
}
