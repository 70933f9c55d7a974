//! Two installations in one cluster, one without its rights, one where it must not act, and one that goes and comes again.

use crate::replica::{NAMESPACE, Replica, free, install, install_enforcing};
use crate::story::{allow, another, cluster_of_nothing, component, map, policy, put, ship};
use crate::support::Bench;
use serde_json::json;
use std::process::Command;
use tread_model::digest::Sha256;
use tread_test_bed::{ControlPlane, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn a_second_installation_takes_nothing_waits_and_says_for_whom() {
    const SECOND: &str = "tread-two";
    let plane = ControlPlane::start().unwrap();
    let first_at = free();
    install(&plane, &first_at);
    let first = Replica::start(&plane);
    first.ready().await;
    eventually("it leads", async || first.leads().await.then_some(())).await;
    let outside = format!("https://{}", free());
    let args = ["manifests", "--with-inputs", "--namespace", SECOND, "--outside", &outside];
    plane.apply(&Bench::new().tread(&args).out()).unwrap();
    let second = Replica::start_in(&plane, SECOND, &[]);
    let text = eventually("it says whom it met", async || {
        let (status, text) = second.get("/readyz").await?;
        let said =
            format!("failed leader: another tread is installed in the namespace {NAMESPACE}");
        (status == 503 && text.contains(&said)).then_some(text)
    })
    .await;
    assert!(text.contains("so this one writes nothing until that is removed"), "{text}");
    assert!(second.log().contains("another tread is installed"), "{}", second.log());
    // The first one has all that it had.
    let webhook = format!("validatingwebhookconfiguration/tread.{NAMESPACE}");
    let url = ["get", &webhook, "-o", "jsonpath={.webhooks[0].clientConfig.url}"];
    let url = plane.kubectl(&url).unwrap().success().unwrap();
    assert!(url.contains(&first_at.to_string()), "{url}");
    ship(&plane).await;
    policy(&plane, "apps.ours", "Loaded").await;
    first.ready().await;
    assert!(!second.leads().await);

    // Where none runs any more, the next one goes on.
    plane.stop(&first.name).unwrap();
    let label = ["label", "namespace", NAMESPACE, "app.kubernetes.io/part-of-"];
    plane.kubectl(&label).unwrap().success().unwrap();
    second.ready().await;
    eventually("it leads", async || second.leads().await.then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_whose_roles_forbid_what_it_writes_is_not_ready_and_says_so() {
    let plane = ControlPlane::start().unwrap();
    install(&plane, &free());
    let role = format!("clusterrole/tread.{NAMESPACE}");
    let rules = ["get", &role, "-o", "jsonpath={.rules}"];
    let rules = plane.kubectl(&rules).unwrap().success().unwrap();
    let less = rules.replace("\"disruptionpolicies/status\"", "\"nothing\"");
    assert_ne!(less, rules);
    let patch = |rules: &str| {
        let rules = format!("{{\"rules\":{rules}}}");
        let args = ["patch", &role, "--type", "merge", "-p", &rules];
        plane.kubectl(&args).unwrap().success().unwrap();
    };
    patch(&less);
    let replica = Replica::start(&plane);
    eventually("it says so", async || {
        let (status, text) = replica.get("/readyz").await?;
        let line = text.lines().find(|line| line.starts_with("failed writes: forbidden: "))?;
        (status == 503 && line.contains("disruptionpolicies/status")).then_some(())
    })
    .await;
    patch(&rules);
    replica.ready().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_diff_before_an_upgrade_shows_what_changes_and_not_the_secret_path() {
    let plane = ControlPlane::start().unwrap();
    let replica = cluster_of_nothing(&plane).await;
    let readme = crate::support::tree().join("examples/install/README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    let documented = readme.lines().find(|line| line.contains("KUBECTL_EXTERNAL_DIFF")).unwrap();
    let tread = format!("{} manifests --with-inputs", env!("CARGO_BIN_EXE_tread"));
    let here = documented.trim().replacen("tread manifests", &tread, 1);
    let here = here.replace("https://192.0.2.1:8443", &format!("https://{}", replica.tls));
    let (manifests, diff) = here.split_once(" | ").unwrap();
    let run = |diff: &str| {
        let mut shell = Command::new("sh");
        plane.prepare(&mut shell);
        let ran = shell.args(["-c", &format!("{manifests} | {diff}")]).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (ran.status.code(), text(&ran.stdout), text(&ran.stderr))
    };
    // What it leaves out is there.
    let (_, plain, err) = run("kubectl diff -f -");
    assert!(plain.contains("/warn/"), "{plain}{err}");
    let (code, out, err) = run(diff);
    assert_eq!((code, out.as_str()), (Some(0), ""), "{err}");
    let role = format!("clusterrole/tread.{NAMESPACE}");
    let patch = ["patch", &role, "--type=merge", "-p", r#"{"rules":[]}"#];
    plane.kubectl(&patch).unwrap().success().unwrap();
    let (code, out, err) = run(diff);
    assert!(code == Some(1) && out.contains("+- apiGroups:"), "{out}{err}");
    assert!(!out.contains("/warn/"), "{out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn enforce_refuses_to_start_where_openshifts_operator_rolls_out() {
    const DAEMON: &str = "machine-config-daemon";
    const ITS: &str = "openshift-machine-config-operator";
    let plane = ControlPlane::start().unwrap();
    install_enforcing(&plane);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ITS}});
    plane.apply(&namespace.to_string()).unwrap();
    let labels = json!({"app": DAEMON});
    let daemon = json!({"apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": DAEMON, "namespace": ITS},
        "spec": {"selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "one", "image": "one"}]}}}});
    plane.apply(&daemon.to_string()).unwrap();
    let agents = free().to_string();
    let enforce = ["--mode=enforce", "--listen-agents", &agents];
    let replica = Replica::start_so(&plane, NAMESPACE, &[], &enforce);
    let end = eventually("it ends", async || plane.ended(&replica.name).unwrap()).await;
    let log = replica.log();
    assert_eq!(end, "exit status 1", "{log}");
    for part in
        [DAEMON, ITS, "so tread does nothing on any node", "or run tread in the mode advise"]
    {
        assert!(log.contains(part), "{part}: {log}");
    }
    // Where it is gone, it starts.
    plane.kubectl(&["delete", "daemonset", DAEMON, "-n", ITS]).unwrap().success().unwrap();
    let replica = Replica::start_so(&plane, NAMESPACE, &[], &enforce);
    eventually("it is up", async || {
        if let Some(end) = plane.ended(&replica.name).unwrap() {
            panic!("{end}\n{}", replica.log());
        }
        replica.get("/readyz").await.filter(|(_, text)| !text.contains("failed start: "))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_admin_said_of_policies_outlives_a_removal_that_keeps_the_definitions() {
    // Whoever removes a namespace waits for those.
    let plane = ControlPlane::options().with_controllers().start().unwrap();
    let at = free();
    install(&plane, &at);
    let replica = Replica::start(&plane);
    replica.ready().await;
    allow(&plane);
    let kubectl = |args: &[&str]| plane.kubectl(args).unwrap().success().unwrap();
    kubectl(&["annotate", "namespace", "apps", "tread.dev/claims=file:/nobody"]);
    let good = component("acts.wasm");
    let pin = Sha256::of(&good).to_string();
    let said = [
        ("pinned", json!({"approved": true, "digest": pin}), "Loaded"),
        ("approved", json!({"approved": true}), "Loaded"),
        ("off", json!({"mode": "Disabled"}), "Disabled"),
        ("unsaid", json!({}), "NeedsApproval"),
    ];
    for (name, spec, state) in &said {
        put(&plane, name).await;
        let object = format!("apps.{name}");
        policy(&plane, &object, "NeedsApproval").await;
        let spec = json!({ "spec": spec }).to_string();
        kubectl(&["patch", "dpol", &object, "--type=merge", "-p", &spec]);
        policy(&plane, &object, state).await;
    }
    let get = |name: &str, path: &str| {
        let path = format!("jsonpath={path}");
        kubectl(&["get", "dpol", &format!("apps.{name}"), "-o", &path])
    };
    let before = said.each_ref().map(|(name, ..)| get(name, "{.metadata.uid} {.spec}"));

    plane.stop(&replica.name).unwrap();
    let outside = format!("https://{at}");
    let keeps = ["manifests", "--without-definitions", "--outside", &outside];
    let delete = ["delete", "--ignore-not-found", "-f", "-"];
    let removed = Bench::new().tread(&keeps).out();
    plane.admin().kubectl_with_input(&delete, &removed).unwrap().success().unwrap();
    assert_ne!(plane.kubectl(&["get", "namespace", NAMESPACE]).unwrap().code, 0);
    for ((name, ..), before) in said.iter().zip(&before) {
        assert_eq!(get(name, "{.metadata.uid} {.spec}"), *before, "{name}");
    }

    install(&plane, &at);
    let again = Replica::start(&plane);
    again.ready().await;
    // By another version of each it is seen who still says what.
    let other = another(&good);
    let digest = Sha256::of(&other).to_string();
    for (name, ..) in &said {
        plane.apply(&serde_json::to_string(&map(name, other.clone())).unwrap()).unwrap();
    }
    let newest = "{.status.newestDigest} {.status.digest} {.status.state}";
    let decides = format!("{digest} {digest} Loaded");
    eventually("approved holds", async || (get("approved", newest) == decides).then_some(())).await;
    let reason = "{.status.conditions[?(@.type==\"Loaded\")].reason}";
    let refused = "DigestMismatch";
    eventually("the pin holds", async || (get("pinned", reason) == refused).then_some(())).await;
    assert_ne!(get("pinned", "{.status.digest}"), digest);
    eventually("nobody approved it", async || {
        let state = get("unsaid", "{.status.newestDigest} {.status.state}");
        (state == format!("{digest} NeedsApproval")).then_some(())
    })
    .await;
    assert_eq!(get("off", "{.status.state}"), "Disabled");
    for ((name, ..), before) in said.iter().zip(&before) {
        assert_eq!(get(name, "{.metadata.uid} {.spec}"), *before, "{name}");
    }
}
