//! Laws 3 and 4: who overrules whom.

use crate::configs::{config, file, files, rule};
use crate::guests::{Action, Answer, Says, act, answering, claim, classifying};
use crate::schema::checked;
use crate::support::{Bench, tree};
use serde_json::{Value, json};
use tread_model::effect::Effect;

const NETWORK: &str = "/etc/NetworkManager/conf.d/a.conf";

/// The plan for a file that the built-in policy `network` wants a reboot for.
fn network(bench: &Bench, args: &[&str]) -> Value {
    let args = [&["-o", "json"], args].concat();
    checked(&bench.plan(files(&[(NETWORK, "1")]), files(&[(NETWORK, "2")]), &args))
}

/// A template policy for that file.
fn template(bench: &Bench, name: &str, actions: &[Action]) {
    let claims = vec![claim("file:/etc/NetworkManager/**", Effect::None, Effect::Reboot)];
    let guest = answering(name, claims, vec![act(0, actions)]);
    bench.write(&format!("{name}.wasm"), guest.component());
}

/// Who answered, and whether it counted.
fn answers(change: &Value) -> Vec<(String, String, bool)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let answers = change["answers"].as_array().unwrap().iter();
    answers
        .map(|it| (text(&it["policy"]), text(&it["layer"]), it["counted"].as_bool().unwrap()))
        .collect()
}

fn spoke(policy: &str, layer: &str, counted: bool) -> (String, String, bool) {
    (policy.to_owned(), layer.to_owned(), counted)
}

#[test]
fn a_template_policy_cannot_make_it_gentler_than_a_built_in() {
    let bench = Bench::new();
    template(&bench, "gentle", &[]);
    let plan = network(&bench, &["--policy", "gentle.wasm"]);
    assert_eq!(plan["summary"], "drain, reboot");
    let change = &plan["changes"][0];
    assert_eq!(change["decidedBy"]["policy"], "network");
    let both = [spoke("gentle", "template", true), spoke("network", "builtin", true)];
    assert_eq!(answers(change), both);
    // Its author sees that it was asked, and what would let it stand.
    let args = ["--policy", "gentle.wasm"];
    let human = bench.plan(files(&[(NETWORK, "1")]), files(&[(NETWORK, "2")]), &args).out();
    let human = human.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(human.contains("not enough: gentle (template): no action"), "{human}");
    assert!(human.contains("(--may-relax gentle)"), "{human}");
}

#[test]
fn a_template_policy_can_make_it_harsher_than_a_built_in() {
    let bench = Bench::new();
    let claims = vec![claim("file:/etc/nmstate/**", Effect::None, Effect::Restart)];
    let actions = [Action::Restart("nmstate.service")];
    bench.write("harsh.wasm", answering("harsh", claims, vec![act(0, &actions)]).component());
    let path = "/etc/nmstate/openshift/a.yml";
    let args = ["-o", "json", "--policy", "harsh.wasm"];
    let plan = checked(&bench.plan(files(&[]), files(&[(path, "x")]), &args));
    assert_eq!(plan["summary"], "restart nmstate.service; no drain, no reboot");
    assert_eq!(plan["changes"][0]["decidedBy"]["policy"], "harsh");
}

#[test]
fn may_relax_lets_a_template_policy_stand_against_the_built_ins() {
    let bench = Bench::new();
    template(&bench, "gentle", &[Action::Restart("NetworkManager.service")]);
    let args = ["--policy", "gentle.wasm", "--may-relax", "gentle"];
    let plan = network(&bench, &args);
    assert_eq!(plan["summary"], "restart NetworkManager.service; no drain, no reboot");
    let change = &plan["changes"][0];
    let relaxed = [spoke("gentle", "template", true), spoke("network", "builtin", false)];
    assert_eq!(answers(change), relaxed);
    let names: Vec<_> = plan["policies"].as_array().unwrap().iter().collect();
    assert_eq!(names.len(), 2, "both were asked: {plan:#}");

    let human = bench.plan(files(&[(NETWORK, "1")]), files(&[(NETWORK, "2")]), &args).out();
    assert!(human.contains("overruled: network (builtin): "), "{human}");
}

