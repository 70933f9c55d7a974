//! What watches bring is taken in: also what cannot be read, and what goes.

use super::fixture::aws;
use super::judged::{SETS, judged, machine_set, one, openshift, request, take};
use kube::core::{DynamicObject, ObjectMeta};
use kube::runtime::watcher::Event;
use serde_json::{Value, json};
use std::sync::Arc;
use tread_cluster::boot_images::admit::warning;
use tread_cluster::boot_images::gathered::{Gathered, Input};
use tread_cluster::boot_images::kinds::{CLUSTER_VERSION, MACHINE_CONFIGURATION, POOL};
use tread_cluster::boot_images::machine::Unread;
use tread_kube::api::machines::{
    AWS_TEMPLATE, CAPI_MACHINE_SET, INFRASTRUCTURE, Kind, MACHINE_SET, PROVISIONING,
};

fn object(name: &str, rest: &Value) -> DynamicObject {
    let mut object = rest.clone();
    object["metadata"]["name"] = json!(name);
    serde_json::from_value(object).unwrap()
}

#[test]
fn an_object_that_goes_takes_only_what_it_said() {
    let machines = json!({"status": {"controlPlaneTopology": "SingleReplica"}});
    let url = json!({"spec": {"provisioningOSDownloadURL": "http://a/b.qcow2"}});
    let history = json!({"status": {"history": [{"state": "Completed", "version": "4.22.0"}]}});
    let updater = json!({"status": {"conditions": []}});
    for (kind, name, rest) in [
        (CLUSTER_VERSION, "version", history),
        (MACHINE_CONFIGURATION, "cluster", updater),
        (INFRASTRUCTURE, "cluster", machines),
        (PROVISIONING, "provisioning-configuration", url),
    ] {
        let mut fold = Gathered::default();
        let before = |fold: &Gathered| format!("{:?}", fold.facts);
        fold.take(Input::Of(kind, Event::Apply(Ok(object(name, &rest)))));
        let known = before(&fold);
        fold.take(Input::Of(kind, Event::Delete(Ok(object("another", &rest)))));
        assert_eq!(before(&fold), known, "{} {name}", kind.name);
        // The same by a list that has it.
        for event in [
            Event::Init,
            Event::InitApply(Ok(object("another", &rest))),
            Event::InitApply(Ok(object(name, &rest))),
            Event::InitDone,
        ] {
            fold.take(Input::Of(kind, event));
        }
        assert_eq!(before(&fold), known, "{} {name}", kind.name);
        for event in [Event::Init, Event::InitApply(Ok(object("another", &rest))), Event::InitDone]
        {
            fold.take(Input::Of(kind, event));
        }
        assert_ne!(before(&fold), known, "{} {name} is gone", kind.name);
    }
}

fn unread(fold: &mut Gathered, kind: Kind, name: &str) {
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some("openshift-machine-api".to_owned()),
        ..ObjectMeta::default()
    };
    let why = "it is nested more than 100 deep\u{1b}".to_owned();
    fold.take(Input::Of(kind, Event::Apply(Err(Unread { metadata: Box::new(metadata), why }))));
}

#[test]
fn a_resource_that_cannot_be_read_counts_as_unknown_and_is_told() {
    let mut fold = openshift();
    take(&mut fold, MACHINE_SET, machine_set("good", json!({}), &aws("ami-0554dc0c838511ba9")));
    unread(&mut fold, MACHINE_SET, "deep");
    let report = judged(&fold);
    let (by, verdict, message) = one(&report, "deep");
    assert_eq!((by.as_str(), verdict.as_str()), ("Unknown", "Blocks"));
    assert!(message.contains("MachineSet cannot be read: it is nested more than 100"), "{message}");
    assert_eq!(report.verdict.reason.as_str(), "VersionUnknown");
    assert!(report.problems.join("\n").contains("openshift-machine-api/deep"), "it is degraded");
    assert!(!report.problems.join("").chars().any(tread_model::text::is_unfit));

    // It can be read again.
    take(&mut fold, MACHINE_SET, machine_set("deep", json!({}), &aws("ami-0554dc0c838511ba9")));
    let report = judged(&fold);
    assert_eq!(report.verdict.reason.as_str(), "WithinLimit");
    assert_eq!(report.problems, Vec::<String>::new());
}

