//! `--rules`: an admin decides without any code.

use crate::configs::{config, core_user, files, machine_config, mirrors, rule};
use crate::schema::checked;
use crate::support::{Bench, Ran};
use serde_json::{Value, json};

/// OpenShift's own object, with this nodeDisruptionPolicy.
fn cluster(policy: Value) -> Value {
    json!({
        "apiVersion": "operator.openshift.io/v1",
        "kind": "MachineConfiguration",
        "metadata": {"name": "cluster"},
        "spec": {"logLevel": "Normal", "nodeDisruptionPolicy": policy},
    })
}

fn restart(service: &str) -> Value {
    json!({"type": "Restart", "restart": {"serviceName": service}})
}

/// The plan for `new` with these rules.
fn planned(bench: &Bench, rules: &Value, new: Value) -> Value {
    bench.write("rules.json", rules.to_string());
    checked(&bench.plan(files(&[]), new, &["-o", "json", "--rules", "rules.json"]))
}

fn failed(bench: &Bench, rules: &str) -> Ran {
    bench.write("rules.yaml", rules);
    let ran = bench.plan(files(&[]), files(&[]), &["--rules", "rules.yaml"]);
    assert_eq!(ran.code(), 1, "{}", ran.out());
    assert_eq!(ran.out(), "");
    ran
}

#[test]
fn a_disruption_policy_decides_before_all_others_and_is_named() {
    let bench = Bench::new();
    let actions = json!([{"do": "reload", "unit": "a.service"}, {"do": "drain"}]);
    let why = "Because I know.";
    let rules =
        rule("mine", json!({"match": ["file:/etc/a/**"], "actions": actions, "reason": why}));
    let plan = planned(&bench, &rules, files(&[("/etc/a/b/c", "x")]));
    assert_eq!(plan["summary"], "drain, reload a.service; no reboot");
    let change = &plan["changes"][0];
    assert_eq!(change["reason"], why);
    assert_eq!(change["decidedBy"]["policy"], "mine");
    assert_eq!(change["decidedBy"]["layer"], "admin");
}

#[test]
fn what_an_admin_answers_is_not_offered_further_down() {
    let bench = Bench::new();
    let path = "/etc/NetworkManager/a.conf";
    let rules = rule("mine", json!({"match": ["file:/etc/NetworkManager/**"], "actions": []}));
    let plan = planned(&bench, &rules, files(&[(path, "x")]));
    assert_eq!(plan["summary"], "no action; no drain, no reboot");
    assert_eq!(plan["policies"].as_array().unwrap().len(), 1, "nobody else was asked");
    // What it leaves open is.
    let rules = rule("mine", json!({"match": ["file:/etc/other"], "actions": []}));
    let plan = planned(&bench, &rules, files(&[(path, "x")]));
    assert_eq!(plan["changes"][0]["decidedBy"]["policy"], "network");
}

#[test]
fn a_rule_can_refuse_abstain_and_reboot_without_a_drain() {
    let bench = Bench::new();
    let path = "/etc/NetworkManager/a.conf";
    let one = |then: Value| {
        let mut it = json!({"match": [format!("file:{path}")]});
        it.as_object_mut().unwrap().extend(then.as_object().unwrap().clone());
        planned(&bench, &rule("mine", it), files(&[(path, "x")]))
    };
    let refused = one(json!({"refuse": true, "reason": "Not before Monday."}));
    assert_eq!(refused["outcome"], "refuse");
    assert_eq!(refused["changes"][0]["reason"], "Not before Monday.");
    let open = one(json!({"abstain": true}));
    assert_eq!(open["changes"][0]["decidedBy"]["policy"], "network");
    let undrained = one(json!({"actions": [{"do": "reboot"}], "drain": false}));
    assert_eq!(undrained["steps"], json!([{"do": "write"}, {"do": "reboot"}]));
    let drained = one(json!({"actions": [{"do": "reboot"}]}));
    assert_eq!(drained["summary"], "drain, reboot");
}

#[test]
fn a_reboot_without_a_drain_is_drained_where_another_change_wants_one() {
    let bench = Bench::new();
    let it = json!({"match": ["file:/etc/a"], "actions": [{"do": "reboot"}], "drain": false});
    let plan = planned(&bench, &rule("mine", it), files(&[("/etc/a", "x"), ("/etc/b", "x")]));
    assert_eq!(plan["summary"], "drain, reboot");
}

