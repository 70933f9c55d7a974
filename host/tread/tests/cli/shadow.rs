//! `tread plan --shadow`: what a policy would have decided.

use crate::configs::{file, files, rule, samples};
use crate::guests::{Action, Answer, Guest, Says, act, answering, claim, classifying};
use crate::schema::checked;
use crate::support::Bench;
use serde_json::{Value, json};
use tread_model::effect::Effect;

const PATH: &str = "/etc/a";

/// A template policy for one file, in the file `NAME.wasm`.
fn write(bench: &Bench, name: &str, file: &str, verdicts: Vec<Says>) {
    let claims = vec![claim("file:/etc/a", Effect::None, Effect::Refuse)];
    bench.write(file, answering(name, claims, verdicts).component());
}

fn restarting(bench: &Bench) {
    write(bench, "gentle", "gentle.wasm", vec![act(0, &[Action::Restart("a.service")])]);
}

fn planned(bench: &Bench, args: &[&str]) -> Value {
    let args = [&["-o", "json"], args].concat();
    checked(&bench.plan(files(&[]), files(&[(PATH, "x")]), &args))
}

/// A plan without what is beside it.
fn alone(mut plan: Value) -> Value {
    plan.as_object_mut().unwrap().remove("shadow");
    plan
}

#[test]
fn a_policy_in_the_shadow_decides_nothing_and_its_plan_is_the_one_it_would_make() {
    let bench = Bench::new();
    restarting(&bench);
    let today = planned(&bench, &[]);
    let enforced = planned(&bench, &["--policy", "gentle.wasm"]);
    let both = planned(&bench, &["--shadow", "gentle.wasm"]);
    assert_eq!(alone(both.clone()), today);
    let shadow = &both["shadow"];
    for field in ["outcome", "effect", "summary", "drain", "reboot", "steps", "digest"] {
        assert_eq!(shadow["plan"][field], enforced[field], "{field}");
    }
    assert_ne!(shadow["plan"]["digest"], today["digest"]);
    assert_eq!(
        shadow["summary"],
        "saves 3 steps (drain, reboot, uncordon); adds 1 step (restart a.service)"
    );
    assert_eq!(shadow["saved"], json!([{"do": "drain"}, {"do": "reboot"}, {"do": "uncordon"}]));
    assert_eq!(shadow["added"], json!([{"do": "restart", "unit": "a.service"}]));
    let change = &shadow["changes"][0];
    assert_eq!(change["today"]["outcome"], "fallback");
    assert_eq!(change["would"]["decidedBy"]["policy"], "gentle");
    assert_eq!(change["answers"][0]["reason"], "because");
}

#[test]
fn a_person_sees_both_and_that_it_decides_nothing() {
    let bench = Bench::new();
    restarting(&bench);
    let new = files(&[(PATH, "x"), ("/etc/b", "x")]);
    let ran = bench.plan(files(&[]), new, &["--shadow", "gentle.wasm"]);
    assert_eq!(ran.code(), 0, "{}", ran.err());
    let (plan, shadow) = ran
        .out()
        .split_once("\nin the shadow: ")
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    assert!(plan.starts_with("drain, reboot\n"), "{plan}");
    assert_eq!(
        shadow,
        "the same steps as today\n  gentle 1.2.3 (template)\n  file:/etc/a\n    \
         today: reboot (fallback)\n    would: restart a.service (gentle 1.2.3)\n      \
         gentle: because\n  1 other change as today\n  steps would be: drain, write, reboot, \
         uncordon\n  It decides nothing: the plan above is the same without --shadow.\n"
    );
}

#[test]
fn neither_max_nor_the_exit_code_follow_the_shadow() {
    let bench = Bench::new();
    restarting(&bench);
    let refusing = Says { change: 0, answer: Answer::Refuse, reason: b"Never." };
    write(&bench, "strict", "strict.wasm", vec![refusing]);
    let new = || files(&[(PATH, "x")]);
    let ran = bench.plan(files(&[]), new(), &["--max", "restart", "--shadow", "gentle.wasm"]);
    assert_eq!(ran.code(), 3);
    let ran = bench.plan(files(&[]), new(), &["-o", "json", "--shadow", "strict.wasm"]);
    assert_eq!(ran.code(), 0);
    let shadow = &checked(&ran)["shadow"];
    assert_eq!(shadow["plan"]["outcome"], "refuse");
    assert_eq!(shadow["changes"][0]["answers"][0]["answer"], "refuse");
}

