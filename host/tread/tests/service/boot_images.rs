//! `tread bootimages` against a real API server.

use crate::openshift::{apply, kubectl};
use crate::replica::{MACHINES, NAMESPACE, OPERATOR, Replica, free, installed};
use crate::story::{cluster, tread, warned};
use crate::support::Bench;
use serde_json::{Value, json};
use tread_kube::api::{crds, machines};
use tread_test_bed::{ControlPlane, eventually};

/// A cluster of OpenShift on AWS with two MachineSets, one of an old image.
fn openshift() -> ControlPlane {
    let plane = installed();
    let apply = |object: Value| apply(&plane, &object);
    apply(json!({"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion",
        "metadata": {"name": "version"}, "spec": {}}));
    let status = json!({"status": {"history": [
        {"state": "Completed", "version": "4.21.9"}, {"state": "Completed", "version": "4.12.0"}]}});
    let patch =
        ["patch", "clusterversion", "version", "--subresource=status", "--type=merge", "-p"];
    kubectl(&plane, &[&patch[..], &[status.to_string().as_str()]].concat());
    let stream = crate::support::tree().join("tests/cases/boot-images/stream.json");
    apply(json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "coreos-bootimages", "namespace": OPERATOR},
        "data": {"stream": std::fs::read_to_string(stream).unwrap(), "releaseVersion": "4.21.9",
            "MCOReleaseImageVersion": "4.21.9"}}));
    for (name, ami, annotations) in [
        ("worker-a", "ami-0554dc0c838511ba9", json!({})),
        (
            "worker-b",
            "ami-'old\u{1b}[31m",
            json!({"tread.dev/boot-image": "412.86.202308081056-0"}),
        ),
    ] {
        apply(json!({"apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet",
        "metadata": {"name": name, "namespace": MACHINES, "annotations": annotations},
        "spec": {"replicas": 1, "template": {"spec": {"providerSpec": {"value": {
            "kind": "AWSMachineProviderConfig", "ami": {"id": ami},
            "placement": {"region": "eu-west-1"}, "userDataSecret": {"name": "worker-user-data"},
        }}}}}}));
    }
    plane
}

/// The user data that new machines get.
fn user_data(plane: &ControlPlane, stub: &str) {
    plane
        .apply(
            &json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "worker-user-data", "namespace": MACHINES},
            "stringData": {"userData": stub}})
            .to_string(),
        )
        .unwrap();
}

