use super::super::machines::all;
use super::*;
use crate::pools::{ConfigMeta, Members, Node};
use kube::core::DynamicObject;
use serde_json::{Value, json};
use tread_kube::api::machines::{CLUSTER_VERSION, MACHINE_SET};

fn role(name: &str) -> String {
    format!("node-role.kubernetes.io/{name}")
}

fn selects(name: &str) -> Value {
    json!({"matchLabels": {role(name): ""}})
}

fn pool(name: &str, selector: &Value, more: &Value) -> (String, Arc<Pool>) {
    pool_with(name, selector, more, 0)
}

/// The same with so many nodes out of service.
fn pool_with(name: &str, selector: &Value, more: &Value, down: usize) -> (String, Arc<Pool>) {
    let config = json!({"name": format!("rendered-{name}-1")});
    let mut spec = json!({"nodeSelector": selector, "configuration": config});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let object = json!({"metadata": {"name": name, "uid": name}, "spec": spec,
        "status": {"unavailableMachineCount": down}});
    (name.to_owned(), Arc::new(Pool::of(&serde_json::from_value(object).unwrap())))
}

fn object(value: &Value) -> DynamicObject {
    serde_json::from_value(value.clone()).unwrap()
}

/// A MachineSet whose machines boot into a pool and get the labels of these.
fn machine_set(facts: &mut Facts, name: &str, boots: &str, roles: &[&str]) {
    let labels: Value = roles.iter().map(|it| (role(it), json!(""))).collect();
    let set = json!({"apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet",
        "metadata": {"name": name, "namespace": "machines", "uid": name},
        "spec": {"template": {"spec": {"metadata": {"labels": labels}, "providerSpec": {
            "value": {"userDataSecret": {"name": format!("{boots}-user-data")}}}}}}});
    facts.take(&MACHINE_SET, &object(&set));
}

fn runs(facts: &mut Facts, version: &str) {
    let version = json!({"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion",
        "metadata": {"name": "version"},
        "status": {"history": [{"state": "Completed", "version": version}]}});
    facts.take(&CLUSTER_VERSION, &object(&version));
}

/// So many pools beside `worker`, each with what is rendered for it and a MachineSet whose
/// template lacks its labels.
fn many(count: usize, version: &str) -> (Cluster, Facts) {
    let (mut cluster, mut facts) = (Cluster::default(), Facts::default());
    cluster.pools.extend([pool("worker", &selects("worker"), &json!({}))]);
    for number in 0..count {
        let name = format!("site-{number}");
        cluster.pools.extend([pool(&name, &selects(&name), &json!({}))]);
        cluster.configs.insert(format!("rendered-{name}-1"), Arc::new(ConfigMeta::default()));
        machine_set(&mut facts, &name, &name, &[]);
    }
    runs(&mut facts, version);
    (cluster, facts)
}

#[test]
fn a_change_of_one_object_has_only_those_machines_judged_that_it_concerns() {
    for version in ["4.21.9", "4.22.0"] {
        let (mut cluster, mut facts) = many(500, version);
        let mut kept = Kept::default();
        assert_eq!(kept.update(&cluster, &facts), 500);
        let expected = if version == "4.21.9" { 500 } else { 0 };
        assert_eq!(kept.foretold().len(), expected);
        let mut after = |what: &str, cluster: &Cluster, facts: &Facts, expected: usize| {
            assert_eq!(kept.update(cluster, facts), expected, "{version}: {what}");
            assert_eq!(kept.foretold(), all(cluster, facts), "{version}: {what}");
        };
        after("nothing", &cluster, &facts, 0);
        let paused = json!({"paused": true});
        cluster.pools.extend([pool("site-7", &selects("site-7"), &paused)]);
        after("a pool is paused", &cluster, &facts, 1);
        cluster.pools.extend([pool("site-500", &selects("site-500"), &json!({}))]);
        after("one more pool", &cluster, &facts, 0);
        machine_set(&mut facts, "site-500", "site-500", &[]);
        after("one more MachineSet", &cluster, &facts, 1);
        machine_set(&mut facts, "site-9", "site-9", &["site-9"]);
        after("a MachineSet is mended", &cluster, &facts, 1);
        machine_set(&mut facts, "site-9", "site-9", &["site-9"]);
        after("a MachineSet says the same", &cluster, &facts, 0);
        cluster.configs.remove("rendered-site-3-1");
        after("a config goes", &cluster, &facts, 1);
        cluster.configs.insert("rendered-other-1".to_owned(), Arc::default());
        after("a config that nobody gets", &cluster, &facts, 0);
        cluster.pools.remove("site-4");
        after("a pool goes", &cluster, &facts, 1);
        cluster.pools.extend([pool("site-5", &json!({"matchLabels": {"no key": ""}}), &paused)]);
        after("a selector cannot be read", &cluster, &facts, 501);
    }
}

