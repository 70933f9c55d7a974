//! What an author is told before anybody else sees the policy.

use crate::configs::files;
use crate::guests::{Action, Guest, Says, act, answering, claim, classifying};
use crate::support::{Bench, Ran};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tread_model::description::{Declarations, SettingsDescription};
use tread_model::effect::Effect;

/// WebAssembly text that answers for the first change with `act`, and gives what
/// stands at this place of the change as its reason: 0 its id, 52 the new contents
/// of its file. `count` is how many verdicts it gives.
fn echo(place: u32, count: &str) -> String {
    format!(
        "(local.set $n (call $realloc (i32.const 0) (i32.const 0) (i32.const 4) (i32.const 56)))
         (i32.store (local.get $n) (i32.add (local.get $n) (i32.const 8)))
         (i32.store offset=4 (local.get $n) {count})
         (i32.store offset=12 (local.get $n) (i32.const 1))
         (i32.store offset=24 (local.get $n) (i32.load offset={place} (local.get $changes)))
         (i32.store offset=28 (local.get $n) (i32.load offset={} (local.get $changes)))
         (local.get $n)",
        place + 4
    )
}

const ONE: &str = "(i32.const 1)";
const SEVERAL: &str = "(i32.gt_u (local.get $changes-len) (i32.const 1))";

/// A policy for two files, which does this.
fn guest(name: &str, body: &str) -> Guest {
    let claims = ["file:/etc/a", "file:/etc/b"];
    let claims = claims.map(|it| claim(it, Effect::None, Effect::Restart));
    classifying(name, claims.to_vec(), body)
}

fn restarting(name: &str, claimed: &str) -> Guest {
    let claims = vec![claim(claimed, Effect::None, Effect::Restart)];
    answering(name, claims, vec![act(0, &[Action::Restart("a.service")])])
}

/// With settings of this schema.
fn with_settings(mut guest: Guest, defaults: Value, schema: Value) -> Guest {
    guest.exported.settings =
        Some(SettingsDescription { defaults: defaults.to_string(), schema: schema.to_string() });
    Guest { section: Some(serde_json::to_vec(&guest.exported).unwrap()), ..guest }
}

/// A case of the file /etc/a that changes.
fn case(expect: &str) -> String {
    format!(
        "title: It changes\nold: {{files: {{/etc/a: \"x\"}}}}\nnew: {{files: {{/etc/a: \"y\"}}}}\n\
         expect: {{verdicts: {{file:/etc/a: {expect}}}}}\n"
    )
}

/// What `tread policy test` finds: whether each row passed, and its problems.
fn tested(bench: &Bench, guest: &Guest) -> Vec<(String, bool, String)> {
    bench.write("tested.wasm", guest.component());
    bench.write("cases/a.yaml", case("{answer: act}"));
    let ran = bench.tread(&["policy", "test", "tested.wasm", "-o", "json"]);
    let json = ran.json();
    let row = |row: &Value| {
        let problems = row["problems"].as_array().into_iter().flatten();
        let problems: Vec<&str> = problems.map(|line| line.as_str().unwrap()).collect();
        let title = row["title"].as_str().unwrap().to_owned();
        (title, row["outcome"] == "passed", problems.join("\n"))
    };
    json["results"].as_array().unwrap().iter().map(row).collect()
}

#[track_caller]
fn assert_found(rows: &[(String, bool, String)], title: &str, words: &str) {
    let row = rows.iter().find(|row| row.0.starts_with(title));
    let (_, passed, problems) = row.unwrap_or_else(|| panic!("{title} in {rows:?}"));
    assert!(!passed && problems.contains(words), "{title}: {words:?} in {problems:?}");
}

