use super::*;
use crate::pools::{Members, Node, Pool, Wanted};
use crate::previews::{self, line, preview};
use serde_json::json;
use tread_kube::api::disruption_plan::{
    Cause, CauseEvent, DisruptionPlanStatus, PlanStep, Transition,
};

/// A pool with nodes that have these configs, rolled out by tread.
fn cluster(nodes: &[(&str, &str)]) -> Cluster {
    let pool = json!({"metadata": {"name": "worker"}, "spec": {
        "nodeSelector": {"matchLabels": {"role": "worker"}}, "configuration": {"name": "rendered-2"}}});
    let pool = Pool::of(&serde_json::from_value(pool).unwrap());
    let mut cluster = Cluster { by_tread: true, ..Cluster::default() };
    cluster.pools.insert("worker".to_owned(), Arc::new(pool));
    let mut members = Members::default();
    for (name, has) in nodes {
        let labels = [("role".to_owned(), "worker".to_owned())].into();
        let node = Node { labels, current: Some((*has).to_owned()), ..Node::default() };
        members.put(name, node, &cluster.pools);
    }
    cluster.members = Arc::new(members);
    cluster
}

fn wants(cluster: &mut Cluster, skips_drain: bool) {
    let wanted = Wanted { skips_drain, ..Wanted::default() };
    cluster.wanted = Arc::new([("worker".to_owned(), wanted)].into());
}

