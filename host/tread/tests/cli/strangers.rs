//! What strangers wrote, and what happens to files meanwhile, does no harm: to
//! the terminal, to the exit code, to what is written.

use crate::configs::{files, machine_config};
use crate::guests::{Action, Guest, Says, act, answering, claim};
use crate::support::{Bench, Ran};
use serde_json::{Value, json};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Stdio;
use tread_model::description::SettingsDescription;
use tread_model::effect::Effect;
use tread_model::text::is_unfit;

/// It drives the terminal, and passes for lines of tread's own.
const ODD: &str = "\u{1b}[31m \u{202e} \u{9b}2J\nwarning: forged\nerror: forged";

/// In YAML, which takes none of it as it is.
fn quoted(text: &str) -> String {
    Value::from(text).to_string().replace('\u{9b}', "\\u009b")
}

fn restarting(name: &str) -> Guest {
    let claims = vec![claim("file:/etc/a", Effect::None, Effect::Restart)];
    answering(name, claims, vec![act(0, &[Action::Restart("a.service")])])
}

/// The same, with settings that say this of themselves.
fn with_settings(name: &str, text: &str) -> Guest {
    let mut guest = restarting(name);
    guest.exported.settings = Some(SettingsDescription {
        defaults: json!({ text: text }).to_string(),
        schema: json!({"properties": {text: {"description": text, "enum": [text]}}}).to_string(),
    });
    described(guest)
}

/// With a section that says what the function says.
fn described(guest: Guest) -> Guest {
    Guest { section: Some(serde_json::to_vec(&guest.exported).unwrap()), ..guest }
}

/// A case of a file that changes.
fn case(title: &str, expect: &str) -> String {
    format!(
        "---\ntitle: {}\nold: {{files: {{/etc/a: \"x\"}}}}\nnew: {{files: {{/etc/a: \"y\"}}}}\n\
         expect:\n  verdicts:\n    file:/etc/a: {expect}\n",
        quoted(title)
    )
}

#[track_caller]
fn assert_fit(ran: &Ran) {
    for text in [ran.out(), ran.err()] {
        assert!(text.chars().all(|c| c == '\n' || !is_unfit(c)), "{text:?}");
        let forged = |line: &str| {
            line.starts_with("warning: forged")
                || line.starts_with("error: forged")
                || line == "  state   Loaded"
        };
        assert!(!text.lines().any(forged), "{text}");
    }
}

/// A ConfigMap with a module of which nothing but the beginning is there.
fn config_map(name: &str, key: &str, annotations: Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": name, "annotations": annotations},
        "binaryData": {key: "AGFzbQ=="},
    })
}

