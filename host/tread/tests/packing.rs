//! Shipping a policy with the binary: inspect, bench, pack and unpack.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(unreachable_pub, dead_code)]

mod support;
#[path = "../../engine/tests/support/mod.rs"]
mod written;

use serde_json::{Value, json};
use std::path::PathBuf;
use support::{Bench, Ran, tree};
use tread_model::digest::Sha256;
use tread_model::read::{Input, document_values};

/// The components that come with tread, by name.
fn prebuilt() -> Vec<(String, Vec<u8>)> {
    let dir = tree().join("policies/prebuilt");
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|it| it == "wasm"));
    paths.sort();
    assert!(paths.len() > 5);
    let name = |path: &PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
    paths.into_iter().map(|path| (name(&path), std::fs::read(path).unwrap())).collect()
}

fn component(name: &str) -> Vec<u8> {
    prebuilt().into_iter().find(|(found, _)| found == name).unwrap().1
}

/// The same policy with so many bytes, the last ones in a section of their own.
fn of_size(component: &[u8], size: usize) -> Vec<u8> {
    // The section's length takes one to five bytes.
    (0..=5)
        .map(|less| size - component.len() - less)
        .find_map(|content| {
            let mut padded = component.to_vec();
            written::append_section(&mut padded, "padding", &vec![7; content.checked_sub(9)?]);
            (padded.len() == size).then_some(padded)
        })
        .expect("a section fits")
}

fn pack(bench: &Bench, module: &str, more: &[&str]) -> Ran {
    let fixed = ["policy", "pack", module, "-n", "node-config", "--name", "chrony"];
    bench.tread(&[&fixed, more].concat())
}

fn documents(yaml: &[u8]) -> Vec<Value> {
    let read = document_values(&Input { name: "m", bytes: yaml }).unwrap();
    read.into_iter().map(|document| document.value).collect()
}

fn files(bench: &Bench) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(bench.dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn every_policy_comes_out_of_its_manifest_byte_for_byte() {
    let bench = Bench::new();
    for (name, bytes) in prebuilt() {
        bench.write("in.wasm", &bytes);
        let ran = pack(&bench, "in.wasm", &["-o", "m.yaml"]);
        assert_eq!(ran.code(), 0, "{name}: {}", ran.err());
        let fits = if ran.err().contains("--server-side") { " --server-side" } else { "" };
        let command = format!("kubectl apply{fits} -f m.yaml");
        assert!(format!("{}{}", ran.out(), ran.err()).contains(&command), "{}", ran.out());

        let yaml = std::fs::read(bench.dir.path().join("m.yaml")).unwrap();
        let object = documents(&yaml).remove(0);
        assert_eq!(object["metadata"]["labels"], json!({"tread.dev/policy": "true"}));
        let annotations = &object["metadata"]["annotations"];
        assert_eq!(annotations["tread.dev/policy-digest"], Sha256::of(&bytes).to_string());
        let version = annotations["tread.dev/policy-version"].as_str().unwrap();
        assert!(version.starts_with(&name), "{version}");
        let inspected = bench.tread(&["policy", "inspect", "in.wasm", "-o", "json"]).json();
        let claims = inspected["claims"].as_array().unwrap().iter();
        let claims: Vec<&str> = claims.map(|it| it["changes"].as_str().unwrap()).collect();
        assert_eq!(annotations["tread.dev/policy-claims"], claims.join("\n"), "{name}");

        let ran = bench.tread(&["policy", "unpack", "m.yaml", "-o", "out.wasm"]);
        assert_eq!((ran.code(), ran.err().as_str()), (0, ""), "{name}");
        assert_eq!(std::fs::read(bench.dir.path().join("out.wasm")).unwrap(), bytes, "{name}");

        // As it comes back from a cluster, among others.
        let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"},
                           "data": {"a": "b"}, "binaryData": {"logo.png": "iVBORw0KGgo="}});
        let secret = json!({"apiVersion": "v1", "kind": "Secret"});
        let list = json!({"apiVersion": "v1", "kind": "List", "items": [secret, other, object]});
        let ran = bench
            .tread_with(&["policy", "unpack", "-", "-o", "-"], &serde_json::to_vec(&list).unwrap());
        assert_eq!(ran.code(), 0, "{}", ran.err());
        assert_eq!(ran.0.stdout, bytes, "{name}");
    }
}

