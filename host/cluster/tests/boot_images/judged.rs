//! Which resources are judged, and how, by the facts alone.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::DynamicObject;
use kube::runtime::watcher::Event;
use serde_json::{Value, json};
use tread_cluster::boot_images::admit::warning;
use tread_cluster::boot_images::gathered::{Gathered, Input, Map};
use tread_cluster::boot_images::kinds::{CLUSTER_VERSION, MACHINE_CONFIGURATION};
use tread_cluster::boot_images::report::{Report, report};
use tread_cluster::boot_images::status::status;
use tread_cluster::boot_images::write::to_keep;
use tread_kube::api::BootImagesStatus;
use tread_kube::api::machines::{
    AWS_TEMPLATE, CAPI_MACHINE_DEPLOYMENT, CAPI_MACHINE_SET, CONTROL_PLANE_MACHINE_SET,
    INFRASTRUCTURE, Kind, MACHINE_SET, PROVISIONING,
};

use super::fixture::{RUNNING, aws, stream};
use tread_kube::review::Asked;

pub(super) fn take(fold: &mut Gathered, kind: Kind, object: Value) {
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    fold.take(Input::Of(kind, Event::Apply(Ok(object))));
}

pub(super) fn openshift() -> Gathered {
    let mut fold = Gathered::default();
    take(
        &mut fold,
        CLUSTER_VERSION,
        json!({"metadata": {"name": "version"}, "status": {"history": [
            {"state": "Partial", "version": "4.22.1"},
            {"state": "Completed", "version": RUNNING, "completionTime": "2026-08-01T00:00:00Z"},
            {"state": "Completed", "version": "4.12.9", "completionTime": "2023-01-01T12:00:00Z"},
        ]}}),
    );
    let map: ConfigMap = serde_json::from_value(json!({
        "metadata": {"name": "coreos-bootimages"},
        "data": {"stream": stream(), "MCOReleaseImageVersion": RUNNING},
    }))
    .unwrap();
    fold.take(Input::Map(Map::Current, Event::Apply(map)));
    fold
}

pub(super) fn machine_set(name: &str, metadata: Value, provider: &Value) -> Value {
    let mut object = json!({
        "metadata": metadata,
        "spec": {"template": {"spec": {"providerSpec": {"value": provider}}}},
    });
    object["metadata"]["name"] = json!(name);
    object["metadata"]["namespace"] = json!("openshift-machine-api");
    object
}

pub(super) fn judged(fold: &Gathered) -> Report {
    report(&fold.facts, &[])
}

pub(super) fn one(report: &Report, name: &str) -> (String, String, String) {
    let found = report.resources.iter().find(|it| it.key.name == name).unwrap();
    (found.shown.known_by.clone(), found.shown.verdict.clone(), found.shown.message.clone())
}

#[test]
fn an_image_as_old_as_the_cluster_is_assumed_to_be_of_the_first_release() {
    let mut fold = openshift();
    let old = json!({"creationTimestamp": "2023-01-01T11:00:00Z"});
    let new = json!({"creationTimestamp": "2026-01-01T00:00:00Z"});
    take(&mut fold, MACHINE_SET, machine_set("first", old, &aws("ami-first")));
    take(&mut fold, MACHINE_SET, machine_set("same", new.clone(), &aws("ami-first")));
    take(&mut fold, MACHINE_SET, machine_set("later", new, &aws("ami-later")));
    let report = judged(&fold);
    for name in ["first", "same"] {
        let (by, verdict, message) = one(&report, name);
        assert_eq!((by.as_str(), verdict.as_str()), ("Install", "Blocks"), "{message}");
        assert!(message.contains("4.12.9") && message.contains("assumed"), "{message}");
    }
    assert_eq!(one(&report, "later").0, "Unknown");
}

