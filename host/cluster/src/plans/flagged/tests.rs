use super::*;
use crate::flags::Flags;
use crate::pools::{Configuration, Members, Node, Pool, Selects, Wanted};
use std::collections::BTreeSet;
use tread_kube::api::disruption_plan::{Cause, CauseEvent, DisruptionPlanStatus, Transition};
use tread_model::protocol::HeldBy;

const ROLE: &str = "node-role.kubernetes.io/worker";

/// A pool that the operator rolls out, with nodes that have these configs, all cordoned.
fn cluster(nodes: &[(&str, &str)]) -> Cluster {
    let selects = serde_json::json!({"matchLabels": {ROLE: ""}});
    let selects = Selects::of(Some(&serde_json::from_value(selects).unwrap()));
    let config =
        |name: &str| Some(Configuration { name: name.to_owned(), ..Configuration::default() });
    let pool = Pool {
        name: "worker".to_owned(),
        nodes: selects,
        target: config("rendered-2"),
        settled: config("rendered-1"),
        ..Pool::default()
    };
    let mut cluster = Cluster::default();
    cluster.pools.insert("worker".to_owned(), Arc::new(pool));
    let mut members = Members::default();
    for (name, has) in nodes {
        let node = Node {
            labels: [(ROLE.to_owned(), String::new())].into_iter().collect(),
            current: Some((*has).to_owned()),
            held: Some(HeldBy::Cordon),
            ..Node::default()
        };
        members.put(name, node, &cluster.pools);
    }
    cluster.members = Arc::new(members);
    cluster
}

fn plan(effect: Effect) -> Described {
    let transitions = vec![Transition { from: "rendered-1".to_owned(), ..Transition::default() }];
    let cause = Some("MachineConfig/50-a created".to_owned());
    let effect_words = Some("drain + reboot".to_owned());
    let status =
        DisruptionPlanStatus { transitions, cause, effect: effect_words, ..Default::default() };
    Described {
        name: "plan".to_owned(),
        pool: "worker".to_owned(),
        cause: Cause { event: CauseEvent::Created, ..Cause::default() },
        effect,
        status,
        happens: Vec::new(),
        reasons: Vec::new(),
        left_out: BTreeSet::new(),
    }
}

#[test]
fn a_plan_names_the_flagged_nodes_that_are_on_their_way_and_no_others() {
    let cluster = cluster(&[("a", "rendered-1"), ("b", "rendered-2"), ("c", "rendered-1")]);
    let mut one = plan(Effect::None);
    note_flagged(&mut one, &cluster);
    let names: Vec<&str> = one.status.flagged.iter().map(|it| it.node.as_str()).collect();
    assert_eq!((names, one.status.flagged_left_out), (vec!["a", "c"], 0));
    assert_eq!(one.status.flagged[0].why, "somebody cordoned it");
    let mut refused = plan(Effect::Refuse);
    note_flagged(&mut refused, &cluster);
    assert!(refused.status.flagged.is_empty(), "nothing happens to them");
    // Nobody has them any more.
    let mut wanted: BTreeMap<_, _> = [("worker".to_owned(), vec![Arc::new(one)])].into();
    let mut free = cluster;
    free.members = Arc::default();
    note_in_all(&free, &mut wanted);
    assert!(wanted["worker"][0].status.flagged.is_empty());
}

#[test]
fn of_many_flagged_nodes_the_first_are_named_and_the_others_counted() {
    let names: Vec<String> = (0..25).map(|at| format!("n{at:02}")).collect();
    let nodes: Vec<(&str, &str)> = names.iter().map(|it| (it.as_str(), "rendered-1")).collect();
    let mut plan = plan(Effect::Reboot);
    note_flagged(&mut plan, &cluster(&nodes));
    assert_eq!((plan.status.flagged.len(), plan.status.flagged_left_out), (NAMED, 15));
}

#[test]
fn whoever_takes_a_node_is_told_what_is_due_and_who_does_not_wait() {
    let mut cluster = cluster(&[("a", "rendered-1"), ("b", "rendered-2")]);
    cluster.flags = Arc::new(Flags::default());
    let plans = [Arc::new(plan(Effect::Reboot))];
    let (words, rolls_out) = due("a", &cluster, &plans).unwrap();
    assert_eq!(words, "in the rollout of pool worker (MachineConfig/50-a created: drain + reboot)");
    assert!(meanwhile(rolls_out).contains("does not wait"));
    assert_eq!(due("b", &cluster, &plans), None, "it has what it is to have");
    assert_eq!(due("nobody", &cluster, &plans), None);
    cluster.by_tread = true;
    let (_, rolls_out) = due("a", &cluster, &plans).unwrap();
    assert!(meanwhile(rolls_out).contains("leaves it alone"));
    // The cluster is on its way to another release.
    let release = crate::previews::Release { desired: "4.20.2".to_owned(), completed: None };
    cluster.release = Some(release);
    assert_eq!(due("b", &cluster, &plans).unwrap().0, "in the update of the cluster to 4.20.2");
    let wanted = Wanted { paused: true, ..Wanted::default() };
    cluster.wanted = Arc::new([("worker".to_owned(), wanted)].into());
    assert_eq!(due("a", &cluster, &plans), None, "nothing happens while its rollout is paused");
    cluster.wanted = Arc::default();
    let paused = Pool { paused: true, ..(*cluster.pools["worker"]).clone() };
    cluster.pools.insert("worker".to_owned(), Arc::new(paused));
    assert_eq!(due("a", &cluster, &plans), None, "nothing happens while its pool is paused");
}

#[test]
fn an_unpaused_pool_names_those_to_which_something_happens_then() {
    let cluster = cluster(&[("a", "rendered-1"), ("b", "rendered-2")]);
    let plans = [Arc::new(plan(Effect::Reboot))];
    let said = unpaused(&cluster, "worker", &plans).unwrap();
    assert!(said.ends_with("flagged for maintenance: a (somebody cordoned it)"), "{said}");
    assert_eq!(unpaused(&cluster, "worker", &[]), None);
    assert_eq!(lines(&cluster, ["worker"]).len(), 1);
    assert!(lines(&cluster, ["infra"]).is_empty());
}