fn plan(effect: Effect, steps: &[&str]) -> Described {
    let steps = steps.iter().map(|it| PlanStep { r#do: (*it).to_owned(), unit: None }.into());
    let from = "rendered-1".to_owned();
    let summary = match effect {
        Effect::Refuse => "refuse".to_owned(),
        effect if effect >= Effect::Drain => format!("drain + {effect}"),
        effect => effect.to_string(),
    };
    let way = Transition { from, summary, steps: steps.collect(), ..Transition::default() };
    Described {
        name: "plan".to_owned(),
        pool: "worker".to_owned(),
        cause: Cause::default(),
        effect,
        status: DisruptionPlanStatus { transitions: vec![way], ..Default::default() },
        happens: Vec::new(),
        reasons: Vec::new(),
        left_out: BTreeSet::new(),
    }
}

fn noted(cluster: &Cluster, effect: Effect, steps: &[&str]) -> Option<(i64, String)> {
    let mut plan = plan(effect, steps);
    note_undrained(&mut plan, cluster);
    plan.status.drain_skipped.map(|it| (it.nodes, it.why))
}

const DRAINS: &[&str] = &["drain", "write", "reboot", "uncordon"];

#[test]
fn a_plan_says_that_the_only_node_is_not_drained() {
    let one = cluster(&[("a", "rendered-1")]);
    let why = "no other node takes the pods".to_owned();
    assert_eq!(noted(&one, Effect::Reboot, DRAINS), Some((1, why)));
    assert_eq!(
        noted(&one, Effect::Reload, &["write", "reload"]),
        None,
        "nothing is drained anyway"
    );
    assert_eq!(noted(&one, Effect::Refuse, DRAINS), None, "nothing happens");
    assert_eq!(
        lines(&one, ["worker"]),
        ["tread: pool worker: 1 node is not drained: no other node takes the pods"]
    );
    let updated = cluster(&[("a", "rendered-2")]);
    assert_eq!(noted(&updated, Effect::Reboot, DRAINS), None, "it is not on its way");
    let two = cluster(&[("a", "rendered-1"), ("b", "rendered-2")]);
    assert_eq!(noted(&two, Effect::Reboot, DRAINS), None, "the other one takes its pods");
    assert!(lines(&two, ["worker"]).is_empty());
    // OpenShift's operator drains it.
    let by_others = Cluster { by_tread: false, ..one };
    assert_eq!(noted(&by_others, Effect::Reboot, DRAINS), None);
    assert!(lines(&by_others, ["worker"]).is_empty());
}

#[test]
fn the_effect_of_a_plan_has_no_drain_where_none_of_its_nodes_is_drained() {
    let effect = |cluster: &Cluster, effect: Effect, steps: &[&str]| {
        let mut plan = plan(effect, steps);
        note_undrained(&mut plan, cluster);
        let effect = plan.status.effect.clone().unwrap();
        // However often it is told, and the steps stay what the digest covers.
        note_undrained(&mut plan, cluster);
        assert_eq!(plan.status.effect.as_ref(), Some(&effect));
        assert_eq!(plan.status.transitions[0].steps.len(), steps.len());
        effect
    };
    let mut one = cluster(&[("a", "rendered-1")]);
    assert_eq!(effect(&one, Effect::Reboot, DRAINS), "reboot, not drained");
    assert_eq!(effect(&one, Effect::Reload, &["write", "reload"]), "reload");
    assert_eq!(effect(&one, Effect::Refuse, DRAINS), "refuse");
    let two = cluster(&[("a", "rendered-1"), ("b", "rendered-2")]);
    assert_eq!(effect(&two, Effect::Reboot, DRAINS), "drain + reboot");
    one.by_tread = false;
    assert_eq!(effect(&one, Effect::Reboot, DRAINS), "drain + reboot");
    for (planned, said) in [
        ("drain", "none, not drained"),
        ("drain + restart crio.service", "restart crio.service, not drained"),
        ("reboot", "reboot"),
    ] {
        assert_eq!(without_drain(planned), said);
    }
}

#[test]
fn what_is_told_of_a_change_has_no_drain_where_no_node_of_its_pool_is_drained() {
    let cause = || Cause {
        kind: "MachineConfig".to_owned(),
        name: "99-a".to_owned(),
        event: CauseEvent::Changed,
    };
    let warned = |cluster: &Cluster, reboots: bool| {
        let mut all = vec![line(&preview("worker", 1, reboots, None), &cause()).unwrap()];
        reword(cluster, &mut all);
        let undrained = lines(cluster, all.iter().filter_map(Line::drains));
        [previews::lines(all), undrained].concat()
    };
    let one = cluster(&[("a", "rendered-1")]);
    let said = warned(&one, true);
    assert!(said[0].starts_with("tread: pool worker, 1 node: reboot, not drained,"), "{said:?}");
    assert_eq!(
        said[1..],
        ["tread: pool worker: 1 node is not drained: no other node takes the pods"]
    );
    assert!(warned(&one, false)[0].starts_with("tread: pool worker, 1 node: none"));
    // The change comes to each node of a pool, whatever it has.
    let mut two = cluster(&[("a", "rendered-1"), ("b", "rendered-2")]);
    let said = warned(&two, true);
    assert!(said[0].starts_with("tread: pool worker, 1 node: drain + reboot,"), "{said:?}");
    assert_eq!(said.len(), 1);
    wants(&mut two, true);
    let said = warned(&two, true);
    assert!(said[0].contains(": reboot, not drained,"), "{said:?}");
    assert!(said[1].contains("2 nodes are not drained: spec.drain.skip"), "{said:?}");
}

#[test]
fn a_plan_says_that_an_admin_wants_no_pod_to_be_moved() {
    let mut two = cluster(&[("a", "rendered-1"), ("b", "rendered-1")]);
    wants(&mut two, true);
    let why = "spec.drain.skip of Rollout worker says so".to_owned();
    assert_eq!(noted(&two, Effect::Reboot, DRAINS), Some((2, why)));
    assert_eq!(
        lines(&two, ["worker", "infra"]),
        ["tread: pool worker: 2 nodes are not drained: spec.drain.skip of Rollout worker says so"]
    );
    // It is said no longer than it is true.
    let mut wanted: BTreeMap<_, _> =
        [("worker".to_owned(), vec![Arc::new(plan(Effect::Reboot, DRAINS))])].into();
    note_in_all(&two, &mut wanted);
    assert!(wanted["worker"][0].status.drain_skipped.is_some());
    wants(&mut two, false);
    note_in_all(&two, &mut wanted);
    assert_eq!(wanted["worker"][0].status.drain_skipped, None);
}
