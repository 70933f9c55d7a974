use super::*;
use crate::pools::{ConfigMeta, Node, Pool, Wanted};
use crate::previews::{Edit, Mirror, Release, describe, preview};
use k8s_openapi::jiff::Timestamp;
use serde_json::json;
use std::collections::BTreeMap;
use tread_kube::api::MachineConfigPool;
use tread_kube::api::machine_config::ROLE_LABEL;
use tread_model::digest::Digest;

/// A pool `worker`, of `00` and `50`, rendered and settled at second 100, with
/// one node.
fn settled() -> Cluster {
    let mut cluster = Cluster::default();
    let sources = json!([{"name": "00"}, {"name": "50"}]);
    put_pool(
        &mut cluster,
        json!({
            "spec": {"configuration": {"name": "rendered-worker-1", "source": sources}},
            "status": {"configuration": {"name": "rendered-worker-1", "source": sources}},
        }),
    );
    put_config(&mut cluster, "00", 10);
    put_config(&mut cluster, "50", 20);
    put_config(&mut cluster, "rendered-worker-1", 100);
    put_node(&mut cluster, "a", "rendered-worker-1");
    cluster
}

fn put_pool(cluster: &mut Cluster, mut object: serde_json::Value) {
    object["metadata"] = json!({"name": "worker", "uid": "1"});
    object["spec"]["machineConfigSelector"] = json!({"matchLabels": {ROLE_LABEL: "worker"}});
    object["spec"]["nodeSelector"] = json!({"matchLabels": {"worker": ""}});
    let object: MachineConfigPool = serde_json::from_value(object).unwrap();
    cluster.pools.insert("worker".to_owned(), Arc::new(Pool::of(&object)));
}

fn put_config(cluster: &mut Cluster, name: &str, modified: i64) {
    let config = ConfigMeta {
        version: modified.to_string().into(),
        // A rendered one has none.
        labels: match name.starts_with("rendered-") {
            true => [].into(),
            false => [(ROLE_LABEL.to_owned(), "worker".to_owned())].into(),
        },
        created: modified,
        modified,
        ..ConfigMeta::default()
    };
    cluster.configs.insert(name.to_owned(), Arc::new(config));
}

fn put_node(cluster: &mut Cluster, name: &str, current: &str) {
    let node = Node {
        labels: [("worker".to_owned(), String::new())].into(),
        current: Some(current.to_owned()),
        ..Node::default()
    };
    Arc::make_mut(&mut cluster.members).put(name, node, &cluster.pools);
}

fn causes_of(cluster: &Cluster) -> Vec<String> {
    let work = work(cluster, "worker");
    work.into_iter().flat_map(|work| work.parts).map(|part| part.cause.to_string()).collect()
}

#[test]
fn nothing_is_pending_where_nodes_have_what_they_are_to_have() {
    assert!(work(&settled(), "worker").is_none());
    assert!(work(&settled(), "unknown").is_none());
}

#[test]
fn what_is_new_changed_or_gone_since_the_last_rollout_is_a_cause() {
    let mut cluster = settled();
    put_config(&mut cluster, "60", 150);
    put_config(&mut cluster, "50", 160);
    cluster.configs.remove("00");
    assert_eq!(
        causes_of(&cluster),
        ["MachineConfig/50 changed", "MachineConfig/60 created", "MachineConfig/00 deleted"]
    );
    let work = work(&cluster, "worker").unwrap();
    assert_eq!(work.to_name, "");
    assert_eq!(work.to.configs.iter().map(Piece::name).collect::<Vec<_>>(), ["50", "60"]);
    assert_eq!(work.to.os_image_of, Some(("rendered-worker-1".into(), "100".into())));
    assert_eq!(work.ways.len(), 1);
}

#[test]
fn what_the_operator_rendered_counts_until_somebody_changes_what_it_is_made_of() {
    let mut cluster = settled();
    put_config(&mut cluster, "60", 150);
    put_config(&mut cluster, "rendered-worker-2", 200);
    let now = json!([{"name": "00"}, {"name": "50"}, {"name": "60"}]);
    let before = json!([{"name": "00"}, {"name": "50"}]);
    put_pool(
        &mut cluster,
        json!({
            "spec": {"configuration": {"name": "rendered-worker-2", "source": now}},
            "status": {"configuration": {"name": "rendered-worker-1", "source": before}},
        }),
    );
    let on_the_way = work(&cluster, "worker").unwrap();
    assert_eq!(on_the_way.to_name, "rendered-worker-2");
    assert_eq!(on_the_way.to.configs.len(), 1);
    assert_eq!(causes_of(&cluster), ["MachineConfig/60 created"]);
    put_config(&mut cluster, "70", 250);
    assert_eq!(work(&cluster, "worker").unwrap().to_name, "");
    assert_eq!(causes_of(&cluster), ["MachineConfig/60 created", "MachineConfig/70 created"]);
}