#[test]
fn a_template_that_cannot_be_read_is_of_no_known_image_and_gone_when_it_goes() {
    let mut fold = openshift();
    let set = json!({"metadata": {"name": "s", "namespace": "openshift-machine-api"},
        "spec": {"template": {"spec": {"infrastructureRef": {"kind": "AWSMachineTemplate", "name": "t"}}}}});
    take(&mut fold, CAPI_MACHINE_SET, set);
    unread(&mut fold, AWS_TEMPLATE, "t");
    let (_, _, message) = one(&judged(&fold), "s");
    assert!(message.contains("AWSMachineTemplate cannot be read"), "{message}");
    fold.take(Input::Of(AWS_TEMPLATE, Event::Init));
    fold.take(Input::Of(AWS_TEMPLATE, Event::InitDone));
    let report = judged(&fold);
    assert!(one(&report, "s").2.contains("is not there"), "{:?}", one(&report, "s"));
    assert_eq!(report.problems, Vec::<String>::new());
}

#[test]
fn whoever_makes_machines_of_what_cannot_be_read_is_warned() {
    let fold = openshift();
    let report = judged(&fold);
    let mut deep = Value::Null;
    for _ in 0..110 {
        deep = json!([deep]);
    }
    let set = |replicas: i64| {
        let mut object = machine_set("deep", json!({}), &deep);
        object["spec"]["replicas"] = json!(replicas);
        object
    };
    let warned = |request| warning(&fold.facts, &report, &request);
    let said = warned(request(SETS, "deep", None, set(1), None)).unwrap();
    assert!(said.contains("nested more than 100 deep"), "{said}");
    assert!(warned(request(SETS, "deep", Some(set(1)), set(2), None)).is_some());
    assert_eq!(warned(request(SETS, "deep", Some(set(2)), set(1), None)), None);
}

#[test]
fn a_resource_that_names_no_stream_is_of_the_stream_of_its_pool() {
    let gcp = |pool: &str, suffix: &str| {
        json!({"kind": "GCPMachineProviderSpec", "userDataSecret": {"name": format!("{pool}-{suffix}")},
            "disks": [{"boot": true, "image": "rhcos-9-6-20250523-0-gcp"}]})
    };
    let mut fold = openshift();
    let label = json!({"labels": {"machineconfiguration.openshift.io/osstream": "rhel-10"}});
    take(
        &mut fold,
        POOL,
        serde_json::to_value(object("labelled", &json!({"metadata": label}))).unwrap(),
    );
    for (name, stream) in [("ten", json!({"name": "rhel-10"})), ("worker", Value::Null)] {
        let rest = json!({"metadata": {}, "spec": {"osImageStream": stream}});
        take(&mut fold, POOL, serde_json::to_value(object(name, &rest)).unwrap());
    }
    for (name, provider) in [
        ("a", gcp("ten", "user-data")),
        ("b", gcp("ten", "user-data-managed")),
        ("c", gcp("labelled", "user-data")),
        ("d", gcp("worker", "user-data")),
        ("e", gcp("unknown", "user-data")),
        ("f", gcp("ten", "other")),
        ("h", gcp("ten", "user-data-tread")),
        ("i", gcp("worker", "user-data-tread")),
    ] {
        take(&mut fold, MACHINE_SET, machine_set(name, json!({}), &provider));
    }
    let own = json!({"labels": {"machineconfiguration.openshift.io/osstream": "rhel-9"}});
    take(&mut fold, MACHINE_SET, machine_set("g", own, &gcp("ten", "user-data")));
    let streams = |fold: &Gathered| {
        let report = judged(fold);
        let mut all: Vec<(String, String)> = report
            .resources
            .iter()
            .map(|it| (it.key.name.clone(), it.shown.stream.clone()))
            .collect();
        all.sort();
        all.into_iter().filter(|(_, it)| it == "rhel-10").map(|(name, _)| name).collect::<String>()
    };
    assert_eq!(streams(&fold), "abch");
    let report = judged(&fold);
    assert_eq!(one(&report, "a").1, "Warns", "an image of RHEL 9, and it holds nothing up");
    assert_eq!(one(&report, "d").1, "Passes");
    assert_eq!(report.verdict.reason.as_str(), "WithinLimit");

    // The pool goes, or names no stream any more.
    fold.take(Input::Of(POOL, Event::Delete(Ok(object("labelled", &json!({"metadata": {}}))))));
    assert_eq!(streams(&fold), "abh");
    take(&mut fold, POOL, json!({"metadata": {"name": "ten"}, "spec": {}}));
    assert_eq!(streams(&fold), "");
}

#[test]
fn what_is_published_shares_what_is_large() {
    let mut fold = openshift();
    take(&mut fold, MACHINE_SET, machine_set("a", json!({}), &aws("ami-0554dc0c838511ba9")));
    let published = fold.facts.clone();
    let current = |facts: &tread_cluster::boot_images::facts::Facts| facts.current.clone().unwrap();
    assert!(Arc::ptr_eq(&current(&published), &current(&fold.facts)));
    assert!(Arc::ptr_eq(&published.kept, &fold.facts.kept));
    for (key, machine) in &published.machines {
        assert!(Arc::ptr_eq(machine, &fold.facts.machines[key]));
    }
}
