//! The template owner's way, with the real binary: from a name to a policy that
//! is tested, packed and plans.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use support::{Bench, Ran, machine_config, run, tree};

/// A policy's crate, always at the same place, so that what cargo keeps of it
/// does not pile up. No two tests share a name.
struct Workshop {
    dir: PathBuf,
    name: &'static str,
    bench: Bench,
}

impl Workshop {
    /// `tread policy new`, with the SDK of this tree.
    fn new(name: &'static str, claims: &[&str]) -> Workshop {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("authoring").join(name);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        let workshop = Workshop { dir, name, bench: Bench::new() };
        let sdk = tree().join("guest-sdk").display().to_string();
        let mut args = vec!["policy", "new", name, "--sdk", &sdk];
        claims.iter().for_each(|claim| args.extend(["--claim", claim]));
        let mut command = workshop.bench.command(&args);
        command.current_dir(&workshop.dir);
        let made = run(command, b"");
        assert_eq!(made.code(), 0, "{}", made.err());
        workshop
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(self.name).join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// In the crate, without any network, and with one directory for all that
    /// cargo builds here.
    fn run(&self, mut command: Command) -> Ran {
        command.current_dir(self.dir.join(self.name)).env("CARGO_NET_OFFLINE", "true").env(
            "CARGO_TARGET_DIR",
            Path::new(env!("CARGO_TARGET_TMPDIR")).join("authoring/target"),
        );
        run(command, b"")
    }

    fn tread(&self, args: &[&str]) -> Ran {
        self.run(self.bench.command(args))
    }

    fn cargo(&self, args: &[&str]) -> Ran {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(args);
        self.run(command)
    }

    /// The component, built.
    fn build(&self) -> String {
        let built = self.tread(&["policy", "build"]);
        assert_eq!(built.code(), 0, "{}", built.err());
        format!("{}.wasm", self.name)
    }
}

/// Its last line is what a person looks at.
fn last_line(ran: &Ran) -> String {
    ran.out().lines().last().unwrap_or_default().to_owned()
}

#[test]
fn from_a_name_to_a_policy_that_is_tested_packed_and_plans() {
    let shop = Workshop::new("clock", &["file:/etc/clock.conf", "unit:clockd.service"]);
    let tested = shop.cargo(&["test"]);
    assert_eq!(tested.code(), 0, "{}\n{}", tested.out(), tested.err());
    assert!(tested.out().contains("test result: ok. 7 passed"), "{}", tested.out());

    let component = shop.build();
    let cases = shop.tread(&["policy", "test"]);
    assert_eq!(cases.code(), 0, "{}\n{}", cases.out(), cases.err());
    assert_eq!(last_line(&cases), "14 passed, 0 failed", "{}", cases.out());
    // The same of the component alone, without its source.
    let cases = shop.tread(&["policy", "test", &component]);
    assert_eq!(last_line(&cases), "14 passed, 0 failed", "{}", cases.err());

    let manifest = shop.tread(&["policy", "pack", &component, "-n", "clocks", "--name", "clock"]);
    assert_eq!(manifest.code(), 0, "{}", manifest.err());
    assert!(manifest.out().contains("kind: ConfigMap"), "{}", manifest.out());

    shop.write("old.yaml", &machine_config(&[("/etc/clock.conf", "level = 1\n")]));
    shop.write("new.yaml", &machine_config(&[("/etc/clock.conf", "level = 2\n")]));
    let without = shop.tread(&["plan", "old.yaml", "new.yaml"]);
    assert!(without.first_line().contains("reboot"), "{}", without.out());
    let with = shop.tread(&["plan", "--policy", &component, "old.yaml", "new.yaml"]);
    assert_eq!(with.first_line(), "reload clockd.service; no drain, no reboot", "{}", with.err());
}

#[test]
fn the_unit_tests_of_every_kind_pass_natively_at_once() {
    for (name, claims) in [
        ("only-units", &["unit:clock*.service"][..]),
        ("only-keys", &["ssh-keys:*"]),
        ("only-arguments", &["kernel-arguments"]),
        ("only-a-secret", &["file:/etc/clock.keys"]),
    ] {
        let shop = Workshop::new(name, claims);
        let tested = shop.cargo(&["test"]);
        assert_eq!(tested.code(), 0, "{name}: {}\n{}", tested.out(), tested.err());
        if name == "only-a-secret" {
            let tested = shop.tread(&["policy", "test"]);
            assert_eq!(tested.code(), 0, "{name}: {}\n{}", tested.out(), tested.err());
        }
    }
    let shop = Workshop::new(
        "every-kind",
        &[
            "file:/etc/a.conf",
            "file:/etc/a.d/**",
            "file:/etc/[bc]/{d,e} f.conf",
            // Each with the service that its path names, and a secret among them.
            "file:/etc/chrony.conf",
            "file:/etc/keepalived/*.conf",
            "file:/etc/chrony.keys",
            "unit:chronyd.service",
            "unit:keepalived.service",
            // What no policy may touch.
            "unit:dbus.service",
            "unit:var.mount",
            "unit:tread-operation.service",
            "unit:*",
            "ssh-keys:core",
            "password:*",
            "kernel-arguments",
            "kernel-type",
            "os-image",
            "extensions",
        ],
    );
    for (tested, what) in
        [(shop.cargo(&["test"]), "cargo test"), (shop.tread(&["policy", "test"]), "policy test")]
    {
        assert_eq!(tested.code(), 0, "{what}: {}\n{}", tested.out(), tested.err());
        // Some of these claims are as wide as can be, which is told.
        let err = tested.err();
        let mut others = err.lines().filter(|line| !line.starts_with("warning: it claims as much"));
        assert!(!others.any(|line| line.contains("warning")), "{what}: {err}");
    }
}

#[test]
fn a_new_version_of_a_crate_that_was_built_is_built_too() {
    let shop = Workshop::new("released", &[]);
    let tested = shop.tread(&["policy", "test"]);
    assert_eq!(tested.code(), 0, "{}\n{}", tested.out(), tested.err());
    let versions = |lock: &str| -> Vec<String> {
        let mut lines = lock.lines().filter(|line| line.starts_with("version = "));
        lines.next();
        lines.map(str::to_owned).collect()
    };
    let before = fs::read_to_string(shop.path("Cargo.lock")).unwrap();
    let manifest = fs::read_to_string(shop.path("Cargo.toml")).unwrap();
    shop.write("Cargo.toml", &manifest.replace("0.1.0", "0.2.0"));
    let tested = shop.tread(&["policy", "test"]);
    assert_eq!(tested.code(), 0, "{}\n{}", tested.out(), tested.err());
    assert!(tested.err().contains("Cargo.lock did not fit Cargo.toml"), "{}", tested.err());
    let after = fs::read_to_string(shop.path("Cargo.lock")).unwrap();
    assert_ne!(before, after);
    assert_eq!(versions(&before).len(), versions(&after).len());
    // It is told once.
    let tested = shop.tread(&["policy", "test"]);
    assert_eq!(
        (tested.code(), tested.err().contains("Cargo.lock")),
        (0, false),
        "{}",
        tested.err()
    );
}

#[test]
fn a_name_that_cannot_be_and_a_directory_that_is_there_change_nothing() {
    let bench = Bench::new();
    let wrong = bench.tread(&["policy", "new", "Clock"]);
    assert_eq!(wrong.code(), 2);
    assert!(wrong.err().contains("lower-case"), "{}", wrong.err());
    let wrong = bench.tread(&["policy", "new", "clock", "--claim", "files:/etc/a", "--sdk", "1"]);
    assert_eq!(wrong.code(), 2);
    assert!(wrong.err().contains("did you mean \"file\""), "{}", wrong.err());
    assert_eq!(fs::read_dir(bench.dir.path()).unwrap().count(), 0);
    bench.write("clock/mine", "mine");
    let there = bench.tread(&["policy", "new", "clock", "--sdk", "0.1.0"]);
    assert_eq!(there.code(), 1);
    assert!(there.err().contains("there already"), "{}", there.err());
    assert_eq!(fs::read_dir(bench.dir.path().join("clock")).unwrap().count(), 1);
}

/// A policy that does what the new text says.
const FAULTY: &str = r#"//! Makes every mistake that can be made with the SDK.
use tread_guest_sdk::{Change, Claim, Context, Effect, Policy, Verdict, export};

pub struct Faulty;

impl Policy for Faulty {
    type Settings = ();
    const NAME: &'static str = "faulty";
    const VERSION: &'static str = "1.0.0";
    const SUMMARY: &'static str = "Makes mistakes";
    const CLAIMS: &'static [Claim] =
        &[Claim::on("file:/etc/faulty.conf", Effect::None, Effect::Restart)];