#[test]
fn mirrors_that_are_newer_than_what_is_rendered_are_rendered_anew() {
    let mut cluster = settled();
    put_config(&mut cluster, "99-worker-generated-registries", 90);
    let mirror =
        |created, modified| Arc::new(Mirror { created, modified, body: Arc::from(&b"{}"[..]) });
    cluster.mirrors.insert(("ImageDigestMirrorSet", "old".to_owned()), mirror(50, 60));
    cluster.mirrors.insert(("ImageDigestMirrorSet", "touched".to_owned()), mirror(50, 150));
    cluster.mirrors.insert(("ImageTagMirrorSet", "new".to_owned()), mirror(150, 150));
    cluster.gone_mirrors.insert(("ImageTagMirrorSet", "gone".to_owned()), 150);
    cluster.gone_mirrors.insert(("ImageTagMirrorSet", "long-gone".to_owned()), 50);
    assert_eq!(
        causes_of(&cluster),
        [
            "ImageDigestMirrorSet/touched changed",
            "ImageTagMirrorSet/new created",
            "ImageTagMirrorSet/gone deleted",
        ]
    );
    let to = || work(&cluster, "worker").unwrap().to.configs;
    assert_eq!(
        to().iter().map(Piece::name).collect::<Vec<_>>(),
        ["00", "50", "99-worker-generated-registries"]
    );
    let last = to().pop();
    let Some(Piece::Generated(anew)) = last else { panic!("{last:?}") };
    assert_eq!((anew.mirrors.len(), anew.before.is_some()), (3, true));
    // The operator wrote it after the mirrors: it counts as it is.
    put_config(&mut cluster, "99-worker-generated-registries", 160);
    let last = work(&cluster, "worker").unwrap().to.configs.pop();
    assert!(matches!(last, Some(Piece::Stored((_, version))) if &*version == "160"));
}

#[test]
fn mirrors_are_rendered_where_the_operator_puts_them_and_over_its_templates() {
    let mut cluster = settled();
    put_config(&mut cluster, "99-worker-zzz", 20);
    let template = ConfigMeta {
        generated_by: Some("1".to_owned()),
        ..ConfigMeta::clone(&cluster.configs["00"])
    };
    cluster.configs.insert("00".to_owned(), Arc::new(template));
    let key = ("ImageTagMirrorSet", "x".to_owned());
    let after = cluster.with(&Edit::Mirror(key, Arc::from(&b"{}"[..])));
    let to = work(&after, "worker").unwrap().to.configs;
    let names: Vec<&str> = to.iter().map(Piece::name).collect();
    assert_eq!(names, ["00", "50", "99-worker-generated-registries", "99-worker-zzz"]);
    let Piece::Generated(anew) = &to[2] else { panic!("{to:?}") };
    let templates: Vec<&str> = anew.templates.iter().map(Piece::name).collect();
    assert_eq!((templates, &anew.before), (vec!["00"], &None));
}

#[test]
fn an_update_of_the_cluster_is_the_cause_of_the_templates_that_it_brings() {
    let mut cluster = settled();
    put_config(&mut cluster, "00", 150);
    let template = ConfigMeta {
        generated_by: Some("2".to_owned()),
        ..ConfigMeta::clone(&cluster.configs["00"])
    };
    cluster.configs.insert("00".to_owned(), Arc::new(template));
    let release = |desired: &str| {
        Some(Release { desired: desired.to_owned(), completed: Some("4.20.0".to_owned()) })
    };
    cluster.release = release("4.20.0");
    assert_eq!(causes_of(&cluster), ["MachineConfig/00 changed"]);
    cluster.release = release("4.21.0");
    assert_eq!(causes_of(&cluster), ["ClusterVersion/version changed"]);
}