#[test]
fn may_relax_counts_only_where_the_policy_acts() {
    let bench = Bench::new();
    let claims = || vec![claim("file:/etc/NetworkManager/**", Effect::None, Effect::Reboot)];
    let silent = answering("gentle", claims(), vec![]);
    let abstaining = Says { change: 0, answer: Answer::Abstain, reason: b"not mine" };
    let failing = classifying("gentle", claims(), "unreachable");
    for (guest, outcome, decider) in [
        (silent, "decided", "network"),
        (answering("gentle", claims(), vec![abstaining]), "decided", "network"),
        (failing, "failed", "gentle"),
    ] {
        bench.write("gentle.wasm", guest.component());
        let plan = network(&bench, &["--policy", "gentle.wasm", "--may-relax", "gentle"]);
        assert_eq!(plan["summary"], "drain, reboot");
        assert_eq!(plan["changes"][0]["outcome"], outcome);
        assert_eq!(plan["changes"][0]["decidedBy"]["policy"], decider);
    }
}

#[test]
fn may_relax_does_not_drop_what_another_template_says() {
    let bench = Bench::new();
    template(&bench, "gentle", &[]);
    template(&bench, "other", &[Action::Drain, Action::Restart("other.service")]);
    let args = ["--policy", "gentle.wasm", "--policy", "other.wasm", "--may-relax", "gentle"];
    let plan = network(&bench, &args);
    assert_eq!(plan["summary"], "drain, restart other.service; no reboot");
}

