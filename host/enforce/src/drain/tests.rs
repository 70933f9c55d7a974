//! Looks and passes, with an API server that is played.

use super::*;
use crate::settings::Settings;
use crate::{Clock, Turn};
use http::{Request, Response};
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;
use tread_kube::dated::timestamp;
use tread_kube::metrics::Metrics;
use tread_model::protocol::{Terms, Time};

/// An API server with these pods, of the namespace `a`.
#[derive(Default)]
struct ApiServer {
    pods: Mutex<Vec<Value>>,
    /// Budgets of the pods that have the label `app=web`, beside one that is called `web`.
    budgets: Mutex<Vec<Value>>,
    /// What evictions are answered that are not accepted.
    refusal: Mutex<Option<Value>>,
    /// What was asked for: path and query.
    asked: Mutex<Vec<(String, String)>>,
    lists: AtomicUsize,
    /// How many lists were on their way at a time.
    most: AtomicUsize,
}

impl ApiServer {
    fn with(pods: Vec<Value>) -> Arc<ApiServer> {
        Arc::new(ApiServer { pods: Mutex::new(pods), ..ApiServer::default() })
    }

    fn settings(self: &Arc<ApiServer>) -> Settings {
        let server = Arc::clone(self);
        let service = tower::service_fn(move |request: Request<Body>| {
            let (server, uri) = (Arc::clone(&server), request.uri().clone());
            async move {
                let query = uri.query().unwrap_or_default();
                Ok::<_, kube::Error>(server.answer(uri.path(), query).await)
            }
        });
        Settings {
            client: Client::new(service, "tread"),
            metrics: Metrics::new(),
            namespace: "tread".to_owned(),
            leases: "tread".to_owned(),
            holder: "tread/1".to_owned(),
            terms: Terms::default(),
            at_slots: Turn::default(),
            clock: Clock::default(),
            ready_for: Duration::from_secs(30),
        }
    }

    async fn answer(&self, path: &str, query: &str) -> Response<Body> {
        self.asked.lock().unwrap().push((path.to_owned(), query.to_owned()));
        let body = match path {
            "/api/v1/pods" => self.page(query).await,
            "/apis/policy/v1/namespaces/a/poddisruptionbudgets" => {
                let mut budgets = vec![budget("web")];
                budgets.extend(self.budgets.lock().unwrap().iter().cloned());
                json!({"kind": "PodDisruptionBudgetList", "apiVersion": "policy/v1",
                    "metadata": {}, "items": budgets})
            }
            "/apis/apps/v1/namespaces/a/daemonsets/there" => {
                json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
                    "metadata": {"name": "there"}})
            }
            _ if path.ends_with("/eviction") => {
                let refusal = self.refusal.lock().unwrap().clone();
                refusal.unwrap_or_else(|| json!({"kind": "Status", "status": "Success"}))
            }
            _ => refusal(404, Value::Null),
        };
        let code = body["code"].as_u64().unwrap_or(200);
        let answer = Response::builder().status(u16::try_from(code).unwrap());
        answer.body(Body::from(body.to_string().into_bytes())).unwrap()
    }

    /// So many pods as are asked for, from the one that is asked for.
    async fn page(&self, query: &str) -> Value {
        let most = self.lists.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(most, Ordering::SeqCst);
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        let number = |name: &str| {
            query.split('&').find_map(|it| it.strip_prefix(name)?.parse::<usize>().ok())
        };
        let from = number("continue=").unwrap_or_default();
        let limit = number("limit=").expect("it is asked for in pages");
        let pods = self.pods.lock().unwrap();
        let items: Vec<&Value> = pods.iter().skip(from).take(limit).collect();
        let next = from + items.len();
        let next = (next < pods.len()).then(|| next.to_string());
        self.lists.fetch_sub(1, Ordering::SeqCst);
        json!({"kind": "PodList", "apiVersion": "v1", "metadata": {"continue": next},
            "items": items})
    }

    /// The names of the pods whose eviction was asked for, and whether nothing came of it.
    fn evicted(&self) -> Vec<(String, bool)> {
        let asked = std::mem::take(&mut *self.asked.lock().unwrap());
        let evicted = asked.into_iter().filter_map(|(path, query)| {
            let name =
                path.strip_prefix("/api/v1/namespaces/a/pods/")?.strip_suffix("/eviction")?;
            Some((name.to_owned(), query.contains("dryRun=All")))
        });
        evicted.collect()
    }
}

