//! `tread policy build --from`: what another compiler made, in any language.

use crate::build::target;
use crate::configs::files;
use crate::guests::{Action, Guest, act, answering, claim};
use crate::schema::checked;
use crate::support::{Bench, Ran, run, tree};
use tread_model::description::Declarations;
use tread_model::digest::Sha256;
use tread_model::effect::Effect;

/// A policy that was written by hand against the contract.
fn guest() -> Guest {
    let claims = vec![claim("file:/etc/a", Effect::None, Effect::Restart)];
    answering("by-hand", claims, vec![act(0, &[Action::Restart("a.service")])])
}

fn build(bench: &Bench, args: &[&str]) -> Ran {
    bench.tread(&[&["policy", "build", "--from"], args].concat())
}

fn fails(bench: &Bench, module: &[u8]) -> String {
    bench.write("module.wasm", module);
    let ran = build(bench, &["module.wasm"]);
    assert_eq!((ran.code(), ran.out().as_str()), (1, ""), "{}", ran.err());
    assert_eq!(ran.err().lines().count(), 1, "{}", ran.err());
    ran.err()
}

/// With or without the section that wit-bindgen would embed.
#[test]
fn a_core_module_and_a_component_become_a_policy_that_plans() {
    let bench = Bench::new();
    let undescribed = Guest { section: None, ..guest() };
    for (file, bytes) in
        [("core.wasm", guest().module()), ("component.wasm", undescribed.component())]
    {
        bench.write(file, bytes);
        let ran = build(&bench, &[file]);
        assert_eq!(ran.code(), 0, "{file}: {}", ran.err());
        let built = std::fs::read(bench.dir.path().join("by-hand.wasm")).unwrap();
        let digest = Sha256::of(&built);
        assert_eq!(
            ran.out(),
            format!(
                "by-hand 1.2.3: A policy for tests\n  claims file:/etc/a (none to restart)\n  \
                 imports tread:policy/host@1.0.0#log, tread:policy/types@1.0.0\nby-hand.wasm: {} bytes, {digest}\n",
                built.len()
            )
        );
        let args = ["-o", "json", "--policy", "by-hand.wasm"];
        let plan = checked(&bench.plan(files(&[]), files(&[("/etc/a", "x")]), &args));
        assert_eq!(plan["summary"], "restart a.service; no drain, no reboot");
        assert_eq!(plan["changes"][0]["decidedBy"]["digest"], digest.to_string());
        // The same once more, and a policy stays as it is.
        assert_eq!(build(&bench, &[file, "-o", "again.wasm"]).code(), 0);
        assert_eq!(std::fs::read(bench.dir.path().join("again.wasm")).unwrap(), built);
        assert_eq!(build(&bench, &["by-hand.wasm", "-o", "again.wasm"]).code(), 0);
        assert_eq!(std::fs::read(bench.dir.path().join("again.wasm")).unwrap(), built);
        let ran = bench.tread(&["policy", "inspect", "again.wasm"]);
        assert_eq!(ran.code(), 0, "{}", ran.out());
    }
}

#[test]
fn a_core_module_of_each_version_of_the_contract_becomes_a_policy_of_that_version() {
    let bench = Bench::new();
    let published = std::fs::read_dir(tree().join("tests/contract")).unwrap();
    let published = published.map(|it| it.unwrap()).filter(|it| it.path().is_dir());
    let mut versions: Vec<String> =
        published.map(|it| it.file_name().into_string().unwrap()).collect();
    versions.sort();
    assert!(versions.len() >= 3, "{versions:?}");
    for version in versions {
        let declares = (version != "1.0.0").then(Declarations::default);
        let version: &'static str = version.leak();
        bench.write("core.wasm", Guest { version, declares, ..guest() }.module());
        let ran = build(&bench, &["core.wasm"]);
        assert_eq!(ran.code(), 0, "{version}: {}", ran.err());
        let found = bench.tread(&["policy", "inspect", "by-hand.wasm", "-o", "json"]).json();
        assert_eq!((&found["contract"], &found["state"]), (&version.into(), &"Loaded".into()));
    }
    let imports = r#"(import "tread:policy/characters@{version}" "put" (func $put (param i32)))"#;
    bench.write("core.wasm", Guest { version: "1.2.0", imports, ..guest() }.module());
    assert_eq!(build(&bench, &["core.wasm"]).code(), 0);
    let found = bench.tread(&["policy", "inspect", "by-hand.wasm", "-o", "json"]).json();
    assert_eq!(found["imports"][0], "tread:policy/characters@1.2.0#put");
}

#[test]
fn the_core_module_of_the_sdk_becomes_the_component_that_build_makes_of_its_crate() {
    let bench = Bench::new();
    let sdk = tree().join("guest-sdk");
    // A name of its own, so that no other test builds the same file.
    let claim = ["--claim", "file:/etc/a", "--sdk", sdk.to_str().unwrap()];
    let made = bench.tread(&[&["policy", "new", "from-a-module"], &claim[..]].concat());
    assert_eq!(made.code(), 0, "{}", made.err());
    let mut command = bench.command(&["policy", "build", "from-a-module"]);
    command.env("CARGO_TARGET_DIR", target());
    let ran = run(command, b"");
    assert_eq!(ran.code(), 0, "{}", ran.err());
    let module = target().join("wasm32-unknown-unknown/release/from_a_module.wasm");
    let ran = build(&bench, &[module.to_str().unwrap()]);
    assert_eq!(ran.code(), 0, "{}", ran.err());
    let dir = bench.dir.path();
    let from = std::fs::read(dir.join("from-a-module.wasm")).unwrap();
    assert_eq!(from, std::fs::read(dir.join("from-a-module/from-a-module.wasm")).unwrap());
}

