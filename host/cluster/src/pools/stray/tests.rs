use super::*;
use crate::pools::{ConfigMeta, Node};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};
use tread_kube::api::MachineConfigPool;

const INFRA: &str = "rendered-infra-00000000000000000000000000000001";
const NEWER: &str = "rendered-infra-00000000000000000000000000000002";
const WORKER: &str = "rendered-worker-00000000000000000000000000000003";
const PREFIX: &str = "machineconfiguration.openshift.io/";
/// When tread began to watch.
const BEGUN: i64 = 1_000_000;

fn role(name: &str) -> String {
    format!("node-role.kubernetes.io/{name}")
}

fn pool(name: &str, selector: &Value) -> (String, Arc<Pool>) {
    let object: MachineConfigPool = serde_json::from_value(json!({
        "metadata": {"name": name, "uid": format!("uid-{name}")},
        "spec": {"nodeSelector": selector},
    }))
    .unwrap();
    (name.to_owned(), Arc::new(Pool::of(&object)))
}

/// A rendered config of the pool of this UID, as the API server has it.
fn rendered(pool: &str, uid: &str) -> Arc<ConfigMeta> {
    let mut metadata: ObjectMeta = serde_json::from_value(json!({"ownerReferences": [
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "worker", "uid": "other"},
        {"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool",
         "name": pool, "uid": uid, "controller": true},
    ]}))
    .unwrap();
    Arc::new(ConfigMeta::of(&mut metadata))
}

struct Bed {
    pools: Pools,
    configs: Configs,
    members: Members,
    strays: Strays,
}

impl Bed {
    fn new() -> Bed {
        let pools = ["gpu", "infra", "master", "worker"]
            .iter()
            .map(|name| pool(name, &json!({"matchLabels": {role(name): ""}})))
            .collect();
        let configs = [(INFRA, "infra"), (NEWER, "infra"), (WORKER, "worker")]
            .map(|(config, pool)| (config.to_owned(), rendered(pool, &format!("uid-{pool}"))));
        Bed {
            pools,
            configs: configs.into_iter().collect(),
            members: Members::since(BEGUN),
            strays: Strays::default(),
        }
    }

    /// A node as the API server has it, registered at this second.
    fn put(&mut self, created: i64, roles: &[&str], annotations: &[(&str, &str)]) {
        let at = k8s_openapi::jiff::Timestamp::from_second(created).unwrap();
        let labels: Labels = roles.iter().map(|name| (role(name), String::new())).collect();
        let annotations: Labels = annotations
            .iter()
            .map(|(key, value)| (format!("{PREFIX}{key}"), (*value).to_owned()))
            .collect();
        let mut metadata: ObjectMeta = serde_json::from_value(json!({
            "name": "a", "uid": format!("uid-{created}"), "creationTimestamp": at.to_string(),
            "labels": labels, "annotations": annotations,
        }))
        .unwrap();
        self.members.put("a", Node::of(&mut metadata), &self.pools);
        self.look();
    }

    fn look(&mut self) {
        self.strays.look_at_all(&self.members, (&self.configs, &self.pools));
    }

    fn stray(&self) -> Option<&Stray> {
        self.strays.get("a").map(|it| &**it)
    }
}

/// As machine-config-daemon of 4.18 writes them.
const V4_18: &[(&str, &str)] =
    &[("currentConfig", INFRA), ("desiredConfig", INFRA), ("state", "Done")];
/// As that of 4.22.
const V4_22: &[(&str, &str)] = &[
    ("currentConfig", INFRA),
    ("desiredConfig", INFRA),
    ("firstPivotConfig", INFRA),
    ("state", "Done"),
];

#[test]
fn a_new_node_that_booted_into_a_pool_and_counts_as_a_worker_strays_by_either_annotation() {
    for annotations in [V4_18, V4_22] {
        let mut bed = Bed::new();
        bed.put(BEGUN + 60, &["worker"], &[]);
        assert_eq!(bed.stray(), None, "it does not say yet what it has");
        bed.put(BEGUN + 60, &["worker"], annotations);
        let stray = bed.stray().unwrap();
        assert_eq!((&*stray.booted, &*stray.counts, stray.guessed), ("infra", "worker", false));
        assert_eq!(stray.ends(), "kubectl label node a --overwrite node-role.kubernetes.io/infra=");
        // The label ends it, and so does the worker config.
        bed.put(BEGUN + 60, &["infra", "worker"], annotations);
        assert_eq!(bed.stray(), None);
    }
}