#[test]
fn what_takes_effect_at_boot_costs_a_reboot_even_if_a_template_may_relax_it() {
    let bench = Bench::new();
    let kinds = ["kernel-arguments", "kernel-type", "os-image", "extensions"];
    let claims = kinds.map(|kind| claim(kind, Effect::None, Effect::None)).to_vec();
    let says = (0..4).map(|index| act(index, &[])).collect();
    bench.write("gentle.wasm", answering("gentle", claims, says).component());
    let new = json!({
        "kernelArguments": ["nosmt"],
        "kernelType": "realtime",
        "osImageURL": "quay.io/os@sha256:0000000000000000000000000000000000000000000000000000000000000000",
        "extensions": ["usbguard"],
    });
    let human = bench.plan(json!({}), new.clone(), &["--policy", "gentle.wasm"]).out();
    assert_eq!(human.matches("(--rules).").count(), 4, "{human}");
    assert!(!human.contains("--may-relax"), "{human}");
    let args = ["-o", "json", "--policy", "gentle.wasm", "--may-relax", "gentle"];
    let plan = checked(&bench.plan(json!({}), new.clone(), &args));
    assert_eq!(plan["summary"], "drain, reboot");
    let changes = plan["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 4);
    for change in changes {
        assert_eq!(change["actions"], json!([{"do": "reboot"}]), "{change:#}");
        assert!(change["reason"].as_str().unwrap().contains("at boot"), "{change:#}");
    }
    // The admin layer can.
    bench.write("rule.json", rule("later", json!({"match": kinds, "actions": []})).to_string());
    let plan = checked(&bench.plan(json!({}), new, &["-o", "json", "--rules", "rule.json"]));
    assert_eq!(plan["summary"], "no action; no drain, no reboot");
}

#[test]
fn a_policy_with_the_name_of_a_built_in_is_a_usage_error_that_says_what_to_do() {
    let bench = Bench::new();
    let own = tree().join("policies/prebuilt/network.wasm");
    template(&bench, "registries", &[]);
    for (args, name) in [
        (["--policy", own.to_str().unwrap(), "--may-relax", "network"], "network"),
        (["--policy", "registries.wasm", "--set", "registries.drain=never"], "registries"),
    ] {
        let ran = bench.plan(files(&[]), files(&[]), &args);
        assert_eq!(ran.code(), 2);
        let words = format!(
            "{name}.wasm: a policy is named {name}, which is the name of a built-in one: rename it"
        );
        assert!(ran.err().contains(&words), "{}", ran.err());
    }
}

#[test]
fn two_template_policies_of_one_name_are_a_usage_error() {
    let bench = Bench::new();
    template(&bench, "gentle", &[]);
    let args = ["--policy", "gentle.wasm", "--policy", "gentle.wasm"];
    let ran = bench.plan(files(&[]), files(&[]), &args);
    assert_eq!(ran.code(), 2);
    let words = "two policies are named gentle: one in gentle.wasm (template layer) and one in \
                 gentle.wasm (template layer)";
    assert!(ran.err().contains(words), "{}", ran.err());
}

#[test]
fn an_admins_act_overrules_a_templates_refusal_but_not_the_hosts() {
    let bench = Bench::new();
    let refusing = Says { change: 0, answer: Answer::Refuse, reason: b"Never change this." };
    let claims = vec![claim("file:/etc/a", Effect::Refuse, Effect::Refuse)];
    bench.write("strict.wasm", answering("strict", claims, vec![refusing]).component());
    let both = json!({"match": ["file:/etc/a", "storage:disks", "fips"], "actions": []});
    let new = || files(&[("/etc/a", "x")]);
    let args = ["-o", "json", "--policy", "strict.wasm"];
    let ran = bench.plan(files(&[]), new(), &args);
    assert_eq!(ran.code(), 4);
    let plan = checked(&ran);
    assert_eq!(plan["changes"][0]["outcome"], "refused");
    assert_eq!(plan["changes"][0]["decidedBy"]["policy"], "strict");
    assert_eq!(plan["changes"][0]["reason"], "Never change this.");

    bench.write(
        "rule.json",
        rule("mine", json!({"match": ["file:/etc/a"], "actions": []})).to_string(),
    );
    let args = [&args[..], &["--rules", "rule.json"]].concat();
    let ran = bench.plan(files(&[]), new(), &args);
    assert_eq!(ran.code(), 0);
    assert_eq!(checked(&ran)["changes"][0]["decidedBy"]["policy"], "mine");

    bench.write("rule.json", rule("mine", both).to_string());
    let ran = bench.plan(json!({"fips": false}), json!({"fips": true}), &args);
    assert!([1, 4].contains(&ran.code()), "{}", ran.out());
}

#[test]
fn a_secret_reaches_a_template_policy_as_a_digest_unless_an_admin_lets_it_read() {
    let bench = Bench::new();
    // It tells by how it fails which variant of `content` stands on the new side:
    // it does not end where that is bytes, and traps where it is a digest.
    let body = r#"(if (i32.eq (i32.const 1) (i32.load8_u offset=48 (local.get $changes)))
        (then (loop $on (br $on))))
      unreachable"#;
    let claims = vec![claim("file:/etc/a", Effect::None, Effect::Restart)];
    let nosy = classifying("nosy", claims, body);
    bench.write("nosy.wasm", nosy.component());
    let with =
        |text: &str, mode| config(json!({"storage": {"files": [file("/etc/a", text, mode)]}}));
    for (mode, args, seen) in [
        (0o644, &[][..], "(out-of-fuel: "),
        (0o600, &[], "(trap: "),
        (0o640, &[], "(trap: "),
        (0o600, &["--read-secrets", "nosy"], "(out-of-fuel: "),
    ] {
        let args = [&["-o", "json", "--policy", "nosy.wasm"], args].concat();
        let plan = checked(&bench.plan(with("one", mode), with("two", mode), &args));
        let reason = plan["changes"][0]["reason"].as_str().unwrap();
        assert!(reason.contains(seen), "{mode:o} {args:?}: {reason}");
    }
}

