use crate::effect::Effect;
use crate::path::clean;
use crate::problem::Problems;
use crate::read::Input;
use crate::rules::{RuleAction, RuleSet, RulesPolicy, Then, deciding_rule, read, warnings};
use crate::verdict::Layer;
use serde::Deserialize as _;

fn try_read(policy: &str) -> Result<Vec<RulesPolicy>, Problems> {
    let text = format!(
        "apiVersion: operator.openshift.io/v1\nkind: MachineConfiguration\n\
         metadata: {{name: cluster}}\nspec: {{nodeDisruptionPolicy: {policy}}}\n"
    );
    read(&Input { name: "mc.yaml", bytes: text.as_bytes() })
}

fn policy(text: &str) -> RulesPolicy {
    try_read(text).unwrap_or_else(|error| panic!("{text}: {error}")).remove(0)
}

/// What decides on an id: the actions of an entry, or nothing.
fn actions(policy: &RulesPolicy, id: &str) -> Option<Vec<RuleAction>> {
    let set: RuleSet = RuleSet::deserialize(&policy.settings).expect("settings");
    match &set.rules[deciding_rule(&set.rules, id)?].then {
        Then::Act { actions, .. } => Some(actions.clone()),
        Then::Abstain | Then::Refuse { .. } => None,
    }
}

fn restart(unit: &str) -> RuleAction {
    RuleAction::Restart { unit: unit.into() }
}

/// An entry for a path, which restarts a unit that is named after it.
fn file(path: &str, unit: &str) -> String {
    format!("{{path: {path:?}, actions: [{{type: Restart, restart: {{serviceName: {unit}}}}}]}}")
}

fn files(entries: &[(&str, &str)]) -> RulesPolicy {
    let entries: Vec<_> = entries.iter().map(|(path, unit)| file(path, unit)).collect();
    policy(&format!("{{files: [{}]}}", entries.join(", ")))
}

#[test]
fn every_kind_of_entry_is_understood() {
    let policy = policy(
        "{files: [{path: /etc/a, actions: [{type: Drain}, {type: DaemonReload}, \
         {type: Reload, reload: {serviceName: a.service}}, \
         {type: Restart, restart: {serviceName: b.service}}]}, \
         {path: /etc/b, actions: [{type: Reboot}]}, {path: /etc/c, actions: [{type: None}]}], \
         units: [{name: app.service, actions: [{type: DaemonReload}]}], \
         sshkey: {actions: [{type: Drain}]}}",
    );
    assert_eq!((policy.name.as_str(), policy.layer), ("nodeDisruptionPolicy", Layer::Admin));
    let first = [
        RuleAction::Drain,
        RuleAction::DaemonReload,
        RuleAction::Reload { unit: "a.service".into() },
        restart("b.service"),
    ];
    for (id, expected) in [
        ("file:/etc/a", Some(first.to_vec())),
        ("file:/etc/a/x", Some(first.to_vec())),
        ("file:/etc/b", Some(vec![RuleAction::Reboot])),
        ("file:/etc/c", Some(vec![])),
        ("file:/etc/d", None),
        ("unit:app.service", Some(vec![RuleAction::DaemonReload])),
        ("unit:app2.service", None),
        ("ssh-keys:core", Some(vec![RuleAction::Drain])),
        ("password:core", Some(vec![RuleAction::Drain])),
        ("kernel-arguments", None),
    ] {
        assert_eq!(actions(&policy, id), expected, "{id}");
    }
    assert_eq!(policy.warnings, [""; 0]);
    let claims: Vec<_> = policy.claims.iter().map(|c| (c.changes.as_str(), c.most)).collect();
    assert_eq!(
        claims,
        [
            ("file:/etc/a", Effect::Drain),
            ("file:/etc/a/**", Effect::Drain),
            ("file:/etc/b", Effect::Reboot),
            ("file:/etc/b/**", Effect::Reboot),
            ("file:/etc/c", Effect::None),
            ("file:/etc/c/**", Effect::None),
            ("unit:app.service", Effect::Reload),
            ("ssh-keys:*", Effect::Drain),
            ("password:*", Effect::Drain),
        ]
    );
}

#[test]
fn the_longest_path_wins_by_whole_components() {
    let policy =
        files(&[("/etc/foo", "a.service"), ("/etc/foo/bar", "b.service"), ("/etc", "c.service")]);
    for (id, unit) in [
        ("file:/etc/foo", "a.service"),
        ("file:/etc/foo/x", "a.service"),
        ("file:/etc/foo/bar", "b.service"),
        ("file:/etc/foo/bar/x", "b.service"),
        ("file:/etc/foobar", "c.service"),
        ("file:/etc/foo/barx", "a.service"),
    ] {
        assert_eq!(actions(&policy, id), Some(vec![restart(unit)]), "{id}");
    }
    assert_eq!(actions(&policy, "file:/opt/x"), None);
}

