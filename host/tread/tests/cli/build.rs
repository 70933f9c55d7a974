//! `tread policy build`, as a stranger meets it: with the README open, in a
//! directory of their own.

use crate::configs::files;
use crate::schema::checked;
use crate::support::{Bench, Ran, run, tree};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The first block in this language after a heading of the README.
fn block(heading: &str, language: &str) -> String {
    let readme = std::fs::read_to_string(tree().join("README.md")).unwrap();
    let (_, section) = readme.split_once(heading).expect("the README has the heading");
    let mut lines = section.lines().map(str::trim_end);
    let fence = format!("```{language}");
    let indent =
        lines.find_map(|line| line.strip_suffix(&fence)).expect("the section has the block");
    let inside = lines.take_while(|line| line.trim() != "```");
    inside.map(|line| format!("{}\n", line.strip_prefix(indent).unwrap_or(line))).collect()
}

const AUTHORS: &str = "## If you own a template: a policy in ten minutes";

/// The crate `chrony`, made by the command of the README.
fn chrony(bench: &Bench) -> PathBuf {
    let readme = std::fs::read_to_string(tree().join("README.md")).unwrap();
    let (_, command) = readme.split_once("    tread policy new ").expect("the README makes one");
    let (command, _) = command.split_once("\n\n").unwrap_or((command, ""));
    let sdk = tree().join("guest-sdk").display().to_string();
    let words = command.lines().take_while(|line| line.trim() != "cd chrony");
    let words: Vec<_> =
        words.flat_map(str::split_whitespace).filter(|word| *word != "\\").collect();
    // The binary of a test was not installed from anywhere.
    let args: Vec<_> = ["policy", "new", "--sdk", &sdk].into_iter().chain(words).collect();
    let made = bench.tread(&args);
    assert_eq!(made.code(), 0, "{args:?}: {}", made.err());
    bench.dir.path().join("chrony")
}

/// Text without what its layout adds.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Where such crates are built; kept, so that only the first time is slow.
pub fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("guests")
}

fn build(bench: &Bench, args: &[&str]) -> Ran {
    let mut command = bench.command(&[&["policy", "build"], args].concat());
    command.env("CARGO_TARGET_DIR", target());
    run(command, b"")
}

#[test]
fn the_policy_of_the_readme_is_tested_built_and_used_by_a_stranger() {
    let bench = Bench::new();
    let dir = chrony(&bench);
    let source = std::fs::read_to_string(dir.join("src/lib.rs")).unwrap();
    let shown = block(AUTHORS, "rust");
    assert!(words(&source).contains(&words(&shown)), "{shown}\nis not in\n{source}");
    // As the README says: chronyd has no reload.
    let (asks, takes) = ("restart: bool = false,", "restart: bool = true,");
    assert_eq!(source.matches(asks).count(), 1, "{source}");
    std::fs::write(dir.join("src/lib.rs"), source.replace(asks, takes)).unwrap();
    let mut test = Command::new(env!("CARGO"));
    test.args(["test", "--quiet", "--lib"]).current_dir(&dir).env("CARGO_TARGET_DIR", target());
    let ran = run(test, b"");
    assert_eq!(ran.code(), 0, "{}{}", ran.out(), ran.err());
    assert!(ran.out().contains("test result: ok."), "{}", ran.out());

    bench.write("chrony/cases/of-the-readme.yaml", block(AUTHORS, "yaml"));
    let mut cases = bench.command(&["policy", "test", "chrony"]);
    cases.env("CARGO_TARGET_DIR", target());
    let ran = run(cases, b"");
    assert_eq!(ran.code(), 0, "{}{}", ran.out(), ran.err());

    let ran = build(&bench, &["chrony"]);
    assert_eq!(ran.code(), 0, "{}", ran.err());
    assert!(ran.first_line().starts_with("chrony 0.1.0: "), "{}", ran.out());
    assert!(ran.out().contains("claims file:/etc/chrony.conf (none to restart)"), "{}", ran.out());
    let built = std::fs::read(dir.join("chrony.wasm")).unwrap();

    let again = build(&bench, &["chrony", "-o", "again.wasm"]);
    assert_eq!(again.code(), 0, "{}", again.err());
    assert_eq!(std::fs::read(bench.dir.path().join("again.wasm")).unwrap(), built);

    let listed = bench.tread(&["policies", "--policy", "chrony/chrony.wasm"]).out();
    let row = listed.lines().find(|line| line.starts_with("chrony ")).unwrap();
    assert!(row.contains("template") && row.ends_with("Loaded"), "{row}");

    for (before, after, summary) in [
        ("server a\n", "server a\nserver b\n", "restart chronyd.service; no drain, no reboot"),
        ("server a\n", "# ours\nserver a\n", "no action; no drain, no reboot"),
    ] {
        let (old, new) =
            (files(&[("/etc/chrony.conf", before)]), files(&[("/etc/chrony.conf", after)]));
        let args = ["-o", "json", "--policy", "chrony/chrony.wasm"];
        let plan = checked(&bench.plan(old, new, &args));
        assert_eq!(plan["summary"], summary);
        assert_eq!(plan["changes"][0]["decidedBy"]["policy"], "chrony");
    }
}

