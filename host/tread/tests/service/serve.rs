//! `tread serve` as it is installed: with the rights of `tread manifests` and no
//! more, against a real API server, whatever happens to the processes.

use crate::replica::{NAMESPACE, Replica, free, install, install_enforcing, installed};
use crate::story::tread;
use crate::support::Bench;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use serde_json::Value;
use tread_test_bed::{ControlPlane, Part, Signal, eventually};

/// Two replicas, the one that leads before the other: on a busy machine the first one may have stood
/// still, so that the second one leads.
async fn leader_first<'r, 'p>(
    one: &'r Replica<'p>,
    other: &'r Replica<'p>,
) -> (&'r Replica<'p>, &'r Replica<'p>) {
    eventually("one of two leads", async || match (one.leads().await, other.leads().await) {
        (true, false) => Some((one, other)),
        (false, true) => Some((other, one)),
        _ => None,
    })
    .await
}

async fn holder(plane: &ControlPlane) -> Option<String> {
    let api: Api<Lease> = Api::namespaced(plane.client().await.unwrap(), NAMESPACE);
    api.get_opt("tread").await.unwrap()?.spec?.holder_identity
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rights_of_the_manifests_are_enough_and_one_of_two_replicas_leads() {
    let plane = ControlPlane::options().with_audit_log().start().unwrap();
    install(&plane, &free());
    let a = Replica::start(&plane);
    a.ready().await;
    eventually("it leads", async || a.leads().await.then_some(())).await;
    install(&plane, &a.tls);
    let b = Replica::start(&plane);
    b.ready().await;
    leader_first(&a, &b).await;
    eventually("it is asked", async || {
        a.get("/readyz").await.filter(|(_, text)| text.contains("warnings are asked for"))
    })
    .await;
    let config = "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\n\
                  metadata: {name: 99-a}\nspec: {}\n";
    eventually("the webhook answers", async || {
        plane.apply(config).unwrap();
        plane.kubectl(&["delete", "mc", "99-a"]).unwrap().success().unwrap();
        let (_, text) = a.get("/metrics").await.unwrap();
        (!text.contains("tread_warning_time_seconds_count 0")).then_some(())
    })
    .await;
    // The log is for machines, and nothing was refused.
    for line in a.log().lines() {
        let line: Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(line["level"].is_string() && line["message"].is_string(), "{line}");
    }
    let audit = std::fs::read_to_string(plane.audit_log()).unwrap();
    let refused: Vec<&str> = audit
        .lines()
        .filter(|line| {
            line.contains("serviceaccount:tread-system:tread") && line.contains("\"code\":403")
        })
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
    // One that is told to stop lets the other lead at once, and ends well.
    let (leads, other) = leader_first(&a, &b).await;
    plane.signal(&leads.name, Signal::Terminate).unwrap();
    eventually("the other leads", async || other.leads().await.then_some(())).await;
    let end = eventually("it ends", async || plane.ended(&leads.name).unwrap()).await;
    let log = leads.log();
    for said in ["gave the Lease up", "\"stopped\"", "\"span\":{\"name\":\"certificates\"}"] {
        assert!(log.contains(said), "{end}\n{log}");
    }
    assert!(!log.contains("error: "), "{end}\n{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_replica_leads_when_one_is_killed_or_paused() {
    let plane = installed();
    let one = Replica::start(&plane);
    one.ready().await;
    let other = Replica::start(&plane);
    other.ready().await;
    let (a, b) = leader_first(&one, &other).await;
    let first = holder(&plane).await.unwrap();
    plane.signal(&a.name, Signal::Stop).unwrap();
    eventually("the other leads", async || b.leads().await.then_some(())).await;
    assert_ne!(holder(&plane).await.unwrap(), first);
    // When it goes on it knows that its time is over.
    plane.signal(&a.name, Signal::Continue).unwrap();
    let (b, a) = leader_first(b, a).await;
    eventually("it follows", async || {
        a.get("/readyz").await.filter(|(status, text)| {
            *status == 200 && text.contains(" leads\n") && !text.contains("this replica leads")
        })
    })
    .await;
    plane.signal(&b.name, Signal::Kill).unwrap();
    eventually("the other leads again", async || a.leads().await.then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_api_server_it_waits_says_why_and_catches_up() {
    let plane = ControlPlane::start().unwrap();
    install(&plane, &free());
    let a = Replica::start(&plane);
    a.ready().await;
    plane.kill(Part::ApiServer).unwrap();
    let text = eventually("not ready", async || {
        let (status, text) = a.get("/readyz").await?;
        (status == 503 && text.contains("not up to date: ")).then_some(text)
    })
    .await;
    assert!(text.lines().any(|line| line.starts_with("failed leader: ")), "{text}");
    assert!(text.contains("ok watches: everything was listed; not up to date: "), "{text}");
    assert_eq!(a.get("/healthz").await.unwrap().0, 200);
    eventually("it leads no longer", async || (!a.leads().await).then_some(())).await;
    plane.restart(Part::ApiServer).unwrap();
    a.ready().await;
    eventually("it leads again", async || a.leads().await.then_some(())).await;
    let (_, metrics) = a.get("/metrics").await.unwrap();
    assert!(
        metrics.contains("tread_api_errors_total{verb=\"update\",kind=\"leases\""),
        "{metrics}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_begins_in_mode_enforce_waits_for_an_api_server_and_says_so() {
    let plane = ControlPlane::start().unwrap();
    install_enforcing(&plane);
    let access = plane.service_account(NAMESPACE, "tread").unwrap();
    plane.kill(Part::ApiServer).unwrap();

    let agents = free().to_string();
    let enforce = ["--mode=enforce", "--listen-agents", &agents];
    let starts = || Replica::start_as(&plane, &access, NAMESPACE, &[], &enforce);
    let says = async |replica: &Replica<'_>| {
        eventually("it says for whom it waits", async || {
            let (status, text) = replica.get("/readyz").await?;
            (status == 503 && text.contains("failed start: ") && !text.contains("it begins"))
                .then_some(text)
        })
        .await
    };
    let stopped = starts();
    says(&stopped).await;
    plane.signal(&stopped.name, Signal::Terminate).unwrap();
    let end = eventually("it ends", async || plane.ended(&stopped.name).unwrap()).await;
    assert_eq!(end, "exit status 0", "{}", stopped.log());

    let replica = starts();
    says(&replica).await;
    assert_eq!(replica.get("/healthz").await.unwrap().0, 200);
    let (_, metrics) = replica.get("/metrics").await.unwrap();
    assert!(metrics.contains("tread_api_errors_total{verb=\"get\",kind=\"version\""), "{metrics}");
    plane.restart(Part::ApiServer).unwrap();
    replica.ready().await;
    eventually("it leads", async || replica.leads().await.then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_rights_it_says_which_are_missing() {
    let plane = ControlPlane::start().unwrap();
    plane.kubectl(&["create", "namespace", NAMESPACE]).unwrap().success().unwrap();
    let a = Replica::start(&plane);
    let text = eventually("not ready", async || {
        let (status, text) = a.get("/readyz").await?;
        // Each part is told by itself.
        (status == 503 && text.contains("leases.coordination.k8s.io")).then_some(text)
    })
    .await;
    assert!(text.contains("forbidden"), "{text}");
    // What is granted later is enough.
    install(&plane, &free());
    a.ready().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_installed_or_asked_elsewhere_is_named_with_what_to_do() {
    let plane = ControlPlane::start().unwrap();
    let said = async |replica: &Replica<'_>, status: u16, parts: &[&str]| {
        eventually(&parts.join(", "), async || {
            let (is, text) = replica.get("/readyz").await?;
            (is == status && parts.iter().all(|part| text.contains(part))).then_some(text)
        })
        .await
    };
    let apply = |args: &[&str]| {
        let args = [&["manifests"][..], args].concat();
        plane.apply(&Bench::new().tread(&args).out()).unwrap();
    };
    apply(&["--without-definitions", "--outside", "https://localhost:1"]);
    let replica = Replica::start(&plane);
    said(
        &replica,
        503,
        &[
            "failed policies: none can be listed, so nobody decides: their definition is not",
            "failed definitions: not installed: bootimages, disruptionplans, disruptionpolicies: apply",
        ],
    )
    .await;

    // Nothing that nodes follow, and the API server asks at another name.
    let at = format!("https://localhost:{}", replica.tls.port());
    apply(&["--outside", &at]);
    let text = said(
        &replica,
        200,
        &[
            "ok watches: everything was listed; not installed: machineconfigpools, machineconfigs, so",
            "ok certificate: nobody is warned: the API server asks at localhost, and",
            "start tread with --tls-name localhost",
            "ok definitions: the API server keeps",
        ],
    )
    .await;
    assert!(!text.contains("warnings are asked for"), "{text}");
    let (code, out, err) = tread(&plane, &["plans"]);
    assert_eq!((code, out.as_str()), (0, ""), "{err}");
    assert!(err.contains("this cluster knows no MachineConfigPool"), "{err}");

    install(&plane, &replica.tls);
    let text = said(&replica, 200, &["warnings are asked for", "everything was listed\n"]).await;
    assert!(!text.contains("not installed"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_it_at_once() {
    let plane = ControlPlane::start().unwrap();
    install(&plane, &free());
    let a = Replica::start(&plane);
    a.ready().await;
    // Giving up the Lease takes its time with an API server that is silent.
    let pause = plane.pause(Part::ApiServer).unwrap();
    plane.signal(&a.name, Signal::Terminate).unwrap();
    eventually("it stops", async || {
        a.log().contains("another signal ends it at once").then_some(())
    })
    .await;
    plane.signal(&a.name, Signal::Terminate).unwrap();
    eventually("it ends", async || plane.ended(&a.name).unwrap()).await;
    assert!(a.log().contains("ends at once\""), "{}", a.log());
    assert!(!a.log().contains("\"stopped\""), "{}", a.log());
    pause.resume().unwrap();
}
