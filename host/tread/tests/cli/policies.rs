//! `tread policies`

use crate::configs::rule;
use crate::guests::{act, answering, claim, classifying, disguised};
use crate::schema::from_yaml;
use crate::support::{Bench, tree};
use serde_json::{Value, json};
use tread_model::digest::Sha256;
use tread_model::effect::Effect;

const BUILTINS: [&str; 7] = [
    "certificates",
    "kernel-arguments",
    "network",
    "node-services",
    "os-image",
    "registries",
    "ssh-keys",
];

fn listed(bench: &Bench, args: &[&str]) -> Vec<Value> {
    let ran = bench.tread(&[&["policies", "-o", "json"], args].concat());
    assert_eq!(ran.code(), 0, "{}", ran.err());
    ran.json().as_array().unwrap().clone()
}

#[test]
fn the_built_in_policies_are_listed_with_all_that_is_known_of_them() {
    let bench = Bench::new();
    let rows = listed(&bench, &[]);
    let names: Vec<_> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, BUILTINS);
    for row in &rows {
        let name = row["name"].as_str().unwrap();
        let component =
            std::fs::read(tree().join(format!("policies/prebuilt/{name}.wasm"))).unwrap();
        assert_eq!(row["layer"], "builtin");
        assert_eq!(row["state"], "Loaded");
        assert_eq!(row["size"], component.len());
        assert_eq!(row["digest"], Sha256::of(&component).to_string());
        assert!(row["settings"].is_object(), "{row:#}");
        assert!(!row["summary"].as_str().unwrap().is_empty());
        for claim in row["claims"].as_array().unwrap() {
            for field in ["changes", "least", "most"] {
                assert!(claim[field].is_string(), "{field} of {claim}");
            }
        }
    }
}

#[test]
fn yaml_lists_the_same_as_json() {
    let bench = Bench::new();
    let yaml = bench.tread(&["policies", "-o", "yaml"]);
    assert_eq!(from_yaml(&yaml.out()), Value::Array(listed(&bench, &[])));
}

#[test]
fn the_table_has_a_line_for_each_policy_and_the_wide_one_for_each_claim() {
    let bench = Bench::new();
    let rows = listed(&bench, &[]);
    let claims: usize = rows.iter().map(|row| row["claims"].as_array().unwrap().len()).sum();
    let table = bench.tread(&["policies"]).out();
    let wide = bench.tread(&["policies", "-o", "wide"]).out();
    assert_eq!(table.lines().count(), 1 + rows.len());
    assert_eq!(wide.lines().count(), 1 + claims);
    let heads =
        |text: &str| text.lines().next().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(heads(&table), "NAME LAYER VERSION CLAIMS SIZE DIGEST STATE");
    assert_eq!(heads(&wide), "NAME LAYER VERSION CLAIM EFFECTS SIZE DIGEST STATE");
    for row in &rows {
        let digest = row["digest"].as_str().unwrap();
        assert!(wide.contains(digest), "{wide}");
        assert!(table.contains(&digest["sha256:".len()..][..12]), "{table}");
    }
    assert!(wide.contains("reload..refuse"), "{wide}");
}

#[test]
fn a_policy_of_a_template_owner_and_rules_of_an_admin_are_listed_in_their_layers() {
    let bench = Bench::new();
    let claims = vec![claim("file:/etc/a", Effect::None, Effect::Restart)];
    let component = answering("mine", claims, vec![act(0, &[])]).component();
    bench.write("mine.wasm", &component);
    let actions = json!([{"do": "restart", "unit": "chronyd.service"}]);
    let rules = rule("time", json!({"match": ["file:/etc/chrony.conf"], "actions": actions}));
    bench.write("time.json", rules.to_string());
    let rows = listed(&bench, &["--policy", "mine.wasm", "--rules", "time.json"]);
    let order: Vec<_> = rows
        .iter()
        .map(|row| (row["layer"].as_str().unwrap(), row["name"].as_str().unwrap()))
        .collect();
    assert_eq!(order[..3], [("admin", "time"), ("template", "mine"), ("builtin", "certificates")]);
    let claims =
        json!([{"changes": "file:/etc/chrony.conf", "least": "restart", "most": "restart"}]);
    assert_eq!(rows[0]["claims"], claims, "computed from the rules");
    assert_eq!(rows[1]["digest"], Sha256::of(&component).to_string());
    assert_eq!(rows[1]["version"], "1.2.3");
    assert_eq!(rows[1]["state"], "Loaded");
}

