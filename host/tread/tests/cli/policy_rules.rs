//! `tread policy rules`: without any code, and from and to OpenShift.

use crate::configs::{core_user, files, rule};
use crate::guests::{answering, claim};
use crate::schema::{checked, from_yaml};
use crate::support::{Bench, Ran, tree};
use serde_json::{Value, json};
use tread_model::effect::Effect;

fn rules(bench: &Bench, args: &[&str]) -> Ran {
    bench.tread(&[&["policy", "rules"], args].concat())
}

/// A file with these rules of an admin.
fn write(bench: &Bench, name: &str, all: Value) {
    let mut object = rule(name, json!({}));
    object["spec"]["rules"] = all;
    bench.write(&format!("{name}.yaml"), object.to_string());
}

const OPENSHIFT: &str = "
apiVersion: operator.openshift.io/v1
kind: MachineConfiguration
metadata: {name: cluster}
spec:
  nodeDisruptionPolicy:
    files:
    - path: /etc/chrony.d
      actions: [{type: Restart, restart: {serviceName: chronyd.service}}]
    - path: /etc/containers
      actions: [{type: Reload, reload: {serviceName: crio.service}}, {type: Drain}]
    units:
    - name: app.service
      actions: [{type: DaemonReload}]
    sshkey:
      actions: [{type: Drain}]
";

#[test]
fn rules_are_listed_with_what_they_match_and_answer() {
    let bench = Bench::new();
    let chrony = json!([
        {"match": ["file:/etc/chrony.conf", "file:/etc/chrony.d/**"],
         "actions": [{"do": "restart", "unit": "chronyd.service"}], "reason": "It reads it once."},
        {"match": ["unit:app.service"], "actions": []},
        {"match": ["file:/etc/never"], "refuse": true, "reason": "Ask us first."},
        {"match": ["file:/etc/chrony.d/later"], "abstain": true},
        {"match": ["kernel-arguments"], "actions": [{"do": "reboot"}], "drain": false},
    ]);
    write(&bench, "chrony", chrony);
    let ran = rules(&bench, &["chrony.yaml"]);
    assert_eq!((ran.code(), ran.err().as_str()), (0, ""));
    assert_eq!(
        ran.out(),
        "chrony.yaml: chrony (layer admin)\n\
         RULE   MATCHES                    ANSWER\n\
         1      file:/etc/chrony.conf      restart chronyd.service\n\
         \x20      file:/etc/chrony.d/**\n\
         2      unit:app.service           no action\n\
         3      file:/etc/never            refuse: Ask us first.\n\
         4      file:/etc/chrony.d/later   abstain\n\
         5      kernel-arguments           reboot without a drain\n"
    );
    let json = rules(&bench, &["chrony.yaml", "-o", "json"]).json();
    let policy = &json[0];
    assert_eq!((&policy["policy"], &policy["layer"]), (&json!("chrony"), &json!("admin")));
    assert_eq!(policy["mode"], "Enforce");
    assert_eq!(policy["warnings"], json!([]));
    assert_eq!(policy["rules"][0]["reason"], "It reads it once.");
    assert_eq!(policy["rules"][0]["effect"], "restart");
    assert_eq!(
        policy["rules"][0]["actions"],
        json!([{"do": "restart", "unit": "chronyd.service"}])
    );
    assert_eq!(policy["rules"][3]["answer"], "abstain");
    let yaml = rules(&bench, &["chrony.yaml", "-o", "yaml"]);
    assert_eq!(from_yaml(&yaml.out()), json);
}

#[test]
fn rules_that_decide_nothing_say_so_and_no_plan_takes_them() {
    let bench = Bench::new();
    for (mode, words, is_tried) in [
        ("Shadow", "it.yaml: it (layer admin, mode Shadow: it is only tried, and decides", true),
        ("Disabled", "it.yaml: it (layer admin, mode Disabled: it is not asked, and decid", false),
    ] {
        let mut object = rule("it", json!({"match": ["file:/etc/a"], "actions": []}));
        object["spec"]["mode"] = json!(mode);
        bench.write("it.yaml", object.to_string());
        let ran = rules(&bench, &["it.yaml"]);
        assert_eq!((ran.code(), ran.err().as_str()), (0, ""), "{mode}");
        assert!(ran.first_line().starts_with(words), "{mode}: {}", ran.out());
        assert_eq!(rules(&bench, &["it.yaml", "-o", "json"]).json()[0]["mode"], mode);
        let planned =
            |flag: &str| bench.plan(files(&[]), files(&[("/etc/a", "x")]), &[flag, "it.yaml"]);
        let refused = planned("--rules");
        assert_eq!(refused.code(), 1, "{mode}: {}", refused.out());
        assert!(
            refused.err().contains(&format!("{mode} rules decide nothing")),
            "{}",
            refused.err()
        );
        assert_eq!(planned("--shadow").code() == 0, is_tried, "{mode}");
        let exported = rules(&bench, &["--to-openshift", "it.yaml"]);
        assert_eq!(exported.code(), 1, "{mode}: {}", exported.out());
    }
}