fn refusal(code: u16, details: Value) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "message": "no", "reason": "No", "details": details})
}

/// Of the pods that have the label `app=web`.
fn budget(name: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "a"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}}})
}

fn pod(name: &str, more: &[(&str, Value)]) -> Value {
    let mut pod = json!({"metadata": {"name": name, "namespace": "a", "uid": name},
        "spec": {"nodeName": "n", "containers": []}, "status": {"phase": "Running"}});
    for (pointer, value) in more {
        let (section, field) = pointer.split_once('.').unwrap();
        pod[section][field] = value.clone();
    }
    pod
}

fn names(left: &Left) -> Vec<(&str, Fate)> {
    left.pods.iter().map(|(pod, fate)| (pod.metadata.name.as_deref().unwrap(), *fate)).collect()
}

/// By its times in seconds: a node that is cordoned and drained since 1,000.
fn course(asked: &Asked) -> Course {
    let node: Node = serde_json::from_value(json!({"spec": {"taints": [{
        "key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule",
        "timeAdded": "1970-01-01T00:16:40Z"}]}}))
    .unwrap();
    Course::of(&node, Some(second(1000)), asked, second(5000))
}

fn second(second: u64) -> Time {
    Time(Duration::from_secs(second))
}

#[tokio::test]
async fn a_pod_that_names_an_owner_that_no_object_can_be_keeps_no_node() {
    let of = |at: usize, owner: &str| {
        let owner = json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": owner,
            "uid": "x", "controller": true}]);
        pod(&format!("pod-{at}"), &[("metadata.ownerReferences", owner)])
    };
    let owners = ["a b", "a/b", "../pods", "..", "a?b", "a#b", "A", "", "größe", "there", "gone"];
    let pods = owners.iter().enumerate().map(|(at, owner)| of(at, owner));
    let server = ApiServer::with(pods.collect());
    let (settings, asked) = (server.settings(), Asked::default());
    let left = look(&settings, "n", &asked, Time::default(), Course::default()).await.unwrap();
    let left = names(&left);
    assert_eq!(left.len(), owners.len() - 1);
    assert!(left.iter().all(|(_, fate)| *fate == Fate::Unmanaged), "{left:?}");
    assert!(!left.iter().any(|(name, _)| *name == "pod-9"), "its DaemonSet is there");
    let asked = server.asked.lock().unwrap();
    let sets = asked.iter().filter_map(|(path, _)| path.split_once("/daemonsets/"));
    assert_eq!(sets.map(|(_, name)| name).collect::<Vec<_>>(), ["there", "gone"]);
}

