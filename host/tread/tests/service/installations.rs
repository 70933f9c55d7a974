//! Two installations in one cluster, and one without its rights.

use crate::replica::{NAMESPACE, Replica, free, install};
use crate::story::{cluster, policy, ship};
use crate::support::Bench;
use std::process::Command;
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
    let replica = cluster(&plane).await;
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