#[test]
fn what_an_admins_rule_stands_in_place_of_is_shown() {
    let bench = Bench::new();
    let refusing = Says { change: 0, answer: Answer::Refuse, reason: b"never change this" };
    let claims = vec![claim("file:/etc/strict", Effect::Refuse, Effect::Refuse)];
    bench.write("strict.wasm", answering("strict", claims, vec![refusing]).component());
    let paths = [NETWORK, "/etc/strict", "/etc/unknown", "/etc/nmstate/openshift/a.yml"];
    let patterns = paths.map(|path| format!("file:{path}"));
    bench.write("rule.json", rule("mine", json!({"match": patterns, "actions": []})).to_string());
    let with = |text| files(&paths.map(|path| (path, text)));
    let args = ["--policy", "strict.wasm", "--rules", "rule.json"];

    let plan = checked(&bench.plan(with("1"), with("2"), &[&args[..], &["-o", "json"]].concat()));
    assert_eq!(plan["policies"].as_array().unwrap().len(), 1, "nobody else was asked for the plan");
    let instead = |path: &str| {
        let id = format!("file:{path}");
        let mut changes = plan["changes"].as_array().unwrap().iter();
        changes.find(|change| change["id"] == *id).unwrap()["insteadOf"].clone()
    };
    let network = instead(NETWORK);
    assert_eq!(network["decidedBy"]["policy"], "network");
    assert_eq!(network["actions"], json!([{"do": "reboot"}]));
    assert_eq!(instead("/etc/strict")["outcome"], "refused");
    assert_eq!(instead("/etc/unknown")["outcome"], "fallback");
    assert_eq!(instead("/etc/nmstate/openshift/a.yml"), Value::Null, "it says the same");

    let human = bench.plan(with("1"), with("2"), &args).out().replace("\n    ", " ");
    for part in [
        "instead of reboot by network 0.1.0 (builtin): Connections that are up",
        "instead of a refusal by strict 1.2.3 (template): Never change this.",
        "instead of reboot, because no policy answers: fallback",
    ] {
        assert!(human.contains(part), "{part:?} in\n{human}");
    }
}

#[test]
fn a_plan_without_an_admins_answer_stands_in_place_of_nothing() {
    let bench = Bench::new();
    let open = rule("mine", json!({"match": ["file:/etc/other"], "actions": []}));
    bench.write("rule.json", open.to_string());
    let plan = network(&bench, &["--rules", "rule.json"]);
    assert_eq!(plan["changes"][0].get("insteadOf"), None);
}

#[test]
fn trust_that_would_have_no_effect_is_a_usage_error() {
    let bench = Bench::new();
    template(&bench, "gentle", &[]);
    let mine = |layer: &str| {
        let mut mine = rule("mine", json!({"match": ["file:/etc/a"], "actions": []}));
        mine["spec"]["layer"] = layer.into();
        mine.to_string()
    };
    for (layer, args, part) in [
        ("admin", &["--may-relax", "mine"][..], "rules of the admin layer decide over all others"),
        ("template", &["--may-relax", "mine"], "write `mayRelax: true` in their spec"),
        ("template", &["--read-secrets", "mine"], "rules, which read no contents"),
        ("admin", &["--read-secrets", "certificates"], "it is built in"),
        ("admin", &["--may-relax", "gentel"], "did you mean \"gentle\"?"),
    ] {
        bench.write("rule.json", mine(layer));
        let args = [&["--rules", "rule.json", "--policy", "gentle.wasm"], args].concat();
        let ran = bench.plan(files(&[]), files(&[]), &args);
        assert_eq!(ran.code(), 2, "{args:?}: {}", ran.out());
        assert!(ran.err().contains(part), "{part} in {}", ran.err());
    }
    let mut relaxing = serde_json::from_str::<Value>(&mine("admin")).unwrap();
    relaxing["spec"]["mayRelax"] = true.into();
    bench.write("rule.json", relaxing.to_string());
    let plan = network(&bench, &["--rules", "rule.json"]);
    assert!(plan["warnings"][0].as_str().unwrap().contains("mayRelax of mine has no effect"));
}