#[test]
fn without_a_file_to_write_to_the_manifest_goes_to_standard_output() {
    let bench = Bench::new();
    bench.write("in.wasm", component("ssh-keys"));
    let (piped, dash) = (pack(&bench, "in.wasm", &[]), pack(&bench, "in.wasm", &["-o", "-"]));
    assert_eq!((piped.code(), piped.out()), (0, dash.out()));
    assert_eq!(documents(&piped.0.stdout)[0]["metadata"]["namespace"], "node-config");
    assert_eq!(files(&bench), ["in.wasm"]);
}

#[test]
fn what_kubectl_or_the_api_server_cannot_carry_is_said_before_anybody_tries() {
    let bench = Bench::new();
    let own = written::Guest::default().component();
    bench.write("large.wasm", of_size(&own, 200_000));
    let ran = pack(&bench, "large.wasm", &["-o", "large.yaml"]);
    assert_eq!(ran.code(), 0, "{}", ran.err());
    for words in ["262,144", "kubectl apply --server-side -f large.yaml", "kubectl create"] {
        assert!(ran.err().contains(words), "{words} in {}", ran.err());
    }
    assert!(ran.out().contains("kubectl apply --server-side -f large.yaml"), "{}", ran.out());

    bench.write("most.wasm", of_size(&own, 1 << 20));
    bench.write("settings.yaml", "{}");
    let ran = pack(&bench, "most.wasm", &["-o", "most.yaml"]);
    assert_eq!(ran.code(), 0, "{}", ran.err());
    let ran = bench.tread(&["policy", "unpack", "most.yaml", "-o", "-"]);
    assert_eq!(ran.0.stdout.len(), 1 << 20);

    bench.write("more.wasm", of_size(&own, (1 << 20) + 1));
    for arguments in [vec!["more.wasm"], vec!["most.wasm", "--settings", "settings.yaml"]] {
        let ran = pack(&bench, arguments[0], &[&arguments[1..], &["-o", "more.yaml"]].concat());
        assert_eq!((ran.code(), ran.out().as_str()), (1, ""), "{arguments:?}");
        for words in ["1,048,576", "Nothing was written", "opt-level"] {
            assert!(ran.err().contains(words), "{words} in {}", ran.err());
        }
        assert!(!bench.dir.path().join("more.yaml").exists());
    }
}

#[test]
fn settings_are_checked_by_the_policy_and_packed_as_they_were_written() {
    let bench = Bench::new();
    bench.write("in.wasm", component("registries"));
    let text = "# We drain by hand.\ndrain: never\n";
    bench.write("settings.yaml", text);
    let ran = pack(&bench, "in.wasm", &["--settings", "settings.yaml"]);
    assert_eq!(ran.code(), 0, "{}", ran.err());
    assert_eq!(documents(&ran.0.stdout)[0]["data"], json!({"settings": text}));

    for (text, words) in [
        ("drain: sometimes\n", "invalid-settings"),
        ("drian: never\n", "drian"),
        ("- drain\n", "expected one object"),
        ("drain: never\n---\ndrain: always\n", "expected one object"),
        ("drain: [\n", "YAML"),
    ] {
        bench.write("settings.yaml", text);
        let ran = pack(&bench, "in.wasm", &["--settings", "settings.yaml"]);
        assert_eq!((ran.code(), ran.out().as_str()), (1, ""), "{text}");
        assert!(ran.err().contains(words), "{words} in {}", ran.err());
        assert!(ran.err().contains("settings.yaml"), "{}", ran.err());
    }
}

