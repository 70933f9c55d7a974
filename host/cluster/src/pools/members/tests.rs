use super::*;
use crate::pools::{Pool, pool_of};
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
    Node { labels, current: current.map(str::to_owned), ..Node::default() }
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
    let gone = all.remove("infra").unwrap().nodes.clone();
    let touched = members.sort_again(&all, &[gone]);
    assert_eq!(touched, BTreeSet::from(["infra".to_owned(), "worker".to_owned()]));
    assert_eq!(members.count("worker"), 3);
    members.remove("c");
    members.remove("b");
    assert_eq!(counts(&members, "worker"), [(Some("r2".to_owned()), 1)]);
    assert_eq!(members.count("infra"), 0);
}

/// Numbers that look random, and are the same each time.
fn next(seed: &mut u64) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    usize::try_from(*seed >> 33).unwrap()
}

#[test]
fn nodes_sorted_one_by_one_are_where_all_of_them_sorted_at_once_would_be() {
    let roles = ["arbiter", "gpu", "infra", "master", "worker"];
    let every = pools(&roles);
    let broken = Selects::Unreadable("x".to_owned());
    let (mut seed, mut there, mut members) = (1, Pools::new(), Members::default());
    for _ in 0..2000 {
        let name = format!("node-{}", next(&mut seed) % 20);
        let role = roles[next(&mut seed) % roles.len()];
        match next(&mut seed) % 6 {
            0 => {
                members.remove(&name);
            }
            1 => {
                let gone = there.remove(role).map(|pool| pool.nodes.clone()).unwrap_or_default();
                members.sort_again(&there, &[gone]);
            }
            2 => {
                let mut pool = Pool::clone(&every[role]);
                if next(&mut seed).is_multiple_of(8) {
                    pool.nodes = broken.clone();
                }
                let now = pool.nodes.clone();
                let before = there.insert(role.to_owned(), Arc::new(pool));
                let before = before.map(|pool| pool.nodes.clone()).unwrap_or_default();
                members.sort_again(&there, &[before, now]);
            }
            _ => {
                let other = roles[next(&mut seed) % roles.len()];
                members.put(&name, node(&[role, other], Some(role)), &there);
            }
        }
        for (name, member) in members.all() {
            let expected = pool_of(&member.node.labels, &there);
            assert_eq!(member.place, expected, "{name}");
            let pool = expected.pool().unwrap_or("none");
            let has = members.of_pool(pool).any(|(_, nodes)| nodes.contains(name));
            assert_eq!(has, expected.pool().is_some(), "{name}");
        }
        let counted: usize = roles.iter().map(|pool| members.count(pool)).sum();
        let placed = members.all().filter(|(_, member)| member.place.pool().is_some()).count();
        assert_eq!(counted, placed);
    }
}

#[test]
fn what_was_witnessed_is_kept_for_as_long_as_it_takes_to_list_all_nodes() {
    let all = pools(&["worker"]);
    let long_ago = |uid: &str| Node { uid: uid.to_owned(), ..node(&["worker"], Some("r1")) };
    let mut members = Members::since(1_000_000);
    for number in 0..1000 {
        members.witness(&format!("gone-{number}"), &format!("gone-{number}"));
    }
    members.witness("a", "uid-a");
    members.put("a", long_ago("uid-a"), &all);
    members.put("b", long_ago("uid-b"), &all);
    members.listed();
    assert_eq!(members.witnessed, BTreeSet::new());
    // What comes later is noted on the nodes that are there, and nowhere else.
    assert!(members.awaits_witness("b", "uid-b"));
    members.witness("b", "uid-b");
    assert!(!members.awaits_witness("gone-1", "gone-1"));
    members.witness("gone-1", "gone-1");
    assert_eq!(members.witnessed, BTreeSet::new());
    assert!(["a", "b"].iter().all(|name| members.get(name).unwrap().is_new));
    assert!(!members.awaits_witness("b", "uid-b"));
    // It goes with the node.
    members.remove("b");
    members.put("b", long_ago("uid-c"), &all);
    assert!(!members.get("b").unwrap().is_new);
}