#[test]
fn a_module_for_wasi_is_told_in_one_sentence_which_imports_and_that_policies_have_none() {
    let bench = Bench::new();
    let core = r#"(module
        (import "wasi_snapshot_preview1" "fd_write" (func (param i32 i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "proc_exit" (func (param i32))))"#;
    let component = r#"(component
        (import "wasi:clocks/wall-clock@0.2.0" (instance (export "now" (func)))))"#;
    for (text, imports) in [
        (core, "wasi_snapshot_preview1 (fd_write, proc_exit)"),
        (component, "wasi:clocks/wall-clock@0.2.0 (now)"),
    ] {
        let error = fails(&bench, &wat::parse_str(text).unwrap());
        assert!(error.contains(imports), "{error}");
        assert!(error.contains("a policy has no WASI"), "{error}");
    }
}

/// What to do about a contract that this tread does not speak.
const REMEDY: &str = "build it with the SDK of this tread, or take one that speaks 2.0.0";

#[test]
fn what_speaks_another_contract_is_told_what_to_do_by_each_command() {
    let bench = Bench::new();
    bench.write("newer.wasm", Guest { version: "2.0.0", ..guest() }.component());
    for name in ["old.json", "new.json"] {
        bench.write(name, r#"{"ignition": {"version": "3.4.0"}}"#);
    }
    for args in [
        &["policy", "inspect", "newer.wasm"][..],
        &["policy", "pack", "newer.wasm", "-n", "a", "--name", "b"],
        &["policy", "build", "--from", "newer.wasm"],
        &["policy", "bench", "newer.wasm"],
    ] {
        let ran = bench.tread(args);
        assert_eq!(ran.code(), 1, "{args:?}");
        let said = ran.out() + &ran.err();
        assert!(said.contains(REMEDY), "{args:?}: {said}");
        assert!(!said.contains("shows all that is known"), "{args:?}: {said}");
    }
    let changed = r#"{"ignition": {"version": "3.4.0"}, "storage": {"files":
        [{"path": "/etc/a", "contents": {"source": "data:,a"}}]}}"#;
    bench.write("new.json", changed);
    let ran = bench.tread(&["plan", "--policy", "newer.wasm", "old.json", "new.json"]);
    let said = ran.out() + &ran.err();
    assert!(said.contains(REMEDY), "{said}");
}

#[test]
fn what_is_missing_is_named() {
    let bench = Bench::new();
    let wat = |text: &str| wat::parse_str(text).unwrap();
    let classifier = "tread:policy/classifier@1.0.0";
    let wrong = format!(
        r#"(module (memory (export "memory") 1)
             (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) unreachable)
             (func (export "{classifier}#describe") (result i32) unreachable)
             (func (export "{classifier}#check-settings") (param i32 i32) (result i32) unreachable)
             (func (export "{classifier}#classify") (param i32) (result i32) unreachable))"#
    );
    let claims = || vec![claim("file:/etc/a", Effect::None, Effect::None)];
    let trapping =
        Guest { describe: Some("unreachable".into()), ..answering("a", claims(), vec![]) };
    let nameless = answering("Not A Name", claims(), vec![]);
    let other = Guest { section: None, version: "2.0.0", ..guest() };
    let differing = Guest { exported: answering("other", claims(), vec![]).exported, ..guest() };
    for (bytes, parts) in [
        (
            wat("(module)"),
            &["classifier@1.0.0#describe", "#classify", "memory", "cabi_realloc"][..],
        ),
        (wat(r#"(module (import "env" "time" (func)))"#), &["env (time)", "nothing but"]),
        (wat(&wrong), &["not as the contract has them", "classify"]),
        (wat("(component)"), &["does not export tread:policy/classifier"]),
        (trapping.module(), &["asked what it is", "trap"]),
        (nameless.module(), &["bad-description", "name"]),
        (other.component(), &["version 2.0.0", REMEDY]),
        (other.module(), &["version 2.0.0", REMEDY]),
        (differing.component(), &["build it again"]),
        (b"(module)".to_vec(), &["WAT", "wasm-tools parse"]),
        (b"\x7fELF\x02\x01\x01\0".to_vec(), &["native program"]),
        (vec![], &["empty file"]),
        (b"\0asm\x01\0\0\0\x05\xff".to_vec(), &["broken"]),
    ] {
        let error = fails(&bench, &bytes);
        for part in parts {
            assert!(error.contains(part), "{part} in {error}");
        }
    }
}

#[test]
fn a_module_is_not_written_over_by_its_policy() {
    let bench = Bench::new();
    let path = bench.write("by-hand.wasm", guest().module());
    let dir = bench.dir.path();
    std::os::unix::fs::symlink("by-hand.wasm", dir.join("link.wasm")).unwrap();
    std::fs::hard_link(&path, dir.join("hard.wasm")).unwrap();
    for out in [&[][..], &["-o", "by-hand.wasm"], &["-o", "link.wasm"], &["-o", "hard.wasm"]] {
        let ran = build(&bench, &[&["by-hand.wasm"], out].concat());
        assert_eq!(ran.code(), 2, "{out:?}");
        let words = "would be written over what it is made from: name another file with -o";
        assert!(ran.err().contains(words), "{}", ran.err());
        assert_eq!(std::fs::read(&path).unwrap(), guest().module());
    }
    assert_eq!(build(&bench, &["by-hand.wasm", "-o", "other.wasm"]).code(), 0);
    let both = bench.tread(&["policy", "build", "dir", "--from", "by-hand.wasm"]);
    assert_eq!(both.code(), 2);
}