#[test]
fn one_that_has_the_config_of_the_pool_that_it_counts_in_does_not_stray_any_more() {
    for annotations in [V4_18, V4_22] {
        let mut bed = Bed::new();
        bed.put(BEGUN + 60, &["worker"], annotations);
        let mut moved = annotations.to_vec();
        moved[0] = ("currentConfig", WORKER);
        bed.put(BEGUN + 60, &["worker"], &moved);
        assert_eq!(bed.stray(), None);
    }
}

#[test]
fn one_that_was_moved_on_purpose_does_not_stray() {
    for annotations in [V4_18, V4_22] {
        // It counted there before somebody took the label away.
        let mut bed = Bed::new();
        bed.put(BEGUN + 60, &["infra", "worker"], annotations);
        bed.put(BEGUN + 60, &["worker"], annotations);
        assert_eq!(bed.stray(), None);
        // Another node of the name is another node.
        bed.put(BEGUN + 90, &["worker"], annotations);
        assert!(bed.stray().is_some());
        // It booted as a worker, and got another pool's label.
        let worker: Vec<(&str, &str)> = annotations
            .iter()
            .map(|(key, it)| (*key, if *it == INFRA { WORKER } else { it }))
            .collect();
        bed.put(BEGUN + 120, &["infra", "worker"], &worker);
        assert_eq!(bed.stray(), None);
    }
}

#[test]
fn a_node_that_was_there_before_anybody_watched_may_have_been_moved_and_does_not_stray() {
    for annotations in [V4_18, V4_22] {
        let mut bed = Bed::new();
        let unseen = |bed: &Bed| {
            let member = bed.members.get("a").unwrap();
            super::unseen("a", member, &bed.configs, &bed.pools)
        };
        // Somebody may have taken its label away before that.
        bed.put(BEGUN - 7 * 24 * 3600, &["worker"], annotations);
        assert_eq!(bed.stray(), None);
        assert_eq!(unseen(&bed).unwrap().booted, "infra");
        bed.put(BEGUN - 7 * 24 * 3600, &["infra", "worker"], annotations);
        bed.put(BEGUN - 7 * 24 * 3600, &["worker"], annotations);
        assert_eq!((bed.stray(), unseen(&bed)), (None, None), "it was seen to be moved");
        // It registered minutes before.
        bed.put(BEGUN - 600, &["worker"], annotations);
        assert!(bed.stray().is_some());
        assert_eq!(unseen(&bed), None);
    }
}

#[test]
fn one_that_a_plan_names_was_seen_since_it_registered_whichever_comes_first() {
    let long_ago = BEGUN - 7 * 24 * 3600;
    let uid = format!("uid-{long_ago}");
    let mut bed = Bed::new();
    bed.put(long_ago, &["worker"], V4_18);
    assert_eq!(bed.stray(), None);
    bed.members.witness("a", "another");
    bed.look();
    assert_eq!(bed.stray(), None);
    bed.members.witness("a", &uid);
    bed.look();
    assert!(bed.stray().is_some());
    let mut bed = Bed::new();
    bed.members.witness("a", &uid);
    bed.put(long_ago, &["worker"], V4_18);
    assert!(bed.stray().is_some());
}

#[test]
fn one_that_got_another_config_since_it_booted_belonged_where_that_came_from() {
    let mut bed = Bed::new();
    let mut since = V4_22.to_vec();
    since[0] = ("currentConfig", NEWER);
    bed.put(BEGUN + 60, &["worker"], &since);
    assert_eq!(bed.stray(), None);
}

#[test]
fn one_that_the_operator_labelled_was_moved_by_whoever_took_the_label_away() {
    let mut labelled = V4_22.to_vec();
    labelled.push(("customPoolLabelsApplied", ""));
    let mut bed = Bed::new();
    bed.put(BEGUN + 30, &["worker"], &labelled);
    assert_eq!(bed.stray(), None);
    // Unless the labels that the operator could make do not do.
    let selector = json!({"matchLabels": {role("infra"): ""},
        "matchExpressions": [{"key": "site", "operator": "In", "values": ["a", "b"]}]});
    bed.pools.extend([pool("infra", &selector)]);
    bed.put(BEGUN + 60, &["infra", "worker"], &labelled);
    let stray = bed.stray().unwrap();
    assert_eq!(stray.labels, None);
    assert!(stray.ends().starts_with("no labels are sure to: give node a those that"));
}

