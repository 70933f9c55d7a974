//! What a tired admin reads: causes first, one explanation for many changes,
//! and sentences.

use crate::configs::{config, core_user, files, rule};
use crate::guests::{Action, act, answering, claim, classifying};
use crate::support::Bench;
use serde_json::{Value, json};
use tread_model::effect::Effect;

/// So many files that no policy knows.
fn unknown(count: usize, text: &str) -> Value {
    let names: Vec<String> = (10..10 + count).map(|n| format!("/etc/app/{n}.conf")).collect();
    files(&names.iter().map(|name| (name.as_str(), text)).collect::<Vec<_>>())
}

#[test]
fn forty_changes_that_are_alike_are_explained_once_and_each_is_named() {
    let bench = Bench::new();
    let out = bench.plan(unknown(40, "1"), unknown(40, "2"), &[]).out();
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[0], "drain, reboot");
    let because = "because of file:/etc/app/10.conf, file:/etc/app/11.conf, file:/etc/app/12.conf and \
                   37 more (no policy answers)";
    assert_eq!(lines[1..3].join(" "), because, "{out}");
    for once in
        ["40 changes, each: reboot", "No policy claims this", "If less is enough", "fallback"]
    {
        assert_eq!(out.matches(once).count(), 1, "{once} in\n{out}");
    }
    assert!(out.replace("\n    ", " ").contains("a rule for each of them (--rules)"), "{out}");
    for n in 10..50 {
        assert!(
            lines.contains(&format!("~ file:/etc/app/{n}.conf: reboot").as_str()),
            "{n}: {out}"
        );
    }
    assert_eq!(out.matches("--diff always").count(), 1, "{out}");
}

#[test]
fn the_costly_changes_are_named_first_and_the_others_counted() {
    let bench = Bench::new();
    let side = |n: &str| {
        let crio = format!("[crio.runtime]\npids_limit = 102{n}\n");
        let mut spec = files(&[("/etc/crio/crio.conf.d/a", &crio), ("/etc/unknown", n)]);
        let key = format!("ssh-ed25519 AAAA{n}");
        spec["config"]["passwd"] = core_user(&[&key], None)["config"]["passwd"].clone();
        spec
    };
    let out = bench.plan(side("1"), side("2"), &[]).out();
    let because = "because of file:/etc/unknown (no policy answers); 2 changes cost less";
    assert_eq!(out.lines().nth(1), Some(because), "{out}");
    let at = |text: &str| out.find(text).unwrap_or_else(|| panic!("{text} in\n{out}"));
    assert!(at("~ file:/etc/unknown: reboot") < at("~ file:/etc/crio/crio.conf.d/a: restart"));
    assert!(at("~ file:/etc/crio/crio.conf.d/a: restart") < at("~ ssh-keys:core: no action"));
}

#[test]
fn too_disruptive_says_which_changes_and_who_could_make_them_cost_less() {
    let bench = Bench::new();
    let claims = vec![claim("file:/etc/broken", Effect::None, Effect::None)];
    bench.write("broken.wasm", classifying("broken", claims, "unreachable").component());
    let mine = json!({"match": ["file:/etc/mine"], "actions": [{"do": "reboot"}]});
    bench.write("rule.json", rule("mine", mine).to_string());
    let paths = ["/etc/NetworkManager/a", "/etc/broken", "/etc/mine", "/etc/unknown"];
    let with = |text| files(&paths.map(|path| (path, text)));
    let args = ["--max", "drain", "--policy", "broken.wasm", "--rules", "rule.json"];
    let human = bench.plan(with("1"), with("2"), &args);
    let ran = bench.plan(with("1"), with("2"), &[&args[..], &["-o", "json"]].concat());
    assert_eq!((human.code(), ran.code()), (3, 3));
    assert_eq!(human.err(), ran.err());
    assert_eq!(ran.err().lines().count(), 1, "{}", ran.err());
    for text in [human.out().replace("\n    ", " "), ran.err()] {
        for part in [
            "more disruptive than --max drain: this plan is a reboot",
            "file:/etc/NetworkManager/a (decided by network): only an admin can overrule network",
            "file:/etc/broken (the policy broken failed): mend broken",
            "file:/etc/mine (decided by mine): the admin who set mine can change that",
            "file:/etc/unknown (no policy answers): if less is enough, an admin can say so",
        ] {
            assert!(text.contains(part), "{part:?} in\n{text}");
        }
    }
}

#[test]
fn a_rule_that_refuses_is_named_with_why_and_what_to_do() {
    let bench = Bench::new();
    let frozen = json!({"match": ["file:/etc/a"], "refuse": true, "reason": "not before Monday"});
    bench.write("rule.json", rule("freeze", frozen).to_string());
    let ran = bench.plan(files(&[]), files(&[("/etc/a", "x")]), &["--rules", "rule.json"]);
    assert_eq!(ran.code(), 4);
    let out = ran.out().replace("\n    ", " ");
    assert!(!out.contains("running node"), "{out}");
    for part in [
        "refused; freeze (admin) refuses: file:/etc/a",
        "+ file:/etc/a: refused Not before Monday. refused by freeze 0.1.0 (admin)",
        "An admin set the rules of freeze: leave file:/etc/a as it was, or have them change the rule.",
    ] {
        assert!(out.contains(part), "{part:?} in\n{out}");
    }
}

#[test]
fn what_a_second_policy_adds_stands_in_a_line_of_its_own() {
    let bench = Bench::new();
    for (name, unit) in [("one", "one.service"), ("two", "two.service")] {
        let claims = vec![claim("file:/etc/a", Effect::None, Effect::Restart)];
        let guest = answering(name, claims, vec![act(0, &[Action::Restart(unit)])]);
        bench.write(&format!("{name}.wasm"), guest.component());
    }
    let args = ["--policy", "one.wasm", "--policy", "two.wasm"];
    let out = bench.plan(files(&[]), files(&[("/etc/a", "x")]), &args).out();
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines.contains(&"    Because."), "{out}");
    assert!(lines.contains(&"    - two adds restart two.service: because."), "{out}");
}

#[test]
fn long_paths_stay_whole_and_bytes_that_are_no_text_are_counted() {
    let bench = Bench::new();
    let path = format!("/etc/{}/end.conf", "very-long-directory/".repeat(12).trim_end_matches('/'));
    let bytes = |data: &str| {
        let source = format!("data:;base64,{data}");
        let file = json!({"path": path, "contents": {"source": source}});
        config(json!({"storage": {"files": [file]}}))
    };
    let out = bench.plan(bytes("/wD/"), bytes("/wD+AA=="), &["--diff", "always"]).out();
    assert!(out.contains(&format!("~ file:{path}: reboot\n")), "{out}");
    assert!(out.contains("not text: 3 bytes before, 4 after"), "{out}");
}
