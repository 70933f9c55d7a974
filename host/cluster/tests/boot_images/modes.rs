//! How a mode, a cluster that makes no machines and OpenShift's updater change
//! what is said of resources and to whoever scales them up.

use super::fixture::aws;
use super::judged::{SETS, judged, machine_set, one, openshift, request, take};
use kube::runtime::watcher::Event;
use serde_json::{Value, json};
use tread_cluster::boot_images::admit::warning;
use tread_cluster::boot_images::gathered::{Gathered, Input};
use tread_cluster::boot_images::kinds::MACHINE_CONFIGURATION;
use tread_cluster::boot_images::status::{holds_back, status};
use tread_kube::api::machines::{INFRASTRUCTURE, MACHINE_SET, PROVISIONING};
use tread_kube::api::{BootImages, BootImagesStatus};

const OLD: &str = "rhcos-412-86-202308081056-0-gcp";

fn gcp(image: &str) -> Value {
    json!({"kind": "GCPMachineProviderSpec", "disks": [{"boot": true, "image": image}]})
}

fn spec(fold: &mut Gathered, spec: Value) {
    let object = json!({"apiVersion": "tread.dev/v1alpha1", "kind": "BootImages",
        "metadata": {"name": "cluster"}, "spec": spec});
    let object: BootImages = serde_json::from_value(object).unwrap();
    fold.take(Input::Images(Event::Apply(object)));
}

/// What is so, how it comes to be, the verdict, and whether whoever makes machines is warned.
type Case = (&'static str, fn(&mut Gathered), &'static str, bool);

fn infrastructure(fold: &mut Gathered, platform: &str, topology: &str) {
    let status = json!({"platformStatus": {"type": platform}, "controlPlaneTopology": topology});
    take(fold, INFRASTRUCTURE, json!({"metadata": {"name": "cluster"}, "status": status}));
}

#[test]
fn where_nothing_is_asked_nobody_is_warned_and_no_resource_is_too_old() {
    let nothing: fn(&mut Gathered) = |_| {};
    let cases: [Case; 5] = [
        ("Automatic", nothing, "Blocks", true),
        ("None", |fold| spec(fold, json!({"mode": "None"})), "Passes", false),
        ("a single node", |fold| infrastructure(fold, "AWS", "SingleReplica"), "Passes", false),
        (
            "bare metal",
            |fold| infrastructure(fold, "BareMetal", "HighlyAvailable"),
            "Passes",
            false,
        ),
        (
            "Manual, and known to be too old",
            |fold| {
                let manual = json!({"mode": "OCPVersion", "ocpVersion": "4.16.0"});
                spec(fold, json!({"mode": "Manual", "manual": manual}));
            },
            "Warns",
            true,
        ),
    ];
    for (what, change, verdict, warned) in cases {
        let mut fold = openshift();
        take(&mut fold, MACHINE_SET, machine_set("old", json!({}), &gcp(OLD)));
        change(&mut fold);
        let report = judged(&fold);
        let (_, said, message) = one(&report, "old");
        assert_eq!(said, verdict, "{what}: {message}");
        let mut wanted = machine_set("old", json!({}), &gcp(OLD));
        wanted["spec"]["replicas"] = json!(3);
        let said = warning(&fold.facts, &report, &request(SETS, "new", None, wanted, None));
        assert_eq!(said.is_some(), warned, "{what}: {said:?}");
    }
}

#[test]
fn what_nobody_knows_is_as_old_as_an_admin_recorded() {
    let mut fold = openshift();
    take(&mut fold, MACHINE_SET, machine_set("new", json!({}), &aws("ami-unknown")));
    let manual = json!({"mode": "OCPVersion", "ocpVersion": "4.16.0"});
    spec(&mut fold, json!({"mode": "Manual", "manual": manual}));
    let (_, verdict, message) = one(&judged(&fold), "new");
    assert_eq!(verdict, "Passes");
    assert!(message.contains("as recorded in spec.manual"), "{message}");
}

#[test]
fn nothing_is_said_to_be_well_of_another_stream_where_nothing_is_asked() {
    let mut fold = openshift();
    let other = json!({"labels": {"machineconfiguration.openshift.io/osstream": "rhel-10"}});
    take(&mut fold, MACHINE_SET, machine_set("other", other, &gcp(OLD)));
    spec(&mut fold, json!({"mode": "None"}));
    let now = k8s_openapi::jiff::Timestamp::now();
    let status = status(&judged(&fold), &BootImagesStatus::default(), 1, now);
    let found = status.conditions.iter().find(|it| it.type_ == "OtherStreamsWithinLimit").unwrap();
    assert_eq!((found.status.as_str(), found.reason.as_str()), ("Unknown", "ModeNone"));
}

fn updater(fold: &mut Gathered, conditions: Value) {
    let manager = json!({"apiGroup": "machine.openshift.io", "resource": "machinesets",
        "selection": {"mode": "All"}});
    let status = json!({"conditions": conditions,
        "managedBootImagesStatus": {"machineManagers": [manager]}});
    take(fold, MACHINE_CONFIGURATION, json!({"metadata": {"name": "cluster"}, "status": status}));
}

