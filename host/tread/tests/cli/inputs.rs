//! What is wrong with an input is named with its file, document and field, and
//! with what to do.

use crate::configs::{config, files, machine_config};
use crate::guests::{Action, act, answering, claim};
use crate::support::{Bench, Ran};
use serde_json::{Value, json};
use tread_model::effect::Effect;

fn good(name: &str) -> String {
    machine_config(name, files(&[("/etc/a", "x")])).to_string()
}

/// Plans from a good config to these files.
fn plan(bench: &Bench, new: &[(&str, &str)]) -> Ran {
    bench.write("good.json", good("good"));
    let mut args = vec!["plan", "--old", "good.json"];
    for (name, text) in new {
        bench.write(name, text);
        args.extend(["--new", *name]);
    }
    bench.tread(&args)
}

#[track_caller]
fn assert_error(ran: &Ran, parts: &[&str]) {
    assert_eq!(ran.code(), 1, "{}{}", ran.out(), ran.err());
    assert_eq!(ran.out(), "");
    let error = ran.err();
    assert!(error.starts_with("error: ") && error.ends_with('\n'), "{error}");
    for part in parts {
        assert!(error.contains(part), "{part:?} in {error}");
    }
}

#[test]
fn an_error_names_file_document_field_and_what_was_expected() {
    let bench = Bench::new();
    let with = |parts: Value| machine_config("bad", config(parts)).to_string();
    let file = |file: Value| with(json!({"storage": {"files": [{"path": "/etc/a"}, file]}}));
    for (text, parts) in [
        (
            file(json!({"path": "/etc/b", "mode": "0644"})),
            &["spec.config.storage.files[1].mode: expected a whole number, found a string"][..],
        ),
        (file(json!({"path": "etc/b"})), &["spec.config.storage.files[1].path: "]),
        (file(json!({"path": "/etc/a"})), &["files[1]", "already in spec.config.storage.files[0]"]),
        (
            with(json!({"systemd": {"units": [{"name": "a"}]}})),
            &["spec.config.systemd.units[0].name: ", "\"a\""],
        ),
        (
            machine_config("bad", json!({"kernelType": "fast"})).to_string(),
            &["spec.kernelType: expected default, realtime or 64k-pages"],
        ),
        (
            machine_config("bad", json!({"kernelArguments": ["a=\"b"]})).to_string(),
            &["spec.kernelArguments[0]: expected a closing quote"],
        ),
        (
            json!({"kind": "MachineConfig", "apiVersion": "v1", "metadata": {"name": "a"}})
                .to_string(),
            &[
                "apiVersion: expected machineconfiguration.openshift.io/v1 for a MachineConfig",
                "\"v1\"",
            ],
        ),
        (
            json!({"kind": "MachineConfig", "apiVersion": "machineconfiguration.openshift.io/v1"})
                .to_string(),
            &["metadata.name: is missing"],
        ),
    ] {
        let ran = plan(&bench, &[("fine.json", &good("fine")), ("bad.json", &text)]);
        assert_error(&ran, parts);
        assert_error(&ran, &["error: bad.json, "]);
        let second = format!("{}\n---\n{text}\n", good("first"));
        let ran = plan(&bench, &[("two.yaml", &second)]);
        assert_error(&ran, parts);
        assert_error(&ran, &["error: two.yaml, document 2, "]);
    }
}

#[test]
fn an_item_of_a_list_is_named_by_its_number() {
    let bench = Bench::new();
    let bad = machine_config("bad", json!({"fips": "yes"}));
    let items: Vec<Value> = vec![machine_config("one", config(json!({}))), bad];
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    let ran = plan(&bench, &[("list.json", &list.to_string())]);
    assert_error(&ran, &["list.json, document 1, item 2, spec.fips: expected true or false"]);
}