#[test]
fn a_policy_that_fails_only_where_several_changes_come_in_one_call_is_found() {
    let bench = Bench::new();
    let traps = format!("(if {SEVERAL} (then (unreachable))) {}", echo(0, ONE));
    let twice = echo(0, &format!("(i32.add (i32.const 1) {SEVERAL})"));
    for (body, words) in [(traps, "trap: "), (twice, "two verdicts for file:/etc/a")] {
        let rows = tested(&bench, &guest("several", &body));
        assert_found(&rows, "several changes in one call get their answers too", words);
        let failed = rows.iter().filter(|row| !row.1).count();
        assert_eq!(failed, 1, "{rows:?}");
    }
    let rows = tested(&bench, &guest("fine", &echo(0, ONE)));
    assert!(rows.iter().all(|row| row.1), "{rows:?}");
}

#[test]
fn a_reason_that_quotes_contents_and_one_that_says_nothing_are_found() {
    let bench = Bench::new();
    let rows = tested(&bench, &guest("quoting", &echo(52, ONE)));
    let title = "no reason, no line of the log and no panic quotes contents";
    assert_found(&rows, title, "contents that were offered stand in a reason: zq7canary");
    let log = "(call $log (i32.load offset=52 (local.get $changes))
                          (i32.load offset=56 (local.get $changes)))";
    let rows = tested(&bench, &guest("logging", &format!("{log} {}", echo(0, ONE))));
    assert_found(&rows, title, "stand in a line of its log: zq7canary");
    let rows = tested(&bench, &guest("panicking", &format!("{log} (unreachable)")));
    assert_found(&rows, title, "stand in what it failed with: ");

    // Also of a file that others cannot read, which nobody is shown in a plan.
    let body = format!(
        "(if (result i32) (i32.and (i32.load offset=60 (local.get $changes)) (i32.const 4))
           (then (i32.store (i32.const 60008) (i32.const 0)) (i32.const 60004))
           (else {}))",
        echo(52, ONE)
    );
    let declares = Some(Declarations { needs_secrets: true, reasons: Vec::new() });
    let rows =
        tested(&bench, &Guest { declares, version: "1.1.0", ..guest("seeing-secrets", &body) });
    assert_found(&rows, title, "a secret: ");
    assert_found(&rows, title, "contents that were offered stand in a reason: zq7canary");

    let claims = vec![claim("file:/etc/a", Effect::None, Effect::Restart)];
    let silent = answering("silent", claims, vec![Says { reason: b" \n", ..act(0, &[]) }]);
    let rows = tested(&bench, &silent);
    assert_found(&rows, "every answer has a reason", "the answer for file:/etc/a has none");
    assert_found(&rows, "It changes", "file:/etc/a: answered act without a reason");
}

#[test]
fn no_policy_gets_the_name_of_a_built_in_one_on_its_way() {
    let bench = Bench::new();
    bench.write("cases/a.yaml", case("{answer: act}"));
    bench.write("taken.wasm", restarting("registries", "file:/etc/a").component());
    bench.write("core.wasm", restarting("registries", "file:/etc/a").module());
    for (args, code) in [
        (&["policy", "new", "registries", "--sdk", "1"][..], 2),
        (&["policy", "build", "--from", "core.wasm"], 1),
        (&["policy", "test", "taken.wasm"], 1),
        (&["policy", "pack", "taken.wasm", "-n", "a", "--name", "b"], 1),
    ] {
        let ran = bench.tread(args);
        assert_eq!((ran.code(), ran.out().as_str()), (code, ""), "{args:?}");
        let words = "a policy is named registries, which is the name of a built-in one: rename it";
        assert!(ran.err().contains(words), "{args:?}: {}", ran.err());
    }
    assert!(!bench.dir.path().join("registries").exists());
    assert!(!bench.dir.path().join("registries.wasm").exists());
}

