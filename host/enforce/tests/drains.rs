//! Pods move before a node boots, as its budgets allow.

use crate::fixture::Bed;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tread_enforce::drain::{Asked, Evicted, Refusal};
use tread_enforce::{EXCLUDED_ANNOTATION, EXCLUDED_LABEL, Ended};
use tread_kube::api::node_update::DrainOfNode;
use tread_kube::held::cordoned_since;
use tread_model::protocol::Disrupts;
use tread_test_bed::eventually;

fn pod(name: &str, node: &str, labels: &Value, more: Value) -> Pod {
    let mut pod = json!({
        "metadata": {"name": name, "labels": labels},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "example.com/c"}]},
    });
    for (field, value) in more.as_object().unwrap() {
        pod[field] = value.clone();
    }
    serde_json::from_value(pod).unwrap()
}

fn budget(name: &str, labels: &Value, available: usize) -> PodDisruptionBudget {
    let spec = json!({"minAvailable": available, "selector": {"matchLabels": labels}});
    serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap()
}

/// What tread says of a node.
async fn conditions(bed: &Bed, node: &str) -> Vec<String> {
    let all = bed.node(node).await.status.unwrap_or_default().conditions.unwrap_or_default();
    let own = all.into_iter().filter(|it| it.reason.as_deref() == Some("TreadUpdate"));
    let mut own: Vec<String> = own.map(|it| format!("{}={}", it.type_, it.status)).collect();
    own.sort();
    own
}

/// As an admin's Rollout says it.
fn asked(settings: Value) -> Arc<Asked> {
    Arc::new(Asked::of(Some(&serde_json::from_value(settings).unwrap())).unwrap())
}

/// Pods and budgets of one test.
struct Runs {
    pods: Api<Pod>,
    budgets: Api<PodDisruptionBudget>,
}

impl Runs {
    fn on(bed: &Bed) -> Runs {
        let namespace = &bed.settings.namespace;
        let client = || bed.client.clone();
        Runs {
            pods: Api::namespaced(client(), namespace),
            budgets: Api::namespaced(client(), namespace),
        }
    }

    async fn pod(&self, name: &str, node: &str, labels: &Value, more: Value) {
        let pod = pod(name, node, labels, more);
        self.pods.create(&PostParams::default(), &pod).await.unwrap();
    }

    /// A budget, once it has counted its pods.
    async fn budget(&self, name: &str, labels: &Value, available: usize, healthy: i32) {
        let budget = budget(name, labels, available);
        self.budgets.create(&PostParams::default(), &budget).await.unwrap();
        eventually("its pods are Ready, and the budget knows it", async || {
            let budget = self.budgets.get(name).await.unwrap();
            let is_seen = budget.status.as_ref()?.observed_generation == budget.metadata.generation;
            (is_seen && budget.status?.current_healthy == healthy).then_some(())
        })
        .await;
    }

    /// A pod that no node takes, so that its budget waits for it.
    async fn starts_elsewhere(&self, name: &str, labels: &Value) {
        let spec = json!({"nodeSelector": {"there": "is-none"},
            "containers": [{"name": "c", "image": "example.com/c"}]});
        self.pod(name, "", labels, json!({"spec": spec})).await;
    }

    async fn unbudget(&self, name: &str) {
        self.budgets.delete(name, &DeleteParams::default()).await.unwrap();
    }

    async fn has(&self, name: &str) -> bool {
        self.pods.get_opt(name).await.unwrap().is_some()
    }
}

async fn drain(bed: &Bed, node: &str) -> Option<DrainOfNode> {
    bed.update(node).await.status.and_then(|status| status.drain)
}

