//! Law 5: the same inputs give the same plan, however they are written; and
//! whatever matters changes its digest.

use crate::configs::{config, file, files, machine_config, mirrors, rule};
use crate::guests::{self, act, claim};
use crate::schema::checked;
use crate::support::{Bench, Ran};
use serde_json::{Value, json};
use tread_model::effect::Effect;

/// The digests of the plan and of both configs.
fn digests(ran: &Ran) -> [String; 3] {
    let plan = checked(ran);
    ["digest", "from", "to"].map(|name| plan[name].as_str().unwrap().to_owned())
}

fn yaml(value: &Value) -> String {
    serde_saphyr::to_string(value).unwrap()
}

/// What a pool gets in three objects, of which two set the same file.
fn objects(sysctl: &str) -> Vec<Value> {
    vec![
        machine_config("00-base", files(&[("/etc/sysctl.d/a.conf", "base"), ("/etc/b", "b")])),
        machine_config("99-more", files(&[("/etc/sysctl.d/a.conf", sysctl), ("/etc/c", "c")])),
        mirrors(&["mirror.example/app"]),
    ]
}

#[test]
fn the_order_and_the_form_of_the_input_do_not_show_in_the_plan() {
    let bench = Bench::new();
    let old = objects("one");
    bench.write("old.yaml", old.iter().map(yaml).collect::<Vec<_>>().join("---\n"));
    let new = objects("two");
    let documents: Vec<String> = new.iter().map(yaml).collect();
    let reversed: Vec<String> = documents.iter().rev().cloned().collect();
    bench.write("new.yaml", documents.join("---\n"));
    bench.write("reversed.yaml", reversed.join("---\n"));
    bench.write("documents.json", new.iter().map(Value::to_string).collect::<String>());
    let list = json!({"apiVersion": "v1", "kind": "List", "items": new});
    bench.write("list.json", list.to_string());
    bench.write("pretty.json", format!("{list:#}\n"));
    bench.write("list.yaml", yaml(&list));
    for (index, object) in new.iter().enumerate() {
        bench.write(&format!("dir/{index}.json"), object.to_string());
        bench.write(&format!("other/sub/{}.yml", 9 - index), yaml(object));
        bench.write(&format!("part-{index}"), yaml(object));
    }
    bench.write("dir/notes.txt", "kind: Nonsense\n");

    let plan = |new: &[&str]| {
        let args = [&["plan", "-o", "json", "--old", "old.yaml"], new].concat();
        bench.tread(&args)
    };
    // Where both sides were read stands behind the plan itself.
    let itself = |ran: &Ran| ran.out().split_once("\n  \"read\"").unwrap().0.to_owned();
    let wanted = plan(&["--new", "new.yaml"]);
    assert_eq!(wanted.json()["summary"], "drain, reboot");
    for new in [
        &["--new", "reversed.yaml"][..],
        &["--new", "documents.json"],
        &["--new", "list.json"],
        &["--new", "pretty.json"],
        &["--new", "list.yaml"],
        &["--new", "dir"],
        &["--new", "other/"],
        &["--new", "part-0", "--new", "part-1", "--new", "part-2"],
        &["--new", "part-2", "--new", "part-1", "--new", "part-0"],
        &["--new", "dir/2.json", "--new", "part-1", "--new", "other/sub/9.yml"],
    ] {
        assert_eq!(itself(&plan(new)), itself(&wanted), "{new:?}");
    }
    let input = reversed.join("---\n");
    let piped = bench.tread_with(&["plan", "-o", "json", "old.yaml", "-"], input.as_bytes());
    assert_eq!(itself(&piped), itself(&wanted), "standard input");
}

#[test]
fn both_sides_can_come_from_standard_input() {
    let bench = Bench::new();
    let (one, two) = (files(&[("/etc/a", "1")]), files(&[("/etc/a", "2")]));
    bench.write("one.yaml", yaml(&machine_config("worker", one.clone())));
    let two = yaml(&machine_config("worker", two));
    let to = bench.tread_with(&["plan", "-o", "json", "one.yaml", "-"], two.as_bytes()).json();
    let from = bench.tread_with(&["plan", "-o", "json", "-", "one.yaml"], two.as_bytes()).json();
    assert_eq!((&to["from"], &to["to"]), (&from["to"], &from["from"]));
    assert_ne!(to["from"], to["to"]);
}