#[test]
fn what_tread_could_not_load_is_not_packed() {
    let bench = Bench::new();
    let good = component("ssh-keys");
    let own = wat::parse_str(r#"(module (import "env" "f" (func)))"#).unwrap();
    for (bytes, words) in [
        (good[..good.len() / 2].to_vec(), "cannot be loaded"),
        (own, "core module"),
        (b"hello".to_vec(), "is a text"),
        (Vec::new(), "is an empty file"),
    ] {
        bench.write("in.wasm", bytes);
        let ran = pack(&bench, "in.wasm", &["-o", "m.yaml"]);
        assert_eq!((ran.code(), ran.out().as_str()), (1, ""));
        assert!(ran.err().contains(words), "{words} in {}", ran.err());
        assert!(ran.err().contains("in.wasm"), "{}", ran.err());
        assert_eq!(files(&bench), ["in.wasm"]);
    }
}

#[test]
fn names_that_a_cluster_would_not_take_are_wrong_on_the_command_line() {
    let bench = Bench::new();
    bench.write("in.wasm", component("ssh-keys"));
    let long = vec!["a".repeat(63); 3].join(".");
    for (namespace, name, words) in [
        ("Nodes", "chrony", "namespace"),
        ("a.b", "chrony", "namespace"),
        ("nodes", "Chrony", "name"),
        ("nodes", "../chrony", "name"),
        (&"n".repeat(63), &long, "NAMESPACE.NAME"),
    ] {
        let ran = bench.tread(&["policy", "pack", "in.wasm", "-n", namespace, "--name", name]);
        assert_eq!((ran.code(), ran.out().as_str()), (2, ""), "{namespace} {name}");
        assert!(ran.err().contains(words), "{}", ran.err());
    }
    let ran = pack(&bench, "in.wasm", &["-o", "./in.wasm"]);
    assert_eq!(ran.code(), 2);
    assert!(ran.err().contains("over the module"), "{}", ran.err());
    assert_eq!(std::fs::read(bench.dir.path().join("in.wasm")).unwrap(), component("ssh-keys"));
}

/// A bench with `two.yaml`: the same ConfigMap in two namespaces, with other
/// modules.
fn two_modules() -> Bench {
    let bench = Bench::new();
    let mut all = String::new();
    for (namespace, name) in [("one", "ssh-keys"), ("two", "network")] {
        bench.write("in.wasm", component(name));
        let args = ["policy", "pack", "in.wasm", "-n", namespace, "--name", "chrony"];
        all += &format!("---\n{}", bench.tread(&args).out());
    }
    bench.write("two.yaml", all);
    bench
}

#[test]
fn of_several_modules_the_one_that_is_named_is_unpacked() {
    let bench = two_modules();
    let ran = bench.tread(&["policy", "unpack", "two.yaml", "-o", "out.wasm"]);
    assert_eq!(ran.code(), 1);
    for words in ["2 modules", "ConfigMap one/chrony", "ConfigMap two/chrony", "--namespace"] {
        assert!(ran.err().contains(words), "{words} in {}", ran.err());
    }
    let ran = bench.tread(&["policy", "unpack", "two.yaml", "-n", "two", "-o", "-"]);
    assert_eq!(ran.0.stdout, component("network"), "{}", ran.err());

    let other = json!({"kind": "ConfigMap", "metadata": {"name": "c"},
                       "binaryData": {"a.wasm": "AGFzbQ==", "b.wasm": "AGFzbQE=", "c": "AAA="}});
    bench.write("keys.json", other.to_string());
    let ran = bench.tread(&["policy", "unpack", "keys.json", "-o", "-"]);
    assert!(ran.err().contains("2 modules") && ran.err().contains("key b.wasm"), "{}", ran.err());
    for (key, bytes) in [("b.wasm", &b"\0asm\x01"[..]), ("c", b"\0\0")] {
        let ran = bench.tread(&["policy", "unpack", "keys.json", "--key", key, "-o", "-"]);
        assert_eq!(ran.0.stdout, bytes, "{}", ran.err());
    }
    for flags in [["--key", "d"], ["--name", "d"]] {
        let ran = bench.tread(&[&["policy", "unpack", "keys.json"], &flags[..]].concat());
        assert_eq!(ran.code(), 1);
        assert!(ran.err().contains("no module that fits"), "{}", ran.err());
        assert!(ran.err().contains("key a.wasm"), "{}", ran.err());
    }
}

#[test]
fn what_is_no_manifest_or_was_changed_is_not_unpacked() {
    let bench = Bench::new();
    bench.write("in.wasm", component("ssh-keys"));
    let manifest = pack(&bench, "in.wasm", &[]).out();
    let digest = Sha256::of(&component("ssh-keys")).to_string();
    let changed = manifest.replace("policy.wasm: \"AGFzbQ0AAQA", "policy.wasm: \"AGFzbQ0AAQB");
    assert_ne!(changed, manifest);
    for (text, words) in [
        (changed.as_str(), "says"),
        (&manifest.replace(&digest, "sha256:00"), "sha256:00"),
        (manifest.trim_end().trim_end_matches('"'), "m.yaml"),
        (&manifest.replace("AGFzbQ0A", "AG*zbQ0A"), "binaryData.policy.wasm"),
        ("kind: MachineConfig\n", "no ConfigMap with binaryData, but: MachineConfig"),
        ("kind: ConfigMap\nbinaryData: {a: AAAA}\n", "no WebAssembly"),
        ("", "holds nothing"),
        ("# soon\n---\n", "holds nothing"),
        ("a: [\n", "m.yaml"),
    ] {
        bench.write("m.yaml", text);
        let ran = bench.tread(&["policy", "unpack", "m.yaml", "-o", "out.wasm"]);
        assert_eq!((ran.code(), ran.out().as_str()), (1, ""), "{words}");
        assert!(ran.err().contains(words), "{words} in {}", ran.err());
        assert_eq!(files(&bench), ["in.wasm", "m.yaml"]);
    }
    // Who removes the annotation vouches for the bytes.
    let without: Vec<&str> =
        manifest.lines().filter(|line| !line.contains("policy-digest")).collect();
    bench.write("m.yaml", without.join("\n"));
    let ran = bench.tread(&["policy", "unpack", "m.yaml", "-o", "out.wasm"]);
    assert_eq!(ran.code(), 0, "{}", ran.err());
    assert!(ran.out().contains("not annotated"), "{}", ran.out());
}

#[test]
fn the_module_is_written_beside_the_manifest_and_over_no_other_file() {
    let bench = Bench::new();
    bench.write("in.wasm", component("ssh-keys"));
    let manifest = pack(&bench, "in.wasm", &[]).out();
    bench.write("m.yaml", &manifest);
    for _ in 0..2 {
        assert_eq!(bench.tread(&["policy", "unpack", "m.yaml"]).code(), 0);
    }
    assert_eq!(files(&bench), ["chrony.wasm", "in.wasm", "m.yaml"]);
    bench.write("chrony.wasm", "mine");
    let ran = bench.tread(&["policy", "unpack", "m.yaml"]);
    assert_eq!(ran.code(), 1);
    assert!(ran.err().contains("chrony.wasm is there already"), "{}", ran.err());
    bench.write("m.yaml", manifest.replace("name: \"chrony\"", "name: \"../chrony\""));
    let ran = bench.tread(&["policy", "unpack", "m.yaml"]);
    assert_eq!(ran.code(), 1);
    assert!(ran.err().contains("-o"), "{}", ran.err());
}

#[test]
fn a_link_that_leads_nowhere_yet_is_not_written_through() {
    let bench = Bench::new();
    bench.write("in.wasm", component("ssh-keys"));
    bench.write("m.yaml", pack(&bench, "in.wasm", &[]).out());
    std::os::unix::fs::symlink("elsewhere", bench.dir.path().join("chrony.wasm")).unwrap();
    let ran = bench.tread(&["policy", "unpack", "m.yaml"]);
    assert_eq!((ran.code(), ran.out().as_str()), (1, ""));
    assert!(ran.err().contains("chrony.wasm is there already"), "{}", ran.err());
    assert!(!bench.dir.path().join("elsewhere").exists());
    // Who names it wants that.
    let ran = bench.tread(&["policy", "unpack", "m.yaml", "-o", "chrony.wasm"]);
    assert_eq!(ran.code(), 0, "{}", ran.err());
    assert!(bench.dir.path().join("elsewhere").exists());
}

/// A ConfigMap with these keys, of which the annotation names one.
fn of_keys(keys: &[(&str, &[u8])], named: Option<&str>) -> String {
    let encoded = |bytes: &[u8]| Value::from(base64_simd::STANDARD.encode_to_string(bytes));
    let data: serde_json::Map<_, _> =
        keys.iter().map(|(key, bytes)| ((*key).to_owned(), encoded(bytes))).collect();
    let annotations = json!({"tread.dev/policy-key": named});
    let metadata = json!({"name": "c", "annotations": annotations});
    let map = json!({"kind": "ConfigMap", "metadata": metadata, "binaryData": data});
    map.to_string()
}

#[test]
fn of_several_keys_the_one_that_a_cluster_loads_is_inspected_and_unpacked() {
    let bench = Bench::new();
    let (one, two) = (component("ssh-keys"), component("network"));
    let keys = [("a.wasm", one.as_slice()), ("b.wasm", two.as_slice()), ("notes", &b"notes"[..])];
    bench.write("m.json", of_keys(&keys, Some("b.wasm")));
    let ran = bench.tread(&["policy", "inspect", "m.json", "-o", "json"]);
    assert_eq!((ran.code(), ran.err().as_str()), (0, ""), "{}", ran.out());
    assert_eq!(ran.json()["name"], "network");
    assert_eq!(ran.json()["packedIn"], "ConfigMap c, key b.wasm");
    let ran = bench.tread(&["policy", "unpack", "m.json", "-o", "-"]);
    assert_eq!(ran.0.stdout, two, "{}", ran.err());
    let ran = bench.tread(&["policy", "unpack", "m.json", "--key", "a.wasm", "-o", "-"]);
    assert_eq!(ran.0.stdout, one, "{}", ran.err());

    bench.write("m.json", of_keys(&keys, Some("notes")));
    let ran = bench.tread(&["policy", "inspect", "m.json", "-o", "json"]);
    assert_eq!((ran.code(), ran.err().as_str()), (1, ""));
    assert_eq!((&ran.json()["kind"], &ran.json()["state"]), (&json!("text"), &json!("Failed")));
    let ran = bench.tread(&["policy", "unpack", "m.json", "-o", "-"]);
    assert_eq!(ran.code(), 1);
    let words = "key notes: 5 bytes, no WebAssembly, named as the module";
    assert!(ran.err().contains(words), "{}", ran.err());

    bench.write("m.json", of_keys(&keys, None));
    let ran = bench.tread(&["policy", "inspect", "m.json"]);
    assert_eq!(ran.code(), 1);
    for words in ["holds 2 modules", "`tread policy unpack m.json --key KEY`"] {
        assert!(ran.err().contains(words), "{words} in {}", ran.err());
    }
}

#[test]
fn what_a_cluster_would_not_take_of_a_manifest_is_a_problem_in_the_report() {
    let bench = Bench::new();
    let module = component("ssh-keys");
    // A cluster does not guess which of the keys is meant.
    let keys = [("policy.wasm", module.as_slice()), ("notes", &b"notes"[..])];
    bench.write("m.json", of_keys(&keys, None));
    let ran = bench.tread(&["policy", "inspect", "m.json", "-o", "json"]);
    assert_eq!((ran.code(), ran.err().as_str()), (1, ""));
    let found = ran.json();
    assert_eq!((&found["name"], &found["state"]), (&json!("ssh-keys"), &json!("Failed")));
    assert_eq!(found["problems"][0]["failure"], "missing");
    let message = found["problems"][0]["message"].as_str().unwrap();
    assert!(message.contains("in the annotation tread.dev/policy-key"), "{message}");

    bench.write("in.wasm", &module);
    let digest = Sha256::of(&module).to_string();
    let manifest = pack(&bench, "in.wasm", &[]).out().replace(&digest, "sha256:00");
    bench.write("m.yaml", manifest);
    let ran = bench.tread(&["policy", "inspect", "m.yaml", "-o", "json"]);
    assert_eq!((ran.code(), ran.err().as_str()), (1, ""));
    let found = ran.json();
    assert_eq!((&found["digest"], &found["state"]), (&json!(digest), &json!("Failed")));
    assert_eq!(found["problems"][0]["failure"], "digest-mismatch");
    let message = found["problems"][0]["message"].as_str().unwrap();
    assert!(message.contains("says sha256:00") && !message.contains("written"), "{message}");
    let ran = bench.tread(&["policy", "inspect", "m.yaml"]);
    assert_eq!(ran.code(), 1);
    assert!(ran.out().contains("digest-mismatch: the annotation"), "{}", ran.out());
    let ran = bench.tread(&["policy", "unpack", "m.yaml"]);
    assert_eq!(ran.code(), 1);
    assert!(ran.err().contains("Nothing was written"), "{}", ran.err());

    // The settings that it is packed with count, and not only its defaults.
    bench.write("in.wasm", component("registries"));
    bench.write("settings.yaml", "drain: always\n");
    let good = pack(&bench, "in.wasm", &["--settings", "settings.yaml"]).out();
    for (settings, words) in
        [("drain: maybe", "expected one of"), ("drian: always", "drian"), ("[1", "data.settings")]
    {
        assert_ne!(good.replace("drain: always", settings), good);
        bench.write("m.yaml", good.replace("drain: always", settings));
        let ran = bench.tread(&["policy", "inspect", "m.yaml", "-o", "json"]);
        assert_eq!((ran.code(), ran.err().as_str()), (1, ""), "{settings}");
        let found = ran.json();
        assert_eq!(found["state"], "Failed", "{settings}");
        assert_eq!(found["problems"][0]["failure"], "invalid-settings", "{settings}");
        let message = found["problems"][0]["message"].as_str().unwrap();
        assert!(message.contains(words), "{settings}: {message}");
    }
    bench.write("m.yaml", &good);
    let ran = bench.tread(&["policy", "inspect", "m.yaml", "-o", "json"]);
    assert_eq!((ran.code(), ran.err().as_str()), (0, ""));
    let found = ran.json();
    assert_eq!(found["packedSettings"], json!({"drain": "always"}));
    assert_eq!((&found["state"], found.get("notes")), (&json!("Loaded"), None));
    assert_eq!(found["settings"]["defaults"]["drain"], "when-needed");
    bench.write("m.yaml", good.replace("tread.dev/policy: \"true\"", "app: \"true\""));
    let ran = bench.tread(&["policy", "inspect", "m.yaml"]);
    assert_eq!((ran.code(), ran.err().as_str()), (0, ""));
    for words in ["\"when-needed\"", "packed: \"always\"", "has no label tread.dev/policy=true"] {
        assert!(ran.out().contains(words), "{words} in {}", ran.out());
    }
}

#[test]
fn inspect_shows_all_that_a_policy_declares() {
    let bench = Bench::new();
    let bytes = component("registries");
    bench.write("in.wasm", &bytes);
    let ran = bench.tread(&["policy", "inspect", "in.wasm", "-o", "json"]);
    assert_eq!((ran.code(), ran.err().as_str()), (0, ""));
    let found = ran.json();
    assert_eq!(found["kind"], "policy");
    assert_eq!(found["name"], "registries");
    assert_eq!(found["state"], "Loaded");
    assert_eq!(found["problems"], json!([]));
    assert_eq!(found["digest"], Sha256::of(&bytes).to_string());
    assert_eq!(found["size"], bytes.len());
    assert_eq!(found["contract"], "1.2.0");
    assert_eq!(
        found["settings"]["defaults"],
        json!({"drain": "when-needed", "longest-name": 128, "mirrors": "trusted", "short-names": "unknown"})
    );
    assert_eq!(found["settings"]["schema"]["properties"]["drain"]["default"], "when-needed");
    assert_eq!(found["claims"][0]["changes"], "file:/etc/containers/registries.conf");
    assert_eq!(found["claims"][0]["least"], "reload");
    assert_eq!(found["imports"][0], "tread:policy/characters@1.2.0#put");
    let exports = ["tread:policy/declarations@1.2.0", "tread:policy/classifier@1.2.0"];
    assert_eq!(found["exports"], json!(exports));
    assert_eq!(found["emptyCall"]["function"], "describe");
    assert!(found["emptyCall"]["fuel"].as_u64().unwrap() > 0);

    let human = bench.tread(&["policy", "inspect", "in.wasm"]).out();
    for words in [
        "registries 0.1.0: Reloads CRI-O",
        "tread:policy@1.2.0",
        &format!("{} bytes", thousands(bytes.len())),
        "file:/etc/containers/registries.conf ",
        "reload..refuse",
        "\"when-needed\"",
        "one of \"when-needed\", \"always\", \"never\"",
        "Loaded",
    ] {
        assert!(human.contains(words), "{words} in {human}");
    }
}

fn thousands(number: usize) -> String {
    assert!((1000..1_000_000).contains(&number));
    format!("{},{:03}", number / 1000, number % 1000)
}

#[test]
fn inspect_does_not_ask_a_policy_about_anything() {
    let bench = Bench::new();
    bench.write("in.wasm", written::classifying("(unreachable)").component());
    let ran = bench.tread(&["policy", "inspect", "in.wasm"]);
    assert_eq!(ran.code(), 0, "{}", ran.out());
    let ran = bench.tread(&["policy", "bench", "in.wasm", "--runs", "1"]);
    assert_eq!(ran.code(), 1, "it cannot be asked");
}

#[test]
fn inspect_says_what_a_foreign_or_broken_file_is_and_what_is_wrong_with_it() {
    let bench = Bench::new();
    let good = component("ssh-keys");
    let wat = |text: &str| wat::parse_str(text).unwrap();
    let other_world = r#"(component (component $c) (instance $i (instantiate $c))
                         (export "wasi:cli/run@0.2.0" (instance $i)))"#;
    let program = std::fs::read(env!("CARGO_BIN_EXE_tread")).unwrap();
    let undescribed = written::Guest { section: None, ..written::Guest::default() };
    let newer = written::Guest { version: "2.0.0", ..written::Guest::default() };
    let config_map = "apiVersion: v1\nkind: ConfigMap\nbinaryData: {}\n";
    for (bytes, kind, failure, words) in [
        (vec![], "empty", "not-a-component", "an empty file"),
        (b"hello".to_vec(), "text", "not-a-component", "a text"),
        (program[..4096].to_vec(), "native-binary", "not-a-component", "ELF"),
        (b"\x1f\x8b\x08\0\0".to_vec(), "gzip", "not-a-component", "gunzip -c in.wasm"),
        (b"(module)".to_vec(), "wat", "not-a-component", "wasm-tools parse"),
        (config_map.into(), "manifest", "not-a-component", "tread policy unpack in.wasm"),
        (wat("(module)"), "core-module", "not-a-component", "core module"),
        (wat(other_world), "component", "wrong-world", "wasi:cli/run@0.2.0"),
        (good[..good.len() - 10].to_vec(), "broken-wasm", "not-a-component", "broken"),
        (good[..good.len() / 2].to_vec(), "broken-wasm", "not-a-component", "broken"),
        (
            of_size(&component("ssh-keys"), (8 << 20) + 1),
            "component",
            "too-large",
            "8388608 are allowed",
        ),
        (undescribed.component(), "policy", "bad-description", "tread policy build"),
        (newer.component(), "policy", "wrong-world", "or take one that speaks 2.0.0"),
    ] {
        bench.write("in.wasm", &bytes);
        let ran = bench.tread(&["policy", "inspect", "in.wasm"]);
        assert_eq!((ran.code(), ran.err().as_str()), (1, ""), "{words}");
        assert!(ran.out().contains(words), "{words} in {}", ran.out());
        assert!(ran.out().contains(failure), "{failure} in {}", ran.out());

        let ran = bench.tread(&["policy", "inspect", "in.wasm", "-o", "json"]);
        assert_eq!(ran.code(), 1);
        let found = ran.json();
        assert_eq!(found["kind"], kind, "{words}: {found}");
        assert_eq!(found["state"], "Failed");
        assert_eq!(found["digest"], Sha256::of(&bytes).to_string());
        let failures: Vec<&str> = found["problems"]
            .as_array()
            .unwrap()
            .iter()
            .map(|problem| problem["failure"].as_str().unwrap())
            .collect();
        assert!(failures.contains(&failure), "{failures:?}");
    }
    for (path, words) in [(".", "is a directory"), ("nope.wasm", "cannot read nope.wasm")] {
        let ran = bench.tread(&["policy", "inspect", path]);
        assert_eq!((ran.code(), ran.out().as_str()), (1, ""));
        assert!(ran.err().contains(words), "{}", ran.err());
    }
}

