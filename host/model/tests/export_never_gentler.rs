//! What is exported to OpenShift never treats a node more gently than the rules
//! say, also where OpenShift has defaults of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use proptest::prelude::*;
use serde::Deserialize as _;
use serde_json::{Value, json};
use tread_model::openshift::{Voice, export};
use tread_model::plan::{Step, needs_daemon_reload, steps};
use tread_model::read::Input;
use tread_model::rules::{self, RuleAction, RuleSet, RulesPolicy, Then, deciding_rule};
use tread_model::verdict::{Action, Layer};

/// None names a directory exactly: an entry stands for all below it as well.
const PATTERNS: [&str; 38] = [
    "file:/etc/a/**",
    "file:/etc/a/b/**",
    "file:/etc/a/x.conf",
    "file:/etc/a/*.conf",
    "file:/etc/a/*/x.conf",
    "file:/etc/a**",
    "file:/etc/a*/**",
    "file:/etc/?/x.conf",
    "file:/etc/[ab]/**",
    "file:/etc/{a,a/b}/**",
    "file:/etc/**/x.conf",
    "file:**/x.conf",
    "file:/etc/a/**/y.conf",
    "file:/etc/*/**",
    "file:/etc/*",
    "file:/*/a/**",
    "file:/etc/containers/**",
    "file:/etc/containers/registries.d/*.yaml",
    "file:/etc/containers/registries.d/x.yaml",
    "file:/etc/containers/registries.conf",
    "file:/etc/containers/*.json",
    "file:/etc/crio/policies/**",
    "file:/etc/crio/**",
    "file:/var/lib/kubelet/config.json",
    "file:/var/**",
    "file:/etc/systemd/**",
    "file:/etc/systemd/system/**",
    "file:/etc/systemd/system/kubelet.service.d/*",
    "file:/etc/systemd/system/kubelet.service.d/**",
    "unit:a.service",
    "unit:*",
    "unit:iri-registry.service",
    "unit:{a,b}.service",
    "ssh-keys:*",
    "ssh-keys:core",
    "password:core",
    "password:*",
    "os-image",
];

const IDS: [&str; 30] = [
    "file:/etc/x.conf",
    "file:/etc/a/x.conf",
    "file:/etc/a/y.conf",
    "file:/etc/a/b/x.conf",
    "file:/etc/a/b/c/y.conf",
    "file:/etc/ab/x.conf",
    "file:/etc/b/x.conf",
    "file:/opt/x.conf",
    "file:/opt/a/q.conf",
    "file:/x.conf",
    "file:/etc/containers/storage.conf",
    "file:/etc/containers/registries.conf",
    "file:/etc/containers/policy.json",
    "file:/etc/containers/registries.d/x.yaml",
    "file:/etc/containers/registries.d/y.conf",
    "file:/etc/crio/policies/z.json",
    "file:/etc/crio/crio.conf",
    "file:/var/lib/kubelet/config.json",
    "file:/var/x.conf",
    "file:/etc/fstab",
    "file:/etc/init.d/app",
    "file:/etc/systemd/system-generators/app",
    "file:/etc/systemd/journald.conf",
    "file:/etc/systemd/system/a.service.d/1.conf",
    "file:/etc/systemd/system/kubelet.service.d/40-kubelet-crio-image-credential-provider.conf",
    "unit:a.service",
    "unit:b.service",
    "unit:iri-registry.service",
    "ssh-keys:core",
    "password:core",
];

/// What OpenShift does without an entry, where that is no reboot.
fn default_for(id: &str) -> Option<Vec<Action>> {
    let reload = || vec![Action::Reload("crio.service".to_owned())];
    let restart = |unit: &str| vec![Action::Restart(unit.to_owned())];
    match id {
        "file:/var/lib/kubelet/config.json" | "ssh-keys:core" | "password:core" => Some(vec![]),
        "file:/etc/containers/policy.json" | "file:/etc/containers/registries.conf" => {
            Some(reload())
        }
        "unit:iri-registry.service" => Some(restart("iri-registry.service")),
        _ if id.starts_with("file:/etc/containers/registries.d/") => Some(reload()),
        _ if id.starts_with("file:/etc/crio/policies/") => Some(reload()),
        _ if id.ends_with("credential-provider.conf") => Some(restart("kubelet.service")),
        _ => None,
    }
}

