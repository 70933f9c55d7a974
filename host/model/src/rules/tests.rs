use super::*;
use crate::effect::Effect;
use crate::read::Input;
use crate::verdict::Layer;
use serde::Deserialize;

fn input<'a>(name: &'a str, text: &'a str) -> Input<'a> {
    Input { name, bytes: text.as_bytes() }
}

fn one(text: &str) -> RulesPolicy {
    let mut policies = read(&input("rules.yaml", text)).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(policies.len(), 1);
    policies.remove(0)
}

fn problems(text: &str) -> Vec<String> {
    let error = read(&input("rules.yaml", text)).expect_err(text);
    error.0.iter().map(|problem| format!("{}: {}", problem.path, problem.message)).collect()
}

/// A DisruptionPolicy named `chrony` with the given rules, in flow style.
fn with_rules(rules: &[&str]) -> String {
    let rules: String = rules.iter().map(|rule| format!("  - {rule}\n")).collect();
    format!(
        "apiVersion: tread.dev/v1alpha1\nkind: DisruptionPolicy\nmetadata: {{name: chrony}}\n\
         spec:\n  rules:\n{rules}"
    )
}

fn with_spec(spec: &str) -> String {
    format!(
        "apiVersion: tread.dev/v1alpha1\nkind: DisruptionPolicy\nmetadata: {{name: chrony}}\n\
         spec: {spec}\n"
    )
}

#[test]
fn rules_become_settings_and_claims() {
    let policy = one("apiVersion: tread.dev/v1alpha1\n\
         kind: DisruptionPolicy\n\
         metadata: {name: chrony, labels: {a: b}}\n\
         spec:\n\
         \x20 layer: template\n\
         \x20 rules:\n\
         \x20 - match: [\"file:/etc/chrony.conf\", \"file:/etc/chrony.d/**\"]\n\
         \x20   actions: [{do: restart, unit: chronyd.service}]\n\
         \x20   reason: chronyd reads its configuration at start\n\
         \x20 - {match: [\"file:/etc/motd\"], actions: []}\n\
         \x20 - {match: [\"file:/etc/secret/**\"], refuse: true, reason: Ask the vault team.}\n\
         \x20 - {match: [\"file:/etc/chrony.d/keys\"], abstain: true}\n");
    assert_eq!((policy.name.as_str(), policy.layer), ("chrony", Layer::Template));
    assert!(!policy.may_relax);
    let claims: Vec<_> =
        policy.claims.iter().map(|c| (c.changes.as_str(), c.least, c.most)).collect();
    assert_eq!(
        claims,
        [
            ("file:/etc/chrony.conf", Effect::Restart, Effect::Restart),
            ("file:/etc/chrony.d/**", Effect::Restart, Effect::Restart),
            ("file:/etc/motd", Effect::None, Effect::None),
            ("file:/etc/secret/**", Effect::Refuse, Effect::Refuse),
        ]
    );
    assert_eq!(
        policy.settings.to_string(),
        concat!(
            r#"{"rules":[{"match":["file:/etc/chrony.conf","file:/etc/chrony.d/**"],"#,
            r#""then":{"actions":[{"do":"restart","unit":"chronyd.service"}],"answer":"act","#,
            r#""reason":"chronyd reads its configuration at start"}},"#,
            r#"{"match":["file:/etc/motd"],"then":{"actions":[],"answer":"act","#,
            r#""reason":"The rule for file:/etc/motd in chrony says that writing it is enough."}},"#,
            r#"{"match":["file:/etc/secret/**"],"then":{"answer":"refuse","#,
            r#""reason":"Ask the vault team."}},"#,
            r#"{"match":["file:/etc/chrony.d/keys"],"then":{"answer":"abstain"}}]}"#
        )
    );
    assert_eq!(policy.warnings, [""; 0]);
    let back: RuleSet = serde_json::from_value(policy.settings).expect("settings");
    assert_eq!(back.rules.len(), 4);
}

#[test]
fn the_claimed_effect_is_that_of_the_actions() {
    for (actions, effect) in [
        ("[]", Effect::None),
        ("[{do: daemon-reload}]", Effect::Reload),
        ("[{do: reload, unit: a.service}]", Effect::Reload),
        ("[{do: restart, unit: coreos-update-ca-trust.service}]", Effect::Reload),
        ("[{do: reload, unit: a.service}, {do: restart, unit: b.service}]", Effect::Restart),
        ("[{do: restart, unit: a.service}, {do: drain}]", Effect::Drain),
        ("[{do: reboot}]", Effect::Reboot),
    ] {
        let policy =
            one(&with_rules(&[&format!("{{match: [\"unit:a*.service\"], actions: {actions}}}")]));
        assert_eq!(policy.claims[0].least, effect, "{actions}");
        assert_eq!(policy.claims[0].most, effect, "{actions}");
    }
}