#[test]
fn whatever_a_policy_in_the_shadow_does_today_is_as_without_it() {
    let bench = Bench::new();
    let claims = || vec![claim("file:/etc/a", Effect::None, Effect::None)];
    let ids = |unit| vec![act(0, &[Action::Restart(unit)])];
    let unloadable = Guest { section: None, ..answering("broken", claims(), vec![]) };
    for (guest, failure) in [
        (classifying("broken", claims(), "unreachable").component(), "trap"),
        (
            classifying("broken", claims(), "(loop $l (br $l)) unreachable").component(),
            "out-of-fuel",
        ),
        (answering("broken", claims(), ids("a.service")).component(), "beyond-claim"),
        (answering("broken", claims(), vec![act(7, &[])]).component(), "unknown-change"),
        (unloadable.component(), "bad-description"),
        (b"no module".to_vec(), "not-a-component"),
        (b"\0asm\x01\0\0\0".to_vec(), "not-a-component"),
    ] {
        bench.write("broken.wasm", guest);
        let today = planned(&bench, &[]);
        let both = planned(&bench, &["--shadow", "broken.wasm"]);
        assert_eq!(alone(both.clone()), today, "{failure}");
        let shadow = &both["shadow"];
        let of_change = &shadow["changes"][0]["answers"][0]["answer"];
        let of_policy = &shadow["policies"][0]["failure"];
        assert!(of_change == failure || of_policy == failure, "{failure}: {shadow:#}");
        let human = bench.plan(files(&[]), files(&[(PATH, "x")]), &["--shadow", "broken.wasm"]);
        assert_eq!(human.code(), 0);
        assert!(human.out().contains(&format!("{failure}: ")), "{}", human.out());
    }
}

#[test]
fn a_new_version_in_the_shadow_stands_in_the_place_of_the_old_one() {
    let bench = Bench::new();
    write(&bench, "app", "one.wasm", vec![act(0, &[Action::Restart("one.service")])]);
    write(&bench, "app", "two.wasm", vec![act(0, &[Action::Reload("two.service")])]);
    let plan = planned(&bench, &["--policy", "one.wasm", "--shadow", "two.wasm"]);
    assert_eq!(plan["summary"], "restart one.service; no drain, no reboot");
    let shadow = &plan["shadow"];
    assert_eq!(shadow["plan"]["summary"], "reload two.service; no drain, no reboot");
    assert_eq!(shadow["policies"][0]["replaces"], true);
    let twice = ["--shadow", "one.wasm", "--shadow", "two.wasm"];
    assert_eq!(bench.plan(files(&[]), files(&[]), &twice).code(), 2);
}

#[test]
fn several_are_tried_together() {
    let bench = Bench::new();
    restarting(&bench);
    let claims = vec![claim("file:/etc/b", Effect::None, Effect::None)];
    bench.write("b.wasm", answering("b", claims, vec![act(0, &[])]).component());
    let new = || files(&[(PATH, "x"), ("/etc/b", "x")]);
    let args = ["-o", "json", "--shadow", "gentle.wasm", "--shadow", "b.wasm"];
    let shadow = &checked(&bench.plan(files(&[]), new(), &args))["shadow"];
    assert_eq!(shadow["plan"]["summary"], "restart a.service; no drain, no reboot");
    assert_eq!(shadow["changes"].as_array().unwrap().len(), 2);
}

#[test]
fn rules_can_be_tried_too_and_their_warnings_stay_with_them() {
    let bench = Bench::new();
    restarting(&bench);
    let mut rules = rule("mine", json!({"match": ["file:/etc/a", "file:/etc/a"], "actions": []}));
    rules["spec"]["mode"] = json!("Shadow");
    bench.write("rules.yaml", rules.to_string());
    let plan = planned(&bench, &["--policy", "gentle.wasm", "--shadow", "rules.yaml"]);
    assert!(plan.get("warnings").is_none());
    let shadow = &plan["shadow"];
    assert_eq!(shadow["plan"]["summary"], "no action; no drain, no reboot");
    assert_eq!(shadow["policies"][0]["layer"], "admin");
    // Whatever its file is called.
    bench.write("rules.conf", rules.to_string());
    let other = planned(&bench, &["--policy", "gentle.wasm", "--shadow", "rules.conf"]);
    assert_eq!(other["shadow"]["plan"], shadow["plan"]);
    assert!(shadow["warnings"][0].as_str().unwrap().contains("twice"), "{shadow:#}");
    // In the other place the same file is told where it belongs.
    let ran = bench.plan(files(&[]), files(&[]), &["--rules", "rules.yaml"]);
    assert!(ran.err().contains("--shadow"), "{}", ran.err());
    // What the admin layer decides is not asked of a template.
    rules["spec"]["mode"] = json!("Enforce");
    bench.write("rules.yaml", rules.to_string());
    let shadow = &planned(&bench, &["--rules", "rules.yaml", "--shadow", "gentle.wasm"])["shadow"];
    assert_eq!(shadow["changes"][0]["answers"][0]["answer"], "not-asked");
    assert_eq!(shadow["summary"], "the same steps as today");
}