#[test]
fn the_owner_counts_by_kind_and_uid_and_a_config_that_is_gone_is_a_guess() {
    let mut bed = Bed::new();
    bed.put(BEGUN + 60, &["worker"], V4_22);
    assert!(!bed.stray().unwrap().guessed);
    bed.configs.remove(INFRA);
    bed.look();
    let stray = bed.stray().unwrap();
    assert!(stray.guessed && stray.says().contains("by the name of a config that is gone"));
    // The pool of that name is another one by now.
    bed.configs.insert(INFRA.to_owned(), rendered("infra", "uid-before"));
    bed.look();
    assert_eq!(bed.stray(), None);
    // What looks like a rendered config and names no pool that is there.
    for name in ["rendered-infra-1", "rendered-edge-00000000000000000000000000000001", "infra"] {
        bed.put(BEGUN + 90, &["worker"], &[("currentConfig", name)]);
        assert_eq!(bed.stray(), None, "{name}");
    }
}

#[test]
fn nobody_strays_who_counts_in_no_pool() {
    let mut bed = Bed::new();
    for roles in [&[][..], &["gpu", "infra"]] {
        bed.put(BEGUN + 60, roles, V4_22);
        assert_eq!(bed.stray(), None, "{roles:?}");
    }
    bed.put(BEGUN + 60, &["worker"], V4_22);
    assert!(bed.stray().is_some());
    let unreadable = pool("edge", &json!({"matchLabels": {"no key": ""}}));
    let selects = unreadable.1.nodes.clone();
    bed.pools.extend([unreadable]);
    bed.members.sort_again(&bed.pools, &[selects]);
    bed.look();
    assert_eq!(bed.stray(), None, "OpenShift moves nobody");
}

#[test]
fn labels_of_another_pool_of_its_own_name_go_with_the_command() {
    let mut bed = Bed::new();
    bed.put(BEGUN + 60, &["gpu", "worker"], V4_22);
    let stray = bed.stray().unwrap();
    assert_eq!(stray.counts, "gpu");
    assert_eq!(
        stray.ends(),
        "kubectl label node a --overwrite node-role.kubernetes.io/infra= \
         node-role.kubernetes.io/gpu-"
    );
    // Master beats all: no label helps.
    bed.put(BEGUN + 60, &["master"], V4_22);
    assert_eq!(bed.stray().map(|it| (&*it.counts, it.labels.clone())), Some(("master", None)));
}

#[test]
fn the_command_takes_no_label_away_that_the_kubelet_gave() {
    let mut bed = Bed::new();
    let both = json!({"matchLabels": {role("gpu"): "", role("worker"): ""}});
    bed.pools.extend([pool("gpu", &both)]);
    bed.put(BEGUN + 60, &["gpu", "worker"], V4_22);
    assert_eq!(
        bed.stray().unwrap().ends(),
        "kubectl label node a --overwrite node-role.kubernetes.io/infra= \
         node-role.kubernetes.io/gpu-"
    );
    // What selects all workers keeps them.
    bed.pools.extend([pool("edge", &json!({"matchLabels": {role("worker"): ""}}))]);
    bed.put(BEGUN + 90, &["worker"], V4_22);
    let stray = bed.stray().unwrap();
    assert_eq!((&*stray.counts, &stray.labels), ("edge", &None));
}

#[test]
fn the_command_writes_over_no_value_where_any_value_will_do() {
    let exists = |key: &str| json!({"key": key, "operator": "Exists"});
    let any = json!({"matchLabels": {"a": "b"}, "matchExpressions": [exists("rack"), exists("x")]});
    let (name, infra) = pool("infra", &any);
    let pools = Pools::from([(name, Arc::clone(&infra))]);
    let labels = |all: &[(&str, &str)]| -> Labels {
        all.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    let has = labels(&[("rack", "r12")]);
    let expected = vec!["a=b".to_owned(), "x=".to_owned()];
    assert_eq!(joins(&has, &infra, &pools), Some(expected));
    let then = labels(&[("a", "b"), ("rack", "r12"), ("x", "")]);
    assert_eq!(joined(&has, &infra, &pools), then);
}

#[test]
fn a_word_of_the_command_is_one_word_for_a_shell() {
    let quoted = super::quoted("site=it's; rm");
    assert_eq!(quoted, r"'site=it'\''s; rm'");
}