#[test]
fn several_objects_and_files_of_rules_decide_together() {
    let bench = Bench::new();
    let on = |name: &str, unit: &str| {
        let actions = json!([{"do": "restart", "unit": unit}]);
        rule(name, json!({"match": ["file:/etc/a"], "actions": actions})).to_string()
    };
    bench.write(
        "two.yaml",
        format!("{}\n---\n{}\n", on("one", "a.service"), on("two", "b.service")),
    );
    bench.write("three.json", on("three", "a.service"));
    let args = ["-o", "json", "--rules", "two.yaml", "--rules", "three.json"];
    let plan = checked(&bench.plan(files(&[]), files(&[("/etc/a", "x")]), &args));
    assert_eq!(plan["summary"], "restart a.service, restart b.service; no drain, no reboot");
    let answers = plan["changes"][0]["answers"].as_array().unwrap();
    assert_eq!(answers.len(), 3);

    let args = ["--rules", "three.json", "--rules", "three.json"];
    let ran = bench.plan(files(&[]), files(&[]), &args);
    assert_eq!(ran.code(), 2);
    let words = "two policies are named three: one in three.json (admin layer) and one in three";
    assert!(ran.err().contains(words), "{}", ran.err());
}

#[test]
fn openshifts_policy_is_understood_as_it_is() {
    let bench = Bench::new();
    let policy = cluster(json!({
        "files": [
            {"path": "/etc/a", "actions": [restart("a.service"), {"type": "DaemonReload"}]},
            {"path": "/etc/a/b", "actions": [{"type": "None"}]},
        ],
        "units": [{"name": "x.service", "actions": [{"type": "Drain"}]}],
        "sshkey": {"actions": [restart("sshd.service")]},
    }));
    let unit = json!({"name": "x.service", "contents": "[Unit]\n"});
    for (new, summary) in [
        (files(&[("/etc/a", "x")]), "daemon-reload, restart a.service; no drain, no reboot"),
        (files(&[("/etc/a/c", "x")]), "daemon-reload, restart a.service; no drain, no reboot"),
        (files(&[("/etc/a/b/c", "x")]), "no action; no drain, no reboot"),
        (files(&[("/etc/other", "x")]), "drain, reboot"),
        (config(json!({"systemd": {"units": [unit]}})), "drain, daemon-reload; no reboot"),
        (core_user(&["ssh-ed25519 A"], None), "restart sshd.service; no drain, no reboot"),
        (core_user(&[], Some("$6$x")), "restart sshd.service; no drain, no reboot"),
    ] {
        let plan = planned(&bench, &policy, new);
        assert_eq!(plan["summary"], summary, "{plan:#}");
    }
}

#[test]
fn an_entry_for_registries_conf_is_honoured_with_a_warning_that_the_check_is_lost() {
    let bench = Bench::new();
    let entry = |actions: Value| {
        let path = "/etc/containers/registries.conf";
        cluster(json!({"files": [{"path": path, "actions": actions}]}))
    };
    let base = machine_config("worker", files(&[]));
    let plan = |rules: &Value| {
        bench.write("rules.json", rules.to_string());
        let old = [base.clone(), mirrors(&["a.example/app", "b.example/app"])];
        let new = [base.clone(), mirrors(&["a.example/app"])];
        let args = ["--rules", "rules.json"];
        let human = bench.plan_objects(&old, &new, &args).out();
        let args = ["--rules", "rules.json", "-o", "json"];
        (checked(&bench.plan_objects(&old, &new, &args)), human)
    };
    let (soft, human) = plan(&entry(json!([restart("crio.service")])));
    assert_eq!(soft["summary"], "restart crio.service; no drain, no reboot");
    let warning = soft["warnings"][0].as_str().unwrap();
    assert!(warning.contains("registries.conf") && warning.contains("drain"), "{warning}");
    assert_eq!(human.lines().nth(1), Some(format!("warning: {warning}").as_str()));

    let (drained, _) = plan(&entry(json!([{"type": "Drain"}, restart("crio.service")])));
    assert_eq!(drained["summary"], "drain, restart crio.service; no reboot");
    assert_eq!(drained.get("warnings"), None);
    let (own, _) = plan(&cluster(json!({})));
    assert_eq!(own["changes"][0]["decidedBy"]["policy"], "registries");
}

