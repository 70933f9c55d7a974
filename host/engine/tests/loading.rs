//! What is loaded, and what is refused by which name.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::sync::OnceLock;
use std::time::Duration;
use support::*;
use tread_engine::inspect::{description, inspect};
use tread_engine::limits::Limits;
use tread_engine::sandbox::{Allocator, Options, Sandbox};
use tread_model::description::{Declarations, SettingsDescription};
use tread_model::digest::Sha256;
use tread_model::effect::Effect;
use tread_model::verdict::FailureKind;

fn shared() -> &'static Sandbox {
    static SANDBOX: OnceLock<Sandbox> = OnceLock::new();
    SANDBOX.get_or_init(|| sandbox(patient()))
}

fn wat(text: &str) -> Vec<u8> {
    wat::parse_str(text).expect("the component's text")
}

#[test]
fn a_policy_is_inspected_without_running_it() {
    let component = Guest::default().component();
    let found = inspect(&component, &Limits::default());
    assert_eq!(found.problems, []);
    assert_eq!(found.digest, Sha256::of(&component));
    assert_eq!(found.size, component.len());
    assert!(found.is_component);
    assert_eq!(found.contract.as_deref(), Some("1.0.0"));
    assert_eq!(found.description, Some(described()));
    let imports = ["tread:policy/host@1.0.0#log", "tread:policy/types@1.0.0"];
    assert_eq!(found.imports, imports, "the second one brings types only");
    assert_eq!(found.exports, ["tread:policy/classifier@1.0.0"]);
}

#[test]
fn what_describe_returns_is_what_a_builder_writes() {
    let guest = Guest { section: None, ..Guest::default() };
    assert_eq!(shared().describe(&guest.component()), Ok((described(), Declarations::default())));
}

#[test]
fn files_that_are_no_component_are_named_so() {
    let good = Guest::default().component();
    let core = wat("(module (func (export \"f\")))");
    for (bytes, words) in [
        (&b""[..], "empty"),
        (b"hello, world", "no WebAssembly"),
        (b"\0asm", "broken"),
        (b"\0asm\x0d\0\x01\0\xff\xff", "broken"),
        (&core, "core module"),
        (&good[..good.len() - 1], ""),
        (&good[..good.len() / 2], ""),
    ] {
        let failure = is_not_loaded(shared(), bytes);
        assert_failure(&failure, FailureKind::NotAComponent, words);
        let found = inspect(bytes, &Limits::default());
        assert_eq!(found.problems.first().map(|it| it.kind), Some(FailureKind::NotAComponent));
        let failure = description(bytes, &Limits::default()).unwrap_err();
        assert!(
            matches!(failure.kind, FailureKind::NotAComponent | FailureKind::BadDescription),
            "{failure}"
        );
    }
}

#[test]
fn no_cut_and_no_flipped_byte_is_a_crash() {
    let good = Guest::default().component();
    let limits = Limits::default();
    for at in 0..good.len() {
        let cut = inspect(&good[..at], &limits);
        assert!(!cut.problems.is_empty(), "cut at {at}");
        let mut flipped = good.clone();
        flipped[at] ^= 0x81;
        inspect(&flipped, &limits);
        let _ = description(&flipped, &limits);
    }
}

#[test]
fn types_within_types_do_not_fill_the_host_s_stack() {
    let deep = |levels: usize| {
        let mut types = vec![1];
        types.extend([0x42, 1, 1].repeat(levels));
        types.extend([0x42, 0]);
        let mut component = b"\0asm\x0d\0\x01\0".to_vec();
        append(&mut component, 7, &types);
        component
    };
    let failure = is_not_loaded(shared(), &deep(2_000_000));
    assert_failure(&failure, FailureKind::NotAComponent, "too deep");
    // As deep as it may be, and with that no policy.
    let failure = is_not_loaded(shared(), &deep(400));
    assert_failure(&failure, FailureKind::WrongWorld, "does not export");
}

