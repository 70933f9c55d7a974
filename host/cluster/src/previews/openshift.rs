//! Previews on a cluster as OpenShift's operator makes it: every rendered config
//! names an OS image, and pools have the roles that they have there.

use super::preview::NoPlan;
use super::*;
use crate::policies::current::Current;
use crate::pools::{ConfigMeta, GENERATED_REGISTRIES, Node, Pool};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use tread_engine::planner::Answers;
use tread_engine::policy::PolicySet;
use tread_engine::sandbox::{Options, Sandbox};
use tread_kube::api::MachineConfigPool;
use tread_kube::api::disruption_plan::{Cause, CauseEvent};
use tread_kube::api::machine_config::ROLE_LABEL;
use tread_model::effect::Effect;
use tread_model::operator;
use tread_model::plan::PlanOutcome;

/// When the operator rendered what nodes have.
const RENDERED_AT: i64 = 100;

struct Openshift {
    cluster: Cluster,
    bodies: Bodies,
}

fn corpus(name: &str) -> Value {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/openshift");
    serde_json::from_slice(&std::fs::read(dir.join(name)).unwrap()).unwrap()
}

impl Openshift {
    /// The pools master, worker and gpu, each settled, with a node.
    fn settled() -> Openshift {
        let mut it = Openshift { cluster: Cluster::default(), bodies: Bodies::new() };
        for role in ["master", "worker"] {
            for config in corpus(&format!("{role}.json"))["items"].as_array().unwrap() {
                it.put(config.clone(), 10);
            }
        }
        let worker = corpus("rendered-worker.json");
        it.pool(
            "master",
            json!({"matchLabels": {ROLE_LABEL: "master"}}),
            corpus("rendered-master.json"),
        );
        it.pool("worker", json!({"matchLabels": {ROLE_LABEL: "worker"}}), worker.clone());
        let mut gpu = worker;
        gpu["metadata"]["name"] = json!("rendered-gpu-00000000000000000000000000000001");
        gpu["metadata"]["ownerReferences"][0]["name"] = json!("gpu");
        let roles = json!({"matchExpressions": [{"key": ROLE_LABEL, "operator": "In",
            "values": ["worker", "gpu", "gpu-a100"]}]});
        it.pool("gpu", roles, gpu);
        it
    }

    fn put(&mut self, config: Value, at: i64) {
        let name = config["metadata"]["name"].as_str().unwrap().to_owned();
        let mut metadata = serde_json::from_value(config["metadata"].clone()).unwrap();
        let meta = ConfigMeta {
            version: at.to_string().into(),
            created: at,
            modified: at,
            ..ConfigMeta::of(&mut metadata)
        };
        let body: Arc<[u8]> = config.to_string().into_bytes().into();
        self.bodies.insert((name.as_str().into(), at.to_string().into()), body.into());
        self.cluster.configs.insert(name, Arc::new(meta));
    }

    fn pool(&mut self, name: &str, selector: Value, rendered: Value) {
        let target = rendered["metadata"]["name"].clone();
        self.put(rendered, RENDERED_AT);
        let role = if name == "gpu" { "worker" } else { name };
        let sources: Vec<Value> = corpus(&format!("{role}.json"))["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|config| json!({"name": config["metadata"]["name"]}))
            .collect();
        let configuration = json!({"name": target, "source": sources});
        let object: MachineConfigPool = serde_json::from_value(json!({
            "metadata": {"name": name, "uid": name},
            "spec": {"machineConfigSelector": selector, "configuration": configuration,
                "nodeSelector": {"matchLabels": {"pool": name}}},
            "status": {"configuration": configuration},
        }))
        .unwrap();
        self.cluster.pools.insert(name.to_owned(), Arc::new(Pool::of(&object)));
        let node = Node {
            labels: [("pool".to_owned(), name.to_owned())].into(),
            current: Some(target.as_str().unwrap().to_owned()),
            ..Node::default()
        };
        Arc::make_mut(&mut self.cluster.members).put(
            &format!("{name}-0"),
            node,
            &self.cluster.pools,
        );
    }

    /// What a change does to a pool.
    fn preview(&self, change: &Edit, pool: &str) -> Preview {
        self.preview_with(change, pool, &Answers::default())
    }

    fn preview_with(&self, change: &Edit, pool: &str, answers: &Answers) -> Preview {
        let after = self.cluster.with(change);
        let work = work(&after, pool).unwrap();
        let current = Current::new(PolicySet::new(Vec::new()).unwrap(), None, true);
        let sandbox = Sandbox::new(Options::default()).unwrap();
        let asked = Asked {
            bodies: &self.bodies,
            current: &current,
            operator: &operator::Policies::of(None),
            sandbox: &sandbox,
            answers,
            parsed: &Parsed::default(),
            hides_secrets: false,
        };
        compute(work, &asked)
    }
}

fn config(name: &str, role: &str, spec: Value) -> Edit {
    let body = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": name, "labels": {ROLE_LABEL: role}}, "spec": spec,
    });
    Edit::MachineConfig {
        name: name.to_owned(),
        labels: [(ROLE_LABEL.to_owned(), role.to_owned())].into(),
        body: body.to_string().into_bytes().into(),
    }
}

