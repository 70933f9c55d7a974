//! What is listed where some of it cannot be read.

use crate::replica::{NAMESPACE, Replica};
use crate::story::{self, cluster_of_nothing, config, plan, written};
use kube::ResourceExt as _;
use serde_json::{Value, json};
use tread_kube::api::crds;
use tread_test_bed::{ControlPlane, eventually};

/// Takes away what the API server checks of a spec, applies objects, and brings
/// it back: as if an older or newer definition had let them in.
async fn let_in(plane: &ControlPlane, kind: &str, objects: &[&str]) {
    let all = crds::crds();
    let strict = all.iter().find(|crd| crd.spec.names.kind == kind).unwrap();
    let mut loose = serde_json::to_value(strict).unwrap();
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    loose["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = schema;
    loose["spec"]["versions"][0]["selectableFields"] = Value::Null;
    plane.apply(&loose.to_string()).unwrap();
    for object in objects {
        eventually("it is taken", async || plane.apply(object).ok()).await;
    }
    plane.apply(&serde_json::to_string(strict).unwrap()).unwrap();
}

/// What `tread` prints, once the API server serves what was defined anew.
async fn tread(plane: &ControlPlane, args: &[&str]) -> (i32, String, String) {
    eventually("the API server serves it", async || {
        let (code, out, err) = story::tread(plane, args);
        (!err.contains("storage is (re)initializing")).then_some((code, out, err))
    })
    .await
}

/// What tread serves to whoever has its token.
async fn served(replica: &Replica<'_>, path: &str) -> Vec<Value> {
    let plane = replica.plane;
    let token = plane.kubectl(&["-n", NAMESPACE, "create", "token", "tread"]).unwrap();
    let token = format!("--token={}", token.success().unwrap().trim());
    let server = format!("--server=https://{}", replica.tls);
    // By a kubeconfig without certificates of its own.
    let nothing = written("nothing-of-it.yaml", "apiVersion: v1\nkind: Config\n");
    let kubeconfig = format!("--kubeconfig={}", nothing.display());
    let ask = ["get", "--raw", path, &server, "--insecure-skip-tls-verify", &token, &kubeconfig];
    // On a busy machine the API server may take too long to say who asks.
    let answer = eventually("its answer", async || plane.kubectl(&ask).unwrap().success().ok());
    let answer: Value = serde_json::from_str(&answer.await).unwrap();
    answer["items"].as_array().unwrap_or_else(|| panic!("{answer}")).clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_cannot_be_read_is_listed_with_its_field_and_hides_no_other() {
    let plane = ControlPlane::start().unwrap();
    let replica = cluster_of_nothing(&plane).await;
    let odd = r#"{"apiVersion": "tread.dev/v1alpha1", "kind": "DisruptionPolicy",
        "metadata": {"name": "odd"},
        "spec": {"mode": "Sometimes", "rules": [{"match": ["file:/etc/odd"], "actions": []}]}}"#;
    let deep = (0..150).fold(json!(1), |inside, _| json!({"a": inside}));
    let deep = json!({"apiVersion": "tread.dev/v1alpha1", "kind": "DisruptionPolicy",
        "metadata": {"name": "deep"}, "spec": {"source": {"builtin": "no"}, "settings": deep}});
    let_in(&plane, "DisruptionPolicy", &[odd, &deep.to_string()]).await;
    plane.apply(&config("50-a", "a", "1")).unwrap();
    let good = plan(&plane, "MachineConfig/50-a created").await;
    let strange = r#"{"apiVersion": "tread.dev/v1alpha1", "kind": "DisruptionPlan",
        "metadata": {"name": "strange"},
        "spec": {"pool": "worker", "cause": {"kind": "Node", "name": "a", "event": "Exploded"}}}"#;
    let_in(&plane, "DisruptionPlan", &[strange]).await;

    let (_, policies, _) = eventually("all know it", async || {
        let (code, out, err) = tread(&plane, &["policies", "--cluster"]).await;
        assert_eq!(code, 0, "{out}{err}");
        let names_it = |text: &str| text.contains("spec.mode cannot be read: unknown variant");
        assert!(names_it(&err) && err.contains("deep: it is nested more than 100"), "{out}{err}");
        // The service says so by itself.
        names_it(&out).then_some((code, out, err))
    })
    .await;
    let row = |name: &str| policies.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert!(row("odd ").contains(" Invalid "), "{policies}");
    assert!(row("deep ").contains(" Invalid "), "{policies}");
    assert!(row("registries ").contains(" Loaded "), "{policies}");
    let (code, out, err) = tread(&plane, &["policies", "--cluster", "-o", "json"]).await;
    assert_eq!((code, err.contains("spec.mode")), (0, true), "{err}");
    let printed: Vec<Value> = serde_json::from_str(&out).unwrap();
    for all in [printed, served(&replica, "/v1/policies").await] {
        assert_eq!(all.len(), 9, "{all:#?}");
        let named = |name: &str| all.iter().find(|it| it["metadata"]["name"] == name).unwrap();
        assert_eq!(named("odd")["status"]["state"], "Invalid");
        assert_eq!(named("odd")["spec"]["mode"], "Sometimes");
        let loaded = &named("odd")["status"]["conditions"][0];
        assert!(loaded["message"].as_str().unwrap().contains("spec.mode"), "{loaded}");
        assert_eq!(named("deep")["status"]["state"], "Invalid");
    }

    let (code, out, err) = tread(&plane, &["plans"]).await;
    assert!(code == 0 && out.contains(&good.name_any()), "{out}{err}");
    assert!(out.lines().any(|line| line.starts_with("strange ")), "{out}");
    assert!(err.contains("plan strange: spec.cause.event cannot be read"), "{err}");
    let (code, out, err) = tread(&plane, &["plans", "strange", "-o", "json"]).await;
    assert!(code == 0 && err.contains("spec.cause.event"), "{err}");
    let one: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(one["spec"]["cause"]["event"], "Exploded");
    let (code, _, err) = tread(&plane, &["plans", &good.name_any()]).await;
    assert_eq!((code, err.as_str()), (0, ""));
    let served = served(&replica, "/v1/plans").await;
    assert!(served.iter().any(|it| it["name"] == good.name_any()), "{served:#?}");

    // Nor does it keep anybody from asking.
    let file = written("listed.yaml", &config("60-b", "b", "1"));
    let (code, out, err) = tread(&plane, &["plan", "-f", file.to_str().unwrap()]).await;
    assert_eq!(code, 0, "{out}{err}");
}