#[tokio::test]
async fn a_pod_that_its_budget_holds_just_now_is_named_and_waited_for() {
    let bed = Arc::new(Bed::with(1, 1).await);
    let node = bed.nodes[0].clone();
    let namespace = &bed.settings.namespace;
    let runs = Runs::on(&bed);
    let web = json!({"app": "web"});
    runs.pod("web", &node, &web, json!({})).await;
    runs.pod("free", &node, &json!({}), json!({})).await;
    runs.starts_elsewhere("web-too", &web).await;
    runs.budget("web", &web, 1, 1).await;
    let agents = bed.agents(Disrupts::Reboot);
    let blocked = eventually("the drain waits for the budget", async || {
        let ended = bed.step(&node, Disrupts::Reboot).await;
        let Ok(Ended::Drains(blocked, read)) = ended else { return None };
        let left = read.left.as_ref().map_or(0, |left| left.pods.len());
        (left == 1 && blocked.len() == 1).then_some(blocked)
    })
    .await;
    let web = format!("{namespace}/web");
    assert_eq!(blocked[0].pod, web);
    assert_eq!(blocked[0].by, Evicted::Blocked(vec!["web".to_owned()]));
    let errors = bed.settings.metrics.text().unwrap();
    assert!(!errors.contains("kind=\"evictions\",code=\"429\""), "it is an answer: {errors}");
    assert!(agents[0].did().is_empty(), "the node is not drained");
    let says = async || conditions(&bed, &node).await;
    assert_eq!(says().await, ["DrainInProgress=True", "Drained=False"]);
    let status = drain(&bed, &node).await.unwrap();
    assert!(status.asked_by.contains("the Rollout worker, by tread/"), "{status:?}");
    assert!(status.why.contains("rendered-worker-2, and boots"), "{status:?}");
    assert_eq!((status.pods_left, status.pods[0].pod.as_str()), (1, web.as_str()));
    let why = status.pods[0].why.as_ref().unwrap();
    assert!(why.contains("PodDisruptionBudget web allows no disruption now"), "{why}");
    assert!(status.since.is_some() && status.deadline.is_none(), "{status:?}");
    // Nobody takes the order for now.
    drop(agents);
    runs.unbudget("web").await;
    let replica = bed.replica(0, Disrupts::Reboot, 1);
    eventually("it is said that the node is drained", async || {
        let all = ["DrainInProgress=False", "Drained=True", "MaintenanceInProgress=True"];
        (says().await == all).then_some(())
    })
    .await;
    let agents = bed.agents(Disrupts::Reboot);
    bed.all_are_done().await;
    drop((agents, replica));
    assert!(says().await.is_empty(), "tread takes its own away");
    assert_eq!(drain(&bed, &node).await, None, "and no pod is left");
    assert!(!runs.has("web").await && !runs.has("free").await);
    bed.judge.holds().await;
}

#[tokio::test]
async fn whoever_drains_a_node_in_the_middle_of_its_drain_gets_its_cordon() {
    let mut bed = Bed::with(1, 1).await;
    bed.drain = asked(json!({"leaveLoadBalancers": "1s"}));
    let bed = Arc::new(bed);
    let node = bed.nodes[0].clone();
    let runs = Runs::on(&bed);
    let web = json!({"app": "web"});
    runs.pod("web", &node, &web, json!({})).await;
    runs.starts_elsewhere("web-too", &web).await;
    runs.budget("web", &web, 1, 1).await;
    eventually("the drain waits for the budget", async || {
        let Ok(Ended::Drains(blocked, _)) = bed.step(&node, Disrupts::Reboot).await else {
            return None;
        };
        (blocked.len() == 1).then_some(())
    })
    .await;
    bed.admin_drains(&node, true).await;
    let replica = bed.replica(0, Disrupts::Reboot, 1);
    bed.is_handed_over(&node).await;
    let left = bed.node(&node).await.metadata;
    let labels = left.labels.unwrap_or_default();
    assert!(!labels.contains_key(EXCLUDED_LABEL), "{labels:?}");
    assert!(!left.annotations.unwrap_or_default().contains_key(EXCLUDED_ANNOTATION));
    assert!(runs.has("web").await, "the admin's own drain moves it");
    runs.unbudget("web").await;
    bed.admin_drains(&node, false).await;
    bed.patch_node(&node, json!({"spec": {"unschedulable": null}})).await;
    let agents = bed.agents(Disrupts::Reboot);
    bed.all_are_done().await;
    drop((agents, replica));
    bed.judge.holds().await;
}

