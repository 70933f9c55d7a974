//! What a real API server makes of the definitions.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails the test")]

use serde_json::{Value, json};
use std::sync::OnceLock;
use tread_kube::api::{Rollout, crds};
use tread_test_bed::{ControlPlane, Shared};

static BED: Shared = Shared::new(ControlPlane::options);

/// A control plane that has all definitions.
fn plane() -> &'static ControlPlane {
    static INSTALLED: OnceLock<()> = OnceLock::new();
    let plane = BED.get().unwrap();
    INSTALLED.get_or_init(|| {
        plane.define(&[crds::crds(), crds::enforcing(), crds::openshift()].concat()).unwrap();
    });
    plane
}

/// What `kubectl create` says of a DisruptionPolicy with this spec; nothing is made.
fn said(spec: &str) -> (bool, String) {
    let object = format!(
        "apiVersion: tread.dev/v1alpha1\nkind: DisruptionPolicy\nmetadata: {{name: chrony}}\nspec: {spec}\n"
    );
    let args = ["create", "--dry-run=server", "-f", "-"];
    let ran = plane().admin().kubectl_with_input(&args, &object).unwrap();
    (ran.code == 0, format!("{}{}", ran.stdout, ran.stderr))
}

const MATCH: &str = "match: [\"file:/etc/a\"]";

#[test]
fn every_definition_is_established() {
    let names = plane().kubectl(&["get", "crd", "-o", "name"]).unwrap().success().unwrap();
    for crd in [crds::crds(), crds::openshift()].concat() {
        let name = crd.metadata.name.unwrap();
        assert!(names.contains(&name), "{name}");
        let resource = name.split_once('.').unwrap().0.to_owned();
        plane()
            .kubectl(&["get", &format!("{resource}.{}", crd.spec.group)])
            .unwrap()
            .success()
            .unwrap();
    }
    plane().kubectl(&["get", "dpol,dplan,bimg"]).unwrap().success().unwrap();
}

#[test]
fn what_makes_sense_is_taken() {
    for spec in [
        "{source: {builtin: registries}}".to_owned(),
        "{layer: builtin, source: {builtin: registries}, mode: Shadow}".to_owned(),
        "{layer: admin, source: {machineConfiguration: cluster}}".to_owned(),
        "{layer: template, source: {configMap: {namespace: a, name: b}}, settings: {x: {y: 1}}, \
          approved: true, mayRelax: true, readSecrets: true, limits: {fuel: 5}}"
            .to_owned(),
        format!("{{rules: [{{{MATCH}, actions: []}}]}}"),
        format!("{{rules: [{{{MATCH}, actions: [{{do: reboot}}], drain: false}}]}}"),
        format!(
            "{{rules: [{{{MATCH}, refuse: true, reason: ask the vault team}}, {{{MATCH}, abstain: true}}]}}"
        ),
    ] {
        let (taken, text) = said(&spec);
        assert!(taken, "{spec}: {text}");
    }
}

#[test]
fn what_makes_none_is_refused_with_its_field_and_a_sentence() {
    let rule = |rest: &str| format!("{{rules: [{{{MATCH}, {rest}}}]}}");
    let any = rule("actions: []");
    let with = |field: &str| any.replacen('{', &format!("{{{field}, "), 1);
    for (spec, field, words) in [
        ("{}".to_owned(), "spec", "expected rules, or a source"),
        (with("source: {builtin: a}"), "spec", "made of one of them"),
        (with("settings: {}"), "spec.settings", "mean nothing for inline rules"),
        (with("layer: builtin"), "spec.layer", "only tread itself speaks as builtin"),
        (with("layer: admn"), "spec.layer", "supported values: \"admin\""),
        (with("mode: shadow"), "spec.mode", "supported values: \"Enforce\""),
        ("{source: {}}".to_owned(), "spec.source", "exactly one of builtin, configMap"),
        (
            "{source: {configMap: {namespace: a, name: b}}}".to_owned(),
            "spec.layer",
            "write template for the policy of a template's owner",
        ),
        (
            "{layer: admin, source: {builtin: a}}".to_owned(),
            "spec.layer",
            "speaks as builtin: leave the layer out",
        ),
        (
            "{layer: admin, digest: abc, source: {configMap: {namespace: a, name: b}}}".to_owned(),
            "spec.digest",
            "expected sha256:",
        ),
        (rule("reason: x"), "spec.rules[0]", "says nothing"),
        (rule("actions: [], refuse: true, reason: x"), "spec.rules[0]", "says two things"),
        (rule("refuse: true"), "spec.rules[0]", "say why, and what to do instead"),
        (rule("abstain: true, reason: x"), "spec.rules[0]", "write it as a comment"),
        (rule("refuse: false, reason: x"), "spec.rules[0].refuse", "can only be true"),
        (rule("actions: [], drain: false"), "spec.rules[0].drain", "beside a reboot"),
        (
            rule("actions: [{do: reboot}, {do: drain}]"),
            "spec.rules[0].actions",
            "a reboot stands alone",
        ),
        (rule("actions: [{do: restart}]"), "spec.rules[0].actions[0].unit", "need a unit"),
        (
            rule("actions: [{do: drain, unit: a.service}]"),
            "spec.rules[0].actions[0].unit",
            "the others take none",
        ),
        (
            format!(
                "{{layer: template, rules: [{{{MATCH}, actions: [{{do: reboot}}], drain: false}}]}}"
            ),
            "spec.rules",
            "only a policy in the admin layer",
        ),
    ] {
        let (taken, text) = said(&spec);
        assert!(!taken, "{spec} was taken");
        let found =
            text.lines().any(|line| line.contains(&format!("{field}: ")) && line.contains(words));
        assert!(found, "{spec}: expected {field} … {words}, found {text}");
    }
}