#[test]
fn a_default_that_is_closer_than_the_users_entry_abstains() {
    let policy = files(&[
        ("/etc/containers", "a.service"),
        ("/etc/kubernetes/credential-providers", "b.service"),
    ]);
    for (id, unit) in [
        ("file:/etc/containers/storage.conf", Some("a.service")),
        ("file:/etc/containers/registries.conf.d/x.conf", Some("a.service")),
        ("file:/etc/containers/registries.conf", None),
        ("file:/etc/containers/policy.json", None),
        ("file:/etc/containers/registries.d/x.yaml", None),
        ("file:/etc/kubernetes/credential-providers/x", Some("b.service")),
        ("file:/etc/crio/policies/x.json", None),
    ] {
        assert_eq!(actions(&policy, id), unit.map(|unit| vec![restart(unit)]), "{id}");
    }
    // The pieces of registries.conf have no default of OpenShift's.
    assert_eq!(policy.warnings.len(), 1, "{:?}", policy.warnings);
    assert!(policy.warnings[0].contains("registries.conf.d changes"), "{:?}", policy.warnings);
    assert!(
        !policy.settings.to_string().contains("/etc/crio/policies"),
        "no rule without a need: {}",
        policy.settings
    );
}

#[test]
fn an_entry_for_the_path_of_a_default_replaces_it() {
    let policy = files(&[("/etc/containers/policy.json", "a.service")]);
    assert_eq!(
        actions(&policy, "file:/etc/containers/policy.json"),
        Some(vec![restart("a.service")])
    );
}

#[test]
fn a_trailing_slash_makes_a_path_longer_and_no_longer_a_file() {
    let policy = files(&[
        ("/etc/containers/registries.d/", "a.service"),
        ("/etc/foo", "b.service"),
        ("/etc/foo/", "c.service"),
    ]);
    for (id, unit) in [
        ("file:/etc/containers/registries.d/x.yaml", Some("a.service")),
        ("file:/etc/containers/registries.d", None),
        ("file:/etc/foo", Some("b.service")),
        ("file:/etc/foo/x", Some("c.service")),
    ] {
        assert_eq!(actions(&policy, id), unit.map(|unit| vec![restart(unit)]), "{id}");
    }
}

#[test]
fn a_path_written_longer_than_it_is_beats_what_is_below_it() {
    let policy = files(&[("/etc//////////foo", "a.service"), ("/etc/foo/bar", "b.service")]);
    for id in ["file:/etc/foo/bar", "file:/etc/foo/bar/x", "file:/etc/foo/x"] {
        assert_eq!(actions(&policy, id), Some(vec![restart("a.service")]), "{id}");
    }
    assert_eq!(actions(&policy, "file:/etc/foo"), None);
    assert_eq!(policy.warnings.len(), 1);
    assert!(policy.warnings[0].contains("/etc/foo/bar never decides"), "{:?}", policy.warnings);
}

#[test]
fn entries_that_match_nothing_are_kept_out_with_a_warning() {
    for path in ["", "/", "etc/foo", "../etc", "/etc/..", "."] {
        let policy = files(&[(path, "a.service")]);
        assert_eq!(policy.claims, [], "{path:?}");
        assert!(policy.warnings[0].contains("matches no file"), "{path:?} {:?}", policy.warnings);
    }
}

#[test]
fn glob_characters_in_a_path_stand_for_themselves() {
    let policy = files(&[("/etc/a*b/[c]", "a.service")]);
    assert_eq!(actions(&policy, "file:/etc/a*b/[c]"), Some(vec![restart("a.service")]));
    assert_eq!(actions(&policy, "file:/etc/a*b/[c]/x"), Some(vec![restart("a.service")]));
    assert_eq!(actions(&policy, "file:/etc/axb/c"), None);
    assert_eq!(actions(&policy, "file:/etc/axb/c/x"), None);
    // Also of an entry that reads like what is claimed for another one.
    for paths in [["/etc/foo/**", "/etc/foo"], ["/etc/foo", "/etc/foo/**"]] {
        let policy = files(&paths.map(|path| (path, "a.service")));
        let claims: Vec<_> = policy.claims.iter().map(|claim| claim.changes.as_str()).collect();
        for claim in ["file:/etc/foo", "file:/etc/foo/**", r"file:/etc/foo/\*\*"] {
            assert!(claims.contains(&claim), "{claim}: {claims:?}");
        }
    }
}