fn file(path: &str, text: &str) -> Value {
    json!({"config": {"ignition": {"version": "3.4.0"}, "storage": {"files": [
        {"path": path, "mode": 0o644, "contents": {"source": format!("data:,{text}")}}]}}})
}

/// The changes of the only way, by tread and by the operator.
fn changes(preview: &Preview) -> (Vec<&str>, Vec<&str>) {
    let [way] = preview.ways.as_slice() else { panic!("{} ways", preview.ways.len()) };
    let way = way.plan.as_ref().unwrap_or_else(|why| panic!("{why}"));
    let operator = way.operator.as_ref().unwrap();
    (
        way.plan.changes.iter().map(|change| change.id.as_str()).collect(),
        operator.because.iter().map(|part| part.id.as_str()).collect(),
    )
}

#[test]
fn a_change_of_any_pool_is_planned_before_it_is_rendered_and_nothing_else_counts() {
    let openshift = Openshift::settled();
    for (pool, role) in [
        ("master", "master"),
        ("worker", "worker"),
        ("gpu", "worker"),
        ("gpu", "gpu"),
        ("gpu", "gpu-a100"),
    ] {
        let preview = openshift.preview(&config("60-a", role, file("/etc/a", "a")), pool);
        assert_eq!(changes(&preview), (vec!["file:/etc/a"], vec!["file:/etc/a"]), "{pool} {role}");
    }
}

#[test]
fn more_changes_than_are_looked_at_are_too_much_and_what_nobody_waits_for_is_not() {
    let openshift = Openshift::settled();
    let change = config("60-a", "worker", file("/etc/a", "a"));
    let why = |answers: &Answers| {
        let preview = openshift.preview_with(&change, "worker", answers);
        preview.ways[0].plan.as_ref().map(|way| way.plan.changes.len()).map_err(Clone::clone)
    };
    assert_eq!(why(&Answers::to_at_most(1)), Ok(1));
    let too_much = why(&Answers::to_at_most(0)).unwrap_err();
    assert!(matches!(too_much, NoPlan::TooMuch(_)), "{too_much:?}");
    assert!(too_much.why().starts_with("1 changes: planned as a reboot"), "{too_much}");
    let ended = Answers::default();
    ended.end();
    assert_eq!(why(&ended), Err(NoPlan::Untold("nobody waits for it any more".to_owned())));
}

#[test]
fn configs_of_several_custom_roles_are_merged_for_the_pool_that_selects_them() {
    let mut openshift = Openshift::settled();
    for (name, role) in [("60-gpu", "gpu"), ("61-a100", "gpu-a100")] {
        let Edit::MachineConfig { body, .. } = config(name, role, file("/etc/b", role)) else {
            panic!("no MachineConfig")
        };
        openshift.put(serde_json::from_slice(&body).unwrap(), RENDERED_AT + 1);
    }
    let preview = openshift.preview(&config("62-c", "gpu", file("/etc/c", "c")), "gpu");
    assert_eq!(changes(&preview).0, ["file:/etc/b", "file:/etc/c"]);
}

#[test]
fn mirrors_are_planned_for_the_control_plane_too() {
    let openshift = Openshift::settled();
    let mirrors = json!({
        "apiVersion": "config.openshift.io/v1", "kind": "ImageDigestMirrorSet",
        "metadata": {"name": "quay"}, "spec": {"imageDigestMirrors": [
            {"source": "quay.example/a", "mirrors": ["mirror.example/a"]}]},
    });
    let key = ("ImageDigestMirrorSet", "quay".to_owned());
    let change = Edit::Mirror(key, mirrors.to_string().into_bytes().into());
    for pool in ["master", "worker", "gpu"] {
        let preview = openshift.preview(&change, pool);
        let names: Vec<&str> = preview.work.to.configs.iter().map(Piece::name).collect();
        assert!(names.contains(&format!("99-{pool}{GENERATED_REGISTRIES}").as_str()), "{names:?}");
        assert_eq!(changes(&preview).0, ["file:/etc/containers/registries.conf"], "{pool}");
    }
}