#[test]
fn a_pool_that_goes_on_after_a_pause_is_a_cause_by_itself() {
    let mut cluster = settled();
    cluster.unpaused.insert("worker".to_owned());
    put_config(&mut cluster, "60", 150);
    assert_eq!(
        causes_of(&cluster),
        ["MachineConfig/60 created", "MachineConfigPool/worker unpaused"]
    );
}

#[test]
fn nodes_go_from_what_each_of_them_has() {
    let mut cluster = settled();
    put_config(&mut cluster, "rendered-worker-0", 50);
    put_node(&mut cluster, "b", "rendered-worker-0");
    put_node(&mut cluster, "c", "rendered-worker-gone");
    let rolling = work(&cluster, "worker").unwrap();
    let ways: Vec<(&str, i64, bool)> = rolling
        .ways
        .iter()
        .map(|way| (way.from_name.as_str(), way.nodes.count, way.from.is_some()))
        .collect();
    assert_eq!(ways, [("rendered-worker-0", 1, true), ("rendered-worker-gone", 1, false)]);
    assert_eq!(causes_of(&cluster), ["MachineConfigPool/worker rollout"]);
    put_config(&mut cluster, "60", 150);
    assert_eq!(work(&cluster, "worker").unwrap().ways.len(), 3);
}

#[test]
fn a_change_that_is_about_to_be_made_counts_as_made() {
    let cluster = settled();
    let change = Edit::MachineConfig {
        name: "60".to_owned(),
        labels: [(ROLE_LABEL.to_owned(), "worker".to_owned())].into(),
        body: Arc::from(&b"{}"[..]),
    };
    let after = cluster.with(&change);
    assert_eq!(causes_of(&after), ["MachineConfig/60 created"]);
    let work = work(&after, "worker").unwrap();
    assert!(
        matches!(work.to.configs.last(), Some(piece @ Piece::Given(_)) if piece.name() == "60")
    );
    let after = cluster.with(&Edit::NoMachineConfig("50".to_owned()));
    assert_eq!(causes_of(&after), ["MachineConfig/50 deleted"]);
    let key = ("ImageTagMirrorSet", "x".to_owned());
    let after = cluster.with(&Edit::Mirror(key.clone(), Arc::from(&b"{}"[..])));
    assert_eq!(causes_of(&after), ["ImageTagMirrorSet/x created"]);
    assert_eq!(causes_of(&after.with(&Edit::NoMirror(key))), ["ImageTagMirrorSet/x deleted"]);
    let other = Edit::MachineConfig {
        name: "60".to_owned(),
        labels: [(ROLE_LABEL.to_owned(), "master".to_owned())].into(),
        body: Arc::from(&b"{}"[..]),
    };
    assert_eq!(causes_of(&cluster.with(&other)), [""; 0]);
}

/// The pool of [`settled`], which does not say what was rendered for it.
fn without_sources() -> Cluster {
    let mut cluster = settled();
    let configuration = json!({"configuration": {"name": "rendered-worker-1"}});
    put_pool(&mut cluster, json!({"spec": configuration.clone(), "status": configuration}));
    cluster
}

#[test]
fn what_goes_is_a_cause_where_a_pool_does_not_say_what_was_rendered_for_it() {
    let gone = without_sources().with(&Edit::NoMachineConfig("50".to_owned()));
    let moved = without_sources().with(&Edit::MachineConfig {
        name: "50".to_owned(),
        labels: [(ROLE_LABEL.to_owned(), "master".to_owned())].into(),
        body: Arc::from(&b"{}"[..]),
    });
    for after in [gone, moved] {
        assert_eq!(causes_of(&after), ["MachineConfig/50 deleted"]);
        let work = work(&after, "worker").unwrap();
        assert_eq!(work.to.configs.iter().map(Piece::name).collect::<Vec<_>>(), ["00"]);
        assert_eq!(work.ways.len(), 1);
        let doubt = work.doubt.unwrap();
        assert!(doubt.contains("cannot be told what rendered-worker-1 was made of"), "{doubt}");
        // The name of what is there says nothing of what is in it.
        assert_eq!(work.to_name, "");
    }
    // One that comes back is not gone.
    let mut back = without_sources();
    let before = back.configs.remove("50");
    back.note_lost("50", before.as_deref(), 150);
    assert_eq!(causes_of(&back), ["MachineConfig/50 deleted"]);
    back.configs.insert("50".to_owned(), before.unwrap());
    back.note_lost("50", None, 160);
    assert_eq!(causes_of(&back), ["MachineConfigPool/worker rollout"]);
    // What went before the last rollout is forgotten.
    let at: BTreeMap<String, i64> = [("60".to_owned(), 50)].into();
    Arc::make_mut(&mut back.lost).insert("worker".to_owned(), at);
    back.forget_lost();
    assert!(back.lost.is_empty());
}