#[test]
fn the_rules_of_the_readme_are_rules() {
    let bench = Bench::new();
    bench.write("rules.yaml", block("## If you are an admin", "yaml"));
    for path in ["/etc/chrony.conf", "/etc/chrony.d/a/b.conf"] {
        let ran = bench.plan(files(&[]), files(&[(path, "x")]), &["--rules", "rules.yaml"]);
        assert_eq!(
            ran.first_line(),
            "restart chronyd.service; no drain, no reboot",
            "{}",
            ran.err()
        );
    }
}

#[test]
fn where_no_compiler_for_webassembly_is_one_sentence_says_how_to_get_it() {
    let bench = Bench::new();
    bench.write("policy/Cargo.toml", "[package]\nname = \"a\"\n");
    std::fs::create_dir(bench.dir.path().join("bin")).unwrap();
    let mut command = bench.command(&["policy", "build", "policy"]);
    command.env("PATH", bench.dir.path().join("bin")).env_remove("CARGO").env_remove("RUSTC");
    let ran = run(command, b"");
    assert_eq!(ran.code(), 1, "{}", ran.out());
    assert_eq!(ran.err().lines().count(), 1, "{}", ran.err());
    for part in ["no Rust compiler for WebAssembly", "rustup target add wasm32-unknown-unknown"] {
        assert!(ran.err().contains(part), "{part} in {}", ran.err());
    }
}

#[test]
fn a_directory_that_is_no_policy_is_named_with_what_is_missing() {
    let bench = Bench::new();
    std::fs::create_dir(bench.dir.path().join("empty")).unwrap();
    let ran = build(&bench, &["empty"]);
    assert_eq!(ran.code(), 1);
    assert!(ran.err().contains("empty has no Cargo.toml"), "{}", ran.err());

    let manifest = |kind: &str| {
        format!(
            "[package]\nname = \"plain\"\nedition = \"2024\"\n[lib]\ncrate-type = [\"{kind}\"]\n"
        )
    };
    bench.write("plain/src/lib.rs", "");
    for (kind, part) in [("rlib", "crate-type"), ("cdylib", "export!")] {
        bench.write("plain/Cargo.toml", manifest(kind));
        let ran = build(&bench, &["plain"]);
        assert_eq!(ran.code(), 1, "{kind}");
        let error = ran.err();
        let last = error.lines().last().unwrap_or_default();
        assert!(last.starts_with("error: ") && last.contains(part), "{part} in {error}");
    }

    bench.write("plain/src/lib.rs", "this is no Rust");
    let ran = build(&bench, &["plain"]);
    assert_eq!(ran.code(), 1);
    assert!(ran.err().contains("`cargo build` failed"), "{}", ran.err());
}