/// A rule, and what is said of it.
#[test]
fn what_is_probably_not_meant_is_a_warning_and_no_error() {
    let bench = Bench::new();
    let nothing = |pattern: &str| json!({"match": [pattern], "actions": []});
    let unit = |word: &str, unit: &str| json!([{"match": ["file:/etc/a"], "actions": [{"do": word, "unit": unit}]}]);
    for (all, warning) in [
        (
            json!([nothing("file:/etc/a"), nothing("file:/etc/a")]),
            "Rule 2 of it never decides on file:/etc/a: rule 1 matches it first.",
        ),
        (
            json!([nothing("file:/etc/a/**"), nothing("file:/etc/a/*.conf")]),
            "Rule 2 of it never decides on file:/etc/a/*.conf: file:/etc/a/** of rule 1 matches all",
        ),
        (json!([nothing("unit:*"), nothing("unit:*.service")]), "Rule 2 of it never decides"),
        (
            json!([nothing("file:/etc/{a,b}"), nothing("file:/etc/a"), nothing("file:/etc/b")]),
            "Rule 1 of it never decides on file:/etc/{a,b}: each of its names",
        ),
        (json!([nothing("file:/etc/**")]), "Rule 1 of it matches very much with file:/etc/**"),
        (json!([nothing("unit:app-*.conf")]), "no unit's name ends in .conf"),
        (unit("restart", "crio.service.service"), "perhaps crio.service is meant"),
        (unit("reload", "a.timer"), "systemd reloads services and mounts"),
        (unit("restart", "user.slice"), "it is a slice"),
        (
            json!([nothing("kernel-arguments")]),
            "Rule 1 of it answers kernel-arguments without a reboot: only a boot applies",
        ),
        (json!([nothing("kernel-type")]), "answers kernel-type without a reboot"),
        (json!([nothing("extensions")]), "answers extensions without a reboot"),
        (
            json!([nothing("file:/etc/a"), {"match": ["file:/etc/b", "os-image"],
                    "actions": [{"do": "drain"}, {"do": "restart", "unit": "a.service"}]}]),
            "Rule 2 of it answers os-image without a reboot: only a boot applies",
        ),
    ] {
        write(&bench, "it", all.clone());
        let ran = rules(&bench, &["it.yaml"]);
        assert_eq!(ran.code(), 0, "{}", ran.err());
        assert!(ran.out().contains("\nwarning: "), "{}", ran.out());
        assert!(ran.out().contains(warning), "{warning}\n{}", ran.out());
    }
    for fine in [
        json!([nothing("file:/etc/a/*.conf"), nothing("file:/etc/a/**")]),
        json!([nothing("file:/etc/a/**"), nothing("file:/etc/a/b/*.conf")]),
        json!([nothing("file:/etc/{a,b}"), nothing("file:/etc/a")]),
        json!([nothing("unit:app@*.service")]),
        unit("reload", "var-lib.mount"),
        json!([{"match": ["kernel-arguments"], "actions": [{"do": "reboot"}], "drain": false}]),
        json!([{"match": ["os-image"], "actions": [{"do": "reboot"}]}]),
        json!([{"match": ["kernel-type"], "refuse": true, "reason": "Ask us."}]),
        json!([{"match": ["extensions"], "abstain": true}]),
    ] {
        write(&bench, "it", fine);
        let ran = rules(&bench, &["it.yaml"]);
        assert!(!ran.out().contains("warning"), "{}", ran.out());
    }
}

