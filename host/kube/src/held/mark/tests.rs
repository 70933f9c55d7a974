use super::*;
use serde_json::json;
use std::time::Duration;

const AT: &str = "2026-10-21T07:00:00Z";
const LATER: &str = "2026-10-21T09:30:00Z";

fn node(value: Value) -> Node {
    serde_json::from_value(value).unwrap()
}

fn said(value: Value) -> String {
    Mark::of(&node(value)).unwrap().says(None)
}

#[test]
fn a_taint_says_its_key_its_value_and_since_when_where_that_was_noted() {
    let with = |taint: Value| json!({"spec": {"taints": [taint]}});
    let key = AUTOSCALERS[0];
    let noted = json!({"key": key, "value": "1792565000", "effect": "NoSchedule", "timeAdded": AT});
    assert_eq!(
        said(with(noted)),
        "an autoscaler is about to remove it: by the taint \
         ToBeDeletedByClusterAutoscaler=1792565000, since 2026-10-21T07:00:00Z"
    );
    let bare = node(with(json!({"key": "karpenter.sh/disrupted", "effect": "NoSchedule"})));
    let mark = Mark::of(&bare).unwrap();
    assert!(!mark.says_since());
    let words = "an autoscaler is about to remove it: by the taint karpenter.sh/disrupted";
    assert_eq!(mark.says(None), words);
    let seen = Time(Duration::from_secs(1_792_566_000));
    assert_eq!(mark.says(Some(seen)), format!("{words}, seen since 2026-10-21T07:00:00Z"));
}

#[test]
fn a_condition_says_why_and_since_when() {
    let condition = |reason: &str, message: &str| {
        json!([{"type": "MaintenanceInProgress", "status": "True", "reason": reason,
            "message": message, "lastTransitionTime": AT, "lastHeartbeatTime": LATER}])
    };
    let value =
        |reason: &str, message: &str| json!({"status": {"conditions": condition(reason, message)}});
    let begins = "it is maintained, or is to be: by the condition MaintenanceInProgress";
    assert_eq!(
        said(value("NewDisk", "a disk\nis \u{1b}[2Jnew")),
        format!("{begins} (NewDisk: a disk; is [2Jnew), since 2026-10-21T07:00:00Z")
    );
    assert_eq!(said(value("", "")), format!("{begins}, since 2026-10-21T07:00:00Z"));
    assert!(said(value("NewDisk", &"x".repeat(5000))).len() < 300);
    assert_eq!(Mark::of(&node(value(OWN_REASON, ""))), None, "tread's own is none");
}

#[test]
fn a_cordon_and_a_label_say_since_when_where_that_was_noted() {
    let cordon = |taints: Value| {
        let node = node(json!({"spec": {"unschedulable": true, "taints": taints}}));
        Mark::of_cordon(&node).says(None)
    };
    let taint = json!([{"key": UNSCHEDULABLE, "effect": "NoSchedule", "timeAdded": AT}]);
    assert_eq!(cordon(taint), format!("somebody cordoned it, since {AT}"));
    assert_eq!(cordon(json!(null)), "somebody cordoned it");
    assert_eq!(
        said(json!({"metadata": {"labels": {MEDIK8S_EXCLUDE: "true"}}})),
        "it is maintained, or is to be: by the label remediation.medik8s.io/exclude-from-remediation"
    );
}

#[test]
fn an_object_says_its_name_its_reason_and_since_when() {
    let object: DynamicObject = serde_json::from_value(json!({
        "metadata": {"name": "disk", "creationTimestamp": AT},
        "spec": {"nodeName": "n", "reason": "a new\u{202e} disk"},
    }))
    .unwrap();
    assert_eq!(
        Mark::of_maintenance(&object).says(None),
        "it is maintained, or is to be: by NodeMaintenance disk (a new disk), since \
         2026-10-21T07:00:00Z"
    );
    let machine = |value: Value, annotation| {
        let metadata: ObjectMeta = serde_json::from_value(value).unwrap();
        Mark::of_machine(&metadata, annotation).says(None)
    };
    let words = "it, or its Machine, is being deleted: Machine machines/m";
    let metadata = json!({"namespace": "machines", "name": "m"});
    assert_eq!(
        machine(metadata, Some("cluster.x-k8s.io/delete-machine")),
        format!("{words} by the annotation cluster.x-k8s.io/delete-machine")
    );
    let metadata = json!({"namespace": "machines", "name": "m", "deletionTimestamp": AT});
    assert_eq!(machine(metadata, Some("x")), format!("{words}, since {AT}"));
    assert_eq!(
        said(json!({"metadata": {"deletionTimestamp": AT}})),
        format!("it, or its Machine, is being deleted, since {AT}")
    );
}
