use super::*;
use crate::pools::Pool;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tread_kube::api::MachineConfigPool;

const POOLS: [&str; 5] = ["arbiter", "gpu", "infra", "master", "worker"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    title: String,
    #[serde(default)]
    roles: Vec<String>,
    #[serde(default)]
    labels: Labels,
    #[serde(default)]
    pools: BTreeMap<String, Value>,
    expect: Expect,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Expect {
    pool: Option<String>,
    beside: Option<String>,
    several: Vec<String>,
    unplaced: Vec<String>,
    nowhere: bool,
}

fn role(name: &str) -> String {
    format!("node-role.kubernetes.io/{name}")
}

fn pool(name: &str, selector: &Value) -> (String, Arc<Pool>) {
    let object: MachineConfigPool = serde_json::from_value(
        json!({"metadata": {"name": name}, "spec": {"nodeSelector": selector}}),
    )
    .unwrap();
    (name.to_owned(), Arc::new(Pool::of(&object)))
}

#[test]
fn a_node_belongs_where_openshift_says_in_every_case_of_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases/pools.yaml");
    let text = std::fs::read_to_string(path).unwrap();
    let cases: Vec<Case> = serde_saphyr::from_multiple(&text).unwrap();
    assert!(cases.len() >= 35, "{}", cases.len());
    for case in cases {
        let mut pools: Pools = POOLS
            .iter()
            .map(|name| pool(name, &json!({"matchLabels": {role(name): ""}})))
            .collect();
        pools.extend(case.pools.iter().map(|(name, selector)| pool(name, selector)));
        let mut labels = case.labels;
        labels.extend(case.roles.iter().map(|name| (role(name), String::new())));
        let expect = case.expect;
        let expected = match (expect.pool, expect.beside) {
            (Some(_), Some(beside)) => Place::MasterBeside(beside),
            (Some(pool), None) => Place::Pool(pool),
            _ if expect.nowhere => Place::Nowhere,
            _ if !expect.several.is_empty() => Place::Several(expect.several),
            _ => Place::Unplaced(expect.unplaced),
        };
        assert_eq!(pool_of(&labels, &pools), expected, "{}", case.title);
    }
}

#[test]
fn what_no_node_is_placed_for_is_said_with_the_pools() {
    let pools: Pools = [("a", "b"), ("c", "d")]
        .iter()
        .map(|(name, key)| pool(name, &json!({"matchLabels": {format!("{key} "): ""}})))
        .collect();
    let text = says_unplaced(&unreadable(&pools));
    assert!(text.starts_with("no node is placed in any pool"), "{text}");
    assert!(text.contains("mends the pools a, c: they, or their spec.nodeSelectors"), "{text}");
    assert!(pools["a"].problems()[0].contains("\"b \" is no key of a label"));
}