#[test]
fn an_entry_that_takes_registries_conf_loses_the_drain_check_loudly() {
    for (path, warned) in [
        ("/etc/containers/registries.conf", true),
        ("/etc/containers//////////////////////", true),
        ("/etc", true),
        ("/etc/containers", true),
        ("/etc/containers/registries.conf.d", true),
        ("/etc/containers/registries.conf.d/99-mirrors.conf", true),
        ("/etc/containers/registries.conf.d/README", false),
        ("/etc/containers/registries.conf.d/sub/a.conf", false),
        ("/etc/containers/registries.d", false),
    ] {
        let policy = files(&[(path, "crio.service")]);
        let found = policy
            .warnings
            .iter()
            .any(|w| w.contains("a drain that may be needed will not happen"));
        assert_eq!(found, warned, "{path} {:?}", policy.warnings);
    }
    let drained =
        policy("{files: [{path: /etc/containers/registries.conf, actions: [{type: Drain}]}]}");
    assert_eq!(drained.warnings, [""; 0], "nothing is lost where the entry itself drains");
    let both = policy(
        "{files: [{path: /etc/containers, actions: [{type: None}]}, \
         {path: /etc/containers/registries.conf.d, actions: [{type: Drain}]}]}",
    );
    assert_eq!(both.warnings, [""; 0], "the closer entry drains");
    let twice = files(&[
        ("/etc/containers", "crio.service"),
        ("/etc/containers/registries.conf", "crio.service"),
    ]);
    assert_eq!(twice.warnings.len(), 2, "one for each entry: {:?}", twice.warnings);
}

#[test]
fn what_is_warned_of_an_entry_is_not_told_of_a_rule_and_keys_match_no_more_than_is_meant() {
    let keys = policy("{sshkey: {actions: [{type: Drain}]}}");
    assert_eq!(warnings(&keys), [""; 0]);
    let wide = policy("{files: [{path: /etc, actions: [{type: Drain}]}]}");
    let warned = warnings(&wide).join("\n");
    let said = "An entry of nodeDisruptionPolicy matches very much with file:/etc/**";
    assert!(warned.contains(said) && !warned.contains("Rule"), "{warned}");
}

#[test]
fn an_empty_list_of_actions_is_nothing_with_a_warning() {
    let policy = policy(
        "{files: [{path: /etc/a, actions: []}], units: [{name: a.service, actions: []}], \
         sshkey: {actions: []}}",
    );
    assert_eq!(actions(&policy, "file:/etc/a"), Some(vec![]));
    assert_eq!(actions(&policy, "unit:a.service"), Some(vec![]));
    assert_eq!(actions(&policy, "ssh-keys:core"), None, "OpenShift keeps its default");
    for part in
        ["for /etc/a lists no action", "for a.service lists no action", "sshkey has no actions"]
    {
        assert!(policy.warnings.iter().any(|w| w.contains(part)), "{part}: {:?}", policy.warnings);
    }
}

#[test]
fn an_object_without_entries_says_that_it_changes_nothing() {
    for spec in ["{}", "{nodeDisruptionPolicy: {}}", "{managementState: Managed, logLevel: Normal}"]
    {
        let text = format!(
            "{{apiVersion: operator.openshift.io/v1, kind: MachineConfiguration, \
             metadata: {{name: cluster}}, spec: {spec}, status: {{}}}}"
        );
        let policies = read(&Input { name: "-", bytes: text.as_bytes() }).expect(spec);
        assert_eq!(policies[0].claims, [], "{spec}");
        assert_eq!(policies[0].warnings.len(), 1, "{spec}");
    }
}