#[test]
fn a_node_that_says_no_more_than_what_it_booted_with_is_found_by_that() {
    let all = pools(&["worker"]);
    let mut members = Members::default();
    let booted = |current: Option<&str>| Node {
        first_pivot: Some("r1".to_owned()),
        ..node(&["worker"], current)
    };
    members.put("new", booted(None), &all);
    members.put("moved", booted(Some("r2")), &all);
    members.put("there", booted(Some("r1")), &all);
    members.put("silent", node(&["worker"], None), &all);
    assert_eq!(members.with_config("r1"), ["there", "new"]);
    assert_eq!(members.with_config("r2"), ["moved"]);
}

#[test]
fn a_node_that_has_not_joined_counts_nowhere_and_then_where_its_labels_say() {
    let all = pools(&["infra", "worker"]);
    let mut members = Members::default();
    let joining = Node { joins: true, ..node(&["worker"], None) };
    assert_eq!(members.put("a", joining, &all), BTreeSet::new());
    assert_eq!(members.get("a").unwrap().place, Place::Joining);
    let changed = Selects::default();
    members.sort_again(&all, &[all["worker"].nodes.clone(), changed]);
    assert_eq!(members.count("worker"), 0, "its pool's selector changed");
    // One write gives it its labels and takes the taint away.
    let touched = members.put("a", node(&["worker", "infra"], None), &all);
    assert_eq!(touched, BTreeSet::from(["infra".to_owned()]));
    assert_eq!((members.count("infra"), members.count("worker")), (1, 0));
}

#[test]
fn a_node_is_alone_while_no_other_one_takes_its_pods_and_its_pool_is_looked_at_when_that_changes() {
    let all = pools(&["infra", "worker"]);
    let mut members = Members::default();
    let with = |role: &str, taints: &[&str]| {
        let taints: Vec<_> = taints
            .iter()
            .map(|key| serde_json::json!({"key": key, "effect": "NoSchedule"}))
            .collect();
        let object = serde_json::json!({"spec": {"taints": taints}});
        let taints = LastingTaints::of(&serde_json::from_value(object).unwrap());
        Node { taints, ..node(&[role], None) }
    };
    let alone = |members: &Members| {
        let names = members.names().filter(|name| members.is_alone(name));
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    let of = |pools: &[&str]| pools.iter().map(|it| (*it).to_owned()).collect::<BTreeSet<_>>();
    members.put("w1", with("worker", &[]), &all);
    assert_eq!(alone(&members), ["w1"]);
    // Its pods do not tolerate the taint; those of the other one go to it.
    members.put("i1", with("infra", &["infra"]), &all);
    assert_eq!(alone(&members), ["w1"]);
    assert_eq!(members.put("i2", with("infra", &["infra"]), &all), of(&["infra"]));
    assert_eq!(alone(&members), ["w1"]);
    let touched = members.put("i2", with("infra", &[]), &all);
    assert_eq!((touched, alone(&members).len()), (of(&["infra", "worker"]), 0));
    assert_eq!(members.remove("i2"), of(&["infra", "worker"]));
    assert_eq!(alone(&members), ["w1"]);
    assert_eq!(members.put("w2", with("worker", &[]), &all), of(&["worker"]));
    assert_eq!(members.remove("w1"), of(&["worker"]));
    assert_eq!(alone(&members), ["w2"]);
    members.remove("w2");
    assert_eq!(alone(&members), ["i1"], "nobody else is left");
}

#[test]
fn nodes_that_somebody_else_has_are_found_without_a_look_at_the_others() {
    let pools = pools(&[]);
    let mut members = Members::since(0);
    let held = |members: &Members| members.held().map(str::to_owned).collect::<Vec<_>>();
    let free = node(&["worker"], None);
    let taken = Node { held: Some(tread_model::protocol::HeldBy::Drain), ..free.clone() };
    for name in ["a", "b", "c"] {
        members.put(name, free.clone(), &pools);
    }
    assert!(held(&members).is_empty());
    members.put("b", taken.clone(), &pools);
    members.put("c", taken, &pools);
    assert_eq!(held(&members), ["b", "c"]);
    members.put("b", free, &pools);
    members.remove("c");
    assert!(held(&members).is_empty());
}