    fn classify((): &(), change: &Change, _: &Context<'_>) -> Verdict {
        match change.after.as_text().unwrap() {
            "trap\n" => panic!("there is no second server"),
            "loop\n" => loop { std::hint::black_box(()); },
            "beyond\n" => Verdict::reboot("far too much"),
            "unit\n" => Verdict::restart("faulty", "no type"),
            "fine\n" => Verdict::nothing("fine"),
            _ => Verdict::abstain(),
        }
    }
}

export!(Faulty);
"#;

/// A case whose file gets this text.
fn case(title: &str, path: &str, text: &str, expect: &str) -> String {
    format!(
        "title: {title}\nold: {{files: {{{path}: \"\"}}}}\nnew: {{files: {{{path}: {text:?}}}}}\n\
         expect: {expect}\n---\n"
    )
}

#[test]
fn mistakes_of_a_policy_are_told_in_its_authors_words() {
    let shop = Workshop::new("faulty", &[]);
    shop.write("src/lib.rs", FAULTY);
    fs::remove_dir_all(shop.path("cases")).unwrap();
    let path = "/etc/faulty.conf";
    let nothing = "{verdicts: {file:/etc/faulty.conf: {actions: []}}}";
    let cases = [
        case("panics", path, "trap\n", nothing),
        case("loops", path, "loop\n", nothing),
        case("goes beyond", path, "beyond\n", nothing),
        case("names no unit", path, "unit\n", nothing),
        case("reboots for a failure", path, "trap\n", "{plan: reboot}"),
        case(
            "fails as expected",
            path,
            "trap\n",
            "{verdicts: {file:/etc/faulty.conf: {answer: trap, reason: second server}}}",
        ),
        case("is fine", path, "fine\n", nothing),
        case("is not asked", "/etc/faulty.cnf", "fine\n", "{plan: reboot}"),
        case(
            "is asked for another",
            path,
            "fine\n",
            "{verdicts: {file:/etc/faulty.cnf: {answer: abstain}}}",
        ),
    ];
    shop.write("cases/all.yaml", &cases.concat());
    shop.write("cases/broken.yaml", "title: x\nold: {}\nnew: {}\nexpect: {verdict: {}}\n");
    let ran = shop.tread(&["policy", "test", "-o", "json"]);
    assert_eq!(ran.code(), 1, "{}", ran.err());
    let json = ran.json();
    let of = |title: &str| -> (bool, String) {
        let rows = json["results"].as_array().unwrap();
        let row = rows.iter().find(|row| row["title"].as_str().unwrap().starts_with(title));
        let row = row.unwrap_or_else(|| panic!("{title}\n{}", ran.out()));
        let lines = row["problems"].as_array().into_iter().flatten();
        let lines: Vec<&str> = lines.map(|line| line.as_str().unwrap()).collect();
        (row["outcome"] == "passed", lines.join("\n"))
    };
    for (title, parts) in [
        (
            "panics",
            &[
                "panicked at src/lib.rs:16:25: there is no second server",
                "16 |             \"trap\\n\" => panic!(",
            ][..],
        ),
        ("loops", &["out-of-fuel", "1 change with 5 bytes"]),
        (
            "goes beyond",
            &["beyond-claim", "the claim on file:/etc/faulty.conf goes from none to restart"],
        ),
        (
            "names no unit",
            &["invalid-unit", "file:/etc/faulty.conf action 0 of `act` names \"faulty\""],
        ),
        ("reboots for a failure", &["panicked at src/lib.rs:16"]),
        (
            "is not asked",
            &["no claim matches file:/etc/faulty.cnf; the nearest is on file:/etc/faulty.conf"],
        ),
        (
            "is asked for another",
            &["file:/etc/faulty.cnf is not offered", "nearest is file:/etc/faulty.conf"],
        ),
        ("its cases can be read", &["`verdict`"]),
        // The texts of the cases are among those that are made up.
        ("no answer goes beyond", &["beyond-claim", "more like it"]),
        ("every answer takes less", &["out-of-fuel", "more like it"]),
        (
            "every change that it claims gets an answer",
            &[
                "from nothing to text 1 of the cases",
                "panicked at src/lib.rs:15",
                ".unwrap()",
                "more like it",
            ],
        ),
    ] {
        let (passed, problems) = of(title);
        assert!(!passed, "{title}");
        for part in parts {
            assert!(problems.contains(part), "{title}: {part:?} in\n{problems}");
        }
    }
    for title in ["fails as expected", "is fine", "the same change"] {
        let (passed, problems) = of(title);
        assert!(passed, "{title}: {problems}");
    }
    let junit = shop.tread(&["policy", "test", "-o", "junit"]);
    assert_eq!(junit.code(), 1);
    assert_eq!(junit.out().matches("<failure ").count() as u64, json["failed"].as_u64().unwrap());

    // Failures are never written, nor what was not asked; the rest is.
    let before = fs::read_to_string(shop.path("cases/all.yaml")).unwrap();
    let updated = shop.tread(&["policy", "test", "--update"]);
    assert_eq!(updated.code(), 1);
    let after = fs::read_to_string(shop.path("cases/all.yaml")).unwrap();
    let changed = "expect:\n  verdicts:\n    file:/etc/faulty.conf: {answer: act, actions: []}\n";
    let old = "expect: {verdicts: {file:/etc/faulty.cnf: {answer: abstain}}}\n";
    assert_eq!(after, before.replace(old, changed));
}

#[test]
fn plans_and_benchmarks_tell_the_mistakes_of_a_policy_too() {
    let shop = Workshop::new("mistaken", &[]);
    shop.write("src/lib.rs", &FAULTY.replace("\"faulty\"", "\"mistaken\""));
    let component = shop.build();
    let path = "/etc/faulty.conf";
    let (mut cases, expect) = (String::new(), "{plan: reboot}");
    for (text, part, explained) in [
        (
            "trap\n",
            "trap: panicked at src/lib.rs:16:25: there is no second server",
            "16 |             \"trap\\n\" => panic!(",
        ),
        ("loop\n", "a loop that does not end", "1 change with 5 bytes"),
        (
            "beyond\n",
            "beyond-claim: it answers reboot for file:/etc/faulty.conf",
            "the claim on file:/etc/faulty.conf goes from none to restart",
        ),
        ("unit\n", "action 0 of `act` names \"mistaken\"", "invalid-unit"),
    ] {
        shop.write("old.yaml", &machine_config(&[(path, "")]));
        shop.write("new.yaml", &machine_config(&[(path, text)]));
        let plan =
            shop.tread(&["plan", "--policy", &component, "old.yaml", "new.yaml", "-o", "json"]);
        let json = plan.json();
        let reason = json["changes"][0]["reason"].as_str().unwrap();
        assert!(reason.contains(part), "{part:?} in {reason}");
        assert_eq!(json["changes"][0]["outcome"], "failed");

        shop.write("one.yaml", &case(text, path, text, expect));
        let bench =
            shop.tread(&["policy", "bench", &component, "--cases", "one.yaml", "--runs", "1"]);
        assert_eq!(bench.code(), 1, "{}", bench.err());
        assert!(bench.out().contains(explained), "{explained:?} in {}", bench.out());
        cases += &case(text, path, text, expect);
    }
    // Of a component in its crate the source is found, whoever builds it.
    shop.write("all.yaml", &cases);
    let tested = shop.tread(&["policy", "test", &component, "--cases", "all.yaml"]);
    assert_eq!(tested.code(), 1);
    assert!(tested.out().contains("16 | "), "{}", tested.out());
}

/// The least that a policy can be.
const HELLO: &str = r#"//! Says hello.
use tread_guest_sdk::{Change, Claim, Context, Effect, Policy, Verdict, export};

pub struct Hello;

impl Policy for Hello {
    type Settings = ();
    const NAME: &'static str = "hello";
    const VERSION: &'static str = "1.0.0";
    const SUMMARY: &'static str = "Says hello";
    const CLAIMS: &'static [Claim] =
        &[Claim::on("file:/etc/hello.conf", Effect::None, Effect::None)];

