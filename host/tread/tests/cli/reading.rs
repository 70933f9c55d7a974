//! What is read where a directory, a manifest or the wrong file is named, and
//! what is said of it.

use crate::configs::{files, machine_config, mirrors, rule};
use crate::guests::{act, answering, claim};
use crate::schema::checked;
use crate::support::{Bench, tree};
use serde_json::{Value, json};
use tread_model::effect::Effect;

fn role(name: &str, role: &str, text: &str) -> String {
    let path = format!("/etc/{name}");
    let mut config = machine_config(name, files(&[(path.as_str(), text)]));
    config["metadata"]["labels"]["machineconfiguration.openshift.io/role"] = role.into();
    config.to_string()
}

#[test]
fn what_was_read_on_each_side_is_told_where_it_is_not_obvious() {
    let bench = Bench::new();
    for (side, text) in [("old", "1"), ("new", "2")] {
        for name in ["00-worker", "50-a", "50-b", "50-c", "99-z"] {
            bench.write(&format!("{side}/{name}.yaml"), role(name, "worker", text));
        }
    }
    bench.write("mirrors.json", mirrors(&["m.example/a"]).to_string());
    let ran = bench.tread(&["plan", "--old", "old", "--new", "new", "--new", "mirrors.json"]);
    let out = ran.out().replace("\nnew:", "\n\nnew:");
    let paragraphs: Vec<String> = out.split("\n\n").map(|it| it.replace('\n', " ")).collect();
    let names = "(00-worker, 50-a, 50-b, 50-c and 1 more)";
    for line in [
        format!("old: 5 MachineConfigs of worker {names} from old (5 files)"),
        format!(
            "new: 5 MachineConfigs of worker {names}, 1 ImageDigestMirrorSet from new (5 files), \
                 mirrors.json"
        ),
    ] {
        assert!(paragraphs.contains(&line), "{line:?} in {paragraphs:#?}");
    }

    bench.write("a.json", role("a", "worker", "1"));
    bench.write("b.json", role("a", "worker", "2"));
    let out = bench.tread(&["plan", "a.json", "b.json"]).out();
    assert!(!out.contains("old: "), "one document on each side is obvious: {out}");
    let out = bench.tread(&["plan", "a.json", "a.json"]).out();
    assert!(out.contains("Both sides were read from the same place."), "{out}");
}

#[test]
fn sides_of_different_pools_are_a_warning_in_every_form() {
    let bench = Bench::new();
    bench.write("w.json", role("a", "worker", "1"));
    bench.write("m.yaml", role("a", "master", "2"));
    let plan = checked(&bench.tread(&["plan", "w.json", "m.yaml", "-o", "json"]));
    let warning = plan["warnings"][0].as_str().unwrap();
    for part in ["OLD is of the pool worker", "NEW of the pool master"] {
        assert!(warning.contains(part), "{part} in {warning}");
    }
    let human = bench.tread(&["plan", "w.json", "m.yaml"]).out();
    assert_eq!(human.lines().nth(1), Some(format!("warning: {warning}").as_str()));
}

#[test]
fn what_is_left_out_of_a_directory_is_named_on_standard_error() {
    let bench = Bench::new();
    bench.write("a.yaml", role("a", "worker", "1"));
    bench.write("new/a.yaml", role("a", "worker", "2"));
    for left_out in ["new/.a.yaml.swp", "new/a.yaml~", "new/.b.yaml", "new/.git/config.yaml"] {
        bench.write(left_out, "\0not a config");
    }
    bench.write("new/README.md", "hello");
    for output in ["human", "json"] {
        let ran = bench.tread(&["plan", "a.yaml", "new", "-o", output]);
        assert_eq!(ran.code(), 0, "{}", ran.err());
        let err = ran.err();
        assert!(
            err.starts_with("warning: new: not read: new/.a.yaml.swp, new/.b.yaml, new/a.yaml~;")
        );
        assert_eq!(err.lines().count(), 1, "{err}");
    }
    std::fs::remove_file(bench.dir.path().join("new/a.yaml")).unwrap();
    let ran = bench.tread(&["plan", "a.yaml", "new"]);
    assert_eq!(ran.code(), 1);
    assert!(ran.err().contains("(not read: new/.a.yaml.swp"), "{}", ran.err());
}

