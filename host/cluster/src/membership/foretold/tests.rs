use super::*;
use crate::pools::{ConfigMeta, Node};
use std::sync::Arc;
use tread_kube::api::MachineConfigPool;

const INFRA: &str = "rendered-infra-1";

fn role(name: &str) -> String {
    format!("node-role.kubernetes.io/{name}")
}

fn pools() -> Pools {
    ["gpu", "infra", "master", "worker"]
        .iter()
        .map(|name| {
            let selector = json!({"matchLabels": {role(name): ""}});
            pool(name, &json!({"nodeSelector": selector}), &json!({}))
        })
        .collect()
}

fn pool(name: &str, spec: &Value, status: &Value) -> (String, Arc<Pool>) {
    let mut spec = spec.clone();
    let config = json!({"name": format!("rendered-{name}-1")});
    spec["configuration"] = config.clone();
    let mut status = status.clone();
    status["configuration"] = config;
    let object: MachineConfigPool =
        serde_json::from_value(json!({"metadata": {"name": name, "uid": name},
            "spec": spec, "status": status}))
        .unwrap();
    (name.to_owned(), Arc::new(Pool::of(&object)))
}

fn foretold(pools: &Pools, running: &str, user_data: &str, roles: &[&str]) -> Option<Foretold> {
    let configs: Configs =
        [(INFRA.to_owned(), Arc::new(ConfigMeta::default()))].into_iter().collect();
    foretold_with(pools, &configs, running, user_data, roles)
}

fn foretold_with(
    pools: &Pools,
    configs: &Configs,
    running: &str,
    user_data: &str,
    roles: &[&str],
) -> Option<Foretold> {
    let mut members = Members::default();
    for number in 0..10 {
        let labels = [(role("worker"), String::new())].into();
        members.put(&format!("node-{number}"), Node { labels, ..Node::default() }, pools);
    }
    let running = Release::parse(running);
    let scene = Scene { pools, members: &members, configs, running, by_tread: false };
    let labels: Map<String, Value> = roles.iter().map(|it| (role(it), json!(""))).collect();
    let object = serde_json::from_value(json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet",
        "metadata": {"name": "a", "namespace": "machines", "uid": "1"},
        "spec": {"template": {"spec": {
            "metadata": {"labels": labels},
            "providerSpec": {"value": {"userDataSecret": {"name": user_data}}},
        }}},
    }))
    .unwrap();
    let machine = Machine::read(&MACHINE_SET, &object);
    let key = Key::of(&MACHINE_SET, &object);
    let by_tread = Scene { by_tread: true, ..scene };
    assert_eq!(foretell(&key, &machine, &by_tread), None, "a name says nothing there");
    foretell(&key, &machine, &scene)
}

#[test]
fn machines_that_boot_into_a_pool_whose_labels_they_lack_are_told_of_with_the_patch() {
    for user_data in ["infra-user-data", "infra-user-data-managed"] {
        let foretold = foretold(&pools(), "4.21.9", user_data, &[]).unwrap();
        assert_eq!((&*foretold.boots, foretold.gets.as_deref()), ("infra", Some(INFRA)));
        assert_eq!(foretold.counts, Place::Pool("worker".to_owned()));
        let labels = "/spec/template/spec/metadata/labels";
        let patch = foretold.patch.clone().unwrap();
        assert_eq!(patch.pointer(labels), Some(&json!({role("infra"): ""})));
        assert_eq!(
            foretold.says("machines/a"),
            "New machines of machines/a boot into pool infra and will count in pool worker"
        );
    }
}

#[test]
fn machines_that_get_the_labels_of_their_pool_are_not_told_of() {
    for (user_data, roles) in [
        ("infra-user-data", &["infra"][..]),
        ("worker-user-data", &[]),
        // By the label it is moved on purpose.
        ("worker-user-data", &["infra"]),
        ("master-user-data", &[]),
        ("edge-user-data", &[]),
        ("infra-data", &[]),
        ("own", &[]),
    ] {
        assert_eq!(foretold(&pools(), "4.21.9", user_data, roles), None, "{user_data} {roles:?}");
    }
}

#[test]
fn a_label_of_another_pool_of_its_own_name_goes_with_the_patch() {
    let foretold = foretold(&pools(), "4.21.9", "infra-user-data", &["gpu"]).unwrap();
    assert_eq!(foretold.counts, Place::Pool("gpu".to_owned()));
    let labels = foretold.patch.unwrap().pointer("/spec/template/spec/metadata/labels").cloned();
    assert_eq!(labels, Some(json!({role("infra"): "", role("gpu"): null})));
    let several = super::tests::foretold(&pools(), "4.21.9", "infra-user-data", &["gpu", "infra"]);
    assert!(matches!(several.unwrap().counts, Place::Several(_)));
}