#[test]
fn what_is_not_judged_is_said() {
    let mut fold = openshift();
    let mut windows = machine_set("windows", json!({}), &aws("ami-w"));
    windows["spec"]["template"]["metadata"] =
        json!({"labels": {"machine.openshift.io/os-id": "Windows"}});
    take(&mut fold, MACHINE_SET, windows);
    let mut moved = machine_set("moved", json!({}), &aws("ami-m"));
    moved["status"] = json!({"authoritativeAPI": "ClusterAPI"});
    take(&mut fold, MACHINE_SET, moved);
    let mut ours = machine_set("ours", json!({}), &aws("ami-0554dc0c838511ba9"));
    ours["status"] = json!({"authoritativeAPI": "MachineAPI"});
    take(&mut fold, MACHINE_SET, ours);
    let mirror =
        json!({"metadata": {"name": "ours", "namespace": "openshift-cluster-api"}, "spec": {}});
    take(&mut fold, CAPI_MACHINE_SET, mirror);
    take(
        &mut fold,
        CONTROL_PLANE_MACHINE_SET,
        json!({
            "metadata": {"name": "cluster", "namespace": "openshift-machine-api"},
            "spec": {"state": "Inactive"},
        }),
    );
    let report = judged(&fold);
    let names: Vec<&str> = report.resources.iter().map(|it| it.key.name.as_str()).collect();
    assert_eq!(names, ["ours"]);
    let left = report.left_out.join("\n");
    for word in [
        "run Windows",
        "Cluster API is authoritative",
        "machine API of OpenShift is authoritative",
        "Inactive",
    ] {
        assert!(left.contains(word), "{word}: {left}");
    }
    assert_eq!(report.left_out.len(), 4, "{left}");
}