#[test]
fn an_updater_that_failed_is_not_told_as_images_that_are_too_old() {
    let mut fold = openshift();
    take(&mut fold, MACHINE_SET, machine_set("a", json!({}), &aws("ami-0554dc0c838511ba9")));
    updater(
        &mut fold,
        json!([{"type": "BootImageUpdateDegraded", "status": "True", "message": "no arch"}]),
    );
    let report = judged(&fold);
    assert_eq!(report.verdict.reason.as_str(), "UpdaterDegraded");
    let to =
        json!({"metadata": {"name": "version"}, "spec": {"desiredUpdate": {"version": "4.23.0"}}});
    let versions = ("config.openshift.io", "clusterversions");
    let from = json!({"metadata": {"name": "version"}, "spec": {}});
    let asked = request(versions, "version", Some(from), to, None);
    let said = warning(&fold.facts, &report, &asked).unwrap();
    assert!(said.contains("cannot be told") && said.contains("no arch"), "{said}");
    assert!(!said.contains("too old"), "{said}");
    let now = k8s_openapi::jiff::Timestamp::now();
    let status = status(&report, &BootImagesStatus::default(), 1, now);
    let held = status.conditions.iter().find(|it| it.type_ == "Upgradeable").unwrap();
    assert_eq!(held.status, "False");
    assert!(held.message.contains("cannot be told. OpenShift's updater"), "{}", held.message);
    assert!(!held.message.contains("too old"), "{}", held.message);
}

#[test]
fn while_nothing_can_be_told_what_was_held_back_stays_so() {
    let mut fold = openshift();
    take(&mut fold, MACHINE_SET, machine_set("old", json!({}), &gcp(OLD)));
    let now = k8s_openapi::jiff::Timestamp::now();
    let before = status(&judged(&fold), &BootImagesStatus::default(), 1, now);
    assert!(holds_back(&judged(&fold), None));
    updater(&mut fold, json!([{"type": "BootImageUpdateProgressing", "status": "True"}]));
    let report = judged(&fold);
    assert!(report.waits());
    assert!(holds_back(&report, Some(&before)), "the alert does not end");
    assert!(!holds_back(&report, None), "nothing was said before");
    assert!(!holds_back(&report, Some(&BootImagesStatus::default())));
}

#[test]
fn what_was_said_for_another_mode_does_not_stay_while_it_waits() {
    let mut fold = openshift();
    take(&mut fold, MACHINE_SET, machine_set("old", json!({}), &gcp(OLD)));
    spec(&mut fold, json!({"mode": "None"}));
    let now = k8s_openapi::jiff::Timestamp::now();
    let before = status(&judged(&fold), &BootImagesStatus::default(), 1, now);
    let said = |status: &BootImagesStatus| {
        let found = status.conditions.iter().find(|it| it.type_ == "Upgradeable").unwrap();
        (found.status.clone(), found.reason.clone())
    };
    assert_eq!(said(&before), ("True".to_owned(), "ModeNone".to_owned()));
    spec(&mut fold, json!({"mode": "Automatic"}));
    updater(&mut fold, json!([{"type": "BootImageUpdateProgressing", "status": "True"}]));
    let report = judged(&fold);
    assert!(report.waits());
    let after = status(&report, &before, 2, now);
    let waits = ("Unknown".to_owned(), report.verdict.reason.as_str().to_owned());
    assert_eq!(said(&after), waits);
    assert_eq!(said(&status(&report, &before, 1, now)).0, "True", "it is of the same mode");
    // What held updates back goes on until it is known to be mended.
    let mut held = before;
    held.conditions.iter_mut().for_each(|it| it.status = "False".to_owned());
    assert_eq!(said(&status(&report, &held, 2, now)).0, "False");
}

#[test]
fn where_openshift_lets_pass_what_tread_does_not_that_is_said() {
    let mut fold = openshift();
    take(&mut fold, MACHINE_SET, machine_set("old", json!({}), &gcp(OLD)));
    let check = |fold: &Gathered| judged(fold).openshift.unwrap();
    // It has set no mode yet.
    let unset = check(&fold);
    assert!(!unset.blocks && unset.message.contains("tread does not let that pass"), "{unset:?}");
    let enforced = |fold: &mut Gathered, mode: Value, progressing: &str| {
        let manager = json!({"apiGroup": "machine.openshift.io", "resource": "machinesets",
            "selection": {"mode": "All"}});
        let status = json!({"bootImageSkewEnforcementStatus": mode,
            "conditions": [{"type": "BootImageUpdateProgressing", "status": progressing}],
            "managedBootImagesStatus": {"machineManagers": [manager]}});
        take(
            fold,
            MACHINE_CONFIGURATION,
            json!({"metadata": {"name": "cluster"}, "status": status}),
        );
    };
    let automatic =
        |version: &str| json!({"mode": "Automatic", "automatic": {"ocpVersion": version}});
    enforced(&mut fold, automatic("soon"), "False");
    let unreadable = check(&fold);
    assert!(unreadable.message.contains("tread does not let that pass"), "{unreadable:?}");
    enforced(&mut fold, automatic("4.12.0"), "True");
    let progressing = check(&fold);
    assert!(progressing.message.contains("tread waits"), "{progressing:?}");
    enforced(&mut fold, automatic("4.12.0"), "False");
    let blocks = check(&fold);
    assert!(blocks.blocks && !blocks.message.contains("tread"), "{blocks:?}");
}

#[test]
fn only_the_configuration_that_openshift_reads_says_where_bare_metal_boots_from() {
    let mut fold = openshift();
    infrastructure(&mut fold, "BareMetal", "HighlyAvailable");
    let spec = json!({"provisioningOSDownloadURL": "http://a/b.qcow2"});
    take(&mut fold, PROVISIONING, json!({"metadata": {"name": "another"}, "spec": spec}));
    assert_eq!(judged(&fold).verdict.reason.as_str(), "NothingToJudge");
}