#[test]
fn invalid_rules_are_named_by_their_field_and_all_at_once() {
    let bench = Bench::new();
    let start = "apiVersion: tread.dev/v1alpha1\nkind: DisruptionPolicy\nmetadata: {name: mine}\n";
    for (spec, parts) in [
        ("{rules: []}", &["rules.yaml, spec.rules: is empty"][..]),
        ("{}", &["rules.yaml, spec.rules: is missing"]),
        ("{rules: [{match: [], actions: []}]}", &["spec.rules[0].match: is missing or empty"]),
        (
            "{rules: [{match: [file], action: []}]}",
            &["spec.rules[0].action: unknown field", "\"actions\""],
        ),
        (
            "{rules: [{match: ['file:/a'], actions: [{do: reload}]}]}",
            &["spec.rules[0].actions[0].unit: is missing"],
        ),
        (
            "{rules: [{match: ['file:/a'], actions: [{do: restart, unit: crio}]}]}",
            &["spec.rules[0].actions[0].unit: \"crio\" is no unit"],
        ),
        (
            "{rules: [{match: ['file:/a'], actions: [{do: restrat, unit: a.service}]}]}",
            &["spec.rules[0].actions[0].do: unknown action \"restrat\": did you mean \"restart\"?"],
        ),
        (
            "{rules: [{match: ['file:/a'], actions: [], drain: false}]}",
            &["spec.rules[0].drain: stands only beside a reboot"],
        ),
        (
            "{layer: template, rules: [{match: ['file:/a'], actions: [{do: reboot}], drain: false}]}",
            &["spec.rules[0].drain: only a policy in the admin layer"],
        ),
        ("{layer: builtin, rules: [{match: ['file:/a'], actions: []}]}", &["spec.layer: "]),
        (
            "{rules: [{match: ['nonsense:/a', 'file:[']}]}",
            &["problems", "match[1]: ", "spec.rules[0]: says nothing"],
        ),
    ] {
        let ran = failed(&bench, &format!("{start}spec: {spec}\n"));
        for part in parts {
            assert!(ran.err().contains(part), "{part:?} in {}", ran.err());
        }
    }
}

#[test]
fn openshifts_own_validation_is_kept() {
    let bench = Bench::new();
    for (policy, part) in [
        (
            json!({"files": [{"path": "/etc/a"}]}),
            "spec.nodeDisruptionPolicy.files[0].actions: is missing",
        ),
        (
            json!({"files": [{"path": "/etc/a", "actions": [{"type": "Reboot"}, {"type": "Drain"}]}]}),
            "spec.nodeDisruptionPolicy.files[0].actions: Reboot has to stand alone",
        ),
        (
            json!({"files": [{"path": "/etc/a", "actions": [{"type": "Special"}]}]}),
            "spec.nodeDisruptionPolicy.files[0].actions[0].type: ",
        ),
        (
            json!({"units": [{"name": "a@b.service", "actions": [{"type": "None"}]}]}),
            "spec.nodeDisruptionPolicy.units[0].name: ",
        ),
        (
            json!({"sshkey": {"actions": [{"type": "Reload"}]}}),
            "spec.nodeDisruptionPolicy.sshkey.actions[0].reload: is missing",
        ),
    ] {
        let ran = failed(&bench, &cluster(policy).to_string());
        assert!(ran.err().contains(&format!("rules.yaml, {part}")), "{part} in {}", ran.err());
    }
    let mut other = cluster(json!({}));
    other["metadata"]["name"] = "other".into();
    assert!(
        failed(&bench, &other.to_string()).err().contains("metadata.name: has to be \"cluster\"")
    );
}

#[test]
fn a_file_of_rules_that_holds_something_else_says_what_is_expected() {
    let bench = Bench::new();
    let config = machine_config("worker", files(&[])).to_string();
    let error = failed(&bench, &config).err();
    assert!(
        error.contains("DisruptionPolicy") && error.contains("MachineConfiguration"),
        "{error}"
    );
    assert!(failed(&bench, "").err().contains("rules.yaml"));
    let second = format!("{}\n---\nkind: Nonsense\n", cluster(json!({})));
    assert!(failed(&bench, &second).err().contains("rules.yaml, document 2, kind: "));
}