/// A policy in a ConfigMap, as `tread policy pack` writes it.
fn packed(bench: &Bench) -> String {
    let policy = tree().join("tests/contract/1.0.0/settings.wasm");
    bench.write("settings.yaml", "at_most: 7\n");
    let args = ["policy", "pack", policy.to_str().unwrap(), "-n", "node-config", "--name", "mine"];
    let ran = bench.tread(&[&args[..], &["--settings", "settings.yaml"]].concat());
    assert_eq!(ran.code(), 0, "{}", ran.err());
    ran.out()
}

#[test]
fn a_packed_manifest_is_a_policy_with_the_settings_that_it_was_packed_with() {
    let bench = Bench::new();
    bench.write("mine.yaml", packed(&bench));
    let at_most = |args: &[&str]| -> (String, Value) {
        let args = [&["policies", "-o", "json", "--policy", "mine.yaml"], args].concat();
        let ran = bench.tread(&args);
        assert_eq!(ran.code(), 0, "{}", ran.err());
        let rows = ran.json();
        let mine = rows.as_array().unwrap().iter().find(|row| row["layer"] == "template").unwrap();
        (mine["name"].as_str().unwrap().to_owned(), mine["settings"]["at_most"].clone())
    };
    assert_eq!(at_most(&[]), ("settings".to_owned(), 7.into()));
    assert_eq!(at_most(&["--set", "settings.at_most=3"]).1, 3);
}

#[test]
fn a_manifest_whose_module_was_changed_or_is_missing_is_an_error() {
    let bench = Bench::new();
    let good = packed(&bench);
    let other_digest = good.replacen("policy-digest: \"sha256:", "policy-digest: \"sha256:0", 1);
    assert_ne!(good, other_digest);
    let empty = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: y}\n";
    for (text, part) in [
        (other_digest.as_str(), "changed after it was packed"),
        (empty, "holds no module, but: ConfigMap"),
    ] {
        bench.write("mine.yaml", text);
        let ran = bench.tread(&["policies", "--policy", "mine.yaml"]);
        assert_eq!(ran.code(), 1, "{}", ran.out());
        assert!(ran.err().contains(part) && ran.err().contains("mine.yaml"), "{}", ran.err());
    }
}

#[test]
fn a_manifest_with_rules_beside_a_packed_policy_says_that_they_are_not_read() {
    let bench = Bench::new();
    let rules = rule("mine", json!({"match": ["file:/etc/a"], "actions": []}));
    bench.write("all.yaml", format!("{}\n---\n{rules}\n", packed(&bench)));
    let ran = bench.tread(&["policies", "--policy", "all.yaml"]);
    assert_eq!(ran.code(), 0, "{}", ran.err());
    assert!(ran.err().contains("holds a DisruptionPolicy too"), "{}", ran.err());
    assert!(ran.err().contains("--rules"), "{}", ran.err());
}

#[test]
fn what_is_given_to_the_wrong_option_is_told_where_it_belongs() {
    let bench = Bench::new();
    bench.write("a.json", machine_config("a", files(&[])).to_string());
    let rules = rule("mine", json!({"match": ["file:/etc/a"], "actions": []}));
    bench.write("rules.json", rules.to_string());
    bench.write("packed.yaml", packed(&bench));
    bench.write("mirrors.json", mirrors(&["m.example/a"]).to_string());
    let claims = vec![claim("file:/etc/a", Effect::None, Effect::None)];
    bench.write("mine.wasm", answering("mine", claims, vec![act(0, &[])]).component());
    bench.write("mine.wasm.gz", b"\x1f\x8b\x08\0\0\0\0\0");
    for (option, file, part) in [
        ("--policy", "rules.json", "rules need no module: tread plan --rules rules.json"),
        ("--policy", "a.json", "this is a Kubernetes manifest (MachineConfig)"),
        ("--policy", "mine.wasm.gz", "gunzip -c mine.wasm.gz"),
        ("--rules", "packed.yaml", "a packed policy is given with --policy"),
        ("--rules", "a.json", "configs are given as OLD and NEW"),
        ("--rules", "mirrors.json", "a part of OLD and NEW"),
        ("--rules", "mine.wasm", "give a policy with --policy"),
    ] {
        let ran = bench.tread(&["plan", "a.json", "a.json", option, file]);
        assert_eq!(ran.code(), 1, "{option} {file}: {}", ran.out());
        assert!(ran.err().contains(part), "{part} in {}", ran.err());
        assert!(ran.err().contains(file), "{}", ran.err());
    }
}