#[test]
fn settings_are_listed_complete() {
    let bench = Bench::new();
    let settings = |args: &[&str]| {
        let rows = listed(&bench, args);
        rows.into_iter().find(|row| row["name"] == "registries").unwrap()["settings"].take()
    };
    assert_eq!(settings(&[])["drain"], "when-needed");
    assert_eq!(settings(&["--set", "registries.drain=always"])["drain"], "always");
}

#[test]
fn a_setting_is_for_the_policy_of_that_name_and_rules_take_none() {
    let bench = Bench::new();
    let rows = listed(&bench, &["--set", "registries.drain=always"]);
    let registries = rows.iter().find(|row| row["name"] == "registries").unwrap();
    assert_eq!(registries["settings"]["drain"], "always");

    bench
        .write("rule.json", rule("mine", json!({"match": ["file:/a"], "actions": []})).to_string());
    let ran = bench.tread(&["policies", "--rules", "rule.json", "--set", "mine.drain=always"]);
    assert_eq!(ran.code(), 2);
    assert!(
        ran.err().contains("--set mine: mine is made of rules, which take no settings"),
        "{}",
        ran.err()
    );
}

/// A policy that takes a setting, but no value that anybody gives it.
fn picky(claims: Vec<tread_model::description::Claim>) -> Vec<u8> {
    let mut guest = answering("mine", claims, vec![]);
    guest.exported.settings = Some(tread_model::description::SettingsDescription {
        defaults: r#"{"limit":0}"#.to_owned(),
        schema: r#"{"type":"object","properties":{"limit":{"type":"integer"}}}"#.to_owned(),
    });
    guest.section = Some(serde_json::to_vec(&guest.exported).unwrap());
    guest.settings_errors = vec!["limit: it is too small"];
    guest.component()
}

#[test]
fn a_policy_that_cannot_decide_is_listed_with_the_name_of_its_failure() {
    let bench = Bench::new();
    let claims = || vec![claim("file:/etc/a", Effect::None, Effect::Restart)];
    let importing = r#"(component (import "wasi:clocks/wall-clock@0.2.0"
        (instance (export "now" (func (result u64))))))"#;
    for (component, args, failure) in [
        (disguised("mine", claims(), importing), &[][..], "forbidden-import"),
        (disguised("mine", claims(), "(component)"), &[], "wrong-world"),
        (picky(claims()), &["--set", "mine.limit=-1"], "invalid-settings"),
    ] {
        bench.write("mine.wasm", component);
        let args = [&["--policy", "mine.wasm"], args].concat();
        let rows = listed(&bench, &args);
        let row = &rows[0];
        assert_eq!(row["state"], "Failed");
        assert_eq!(row["failure"], failure);
        assert!(!row["message"].as_str().unwrap().is_empty());
        assert_eq!(row["claims"][0]["changes"], "file:/etc/a", "what it claims is known");
        let table = bench.tread(&[&["policies"], &args[..]].concat()).out();
        assert!(table.contains(&format!("Failed ({failure})")), "{table}");
    }
    let fine = classifying("mine", claims(), "unreachable");
    bench.write("mine.wasm", fine.component());
    assert_eq!(listed(&bench, &["--policy", "mine.wasm"])[0]["state"], "Loaded", "it is not asked");
}

#[test]
fn a_module_of_which_not_even_the_claims_are_known_is_an_error_that_names_it() {
    let bench = Bench::new();
    let fine = answering("mine", vec![claim("file:/etc/a", Effect::None, Effect::None)], vec![]);
    let whole = fine.component();
    let bare = crate::guests::Guest { section: None, ..fine.clone() }.component();
    let scrambled = crate::guests::Guest { section: Some(b"{]".to_vec()), ..fine }.component();
    let large = vec![0; (8 << 20) + 1];
    for (bytes, failure) in [
        (&b"hello"[..], "not-a-component"),
        (b"", "not-a-component"),
        (b"\0asm\x01\0\0\0", "not-a-component"),
        (&whole[..whole.len() / 3], "not-a-component"),
        (&bare, "bad-description"),
        (&scrambled, "bad-description"),
        (&large, "too-large"),
    ] {
        bench.write("mine.wasm", bytes);
        let ran = bench.tread(&["policies", "--policy", "mine.wasm"]);
        assert_eq!(ran.code(), 1, "{failure}: {}", ran.out());
        let start = format!("error: mine.wasm: {failure}: ");
        assert!(ran.err().starts_with(&start), "{}", ran.err());
        assert_eq!(ran.err().lines().count(), 1, "{}", ran.err());
    }
    let ran = bench.tread(&["policies", "--policy", "nowhere.wasm"]);
    assert_eq!(ran.code(), 1);
    assert!(ran.err().contains("cannot read nowhere.wasm"), "{}", ran.err());
}
