//! Law 2: a policy that fails costs a reboot for what it claims, and nothing
//! else.

use crate::configs::{core_user, files, rule};
use crate::guests::{Action, Guest, act, answering, claim, classifying, disguised};
use crate::schema::checked;
use crate::support::Bench;
use serde_json::{Value, json};
use tread_model::description::Claim;
use tread_model::effect::Effect;

fn claims() -> Vec<Claim> {
    vec![claim("file:/etc/broken/*", Effect::None, Effect::Restart)]
}

/// A policy whose `classify` is this text; `$say` logs a line.
fn doing(body: &str) -> Guest {
    let fields = r#"(data (i32.const 120000) "the template is gone")
        (func $say (call $log (i32.const 120000) (i32.const 20)))
        (func $deeper (result i32) (i32.add (i32.const 1) (call $deeper)))"#;
    Guest { fields: fields.to_owned(), ..classifying("broken", claims(), body) }
}

fn saying(actions: &[Action]) -> Guest {
    answering("broken", claims(), vec![act(0, actions)])
}

/// Every way to fail that a component can bring about, with its stable name and
/// words that stand in the reason.
fn failures() -> Vec<(Vec<u8>, &'static str, &'static str)> {
    let other = answering("broken", vec![claim("file:/other", Effect::None, Effect::None)], vec![]);
    let importing = r#"(component (import "wasi:clocks/monotonic-clock@0.2.0"
        (instance (export "now" (func (result u64))))))"#;
    let twice = vec![act(0, &[]), act(0, &[])];
    vec![
        (doing("(call $say) unreachable").component(), "trap", "the template is gone"),
        (doing("unreachable").component(), "trap", "unreachable"),
        (doing("(loop $l (br $l)) (i32.const 0)").component(), "out-of-fuel", "loop"),
        (
            doing("(drop (memory.grow (i32.const 1000))) (i32.const 0)").component(),
            "memory",
            "bytes",
        ),
        (doing("(call $deeper)").component(), "stack", "deep"),
        (doing("(i32.const -4)").component(), "bad-output", ""),
        (answering("broken", claims(), twice).component(), "bad-output", "two"),
        (answering("broken", claims(), vec![act(7, &[])]).component(), "unknown-change", "7"),
        (saying(&[Action::Restart("no unit")]).component(), "invalid-unit", "no unit"),
        (saying(&[Action::Drain]).component(), "beyond-claim", "drain"),
        (saying(&[Action::RebootUndrained]).component(), "beyond-claim", "drain"),
        (Guest { version: "2.0.0", ..saying(&[]) }.component(), "wrong-world", "2.0.0"),
        (disguised("broken", claims(), "(component)"), "wrong-world", "tread:policy"),
        (disguised("broken", claims(), importing), "forbidden-import", "wasi:clocks"),
        (Guest { section: saying(&[]).section, ..other }.component(), "bad-description", ""),
    ]
}

fn old() -> Value {
    files(&[("/etc/broken/a", "1"), ("/etc/broken/b", "1"), ("/etc/crio/crio.conf.d/x", "")])
}

fn new() -> Value {
    let crio = "[crio.runtime]\nlog_level = \"debug\"\n";
    let mut spec =
        files(&[("/etc/broken/a", "2"), ("/etc/broken/b", "2"), ("/etc/crio/crio.conf.d/x", crio)]);
    spec["config"]["passwd"] = core_user(&["ssh-ed25519 AAAA"], None)["config"]["passwd"].clone();
    spec
}

#[test]
fn every_failure_costs_a_reboot_for_what_the_policy_claims_and_for_nothing_else() {
    let bench = Bench::new();
    let alone = checked(&bench.plan(old(), new(), &["-o", "json"]));
    for (component, name, words) in failures() {
        bench.write("broken.wasm", component);
        let args = ["-o", "json", "--policy", "broken.wasm"];
        let ran = bench.plan(old(), new(), &args);
        assert_eq!(ran.code(), 0, "{name}: {}", ran.err());
        assert_eq!(ran.err(), "", "{name}");
        let plan = checked(&ran);
        assert_eq!(plan["summary"], "drain, reboot", "{name}");
        assert_eq!(plan["reproducible"], name != "stack", "{name}");
        let before = alone["changes"].as_array().unwrap();
        for (change, before) in plan["changes"].as_array().unwrap().iter().zip(before) {
            assert_eq!(change["id"], before["id"]);
            if !change["id"].as_str().unwrap().starts_with("file:/etc/broken/") {
                assert_eq!(change, before, "{name} has an effect on another policy's change");
                continue;
            }
            assert_eq!(change["outcome"], "failed", "{name}");
            assert_eq!(change["actions"], json!([{"do": "reboot"}]), "{name}");
            assert_eq!(change["decidedBy"]["policy"], "broken", "{name}");
            assert_eq!(change["decidedBy"]["layer"], "template", "{name}");
            let reason = change["reason"].as_str().unwrap();
            assert!(reason.contains(&format!("failed ({name}: ")), "{name}: {reason}");
            assert!(reason.contains(words), "{name}: {words:?} in {reason}");
        }
        let again = checked(&bench.plan(old(), new(), &args));
        assert_eq!(plan["digest"], again["digest"], "{name}");
    }
}