#[test]
fn what_is_taken_back_before_it_is_rolled_out_is_a_cause_too() {
    let mut cluster = settled();
    put_config(&mut cluster, "60", 150);
    let after = cluster.with(&Edit::NoMachineConfig("60".to_owned()));
    put_node(&mut cluster, "b", "rendered-worker-2");
    put_config(&mut cluster, "rendered-worker-2", 160);
    assert!(work(&after, "worker").is_none(), "nothing has it yet");
    let now = json!([{"name": "00"}, {"name": "50"}, {"name": "60"}]);
    let before = json!([{"name": "00"}, {"name": "50"}]);
    put_pool(
        &mut cluster,
        json!({
            "spec": {"configuration": {"name": "rendered-worker-2", "source": now}},
            "status": {"configuration": {"name": "rendered-worker-1", "source": before}},
        }),
    );
    let after = cluster.with(&Edit::NoMachineConfig("60".to_owned()));
    assert_eq!(causes_of(&after), ["MachineConfig/60 deleted"]);
}

#[test]
fn nodes_that_say_nothing_are_one_way_with_those_that_have_what_the_pool_had() {
    let mut cluster = settled();
    put_config(&mut cluster, "rendered-worker-2", 200);
    let sources = json!([{"name": "00"}, {"name": "50"}]);
    put_pool(
        &mut cluster,
        json!({
            "spec": {"configuration": {"name": "rendered-worker-2", "source": sources}},
            "status": {"configuration": {"name": "rendered-worker-1", "source": sources}},
        }),
    );
    let put_silent = |cluster: &mut Cluster, name: &str| {
        let labels = [("worker".to_owned(), String::new())].into();
        let node = Node { labels, ..Node::default() };
        Arc::make_mut(&mut cluster.members).put(name, node, &cluster.pools);
    };
    put_silent(&mut cluster, "0");
    put_silent(&mut cluster, "b");
    let rolling = work(&cluster, "worker").unwrap();
    let [way] = rolling.ways.as_slice() else { panic!("{:?}", rolling.ways) };
    assert_eq!((way.from_name.as_str(), way.nodes.count), ("rendered-worker-1", 3));
    assert_eq!(way.nodes.first, ["0", "a", "b"]);
    // The next look says the same of them.
    let mut planned = preview("worker", 0, true, None);
    planned.ways[0].way = way.clone();
    let mut plan = describe(&planned, Digest::of(b""), Timestamp::now()).remove(0);
    assert_eq!(plan.status.nodes, Some(3));
    put_silent(&mut cluster, "c");
    plan.moved(&work(&cluster, "worker").unwrap().ways);
    let [gone] = plan.status.transitions.as_slice() else { panic!("{:?}", plan.status) };
    assert_eq!((plan.status.nodes, gone.nodes.count), (Some(4), 4));
    assert_eq!(gone.nodes.first, ["0", "a", "b", "c"]);
}

#[test]
fn a_plan_of_a_paused_rollout_says_that_it_waits() {
    let mut cluster = settled();
    put_config(&mut cluster, "60", 150);
    let paused = Wanted { paused: true, ..Wanted::default() };
    cluster.wanted = Arc::new([("worker".to_owned(), paused)].into());
    assert!(!work(&cluster, "worker").unwrap().rollout_paused, "the operator does not wait");
    cluster.by_tread = true;
    let waits = work(&cluster, "worker").unwrap();
    assert!(waits.rollout_paused);
    let pending = |paused: bool| {
        let mut planned = preview("worker", 1, true, None);
        planned.work.to_name = "rendered-worker-2".to_owned();
        planned.work.rollout_paused = paused;
        let plan = describe(&planned, Digest::of(b""), Timestamp::now()).remove(0);
        let mut all = plan.status.conditions.into_iter();
        let found = all.find(|it| it.type_ == "Pending").unwrap();
        (found.status, found.reason)
    };
    let said = |reason: &str| ("True".to_owned(), reason.to_owned());
    assert_eq!(pending(waits.rollout_paused), said("RolloutPaused"));
    assert_eq!(pending(false), said("NotRolledOut"));
}