#[test]
fn an_admin_lists_checks_and_patches_by_what_tread_prints() {
    let plane = openshift();
    let ran = |args: &[&str]| tread(&plane, &[&["bootimages"], args].concat());
    let (code, out, err) = ran(&["-o", "wide"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let rows: Vec<&str> = out.lines().collect();
    assert!(rows[1].contains("worker-b") && rows[1].contains("BelowLimit"), "{out}");
    assert!(rows[2].contains("worker-a") && rows[2].contains("Catalogue"), "{out}");
    assert!(out.contains("holds nothing up in this release"), "{out}");
    assert!(!out.contains('\u{1b}'), "{out:?}");
    let (_, out, _) = ran(&["-o", "json"]);
    let listed: Value = serde_json::from_str(&out).unwrap();
    let oldest = &listed["items"][0]["version"];
    assert_eq!(oldest, "412.86.202308081056-0 (OpenShift 4.12.0, RHEL 8.6)");
    assert_eq!(listed["verdict"]["verdict"], "Warns", "{listed}");
    assert!(listed["verdict"]["message"].as_str().unwrap().contains("worker-b"), "{listed}");

    // Now it only warns; the next release would hold updates back.
    assert_eq!(ran(&["check"]).0, 0);
    let (code, out, _) = ran(&["check", "--to", "4.22.0"]);
    assert_eq!(code, 3, "{out}");
    assert!(out.contains("worker-b") && out.contains("OpenShift 4.13.0, RHEL 9.2"), "{out}");
    let (code, out, _) = ran(&["check", "--to", "4.22", "-o", "json"]);
    let checked: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &checked["reason"]), (3, &json!("BelowLimit")));
    assert_eq!(ran(&["check", "--to", "soon"]).0, 2);

    // User data that a new image could not boot with comes first, and is not shown.
    user_data(
        &plane,
        r#"{"ignition": {"version": "2.2.0", "config": {"append": [{"source": "s3cret"}]}}}"#,
    );
    let (code, out, err) = ran(&["patch", "worker-b"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.starts_with("# First: ") && out.contains("Ignition 2"), "{out}");
    assert!(!out.contains("s3cret") && !out.contains('\u{1b}'), "{out:?}");
    user_data(&plane, r#"{"ignition": {"version": "3.2.0"}}"#);
    let (_, out, _) = ran(&["patch", "worker-b"]);
    assert_eq!(out.lines().count(), 1, "{out}");
    let mut shell = std::process::Command::new("sh");
    plane.prepare(&mut shell);
    let patched = shell.args(["-c", &out]).output().unwrap();
    assert!(patched.status.success(), "{}", String::from_utf8_lossy(&patched.stderr));
    let remove = [
        "-n",
        MACHINES,
        "annotate",
        "machinesets.machine.openshift.io",
        "worker-b",
        "tread.dev/boot-image-",
    ];
    plane.kubectl(&remove).unwrap().success().unwrap();
    let (code, out, _) = ran(&["check", "--to", "4.22.0"]);
    assert_eq!(code, 0, "{out}");
    let (_, _, err) = ran(&["patch", "worker-z"]);
    assert!(err.contains("there is no machine resource worker-z"), "{err}");
}

#[test]
fn where_there_is_nothing_to_judge_or_nothing_may_be_read_it_is_said() {
    let plane = ControlPlane::start().unwrap();
    for args in [&["bootimages"][..], &["bootimages", "check", "--to", "4.22.0"]] {
        let (code, out, err) = tread(&plane, args);
        assert_eq!((code, err.as_str()), (0, ""), "{out}");
        assert!(out.starts_with("There is nothing to judge"), "{out}");
        assert_eq!(out.lines().count(), 1, "{out}");
    }
    // What is recorded is held against the limit of a release, and against none without.
    plane.define(&crds::crds()).unwrap();
    let recorded = json!({"apiVersion": "tread.dev/v1alpha1", "kind": "BootImages",
        "metadata": {"name": "cluster"},
        "spec": {"mode": "Manual", "manual": {"mode": "OCPVersion", "ocpVersion": "4.12.0"}}});
    plane.apply(&recorded.to_string()).unwrap();
    let (code, out, _) = tread(&plane, &["bootimages"]);
    assert!(code == 0 && out.starts_with("Whether the boot images are too old is not"), "{out}");
    assert!(out.contains("check --to VERSION"), "{out}");
    let (code, out, _) = tread(&plane, &["bootimages", "check", "--to", "4.22.0"]);
    assert!(code == 3 && out.starts_with("Boot images are too old"), "{out}");

    let nobody = plane.impersonate("nobody", &[]).unwrap();
    for args in [&["bootimages"][..], &["bootimages", "-o", "json"], &["bootimages", "check"]] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tread"));
        nobody.prepare(&mut command);
        let ran = command.args(args).output().unwrap();
        let err = String::from_utf8_lossy(&ran.stderr);
        assert_eq!((ran.status.code(), ran.stdout.as_slice()), (Some(1), &b""[..]), "{err}");
        assert!(
            err.contains(" more, by which") && err.contains("ClusterRole tread-read.tread-"),
            "{err}"
        );
        assert_eq!(err.lines().count(), 1, "{err}");
    }
}

#[test]
fn what_cannot_be_told_ends_with_one_and_says_why() {
    let plane = openshift();
    let name = "machinesets.machine.openshift.io";
    plane
        .kubectl(&["-n", MACHINES, "annotate", name, "worker-b", "tread.dev/boot-image-"])
        .unwrap()
        .success()
        .unwrap();
    let patch = r#"{"data": {"MCOReleaseImageVersion": "4.21.8"}}"#;
    let map = ["-n", OPERATOR, "patch", "configmap", "coreos-bootimages"];
    plane.kubectl(&[&map[..], &["--type=merge", "-p", patch]].concat()).unwrap().success().unwrap();
    let (code, out, _) = tread(&plane, &["bootimages", "check", "--to", "4.22.0"]);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("not stamped for 4.21.9"), "{out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_judges_with_its_own_rights_and_warns_whoever_makes_old_machines() {
    let plane = openshift();
    let replica = cluster(&plane).await;
    let get = ["get", "bimg", "cluster", "-o", "json"];
    let status = eventually("the images are judged", async || {
        let ran = plane.kubectl(&get).unwrap();
        let object: Value = serde_json::from_str(&ran.stdout).ok()?;
        let conditions = object["status"]["conditions"].as_array()?.clone();
        let within = conditions.into_iter().find(|it| it["type"] == "SkewWithinLimit")?;
        (within["reason"] == "BelowLimit").then(|| object["status"].clone())
    })
    .await;
    assert_eq!(status["count"], 2, "{status}");

    let old = json!({"apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet",
    "metadata": {"name": "worker-c", "namespace": MACHINES},
    "spec": {"replicas": 1, "template": {"spec": {"providerSpec": {"value": {
        "kind": "GCPMachineProviderSpec",
        "disks": [{"boot": true, "image": "rhcos-412-86-202308081056-0-gcp-x86-64"}],
    }}}}}});
    let said = warned(&plane, &old.to_string(), "boots new machines from an image").await;
    assert!(said.contains("openshift-machine-api/worker-c"), "{said}");
    let update = json!({"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion",
        "metadata": {"name": "version"}, "spec": {"desiredUpdate": {"version": "4.22.0"}}});
    let said = warned(&plane, &update.to_string(), "too old for 4.22.0").await;
    assert!(said.contains("openshift-machine-api/worker-b"), "{said}");

    let (_, metrics) = replica.get("/metrics").await.unwrap();
    assert!(metrics.contains("tread_boot_images{verdict=\"Warns\"} 1"), "{metrics}");
    let forbidden = metrics.lines().find(|line| line.contains("code=\"403\""));
    assert_eq!(forbidden, None, "its own rights are enough");
}

/// The service with the rights that these manifests give it.
async fn serving<'a>(plane: &'a ControlPlane, more: &[&str]) -> Replica<'a> {
    let outside = format!("https://{}", free());
    let manifests = ["manifests", "--with-inputs", "--outside", &outside];
    plane.apply(&Bench::new().tread(&[&manifests[..], more].concat()).out()).unwrap();
    let replica = Replica::start_so(plane, NAMESPACE, &[], more);
    replica.ready().await;
    replica
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_holds_updates_back_and_finds_machines_with_the_rights_that_it_is_given() {
    let plane = openshift();
    let kubectl = |args: &[&str]| plane.kubectl(args).unwrap().success().unwrap();
    let machine = machines::definition(&machines::MACHINE).unwrap();
    plane.define(&[machine]).unwrap();
    let stuck = json!({"apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
        "metadata": {"name": "worker-b-1", "namespace": MACHINES, "labels": {"set": "b"}}, "spec": {},
        "status": {"phase": "Provisioned", "conditions": [{"type": "InstanceExists", "status": "True",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    plane.apply(&stuck.to_string()).unwrap();
    let selector = r#"{"spec": {"selector": {"matchLabels": {"set": "b"}}}}"#;
    let name = "machinesets.machine.openshift.io";
    kubectl(&["-n", MACHINES, "patch", name, "worker-b", "--type=merge", "-p", selector]);
    let version = json!({"status": {"history": [
        {"state": "Completed", "version": "4.22.0"}, {"state": "Completed", "version": "4.12.0"}]}});
    let patch =
        ["patch", "clusterversion", "version", "--subresource=status", "--type=merge", "-p"];
    kubectl(&[&patch[..], &[version.to_string().as_str()]].concat());

    let condition = |kind: &str, name: &str, type_: &str| {
        let path = format!("-o=jsonpath={{.status.conditions[?(@.type==\"{type_}\")].message}}");
        let ran = plane.kubectl(&["get", kind, name, &path]).unwrap();
        (ran.code == 0 && !ran.stdout.is_empty()).then_some(ran.stdout)
    };
    let replica = serving(&plane, &["--block-upgrades"]).await;
    let held = eventually("updates are held back", async || {
        condition("clusteroperator", "tread", "Upgradeable").filter(|it| it.contains("worker-b"))
    })
    .await;
    assert!(held.contains("Patch updates within this version are not held back"), "{held}");
    eventually("the machine is named", async || {
        condition("bimg", "cluster", "MachinesJoin").filter(|it| it.contains("worker-b-1"))
    })
    .await;
    let granted = async |replica: &Replica<'_>| {
        let (_, metrics) = replica.get("/metrics").await.unwrap();
        let forbidden = metrics.lines().find(|line| line.contains("code=\"403\""));
        assert_eq!(forbidden, None, "its own rights are enough");
    };
    granted(&replica).await;
    plane.stop(&replica.name).unwrap();

    // Without the flag it is removed.
    let replica = serving(&plane, &[]).await;
    eventually("it is gone", async || {
        let ran = plane.kubectl(&["get", "clusteroperators", "-o", "name"]).unwrap();
        (ran.code == 0 && ran.stdout.is_empty()).then_some(())
    })
    .await;
    granted(&replica).await;
}
