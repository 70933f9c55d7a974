//! What becomes of rules and claims in OpenShift's object, as an admin reads it.

use super::{Export, LeftOut, Says, Voice, export};
use crate::description::Claim;
use crate::effect::Effect;
use crate::openshift::api::MOST_ENTRIES;
use crate::read::Input;
use crate::rules;
use crate::verdict::Layer;
use serde_json::{Value, json};

/// The voice of an admin with these rules, written as JSON.
fn admin(rules: Value) -> Voice {
    let object = json!({
        "apiVersion": "tread.dev/v1alpha1", "kind": "DisruptionPolicy",
        "metadata": {"name": "mine"}, "spec": {"rules": rules},
    });
    let input = object.to_string();
    let read = rules::read(&Input { name: "rules.json", bytes: input.as_bytes() });
    Voice::from(&read.unwrap_or_else(|error| panic!("{error}"))[0])
}

/// A rule that restarts a unit.
fn restart(pattern: &str, unit: &str) -> Value {
    json!({"match": [pattern], "actions": [{"do": "restart", "unit": unit}]})
}

fn nothing(pattern: &str) -> Value {
    json!({"match": [pattern], "actions": []})
}

fn claims(name: &str, layer: Layer, claims: &[(&str, Effect, Effect)]) -> Voice {
    let claims = claims.iter().map(|(changes, least, most)| Claim::on(*changes, *least, *most));
    Voice { name: name.to_owned(), layer, may_relax: false, says: Says::Claims(claims.collect()) }
}

/// The entries in short: `/etc/a: Restart a.service`.
fn entries(export: &Export) -> Vec<String> {
    let policy = &serde_json::to_value(&export.manifest).unwrap()["spec"]["nodeDisruptionPolicy"];
    let actions = |entry: &Value| {
        let words = entry["actions"].as_array().unwrap().iter().map(|action| {
            let kind = action["type"].as_str().unwrap();
            match action[kind.to_lowercase()]["serviceName"].as_str() {
                Some(unit) => format!("{kind} {unit}"),
                None => kind.to_owned(),
            }
        });
        words.collect::<Vec<_>>().join(", ")
    };
    let mut lines = Vec::new();
    for (list, key) in [("files", "path"), ("units", "name")] {
        for entry in policy[list].as_array().unwrap_or(&Vec::new()) {
            lines.push(format!("{}: {}", entry[key].as_str().unwrap(), actions(entry)));
        }
    }
    if policy["sshkey"].is_object() {
        lines.push(format!("sshkey: {}", actions(&policy["sshkey"])));
    }
    lines
}

#[track_caller]
fn exports(voices: &[Voice], expected: &[&str]) -> Export {
    let export = export(voices);
    assert_eq!(entries(&export), expected, "{:#?}", export.left_out);
    export
}