#[test]
fn wide_claims_are_told_as_the_cluster_will_tell_them() {
    let bench = Bench::new();
    bench.write("cases/a.yaml", case("{answer: act}"));
    for (claimed, wide) in [("file:/etc/**", true), ("file:/etc/a", false)] {
        bench.write("mine.wasm", restarting("mine", claimed).component());
        bench.write("core.wasm", restarting("mine", claimed).module());
        let name = if wide { "wide" } else { "narrow" };
        for args in [
            &["policy", "new", name, "--claim", claimed, "--sdk", "1"][..],
            &["policy", "build", "--from", "core.wasm", "-o", "built.wasm"],
            &["policy", "test", "mine.wasm"],
            &["policy", "pack", "mine.wasm", "-n", "a", "--name", "b"],
        ] {
            let ran = bench.tread(args);
            assert_eq!(ran.code(), 0, "{args:?}: {}{}", ran.out(), ran.err());
            let words = format!("warning: it claims as much as {claimed}: in a cluster it decides");
            assert_eq!(ran.err().contains(&words), wide, "{args:?}: {}", ran.err());
        }
    }
}

/// Runs to its end while nobody reads what it warns of.
fn unwarned(bench: &Bench, args: &[&str]) -> Ran {
    let (unread, errors) = std::io::pipe().unwrap();
    drop(unread);
    let mut command = bench.command(args);
    Ran(command.stdin(Stdio::null()).stderr(errors).output().unwrap())
}

#[test]
fn what_is_done_with_a_warning_is_done_also_if_nobody_reads_the_warning() {
    let bench = Bench::new();
    bench.write("cases/a.yaml", case("{answer: abstain}"));
    let wide = restarting("wide", "file:/etc/**");
    bench.write("wide.wasm", wide.component());
    bench.write("core.wasm", wide.module());
    for (args, code, part) in [
        (&["policy", "test", "wide.wasm", "-o", "junit"][..], 1, "<failure "),
        (&["policy", "pack", "wide.wasm", "-n", "a", "--name", "b"], 0, "kind: ConfigMap"),
        (&["policy", "build", "--from", "core.wasm", "-o", "a.wasm"], 0, "a.wasm: "),
        (&["policy", "rules", "--to-openshift"], 0, "kind: MachineConfiguration"),
        (&["policy", "new", "open", "--claim", "file:/etc/**", "--sdk", "1"], 0, "policy test"),
    ] {
        let warned = bench.tread(args);
        assert!(!warned.err().is_empty(), "{args:?} warns of nothing");
        std::fs::remove_dir_all(bench.dir.path().join("open")).ok();
        let ran = unwarned(&bench, args);
        assert_eq!(ran.code(), code, "{args:?}: {}", ran.out());
        assert!(ran.out().contains(part), "{args:?}: {part:?} in {}", ran.out());
    }
    assert!(bench.dir.path().join("a.wasm").exists() && bench.dir.path().join("open").exists());
}