#[test]
fn several_problems_are_reported_together() {
    let bench = Bench::new();
    let bad = machine_config("bad", json!({"fips": 1, "kernelType": "fast", "osImageURI": "x"}));
    let ran =
        plan(&bench, &[("one.json", &bad.to_string()), ("two.json", "{"), ("three.yaml", "")]);
    assert_error(&ran, &["error: 5 problems\n"]);
    for part in [
        "\n  one.json, spec.fips: ",
        "\n  one.json, spec.kernelType: ",
        "\n  one.json, spec.osImageURI: unknown field \"osImageURI\": did you mean \"osImageURL\"?",
        "\n  two.json, line 1, column 1: cannot be read as JSON",
        "\n  three.yaml: holds no document",
    ] {
        assert!(ran.err().contains(part), "{part:?} in {}", ran.err());
    }
    assert_eq!(ran.err().lines().count(), 6);
}

#[test]
fn problems_of_both_sides_are_reported_together() {
    let bench = Bench::new();
    bench.write("old.json", "{\"kind\": \"Old\"}");
    bench.write("new.json", "{\"kind\": \"New\"}");
    let ran = bench.tread(&["plan", "old.json", "new.json"]);
    assert_error(&ran, &["2 problems", "old.json, kind: ", "new.json, kind: "]);
}

#[test]
fn a_broken_base64_in_the_second_document_of_the_second_file_is_named_there() {
    let bench = Bench::new();
    let broken = |name: &str| {
        let file = json!({"path": "/etc/broken", "contents": {"source": "data:;base64,abc"}});
        machine_config(name, config(json!({"storage": {"files": [{"path": "/etc/z"}, file]}})))
    };
    let wanted = "error: two.yaml, document 2, spec.config.storage.files[1] (/etc/broken)\
        .contents.source: the base64 data has 3 characters";
    // Also where the configs merge in another order than that of the files.
    for names in [["a", "b", "c"], ["c", "b", "a"], ["b", "c", "a"]] {
        let two = format!("{}\n---\n{}\n", good(names[1]), broken(names[2]));
        let ran = plan(&bench, &[("one.json", &good(names[0])), ("two.yaml", &two)]);
        assert_error(&ran, &[wanted]);
    }
    // JSON has a reader of its own.
    let two = format!("{}\n{}\n", good("b"), broken("c"));
    let ran = plan(&bench, &[("one.json", &good("a")), ("two.json", &two)]);
    assert_error(&ran, &[&wanted.replace("two.yaml", "two.json")]);
    let alone = plan(&bench, &[("only.json", &broken("a").to_string())]);
    assert_error(&alone, &["error: only.json, spec.config.storage.files[1] (/etc/broken)"]);
}

#[test]
fn broken_contents_are_found_on_both_sides_and_all_of_them() {
    let bench = Bench::new();
    let broken = |paths: &[&str]| {
        let files =
            paths.iter().map(|path| json!({"path": path, "contents": {"source": "data:,%zz"}}));
        config(json!({"storage": {"files": files.collect::<Vec<_>>()}}))
    };
    let ran = bench.plan(broken(&["/etc/a"]), broken(&["/etc/b", "/etc/c"]), &[]);
    assert_error(&ran, &["3 problems", "old.json", "(/etc/a)", "new.json", "(/etc/b)", "(/etc/c)"]);
}

#[test]
fn a_raw_ignition_config_is_read_and_its_fields_are_named_as_they_stand_there() {
    let bench = Bench::new();
    let ignition = |mode: Value| json!({"ignition": {"version": "3.5.0"}, "storage": {"files": [{"path": "/etc/a", "mode": mode, "contents": {"source": "data:,"}}]}});
    let fine = plan(&bench, &[("raw.ign", &ignition(json!(420)).to_string())]);
    assert_eq!(fine.code(), 0, "{}", fine.err());
    let ran = plan(&bench, &[("raw.ign", &ignition(json!(true)).to_string())]);
    assert_error(&ran, &["error: raw.ign, storage.files[0].mode: expected a whole number"]);
}