/// Rules of an admin, and the entries that they become.
#[test]
fn rules_that_name_paths_directories_units_and_keys_become_entries() {
    for (rules, expected) in [
        (
            json!([restart("file:/etc/chrony.conf", "chronyd.service")]),
            &["/etc/chrony.conf: Restart chronyd.service"][..],
        ),
        (json!([nothing("file:/etc/motd.d/**")]), &["/etc/motd.d: None"]),
        (
            json!([restart("file:/etc/{a,b}.conf", "a.service")]),
            &["/etc/a.conf: Restart a.service", "/etc/b.conf: Restart a.service"],
        ),
        (
            json!([{"match": ["file:/etc/a"], "actions": [
                {"do": "restart", "unit": "b.service"}, {"do": "reload", "unit": "a.service"},
                {"do": "daemon-reload"}, {"do": "drain"}]}]),
            &["/etc/a: Drain, DaemonReload, Reload a.service, Restart b.service"],
        ),
        (
            json!([restart("file:/etc/pki/x.crt", "coreos-update-ca-trust.service")]),
            &["/etc/pki/x.crt: Restart coreos-update-ca-trust.service"],
        ),
        // tread makes systemd read its units again by itself; OpenShift does not.
        (
            json!([restart("unit:app.service", "app.service"), nothing("unit:b.timer")]),
            &["app.service: DaemonReload, Restart app.service", "b.timer: DaemonReload"],
        ),
        (
            json!([restart("file:/etc/systemd/**", "a.service")]),
            &[
                "/etc/systemd: Restart a.service",
                "/etc/systemd/system: DaemonReload, Restart a.service",
                "/etc/systemd/system-generators: DaemonReload, Restart a.service",
                "/etc/systemd/system.attached: DaemonReload, Restart a.service",
                "/etc/systemd/system.control: DaemonReload, Restart a.service",
                "/etc/systemd/system/kubelet.service.d/40-kubelet-crio-image-credential-provider.conf: \
                 DaemonReload, Restart a.service",
            ],
        ),
        // So it does for what generators make units of.
        (
            json!([nothing("file:/etc/fstab"), restart("file:/etc/rc.d/**", "a.service")]),
            &[
                "/etc/fstab: DaemonReload",
                "/etc/rc.d: Restart a.service",
                "/etc/rc.d/init.d: DaemonReload, Restart a.service",
                "/etc/rc.d/rc.local: DaemonReload, Restart a.service",
            ],
        ),
        // What OpenShift has a default for gets an entry too, or that would win.
        (
            json!([
                restart("file:/etc/containers/registries.d/**", "a.service"),
                nothing("file:/etc/crio/**")
            ]),
            &[
                "/etc/containers/registries.d: Restart a.service",
                "/etc/crio: None",
                "/etc/crio/policies: None",
            ],
        ),
        (
            json!([{"match": ["ssh-keys:*", "password:core"], "actions": [{"do": "drain"}]}]),
            &["sshkey: Drain"],
        ),
        // OpenShift reboots anyway.
        (
            json!([{"match": ["file:/etc/a", "unit:a.service", "kernel-arguments"],
                 "actions": [{"do": "reboot"}]}]),
            &[],
        ),
        (
            json!([{"match": ["file:/etc/containers/policy.json"], "actions": [{"do": "reboot"}]}]),
            &["/etc/containers/policy.json: Reboot"],
        ),
    ] {
        let export = exports(&[admin(rules)], expected);
        assert_eq!(export.left_out, []);
    }
}

/// What is said within an exported directory stays said.
#[test]
fn the_longest_path_comes_to_what_the_most_specific_pattern_does() {
    for (rules, expected) in [
        (
            json!([
                restart("file:/etc/a/**", "a.service"),
                nothing("file:/etc/a/b.conf"),
                restart("file:/etc/a/c/**", "c.service")
            ]),
            &["/etc/a: Restart a.service", "/etc/a/b.conf: None", "/etc/a/c: Restart c.service"][..],
        ),
        // The same once more says nothing.
        (json!([nothing("file:/etc/a/**"), nothing("file:/etc/a/b/**")]), &["/etc/a: None"]),
        // What cannot be said inside is a reboot there, as without any entry.
        (
            json!([nothing("file:/etc/a/**"), {"match": ["file:/etc/a/b"], "refuse": true,
                   "reason": "Never."}]),
            &["/etc/a: None", "/etc/a/b: Reboot"],
        ),
        (
            json!([nothing("file:/etc/a/**"), restart("file:/etc/a/b/*.conf", "b.service")]),
            &["/etc/a: None", "/etc/a/b: Reboot"],
        ),
        (
            json!([nothing("file:/etc/a/**"), {"match": ["file:/etc/a/b/**"], "abstain": true}]),
            &["/etc/a: None", "/etc/a/b: Reboot"],
        ),
        // A glob that decides nothing else than what is around it is no matter.
        (
            json!([nothing("file:/etc/a/**"), restart("file:/etc/a/*.conf", "b.service")]),
            &["/etc/a: None"],
        ),
        (json!([restart("file:/etc/a/*.conf", "b.service"), nothing("file:/etc/a/**")]), &[]),
    ] {
        exports(&[admin(rules)], expected);
    }
}