#[test]
fn settings_are_held_to_the_whole_schema_wherever_they_are_given() {
    let bench = Bench::new();
    let schema = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "unit": {"type": "string", "pattern": "^[a-z]+\\.service$"},
            "limits": {
                "type": "object",
                "additionalProperties": {"type": "integer", "maximum": 9},
            },
        },
    });
    let defaults = json!({"unit": "a.service", "limits": {}});
    let guest = with_settings(restarting("strict", "file:/etc/a"), defaults, schema.clone());
    bench.write("strict.wasm", guest.component());
    let plan = |set: &str| {
        let args = ["--policy", "strict.wasm", "--set", set];
        bench.plan(files(&[]), files(&[("/etc/a", "x")]), &args)
    };
    assert_eq!(
        plan("strict.unit=b.service").first_line(),
        "restart a.service; no drain, no reboot"
    );
    for (set, words) in [
        ("strict.unit=b", "--set strict.unit: expected text that matches /^[a-z]+\\.service$/"),
        ("strict.limits={\"a\":10}", "limits.a: expected at most 9, found 10"),
        ("strict.limits={\"a\":\"b\"}", "limits.a: expected a whole number"),
    ] {
        let ran = plan(set);
        assert_eq!(ran.code(), 2);
        assert!(ran.err().contains(words), "{set}: {}", ran.err());
    }
    bench.write("settings.yaml", "unit: b\nuint: c\n");
    let pack = ["policy", "pack", "strict.wasm", "-n", "a", "--name", "b"];
    let packed = bench.tread(&[&pack[..], &["--settings", "settings.yaml"]].concat());
    assert_eq!(packed.code(), 1, "{}", packed.out());
    for words in ["settings.yaml: ", "unit: expected text that matches", "did you mean \"unit\"?"] {
        assert!(packed.err().contains(words), "{words} in {}", packed.err());
    }
    let cases = "settings: {strict: {limits: {a: 10}}}\n".to_owned()
        + &case("{answer: invalid-settings, reason: 'limits.a: expected at most 9'}");
    bench.write("cases/a.yaml", cases);
    let ran = bench.tread(&["policy", "test", "strict.wasm"]);
    assert_eq!(ran.code(), 0, "{}", ran.out());

    // Its own defaults are held to it as well.
    let broken = with_settings(restarting("broken", "file:/etc/a"), json!({"unit": 1}), schema);
    bench.write("broken.wasm", broken.component());
    let ran = bench.tread(&["policy", "inspect", "broken.wasm", "-o", "json"]);
    assert_eq!(ran.json()["problems"][0]["failure"], "invalid-settings");
    let message = ran.json()["problems"][0]["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("unit: expected text"), "{message}");
}

#[test]
fn a_schema_with_what_is_not_enforced_makes_no_policy() {
    let bench = Bench::new();
    let schema = json!({"properties": {"at": {"type": "string", "format": "uri"}}});
    let guest = with_settings(restarting("odd", "file:/etc/a"), json!({"at": ""}), schema);
    bench.write("odd.wasm", guest.component());
    bench.write("core.wasm", guest.module());
    let words = "the schema: properties.at.format: tread does not enforce this keyword: write a";
    for args in [
        &["policy", "build", "--from", "core.wasm"][..],
        &["policy", "inspect", "odd.wasm"],
        &["policies", "--policy", "odd.wasm"],
    ] {
        let ran = bench.tread(args);
        assert_eq!(ran.code(), 1, "{args:?}");
        let printed = format!("{}{}", ran.out(), ran.err());
        assert!(printed.contains(words), "{args:?}: {printed}");
    }
}

#[test]
fn a_case_can_let_the_policy_read_secrets() {
    let bench = Bench::new();
    // Its reason is what it reads, which is shown where its settings have said it before.
    let schema = json!({"type": "object", "properties": {"known": {"type": "string"}}});
    let echo = with_settings(guest("echo", &echo(52, ONE)), json!({"known": "hidden"}), schema);
    bench.write("echo.wasm", echo.component());
    let secret = |text: &str| format!("{{files: {{/etc/a: {{contents: {text}, mode: 0600}}}}}}");
    let case = |read: &str| {
        format!(
            "title: A secret\n{read}old: {}\nnew: {}\n\
             expect: {{verdicts: {{file:/etc/a: {{reason: hidden}}}}}}\n",
            secret("before"),
            secret("hidden")
        )
    };
    for (read, passes) in
        [("readSecrets: true\n", true), ("readSecrets: false\n", false), ("", false)]
    {
        bench.write("a.yaml", case(read));
        let args = ["policy", "test", "echo.wasm", "--cases", "a.yaml", "-o", "json"];
        let row = bench.tread(&args).json()["results"][0].clone();
        assert_eq!(row["title"], "A secret");
        assert_eq!(row["outcome"] == "passed", passes, "{read:?}: {row}");
        let bench =
            bench.tread(&["policy", "bench", "echo.wasm", "--cases", "a.yaml", "--runs", "1"]);
        assert_eq!(bench.code(), 0, "{}", bench.err());
    }
}