#[test]
fn an_ignition_config_of_another_version_gets_the_way_to_convert_it() {
    let bench = Bench::new();
    for version in ["2.2.0", "2.4.0"] {
        let old = json!({"ignition": {"version": version}, "networkd": {}}).to_string();
        let inside = machine_config("a", json!({"config": {"ignition": {"version": version}}}));
        let raw = plan(&bench, &[("a.json", &old)]);
        assert_error(&raw, &["a.json, ignition.version: ", version, "ign-converter", "Butane"]);
        let inside = plan(&bench, &[("a.json", &inside.to_string())]);
        assert_error(&inside, &["a.json, spec.config.ignition.version: ", "ign-converter"]);
        assert_eq!(raw.err().lines().count(), 1, "only that: {}", raw.err());
    }
    for version in ["3.0.0", "3.1.0", "3.2.0", "3.3.0", "3.4.0", "3.5.0"] {
        let config = json!({"ignition": {"version": version}}).to_string();
        assert_eq!(plan(&bench, &[("a.json", &config)]).code(), 0, "{version}");
    }
    let future = json!({"ignition": {"version": "3.9.0"}}).to_string();
    assert_error(&plan(&bench, &[("a.json", &future)]), &["3.9.0", "3.0.0 to 3.5.0"]);
}

#[test]
fn an_unknown_kind_is_named_with_what_can_be_read() {
    let bench = Bench::new();
    let of_kind = |kind: &str| format!("apiVersion: v1\nkind: {kind}\nmetadata: {{name: a}}\n");
    assert_error(
        &plan(&bench, &[("a.yaml", &of_kind("Service"))]),
        &["a.yaml, kind: unknown kind \"Service\"", "tread reads MachineConfig"],
    );
    assert_error(
        &plan(&bench, &[("a.yaml", &of_kind("ConfigMap"))]),
        &["a.yaml, kind: ConfigMap is no node config", "tread policy unpack", "--policy"],
    );
    let near = "apiVersion: machineconfiguration.openshift.io/v1\nkind: Machineconfig\n";
    assert_error(&plan(&bench, &[("a.yaml", near)]), &["did you mean \"MachineConfig\"?"]);
    let butane = "variant: fcos\nversion: 1.5.0\n";
    assert_error(&plan(&bench, &[("a.yaml", butane)]), &["a.yaml", "run butane"]);
    assert_error(&plan(&bench, &[("a.yaml", "hello: world\n")]), &["neither a kind nor"]);
    assert_error(&plan(&bench, &[("a.yaml", "hello\n")]), &["expected an object, found a string"]);
}

#[test]
fn text_that_is_neither_yaml_nor_json_is_named_with_its_line() {
    let bench = Bench::new();
    for (name, text, place) in [
        ("a.yaml", "kind: MachineConfig\nmetadata: {name: a\nspec: 1\n", "a.yaml, line "),
        ("a.yaml", "a: 1\na: 2\n", "a.yaml, line 2, column 1: "),
        ("a.json", "{\"kind\": \"MachineConfig\",\n \"x\" 1}", "a.json, line 2, column "),
        ("a.json", "{\"kind\": 1, \"kind\": 2}", "a.json, line 1"),
        ("a.json", "{\"kind\"", "a.json, line 1"),
    ] {
        let ran = plan(&bench, &[(name, text)]);
        assert_error(&ran, &[place, "cannot be read as "]);
        assert_eq!(ran.err().lines().count(), 1, "{}", ran.err());
    }
}