/// What `kubectl create` says of a BootImages; nothing is made.
fn said_of_images(name: &str, spec: &str) -> (bool, String) {
    let object = format!(
        "apiVersion: tread.dev/v1alpha1\nkind: BootImages\nmetadata: {{name: {name}}}\nspec: {spec}\n"
    );
    let args = ["create", "--dry-run=server", "-o", "jsonpath={.spec}", "-f", "-"];
    let ran = plane().admin().kubectl_with_input(&args, &object).unwrap();
    (ran.code == 0, format!("{}{}", ran.stdout, ran.stderr))
}

#[test]
fn how_boot_images_are_judged_is_taken_in_the_words_of_openshift() {
    for spec in [
        "{}",
        "{mode: Automatic}",
        "{mode: None}",
        "{mode: Manual, manual: {mode: OCPVersion, ocpVersion: 4.16.3}}",
        "{mode: Manual, manual: {mode: RHCOSVersion, rhcosVersion: 9.4.20240115-0}}",
        "{mode: Manual, manual: {mode: RHCOSVersion, rhcosVersion: 414.92.202402051952-0}}",
        "{limits: [{ocpVersion: 4.16.0, rhelVersion: \"9.4\"}, {stream: rhel-10, rhelVersion: \"10.1\"}]}",
    ] {
        let (taken, text) = said_of_images("cluster", spec);
        assert!(taken, "{spec}: {text}");
        assert!(text.contains("\"mode\":"), "{spec}: the mode has a default: {text}");
    }
}

#[test]
fn how_boot_images_are_judged_is_refused_with_its_field_and_a_sentence() {
    for (name, spec, field, words) in [
        ("worker", "{}", "BootImages", "its name is cluster"),
        ("cluster", "{mode: Manual}", "spec.manual", "which boot image in use is the oldest"),
        ("cluster", "{mode: none}", "spec.mode", "supported values: \"Automatic\""),
        (
            "cluster",
            "{manual: {mode: OCPVersion, ocpVersion: 4.16.3}}",
            "spec.manual",
            "only the mode Manual reads this",
        ),
        (
            "cluster",
            "{mode: Manual, manual: {mode: OCPVersion}}",
            "spec.manual.ocpVersion",
            "is missing",
        ),
        (
            "cluster",
            "{mode: Manual, manual: {mode: RHCOSVersion, ocpVersion: 4.16.3}}",
            "spec.manual.ocpVersion",
            "only the mode OCPVersion reads this",
        ),
        (
            "cluster",
            "{mode: Manual, manual: {mode: OCPVersion, ocpVersion: 4.16}}",
            "spec.manual.ocpVersion",
            "must be of type string",
        ),
        (
            "cluster",
            "{mode: Manual, manual: {mode: OCPVersion, ocpVersion: v4.16.3}}",
            "spec.manual.ocpVersion",
            "expected three numbers with dots",
        ),
        (
            "cluster",
            "{mode: Manual, manual: {mode: RHCOSVersion, rhcosVersion: 9.4.2024011500-0}}",
            "spec.manual.rhcosVersion",
            "expected one as in 9.4.20240115-0",
        ),
        ("cluster", "{limits: [{stream: rhel-10}]}", "spec.limits[0]", "asks for nothing"),
        (
            "cluster",
            "{limits: [{rhelVersion: \"9.4.1\"}]}",
            "spec.limits[0].rhelVersion",
            "expected two numbers with a dot",
        ),
    ] {
        let (taken, text) = said_of_images(name, spec);
        assert!(!taken, "{spec} was taken");
        let found = text.lines().any(|line| line.contains(field) && line.contains(words));
        assert!(found, "{spec}: expected {field} … {words}, found {text}");
    }
}