#[test]
fn a_reason_that_is_not_shown_beside_a_secret_is_never_written_as_expected() {
    let bench = Bench::new();
    // A unit can be named beside a secret where the settings name it.
    let schema = json!({"type": "object", "properties": {"unit": {"type": "string"}}});
    let mine = restarting("mine", "file:/etc/a");
    let mine = with_settings(mine, json!({"unit": "a.service"}), schema);
    bench.write("mine.wasm", mine.component());
    let a = |text: &str, mode: &str| {
        format!("{{files: {{/etc/a: {{contents: {text}, mode: {mode}}}}}}}")
    };
    let case = |title: &str, mode: &str, expect: &str| {
        let (old, new) = (a("one", mode), a("two", mode));
        format!("title: {title}\nreadSecrets: true\nold: {old}\nnew: {new}\n{expect}---\n")
    };
    let verdict = "expect:\n  verdicts:\n    file:/etc/a: ";
    let change = "expect:\n  plan: restart a.service\n  changes:\n    file:/etc/a: ";
    let act = "answer: act, actions: [restart a.service]";
    let placed = "reason: The policy was offered a secret";
    let written = [
        case("Open", "0600", ""),
        case("Mine", "0600", &format!("{verdict}{{{act}, reason: because}}\n")),
        // What an earlier version wrote down.
        case("Placed", "0600", &format!("{verdict}{{answer: refuse, {placed}}}\n")),
        case("Planned", "0600", &format!("{change}{{by: mine, reason: because}}\n")),
        case("Shown", "0644", &format!("{verdict}{{{act}, reason: another}}\n")),
    ];
    bench.write("a.yaml", written.concat());
    let args = ["policy", "test", "mine.wasm", "--cases", "a.yaml"];
    let updated = bench.tread(&[&args[..], &["--update", "-o", "json"]].concat());
    assert_eq!(updated.code(), 0, "{}", updated.out());
    let now = std::fs::read_to_string(bench.dir.path().join("a.yaml")).unwrap();
    let unshown = format!("{verdict}{{{act}}}\n");
    let expected = [
        case("Open", "0600", &unshown),
        case("Mine", "0600", &unshown),
        case("Placed", "0600", &unshown),
        case("Planned", "0600", &format!("{change}{{by: mine}}\n")),
        case("Shown", "0644", &format!("{verdict}{{{act}, reason: \"because\"}}\n")),
    ];
    assert_eq!(now, expected.concat());
    let note = "file:/etc/a: its reason is not shown beside a secret, so none is expected: declare \
                the sentence among the policy's reasons (REASONS in the SDK), and write it here";
    for row in &updated.json()["results"].as_array().unwrap()[..5] {
        assert_eq!(row["outcome"], "updated", "{row}");
        match row["title"] == "Shown" {
            true => assert_eq!(row.get("notes"), None, "{row}"),
            false => assert_eq!(row["notes"], json!([note]), "{row}"),
        }
    }
    assert_eq!(bench.tread(&args).code(), 0, "{now}");
    bench.write("a.yaml", &written[0]);
    let human = bench.tread(&[&args[..], &["--update"]].concat()).out();
    assert!(human.contains(&format!("note: {note}\n")), "{human}");

    // A sentence that it declares is shown, and is written.
    let reasons = vec!["because".to_owned()];
    let declares = Some(Declarations { needs_secrets: false, reasons });
    let declaring = Guest { declares, version: "1.1.0", ..mine };
    bench.write("mine.wasm", declaring.component());
    bench.write("a.yaml", written[..2].concat());
    let updated = bench.tread(&[&args[..], &["--update"]].concat());
    assert!(!updated.out().contains("note: "), "{}", updated.out());
    let now = std::fs::read_to_string(bench.dir.path().join("a.yaml")).unwrap();
    assert_eq!(now.matches("because").count(), 2, "{now}");
}