#[test]
fn a_crowd_of_imports_is_refused_and_not_listed_in_full() {
    let functions: String = (0..2000).map(|n| format!("(export \"f{n}\" (func))")).collect();
    let imports: String =
        (0..2000).map(|n| format!("(import \"a:b/c{n}\" (instance (type $t)))")).collect();
    let component = wat(&format!("(component (type $t (instance {functions})) {imports})"));
    let failure = is_not_loaded(shared(), &component);
    assert_failure(&failure, FailureKind::ForbiddenImport, "a:b/c0#f0");
    let found = inspect(&component, &Limits::default());
    assert!(found.imports.len() <= 128, "{}", found.imports.len());
}

#[test]
fn a_broken_body_is_refused_by_the_compiler() {
    let guest = Guest::default();
    let mut component = guest.component();
    // `i32.const` in the body of `$realloc` becomes an instruction that leaves
    // the wrong type.
    let at = component.windows(3).position(|it| it == [0x41, 0x10, 0x76]).expect("a shift by 16");
    component[at] = 0x42;
    let failure = is_not_loaded(shared(), &component);
    assert_failure(&failure, FailureKind::CompileFailed, "type mismatch");
}

#[test]
fn a_file_that_is_too_large_is_not_even_read() {
    let large = vec![0u8; 200 << 20];
    let failure = is_not_loaded(shared(), &large);
    assert_failure(&failure, FailureKind::TooLarge, "209715200 bytes");
    assert_failure(
        &description(&large, &Limits::default()).unwrap_err(),
        FailureKind::TooLarge,
        "8388608",
    );
}