/// What is left out, and why.
#[test]
fn what_openshift_cannot_say_is_listed_with_the_reason() {
    let undrained =
        json!({"match": ["file:/etc/a"], "actions": [{"do": "reboot"}], "drain": false});
    let many: Vec<Value> =
        (0..11).map(|n| json!({"do": "restart", "unit": format!("u{n}.service")})).collect();
    for (rule, pattern, reason) in [
        (undrained, "file:/etc/a", "drain: false"),
        (nothing("file:/etc/*.conf"), "file:/etc/*.conf", "has no globs"),
        (nothing("unit:app*.service"), "unit:app*.service", "has no globs"),
        (nothing("unit:app@1.service"), "unit:app@1.service", "no @"),
        (restart("file:/etc/a", "app@1.service"), "file:/etc/a", "no @"),
        (nothing("ssh-keys:admin"), "ssh-keys:admin", "no user but core"),
        (nothing("ssh-keys:*"), "ssh-keys:*", "one answer for keys"),
        (nothing("kernel-arguments"), "kernel-arguments", "always reboots"),
        (
            json!({"match": ["file:/etc/a"], "refuse": true, "reason": "x"}),
            "file:/etc/a",
            "refuses",
        ),
        (json!({"match": ["file:/etc/a"], "actions": many}), "file:/etc/a", "lists 10 at most"),
    ] {
        let found = exports(&[admin(json!([rule]))], &[]).left_out;
        let [LeftOut { policy, pattern: left, reason: why }] = &found[..] else {
            panic!("{pattern}: {found:#?}")
        };
        assert_eq!((policy.as_str(), left.as_str()), ("mine", pattern));
        let reason =
            if pattern == "ssh-keys:*" { "differ, and OpenShift's sshkey" } else { reason };
        assert!(why.contains(reason), "{pattern}: {why}");
    }
}

#[test]
fn what_is_said_of_everything_is_exported_only_where_openshift_has_a_default() {
    let export = export(&[admin(json!([nothing("file:/**")]))]);
    let [left] = export.left_out.as_slice() else { panic!("{:#?}", export.left_out) };
    assert!(left.reason.contains("/ matches nothing"), "{left:?}");
    assert_eq!(entries(&export).len(), 13, "{:#?}", entries(&export));
}

#[test]
fn a_path_and_what_lies_below_it_have_one_entry() {
    let both = json!([nothing("file:/etc/a"), nothing("file:/etc/a/**")]);
    assert_eq!(exports(&[admin(both)], &["/etc/a: None"]).left_out, []);
    let differ = json!([nothing("file:/etc/a"), restart("file:/etc/a/**", "a.service")]);
    let found = exports(&[admin(differ)], &[]).left_out;
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(found.iter().all(|it| it.reason.contains("one entry for both")), "{found:#?}");
}

/// Claims of policies, of which only the range of the answers is known.
#[test]
fn a_policy_is_exported_where_its_range_is_one_effect_that_needs_no_unit() {
    let policy = claims(
        "p",
        Layer::Builtin,
        &[
            ("file:/etc/{docker,podman}/certs.d/**", Effect::None, Effect::None),
            ("file:/etc/net/**", Effect::Reboot, Effect::Reboot),
            ("file:/etc/ranged", Effect::None, Effect::Restart),
            ("file:/etc/restarted", Effect::Restart, Effect::Restart),
            ("file:/etc/refused", Effect::Refuse, Effect::Refuse),
            ("ssh-keys:*", Effect::None, Effect::None),
            ("password:*", Effect::None, Effect::None),
            ("kernel-arguments", Effect::Reboot, Effect::Reboot),
        ],
    );
    let expected = ["/etc/docker/certs.d: None", "/etc/podman/certs.d: None", "sshkey: None"];
    let export = exports(&[policy], &expected);
    let left: Vec<_> =
        export.left_out.iter().map(|it| (it.pattern.as_str(), it.reason.as_str())).collect();
    assert_eq!(left.len(), 3, "{left:#?}");
    for (pattern, reason) in [
        ("file:/etc/ranged", "depends on the contents: p answers none to restart"),
        ("file:/etc/refused", "refuses"),
        ("file:/etc/restarted", "only its code knows with which units"),
    ] {
        assert!(left.iter().any(|it| it.0 == pattern && it.1.contains(reason)), "{left:#?}");
    }
    assert!(export.notes.iter().any(|note| note.contains("may abstain")), "{:#?}", export.notes);
}

