use super::*;
use crate::pools::{Members, Node, Pool, Wanted};
use serde_json::json;
use std::collections::BTreeSet;
use tread_kube::api::disruption_plan::{Cause, DisruptionPlanStatus, Transition};
use tread_model::effect::Effect;
use tread_model::protocol::HeldBy;

fn asked(
    (group, resource): (&str, &str),
    operation: &str,
    object: &Value,
    before: &Value,
) -> Option<Taken> {
    let review = json!({"request": {"uid": "1", "operation": operation, "kind": {"kind": "K"},
        "namespace": "medik8s-leases", "name": object["metadata"]["name"],
        "resource": {"group": group, "resource": resource},
        "object": object, "oldObject": before}});
    taken(&Asked::read(review.to_string().as_bytes()).unwrap())
}

fn named(name: &str, spec: Value) -> Value {
    json!({"metadata": {"name": name}, "spec": spec})
}

#[test]
fn only_what_takes_a_node_anew_takes_it() {
    let node = |name: &str| Some(Taken::Node(name.to_owned()));
    let nothing = Some(Taken::Nothing);
    let cordoned = json!({"unschedulable": true});
    let mut ours = named("a", cordoned.clone());
    ours["metadata"]["annotations"] =
        json!({"tread.dev/cordoned-for": "00000000000000000000000000000007"});
    let nodes = |now: &Value, before: &Value| asked(("", "nodes"), "UPDATE", now, before);
    let (is, was) = (named("a", cordoned.clone()), named("a", json!({})));
    assert_eq!(nodes(&is, &was), node("a"));
    assert_eq!(nodes(&is, &is), nothing, "it was before");
    assert_eq!(nodes(&was, &is), nothing, "it is uncordoned");
    assert_eq!(nodes(&ours, &was), nothing, "by tread");

    let held = |holder: &str| named("node-a", json!({"holderIdentity": holder}));
    let leases = |operation: &str, now: &Value, before: &Value| {
        asked(("coordination.k8s.io", "leases"), operation, now, before)
    };
    assert_eq!(leases("CREATE", &held("x"), &Value::Null), node("a"));
    assert_eq!(leases("UPDATE", &held("x"), &held("y")), node("a"));
    assert_eq!(leases("UPDATE", &held("x"), &held("x")), nothing, "a renewal");
    assert_eq!(leases("CREATE", &held("tread/1"), &Value::Null), nothing);
    assert_eq!(leases("CREATE", &held(""), &Value::Null), nothing);
    let another = named("leader", json!({"holderIdentity": "x"}));
    assert_eq!(leases("CREATE", &another, &Value::Null), nothing, "of no node");

    let maintenance = named("m", json!({"nodeName": "a"}));
    let kind = (NODE_MAINTENANCE.group, NODE_MAINTENANCE.plural);
    assert_eq!(asked(kind, "CREATE", &maintenance, &Value::Null), node("a"));
    assert_eq!(asked(kind, "UPDATE", &maintenance, &maintenance), nothing);
}

#[test]
fn only_what_lets_changes_come_to_nodes_does_so() {
    let nothing = Some(Taken::Nothing);
    let pool = |paused: bool| named("worker", json!({"paused": paused}));
    let pools = |now: &Value, before: &Value| {
        asked((MACHINE_CONFIG_GROUP, "machineconfigpools"), "UPDATE", now, before)
    };
    let unpaused = Some(Taken::Unpaused("worker".to_owned()));
    assert_eq!(pools(&pool(false), &pool(true)), unpaused);
    assert_eq!(pools(&named("worker", json!({})), &pool(true)), unpaused);
    assert_eq!(pools(&pool(true), &pool(false)), nothing);
    assert_eq!(pools(&pool(false), &pool(false)), nothing);

    let rollouts = |now: &Value, before: &Value| asked((GROUP, "rollouts"), "UPDATE", now, before);
    assert_eq!(rollouts(&pool(false), &pool(true)), Some(Taken::Resumed("worker".to_owned())));
    assert_eq!(rollouts(&pool(true), &pool(false)), nothing);
    assert_eq!(rollouts(&pool(false), &named("worker", json!({"order": "ByAge"}))), nothing);

    let to = |version: &str| named("version", json!({"desiredUpdate": {"version": version}}));
    let updates = |now: &Value, before: &Value| {
        asked((CONFIG_GROUP, "clusterversions"), "UPDATE", now, before)
    };
    assert_eq!(updates(&to("4.20.2"), &to("4.20.1")), Some(Taken::Updated));
    assert_eq!(updates(&to("4.20.2"), &named("version", json!({}))), Some(Taken::Updated));
    assert_eq!(updates(&to("4.20.2"), &to("4.20.2")), nothing);
    assert_eq!(updates(&named("version", json!({})), &to("4.20.2")), nothing, "it is given up");
    let config = named("50-a", json!({}));
    let kind = (MACHINE_CONFIG_GROUP, "machineconfigs");
    assert_eq!(asked(kind, "UPDATE", &config, &config), None, "a change, which is planned");
}

#[test]
fn nothing_is_said_of_what_goes_on_while_the_other_pause_lasts() {
    let pool = |paused: bool| {
        let object = json!({"metadata": {"name": "worker"}, "spec": {"paused": paused,
            "nodeSelector": {"matchLabels": {"role": "worker"}}}});
        Arc::new(Pool::of(&serde_json::from_value(object).unwrap()))
    };
    let says = |taken: Taken, pool_paused: bool, rollout_paused: bool| {
        let mut cluster = Cluster { by_tread: true, ..Cluster::default() };
        cluster.pools.insert("worker".to_owned(), pool(pool_paused));
        let wanted = Wanted { paused: rollout_paused, ..Wanted::default() };
        cluster.wanted = Arc::new([("worker".to_owned(), wanted)].into());
        let node = Node {
            labels: [("role".to_owned(), "worker".to_owned())].into(),
            current: Some("rendered-1".to_owned()),
            held: Some(HeldBy::Cordon),
            ..Node::default()
        };
        let mut members = Members::default();
        members.put("a", node, &cluster.pools);
        cluster.members = Arc::new(members);
        let way = Transition { from: "rendered-1".to_owned(), ..Transition::default() };
        let plan = Described {
            name: "plan".to_owned(),
            pool: "worker".to_owned(),
            cause: Cause::default(),
            effect: Effect::Reboot,
            status: DisruptionPlanStatus { transitions: vec![way], ..Default::default() },
            happens: Vec::new(),
            reasons: Vec::new(),
            left_out: BTreeSet::new(),
        };
        super::says(&taken, &cluster, &[Arc::new(plan)]).len()
    };
    let (unpaused, resumed) =
        (Taken::Unpaused("worker".to_owned()), Taken::Resumed("worker".to_owned()));
    assert_eq!(says(unpaused.clone(), true, false), 1);
    assert_eq!(says(unpaused, true, true), 0);
    assert_eq!(says(resumed.clone(), false, true), 1);
    assert_eq!(says(resumed, true, true), 0);
}