#[test]
fn a_reboot_without_a_drain_is_for_admins() {
    let rule = "{match: [\"file:/etc/big.conf\"], actions: [{do: reboot}], drain: false}";
    let policy = one(&with_rules(&[rule]));
    assert_eq!(policy.layer, Layer::Admin, "the default");
    assert!(
        policy.settings.to_string().contains(r#""do":"reboot-undrained""#),
        "{}",
        policy.settings
    );
    assert_eq!(policy.claims[0].most, Effect::Reboot);
    let found = problems(&with_spec(&format!("{{layer: template, rules: [{rule}]}}")));
    assert_eq!(found.len(), 1);
    assert!(
        found[0].starts_with("spec.rules[0].drain: only a policy in the admin layer"),
        "{found:?}"
    );
}

#[test]
fn what_is_no_rule_names_the_field_and_says_why() {
    let m = "match: [\"file:/etc/a\"]";
    for (rule, path, word) in [
        ("{actions: []}".to_owned(), "spec.rules[0].match", "missing or empty"),
        ("{match: [], actions: []}".to_owned(), "spec.rules[0].match", "missing or empty"),
        (
            "{match: [\"file:etc\"], actions: []}".to_owned(),
            "spec.rules[0].match[0]",
            "begins with /",
        ),
        ("{match: [3], actions: []}".to_owned(), "spec.rules[0].match[0]", "expected a string"),
        (
            "{match: \"file:/etc/a\", actions: []}".to_owned(),
            "spec.rules[0].match",
            "expected a list",
        ),
        (format!("{{{m}}}"), "spec.rules[0]", "says nothing"),
        (format!("{{{m}, actions: null}}"), "spec.rules[0]", "says nothing"),
        (format!("{{{m}, actions: [], refuse: true, reason: x}}"), "spec.rules[0]", "two things"),
        (format!("{{{m}, actions: [], abstain: true}}"), "spec.rules[0]", "two things"),
        (format!("{{{m}, refuse: true, abstain: true, reason: x}}"), "spec.rules[0]", "two things"),
        (format!("{{{m}, refuse: true}}"), "spec.rules[0].reason", "is missing"),
        (format!("{{{m}, refuse: true, reason: \" \"}}"), "spec.rules[0].reason", "is empty"),
        (format!("{{{m}, actions: [], reason: \"a\\nb\"}}"), "spec.rules[0].reason", "one line"),
        (
            format!("{{{m}, actions: [], reason: {}}}", "a".repeat(513)),
            "spec.rules[0].reason",
            "longer",
        ),
        (format!("{{{m}, abstain: true, reason: x}}"), "spec.rules[0].reason", "never shown"),
        (format!("{{{m}, actions: [], refuse: false}}"), "spec.rules[0].refuse", "only be true"),
        (format!("{{{m}, actions: [], drain: false}}"), "spec.rules[0].drain", "beside a reboot"),
        (
            format!("{{{m}, actions: [{{do: daemon-reload}}], drain: true}}"),
            "spec.rules[0].drain",
            "{do: drain}",
        ),
        (
            format!("{{{m}, refuse: true, reason: x, drain: false}}"),
            "spec.rules[0].drain",
            "beside a reboot",
        ),
        (format!("{{{m}, actions: [], reboot: true}}"), "spec.rules[0].reboot", "unknown field"),
        (
            format!("{{{m}, actions: [], action: []}}"),
            "spec.rules[0].action",
            "did you mean \"actions\"",
        ),
        (
            format!("{{{m}, actions: [{{do: reboot}}, {{do: drain}}]}}"),
            "spec.rules[0].actions",
            "alone",
        ),
        (
            format!("{{{m}, actions: [{{do: restart}}]}}"),
            "spec.rules[0].actions[0].unit",
            "which unit",
        ),
        (
            format!("{{{m}, actions: [{{do: restart, unit: crio}}]}}"),
            "spec.rules[0].actions[0].unit",
            "complete",
        ),
        (
            format!("{{{m}, actions: [{{do: restart, unit: app@.service}}]}}"),
            "spec.rules[0].actions[0].unit",
            "template",
        ),
        (
            format!("{{{m}, actions: [{{do: drain, unit: a.service}}]}}"),
            "spec.rules[0].actions[0].unit",
            "takes no unit",
        ),
        (
            format!("{{{m}, actions: [{{do: Restart, unit: a.service}}]}}"),
            "spec.rules[0].actions[0].do",
            "did you mean \"restart\"",
        ),
        (
            format!("{{{m}, actions: [{{unit: a.service}}]}}"),
            "spec.rules[0].actions[0].do",
            "is missing",
        ),
        (
            format!("{{{m}, actions: [{{do: drain, when: now}}]}}"),
            "spec.rules[0].actions[0].when",
            "unknown field",
        ),
        (
            format!("{{{m}, actions: [{{do: drain}}, {{do: drain}}]}}"),
            "spec.rules[0].actions[1]",
            "twice",
        ),
        (format!("{{{m}, actions: [reboot]}}"), "spec.rules[0].actions[0]", "{do: restart, unit:"),
        (format!("{{{m}, actions: [{{do: none}}]}}"), "spec.rules[0].actions[0].do", "actions: []"),
    ] {
        let found = problems(&with_rules(&[&rule]));
        let wanted = found.iter().any(|problem| {
            problem
                .strip_prefix(path)
                .is_some_and(|rest| rest.starts_with(": ") && rest.contains(word))
        });
        assert!(wanted, "{rule}: expected {path} … {word}, found {found:?}");
        assert_eq!(found.len(), 1, "{rule}: {found:?}");
    }
}

#[test]
fn what_is_no_policy_of_rules_says_what_is_expected() {
    let rule = "rules: [{match: [os-image], actions: []}]";
    for (text, path, word) in [
        (
            with_spec("{source: {configMap: {namespace: a, name: b, key: c}}}"),
            "spec.source",
            "inline",
        ),
        (with_spec("{}"), "spec.rules", "is missing"),
        (with_spec("{rules: []}"), "spec.rules", "is empty"),
        (with_spec(&format!("{{layer: builtin, {rule}}}")), "spec.layer", "only tread itself"),
        (with_spec(&format!("{{layer: admn, {rule}}}")), "spec.layer", "did you mean"),
        (with_spec(&format!("{{mode: Shadow, {rule}}}")), "spec.mode", "decide nothing"),
        (with_spec(&format!("{{settings: {{}}, {rule}}}")), "spec.settings", "leave it out"),
        (with_spec(&format!("{{rule: [], {rule}}}")), "spec.rule", "did you mean \"rules\""),
        (
            "{apiVersion: tread.dev/v1, kind: DisruptionPolicy}".into(),
            "apiVersion",
            "tread.dev/v1alpha1",
        ),
        ("{apiVersion: v1, kind: MachineConfig}".into(), "kind", "unknown kind of rules"),
        ("{apiVersion: v1}".into(), "kind", "is missing"),
        ("[1]".into(), "", "expected an object"),
        (with_spec(&format!("{{{rule}}}")).replace("chrony", "Chrony"), "metadata.name", "no name"),
        (
            with_spec(&format!("{{{rule}}}")).replace("{name: chrony}", "{}"),
            "metadata.name",
            "is missing",
        ),
        (
            with_spec(&format!("{{{rule}}}")).replace("metadata: {name: chrony}\n", ""),
            "metadata",
            "is missing",
        ),
    ] {
        let found = problems(&text);
        let wanted = found.iter().any(|problem| {
            problem
                .strip_prefix(path)
                .is_some_and(|rest| rest.starts_with(": ") && rest.contains(word))
        });
        assert!(wanted, "{text}: expected {path} … {word}, found {found:?}");
        assert_eq!(found.len(), 1, "{text}: {found:?}");
    }
}

#[test]
fn what_the_api_fills_in_does_no_harm() {
    let policy = one(&with_spec(
        "{approved: true, mode: Enforce, mayRelax: true, readSecrets: false, layer: template, \
         rules: [{match: [os-image], actions: [{do: reboot}]}]}\nstatus: {state: Loaded}",
    ));
    assert!(policy.may_relax);
}

#[test]
fn a_pattern_that_never_decides_is_a_warning() {
    let policy = one(&with_rules(&[
        "{match: [\"file:/etc/a\"], actions: []}",
        "{match: [\"file:/etc/b\", \"file:/etc/a\"], actions: [{do: reboot}]}",
        "{match: [\"file:/etc/c*\", \"file:/etc/c*\"], actions: []}",
    ]));
    assert_eq!(
        policy.warnings,
        [
            "Rule 2 of chrony never decides on file:/etc/a: rule 1 matches it first.",
            "Rule 3 of chrony names file:/etc/c* twice.",
        ]
    );
    let claims: Vec<_> = policy.claims.iter().map(|c| (c.changes.as_str(), c.most)).collect();
    assert_eq!(
        claims,
        [
            ("file:/etc/a", Effect::None),
            ("file:/etc/b", Effect::Reboot),
            ("file:/etc/c*", Effect::None),
        ]
    );
    let policy = one(&with_rules(&[
        "{match: [\"file:/etc/a/*\"], actions: []}",
        "{match: [\"file:/etc/a/?\", \"file:/etc/a/[x]\"], refuse: true, reason: Never.}",
        "{match: [\"file:/etc/a/*/b\"], refuse: true, reason: Never.}",
    ]));
    let never = |text: &str| {
        format!(
            "Rule 2 of chrony never decides on {text}: file:/etc/a/* of rule 1 matches all of \
             that, is as close, and stands before it."
        )
    };
    assert_eq!(warnings(&policy), [never("file:/etc/a/?"), never("file:/etc/a/[x]")]);
}

#[test]
fn an_id_that_reads_like_a_glob_takes_the_place_of_none() {
    for order in [["file:/etc/a/\\\\*", "file:/etc/a/*"], ["file:/etc/a/*", "file:/etc/a/\\\\*"]] {
        let rules = order.map(|text| format!("{{match: [\"{text}\"], actions: [{{do: reboot}}]}}"));
        let policy = one(&with_rules(&rules.each_ref().map(String::as_str)));
        let claims: Vec<_> = policy.claims.iter().map(|claim| claim.changes.as_str()).collect();
        assert_eq!(claims, order.map(|text| text.replace("\\\\", "\\")), "{:?}", policy.warnings);
        assert_eq!(policy.warnings, [""; 0]);
    }
}

#[test]
fn only_an_admin_names_units_that_take_others_with_them_and_nobody_one_that_ends_the_system() {
    let rules = |layer: &str, unit: &str| {
        with_spec(&format!(
            "{{layer: {layer}, rules: [{{match: [\"file:/etc/a\"], reason: why, \
             actions: [{{do: restart, unit: {unit:?}}}]}}]}}"
        ))
    };
    for unit in ["reboot.target", "systemd-poweroff.service", "ctrl-alt-del.target", "-.mount"] {
        for layer in ["admin", "template"] {
            let found = problems(&rules(layer, unit));
            assert!(found.iter().any(|it| it.contains(unit)), "{layer} {unit}: {found:?}");
        }
    }
    let found = problems(&rules("template", "multi-user.target"));
    assert!(found[0].contains("none of services, sockets"), "{found:?}");
    let warned = warnings(&one(&rules("admin", "multi-user.target")));
    assert!(warned[0].contains("takes others with it"), "{warned:?}");
    assert_eq!(warnings(&one(&rules("admin", "a.service"))), [""; 0]);
}

#[test]
fn all_problems_of_all_documents_are_reported_with_their_place() {
    let text = format!(
        "{}---\n{}",
        with_rules(&["{match: [\"file:etc\"], actions: []}", "{match: [os-image]}"]),
        with_rules(&["{match: [x], actions: []}"]),
    );
    let error = read(&input("rules.yaml", &text)).expect_err("three problems");
    let places: Vec<_> =
        error.0.iter().map(|p| (p.file.as_str(), p.document.as_str(), p.path.as_str())).collect();
    assert_eq!(
        places,
        [
            ("rules.yaml", "1", "spec.rules[0].match[0]"),
            ("rules.yaml", "1", "spec.rules[1]"),
            ("rules.yaml", "2", "spec.rules[0].match[0]"),
        ]
    );
}

#[test]
fn two_policies_of_one_name_are_an_error() {
    let policy = with_rules(&["{match: [os-image], actions: [{do: reboot}]}"]);
    let error =
        read(&input("rules.yaml", &format!("{policy}---\n{policy}"))).expect_err("duplicate");
    assert!(
        error.to_string().contains("document 2, metadata.name: \"chrony\" is the name"),
        "{error}"
    );
    let other = policy.replace("chrony", "other");
    assert_eq!(read(&input("-", &format!("{policy}---\n{other}"))).map(|all| all.len()), Ok(2));
}

#[test]
fn of_rules_that_cannot_be_followed_it_is_known_what_their_readable_patterns_match() {
    let rules = serde_json::json!([
        {"match": ["file:/etc/crio/**", "fiel:/etc/a", 5], "refuse": true, "reason": "two\nlines"},
        {"match": ["/etc/x", "file:/etc/../x", "unit:a.service"], "actions": [{"do": "jump"}]},
        {"match": ["file:/etc/motd"], "abstain": true},
        {"match": ["file:/etc/both"], "abstain": true, "actions": []},
        {"match": "file:/etc/no-list", "actions": []},
        "file:/etc/no-rule",
    ]);
    let reboots = |claims: Vec<crate::description::Claim>| {
        assert!(claims.iter().all(|it| (it.least, it.most) == (Effect::Reboot, Effect::Reboot)));
        claims.into_iter().map(|claim| claim.changes).collect::<Vec<_>>()
    };
    assert_eq!(reboots(claimed(&rules)), ["file:/etc/crio/**", "unit:a.service", "file:/etc/both"]);
    for nothing in [serde_json::json!({}), serde_json::json!(null), serde_json::json!([1])] {
        assert_eq!(reboots(claimed(&nothing)), [""; 0], "{nothing}");
    }
}

#[test]
fn a_reason_that_is_made_up_names_patterns_and_actions() {
    for (rule, reason) in [
        (
            "{match: [\"file:/etc/a\", \"file:/etc/b\"], actions: [{do: reload, unit: a.service}, {do: drain}]}",
            "The rule for file:/etc/a and others in chrony says reload a.service, drain.",
        ),
        (
            "{match: [os-image], actions: [{do: reboot}], drain: true}",
            "The rule for os-image in chrony says reboot.",
        ),
    ] {
        let policy = one(&with_rules(&[rule]));
        let set: RuleSet = serde_json::from_value(policy.settings).expect("settings");
        let Then::Act { reason: found, .. } = &set.rules[0].then else { panic!("{rule}") };
        assert_eq!(found, reason);
    }
}

#[derive(Deserialize)]
struct Case {
    name: String,
    rules: Vec<Vec<String>>,
    id: String,
    expect: Option<usize>,
}

#[test]
fn the_rule_that_decides_is_that_of_the_shared_cases() {
    let cases: Vec<Case> =
        serde_json::from_str(include_str!("../../../../tests/cases/rules-matching.json"))
            .expect("cases");
    assert!(cases.len() > 40);
    for case in cases {
        for pattern in case.rules.iter().flatten() {
            crate::claim::Pattern::parse(pattern).unwrap_or_else(|e| panic!("{}: {e}", case.name));
        }
        let rules: Vec<Rule> =
            case.rules.into_iter().map(|r#match| Rule { r#match, then: Then::Abstain }).collect();
        assert_eq!(deciding_rule(&rules, &case.id), case.expect, "{}", case.name);
    }
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config {
        failure_persistence: None,
        ..Default::default()
    })]

    /// A file that was damaged anywhere is read or refused; what is read can be
    /// evaluated.
    #[test]
    fn no_damage_panics(at in 0..400usize, cut in 0..20usize, put in r#"[ a-z:{}\[\],"'*/\n-]{0,6}"#) {
        let text = with_rules(&[
            r#"{match: ["file:/etc/a", "unit:a@*.service"], actions: [{do: restart, unit: a.service}], reason: x}"#,
            r#"{match: [os-image], actions: [{do: reboot}], drain: false}"#,
            r#"{match: ["file:/etc/b/**"], refuse: true, reason: y}"#,
        ]);
        let mut damaged = text.into_bytes();
        let start = at.min(damaged.len());
        let end = (at + cut).min(damaged.len());
        damaged.splice(start..end, put.bytes());
        if let Ok(policies) = read(&Input { name: "rules.yaml", bytes: &damaged }) {
            for policy in policies {
                let claims = policy.claims.as_slice();
                proptest::prop_assert!(crate::claim::Router::new([(0, claims)]).is_ok());
                proptest::prop_assert!(serde_json::from_value::<RuleSet>(policy.settings).is_ok());
            }
        }
    }
}