#[test]
fn a_deployment_of_cluster_api_stands_for_its_sets_and_boots_what_its_template_says() {
    let mut fold = openshift();
    let spec = |template: &str| json!({"template": {"spec": {"infrastructureRef": {"kind": "AWSMachineTemplate", "name": template}}}});
    take(
        &mut fold,
        CAPI_MACHINE_DEPLOYMENT,
        json!({"metadata": {"name": "md", "namespace": "c"}, "spec": spec("t")}),
    );
    take(
        &mut fold,
        CAPI_MACHINE_SET,
        json!({
            "metadata": {"name": "md-1", "namespace": "c", "ownerReferences": [
                {"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "MachineDeployment", "name": "md", "uid": "1"}]},
            "spec": spec("t"),
        }),
    );
    take(
        &mut fold,
        CAPI_MACHINE_SET,
        json!({"metadata": {"name": "alone", "namespace": "c"}, "spec": spec("gone")}),
    );
    take(
        &mut fold,
        AWS_TEMPLATE,
        json!({
            "metadata": {"name": "t", "namespace": "c"},
            "spec": {"template": {"spec": {"ami": {"id": "ami-0554dc0c838511ba9"}}}},
        }),
    );
    let report = judged(&fold);
    let names: Vec<&str> = report.resources.iter().map(|it| it.key.name.as_str()).collect();
    assert_eq!(names, ["alone", "md"]);
    assert_eq!(one(&report, "md").0, "Catalogue");
    assert!(one(&report, "alone").2.contains("AWSMachineTemplate gone is not there"));
}

#[test]
fn what_openshifts_updater_manages_has_what_it_recorded() {
    let mut fold = openshift();
    take(
        &mut fold,
        MACHINE_SET,
        machine_set("managed", json!({"labels": {"boot": "yes"}}), &aws("ami-x")),
    );
    take(&mut fold, MACHINE_SET, machine_set("other", json!({}), &aws("ami-y")));
    let owner = json!({"labels": {"boot": "yes"}, "ownerReferences": [
        {"apiVersion": "hive/v1", "kind": "MachinePool", "name": "p", "uid": "1"}]});
    take(&mut fold, MACHINE_SET, machine_set("owned", owner, &aws("ami-z")));
    let manager = json!({
        "apiGroup": "machine.openshift.io", "resource": "machinesets",
        "selection": {"mode": "Partial", "partial": {"machineResourceSelector": {"matchLabels": {"boot": "yes"}}}},
    });
    take(
        &mut fold,
        MACHINE_CONFIGURATION,
        json!({"metadata": {"name": "cluster"}, "status": {
            "conditions": [{"type": "BootImageUpdateProgressing", "status": "False"}],
            "managedBootImagesStatus": {"machineManagers": [manager]},
            "bootImageSkewEnforcementStatus": {"mode": "Automatic", "automatic": {"ocpVersion": "4.21.3"}},
        }}),
    );
    let report = judged(&fold);
    assert_eq!(one(&report, "managed").0, "Updater");
    assert_eq!(one(&report, "other").0, "Unknown");
    assert_eq!(
        one(&report, "owned").0,
        "Unknown",
        "the updater leaves alone what another one makes"
    );
    let owned = report.resources.iter().find(|it| it.key.name == "owned").unwrap();
    assert_eq!(owned.shown.owner.as_deref(), Some("MachinePool/p"));
    let check = report.openshift.unwrap();
    assert_eq!((check.mode.as_str(), check.blocks), ("Automatic", false));
}

#[test]
fn garbage_says_so_itself_and_hurts_no_other() {
    let mut fold = openshift();
    take(&mut fold, MACHINE_SET, machine_set("good", json!({}), &aws("ami-0554dc0c838511ba9")));
    for (name, provider) in [
        ("none", Value::Null),
        ("text", json!("garbage\u{1b}[31m")),
        ("toaster", json!({"kind": "Toaster\u{202e}"})),
        ("number", json!({"kind": "AWSMachineProviderConfig", "ami": {"id": 7}})),
    ] {
        take(&mut fold, MACHINE_SET, machine_set(name, json!({}), &provider));
    }
    take(&mut fold, MACHINE_SET, json!({"metadata": {"name": "empty", "namespace": "x"}}));
    let report = judged(&fold);
    assert_eq!(one(&report, "good").1, "Passes");
    assert_eq!(report.resources.len(), 6);
    for it in report.resources.iter().filter(|it| it.key.name != "good") {
        assert_eq!(it.shown.reason, "VersionUnknown", "{it:?}");
        assert!(!it.shown.message.chars().any(tread_model::text::is_unfit), "{it:?}");
    }
}

#[test]
fn a_catalogue_that_cannot_be_read_is_a_problem_that_is_told() {
    let mut fold = openshift();
    take(&mut fold, MACHINE_SET, machine_set("a", json!({}), &aws("ami-0554dc0c838511ba9")));
    for (data, says) in [
        (json!({"stream": "{", "MCOReleaseImageVersion": RUNNING}), "is no JSON"),
        (json!({"MCOReleaseImageVersion": RUNNING}), "holds no stream metadata"),
    ] {
        let map: ConfigMap = serde_json::from_value(
            json!({"metadata": {"name": "coreos-bootimages"}, "data": data}),
        )
        .unwrap();
        fold.take(Input::Map(Map::Current, Event::Apply(map)));
        let report = judged(&fold);
        assert!(report.problems.join("\n").contains(says), "{:?}", report.problems);
        let (_, verdict, message) = one(&report, "a");
        assert!(verdict == "Blocks" && message.contains(says), "{verdict}: {message}");
    }
}

#[test]
fn on_a_single_node_and_on_bare_metal_without_a_url_there_is_nothing_to_judge() {
    for (platform, topology, url, reason) in [
        ("AWS", "HighlyAvailable", None, "VersionUnknown"),
        ("AWS", "SingleReplica", None, "NothingToJudge"),
        ("BareMetal", "HighlyAvailable", None, "NothingToJudge"),
        ("BareMetal", "HighlyAvailable", Some(""), "NothingToJudge"),
        ("BareMetal", "HighlyAvailable", Some("http://a/b.qcow2"), "VersionUnknown"),
    ] {
        let mut fold = openshift();
        take(&mut fold, MACHINE_SET, machine_set("a", json!({}), &aws("ami-old")));
        take(
            &mut fold,
            INFRASTRUCTURE,
            json!({"metadata": {"name": "cluster"}, "status": {
            "platformStatus": {"type": platform}, "controlPlaneTopology": topology}}),
        );
        if let Some(url) = url {
            take(
                &mut fold,
                PROVISIONING,
                json!({"metadata": {"name": "provisioning-configuration"},
                "spec": {"provisioningOSDownloadURL": url}}),
            );
        }
        assert_eq!(judged(&fold).verdict.reason.as_str(), reason, "{platform} {topology} {url:?}");
    }
}

#[test]
fn of_five_hundred_resources_all_are_judged_and_the_two_hundred_oldest_listed() {
    let mut fold = openshift();
    for at in 0..500 {
        let version = format!("rhcos-9-{}-20250101-0-gcp", 2 + at % 5);
        let provider =
            json!({"kind": "GCPMachineProviderSpec", "disks": [{"boot": true, "image": version}]});
        take(&mut fold, MACHINE_SET, machine_set(&format!("worker-{at}"), json!({}), &provider));
    }
    let report = judged(&fold);
    assert_eq!(report.resources.len(), 500);
    let now = k8s_openapi::jiff::Timestamp::now();
    let status = status(&report, &BootImagesStatus::default(), 1, now);
    assert_eq!((status.resources.len(), status.count), (200, Some(500)));
    let listed: Vec<_> = status.resources.iter().map(|it| it.version.as_deref().unwrap()).collect();
    assert!(listed[..100].iter().all(|version| version.contains("RHEL 9.2")), "{listed:?}");
    assert!(listed[100..].iter().all(|version| version.contains("RHEL 9.3")), "{listed:?}");
    let size = serde_json::to_vec(&status).unwrap().len();
    assert!(size < 200 * 1024, "{size} bytes");
}

pub(super) fn request(
    resource: (&str, &str),
    name: &str,
    old: Option<Value>,
    new: Value,
    sub: Option<&str>,
) -> Asked {
    let group_version_resource =
        json!({"group": resource.0, "version": "v1beta1", "resource": resource.1});
    let kind = json!({"group": resource.0, "version": "v1beta1", "kind": "Any"});
    let named = |mut object: Value| {
        object["apiVersion"] = json!("a/v1");
        object["kind"] = json!("Any");
        object
    };
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "1", "kind": kind, "resource": group_version_resource, "subResource": sub,
            "name": name, "namespace": "openshift-machine-api",
            "operation": if old.is_some() { "UPDATE" } else { "CREATE" },
            "userInfo": {}, "object": named(new), "oldObject": old.map(named), "dryRun": false,
        },
    });
    Asked::read(review.to_string().as_bytes()).unwrap()
}