#[test]
fn garbage_is_an_error_and_never_a_crash() {
    let bench = Bench::new();
    bench.write("good.json", good("good"));
    let mut state = 1u32;
    let noise: Vec<u8> = (0..4096)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .collect();
    let deep = |open: &str| open.repeat(100_000).into_bytes();
    for (what, bytes) in [
        ("noise", noise),
        ("gzip", b"\x1f\x8b\x08\0\0\0\0\0".to_vec()),
        ("UTF-16", b"\xff\xfe{\0}\0".to_vec()),
        ("zeros", vec![0; 1000]),
        ("deep JSON", deep("[")),
        ("deep objects", deep("{\"a\":")),
        ("deep YAML", deep("- ")),
        ("only dashes", b"---\n---\n---\n".to_vec()),
        ("a comment", b"# nothing\n".to_vec()),
        ("a bomb", {
            let mut text = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
            for n in 1..12 {
                let aliases = vec![format!("*a{}", n - 1); 10].join(",");
                text.push_str(&format!("a{n}: &a{n} [{aliases}]\n"));
            }
            text.into_bytes()
        }),
    ] {
        bench.write("garbage.yaml", bytes);
        let ran = bench.tread(&["plan", "good.json", "garbage.yaml"]);
        assert_error(&ran, &["garbage.yaml"]);
        assert!(ran.err().lines().count() < 3 && ran.err().len() < 1000, "{what}: {}", ran.err());
        let ran = bench.tread(&["plan", "good.json", "good.json", "--rules", "garbage.yaml"]);
        assert_error(&ran, &["garbage.yaml"]);
        let ran = bench.tread(&["plan", "good.json", "good.json", "--policy", "garbage.yaml"]);
        assert_error(&ran, &["garbage.yaml: not-a-component"]);
    }
}

#[test]
fn an_empty_file_and_a_directory_without_configs_say_what_is_expected() {
    let bench = Bench::new();
    for text in ["", "\n", "---\n", "# only a comment\n", "null\n"] {
        let ran = plan(&bench, &[("empty.yaml", text)]);
        assert_error(&ran, &["empty.yaml: holds no document: expected at least one MachineConfig"]);
    }
    let none = "apiVersion: v1\nitems: []\nkind: List\nmetadata: {resourceVersion: \"\"}\n";
    let ran = plan(&bench, &[("none.yaml", none)]);
    assert_error(&ran, &["none.yaml: holds no document: expected at least one MachineConfig"]);
    // As there are no mirrors yet, or no more.
    let good = bench.write("good.json", good("one"));
    let none = bench.write("none.yaml", none);
    let [good, none] = [&good, &none].map(|path| path.to_str().unwrap());
    let ran = bench.tread(&["plan", "--old", good, "--old", none, "--new", good]);
    assert_eq!((ran.code(), ran.err().as_str()), (0, ""));
    bench.write("notes/readme.txt", "hello");
    let ran = bench.tread(&["plan", "good.json", "notes"]);
    assert_error(&ran, &["notes has no file that ends in .yaml, .yml, .json or .ign"]);
    let ran = bench.tread(&["plan", "good.json", "nowhere.yaml"]);
    assert_error(&ran, &["cannot read nowhere.yaml", "No such file"]);
}

#[test]
fn two_configs_of_one_name_are_named_with_both_places() {
    let bench = Bench::new();
    let ran = plan(&bench, &[("one.json", &good("twin")), ("two.json", &good("twin"))]);
    assert_error(&ran, &["two.json, metadata.name: \"twin\"", "one.json"]);
    let both = format!("{}\n---\n{}\n", good("twin"), good("twin"));
    let ran = plan(&bench, &[("both.yaml", &both)]);
    assert_error(
        &ran,
        &["both.yaml, document 2, metadata.name: \"twin\"", "both.yaml, document 1"],
    );
}

#[test]
fn configs_of_several_pools_on_one_side_are_an_error() {
    let bench = Bench::new();
    let role = |name: &str, role: &str| {
        let mut config = machine_config(name, files(&[]));
        config["metadata"]["labels"]["machineconfiguration.openshift.io/role"] = role.into();
        config.to_string()
    };
    let ran = plan(&bench, &[("w.json", &role("a", "worker")), ("m.json", &role("b", "master"))]);
    assert_error(&ran, &["several pools", "worker: w.json", "master: m.json"]);
    let ran = plan(&bench, &[("w.json", &role("a", "worker")), ("m.json", &role("b", "infra"))]);
    assert_eq!(ran.code(), 0, "a custom pool has the configs of workers too: {}", ran.err());
}