#[test]
fn from_4_22_on_only_the_gaps_of_the_operator_count() {
    let of = |pools: &Pools| foretold(pools, "4.22.0", "infra-user-data", &[]);
    assert_eq!(of(&pools()), None, "the operator labels it");
    let worker = |spec: Value, status: Value| {
        let mut spec = spec;
        spec["nodeSelector"] = json!({"matchLabels": {role("worker"): ""}});
        let mut all = pools();
        all.extend([pool("worker", &spec, &status)]);
        of(&all).and_then(|it| it.gap)
    };
    assert_eq!(worker(json!({"paused": true}), json!({})).unwrap(), "pool worker is paused");
    for (most, now, is_full) in [
        (json!(null), 0, false),
        (json!(null), 1, true),
        (json!(2), 1, false),
        (json!(2), 2, true),
        // Of ten nodes.
        (json!("35%"), 2, false),
        (json!("35%"), 3, true),
        // At least one may be.
        (json!("1%"), 0, false),
        (json!("1%"), 1, true),
    ] {
        let status = json!({"unavailableMachineCount": now});
        let gap = worker(json!({"maxUnavailable": most}), status);
        assert_eq!(gap.is_some(), is_full, "{most} {now}: {gap:?}");
    }
    let gone = foretold_with(&pools(), &Configs::default(), "4.22.0", "infra-user-data", &[]);
    assert_eq!(gone.unwrap().gap.unwrap(), "rendered-infra-1, which they boot with, is gone");
    let infra = |selector: Value| {
        let mut all = pools();
        all.extend([pool("infra", &json!({"nodeSelector": selector}), &json!({}))]);
        of(&all).unwrap()
    };
    let several = json!({"matchExpressions": [
        {"key": "site", "operator": "In", "values": ["a", "b"]}]});
    let foretold = infra(several);
    assert!(foretold.gap.unwrap().ends_with("such a node is never updated"));
    assert_eq!(foretold.patch, None);
    let half = json!({"matchLabels": {role("infra"): ""}, "matchExpressions": [
        {"key": "site", "operator": "In", "values": ["a", "b"]}]});
    assert!(infra(half).gap.unwrap().contains("do not put a node there"));
}

#[test]
fn what_keeps_the_operator_from_labelling_is_not_told_anew_with_each_node_that_is_down() {
    let gap = |now: i64| {
        let spec = json!({"nodeSelector": {"matchLabels": {role("worker"): ""}}});
        let mut all = pools();
        all.extend([pool("worker", &spec, &json!({"unavailableMachineCount": now}))]);
        foretold(&all, "4.22.0", "infra-user-data", &[]).unwrap()
    };
    assert_eq!(gap(1), gap(7));
}

#[test]
fn what_cannot_be_a_name_is_one_word_of_the_command_for_a_shell() {
    let foretold = foretold(&pools(), "4.21.9", "infra-user-data", &[]).unwrap();
    let key = |name: &str| Key {
        kind: MACHINE_SET.name,
        namespace: "machines".to_owned(),
        name: name.to_owned(),
    };
    let begin = "kubectl patch machinesets.machine.openshift.io -n machines";
    for (name, word) in [("a", "a"), ("$(x)", "'$(x)'"), ("it's", r"'it'\''s'")] {
        let command = foretold.prevents(&key(name));
        assert!(command.starts_with(&format!("{begin} {word} --type=merge -p '{{")), "{command}");
    }
}

#[test]
fn machines_that_tread_serves_get_the_labels_of_their_pool_or_are_held() {
    let one_of = json!({"matchExpressions": [
        {"key": "site", "operator": "In", "values": ["a", "b"]}]});
    let mut pools = pools();
    pools.extend([pool("edge", &json!({"nodeSelector": one_of}), &json!({}))]);
    let (members, configs) = (Members::default(), Configs::default());
    let running = Release::parse("4.22.0");
    let scene =
        Scene { pools: &pools, members: &members, configs: &configs, running, by_tread: true };
    let of = |booted: &str, roles: &[&str]| {
        let labels = roles.iter().map(|it| (role(it), String::new())).collect();
        foretell_joining(booted, &labels, &scene)
    };
    for (booted, roles) in
        [("infra", &[][..]), ("infra", &["infra"]), ("worker", &[]), ("none", &[])]
    {
        assert_eq!(of(booted, roles), None, "{booted} {roles:?}");
    }
    let both = of("infra", &["gpu"]).unwrap();
    assert_eq!(
        both.says("m/a"),
        "New machines of m/a boot into pool infra and will count in no pool: they are held (with the \
         labels of their pool they would be in the pools gpu, infra)"
    );
    let labels = both.patch.unwrap().pointer("/spec/template/spec/metadata/labels").cloned();
    assert_eq!(labels, Some(json!({role("gpu"): null})));
    // A claim of `worker` makes no node of `infra`.
    assert!(
        of("worker", &["infra"]).unwrap().gap.unwrap().ends_with("they would be in pool infra")
    );
    let unsure = of("edge", &[]).unwrap();
    assert!(unsure.says("m/a").contains("nobody can say which labels they get: "));
    assert_eq!(unsure.patch, None);
    assert!(unsure.prevents_before().starts_with("mend spec.nodeSelector of pool edge"));
    // Those whom tread does not serve count by their labels, and no operator mends that.
    let stray = foretell_of("infra", &Labels::new(), &scene).unwrap();
    assert_eq!((stray.counts.pool(), stray.gap), (Some("worker"), None));
}