#[test]
fn the_free_parts_of_objects_are_kept_as_they_are() {
    let object = r#"
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata: {name: 99-free, labels: {machineconfiguration.openshift.io/role: worker}}
spec:
  config: {ignition: {version: 3.4.0}, storage: {files: [{path: /etc/a, mode: 420, new: {deep: [1]}}]}}
"#;
    plane().apply(object).unwrap();
    let path = "jsonpath={.spec.config.storage.files[0].new.deep[0]}";
    let kept = plane().kubectl(&["get", "mc", "99-free", "-o", path]).unwrap().success().unwrap();
    assert_eq!(kept, "1");
}

/// What the API server makes of a Rollout with this field: the object as it would stand, or why it
/// is refused. Nothing is made.
fn rollout_with(field: &str, value: &Value) -> Result<Value, String> {
    let object = json!({"apiVersion": "tread.dev/v1alpha1", "kind": "Rollout",
        "metadata": {"name": "worker"}, "spec": {field: value}});
    let args = ["create", "--dry-run=server", "-o", "json", "-f", "-"];
    let ran = plane().admin().kubectl_with_input(&args, &object.to_string()).unwrap();
    if ran.code == 0 { Ok(serde_json::from_str(&ran.stdout).unwrap()) } else { Err(ran.stderr) }
}

/// One that is taken and cannot be read would keep what it said before, even if it is paused by the
/// same change.
#[test]
fn what_is_taken_of_a_rollout_can_be_read_however_odd_it_is() {
    let numbers = ["0", "-1", "1", "10001", "1000000", "1000001", "2147483648", "3000000000"];
    let numbers = numbers.map(|it| serde_json::from_str::<Value>(it).unwrap());
    let times = [
        "2026-10-21T07:28:00Z",
        "2026-10-21t07:28:00.123456789z",
        "2026-10-21T07:28:00+02:00",
        "2026-10-21T07:28:00+99:99",
        "2026-10-21T07:28:00+00:60",
        "2026-10-21T07:28:00.1234567890Z",
        "2026-10-21T07:28:00",
        "2026-06-30T23:59:60Z",
        "0000-01-01T00:00:00Z",
        "9999-12-31T23:59:59-12:00",
        "2999-12-31T23:59:59Z",
        "2026-10-21",
    ]
    .map(Value::from);
    let (mut taken, mut refused) = (0, 0);
    let mut take = |field: &str, value: &Value| match rollout_with(field, value) {
        Ok(object) => {
            let read = serde_json::from_value::<Rollout>(object.clone());
            assert!(read.is_ok(), "{field}: {value} is taken as {}: {read:?}", object["spec"]);
            taken += 1;
        }
        Err(why) => {
            assert!(why.contains(field), "{field}: {value}: {why}");
            refused += 1;
        }
    };
    for value in &numbers {
        for field in ["maxUnavailable", "softLimit", "haltAfter"] {
            take(field, value);
        }
        take("retry", &json!({"attempts": value}));
    }
    times.iter().for_each(|value| take("retryFailedBefore", value));
    assert!(taken > 5 && refused > 20, "{taken} {refused}");
}

#[test]
fn taints_that_no_node_may_have_are_refused_before_a_node_joins() {
    let taint = |key: &str, value: &str, effect: &str| json!({"key": key, "value": value, "effect": effect});
    let (long, longer) = ("a".repeat(63), "a".repeat(64));
    let keys = ["dedicated", "node-role.kubernetes.io/infra", "A_b.c", &format!("a.b/{long}")];
    let values = ["", "a", "a.b_c-D", &long];
    for (key, value) in keys.iter().flat_map(|key| values.iter().map(move |value| (key, value))) {
        let taken = rollout_with("nodeTaints", &json!([taint(key, value, "NoSchedule")]));
        assert!(taken.is_ok(), "{key}={value}: {taken:?}");
    }
    let refused = |taints: &Value, says: &str| {
        let why = rollout_with("nodeTaints", taints).unwrap_err();
        assert!(why.contains(says), "{taints}: {why}");
    };
    for key in ["de dicated", "a/b/c", "A.b/c", "/a", "a/", "-a", "a-", &longer, "a..b/c"] {
        refused(&json!([taint(key, "", "NoSchedule")]), "write a key as labels have");
    }
    for value in ["a b", "-a", "a.", "a/b", "a=b"] {
        refused(&json!([taint("a", value, "NoSchedule")]), "write a value as labels have");
    }
    let two = |effect: &str| json!([taint("a", "b", "NoSchedule"), taint("a", "c", effect)]);
    assert!(rollout_with("nodeTaints", &two("NoExecute")).is_ok());
    refused(&two("NoSchedule"), "one taint of a key and an effect");
}