#[test]
fn a_policy_is_tried_as_it_is_packed_and_rules_beside_it_are_named() {
    let bench = Bench::new();
    restarting(&bench);
    let packed = |module: &[u8], settings: &str| {
        let module = base64_simd::STANDARD.encode_to_string(module);
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "gentle"},
            "data": {"settings": settings}, "binaryData": {"policy.wasm": module}})
    };
    let gentle = std::fs::read(bench.dir.path().join("gentle.wasm")).unwrap();
    bench.write("packed.json", packed(&gentle, "").to_string());
    let shadow = &planned(&bench, &["--shadow", "packed.json"])["shadow"];
    assert_eq!(*shadow, planned(&bench, &["--shadow", "gentle.wasm"])["shadow"]);
    // Its settings count, as in a cluster.
    bench.write("packed.json", packed(&gentle, "speed: 9").to_string());
    let shadow = &planned(&bench, &["--shadow", "packed.json"])["shadow"];
    assert_eq!(shadow["policies"][0]["failure"], "invalid-settings");
    // What cannot be loaded is told, and the plan stays.
    bench.write("packed.json", packed(b"\0asm\r\0\x01\0", "").to_string());
    let shadow = &planned(&bench, &["--shadow", "packed.json"])["shadow"];
    assert_eq!(shadow["policies"][0]["policy"], "packed.json, ConfigMap gentle, key policy.wasm");
    assert!(shadow["policies"][0]["failure"].is_string(), "{shadow:#}");
    // Rules in the same file are not tried without a word.
    let rules = rule("mine", json!({"match": ["file:/etc/a"], "actions": []}));
    bench.write("both.yaml", format!("{}\n---\n{rules}", packed(&gentle, "")));
    let shadow = &planned(&bench, &["--shadow", "both.yaml"])["shadow"];
    let warning = shadow["warnings"][0].as_str().unwrap();
    assert!(warning.contains("holds a DisruptionPolicy too, which is not tried"), "{warning}");
}

#[test]
fn it_can_relax_and_take_settings_only_by_its_name() {
    let bench = Bench::new();
    let path = "/etc/NetworkManager/a.conf";
    let claims = vec![claim("file:/etc/NetworkManager/**", Effect::None, Effect::Reboot)];
    bench.write("soft.wasm", answering("soft", claims, vec![act(0, &[])]).component());
    let plan = |args: &[&str]| {
        let args = [&["-o", "json", "--shadow", "soft.wasm"], args].concat();
        checked(&bench.plan(files(&[]), files(&[(path, "x")]), &args))
    };
    assert_eq!(plan(&[])["shadow"]["plan"]["summary"], "drain, reboot");
    let relaxed = plan(&["--may-relax", "soft"]);
    assert_eq!(relaxed["summary"], "drain, reboot");
    assert_eq!(relaxed["shadow"]["plan"]["summary"], "no action; no drain, no reboot");
    let unknown = ["--shadow", "soft.wasm", "--may-relax", "other"];
    assert_eq!(bench.plan(files(&[]), files(&[]), &unknown).code(), 2);
    let unknown = ["--shadow", "soft.wasm", "--set", "soft.key=1"];
    let ran = bench.plan(files(&[]), files(&[]), &unknown);
    assert_eq!(ran.code(), 2);
    assert!(ran.err().contains("soft takes no settings"), "{}", ran.err());
}

#[test]
fn a_policy_in_the_shadow_sees_secrets_as_digests_and_no_output_quotes_them() {
    let bench = Bench::new();
    // It tells by how it fails which variant of `content` stands on the new side:
    // it does not end where that is bytes, and traps where it is a digest.
    let body = r#"(if (i32.eq (i32.const 1) (i32.load8_u offset=48 (local.get $changes)))
        (then (loop $on (br $on))))
      unreachable"#;
    let claims = vec![claim("file:/etc/a", Effect::None, Effect::Restart)];
    let nosy = classifying("nosy", claims, body);
    bench.write("nosy.wasm", nosy.component());
    let with = |text: &str| {
        crate::configs::config(json!({"storage": {"files": [file(PATH, text, 0o600)]}}))
    };
    for (args, seen) in [(&[][..], "trap"), (&["--read-secrets", "nosy"], "out-of-fuel")] {
        let args = [&["-o", "json", "--shadow", "nosy.wasm"], args].concat();
        let ran = bench.plan(with("hunter2"), with("hunter3"), &args);
        assert!(!ran.out().contains("hunter"), "{}", ran.out());
        let answer = checked(&ran)["shadow"]["changes"][0]["answers"][0].clone();
        assert_eq!(answer["answer"], seen, "{answer:#}");
    }
}

#[test]
fn a_shadow_beside_every_kind_of_plan_leaves_it_alone() {
    let bench = Bench::new();
    restarting(&bench);
    for sample in samples() {
        let today = sample.plan(&bench, &["-o", "json"]);
        let both = sample.plan(&bench, &["-o", "json", "--shadow", "gentle.wasm"]);
        assert_eq!(today.code(), both.code());
        let plan = checked(&both);
        assert!(plan["shadow"]["summary"].is_string());
        assert_eq!(alone(plan), checked(&today));
    }
}