#[test]
fn a_rule_that_spares_a_boot_decides_and_a_warning_says_that_only_a_boot_applies_it() {
    let bench = Bench::new();
    write(&bench, "it", json!([{"match": ["kernel-arguments"], "actions": []}]));
    let [old, new] = ["old", "new"].map(|side| {
        let path = tree().join(format!("examples/kernel-argument/{side}.yaml"));
        path.to_str().unwrap().to_owned()
    });
    let plan =
        |rules: &str| checked(&bench.tread(&["plan", "--rules", rules, &old, &new, "-o", "json"]));
    let of_admin = plan("it.yaml");
    assert_eq!((&of_admin["effect"], &of_admin["reboot"]), (&json!("none"), &json!(false)));
    let warning = of_admin["warnings"][0].as_str().unwrap_or_default();
    for part in ["Rule 1 of it answers kernel-arguments", "only a boot applies", "{do: reboot}"] {
        assert!(warning.contains(part), "{part} in {warning:?}");
    }

    let mut object = rule("it", json!({}));
    object["spec"]["layer"] = json!("template");
    object["spec"]["rules"] = json!([{"match": ["kernel-arguments"], "actions": []}]);
    bench.write("theirs.yaml", object.to_string());
    let of_template = plan("theirs.yaml");
    assert_eq!(of_template["reboot"], true);
    let warning = of_template["warnings"][0].as_str().unwrap_or_default();
    assert!(warning.contains("it costs a reboot all the same"), "{warning:?}");
}

#[test]
fn every_error_of_every_file_names_the_field_and_what_was_expected() {
    let bench = Bench::new();
    write(
        &bench,
        "one",
        json!([{"match": ["file:etc"], "actions": [{"do": "restart", "unit": "a"}]}]),
    );
    write(&bench, "two", json!([{"match": ["unit:crio"], "actions": []}]));
    let ran = rules(&bench, &["one.yaml", "two.yaml"]);
    assert_eq!((ran.code(), ran.out().as_str()), (1, ""));
    for part in [
        "error: 3 problems",
        "one.yaml, spec.rules[0].match[0]: \"etc\": a path begins with /",
        "one.yaml, spec.rules[0].actions[0].unit: \"a\" is no unit: names are complete",
        "two.yaml, spec.rules[0].match[0]: \"crio\" is no unit",
    ] {
        assert!(ran.err().contains(part), "{part} in {}", ran.err());
    }
    write(&bench, "one", json!([{"match": ["file:/etc/a"], "actions": []}]));
    let ran = rules(&bench, &["one.yaml", "one.yaml"]);
    assert!(ran.err().contains("is the name of a policy in one.yaml too"), "{}", ran.err());
}

#[test]
fn openshifts_policy_becomes_a_manifest_that_decides_the_same() {
    let bench = Bench::new();
    bench.write("theirs.yaml", OPENSHIFT);
    let ran = rules(&bench, &["theirs.yaml"]);
    assert_eq!(ran.code(), 0, "{}", ran.err());
    bench.write("ours.yaml", ran.out());
    assert_eq!(rules(&bench, &["ours.yaml"]).code(), 0);
    for part in ["longest path", "Special", "a default of OpenShift is closer", "built-in policies"]
    {
        assert!(ran.err().contains(part), "{part} in {}", ran.err());
    }
    for new in [
        files(&[("/etc/chrony.d/a", "x")]),
        files(&[("/etc/containers/storage.conf", "x")]),
        files(&[("/etc/containers/policy.json", "{}")]),
        files(&[("/etc/other", "x")]),
        core_user(&["ssh-ed25519 AAAA"], None),
    ] {
        let plan = |file: &str| {
            let args = ["-o", "json", "--rules", file];
            checked(&bench.plan(files(&[]), new.clone(), &args))
        };
        assert_eq!(plan("ours.yaml")["steps"], plan("theirs.yaml")["steps"]);
    }
    let mixed = rules(&bench, &["ours.yaml", "theirs.yaml"]);
    assert_eq!(mixed.code(), 2, "{}", mixed.err());
    let json = bench.tread_with(&["policy", "rules", "-", "-o", "json"], OPENSHIFT.as_bytes());
    assert_eq!(json.json(), from_yaml(&ran.out()));
}