#[test]
fn what_openshift_refuses_is_refused() {
    let service = |name: &str| {
        format!(
            "{{files: [{{path: /a/b, actions: [{{type: Reload, reload: {{serviceName: {name:?}}}}}]}}]}}"
        )
    };
    let entry = |actions: &str| format!("{{files: [{{path: /a/b, actions: [{actions}]}}]}}");
    let many = |count: usize, item: &dyn Fn(usize) -> String| {
        (0..count).map(item).collect::<Vec<_>>().join(", ")
    };
    let files = many(51, &|n| format!("{{path: /a/{n}, actions: []}}"));
    let drains = many(11, &|_| "{type: Drain}".into());
    let at = "spec.nodeDisruptionPolicy";
    for (text, path, word) in [
        (entry("{type: Reboot}, {type: Drain}"), "files[0].actions", "Reboot has to stand alone"),
        (entry("{type: None}, {type: None}"), "files[0].actions", "None has to stand alone"),
        (entry("{type: Reload}"), "files[0].actions[0].reload", "is missing"),
        (
            entry("{type: Restart, reload: {serviceName: a.service}}"),
            "files[0].actions[0].restart",
            "is missing",
        ),
        (
            entry("{type: Drain, reload: {serviceName: a.service}}"),
            "files[0].actions[0].reload",
            "cannot stand beside",
        ),
        (entry("{type: Special}"), "files[0].actions[0].type", "unknown type of action"),
        (
            entry("{type: restart, restart: {serviceName: a.service}}"),
            "files[0].actions[0].type",
            "did you mean \"Restart\"",
        ),
        (entry("{}"), "files[0].actions[0].type", "is missing"),
        (
            entry("{type: Reload, reload: {serviceName: a.service, x: 1}}"),
            "files[0].actions[0].reload.x",
            "unknown field",
        ),
        (entry(&drains), "files[0].actions", "10 at most"),
        (format!("{{files: [{files}]}}"), "files", "50 at most"),
        (service("crio"), "files[0].actions[0].reload.serviceName", "no name that OpenShift takes"),
        (service("app@blue.service"), "files[0].actions[0].reload.serviceName", "no @"),
        (service(".service"), "files[0].actions[0].reload.serviceName", "no name"),
        (service("a.b c.service"), "files[0].actions[0].reload.serviceName", "systemd has no unit"),
        (service("a.snapshot"), "files[0].actions[0].reload.serviceName", "systemd has no unit"),
        ("{units: [{name: app@blue.service, actions: []}]}".into(), "units[0].name", "no @"),
        (
            "{units: [{name: a.service, actions: []}, {name: a.service, actions: []}]}".into(),
            "units[1].name",
            "twice",
        ),
        (
            "{files: [{path: /a/b, actions: []}, {path: /a/b, actions: []}]}".into(),
            "files[1].path",
            "twice",
        ),
        ("{files: [{actions: []}]}".into(), "files[0].path", "is missing"),
        ("{files: [{path: /a/b}]}".into(), "files[0].actions", "is missing"),
        (
            "{files: [{path: /a/b, actions: [], reason: x}]}".into(),
            "files[0].reason",
            "unknown field",
        ),
        ("{file: []}".into(), "file", "did you mean \"files\""),
        ("{sshkey: {action: []}}".into(), "sshkey.action", "did you mean \"actions\""),
        (
            "{files: [{path: \"/a/\\u0001\", actions: []}]}".into(),
            "files[0].path",
            "control character",
        ),
    ] {
        let error = try_read(&text).expect_err(&text);
        let wanted = format!("{at}.{path}");
        let found = error.0.iter().any(|p| p.path == wanted && p.message.contains(word));
        assert!(found, "{text}: expected {wanted} … {word}, found {error}");
    }
    let other =
        "{apiVersion: operator.openshift.io/v1, kind: MachineConfiguration, metadata: {name: x}}";
    let error = read(&Input { name: "-", bytes: other.as_bytes() }).expect_err("name");
    assert_eq!(error.0[0].path, "metadata.name");
}

#[test]
fn what_openshift_takes_is_taken() {
    let fifty: Vec<_> = (0..50).map(|n| file(&format!("/a/{n}"), "a.service")).collect();
    assert_eq!(policy(&format!("{{files: [{}]}}", fifty.join(", "))).claims.len(), 100);
    // The unanchored pattern lets an @ through behind a dot.
    let odd = files(&[("/a/b", "my.app@blue.service")]);
    assert_eq!(actions(&odd, "file:/a/b"), Some(vec![restart("my.app@blue.service")]));
}

#[test]
fn paths_are_cleaned_as_go_does() {
    for (path, cleaned) in [
        ("", "."),
        (".", "."),
        ("/", "/"),
        ("//", "/"),
        ("/..", "/"),
        ("/etc/", "/etc"),
        ("/etc//foo/./bar/", "/etc/foo/bar"),
        ("/etc/foo/../bar", "/etc/bar"),
        ("a/../..", ".."),
        ("../a", "../a"),
        ("a/..", "."),
    ] {
        assert_eq!(clean(path), cleaned, "{path:?}");
    }
}