#[test]
fn beside_the_operator_both_truths_are_told_with_their_reasons() {
    let openshift = Openshift::settled();
    let preview = openshift.preview(&config("60-a", "worker", file("/etc/a", "a")), "worker");
    let [plan] = describe(&preview, tread_model::digest::Digest::of(b""), Default::default())
        .try_into()
        .unwrap_or_else(|plans: Vec<_>| panic!("{} plans", plans.len()));
    let because = plan.status.because.as_deref().unwrap();
    assert!(because.starts_with("file:/etc/a (no entry of nodeDisruptionPolicy"), "{because}");
    let [way] = plan.status.transitions.as_slice() else { panic!("{:?}", plan.status) };
    let [part] = way.operator_because.as_slice() else { panic!("{way:?}") };
    assert_eq!((part.id.as_str(), part.effect), ("file:/etc/a", Effect::Reboot));
    assert_eq!(
        part.rule,
        "no entry of nodeDisruptionPolicy matches; an admin can add one (`tread policy rules \
         --to-openshift`)"
    );
    let advice = way.changes[0].advice.as_deref().unwrap();
    assert!(advice.contains("with a rule for file:/etc/a in a DisruptionPolicy"), "{advice}");
    assert!(advice.contains("That changes what tread would do (TREAD)."), "{advice}");
    assert!(advice.contains("`tread policy rules --to-openshift`"), "{advice}");
    assert_eq!(way.changes[0].id, "file:/etc/a");
    assert!(way.changes[0].reason.contains("policy"), "{}", way.changes[0].reason);
}

#[test]
fn what_the_operator_rejects_is_rejected_for_all_that_is_pending_and_says_why() {
    let mut openshift = Openshift::settled();
    let Edit::MachineConfig { body, .. } = config("60-a", "worker", file("/etc/a", "a")) else {
        panic!("no MachineConfig")
    };
    openshift.put(serde_json::from_slice(&body).unwrap(), RENDERED_AT + 1);
    let core = json!({"config": {"ignition": {"version": "3.4.0"},
        "passwd": {"users": [{"name": "core", "sshAuthorizedKeys": []}]}}});
    let change = config("99-worker-ssh", "worker", core);
    let preview = openshift.preview(&change, "worker");
    let cause = Cause {
        kind: "MachineConfig".to_owned(),
        name: "99-worker-ssh".to_owned(),
        event: CauseEvent::Changed,
    };
    let lines = warnings(std::slice::from_ref(&preview), &cause);
    let [rejected, lock_out] = lines.as_slice() else { panic!("{lines:?}") };
    assert!(rejected.contains("rejected, the pool degrades: users:core"), "{rejected}");
    assert!(rejected.contains("because of users:core (core has neither"), "{rejected}");
    assert!(lock_out.starts_with("tread: pool worker: lock-out: core loses"), "{lock_out}");
    for plan in describe(&preview, tread_model::digest::Digest::of(b""), Default::default()) {
        assert_eq!(plan.effect, Effect::Refuse, "{}", plan.cause);
        assert!(plan.status.because.is_some(), "{}", plan.cause);
    }
    let way = preview.ways[0].plan.as_ref().unwrap();
    assert_eq!(way.plan.outcome, PlanOutcome::Apply, "tread itself would do it");
}

#[test]
fn what_the_parser_rejects_is_refused_by_both_with_the_field() {
    let openshift = Openshift::settled();
    let unit = json!({"config": {"ignition": {"version": "3.4.0"},
        "systemd": {"units": [{"name": "a.service", "contents": "[Service"}]}}});
    let preview = openshift.preview(&config("60-a", "master", unit), "master");
    let way = preview.ways[0].plan.as_ref().unwrap();
    assert_eq!(way.plan.outcome, PlanOutcome::Refuse);
    assert!(way.plan.changes[0].reason.starts_with("spec.config.systemd.units[0].contents: "));
    assert_eq!(way.operator.as_ref().unwrap().effect, Effect::Refuse);
}
