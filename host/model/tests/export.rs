//! What is exported to OpenShift and read back decides as before.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use proptest::prelude::*;
use serde::Deserialize as _;
use serde_json::{Value, json};
use tread_model::openshift::{Export, Voice, export};
use tread_model::plan::{Step, needs_daemon_reload, steps};
use tread_model::read::Input;
use tread_model::rules::{self, RuleAction, RuleSet, RulesPolicy, Then, deciding_rule};
use tread_model::verdict::Action;

/// Files end in `.conf`, directories do not, so that none is both.
const PATTERNS: [&str; 17] = [
    "file:/etc/a/**",
    "file:/etc/a/b/**",
    "file:/etc/a/x.conf",
    "file:/etc/a/b/x.conf",
    "file:/etc/a/*.conf",
    "file:/etc/a/b/*.conf",
    "file:/etc/a/*/x.conf",
    "file:/etc/{a,c}/**",
    "file:/etc/**",
    "file:/**",
    "file:/etc/containers/**",
    "file:/etc/containers/registries.conf",
    "file:/etc/systemd/**",
    "unit:a.service",
    "unit:*",
    "ssh-keys:*",
    "password:core",
];

const IDS: [&str; 19] = [
    "file:/etc/x.conf",
    "file:/etc/a/x.conf",
    "file:/etc/a/y.conf",
    "file:/etc/a/b/x.conf",
    "file:/etc/a/b/y.conf",
    "file:/etc/a/b/c/y.conf",
    "file:/etc/a/d/x.conf",
    "file:/etc/c/x.conf",
    "file:/opt/x.conf",
    "file:/etc/containers/storage.conf",
    "file:/etc/containers/registries.conf",
    "file:/etc/fstab",
    "file:/etc/init.d/app",
    "file:/etc/systemd/system-generators/app",
    "file:/etc/systemd/journald.conf",
    "file:/etc/systemd/system/a.service.d/1.conf",
    "unit:a.service",
    "ssh-keys:core",
    "password:core",
];

fn answer() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({"actions": []})),
        Just(json!({"actions": [{"do": "restart", "unit": "a.service"}]})),
        Just(json!({"actions": [{"do": "reload", "unit": "b.service"}, {"do": "drain"}]})),
        Just(json!({"actions": [{"do": "restart", "unit": "a@1.service"}]})),
        Just(json!({"actions": [{"do": "reboot"}]})),
        Just(json!({"actions": [{"do": "reboot"}], "drain": false})),
        Just(json!({"refuse": true, "reason": "no"})),
        Just(json!({"abstain": true})),
    ]
}

fn rule() -> impl Strategy<Value = Value> {
    let patterns = prop::collection::btree_set(prop::sample::select(&PATTERNS[..]), 1..3);
    (patterns, answer()).prop_map(|(patterns, mut answer)| {
        answer["match"] = json!(patterns);
        answer
    })
}

fn read(object: &Value) -> RulesPolicy {
    let text = object.to_string();
    let read = rules::read(&Input { name: "rules.json", bytes: text.as_bytes() });
    read.unwrap_or_else(|error| panic!("{error}\n{object:#}")).remove(0)
}

fn admin(rules: &[Value]) -> RulesPolicy {
    read(&json!({
        "apiVersion": "tread.dev/v1alpha1", "kind": "DisruptionPolicy",
        "metadata": {"name": "mine"}, "spec": {"rules": rules},
    }))
}

/// What rules say of a change: nothing, or what they answer.
fn said(policy: &RulesPolicy, id: &str) -> Option<Then> {
    let rules = RuleSet::deserialize(&policy.settings).unwrap().rules;
    let then = rules[deciding_rule(&rules, id)?].then.clone();
    (then != Then::Abstain).then_some(then)
}

/// The steps of an answer; none for a refusal.
fn steps_of(then: Option<&Then>, id: &str) -> Option<Vec<Step>> {
    let reboot = vec![Action::Reboot];
    let actions = match then {
        Some(Then::Act { actions, .. }) => actions.iter().map(RuleAction::action).collect(),
        Some(Then::Refuse { .. }) => return None,
        Some(Then::Abstain) | None => reboot,
    };
    Some(steps(&actions, needs_daemon_reload(id)))
}

