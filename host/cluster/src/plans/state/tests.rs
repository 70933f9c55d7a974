use super::*;
use crate::pools::Place;
use serde_json::{Value, json};

const PREFIX: &str = "machineconfiguration.openshift.io";
const INFRA: &str = "rendered-infra-00000000000000000000000000000001";

fn cluster() -> Cluster {
    let pool = |name: &str| {
        let selector = json!({"matchLabels": {format!("node-role.kubernetes.io/{name}"): ""}});
        let object = json!({"metadata": {"name": name, "uid": format!("uid-{name}")},
            "spec": {"nodeSelector": selector}});
        (name.to_owned(), Arc::new(Pool::of(&serde_json::from_value(object).unwrap())))
    };
    Cluster { pools: ["infra", "worker"].map(pool).into_iter().collect(), ..Cluster::default() }
}

fn event<K: serde::de::DeserializeOwned>(object: Value) -> Event<K> {
    Event::Apply(serde_json::from_value(object).unwrap())
}

#[test]
fn a_node_that_says_only_what_it_booted_with_strays_as_soon_as_that_config_is_known() {
    let (mut state, mut cluster) = (State::new(Metrics::new(), false), cluster());
    // Of a pool that is not there any more.
    let config = |uid: &str| {
        event(json!({"metadata": {"name": INFRA, "ownerReferences": [{
            "apiVersion": format!("{PREFIX}/v1"), "kind": "MachineConfigPool", "name": "infra",
            "uid": uid}]}}))
    };
    state.take(Input::Config(config("uid-before")), &mut cluster);
    let node = event(json!({"metadata": {"name": "a", "uid": "a",
        "labels": {"node-role.kubernetes.io/worker": ""},
        "annotations": {format!("{PREFIX}/firstPivotConfig"): INFRA}}}));
    state.take(Input::Node(Box::new(node)), &mut cluster);
    assert!(cluster.strays.is_empty());
    let touched = state.take(Input::Config(config("uid-infra")), &mut cluster);
    assert_eq!(cluster.strays.get("a").unwrap().booted, "infra");
    assert!(touched.pools.contains("worker"), "{touched:?}");
}

#[test]
fn while_openshifts_daemon_is_there_its_operator_rolls_out_and_nodes_have_what_they_say() {
    let (mut state, mut cluster) = (State::new(Metrics::new(), true), cluster());
    cluster.by_tread = true;
    let node = event(json!({"metadata": {"name": "n", "uid": "n",
        "labels": {"node-role.kubernetes.io/worker": ""},
        "annotations": {format!("{PREFIX}/currentConfig"): "rendered-b"}}}));
    state.take(Input::Node(Box::new(node)), &mut cluster);
    let update = event(json!({"metadata": {"name": "n", "ownerReferences": [
            {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "n"}]},
        "spec": {"pool": "worker"},
        "status": {"current": {"name": "rendered-a", "digest": "d"}}}));
    state.take(Input::Update(Box::new(update)), &mut cluster);
    for (is_there, has) in [(false, "rendered-a"), (true, "rendered-b"), (false, "rendered-a")] {
        let touched = state.take(Input::OperatorsDaemon(is_there), &mut cluster);
        assert_eq!(touched, Touched::everything());
        let current = cluster.members.get("n").unwrap().node.current.as_deref();
        assert_eq!((current, cluster.by_tread), (Some(has), !is_there));
    }
    let touched = state.take(Input::OperatorsDaemon(false), &mut cluster);
    assert_eq!(touched, Touched::nothing(), "it is so already");
}

#[test]
fn nodes_that_plans_name_are_forgotten_when_all_nodes_are_listed() {
    let (mut state, mut cluster) = (State::new(Metrics::new(), false), cluster());
    let plan = json!({"metadata": {"name": "p"},
        "spec": {"pool": "worker",
            "cause": {"kind": "MachineConfig", "name": "a", "event": "Created"}},
        "status": {"transitions": [{"from": INFRA, "to": "b", "outcome": "", "summary": "",
            "nodes": {"count": 1, "strays": [{"node": "gone", "uid": "gone", "booted": "infra",
                "because": "", "ends": ""}]}}]}});
    let Event::Apply(plan) = event::<DisruptionPlan>(plan) else { panic!("it is there") };
    let named = strays(&plan);
    assert_eq!(named, [("gone".to_owned(), "gone".to_owned())]);
    state.take(Input::Plan(Box::new(Event::Apply(plan.clone()))), &mut cluster);
    assert!(!cluster.members.awaits_witness("gone", "gone"), "it is kept");
    for event in [Event::Init, Event::InitDone] {
        state.take(Input::Node(Box::new(event)), &mut cluster);
    }
    let before = Arc::clone(&cluster.members);
    state.take(Input::Plan(Box::new(Event::Apply(plan))), &mut cluster);
    assert!(Arc::ptr_eq(&before, &cluster.members), "nothing is kept of a node that is gone");
}

#[test]
fn a_pool_that_cannot_be_read_from_the_start_counts_as_there_and_no_node_as_a_worker() {
    let (mut state, mut cluster) = (State::new(Metrics::new(), false), Cluster::default());
    let pool = |name: &str, uid: &str, most: u64| {
        let role = format!("node-role.kubernetes.io/{name}");
        let object = json!({"metadata": {"name": name, "uid": uid},
            "spec": {"maxUnavailable": most, "nodeSelector": {"matchLabels": {role: ""}}}});
        (name.to_owned(), Arc::new(Parsed::Read(serde_json::from_value(object).unwrap())))
    };
    let all = |infra: (String, Object)| {
        Input::Pools(Arc::new([pool("worker", "worker", 1), infra].into_iter().collect()))
    };
    let place = |cluster: &Cluster| cluster.members.get("n").unwrap().place.clone();
    let node = event(json!({"metadata": {"name": "n", "uid": "n", "labels": {
        "node-role.kubernetes.io/infra": "", "node-role.kubernetes.io/worker": ""}}}));
    state.take(Input::Node(Box::new(node)), &mut cluster);
    // It is more than 32 bits hold.
    const TOO_MUCH: u64 = 4_294_967_296;
    let unplaced = Place::Unplaced(vec!["infra".to_owned()]);
    let touched = state.take(all(pool("infra", "1", TOO_MUCH)), &mut cluster);
    assert_eq!(place(&cluster), unplaced);
    assert!(touched.pools.contains("infra"), "{touched:?}");
    assert_eq!(cluster.pools["infra"].uid, "1", "its token stays");
    let why = cluster.pools["infra"].problems().join(" ");
    assert!(why.starts_with("spec.maxUnavailable: "), "{why}");
    let infra = Place::Pool("infra".to_owned());
    for (uid, most, expected) in [
        ("1", 2, &infra),
        // What it said before counts.
        ("1", TOO_MUCH, &infra),
        // That was another one.
        ("2", TOO_MUCH, &unplaced),
        ("2", 3, &infra),
    ] {
        state.take(all(pool("infra", uid, most)), &mut cluster);
        assert_eq!(&place(&cluster), expected, "{uid} {most}");
    }
}