    fn classify((): &(), _: &Change, _: &Context<'_>) -> Verdict {
        Verdict::nothing("hello, world")
    }
}

export!(Hello);
"#;

/// The figure is printed: `cargo test --release --test authoring hello -- --nocapture`.
#[test]
fn a_policy_that_says_hello_takes_at_most_40_kb() {
    let shop = Workshop::new("hello", &[]);
    shop.write("src/lib.rs", HELLO);
    let component = shop.build();
    let size = fs::metadata(shop.path(&component)).unwrap().len();
    println!("a policy that says hello: {size} bytes");
    assert!(size <= 40_000, "{size} bytes");
    let case = case("hello", "/etc/hello.conf", "hello\n", "{plan: no action}");
    shop.write("hello.yaml", &case);
    let tested = shop.tread(&["policy", "test", &component, "--cases", "hello.yaml"]);
    assert_eq!(tested.code(), 0, "{}", tested.out());
}

#[test]
fn the_sdk_of_the_source_around_is_found_without_being_named() {
    let bench = Bench::new();
    let manifest = "[package]\nname = \"tread-guest-sdk\"\n";
    let sdk = bench.write("tread/guest-sdk/Cargo.toml", manifest);
    let made = bench.tread(&["policy", "new", "clock"]);
    assert_eq!(made.code(), 0, "{}", made.err());
    let sdk = sdk.parent().unwrap().canonicalize().unwrap().display().to_string();
    let written = fs::read_to_string(bench.dir.path().join("clock/Cargo.toml")).unwrap();
    let line = format!("tread-guest-sdk = {{ path = {sdk:?} }}");
    assert!(written.contains(&line), "{written}");
    assert!(made.out().contains(&line), "{}", made.out());
}

#[test]
fn an_sdk_that_anybody_could_have_put_around_is_not_taken() {
    use std::os::unix::fs::PermissionsExt as _;
    let bench = Bench::new();
    bench.write("shared/guest-sdk/Cargo.toml", "[package]\nname = \"tread-guest-sdk\"\n");
    let shared = bench.dir.path().join("shared");
    fs::create_dir(shared.join("mine")).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
    let mut command = bench.command(&["policy", "new", "clock"]);
    command.current_dir(shared.join("mine"));
    let made = run(command, b"");
    // The source that the program lies in may be found in its place.
    assert!(!made.out().contains("shared/guest-sdk"), "{}", made.out());
    let mut command = bench.command(&["policy", "new", "named", "--sdk", "../guest-sdk"]);
    command.current_dir(shared.join("mine"));
    let made = run(command, b"");
    assert!(made.out().contains("shared/guest-sdk"), "{}{}", made.out(), made.err());
}

#[test]
fn updated_cases_pass_and_keep_what_else_was_written() {
    let shop = Workshop::new("updated", &[]);
    let written = fs::read_to_string(shop.path("cases/file.yaml")).unwrap();
    let wrong = written.replace("restart updated.service", "restart other.service");
    assert_ne!(wrong, written);
    shop.write("cases/file.yaml", &wrong);
    let component = shop.build();
    let failed = shop.tread(&["policy", "test", &component]);
    assert_eq!(failed.code(), 1);
    assert_eq!(last_line(&failed), "9 passed, 1 failed");
    let found = "asked for restart updated.service, expected restart other.service";
    assert!(failed.out().contains(found), "{}", failed.out());
    let updated = shop.tread(&["policy", "test", &component, "--update"]);
    assert_eq!(updated.code(), 0, "{}", updated.out());
    assert!(
        updated.out().contains("updated cases/file.yaml: A setting changes"),
        "{}",
        updated.out()
    );
    let now = fs::read_to_string(shop.path("cases/file.yaml")).unwrap();
    assert!(now.starts_with("# What a node has"), "{now}");
    assert_eq!(now.lines().count(), written.lines().count(), "{now}");
    let passed = shop.tread(&["policy", "test", &component]);
    assert_eq!(passed.code(), 0, "{}", passed.out());
    assert_eq!(fs::read_to_string(shop.path("cases/file.yaml")).unwrap(), now);
}

#[test]
fn a_case_that_expects_nothing_yet_fails_until_update_writes_what_is_answered() {
    let shop = Workshop::new("open", &[]);
    let component = shop.build();
    let sides =
        "old: {files: {/etc/open.conf: \"a\\n\"}}\nnew: {files: {/etc/open.conf: \"b\\n\"}}";
    let open = format!(
        "title: One\n{sides}\n---\ntitle: Two\n{sides}\nexpect:\n---\ntitle: Three\n{sides}\nexpect: {{verdicts: {{}}}}\n"
    );
    // One that cannot be read hides none of the others.
    let broken = format!("{open}---\ntitle: Four\n{sides}\nexpected: {{}}\n");
    let broken = format!("{broken}---\ntitle: Five\nsettings: {{reload: true}}\n{sides}\n");
    shop.write("cases/open.yaml", &broken);
    let failed = shop.tread(&["policy", "test", &component]);
    assert_eq!(failed.code(), 1);
    assert_eq!(last_line(&failed), "10 passed, 5 failed", "{}", failed.out());
    for part in [
        "document 4 (Four): unknown field `expected`",
        "let --update write down what it answers",
        "settings: reload is neither open nor a built-in policy: settings stand below the name",
        "file:/etc/open.conf: act (reload open.service): the service has to read the file",
    ] {
        assert!(failed.out().contains(part), "{part:?} in {}", failed.out());
    }
    let updated = shop.tread(&["policy", "test", &component, "--update"]);
    assert_eq!(updated.code(), 1);
    assert_eq!(last_line(&updated), "13 passed, 2 failed", "{}", updated.out());
    assert!(updated.out().contains("3 updated: "), "{}", updated.out());
    let now = fs::read_to_string(shop.path("cases/open.yaml")).unwrap();
    assert_eq!(now.matches("{answer: act, actions: [reload open.service]").count(), 3, "{now}");
    let unread = format!("---\ntitle: Four\n{sides}\nexpected: {{}}\n---\ntitle: Five\n");
    assert!(now.contains(&unread), "{now}");

    let secret =
        |text: &str| format!("{{files: {{/etc/open.conf: {{contents: {text}, mode: 0600}}}}}}");
    let secret = format!("old: {}\nnew: {}", secret("a"), secret("b"));
    let secret = format!("{open}---\ntitle: A secret\n{secret}\n");
    shop.write("cases/open.yaml", &secret);
    let updated = shop.tread(&["policy", "test", &component, "--update"]);
    assert_eq!(updated.code(), 0, "{}", updated.out());
    let now = fs::read_to_string(shop.path("cases/open.yaml")).unwrap();
    let expected = "    file:/etc/open.conf: {answer: act, actions: [reload open.service], reason: \"the service has to read";
    assert_eq!(now.matches(expected).count(), 3, "{now}");
    assert!(now.contains("{answer: abstain, reason: \"it is a secret, of which"), "{now}");
    assert_eq!(shop.tread(&["policy", "test", &component]).code(), 0, "{now}");
}

#[test]
fn a_policy_that_refuses_its_own_defaults_is_built_with_a_warning() {
    let shop = Workshop::new("picky", &[]);
    let built = shop.tread(&["policy", "build"]);
    assert!(!built.err().contains("warning: "), "{}", built.err());
    let source = fs::read_to_string(shop.path("src/lib.rs")).unwrap();
    shop.write("src/lib.rs", &source.replace("= \"picky.service\"", "= \"picky\""));
    let built = shop.tread(&["policy", "build"]);
    assert_eq!(built.code(), 0, "{}", built.err());
    let warning = "warning: it refuses its own default settings (service: expected a complete";
    assert!(built.err().contains(warning), "{}", built.err());
}

#[test]
fn without_cases_nothing_passes() {
    let shop = Workshop::new("caseless", &[]);
    let nowhere = shop.tread(&["policy", "test", "src"]);
    assert!(nowhere.err().contains("src has no Cargo.toml: name the"), "{}", nowhere.err());
    let component = shop.build();
    fs::remove_dir_all(shop.path("cases")).unwrap();
    for (prepare, part) in
        [(None, "there are no cases"), (Some("cases/notes.txt"), "holds no cases")]
    {
        prepare.into_iter().for_each(|path| shop.write(path, ""));
        let ran = shop.tread(&["policy", "test", &component]);
        assert_eq!(ran.code(), 1);
        assert!(ran.err().contains(part), "{}", ran.err());
    }
    shop.write("cases/empty.yaml", "# nothing yet\n");
    let ran = shop.tread(&["policy", "test", &component]);
    assert_eq!(ran.code(), 1, "{}", ran.out());
    assert!(ran.out().contains("FAILED  cases/empty.yaml"), "{}", ran.out());
}

/// The figure is printed: `cargo test --release --test authoring hundred -- --nocapture`.
#[test]
fn a_hundred_cases_load_the_policy_once() {
    let shop = Workshop::new("hundred", &[]);
    let component = shop.build();
    let cases: String = (0..100)
        .map(|number| {
            // Every other one with settings of its own, and with a plan.
            let settings = format!("settings: {{hundred: {{service: s{number}.service}}}}\n");
            let (settings, service) = match number % 2 {
                0 => (settings, format!("s{number}.service")),
                _ => (String::new(), "hundred.service".to_owned()),
            };
            let text = format!("level = {number}\n");
            let expect = format!(
                "{{plan: reload {service}, verdicts: {{file:/etc/hundred.conf: {{actions: [reload {service}]}}}}}}"
            );
            settings + &case(&format!("Case {number}"), "/etc/hundred.conf", &text, &expect)
        })
        .collect();
    fs::remove_dir_all(shop.path("cases")).unwrap();
    shop.write("cases/hundred.yaml", &cases);
    let mut command = shop.bench.command(&["policy", "test", &component, "-o", "json"]);
    command.env("TREAD_LOG", "debug").env("NO_COLOR", "1");
    let start = Instant::now();
    let ran = shop.run(command);
    let took = start.elapsed();
    assert_eq!(ran.code(), 0, "{}\n{}", ran.out(), ran.err());
    let json = ran.json();
    let line = format!("loading the policy {}", json["digest"].as_str().unwrap());
    assert_eq!(ran.err().matches(&line).count(), 1, "{}", ran.err());
    let cases =
        json["results"].as_array().unwrap().iter().filter(|row| row["file"] != "properties");
    assert_eq!(cases.count(), 100);
    println!(
        "100 cases: {} µs after loading ({} µs); {took:?} with properties and the start",
        json["casesNanos"].as_u64().unwrap() / 1000,
        json["loadNanos"].as_u64().unwrap() / 1000
    );
}