#[test]
fn bench_measures_made_up_changes_that_match_the_claims() {
    let bench = Bench::new();
    for (name, counts) in [
        ("registries", vec![1, 10, 100]),
        ("ssh-keys", vec![1, 10, 100]),
        ("kernel-arguments", vec![1, 2]),
    ] {
        bench.write("in.wasm", component(name));
        let run =
            |runs: &str| bench.tread(&["policy", "bench", "in.wasm", "--runs", runs, "-o", "json"]);
        let ran = run("20");
        assert_eq!(ran.code(), 0, "{name}: {}", ran.err());
        let found = ran.json();
        assert_eq!(found["policy"], name);
        assert!(found["loadNanos"].as_u64().unwrap() > 0);
        let calls = found["calls"].as_array().unwrap();
        let offered: Vec<u64> = calls.iter().map(|it| it["changes"].as_u64().unwrap()).collect();
        assert_eq!(offered, counts, "{name}");
        for times in calls.iter().map(|it| &it["times"]).chain([&found["instantiate"]]) {
            // On a busy machine a row ends by its time.
            assert!((1..=20).contains(&times["runs"].as_u64().unwrap()), "{times}");
            let ranks = ["p50Nanos", "p90Nanos", "p99Nanos", "maxNanos"];
            let ranks: Vec<u64> = ranks.iter().map(|it| times[it].as_u64().unwrap()).collect();
            assert!(ranks.is_sorted() && ranks[0] > 0, "{times}");
        }
        for call in calls {
            assert!(call["fuel"].as_u64().unwrap() > 0);
            assert!(call["memory"].as_u64().unwrap() >= 64 << 10);
        }
        // Fuel and memory are the same at every run.
        let again = run("1").json();
        for (one, two) in calls.iter().zip(again["calls"].as_array().unwrap()) {
            assert_eq!((&one["fuel"], &one["memory"]), (&two["fuel"], &two["memory"]));
        }
    }
}

