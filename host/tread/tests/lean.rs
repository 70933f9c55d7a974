//! A policy that does little is little: to build, and to ship.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{Bench, Ran, run, tree};

const HELLO: &str = r#"
use tread_guest_sdk::{Change, Claim, Context, Effect, Policy, Verdict, export};

pub struct Hello;

impl Policy for Hello {
    type Settings = ();
    const NAME: &'static str = "hello";
    const VERSION: &'static str = "1.0.0";
    const SUMMARY: &'static str = "Says that a greeting needs nothing";
    const CLAIMS: &'static [Claim] =
        &[Claim::on("file:/etc/motd", Effect::None, Effect::None)];

    fn classify((): &(), _: &Change, _: &Context<'_>) -> Verdict {
        Verdict::nothing("it is read at every login")
    }
}

export!(Hello);
"#;

/// The crate, with nothing but the SDK.
fn hello() -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lean/hello");
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(dir.join("src")).unwrap();
    let sdk = tree().join("guest-sdk");
    let manifest = format!(
        "[package]\nname = \"hello\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
         [lib]\ncrate-type = [\"cdylib\", \"rlib\"]\n\n\
         [dependencies]\ntread-guest-sdk = {{ path = {sdk:?} }}\n\n\
         [profile.release]\nopt-level = \"s\"\nlto = true\ncodegen-units = 1\n\
         panic = \"abort\"\nstrip = true\n\n[workspace]\n"
    );
    fs::write(dir.join("Cargo.toml"), manifest).unwrap();
    fs::write(dir.join("src/lib.rs"), HELLO).unwrap();
    dir
}

fn in_crate(dir: &Path, mut command: Command) -> Ran {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lean/target");
    command.current_dir(dir).env("CARGO_NET_OFFLINE", "true").env("CARGO_TARGET_DIR", target);
    run(command, b"")
}

#[test]
fn a_policy_that_only_answers_compiles_no_generator_and_is_40_kb_at_most() {
    let dir = hello();
    let built = in_crate(&dir, Bench::new().command(&["policy", "build"]));
    assert_eq!(built.code(), 0, "{}", built.err());
    let size = fs::metadata(dir.join("hello.wasm")).unwrap().len();
    assert!(size <= 40 << 10, "{size} bytes");

    assert_eq!(compiled(&dir), lean("hello"), "what building a policy compiles");
}

/// What `tread policy new` writes, with a claim of each kind.
#[test]
fn what_a_new_policy_is_made_of_is_as_little() {
    let all = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lean/new");
    let _ = fs::remove_dir_all(&all);
    fs::create_dir_all(&all).unwrap();
    let sdk = tree().join("guest-sdk");
    let mut args = vec!["policy", "new", "fresh", "--sdk", sdk.to_str().unwrap()];
    for claim in ["file:/etc/fresh.conf", "unit:fresh.service", "ssh-keys:core", "password:core"] {
        args.extend(["--claim", claim]);
    }
    args.extend(["--claim", "kernel-arguments", "--claim", "os-image"]);
    let made = in_crate(&all, Bench::new().command(&args));
    assert_eq!(made.code(), 0, "{}", made.err());
    let dir = all.join("fresh");
    let built = in_crate(&dir, Bench::new().command(&["policy", "build"]));
    assert_eq!(built.code(), 0, "{}", built.err());
    assert_eq!(compiled(&dir), lean("fresh"), "what building it compiles");
}

/// The crates that a policy is built from.
fn compiled(dir: &Path) -> BTreeSet<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["tree", "--locked", "--target", "wasm32-unknown-unknown", "--edges", "normal"]);
    command.args(["--prefix", "none", "--format", "{p}"]);
    let listed = in_crate(dir, command);
    assert_eq!(listed.code(), 0, "{}", listed.err());
    let out = listed.out();
    out.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// The SDK, what it needs, and the policy: no generator, no procedural macro.
fn lean(policy: &str) -> BTreeSet<String> {
    [
        "arrayvec",
        "fast-glob",
        policy,
        "itoa",
        "memchr",
        "serde",
        "serde_core",
        "serde_json",
        "tread-guest-sdk",
        "zmij",
    ]
    .map(str::to_owned)
    .into()
}