/// Ends what does not end by itself.
fn within_a_minute(bench: &Bench, args: &[&str]) -> Ran {
    let mut command = bench.command(args);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > Duration::from_secs(600) {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("it hangs: {args:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ran(child.wait_with_output().unwrap())
}

fn pipe(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

#[test]
fn a_pipe_that_nobody_named_is_an_error_and_nothing_to_wait_for() {
    let bench = Bench::new();
    bench.write("d/a.yaml", files(&[]).to_string());
    bench.write("new.yaml", files(&[]).to_string());
    bench.write("good.wasm", restarting("good", "file:/etc/a").component());
    bench.write("cases/a.yaml", case("{answer: act}"));
    bench.write("named.yaml", "title: x\nold: d/pipe.yaml\nnew: {}\nexpect: {plan: nothing}\n");
    std::fs::create_dir(bench.dir.path().join("into")).unwrap();
    for name in ["d/pipe.yaml", "cases/pipe.yaml", "good"] {
        pipe(&bench.dir.path().join(name));
    }
    for args in [
        &["plan", "d", "new.yaml"][..],
        &["policy", "rules", "d"],
        &["policy", "test", "good.wasm"],
        &["policy", "test", "good.wasm", "--cases", "cases"],
        &["policy", "test", "good.wasm", "--cases", "named.yaml"],
        &["policy", "bench", "good.wasm", "--cases", "cases"],
    ] {
        let ran = within_a_minute(&bench, args);
        assert_eq!(ran.code(), 1, "{args:?}");
        let printed = format!("{}{}", ran.out(), ran.err());
        assert!(printed.contains("pipe.yaml is a pipe, and no file"), "{args:?}: {printed}");
    }
    // The file that unpacking would write is looked at first.
    let packed = bench.tread(&["policy", "pack", "good.wasm", "-n", "a", "--name", "b"]);
    bench.write("packed.yaml", packed.out());
    pipe(&bench.dir.path().join("b.wasm"));
    let ran = within_a_minute(&bench, &["policy", "unpack", "packed.yaml"]);
    assert_eq!(ran.code(), 1);
    assert!(ran.err().contains("b.wasm is there already"), "{}", ran.err());
}

#[test]
fn what_is_written_over_nothing_that_was_read() {
    let bench = Bench::new();
    bench.write("good.wasm", restarting("good", "file:/etc/a").component());
    let settings = bench.write("settings.yaml", "{}\n");
    let pack = ["policy", "pack", "good.wasm", "-n", "a", "--name", "b"];
    let more = ["--settings", "settings.yaml", "-o", "settings.yaml"];
    let ran = bench.tread(&[&pack[..], &more].concat());
    assert_eq!(ran.code(), 2);
    assert!(ran.err().contains("written over the settings"), "{}", ran.err());
    assert_eq!(std::fs::read(settings).unwrap(), b"{}\n");
    let manifest = bench.write("m.yaml", bench.tread(&pack).out());
    let before = std::fs::read(&manifest).unwrap();
    let ran = bench.tread(&["policy", "unpack", "m.yaml", "-o", "m.yaml"]);
    assert_eq!(ran.code(), 2);
    assert!(ran.err().contains("written over the manifest"), "{}", ran.err());
    assert_eq!(std::fs::read(manifest).unwrap(), before);
}

#[test]
fn settings_that_are_too_large_are_told_as_settings() {
    let bench = Bench::new();
    bench.write("good.wasm", restarting("good", "file:/etc/a").component());
    bench.write("settings.yaml", format!("a: \"{}\"\n", "x".repeat(10_000_000)));
    let ran = bench.tread(&[
        "policy",
        "pack",
        "good.wasm",
        "-n",
        "a",
        "--name",
        "b",
        "--settings",
        "settings.yaml",
    ]);
    assert_eq!(ran.code(), 1);
    assert!(ran.err().contains("Write fewer or shorter settings"), "{}", ran.err());
    assert!(!ran.err().contains("module smaller"), "{}", ran.err());
}