#[test]
fn a_unit_that_takes_others_with_it_is_warned_of_wherever_rules_are_given() {
    let bench = Bench::new();
    let units = ["multi-user.target", "dbus-broker.service"];
    let rule_of = |unit: &str| {
        rule(
            "mine",
            json!({"match": ["file:/etc/a"], "actions": [{"do": "restart", "unit": unit}]}),
        )
    };
    let openshift =
        |unit: &str| cluster(json!({"files": [{"path": "/etc/a", "actions": [restart(unit)]}]}));
    for unit in units {
        for rules in [rule_of(unit), openshift(unit)] {
            bench.write("rules.json", rules.to_string());
            let words = format!("ing {unit} ");
            let warned = |text: &str| {
                let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                assert!(text.contains(&words), "{words} in {text}");
            };
            let plan = planned(&bench, &rules, files(&[("/etc/a", "x")]));
            warned(&plan["warnings"].to_string());
            assert_eq!(plan["effect"], "restart", "an admin may");
            warned(
                &bench
                    .plan(files(&[]), files(&[("/etc/a", "x")]), &["--rules", "rules.json"])
                    .out(),
            );
            warned(&bench.tread(&["policies", "--rules", "rules.json"]).err());
        }
    }
}

#[test]
fn what_the_configs_make_of_a_unit_that_an_admin_has_touched_is_a_warning() {
    let bench = Bench::new();
    let actions = json!([{"do": "restart", "unit": "a.service"}]);
    let rules = rule("mine", json!({"match": ["file:/etc/a"], "actions": actions}));
    let with_unit = |text: &str| {
        let mut new = files(&[("/etc/a", "x")]);
        let unit = json!({"name": "a.service", "contents": text});
        new["config"]["systemd"] = json!({"units": [unit]});
        planned(&bench, &rules, new)
    };
    let plan = with_unit("[Unit]\nSuccessAction=reboot\n[Service]\nExecStart=/bin/a\n");
    let warnings = plan["warnings"].to_string();
    assert!(warnings.contains("mine touches a.service for file:/etc/a, which would"), "{plan}");
    assert!(warnings.contains("SuccessAction="), "{plan}");
    assert!(with_unit("[Service]\nExecStart=/bin/a\n")["warnings"].is_null(), "{plan}");
}

#[test]
fn a_unit_that_a_rule_does_not_turn_on_is_a_warning_of_the_plan() {
    let bench = Bench::new();
    let actions = json!([{"do": "restart", "unit": "a.service"}]);
    let rules = rule("mine", json!({"match": ["unit:a.service"], "actions": actions}));
    let with_unit = |fields: Value| {
        let mut unit = json!({"name": "a.service"});
        unit.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        planned(&bench, &rules, config(json!({"systemd": {"units": [unit]}})))
    };
    let text = "[Service]\nExecStart=/bin/a\n[Install]\nWantedBy=multi-user.target\n";
    for (fields, words) in [
        (json!({"contents": text, "enabled": true}), "not started before the next boot"),
        (json!({"mask": true}), "runs on until the next boot"),
    ] {
        let plan = with_unit(fields);
        assert_eq!(plan["effect"], "restart", "{plan:#}");
        assert!(plan["warnings"].to_string().contains(words), "{plan:#}");
    }
    let dropins = json!([{"name": "a.conf", "contents": "[Service]\nNice=5\n"}]);
    let plan = with_unit(json!({"dropins": dropins}));
    assert!(plan["warnings"].is_null(), "the system brings the unit, and it may run: {plan:#}");
}

#[test]
fn a_unit_that_a_daemon_reload_does_not_turn_on_is_a_warning_of_the_plan() {
    let bench = Bench::new();
    let of =
        |actions: Value| rule("mine", json!({"match": ["unit:a.service"], "actions": actions}));
    let text = "[Service]\nExecStart=/bin/a\n[Install]\nWantedBy=multi-user.target\n";
    let unit = json!({"name": "a.service", "contents": text, "enabled": true});
    let new = config(json!({"systemd": {"units": [unit]}}));
    let daemon_reload = json!([{"type": "DaemonReload"}]);
    let openshift = cluster(json!({"units": [{"name": "a.service", "actions": daemon_reload}]}));
    for (rules, words) in [
        (of(json!([{"do": "daemon-reload"}])), "mine answers with daemon-reload, which starts"),
        (of(json!([{"do": "drain"}])), "mine answers with drain, which starts"),
        (openshift, "nodeDisruptionPolicy answers with daemon-reload, which starts"),
    ] {
        let plan = planned(&bench, &rules, new.clone());
        assert_eq!(plan["reboot"], false, "{plan:#}");
        let warnings = plan["warnings"].as_array().map(Vec::as_slice).unwrap_or_default();
        let [warning] = warnings else { panic!("{plan:#}") };
        assert!(warning.as_str().unwrap().contains(words), "{plan:#}");
    }
    let plan = planned(&bench, &of(json!([])), new);
    assert!(plan["warnings"].is_null(), "whoever says nothing means it: {plan:#}");
}
