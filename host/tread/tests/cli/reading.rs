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
    let args = ["plan", "--old", "old", "--new", "new", "--new", "mirrors.json", "-o", "json"];
    let plan = checked(&bench.tread(&args));
    let all = ["00-worker", "50-a", "50-b", "50-c", "99-z"];
    let configs = json!({"kind": "MachineConfig", "count": 5, "names": all});
    assert_eq!(
        plan["read"]["new"],
        json!({
            "objects": [configs, {"kind": "ImageDigestMirrorSet", "count": 1}],
            "pool": "worker",
            "from": [{"path": "new", "files": 5}, {"path": "mirrors.json"}],
        })
    );

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

/// A worker's MachineConfigs, and those of one more.
#[test]
fn a_side_that_lacks_most_of_the_other_is_a_warning_that_says_what_a_side_is() {
    let bench = Bench::new();
    bench.write("one.json", role("99-one", "worker", "1"));
    bench.write("idms.json", mirrors(&["m.example/a"]).to_string());
    let worker = tree().join("tests/corpus/openshift/worker.json");
    let worker = worker.to_str().unwrap();
    let warnings = |args: &[&str]| -> Vec<String> {
        let ran = bench.tread(&[&["plan", "-o", "json"], args].concat());
        let plan = checked(&ran);
        let all = plan.get("warnings").and_then(Value::as_array).cloned().unwrap_or_default();
        all.iter().map(|it| it.as_str().unwrap().to_owned()).collect()
    };
    for new in ["one.json", "idms.json"] {
        let found = warnings(&["--old", worker, "--new", new]).join("\n");
        for part in
            ["MachineConfigs of OLD are not in NEW (00-worker, ", "on both sides", "tread plan -f"]
        {
            assert!(found.contains(part), "{part} in {found}");
        }
    }
    for more in ["one.json", "idms.json"] {
        let found = warnings(&["--old", worker, "--new", worker, "--new", more]).join("\n");
        assert!(!found.contains("are not in"), "{found}");
    }
}

#[test]
fn a_file_that_is_given_twice_is_told_as_that() {
    let bench = Bench::new();
    bench.write("side/a.json", role("a", "worker", "1"));
    bench.write("old.json", role("a", "worker", "1"));
    for (args, says) in [
        (
            &["--old", "old.json", "--new", "side/a.json", "--new", "side/a.json"][..],
            "NEW: side/a.json is given twice: name it once",
        ),
        (
            &["--old", "side", "--old", "side/../side/a.json", "--new", "old.json"],
            "OLD: side/a.json and side/../side/a.json are the same file: name it once",
        ),
    ] {
        let ran = bench.tread(&[&["plan"], args].concat());
        assert_eq!((ran.code(), ran.out().as_str()), (2, ""), "{}", ran.err());
        assert!(ran.err().contains(says), "{says} in {}", ran.err());
    }
    let both = bench.tread(&["plan", "old.json", "old.json"]);
    assert_eq!(both.code(), 0, "one file on both sides is told in the plan: {}", both.err());
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
fn a_packed_manifest_is_inspected_as_what_is_packed_in_it() {
    let bench = Bench::new();
    let manifest = packed(&bench);
    bench.write("mine.yaml", &manifest);
    let ran = bench.tread(&["policy", "inspect", "mine.yaml", "-o", "json"]);
    assert_eq!(ran.code(), 0, "{}", ran.out());
    let report = ran.json();
    assert_eq!((&report["kind"], &report["name"]), (&json!("policy"), &json!("settings")));
    assert_eq!(report["packedIn"], "ConfigMap node-config/mine, key policy.wasm");
    let plain = tree().join("tests/contract/1.0.0/settings.wasm");
    let plain = bench.tread(&["policy", "inspect", plain.to_str().unwrap(), "-o", "json"]).json();
    assert_eq!((&report["digest"], plain.get("packedIn")), (&plain["digest"], None));
    let human = bench.tread(&["policy", "inspect", "mine.yaml"]).out();
    assert!(human.contains("ConfigMap node-config/mine, key policy.wasm"), "{human}");

    bench
        .write("two.yaml", format!("{manifest}---\n{}", manifest.replace("\"mine\"", "\"other\"")));
    let ran = bench.tread(&["policy", "inspect", "two.yaml"]);
    assert_eq!(ran.code(), 1, "{}", ran.out());
    for part in ["holds 2 modules", "node-config/other", "tread policy unpack two.yaml --name NAME"]
    {
        assert!(ran.err().contains(part), "{part} in {}", ran.err());
    }
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