#[test]
fn imports_other_than_log_are_refused_by_name() {
    let import = |what: &str| wat(&format!("(component (import {what}))"));
    for (what, named) in [
        (
            r#""wasi:cli/environment@0.2.0" (instance
                (export "get-arguments" (func (result (list string)))))"#,
            "wasi:cli/environment@0.2.0#get-arguments",
        ),
        (
            r#""tread:policy/host@1.0.0" (instance (export "now" (func (result u64))))"#,
            "tread:policy/host@1.0.0#now",
        ),
        (
            r#""tread:policy/types@1.0.0" (instance (export "log" (func (param "line" string))))"#,
            "tread:policy/types@1.0.0#log",
        ),
        (
            r#""tread:policy/hostile@1.0.0" (instance (export "log" (func (param "line" string))))"#,
            "tread:policy/hostile@1.0.0#log",
        ),
        (
            r#""tread:policy/characters@1.2.0" (instance (export "log" (func (param "line" string))))"#,
            "tread:policy/characters@1.2.0#log",
        ),
        (
            r#""tread:policy/host@1.2.0" (instance (export "put" (func (param "character" char))))"#,
            "tread:policy/host@1.2.0#put",
        ),
        (r#""read" (func (result string))"#, "read"),
        (r#""other:types/words@1.0.0" (instance)"#, "other:types/words@1.0.0"),
        (
            r#""tread:policy/host@1.0.0" (instance (export "file" (type (sub resource))))"#,
            "tread:policy/host@1.0.0#file",
        ),
    ] {
        let component = import(what);
        let failure = is_not_loaded(shared(), &component);
        assert_failure(&failure, FailureKind::ForbiddenImport, &format!("it imports {named}:"));
        assert!(inspect(&component, &Limits::default()).imports.contains(&named.to_owned()));
    }
}

#[test]
fn a_start_with_too_much_memory_or_table_is_refused() {
    let big = Guest { pages: 1000, ..Guest::default() };
    let failure = is_not_loaded(shared(), &big.component());
    assert_failure(&failure, FailureKind::Memory, "65536000 bytes");
    for (fields, words) in [
        ("(table 20000 funcref)", "20000 elements"),
        ("(table 1 funcref) (table 1 funcref) (table 1 funcref) (table 1 funcref)", "5 tables"),
        ("(memory 1)", "memories"),
    ] {
        let guest = Guest { fields: fields.to_owned(), ..Guest::default() };
        assert_failure(&is_not_loaded(shared(), &guest.component()), FailureKind::Memory, words);
    }
}

#[test]
fn a_trap_at_the_start_is_a_trap_and_an_endless_start_ends() {
    let start = |body: &str| Guest {
        fields: format!("(func $begin {body}) (start $begin)"),
        ..Guest::default()
    };
    let failure = is_not_loaded(shared(), &start("(unreachable)").component());
    assert_failure(&failure, FailureKind::Trap, "unreachable");
    let failure = is_not_loaded(shared(), &start("(loop $l (br $l))").component());
    assert_failure(&failure, FailureKind::OutOfFuel, "");
    let describes = Guest { describe: Some("(unreachable)".to_owned()), ..Guest::default() };
    assert_failure(&is_not_loaded(shared(), &describes.component()), FailureKind::Trap, "");
}

#[test]
fn another_contract_is_the_wrong_world() {
    let failure = is_not_loaded(shared(), &wat("(component)"));
    assert_failure(&failure, FailureKind::WrongWorld, "does not export tread:policy/classifier");
    let next = Guest { version: "2.0.0", ..Guest::default() };
    let failure = is_not_loaded(shared(), &next.component());
    assert_failure(&failure, FailureKind::WrongWorld, "exports version 2.0.0");
    let found = inspect(&next.component(), &Limits::default());
    assert_eq!(found.contract.as_deref(), Some("2.0.0"));
    // The right name over nothing that is in the contract.
    let hollow =
        wat(r#"(component (instance $i) (export "tread:policy/classifier@1.0.0" (instance $i)))"#);
    let failure = is_not_loaded(shared(), &hollow);
    assert_failure(&failure, FailureKind::WrongWorld, "has no describe");
}

#[test]
fn a_later_minor_version_of_the_contract_is_taken() {
    let later = Guest { version: "1.3.0", ..Guest::default() };
    let module = shared().load(&later.component(), None).unwrap();
    assert!(ask(shared(), &module).is_ok());
    assert_eq!(inspect(&later.component(), &Limits::default()).contract.as_deref(), Some("1.3.0"));
}

#[test]
fn the_custom_section_has_to_say_what_the_function_says() {
    let missing = Guest { section: None, ..Guest::default() };
    let broken = Guest { section: Some(b"{\"name\":1}".to_vec()), ..Guest::default() };
    let mut other = described();
    other.claims.push(claim("unit:*", Effect::None, Effect::None));
    let differs = Guest { section: Some(serde_json::to_vec(&other).unwrap()), ..Guest::default() };
    let mut twice = Guest::default().component();
    append_section(&mut twice, "tread:policy", b"{}");
    for (component, words) in [
        (missing.component(), "no custom section"),
        (broken.component(), "invalid type"),
        (
            differs.component(),
            "the number of claims is 2 in its custom section and 1 by its function `describe`: \
             build it again",
        ),
        (twice, "more than one"),
    ] {
        let failure = is_not_loaded(shared(), &component);
        assert_failure(&failure, FailureKind::BadDescription, words);
    }
}

#[test]
fn a_description_that_breaks_the_rules_is_refused_even_if_both_agree() {
    let mut bad = described();
    bad.name = "No Name".to_owned();
    let section = Some(serde_json::to_vec(&bad).unwrap());
    let guest = Guest { exported: bad, section, ..Guest::default() };
    let failure = is_not_loaded(shared(), &guest.component());
    assert_failure(&failure, FailureKind::BadDescription, "No Name");
    let failure = shared().describe(&guest.component()).unwrap_err();
    assert_failure(&failure, FailureKind::BadDescription, "No Name");
}

#[test]
fn a_whole_description_crosses_the_border() {
    let mut full = described();
    full.claims[0].with_unchanged = true;
    full.claims.push(claim("unit:chronyd.service", Effect::Reload, Effect::Refuse));
    let text = |text: &str| text.to_owned();
    full.settings = Some(SettingsDescription { defaults: text("{\"a\":1}"), schema: text("{}") });
    let section = Some(serde_json::to_vec(&full).unwrap());
    let guest = Guest { exported: full.clone(), section, ..Guest::default() };
    assert_eq!(shared().describe(&guest.component()), Ok((full, Declarations::default())));
    assert!(shared().load(&guest.component(), None).is_ok());
}

#[test]
fn a_description_as_long_as_the_limit_is_read_and_no_longer_one() {
    let section = serde_json::to_vec(&described()).unwrap();
    let component = Guest::default().component();
    let limits = |bytes| Limits { description_bytes: bytes, ..Limits::default() };
    assert_eq!(description(&component, &limits(section.len())), Ok(described()));
    let failure = description(&component, &limits(section.len() - 1)).unwrap_err();
    assert_failure(&failure, FailureKind::BadDescription, "are allowed");
}

#[test]
fn a_pinned_digest_has_to_match() {
    let component = Guest::default().component();
    let digest = Sha256::of(&component);
    assert_eq!(shared().load(&component, Some(&digest)).unwrap().digest(), digest);
    let other = Sha256::of(b"other");
    let failure = shared().load(&component, Some(&other)).unwrap_err();
    assert_failure(&failure, FailureKind::DigestMismatch, &other.to_string());
}

#[test]
fn a_module_that_compiles_too_long_is_given_up() {
    let limits = Limits { compile_time: Duration::from_nanos(1), ..Limits::default() };
    let failure = sandbox(limits).load(&bomb(), None).unwrap_err();
    assert_failure(&failure, FailureKind::CompileTimeout, "took longer");
    still_serves(shared());
}

/// Small as a file, long to compile.
fn bomb() -> Vec<u8> {
    let add = "(i64.mul (i64.xor (local.get 0) (i64.const 7)) (local.get 0)) (local.set 0)";
    let function = format!("(func (param i64) {})", add.repeat(2000));
    Guest { fields: function.repeat(5), ..Guest::default() }.component()
}

#[test]
fn modules_take_no_more_memory_together_than_there_is_room_for() {
    let dir = tempfile::tempdir().unwrap();
    let cache_dir = Some(dir.path().join("cache"));
    let with = |code_bytes| {
        let cache_dir = cache_dir.clone();
        Sandbox::new(Options { cache_dir, slots: 1, code_bytes, ..Options::default() }).unwrap()
    };
    let [one, two] = [2, 3].map(|pages| Guest { pages, ..Guest::default() }.component());
    for component in [&one, &two] {
        with(usize::MAX).load(component, None).unwrap();
    }
    let compiled = std::fs::read_dir(cache_dir.as_ref().unwrap()).unwrap();
    let sizes = compiled.map(|entry| entry.unwrap().metadata().unwrap().len());
    let largest = usize::try_from(sizes.max().unwrap()).unwrap();
    // From the cache, and compiled anew.
    for cache_dir in [cache_dir.clone(), None] {
        let code_bytes = largest * 3 / 2;
        let sandbox = Options { cache_dir, slots: 1, code_bytes, ..Options::default() };
        let sandbox = Sandbox::new(sandbox).unwrap();
        let first = sandbox.load(&one, None).unwrap();
        let failure = sandbox.load(&two, None).unwrap_err();
        assert_failure(&failure, FailureKind::NoRoom, "remove another policy");
        // What comes with the program is there in any case.
        sandbox.load_own(&two, Sha256::of(&two)).unwrap();
        ask(&sandbox, &first).unwrap();
        drop(first);
        sandbox.load(&two, None).unwrap();
    }
}

#[test]
fn loads_at_the_same_time_do_not_disturb_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let cache_dir = Some(dir.path().join("cache"));
    let sandbox = Sandbox::new(Options { cache_dir, slots: 1, ..Options::default() }).unwrap();
    let component = Guest::default().component();
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let module = sandbox.load(&component, None).unwrap();
                    // More callers than slots: they wait.
                    for _ in 0..20 {
                        ask(&sandbox, &module).unwrap();
                    }
                })
            })
            .collect();
        all.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn without_address_space_for_a_pool_policies_run_on_demand() {
    // More than a processor can address.
    let sandbox = Sandbox::new(Options { slots: 1 << 16, ..Options::default() }).unwrap();
    assert_eq!(sandbox.allocator(), Ok(Allocator::OnDemand));
    assert_eq!(shared().allocator(), Ok(Allocator::Pooling));
    still_serves(&sandbox);
    let failed =
        fails(&sandbox, &classifying("(drop (memory.grow (i32.const 60000))) (i32.const 0)"));
    assert_failure(&failed.failure, FailureKind::Memory, "bytes of memory");
    let failed = fails(&sandbox, &classifying("(i32.load (i32.const 0x7fff0000))"));
    assert_failure(&failed.failure, FailureKind::Trap, "out of bounds");
}