#[tokio::test]
async fn a_node_that_could_never_be_drained_is_not_begun_and_takes_no_slot() {
    let mut bed = Bed::with(1, 1).await;
    bed.drain = asked(json!({"refuse": ["Unmanaged"]}));
    let bed = Arc::new(bed);
    let node = bed.nodes[0].clone();
    let namespace = &bed.settings.namespace;
    let runs = Runs::on(&bed);
    let (db, lone, mine) = (json!({"app": "db"}), json!({"app": "lone"}), json!({"app": "mine"}));
    let uid = bed.node(&node).await.metadata.uid;
    let owned = |labels: &Value, name: &str| {
        json!({"metadata": {"name": name, "labels": labels, "ownerReferences": [{
            "apiVersion": "v1", "kind": "Node", "name": node, "uid": uid, "controller": true}]}})
    };
    runs.pod("db", &node, &db, owned(&db, "db")).await;
    runs.pod("lone", &node, &lone, owned(&lone, "lone")).await;
    runs.pod("mine", &node, &mine, json!({})).await;
    runs.budget("db", &db, 1, 1).await;
    runs.budget("db-too", &db, 0, 1).await;
    runs.budget("lone", &lone, 1, 1).await;
    let both = Evicted::Never(vec!["db".to_owned(), "db-too".to_owned()]);
    let stuck = async |left: &[&str]| {
        let left: Vec<String> = left.iter().map(|name| format!("{namespace}/{name}")).collect();
        eventually("it is said why the node is not begun", async || {
            let ended = bed.step(&node, Disrupts::Reboot).await;
            let Ok(Ended::Stuck(blocked, _)) = ended else { return None };
            let pods: Vec<&String> = blocked.iter().map(|it| &it.pod).collect();
            (pods == left.iter().collect::<Vec<_>>()).then_some(blocked)
        })
        .await
    };
    let blocked = stuck(&["db", "lone", "mine"]).await;
    assert_eq!(blocked[0].by, both);
    let errors = bed.settings.metrics.text().unwrap();
    assert!(!errors.contains("kind=\"evictions\",code=\"500\""), "it is an answer: {errors}");
    let Evicted::Full { budget, why } = &blocked[1].by else { panic!("{blocked:?}") };
    assert_eq!((budget.as_str(), why.contains("1 healthy")), ("lone", true), "{why}");
    assert_eq!(blocked[2].by, Evicted::Refused(Refusal::Unmanaged));
    let status = drain(&bed, &node).await.unwrap();
    assert!(status.why.contains("it is not cordoned"), "{status:?}");
    assert_eq!((status.pods_left, status.since), (3, None));
    // One budget is left of two, and that one never allows it either.
    runs.unbudget("db-too").await;
    stuck(&["db", "lone", "mine"]).await;
    runs.unbudget("db").await;
    runs.pods.delete("mine", &DeleteParams::default()).await.unwrap();
    stuck(&["lone"]).await;
    assert!(bed.update(&node).await.spec.order.is_none(), "nothing was ordered");
    assert_ne!(bed.node(&node).await.spec.unwrap().unschedulable, Some(true));
    assert!(runs.has("db").await, "and no pod was evicted");
    let slots: Api<ConfigMap> = Api::namespaced(bed.client.clone(), namespace);
    let slots = slots.get(tread_enforce::SLOTS).await.unwrap().data.unwrap();
    assert_eq!(slots["slots.json"], "{}", "nor has it a slot");
    runs.unbudget("lone").await;
    let replica = bed.replica(0, Disrupts::Reboot, 1);
    let agents = bed.agents(Disrupts::Reboot);
    bed.all_are_done().await;
    drop((agents, replica));
    assert_eq!(drain(&bed, &node).await, None);
    bed.judge.holds().await;
}