pub(super) const SETS: (&str, &str) = ("machine.openshift.io", "machinesets");

#[test]
fn whoever_makes_machines_of_an_image_that_is_too_old_is_warned() {
    let mut fold = openshift();
    let old = || json!({"kind": "GCPMachineProviderSpec", "disks": [{"boot": true, "image": "rhcos-412-86-202308081056-0-gcp"}]});
    let new = || aws("ami-0554dc0c838511ba9");
    take(&mut fold, MACHINE_SET, machine_set("old", json!({}), &old()));
    take(&mut fold, MACHINE_SET, machine_set("new", json!({}), &new()));
    let report = judged(&fold);
    let set = |provider: &Value, replicas: i64| {
        let mut object = machine_set("old", json!({}), provider);
        object["spec"]["replicas"] = json!(replicas);
        object
    };
    let scale = |replicas: i64| json!({"metadata": {"name": "x"}, "spec": {"replicas": replicas}});
    // As the API server writes it.
    let none = || json!({"metadata": {"name": "x"}, "spec": {}});
    for (what, warned, request) in [
        ("made", true, request(SETS, "made", None, set(&old(), 1), None)),
        ("made without machines", false, request(SETS, "made", None, set(&old(), 0), None)),
        ("made of a new image", false, request(SETS, "made", None, set(&new(), 3), None)),
        ("scaled up", true, request(SETS, "old", Some(set(&old(), 1)), set(&old(), 2), None)),
        ("scaled down", false, request(SETS, "old", Some(set(&old(), 2)), set(&old(), 1), None)),
        (
            "changed otherwise",
            false,
            request(SETS, "old", Some(set(&old(), 2)), set(&old(), 2), None),
        ),
        ("by scale", true, request(SETS, "old", Some(scale(1)), scale(5), Some("scale"))),
        ("from none, by scale", true, request(SETS, "old", Some(none()), scale(1), Some("scale"))),
        (
            "of a new one, by scale",
            false,
            request(SETS, "new", Some(scale(1)), scale(5), Some("scale")),
        ),
        (
            "another kind",
            false,
            request(("apps", "replicasets"), "old", None, set(&old(), 1), None),
        ),
    ] {
        let said = warning(&fold.facts, &report, &request);
        assert_eq!(said.is_some(), warned, "{what}: {said:?}");
        if let Some(said) = said {
            // The rest of a warning is cut.
            let shown: String = said.chars().take(250).collect();
            assert!(
                said.contains("OpenShift 4.13.0") && shown.contains("`tread bootimages patch"),
                "{said}"
            );
            assert!(!said.chars().any(tread_model::text::is_unfit), "{said}");
        }
    }
}