fn list(items: &[Value]) -> String {
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

/// Files in which names and kinds are forged.
fn write_forged(bench: &Bench) {
    let plain = json!({});
    let two = [config_map(ODD, "a", plain.clone()), config_map(ODD, ODD, plain.clone())];
    bench.write("two.json", list(&two));
    let digest = config_map(ODD, "a", json!({"tread.dev/policy-digest": ODD}));
    bench.write("digest.json", digest.to_string());
    let key = config_map(ODD, ODD, json!({"tread.dev/policy-key": "b"}));
    bench.write("key.json", key.to_string());
    let mut base64 = config_map("a", ODD, plain.clone());
    base64["binaryData"][ODD] = "*".into();
    bench.write("base64.json", base64.to_string());
    bench.write("kind.json", json!({"apiVersion": "v1", "kind": ODD}).to_string());
    let odd_field = json!({"apiVersion": "v1", "kind": "List", "items": [], ODD: 1, "b": 2});
    bench.write("field.json", odd_field.to_string());
    bench.write("title.yaml", format!("title: {}\n{}: 1\n", quoted(ODD), quoted(ODD)));
    let worker = machine_config("worker", files(&[])).to_string();
    bench.write("new.yaml", &worker);
    bench.write("dir/a.yaml", &worker);
    bench.write("dir/.a\nwarning: forged.yaml", &worker);
    bench.write("none/.a\nwarning: forged.yaml", &worker);
    bench.write("broken/a\nerror: forged.yaml", "[");
    let imports = "(module (import \"a\\0awarning: forged\" \"b\\0aerror: forged\" (func)))";
    bench.write("imports.wasm", wat::parse_str(imports).unwrap());
}

#[test]
fn nothing_that_a_policy_a_case_or_a_manifest_says_drives_the_terminal() {
    let bench = Bench::new();
    let forged = format!("{ODD}\n  state   Loaded");
    bench.write("odd.wasm", with_settings("odd", &forged).component());
    let mut broken = restarting("broken");
    broken.exported.name = ODD.to_owned();
    broken.exported.version = ODD.to_owned();
    broken.exported.summary = forged.clone();
    broken.exported.claims[0].changes = format!("file:/etc/{ODD}");
    bench.write("broken.wasm", described(broken).component());
    bench.write("cases/a.yaml", case(&forged, &format!("{{reason: {}}}", quoted(ODD))));
    let packed = bench.tread(&["policy", "pack", "odd.wasm", "-n", "a", "--name", "b"]);
    let odd = packed.out().replace("  policy.wasm:", &format!("  {}:", quoted(ODD)));
    bench.write("odd.yaml", odd);
    write_forged(&bench);

    for (args, code) in [
        (&["policy", "inspect", "odd.wasm"][..], 0),
        (&["policy", "inspect", "broken.wasm"], 1),
        (&["policies", "--policy", "odd.wasm"], 0),
        (&["policies", "--policy", "broken.wasm"], 1),
        (&["policy", "test", "odd.wasm"], 1),
        (&["policy", "bench", "odd.wasm", "--runs", "1", "--cases", "cases"], 0),
        (&["policy", "unpack", "odd.yaml", "-o", "out.wasm"], 0),
        (&["policy", "unpack", "two.json"], 1),
        (&["policy", "unpack", "two.json", "--key", "none"], 1),
        (&["policy", "unpack", "digest.json"], 1),
        (&["policy", "unpack", "base64.json"], 1),
        (&["policy", "unpack", "kind.json"], 1),
        (&["policy", "unpack", "field.json"], 1),
        (&["policy", "inspect", "two.json"], 1),
        (&["policy", "inspect", "digest.json"], 1),
        (&["policy", "inspect", "key.json"], 1),
        (&["policy", "bench", "kind.json"], 1),
        (&["policy", "bench", "odd.wasm", "--cases", "title.yaml"], 1),
        (&["policy", "build", "--from", "imports.wasm"], 1),
        (&["policy", "build", "--from", "kind.json"], 1),
        (&["policies", "--policy", "two.json"], 1),
        (&["policies", "--policy", "digest.json"], 1),
        (&["policies", "--policy", "key.json"], 1),
        (&["plan", "dir", "new.yaml"], 0),
        (&["plan", "none", "new.yaml"], 1),
        (&["plan", "broken", "new.yaml"], 1),
        (&["plan", "field.json", "new.yaml"], 1),
        (&["policy", "rules", "broken"], 1),
    ] {
        let ran = bench.tread(args);
        assert_eq!(ran.code(), code, "{args:?}: {}{}", ran.out(), ran.err());
        assert_fit(&ran);
    }
}

#[test]
fn what_hides_or_turns_text_is_no_summary_no_claim_and_no_rule() {
    let bench = Bench::new();
    for odd in ["\u{202e}", "\u{200b}", "\u{2066}"] {
        let mut summary = restarting("odd");
        summary.exported.summary = format!("good {odd}");
        let mut claims = restarting("odd");
        claims.exported.claims.push(claim(
            &format!("file:/etc/{odd}x"),
            Effect::None,
            Effect::None,
        ));
        for guest in [summary, claims] {
            bench.write("odd.wasm", described(guest).component());
            let ran = bench.tread(&["policy", "inspect", "odd.wasm", "-o", "json"]);
            assert_eq!(ran.json()["problems"][0]["failure"], "bad-description", "{odd:?}");
        }
        let rule = json!({"match": [format!("file:/etc/{odd}x")], "actions": [], "reason": odd});
        bench.write("rules.yaml", crate::configs::rule("mine", rule).to_string());
        let ran = bench.tread(&["policy", "rules", "rules.yaml"]);
        assert_eq!(ran.code(), 1);
        for field in ["spec.rules[0].match[0]", "spec.rules[0].reason"] {
            assert!(ran.err().contains(field), "{}", ran.err());
        }
    }
}

/// Runs to its end while nobody reads what it prints.
fn code_unread(bench: &Bench, args: &[&str]) -> i32 {
    let mut command = bench.command(args);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    child.wait().unwrap().code().unwrap_or(-1)
}

#[test]
fn what_failed_has_failed_also_if_nobody_reads_it() {
    let bench = Bench::new();
    bench.write("good.wasm", restarting("good").component());
    // More than is kept back before it is written.
    let cases = |expect| (0..200).map(|n| case(&format!("Case {n}"), expect)).collect::<String>();
    bench.write("bad.yaml", cases("{answer: abstain}"));
    bench.write("good.yaml", cases("{answer: act}"));
    for output in ["human", "json", "junit"] {
        let test = |cases| ["policy", "test", "good.wasm", "-o", output, "--cases", cases];
        assert_eq!(code_unread(&bench, &test("bad.yaml")), 1, "{output}");
        assert_eq!(code_unread(&bench, &test("good.yaml")), 0, "{output}");
    }
    let long = Guest { section: None, ..with_settings("long", &"x".repeat(20_000)) };
    bench.write("long.wasm", long.component());
    assert_eq!(code_unread(&bench, &["policy", "inspect", "long.wasm"]), 1);
}

#[test]
fn a_file_without_an_end_is_an_error_wherever_it_is_named() {
    let bench = Bench::new();
    bench.write("good.wasm", restarting("good").component());
    bench.write("a.yaml", "title: x\nold: /dev/zero\nnew: {}\nexpect: {plan: nothing}\n");
    let ran = bench.tread(&["policy", "test", "good.wasm", "--cases", "a.yaml"]);
    assert_eq!(ran.code(), 1);
    assert!(ran.out().contains("old: /dev/zero is a device, and no file"), "{}", ran.out());
    for args in [
        &["policy", "test", "good.wasm", "--cases", "/dev/zero"][..],
        &["policy", "bench", "good.wasm", "--cases", "/dev/zero"],
        &["policy", "inspect", "/dev/zero"],
        &["policy", "unpack", "/dev/zero"],
    ] {
        let ran = bench.tread(args);
        assert_eq!(ran.code(), 1, "{args:?}");
        let printed = format!("{}{}", ran.out(), ran.err());
        assert!(printed.contains("/dev/zero is larger than 256 MiB"), "{args:?}: {printed}");
    }
}

#[test]
fn an_update_keeps_links_and_modes_and_several_at_once_leave_whole_files() {
    let bench = Bench::new();
    bench.write("good.wasm", restarting("good").component());
    let wrong: String = (0..40).map(|n| case(&format!("Case {n}"), "{answer: abstain}")).collect();
    let path = bench.write("kept/a.yaml", &wrong);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::fs::create_dir(bench.dir.path().join("cases")).unwrap();
    symlink("../kept/a.yaml", bench.dir.path().join("cases/a.yaml")).unwrap();
    bench.write("cases/b.yaml", &wrong);
    bench.write("cases/b.yml", &wrong);

    let update = ["policy", "test", "good.wasm", "--update"];
    let mut running = Vec::new();
    for _ in 0..4 {
        let mut command = bench.command(&update);
        running.push(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    }
    for child in running {
        let ran = Ran(child.wait_with_output().unwrap());
        let late = ran.out().contains("it was changed while its cases ran");
        assert!(ran.code() == 0 || late, "{}{}", ran.out(), ran.err());
    }
    let ran = bench.tread(&["policy", "test", "good.wasm"]);
    assert_eq!(ran.code(), 0, "{}", ran.out());
    assert!(ran.out().ends_with("127 passed, 0 failed\n"), "{}", ran.out());
    assert!(bench.dir.path().join("cases/a.yaml").is_symlink());
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    assert_eq!(std::fs::read_dir(bench.dir.path().join("cases")).unwrap().count(), 3);
}

#[test]
fn a_policy_in_the_shadow_with_the_name_of_a_built_in_one_changes_no_exit_code() {
    let bench = Bench::new();
    bench.write("taken.wasm", restarting("registries").component());
    let today = bench.plan(files(&[]), files(&[("/etc/a", "x")]), &["-o", "json"]).json();
    let args = ["-o", "json", "--shadow", "taken.wasm"];
    let ran = bench.plan(files(&[]), files(&[("/etc/a", "x")]), &args);
    assert_eq!(ran.code(), 0, "{}", ran.err());
    let mut plan = ran.json();
    let shadow = plan.as_object_mut().unwrap().remove("shadow").unwrap();
    assert_eq!(plan, today);
    assert_eq!(shadow["policies"][0]["failure"], "bad-description");
    let message = shadow["policies"][0]["message"].as_str().unwrap();
    assert!(message.contains("registries") && message.contains("built-in"), "{message}");
}

#[test]
fn timings_tell_of_the_calls_for_the_shadow_too() {
    let bench = Bench::new();
    bench.write("gentle.wasm", restarting("gentle").component());
    let new = || files(&[("/etc/a", "x")]);
    let args = ["--timings", "--shadow", "gentle.wasm"];
    let out = bench.plan(files(&[]), new(), &args).out();
    assert!(out.contains("\nin the shadow, gentle: 1 change, loading "), "{out}");
    let json = bench.plan(files(&[]), new(), &[&args[..], &["-o", "json"]].concat()).json();
    assert_eq!(json["timings"]["calls"], json!([]));
    assert_eq!(json["timings"]["shadowCalls"][0]["policy"], "gentle");
    let without = bench.plan(files(&[]), new(), &["--timings", "-o", "json"]).json();
    assert_eq!(without["timings"].get("shadowCalls"), None);
}

#[test]
fn a_verdict_on_something_not_offered_is_told_with_the_nearest_change_and_claim() {
    let bench = Bench::new();
    let claims = vec![
        claim("file:/etc/b", Effect::None, Effect::None),
        claim("file:/etc/a*", Effect::None, Effect::None),
    ];
    let verdicts = vec![Says { change: 7, ..act(0, &[]) }];
    bench.write("lost.wasm", answering("lost", claims, verdicts).component());
    let args = ["-o", "json", "--policy", "lost.wasm"];
    let plan = bench.plan(files(&[]), files(&[("/etc/a1", "x")]), &args).json();
    let reason = plan["changes"][0]["reason"].as_str().unwrap();
    let words = "the nearest is 0, file:/etc/a1, which its claim on file:/etc/a* matches";
    assert!(reason.contains("unknown-change") && reason.contains(words), "{reason}");
}