fn answer() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({"actions": []})),
        Just(json!({"actions": [{"do": "restart", "unit": "a.service"}]})),
        Just(json!({"actions": [{"do": "reload", "unit": "crio.service"}]})),
        Just(json!({"actions": [{"do": "daemon-reload"}]})),
        Just(json!({"actions": [{"do": "reload", "unit": "b.service"}, {"do": "drain"}]})),
        Just(json!({"actions": [{"do": "restart", "unit": "a@1.service"}]})),
        Just(json!({"actions": [{"do": "reboot"}]})),
        Just(json!({"refuse": true, "reason": "no"})),
        Just(json!({"abstain": true})),
    ]
}

fn policy() -> impl Strategy<Value = (Vec<Value>, &'static str)> {
    let patterns = prop::collection::btree_set(prop::sample::select(&PATTERNS[..]), 1..3);
    let rule = (patterns, answer()).prop_map(|(patterns, mut rule)| {
        rule["match"] = json!(patterns);
        rule
    });
    (prop::collection::vec(rule, 1..5), prop::sample::select(&["admin", "template"][..]))
}

fn read(object: &Value) -> Option<RulesPolicy> {
    let text = object.to_string();
    let read = rules::read(&Input { name: "rules.json", bytes: text.as_bytes() });
    read.ok().map(|mut all| all.remove(0))
}

/// None where the rules contradict themselves.
fn named(name: &str, (rules, layer): &(Vec<Value>, &str)) -> Option<RulesPolicy> {
    read(&json!({
        "apiVersion": "tread.dev/v1alpha1", "kind": "DisruptionPolicy",
        "metadata": {"name": name}, "spec": {"layer": layer, "rules": rules},
    }))
}

fn said(policy: &RulesPolicy, id: &str) -> Option<Then> {
    let rules = RuleSet::deserialize(&policy.settings).unwrap().rules;
    let then = rules[deciding_rule(&rules, id)?].then.clone();
    (then != Then::Abstain).then_some(then)
}

/// What the policies of a layer come to: nothing, or steps. A refusal counts as
/// a reboot, which is the most that OpenShift's object can say.
fn of_layer(policies: &[RulesPolicy], layer: Layer, id: &str) -> Option<Vec<Step>> {
    let mut all: Option<Vec<Action>> = None;
    for policy in policies.iter().filter(|policy| policy.layer == layer) {
        match said(policy, id) {
            Some(Then::Act { actions, .. }) => {
                all.get_or_insert_default().extend(actions.iter().map(RuleAction::action));
            }
            Some(_) => all.get_or_insert_default().push(Action::Reboot),
            None => {}
        }
    }
    all.map(|actions| steps(&actions, needs_daemon_reload(id)))
}

/// With the entries that were exported, if there are any.
fn in_openshift(entries: Option<&RulesPolicy>, id: &str) -> Vec<Step> {
    let actions = match entries.and_then(|entries| said(entries, id)) {
        Some(Then::Act { actions, .. }) => actions.iter().map(RuleAction::action).collect(),
        _ => default_for(id).unwrap_or_else(|| vec![Action::Reboot]),
    };
    steps(&actions, false)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_two_policies_of_rules_say_no_entry_and_no_default_does_less(
        one in policy(), two in policy(),
    ) {
        let policies: Vec<RulesPolicy> =
            [named("one", &one), named("two", &two)].into_iter().flatten().collect();
        let voices: Vec<Voice> = policies.iter().map(Voice::from).collect();
        let export = export(&voices);
        let entries = read(&serde_json::to_value(&export.manifest).unwrap());
        for id in IDS {
            let spoken = of_layer(&policies, Layer::Admin, id)
                .or_else(|| of_layer(&policies, Layer::Template, id));
            // Where nobody speaks a default may.
            let in_tread = match spoken {
                Some(steps) => steps,
                None if default_for(id).is_some() => continue,
                None => steps(&[Action::Reboot], false),
            };
            let in_openshift = in_openshift(entries.as_ref(), id);
            let reboots = |steps: &[Step]| steps.contains(&Step::Reboot);
            let has_all = in_tread.iter().all(|step| in_openshift.contains(step));
            prop_assert!(
                reboots(&in_openshift) || (!reboots(&in_tread) && has_all),
                "{id}: {in_tread:?} became {in_openshift:?}\n{export:#?}"
            );
        }
    }
}