#[test]
fn a_person_reads_who_failed_how_and_what_to_do() {
    let bench = Bench::new();
    bench.write("broken.wasm", doing("(call $say) unreachable").component());
    let out = bench.plan(old(), new(), &["--policy", "broken.wasm"]).out().replace("\n    ", " ");
    for part in [
        "~ file:/etc/broken/a: reboot",
        "The policy broken failed (trap: the template is gone), so this costs a reboot.",
        "failed: broken 1.2.3 (template)",
        "Give this message to the policy's author.",
    ] {
        assert!(out.contains(part), "{part:?} in\n{out}");
    }
}

#[test]
fn a_failure_that_another_run_may_not_have_is_marked() {
    let bench = Bench::new();
    bench.write("broken.wasm", doing("(call $deeper)").component());
    let out = bench.plan(old(), new(), &["--policy", "broken.wasm"]).out();
    assert!(out.contains("another run may differ"), "{out}");
}

#[test]
fn a_failure_does_not_touch_another_template_policy() {
    let bench = Bench::new();
    bench.write("broken.wasm", doing("unreachable").component());
    let claims = vec![claim("file:/etc/fine", Effect::None, Effect::Restart)];
    let fine = answering("fine", claims, vec![act(0, &[Action::Restart("fine.service")])]);
    bench.write("fine.wasm", fine.component());
    let new = files(&[("/etc/broken/a", "x"), ("/etc/fine", "x")]);
    let args = ["-o", "json", "--policy", "broken.wasm", "--policy", "fine.wasm"];
    let plan = checked(&bench.plan(files(&[]), new, &args));
    let [broken, fine] = plan["changes"].as_array().unwrap().as_slice() else { panic!("{plan:#}") };
    assert_eq!(broken["outcome"], "failed");
    assert_eq!(fine["outcome"], "decided");
    assert_eq!(fine["actions"], json!([{"do": "restart", "unit": "fine.service"}]));
}

#[test]
fn a_policy_that_nothing_concerns_cannot_harm() {
    let bench = Bench::new();
    let elsewhere = files(&[("/etc/NetworkManager/a", "x")]);
    let without = bench.plan(files(&[]), elsewhere.clone(), &["-o", "json"]);
    for (component, name, _) in failures() {
        bench.write("broken.wasm", component);
        let args = ["-o", "json", "--policy", "broken.wasm"];
        let with = bench.plan(files(&[]), elsewhere.clone(), &args);
        assert_eq!(with.out(), without.out(), "{name}");
    }
}

#[test]
fn an_admins_rule_decides_in_place_of_a_policy_that_fails() {
    let bench = Bench::new();
    bench.write("broken.wasm", doing("unreachable").component());
    let mine = rule("mine", json!({"match": ["file:/etc/broken/**"], "actions": []}));
    bench.write("rule.json", mine.to_string());
    let args = ["-o", "json", "--policy", "broken.wasm", "--rules", "rule.json"];
    let plan = checked(&bench.plan(files(&[]), files(&[("/etc/broken/a", "x")]), &args));
    assert_eq!(plan["summary"], "no action; no drain, no reboot");
    assert_eq!(plan["changes"][0]["decidedBy"]["policy"], "mine");
}

#[test]
fn a_setting_that_a_policy_was_packed_with_and_does_not_take_is_its_failure() {
    let bench = Bench::new();
    let module = base64_simd::STANDARD.encode_to_string(saying(&[]).component());
    let packed = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "fine"},
        "data": {"settings": "speed: 9\n"}, "binaryData": {"policy.wasm": module},
    });
    bench.write("fine.json", packed.to_string());
    let args = ["-o", "json", "--policy", "fine.json"];
    let plan = checked(&bench.plan(files(&[]), files(&[("/etc/broken/a", "x")]), &args));
    let reason = plan["changes"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("invalid-settings") && reason.contains("speed"), "{reason}");
    assert_eq!(plan["changes"][0]["advice"], "Correct the policy's settings.");
}