#[test]
fn standard_input_for_both_sides_is_a_usage_error_and_nothing_is_read_from_it() {
    let bench = Bench::new();
    for args in [
        &["plan", "-", "-"][..],
        &["plan", "--old", "-", "--new", "-"],
        &["plan", "--old", "good.json", "--old", "-", "--new", "-"],
        &["plan", "--old", "-", "--old", "-", "--new", "good.json"],
        &["plan", "--rules", "-", "-", "good.json"],
        &["plan", "--policy", "-", "--shadow", "-", "good.json", "good.json"],
        &["policies", "--policy", "-", "--rules", "-"],
        &["policy", "pack", "-", "--settings", "-", "-n", "a", "--name", "b"],
    ] {
        bench.write("good.json", good("good"));
        let ran = bench.tread_with(args, good("piped").as_bytes());
        assert_eq!(ran.code(), 2, "{args:?}: {}", ran.out());
        assert!(ran.err().contains("standard input"), "{}", ran.err());
    }
}

#[test]
fn policies_and_rules_come_by_standard_input_too_and_rules_from_a_directory() {
    let bench = Bench::new();
    bench.write("old.json", machine_config("a", files(&[("/etc/time", "1")])).to_string());
    bench.write("new.json", machine_config("a", files(&[("/etc/time", "2")])).to_string());
    let rules = "{apiVersion: tread.dev/v1alpha1, kind: DisruptionPolicy, metadata: {name: time}, \
                 spec: {rules: [{match: [\"file:/etc/time\"], actions: [{do: reload, unit: \
                 time.service}]}]}}";
    bench.write("rules/time.yaml", rules);
    for at in ["-", "rules"] {
        let ran =
            bench.tread_with(&["plan", "--rules", at, "old.json", "new.json"], rules.as_bytes());
        assert_eq!(ran.first_line(), "reload time.service; no drain, no reboot", "{}", ran.err());
    }
    // A policy is read anew for what an admin's rule stands in place of.
    let claims = vec![claim("file:/etc/time", Effect::None, Effect::Restart)];
    let policy = answering("piped", claims, vec![act(0, &[Action::Restart("a.service")])]);
    let policy = policy.component();
    for more in [&[][..], &["--rules", "rules"]] {
        let args = [&["plan", "--policy", "-", "old.json", "new.json"], more].concat();
        let ran = bench.tread_with(&args, &policy);
        assert_eq!(ran.code(), 0, "{more:?}: {}", ran.err());
        assert!(ran.out().contains("piped"), "{more:?}: {}", ran.out());
    }
    let ran = bench.tread_with(&["policy", "inspect", "-"], &policy);
    assert_eq!(ran.code(), 0, "{}", ran.out());
    let from = ["policy", "build", "--from", "-", "-o", "out.wasm"];
    let ran = bench.tread_with(&from, &policy);
    assert_eq!(ran.code(), 0, "{}", ran.err());
}

#[test]
fn what_comes_by_standard_input_is_called_so_in_errors() {
    let bench = Bench::new();
    bench.write("good.json", good("good"));
    let ran = bench.tread_with(&["plan", "good.json", "-"], b"{\"kind\": \"Nonsense\"}");
    assert_error(&ran, &["error: -, kind: unknown kind"]);
}

#[test]
fn mirror_objects_that_cannot_be_rendered_are_named() {
    let bench = Bench::new();
    let mirrors = |source: Value| {
        json!({
            "apiVersion": "config.openshift.io/v1", "kind": "ImageDigestMirrorSet",
            "metadata": {"name": "app"},
            "spec": {"imageDigestMirrors": [{"source": source, "mirrors": ["m.example/app"]}]},
        })
        .to_string()
    };
    let ran = plan(&bench, &[("a.json", &good("a")), ("m.json", &mirrors(json!(5)))]);
    assert_error(&ran, &["m.json, spec.imageDigestMirrors[0].source: expected a string"]);
    let ran = plan(&bench, &[("a.json", &good("a")), ("m.json", &mirrors(json!("https://x/y")))]);
    assert_error(&ran, &["m.json, spec.imageDigestMirrors[0].source: "]);
}