#[test]
fn machines_are_judged_again_when_more_nodes_make_room_for_them() {
    let (mut cluster, facts) = many(1, "4.22.0");
    let tenth = json!({"maxUnavailable": "10%"});
    cluster.pools.extend([pool_with("worker", &selects("worker"), &tenth, 1)]);
    let mut kept = Kept::default();
    let mut with = |nodes: usize| {
        for number in 0..nodes {
            let labels = [(role("worker"), String::new())].into();
            let node = Node { labels, ..Node::default() };
            let members: &mut Members = Arc::make_mut(&mut cluster.members);
            members.put(&format!("node-{number}"), node, &cluster.pools);
        }
        kept.update(&cluster, &facts);
        assert_eq!(kept.foretold(), all(&cluster, &facts), "{nodes}");
        kept.foretold().len()
    };
    assert_eq!((with(10), with(19), with(20)), (1, 1, 0));
}

/// Numbers that look random, and are the same each time.
fn next(seed: &mut u64, below: usize) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    usize::try_from(*seed >> 33).unwrap() % below
}

#[test]
fn what_is_judged_one_by_one_is_what_all_judged_at_once_would_be() {
    let names = ["gpu", "infra", "master", "worker"];
    let (mut cluster, mut facts, mut kept) =
        (Cluster::default(), Facts::default(), Kept::default());
    let (mut seed, mut judged, mut foretold) = (1, 0, 0);
    for _ in 0..4000 {
        let name = names[next(&mut seed, names.len())];
        let other = names[next(&mut seed, names.len())];
        match next(&mut seed, 8) {
            0 => drop(cluster.pools.remove(name)),
            1 | 2 => {
                let selector = match next(&mut seed, 8) {
                    0 => json!({"matchLabels": {role(name): "", role(other): ""}}),
                    1 => {
                        json!({"matchExpressions": [{"key": role(other), "operator": "DoesNotExist"}]})
                    }
                    2 => json!({"matchExpressions": [{"key": role(other), "operator": "Near"}]}),
                    3 => selects(other),
                    _ => selects(name),
                };
                let most = [json!(null), json!(1), json!("34%")][next(&mut seed, 3)].clone();
                let paused = next(&mut seed, 4) == 0;
                let more = json!({"paused": paused, "maxUnavailable": most});
                let down = next(&mut seed, 4);
                cluster.pools.extend([pool_with(name, &selector, &more, down)]);
            }
            3 => {
                let rendered = format!("rendered-{name}-1");
                match cluster.configs.contains_key(&rendered) {
                    true => drop(cluster.configs.remove(&rendered)),
                    false => drop(cluster.configs.insert(rendered, Arc::default())),
                }
            }
            4 => runs(&mut facts, ["4.21.9", "4.22.0"][next(&mut seed, 2)]),
            5 => {
                let members: &mut Members = Arc::make_mut(&mut cluster.members);
                let labels = [(role(other), String::new())].into();
                let node = Node { labels, ..Node::default() };
                members.put(&format!("node-{}", next(&mut seed, 20)), node, &cluster.pools);
            }
            _ => {
                let set = format!("set-{}", next(&mut seed, 6));
                let roles = [other];
                machine_set(&mut facts, &set, name, &roles[next(&mut seed, 2)..]);
            }
        }
        judged += kept.update(&cluster, &facts);
        let all = all(&cluster, &facts);
        assert_eq!(kept.foretold(), all, "{:#?}", cluster.pools);
        foretold += all.len();
    }
    assert!(judged < 4000 * 3 && foretold > 1000, "{judged} were judged, {foretold} told of");
}