#[tokio::test]
async fn a_node_full_of_large_pods_is_drained_within_bounds() {
    const PODS: usize = 50;
    let large = "x".repeat(2_000);
    let pods = (0..PODS).map(|at| {
        let container = json!({"name": "c", "image": "example.com/c", "args": [large]});
        let volumes = json!([{"name": large, "emptyDir": {}},
            {"name": "b", "configMap": {"name": large}}]);
        let owners = json!([{"apiVersion": "v1", "kind": large, "name": "b", "uid": "b"},
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "a", "uid": "a",
                "controller": true}]);
        pod(
            &format!("pod-{at:02}"),
            &[
                ("metadata.labels", json!({"app": "web"})),
                ("metadata.annotations", json!({"a": large})),
                ("metadata.managedFields", json!([{"manager": large}])),
                ("metadata.ownerReferences", owners),
                ("spec.containers", json!([container])),
                ("spec.volumes", volumes),
                ("spec.priority", json!(7)),
                ("status.message", json!(large)),
            ],
        )
    });
    let server = ApiServer::with(pods.collect());
    let (settings, asked) = (server.settings(), Asked::default());
    let looks = (0..16).map(|_| look(&settings, "n", &asked, Time::default(), Course::default()));
    for left in futures::future::join_all(looks).await {
        let left = left.unwrap();
        assert_eq!(left.pods.len(), PODS);
        for (pod, fate) in &left.pods {
            assert_eq!(*fate, Fate::LosesStorage);
            let text = serde_json::to_string(pod).unwrap();
            assert!(text.len() < 1000 && text.contains(r#""app":"web""#), "{text}");
        }
        assert_eq!(left.next(false).len(), PODS);
    }
    let most = server.most.load(Ordering::SeqCst);
    assert!((1..=4).contains(&most), "{most} answers at a time");
    let lists = server.asked.lock().unwrap();
    assert_eq!(lists.len(), 16 * 3);
    assert!(lists.iter().all(|(_, query)| query.contains("limit=20")), "{lists:?}");
}

#[tokio::test]
async fn pods_that_come_back_to_a_cordoned_node_stay_once_they_could_be_evicted() {
    let made = |at: u64| ("metadata.creationTimestamp", json!(timestamp(second(at))));
    let web = ("metadata.labels", json!({"app": "web"}));
    let all = vec![
        pod("back", &[made(1061), web.clone()]),
        pod("ended", &[made(1061), ("status.phase", json!("Failed"))]),
        pod("going", &[made(1061), ("metadata.deletionTimestamp", json!("1970-01-01T01:00:00Z"))]),
        pod("soon", &[made(1060)]),
    ];
    let back = all[0].clone();
    let server = ApiServer::with(all);
    let (settings, mut asked) = (server.settings(), Asked::default());
    let until = Instant::now() + Duration::from_secs(600);
    let look = async |asked: &Asked| look(&settings, "n", asked, second(5000), course(asked)).await;
    let left = look(&asked).await.unwrap();
    assert_eq!(names(&left), [("going", Fate::Moves), ("soon", Fate::Unmanaged)]);
    let blocked = pass(&settings, &left, &asked, false, until).await;
    assert_eq!(blocked, [Blocked { pod: "a/back".to_owned(), by: Evicted::Stays }]);
    assert_eq!(server.evicted(), [("soon".to_owned(), false)]);
    // Once nothing else is left, its budgets are asked.
    *server.pods.lock().unwrap() = vec![back.clone()];
    let budget = json!({"causes": [{"reason": "DisruptionBudget"}]});
    *server.refusal.lock().unwrap() = Some(refusal(429, budget));
    let left = look(&asked).await.unwrap();
    assert_eq!(names(&left), [("back", Fate::CameBack)]);
    let blocked = pass(&settings, &left, &asked, false, until).await;
    let held = Evicted::CameBack(Box::new(Evicted::Blocked(vec!["web".to_owned()])));
    assert_eq!(blocked, [Blocked { pod: "a/back".to_owned(), by: held }]);
    assert_eq!(blocked[0].by.budgets(), ["web"]);
    assert!(server.evicted().iter().all(|(_, is_dry_run)| *is_dry_run));
    // Each of two could be evicted by itself, and the budget allows one at a time.
    *server.pods.lock().unwrap() = vec![back.clone(), pod("more", &[made(1061), web])];
    *server.refusal.lock().unwrap() = None;
    let left = look(&asked).await.unwrap();
    assert_eq!(names(&left), [("more", Fate::CameBack)]);
    let blocked = pass(&settings, &left, &asked, false, until).await;
    let held = Evicted::CameBack(Box::new(Evicted::Blocked(vec!["web".to_owned()])));
    assert!(blocked.contains(&Blocked { pod: "a/more".to_owned(), by: held }), "{blocked:?}");
    *server.pods.lock().unwrap() = vec![back];
    server.evicted();
    // Where pods are deleted by now, no budget counts: it would only come back again.
    (asked.timeout, asked.deletes) = (Some(Duration::from_secs(60)), true);
    assert!(look(&asked).await.unwrap().is_none());
    assert!(server.evicted().is_empty());
    asked = Asked::default();
    // Nobody knows what an API server would say that has too much to do.
    *server.refusal.lock().unwrap() = Some(refusal(503, Value::Null));
    assert_eq!(look(&asked).await.unwrap_err().code, 503);
    *server.refusal.lock().unwrap() = None;
    server.evicted();
    assert!(look(&asked).await.unwrap().is_none());
    assert_eq!(server.evicted(), [("back".to_owned(), true)]);
}

/// What a pass makes of the only pod there is, and how often evictions counted as errors by then.
async fn passed(server: &Arc<ApiServer>, settings: &Settings) -> (Vec<Evicted>, usize) {
    let (asked, until) = (Asked::default(), Instant::now() + Duration::from_secs(600));
    let left = look(settings, "n", &asked, Time::default(), Course::default()).await.unwrap();
    let blocked = pass(settings, &left, &asked, false, until).await;
    assert_eq!(server.evicted().len(), 1);
    let counted = settings.metrics.text().unwrap();
    let counted = counted.lines().find_map(|line| {
        let of_evictions = line.split_once("kind=\"evictions\",code=\"500\"} ")?;
        of_evictions.1.parse().ok()
    });
    (blocked.into_iter().map(|it| it.by).collect(), counted.unwrap_or_default())
}

#[tokio::test]
async fn a_pod_that_several_budgets_hold_is_named_with_them_and_is_no_error_of_the_api_server() {
    let server = ApiServer::with(vec![pod("web", &[("metadata.labels", json!({"app": "web"}))])]);
    *server.refusal.lock().unwrap() = Some(refusal(500, Value::Null));
    server.budgets.lock().unwrap().push(budget("web-too"));
    let settings = server.settings();
    let both = Evicted::Never(vec!["web".to_owned(), "web-too".to_owned()]);
    for _ in 0..3 {
        assert_eq!(passed(&server, &settings).await, (vec![both.clone()], 0));
    }
    // Where one alone holds it, something is wrong with the API server.
    server.budgets.lock().unwrap().clear();
    let says = vec![Evicted::Failed("no".to_owned())];
    assert_eq!(passed(&server, &settings).await, (says.clone(), 1));
    assert_eq!(passed(&server, &settings).await, (says, 2));
}

#[tokio::test]
async fn a_budget_that_cannot_be_read_hides_none_of_the_others() {
    let server = ApiServer::with(vec![pod("web", &[("metadata.labels", json!({"app": "web"}))])]);
    let held = json!({"causes": [{"reason": "DisruptionBudget"}]});
    *server.refusal.lock().unwrap() = Some(refusal(429, held));
    let mut odd = budget("odd");
    // Later than any time that can be read here.
    odd["metadata"]["managedFields"] = json!([{"manager": "m", "time": "9999-12-31T23:59:59Z"}]);
    server.budgets.lock().unwrap().push(odd);
    let settings = server.settings();
    let blocked = Evicted::Blocked(vec!["web".to_owned()]);
    assert_eq!(passed(&server, &settings).await, (vec![blocked], 0));
    // Of a pod that none of the others holds nobody knows whether that one does.
    let others = pod("db", &[("metadata.labels", json!({"app": "db"}))]);
    *server.pods.lock().unwrap() = vec![others];
    assert_eq!(passed(&server, &settings).await, (vec![Evicted::Failed("no".to_owned())], 0));
}
