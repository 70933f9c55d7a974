use super::*;
use serde_json::json;

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