#[test]
fn bench_measures_the_changes_of_cases() {
    let bench = Bench::new();
    bench.write("in.wasm", component("registries"));
    let side = |source: &str| {
        let prefix = format!("[[registry]]\nprefix = \"{source}\"\nlocation = \"{source}\"\n");
        format!("{{files: {{/etc/containers/registries.conf: {}}}}}", json!(prefix))
    };
    let case = format!(
        "title: Another source\nold: {}\nnew: {}\nexpect: {{plan: reload crio.service}}\n\
         ---\ntitle: Nothing of it\nold: {{}}\nnew: {{files: {{/etc/motd: hi}}}}\n\
         expect: {{plan: reboot}}\n---\ntitle: Other settings\n\
         settings: {{registries: {{drain: always}}}}\nold: {0}\nnew: {1}\n\
         expect: {{plan: reboot}}\n",
        side("a.example"),
        side("b.example")
    );
    bench.write("cases/a.yaml", case);
    let base = ["policy", "bench", "in.wasm", "--runs", "3"];
    for path in ["cases", "cases/a.yaml"] {
        let ran = bench.tread(&[&base[..], &["--cases", path, "-o", "json"]].concat());
        assert_eq!(ran.code(), 0, "{}", ran.err());
        let found = ran.json();
        let titles: Vec<&str> = found["calls"]
            .as_array()
            .unwrap()
            .iter()
            .map(|call| call["title"].as_str().unwrap())
            .collect();
        assert_eq!(titles, ["Another source", "Other settings"]);
        assert_eq!(found["casesWithoutACall"], 1);
        assert_eq!(found["calls"][0]["file"], "cases/a.yaml");
        assert_ne!(found["calls"][0]["fuel"], found["calls"][1]["fuel"], "the settings count");
    }
    let human = bench.tread(&[&base[..], &["--cases", "cases"]].concat()).out();
    for words in ["a fresh instance", "Another source", "P99", "1 case changes nothing"] {
        assert!(human.contains(words), "{words} in {human}");
    }

    std::fs::create_dir(bench.dir.path().join("empty")).unwrap();
    bench.write("motd.yaml", "title: T\nold: {}\nnew: {files: {/a: b}}\nexpect: {plan: reboot}\n");
    bench.write("bad.yaml", "title: T\n");
    for (path, words) in [
        ("empty", "holds no cases"),
        ("motd.yaml", "none of 1 cases"),
        ("bad.yaml", "bad.yaml"),
        ("nope", "nope"),
    ] {
        let ran = bench.tread(&[&base[..], &["--cases", path]].concat());
        assert_eq!((ran.code(), ran.out().as_str()), (1, ""), "{path}");
        assert!(ran.err().contains(words), "{}", ran.err());
    }
}

#[test]
fn a_policy_that_fails_when_it_is_asked_fails_its_bench() {
    let bench = Bench::new();
    bench.write("in.wasm", written::classifying("(unreachable)").component());
    let ran = bench.tread(&["policy", "bench", "in.wasm", "--runs", "2"]);
    assert_eq!(ran.code(), 1);
    assert!(ran.out().contains(": it failed\n  trap: "), "{}", ran.out());
    bench.write("in.wasm", "no policy");
    let ran = bench.tread(&["policy", "bench", "in.wasm"]);
    assert_eq!((ran.code(), ran.out().as_str()), (1, ""));
    assert!(ran.err().contains("is a text"), "{}", ran.err());
}