#[tokio::test]
async fn pods_go_stay_and_are_waited_for_as_the_rollout_says() {
    let mut bed = Bed::with(1, 1).await;
    bed.drain = asked(json!({
        "ignore": [{"pods": {"matchLabels": {"app": "probe"}}}],
        "waitFor": [{"pods": {"matchLabels": {"app": "job"}}}],
        "gracePeriod": "1s",
    }));
    let bed = Arc::new(bed);
    let node = bed.nodes[0].clone();
    let runs = Runs::on(&bed);
    for name in ["probe", "job", "web"] {
        runs.pod(name, &node, &json!({"app": name}), json!({})).await;
    }
    let blocked = eventually("all but the job has gone", async || {
        let ended = bed.step(&node, Disrupts::Reboot).await;
        let Ok(Ended::Drains(blocked, read)) = ended else { return None };
        (read.left.as_ref()?.pods.len() == 1).then_some(blocked)
    })
    .await;
    assert_eq!(blocked[0].by, Evicted::WaitedFor);
    assert!(runs.has("probe").await && runs.has("job").await && !runs.has("web").await);
    let replica = bed.replica(0, Disrupts::Reboot, 1);
    let agents = bed.agents(Disrupts::Reboot);
    // The job ends.
    runs.pods.delete("job", &DeleteParams::default()).await.unwrap();
    bed.all_are_done().await;
    drop((agents, replica));
    assert!(runs.has("probe").await);
    bed.judge.holds().await;
}

#[tokio::test]
async fn after_its_timeout_a_drain_deletes_pods_only_where_the_rollout_says_so() {
    let mut bed = Bed::with(1, 1).await;
    bed.drain = asked(json!({"timeout": "2s"}));
    let node = bed.nodes[0].clone();
    let runs = Runs::on(&bed);
    let web = json!({"app": "web"});
    runs.pod("web", &node, &web, json!({})).await;
    runs.starts_elsewhere("web-too", &web).await;
    runs.budget("web", &web, 1, 1).await;
    eventually("it is said that the drain takes too long", async || {
        let ended = bed.step(&node, Disrupts::Reboot).await;
        matches!(ended, Ok(Ended::Drains(..))).then_some(())?;
        let status = drain(&bed, &node).await?;
        status.deadline.as_ref()?;
        status.why.contains("takes too long").then_some(())
    })
    .await;
    let since = drain(&bed, &node).await.unwrap().since;
    assert!(runs.has("web").await);
    // Another replica goes on, by the same deadline.
    bed.drain = asked(json!({"timeout": "2s", "afterTimeout": "Delete"}));
    let bed = Arc::new(bed);
    let ended = bed.step(&node, Disrupts::Reboot).await;
    assert!(matches!(ended, Ok(Ended::Drains(..))), "{ended:?}");
    if let Some(status) = drain(&bed, &node).await {
        assert_eq!(status.since, since);
    }
    let replica = bed.replica(0, Disrupts::Reboot, 1);
    let agents = bed.agents(Disrupts::Reboot);
    bed.all_are_done().await;
    drop((agents, replica));
    assert!(!runs.has("web").await, "whatever its budget says");
    bed.judge.holds().await;
}

#[tokio::test]
async fn a_drain_that_may_delete_no_pod_goes_on_evicting_and_says_so() {
    let mut bed = Bed::with(1, 1).await;
    bed.drain = asked(json!({"timeout": "1s", "afterTimeout": "Delete"}));
    bed.settings.client = who_may_delete_no_pod(&bed).await;
    let bed = Arc::new(bed);
    let node = bed.nodes[0].clone();
    let runs = Runs::on(&bed);
    let web = json!({"app": "web"});
    runs.pod("web", &node, &web, json!({})).await;
    runs.budget("web", &web, 1, 1).await;
    eventually("it is said that tread may not delete it", async || {
        let ended = bed.step(&node, Disrupts::Reboot).await;
        let Ok(Ended::Drains(blocked, ..)) = ended else { return None };
        let why = blocked.first()?.by.to_string();
        (why.contains("--delete-pods") && why.contains("PodDisruptionBudget web")).then_some(())
    })
    .await;
    assert!(runs.has("web").await);
    // It goes on asking for its eviction.
    runs.unbudget("web").await;
    let replica = bed.replica(0, Disrupts::Reboot, 1);
    let agents = bed.agents(Disrupts::Reboot);
    bed.all_are_done().await;
    drop((agents, replica));
    bed.judge.holds().await;
}