#[test]
fn layers_combine_as_in_a_plan() {
    let built_in =
        || claims("b", Layer::Builtin, &[("file:/etc/a/**", Effect::None, Effect::None)]);
    let ranged =
        || claims("r", Layer::Builtin, &[("file:/etc/a/**", Effect::None, Effect::Reboot)]);
    let template = |may_relax| Voice {
        may_relax,
        layer: Layer::Template,
        ..admin(json!([restart("file:/etc/a/**", "a.service")]))
    };
    // A template may add…
    exports(&[built_in(), template(false)], &["/etc/a: Restart a.service"]);
    // … but what a built-in answers by the contents stays open…
    exports(&[ranged(), template(false)], &[]);
    // … unless an admin lets it relax that, or says it.
    exports(&[ranged(), template(true)], &["/etc/a: Restart a.service"]);
    let rule = admin(json!([nothing("file:/etc/a/**")]));
    exports(&[ranged(), template(false), rule.clone()], &["/etc/a: None"]);
    // What an admin leaves open is decided further down.
    let open =
        admin(json!([nothing("file:/etc/a/**"), {"match": ["file:/etc/a/b"], "abstain": true}]));
    let expected = ["/etc/a: None", "/etc/a/b: Restart a.service"];
    exports(&[built_in(), template(false), open], &expected);
}

#[test]
fn more_entries_than_openshift_takes_are_left_out_by_whole_trees_and_listed() {
    let mut rules: Vec<Value> =
        (0..60).map(|n| restart(&format!("file:/etc/x{n:02}/**"), "a.service")).collect();
    rules.push(nothing("file:/etc/x59/inner"));
    let export = export(&[admin(json!(rules))]);
    assert_eq!(entries(&export).len(), 50);
    assert_eq!(export.left_out.len(), 11, "{:#?}", export.left_out);
    assert!(export.left_out.iter().all(|it| it.reason.contains("50 entries")));
    assert!(!entries(&export).iter().any(|it| it.contains("x59")));
}

#[test]
fn where_a_default_of_openshifts_would_do_less_than_a_rule_an_entry_reboots() {
    let reboot = |pattern: &str| json!({"match": [pattern], "actions": [{"do": "reboot"}]});
    let refuse = |pattern: &str| json!({"match": [pattern], "refuse": true, "reason": "No."});
    for (rules, expected) in [
        (json!([reboot("unit:iri-registry.service")]), &["iri-registry.service: Reboot"][..]),
        (json!([reboot("unit:*")]), &["iri-registry.service: Reboot"]),
        (json!([refuse("unit:iri-registry.service")]), &["iri-registry.service: Reboot"]),
        // OpenShift's one answer for both would be nothing.
        (
            json!([restart("ssh-keys:core", "a.service"), nothing("password:core")]),
            &["sshkey: Reboot"],
        ),
        (json!([refuse("password:core")]), &["sshkey: Reboot"]),
        (
            json!([refuse("file:/etc/containers/policy.json")]),
            &["/etc/containers/policy.json: Reboot"],
        ),
        (
            json!([reboot("file:/etc/containers/registries.d/*.yaml")]),
            &["/etc/containers/registries.d: Reboot"],
        ),
        (json!([refuse("file:/etc/crio/policies/x.json")]), &["/etc/crio/policies/x.json: Reboot"]),
    ] {
        let export = exports(&[admin(rules.clone())], expected);
        let why = export.notes.iter().any(|note| note.contains("a default of OpenShift's"));
        assert!(why, "{rules}: {:?}", export.notes);
    }
    // What the default does anyway needs no entry.
    exports(&[admin(json!([nothing("file:/etc/containers/registries.d/*.bak")]))], &[]);
}

#[test]
fn what_does_not_fit_is_never_left_to_a_gentler_default() {
    let mut rules: Vec<Value> =
        (0..60).map(|n| nothing(&format!("file:/etc/a/{n:02}.conf"))).collect();
    rules.push(
        json!({"match": ["file:/var/lib/kubelet/config.json"], "actions": [{"do": "reboot"}]}),
    );
    let few = export(&[admin(Value::from(rules))]);
    let entries = entries(&few);
    assert_eq!(entries.len(), MOST_ENTRIES);
    assert_eq!(entries.last().unwrap(), "/var/lib/kubelet/config.json: Reboot");

    let below = (0..60).map(|n| {
        json!({"match": [format!("file:/etc/crio/policies/{n:02}.json")], "actions": [{"do": "reboot"}]})
    });
    exports(&[admin(below.collect())], &["/etc/crio/policies: Reboot"]);
}