#[test]
fn whoever_sends_a_cluster_to_a_release_that_its_images_are_too_old_for_is_warned() {
    let mut fold = openshift();
    take(
        &mut fold,
        CLUSTER_VERSION,
        json!({"metadata": {"name": "version"}, "status": {"history": [
        {"state": "Completed", "version": "4.21.9"}]}}),
    );
    let provider = json!({"kind": "GCPMachineProviderSpec", "disks": [{"boot": true, "image": "rhcos-412-86-202308081056-0-gcp"}]});
    take(&mut fold, MACHINE_SET, machine_set("old", json!({}), &provider));
    let report = judged(&fold);
    let to = |version: Option<&str>| json!({"metadata": {"name": "version"}, "spec": {"desiredUpdate": {"version": version}}});
    let versions = ("config.openshift.io", "clusterversions");
    for (old, new, warned) in [
        (None, Some("4.22.0"), true),
        (Some("4.21.10"), Some("4.22.0-rc.1"), true),
        (Some("4.22.0"), Some("4.22.0"), false),
        (None, None, false),
        (None, Some("garbage"), false),
    ] {
        let said = warning(
            &fold.facts,
            &report,
            &request(versions, "version", Some(to(old)), to(new), None),
        );
        assert_eq!(said.is_some(), warned, "{new:?}: {said:?}");
    }
    // What the running release only warns of would block the next.
    assert_eq!(report.verdict.outcome.as_str(), "Warns");
    let next = report.to(tread_model::boot_images::Release::parse("4.22.0"));
    assert_eq!(next.outcome.as_str(), "Blocks");
    // What OpenShift's own check does about it, which 4.22 has, stands beside.
    assert_eq!(report.theirs(), None);
    let mut fold = openshift();
    take(&mut fold, MACHINE_SET, machine_set("old", json!({}), &provider));
    let status = json!({"bootImageSkewEnforcementStatus": {"mode": "None"}});
    let object = json!({"metadata": {"name": "cluster"}, "status": status});
    take(&mut fold, MACHINE_CONFIGURATION, object);
    let asked = request(versions, "version", Some(to(None)), to(Some("4.23.0")), None);
    let said = warning(&fold.facts, &judged(&fold), &asked).unwrap();
    let theirs =
        "OpenShift's own check (mode None, version none) lets updates pass: its mode is None";
    assert!(said.contains("too old for 4.23.0") && said.ends_with(theirs), "{said}");
}

#[test]
fn of_former_stream_metadata_the_last_twenty_are_kept() {
    let mut fold = openshift();
    let kept = |count: usize, fold: &mut Gathered| {
        let one = r#"[{"architectures": {"x86_64": {}}}]"#;
        let data: serde_json::Map<String, Value> =
            (0..count).map(|at| (format!("4.9.{at}"), json!(one))).collect();
        let map: ConfigMap = serde_json::from_value(
            json!({"metadata": {"name": "tread-boot-images"}, "data": data}),
        )
        .unwrap();
        fold.take(Input::Map(Map::Kept, Event::Apply(map)));
        to_keep(&fold.facts).unwrap()["data"].as_object().unwrap().clone()
    };
    let patch = kept(19, &mut fold);
    assert_eq!(patch.keys().collect::<Vec<_>>(), [RUNNING], "there is room");
    let patch = kept(22, &mut fold);
    let gone: Vec<&String> =
        patch.iter().filter(|(_, it)| it.is_null()).map(|(key, _)| key).collect();
    assert_eq!(gone, ["4.9.0", "4.9.1", "4.9.2"], "the oldest, by their numbers");
    // What is kept is a fraction, and says the same.
    let text = patch[RUNNING].as_str().unwrap();
    assert!(text.len() < stream().len(), "{}", text.len());
    let map: ConfigMap = serde_json::from_value(
        json!({"metadata": {"name": "tread-boot-images"}, "data": {RUNNING: text}}),
    )
    .unwrap();
    fold.take(Input::Map(Map::Kept, Event::Apply(map)));
    assert_eq!(to_keep(&fold.facts), None, "it is kept already");
    let current = fold.facts.current.as_ref().unwrap().catalogues.as_ref().unwrap();
    assert_eq!(fold.facts.kept[RUNNING], *current);
}