#[tokio::test]
async fn a_pod_that_a_policy_protects_from_deletion_keeps_no_other_one() {
    let mut bed = Bed::with(1, 1).await;
    bed.drain = asked(json!({"timeout": "1s", "afterTimeout": "Delete"}));
    let bed = Arc::new(bed);
    let (node, namespace) = (bed.nodes[0].clone(), bed.settings.namespace.as_str());
    let runs = Runs::on(&bed);
    let web = json!({"app": "web"});
    for name in ["guarded", "web"] {
        runs.pod(name, &node, &web, json!({})).await;
    }
    runs.budget("web", &web, 2, 2).await;
    let kind = |kind: &str| format!("ValidatingAdmissionPolicy{kind}");
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind(""),
        "metadata": {"name": namespace},
        "spec": {
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
                    "operations": ["DELETE"], "resources": ["pods"]}],
            },
            "validations": [{"expression": "oldObject.metadata.name != 'guarded'",
                "reason": "Forbidden", "message": "it is guarded"}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind("Binding"),
        "metadata": {"name": namespace},
        "spec": {"policyName": namespace, "validationActions": ["Deny"]},
    });
    for object in [policy, binding] {
        bed.plane.apply(&object.to_string()).unwrap();
    }
    eventually("nobody can delete it", async || {
        let tried = DeleteParams { dry_run: true, ..DeleteParams::default() };
        let answer = runs.pods.delete("guarded", &tried).await;
        answer.err().filter(|error| error.to_string().contains("it is guarded"))
    })
    .await;
    let blocked = eventually("the other one is deleted", async || {
        let ended = bed.step(&node, Disrupts::Reboot).await;
        let Ok(Ended::Drains(blocked, read)) = ended else { return None };
        (read.left.as_ref()?.pods.len() == 1).then_some(blocked)
    })
    .await;
    assert_eq!(blocked[0].pod, format!("{namespace}/guarded"));
    let why = blocked[0].by.to_string();
    assert!(why.contains("it is guarded") && !why.contains("--delete-pods"), "{why}");
    assert!(runs.has("guarded").await && !runs.has("web").await);
    let gone = ["delete", "validatingadmissionpolicybinding", namespace];
    bed.plane.kubectl(&gone).unwrap().success().unwrap();
    let replica = bed.replica(0, Disrupts::Reboot, 1);
    let agents = bed.agents(Disrupts::Reboot);
    bed.all_are_done().await;
    drop((agents, replica));
    bed.judge.holds().await;
}