#[test]
fn rules_policies_and_built_ins_become_openshifts_policy_and_the_rest_is_listed() {
    let bench = Bench::new();
    let claims = vec![
        claim("file:/etc/free.conf", Effect::None, Effect::None),
        claim("file:/etc/ranged.conf", Effect::None, Effect::Restart),
    ];
    bench.write("mine.wasm", answering("mine", claims, vec![]).component());
    write(
        &bench,
        "chrony",
        json!([
            {"match": ["file:/etc/chrony.d/**"], "actions": [{"do": "restart", "unit": "chronyd.service"}]},
            {"match": ["file:/etc/x*.conf"], "actions": []},
        ]),
    );
    let args = ["--to-openshift", "chrony.yaml", "--policy", "mine.wasm"];
    let ran = rules(&bench, &args);
    assert_eq!(ran.code(), 0, "{}", ran.err());
    let object = from_yaml(&ran.out());
    let policy = &object["spec"]["nodeDisruptionPolicy"];
    let actions = |path: &str| {
        let files = policy["files"].as_array().unwrap();
        files.iter().find(|entry| entry["path"] == path).map(|entry| entry["actions"].clone())
    };
    let restart = json!([{"type": "Restart", "restart": {"serviceName": "chronyd.service"}}]);
    assert_eq!(actions("/etc/chrony.d"), Some(restart));
    assert_eq!(actions("/etc/free.conf"), Some(json!([{"type": "None"}])));
    assert_eq!(actions("/etc/nmstate/openshift"), Some(json!([{"type": "None"}])), "of a built-in");
    assert_eq!(actions("/etc/ranged.conf"), None);
    assert_eq!(policy["sshkey"]["actions"], json!([{"type": "None"}]));
    for part in [
        "not exported: file:/etc/x*.conf of chrony: OpenShift has no globs",
        "not exported: file:/etc/ranged.conf of mine: it depends on the contents",
        "not exported: file:/etc/crio/crio.conf of node-services: it depends on the contents",
    ] {
        assert!(ran.err().contains(part), "{part} in {}", ran.err());
    }
    // tread itself reads what it wrote, as OpenShift's API would take it.
    bench.write("back.yaml", ran.out());
    let args_of_plan = ["-o", "json", "--rules", "back.yaml"];
    let plan = checked(&bench.plan(files(&[]), files(&[("/etc/chrony.d/a", "x")]), &args_of_plan));
    assert_eq!(plan["summary"], "restart chronyd.service; no drain, no reboot");
    let json = rules(&bench, &[&args[..], &["-o", "json"]].concat()).json();
    assert_eq!(json["manifest"], object);
    assert!(json["leftOut"].as_array().unwrap().iter().any(|it| it["policy"] == "chrony"));
    write(&bench, "ours", json!([{"match": ["file:/etc/a.conf"], "actions": []}]));
    let narrow = rules(&bench, &["--to-openshift", "ours.yaml", "-o", "json"]).json();
    assert_eq!(narrow["warnings"], json!([]));
    write(&bench, "wide", json!([{"match": ["file:/etc/*"], "actions": []}]));
    let wide = rules(&bench, &["--to-openshift", "wide.yaml", "-o", "json"]).json();
    let warning = wide["warnings"][0].as_str().unwrap();
    assert!(warning.contains("Rule 1 of wide matches very much"), "{warning}");
    let printed = rules(&bench, &["--to-openshift", "wide.yaml"]).err();
    assert!(printed.contains(&format!("warning: {warning}")), "{printed}");

    let alone = rules(&bench, &["--to-openshift"]);
    assert_eq!(alone.code(), 0, "{}", alone.err());
    assert_eq!(rules(&bench, &["--policy", "mine.wasm", "chrony.yaml"]).code(), 2);
    assert_eq!(rules(&bench, &[]).code(), 2);
}

#[test]
fn a_manifest_without_rules_for_tread_says_what_was_expected() {
    let bench = Bench::new();
    bench.write("pod.yaml", "apiVersion: v1\nkind: Pod\n");
    let ran = rules(&bench, &["pod.yaml"]);
    assert_eq!(ran.code(), 1);
    assert!(ran.err().contains("DisruptionPolicy"), "{}", ran.err());
    bench.write("none.yaml", OPENSHIFT.split("spec:").next().unwrap());
    let ran = rules(&bench, &["none.yaml"]);
    assert_eq!(ran.code(), 1);
    assert!(ran.err().contains("no nodeDisruptionPolicy entry"), "{}", ran.err());
}