/// OpenShift's own matching, in the plainest form.
#[test]
fn the_rules_decide_as_openshift_does() {
    let paths = [
        "/etc/foo",
        "/etc/foo/",
        "/etc/foo/bar",
        "/etc//foo/bar",
        "/etc/containers",
        "/etc/containers/",
        "/etc/containers/registries.d",
        "/etc/containers/registries.d/",
        "/etc/containers///////////////",
        "/etc",
        "/",
        "etc/foo",
        "/etc/foo/../containers/registries.conf",
        "/etc/containers/registries.conf",
    ];
    let defaults = [
        "/etc/containers/registries.conf",
        "/etc/containers/registries.d",
        "/etc/containers/policy.json",
    ];
    let changed = [
        "/etc/foo",
        "/etc/foo/x",
        "/etc/foo/bar",
        "/etc/foo/bar/x",
        "/etc/foobar",
        "/etc/containers/x",
        "/etc/containers/registries.conf",
        "/etc/containers/registries.d",
        "/etc/containers/registries.d/x",
        "/etc/containers/policy.json",
        "/opt/x",
    ];
    let mut compared = 0;
    for mask in 1u32..(1 << paths.len()) {
        if mask.count_ones() > 3 {
            continue;
        }
        let chosen: Vec<(usize, &str)> = paths
            .iter()
            .enumerate()
            .filter(|(n, _)| mask & (1 << n) != 0)
            .map(|(n, p)| (n, *p))
            .collect();
        let units: Vec<String> = chosen.iter().map(|(n, _)| format!("u{n}.service")).collect();
        let entries: Vec<_> =
            chosen.iter().zip(&units).map(|((_, p), unit)| (*p, unit.as_str())).collect();
        let policy = files(&entries);
        for diff in changed {
            let kept = defaults.iter().filter(|d| chosen.iter().all(|(_, p)| p != *d));
            let all =
                kept.map(|d| (*d, None)).chain(entries.iter().map(|(p, unit)| (*p, Some(*unit))));
            let mut best: Option<(usize, Option<&str>)> = None;
            for (path, unit) in all {
                let below = diff.starts_with(&format!("{}/", clean(path)));
                if (diff == path || below) && path.len() > best.map_or(0, |(length, _)| length) {
                    best = Some((path.len(), unit));
                }
            }
            let expected = best.and_then(|(_, unit)| unit).map(|unit| vec![restart(unit)]);
            assert_eq!(actions(&policy, &format!("file:{diff}")), expected, "{diff} {entries:?}");
            compared += 1;
        }
    }
    assert!(compared > 5_000, "only {compared}");
}

#[test]
fn a_unit_that_ends_the_system_is_the_reboot_that_it_comes_to() {
    for unit in ["reboot.target", "systemd-kexec.service", "runlevel6.target"] {
        let policy = files(&[("/etc/a", unit)]);
        assert_eq!(actions(&policy, "file:/etc/a"), Some(vec![RuleAction::Reboot]), "{unit}");
        let claim = policy.claims.iter().find(|claim| claim.changes.contains("/etc/a"));
        assert_eq!(claim.map(|claim| claim.least), Some(crate::effect::Effect::Reboot), "{unit}");
    }
}

#[test]
fn of_entries_that_cannot_be_followed_it_is_known_what_their_readable_ones_match() {
    let reboots = |policy: serde_json::Value| {
        let claims = super::claimed(&policy);
        assert!(claims.iter().all(|it| (it.least, it.most) == (Effect::Reboot, Effect::Reboot)));
        claims.into_iter().map(|claim| claim.changes).collect::<Vec<_>>()
    };
    let policy = serde_json::json!({
        "files": [
            {"path": "/etc/a/", "actions": [{"type": "Jump"}]},
            {"path": "/etc/[b]"},
            {"path": "relative", "actions": []},
            {"path": "/", "actions": []},
            5,
        ],
        "units": [{"name": "a.service"}, {"name": "b"}],
        "sshkey": {"actions": [{"type": "Jump"}]},
    });
    assert_eq!(
        reboots(policy),
        [
            "file:/etc/a",
            "file:/etc/a/**",
            "file:/etc/\\[b\\]",
            "file:/etc/\\[b\\]/**",
            "unit:a.service",
            "ssh-keys:*",
            "password:*",
        ]
    );
    for nothing in [
        serde_json::json!({"sshkey": {"actions": []}}),
        serde_json::json!({"files": {}, "sshkey": null}),
        serde_json::json!([]),
    ] {
        assert_eq!(reboots(nothing.clone()), [""; 0], "{nothing}");
    }
}