#[tokio::test]
async fn a_pod_that_comes_back_to_its_cordoned_node_does_not_keep_it_from_booting() {
    let bed = Arc::new(Bed::with(1, 1).await);
    let node = bed.nodes[0].clone();
    let runs = Runs::on(&bed);
    let name = |number: usize| format!("pinned-{number}");
    runs.pod(&name(0), &node, &json!({}), json!({})).await;
    // What makes it names the node, and makes the next one as soon as one is on its way out.
    let made: Arc<AtomicUsize> = Arc::default();
    let (pods, to, count) = (runs.pods.clone(), node.clone(), Arc::clone(&made));
    let controller = tokio::spawn(async move {
        loop {
            let last = count.load(Ordering::SeqCst);
            if let Ok(it) = pods.get_opt(&name(last)).await
                && it.is_none_or(|it| it.metadata.deletion_timestamp.is_some())
            {
                let next = pod(&name(last + 1), &to, &json!({}), json!({}));
                if pods.create(&PostParams::default(), &next).await.is_ok() {
                    count.store(last + 1, Ordering::SeqCst);
                }
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let replica = bed.replica(0, Disrupts::Reboot, 1);
    let agents = bed.agents(Disrupts::Reboot);
    bed.all_are_done().await;
    drop((agents, replica));
    controller.abort();
    let last = made.load(Ordering::SeqCst);
    assert!(last > 0, "it was evicted before it was let be");
    assert!(runs.has(&name(last)).await, "and the last one stayed");
    bed.judge.holds().await;
}

#[tokio::test]
async fn a_pod_that_came_back_keeps_its_node_for_as_long_as_its_budget_holds_it() {
    let mut bed = Bed::with(1, 1).await;
    bed.drain = asked(json!({"waitFor": [{"pods": {"matchLabels": {"app": "job"}}}]}));
    let bed = Arc::new(bed);
    let node = bed.nodes[0].clone();
    let runs = Runs::on(&bed);
    runs.pod("job", &node, &json!({"app": "job"}), json!({})).await;
    let step = async || match bed.step(&node, Disrupts::Reboot).await {
        Ok(Ended::Drains(blocked, read)) => {
            let left = read.left.as_ref().map_or(0, |left| left.pods.len());
            Some((left, blocked.into_iter().map(|it| it.by).collect::<Vec<_>>()))
        }
        _ => None,
    };
    eventually("the node is cordoned for a while", async || {
        step().await?;
        let since = cordoned_since(&bed.node(&node).await)?;
        let is_while = Timestamp::now().duration_since(since) > SignedDuration::from_secs(4);
        is_while.then_some(())
    })
    .await;
    let db = json!({"app": "db"});
    runs.pod("db", &node, &db, json!({})).await;
    runs.starts_elsewhere("db-too", &db).await;
    runs.budget("db", &db, 1, 1).await;
    let uid = runs.pods.get("db").await.unwrap().metadata.uid;
    eventually("it is let be while something else is waited for", async || {
        (step().await? == (1, vec![Evicted::WaitedFor, Evicted::Stays])).then_some(())
    })
    .await;
    runs.pods.delete("job", &DeleteParams::default()).await.unwrap();
    let held = Evicted::CameBack(Box::new(Evicted::Blocked(vec!["db".to_owned()])));
    eventually("its budget is asked before the node boots", async || {
        (step().await? == (1, vec![held.clone()])).then_some(())
    })
    .await;
    let status = drain(&bed, &node).await.unwrap();
    let why = status.pods[0].why.as_ref().unwrap();
    assert!(why.contains("PodDisruptionBudget db allows no disruption now"), "{why}");
    runs.unbudget("db").await;
    let replica = bed.replica(0, Disrupts::Reboot, 1);
    let agents = bed.agents(Disrupts::Reboot);
    bed.all_are_done().await;
    drop((agents, replica));
    assert_eq!(runs.pods.get("db").await.unwrap().metadata.uid, uid, "nobody evicted it");
    bed.judge.holds().await;
}

/// A client with all rights that a drain needs, but not the one to delete pods.
async fn who_may_delete_no_pod(bed: &Bed) -> Client {
    let user = format!("tread:{}", bed.settings.namespace);
    let all = json!({"apiGroups": ["*"], "resources": ["*"],
        "verbs": ["get", "list", "watch", "create", "update", "patch"]});
    let leases =
        json!({"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["delete"]});
    let of = "rbac.authorization.k8s.io";
    let objects = [
        json!({"apiVersion": format!("{of}/v1"), "kind": "ClusterRole",
            "metadata": {"name": user}, "rules": [all, leases]}),
        json!({"apiVersion": format!("{of}/v1"), "kind": "ClusterRoleBinding",
            "metadata": {"name": user},
            "roleRef": {"apiGroup": of, "kind": "ClusterRole", "name": user},
            "subjects": [{"apiGroup": of, "kind": "User", "name": user}]}),
    ];
    for object in objects {
        bed.plane.apply(&object.to_string()).unwrap();
    }
    let mut config = bed.plane.admin().client_config().await.unwrap();
    config.auth_info.impersonate = Some(user);
    tread_kube::client::client(config).unwrap()
}

/// Whether a node is out of load balancers, and has tread's mark of that.
async fn is_out(bed: &Bed, node: &str) -> (bool, bool) {
    let metadata = bed.node(node).await.metadata;
    let is_out = metadata.labels.unwrap().contains_key(EXCLUDED_LABEL);
    (is_out, metadata.annotations.unwrap().contains_key(EXCLUDED_ANNOTATION))
}

#[tokio::test]
async fn a_node_leaves_load_balancers_with_its_cordon_and_comes_back_with_it() {
    let mut bed = Bed::with(1, 1).await;
    bed.drain = asked(json!({"leaveLoadBalancers": "1h"}));
    let node = bed.nodes[0].clone();
    let runs = Runs::on(&bed);
    runs.pod("web", &node, &json!({}), json!({})).await;
    eventually("load balancers are waited for", async || {
        let ended = bed.step(&node, Disrupts::Reboot).await;
        matches!(ended, Ok(Ended::Drains(..))).then_some(())
    })
    .await;
    let status = drain(&bed, &node).await.unwrap();
    assert!(status.why.contains("load balancers"), "{status:?}");
    assert!(runs.has("web").await);
    assert_eq!(is_out(&bed, &node).await, (true, true));
    bed.drain = asked(json!({"leaveLoadBalancers": "3s"}));
    let bed = Arc::new(bed);
    let replica = bed.replica(0, Disrupts::Reboot, 1);
    let agents = bed.agents(Disrupts::Reboot);
    bed.all_are_done().await;
    drop((agents, replica));
    assert_eq!(is_out(&bed, &node).await, (false, false));
    bed.judge.holds().await;
}

#[tokio::test]
async fn a_node_that_others_took_out_of_load_balancers_stays_out() {
    let mut bed = Bed::with(1, 1).await;
    bed.drain = asked(json!({"leaveLoadBalancers": "1s", "skip": true}));
    let bed = Arc::new(bed);
    let node = bed.nodes[0].clone();
    let runs = Runs::on(&bed);
    runs.pod("web", &node, &json!({}), json!({})).await;
    bed.patch_node(&node, json!({"metadata": {"labels": {EXCLUDED_LABEL: "theirs"}}})).await;
    let replica = bed.replica(0, Disrupts::Reboot, 1);
    let agents = bed.agents(Disrupts::Reboot);
    bed.all_are_done().await;
    drop((agents, replica));
    let labels = bed.node(&node).await.metadata.labels.unwrap();
    assert_eq!(labels.get(EXCLUDED_LABEL).map(String::as_str), Some("theirs"));
    assert!(runs.has("web").await, "the Rollout says that pods stay");
    bed.judge.holds().await;
}

#[tokio::test]
async fn pods_that_a_kubelet_or_a_daemon_set_runs_keep_no_node_from_booting() {
    let bed = Arc::new(Bed::with(1, 1).await);
    let node = bed.nodes[0].clone();
    let pods: Api<Pod> = Api::namespaced(bed.client.clone(), &bed.settings.namespace);
    let mirror = json!({"metadata": {"name": "mirror",
        "annotations": {"kubernetes.io/config.mirror": "x"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": node,
            "uid": bed.node(&node).await.metadata.uid, "controller": true}]}});
    pods.create(&PostParams::default(), &pod("mirror", &node, &json!({}), mirror)).await.unwrap();
    let agents = bed.agents(Disrupts::Reboot);
    let replica = bed.replica(0, Disrupts::Reboot, 1);
    bed.all_are_done().await;
    drop((agents, replica));
    assert!(pods.get_opt("mirror").await.unwrap().is_some());
    bed.judge.holds().await;
}
