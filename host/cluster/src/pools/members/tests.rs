use super::*;
use crate::pools::Pool;
use std::sync::Arc;
use tread_kube::api::MachineConfigPool;

fn pools(names: &[&str]) -> Pools {
    let pool = |name: &str| {
        let text = serde_json::json!({
            "metadata": {"name": name},
            "spec": {"nodeSelector": {"matchLabels": {format!("node-role/{name}"): ""}}},
        });
        let object: MachineConfigPool = serde_json::from_value(text).unwrap();
        (name.to_owned(), Arc::new(Pool::of(&object)))
    };
    names.iter().map(|name| pool(name)).collect()
}

fn node(roles: &[&str], current: Option<&str>) -> Node {
    let labels = roles.iter().map(|role| (format!("node-role/{role}"), String::new())).collect();
    Node { labels, current: current.map(str::to_owned), single_replica: false }
}

#[test]
fn a_pool_of_its_own_name_beats_worker_and_master_beats_both() {
    let pools = pools(&["arbiter", "infra", "gpu", "master", "worker"]);
    for (roles, expected) in [
        (&["worker"][..], Ok(Some("worker"))),
        (&["worker", "infra"], Ok(Some("infra"))),
        (&["infra"], Ok(Some("infra"))),
        (&["arbiter", "worker"], Ok(Some("arbiter"))),
        (&["worker", "master"], Ok(Some("master"))),
        (&["infra", "master"], Ok(Some("master"))),
        (&["infra", "gpu", "worker"], Err(vec!["gpu", "infra"])),
        (&["other"], Ok(None)),
        (&[], Ok(None)),
    ] {
        assert_eq!(pool_of(&node(roles, None), &pools), expected, "{roles:?}");
    }
    let mut windows = node(&["worker"], None);
    windows.labels.insert("kubernetes.io/os".to_owned(), "windows".to_owned());
    assert_eq!(pool_of(&windows, &pools), Ok(None));
}

#[test]
fn a_pool_that_selects_everything_has_no_nodes() {
    let object: MachineConfigPool = serde_json::from_value(
        serde_json::json!({"metadata": {"name": "x"}, "spec": {"nodeSelector": {}}}),
    )
    .unwrap();
    let pools = Pools::from([("x".to_owned(), Arc::new(Pool::of(&object)))]);
    assert_eq!(pool_of(&node(&["worker"], None), &pools), Ok(None));
}

#[test]
fn a_selector_that_cannot_be_read_is_told_with_its_field_and_selects_nothing() {
    let object: MachineConfigPool = serde_json::from_value(serde_json::json!({
        "metadata": {"name": "x"},
        "spec": {"nodeSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}},
    }))
    .unwrap();
    let pool = Pool::of(&object);
    assert!(pool.nodes.is_none());
    assert!(pool.problem.unwrap().starts_with("spec.nodeSelector: "));
}

#[test]
fn nodes_are_counted_by_the_config_that_they_have_while_they_come_change_and_go() {
    let mut all = pools(&["infra", "worker"]);
    let mut members = Members::default();
    let counts = |members: &Members, pool: &str| {
        let counts =
            members.of_pool(pool).map(|(from, nodes)| (from.map(str::to_owned), nodes.len()));
        counts.collect::<Vec<_>>()
    };
    for (name, roles, current) in [
        ("a", &["worker"][..], Some("r1")),
        ("b", &["worker"], Some("r1")),
        ("c", &["worker"], None),
    ] {
        assert_eq!(
            members.put(name, node(roles, current), &all),
            BTreeSet::from(["worker".to_owned()])
        );
    }
    assert_eq!(counts(&members, "worker"), [(None, 1), (Some("r1".to_owned()), 2)]);
    assert_eq!(members.put("a", node(&["worker"], Some("r1")), &all), BTreeSet::new());
    members.put("a", node(&["worker"], Some("r2")), &all);
    assert_eq!(
        counts(&members, "worker"),
        [(None, 1), (Some("r1".to_owned()), 1), (Some("r2".to_owned()), 1)]
    );
    let touched = members.put("b", node(&["worker", "infra"], Some("r1")), &all);
    assert_eq!(touched, BTreeSet::from(["infra".to_owned(), "worker".to_owned()]));
    all.remove("infra");
    let touched = members.sort_again(&all);
    assert_eq!(touched, BTreeSet::from(["infra".to_owned(), "worker".to_owned()]));
    assert_eq!(members.count("worker"), 3);
    members.remove("c");
    members.remove("b");
    assert_eq!(counts(&members, "worker"), [(Some("r2".to_owned()), 1)]);
    assert_eq!(members.count("infra"), 0);
}