fn back(export: &Export) -> RulesPolicy {
    read(&serde_json::to_value(&export.manifest).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// Without built-ins, so that what nobody answers is a reboot on both sides.
    #[test]
    fn what_is_exported_decides_in_openshift_as_in_tread_or_reboots(
        rules in prop::collection::vec(rule(), 1..6),
    ) {
        let policy = admin(&rules);
        let export = export(&[Voice::from(&policy)]);
        let back = back(&export);
        for id in IDS {
            // OpenShift has one answer for both, which is none by default.
            let keys = id.starts_with("ssh-keys:") || id.starts_with("password:");
            let of_openshift = said(&back, id);
            if of_openshift.is_none() && keys {
                continue;
            }
            // Where nothing is exported for one of its defaults, that decides.
            if of_openshift.is_none() && id.ends_with("/registries.conf") {
                continue;
            }
            let in_tread = steps_of(said(&policy, id).as_ref(), id);
            let in_openshift = steps_of(of_openshift.as_ref(), id);
            let rebooted = in_openshift == steps_of(None, id);
            prop_assert!(
                in_openshift == in_tread || rebooted,
                "{id}: {in_tread:?} became {in_openshift:?}\n{export:#?}"
            );
            // A reboot in place of something else is never silent.
            if rebooted && in_tread.is_some() && in_openshift != in_tread {
                prop_assert!(!export.left_out.is_empty(), "{id}\n{export:#?}");
            }
        }
    }

    #[test]
    fn rules_without_globs_are_exported_whole(
        answers in prop::collection::vec(prop::sample::select(vec![0, 1, 2, 3]), 6),
    ) {
        let patterns = [
            "file:/etc/a/**", "file:/etc/a/b/**", "file:/etc/a/b/x.conf", "file:/etc/c/x.conf",
            "unit:a.service", "file:/etc/containers/**",
        ];
        let actions = [
            json!([]),
            json!([{"do": "restart", "unit": "a.service"}, {"do": "daemon-reload"}]),
            json!([{"do": "drain"}, {"do": "reload", "unit": "b.service"}]),
            json!([{"do": "reboot"}]),
        ];
        let rules: Vec<Value> = patterns
            .iter()
            .zip(&answers)
            .map(|(pattern, answer)| json!({"match": [pattern], "actions": actions[*answer]}))
            .collect();
        let policy = admin(&rules);
        let export = export(&[Voice::from(&policy)]);
        prop_assert_eq!(&export.left_out, &[]);
        let back = back(&export);
        for id in IDS.iter().filter(|id| said(&policy, id).is_some()) {
            prop_assert_eq!(
                steps_of(said(&back, id).as_ref(), id),
                steps_of(said(&policy, id).as_ref(), id),
                "{}\n{:#?}", id, export
            );
        }
    }

    #[test]
    fn a_manifest_of_rules_reads_as_the_rules(rules in prop::collection::vec(rule(), 1..6)) {
        let policy = admin(&rules);
        let manifest = serde_json::to_value(rules::manifest(&policy, "mine")).unwrap();
        prop_assert_eq!(read(&manifest), policy);
    }
}

#[test]
fn openshifts_object_as_a_manifest_decides_as_before() {
    let restart = |unit: &str| json!([{"type": "Restart", "restart": {"serviceName": unit}}]);
    let object = json!({
        "apiVersion": "operator.openshift.io/v1", "kind": "MachineConfiguration",
        "metadata": {"name": "cluster"}, "spec": {"nodeDisruptionPolicy": {
            "files": [
                {"path": "/etc/containers", "actions": restart("a.service")},
                {"path": "/etc/chrony.d/", "actions": restart("chronyd.service")},
                {"path": "/etc/b[1].conf", "actions": [{"type": "None"}]},
            ],
            "units": [{"name": "a.service", "actions": [{"type": "Drain"}, {"type": "DaemonReload"}]}],
            "sshkey": {"actions": [{"type": "Reboot"}]},
        }},
    });
    let policy = read(&object);
    let manifest = serde_json::to_value(rules::manifest(&policy, "ours")).unwrap();
    let again = read(&manifest);
    assert_eq!(again.name, "ours");
    assert_eq!((again.settings, again.claims), (policy.settings, policy.claims));
}