#[test]
fn what_means_the_same_is_no_change() {
    let bench = Bench::new();
    let with = |file: Value| config(json!({"storage": {"files": [file]}}));
    let plain = || with(file("/etc/a", "hi", 0o644));
    let source = |source: &str| with(json!({"path": "/etc/a", "contents": {"source": source}}));
    let gzip = "H4sIAAAAAAACA8vIBACsKpPYAgAAAA==";
    let pairs = [
        (plain(), source("data:,hi"), "a default mode"),
        (plain(), source("data:text/plain;charset=utf-8;base64,aGk="), "base64"),
        (
            plain(),
            with(json!({
                "path": "/etc/a", "overwrite": true, "user": {"id": 0}, "group": {"name": "root"},
                "contents": {"source": format!("data:;base64,{gzip}"), "compression": "gzip"},
            })),
            "gzip and default owners",
        ),
        (
            json!({"kernelArguments": ["a b", "c=\"d e\""]}),
            json!({"kernelArguments": ["a", "b", "c=\"d e\""]}),
            "kernel arguments, split",
        ),
        (json!({"extensions": ["a", "b"]}), json!({"extensions": ["b", "a", "a"]}), "a set"),
        (json!({"fips": false, "kernelType": "default"}), json!({}), "defaults"),
    ];
    for (old, new, what) in pairs {
        let plan = checked(&bench.plan(old, new, &["-o", "json"]));
        assert_eq!(plan["outcome"], "nothing", "{what}: {plan:#}");
        assert_eq!(plan["from"], plan["to"], "{what}");
    }
}

#[test]
fn the_digest_follows_the_configs_and_not_the_names_of_files_and_objects() {
    let bench = Bench::new();
    let old = || machine_config("worker", files(&[]));
    let new = |name: &str, text: &str| machine_config(name, files(&[("/etc/a", text)]));
    let plan = |new: Value| digests(&bench.plan_objects(&[old()], &[new], &["-o", "json"]));
    let one = plan(new("worker", "one"));
    assert_eq!(one, plan(new("renamed", "one")));
    let two = plan(new("worker", "two"));
    assert_eq!(one[1], two[1]);
    assert_ne!(one[0], two[0], "another content is another plan");
    assert_ne!(one[2], two[2]);

    bench.write("somewhere/else.yaml", format!("# A comment.\n\n{}", yaml(&new("worker", "one"))));
    let moved = bench.tread(&["plan", "-o", "json", "old.json", "somewhere/else.yaml"]);
    assert_eq!(one, digests(&moved));
}

#[test]
fn the_digest_follows_the_settings_of_a_policy_that_decides_and_of_no_other() {
    let bench = Bench::new();
    let base = machine_config("worker", files(&[]));
    let new = [base.clone(), mirrors(&["mirror.example/app"])];
    let plan = |args: &[&str]| {
        let args = [&["-o", "json"], args].concat();
        digests(&bench.plan_objects(std::slice::from_ref(&base), &new, &args))
    };
    let usual = plan(&[]);
    let same = plan(&["--set", "registries.drain=when-needed"]);
    assert_eq!(usual, same, "the default, said aloud");
    let never = plan(&["--set", "registries.drain=never"]);
    assert_ne!(usual[0], never[0], "the steps are the same, the settings are not");
    assert_eq!(usual[1..], never[1..]);

    let unknown = files(&[("/etc/unknown", "x")]);
    let plan = |args: &[&str]| {
        let args = [&["-o", "json"], args].concat();
        digests(&bench.plan(files(&[]), unknown.clone(), &args))
    };
    assert_eq!(plan(&[]), plan(&["--set", "registries.drain=never"]), "it decides nothing here");
}

#[test]
fn the_order_in_which_policies_and_rules_are_given_does_not_matter() {
    let bench = Bench::new();
    for (name, unit) in [("one", "a.service"), ("two", "b.service")] {
        let claims = vec![claim("file:/etc/a", Effect::None, Effect::Restart)];
        let says = vec![act(0, &[guests::Action::Restart(unit)])];
        bench.write(&format!("{name}.wasm"), guests::answering(name, claims, says).component());
        let action = json!({"do": "reload", "unit": unit});
        let of_rules = format!("rule-{name}");
        let rules = rule(&of_rules, json!({"match": ["file:/etc/b"], "actions": [action]}));
        bench.write(&format!("{name}.json"), rules.to_string());
    }
    let new = || files(&[("/etc/a", "x"), ("/etc/b", "x")]);
    let plan = |args: &[&str]| bench.plan(files(&[]), new(), &[&["-o", "json"], args].concat());
    let forth = plan(&[
        "--policy", "one.wasm", "--policy", "two.wasm", "--rules", "one.json", "--rules",
        "two.json",
    ]);
    let back = plan(&[
        "--rules", "two.json", "--policy", "two.wasm", "--rules", "one.json", "--policy",
        "one.wasm",
    ]);
    assert_eq!(forth.out(), back.out());
    assert_eq!(
        checked(&forth)["summary"],
        "restart a.service, restart b.service; no drain, no reboot"
    );
}
