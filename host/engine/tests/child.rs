//! Compiling in a process of its own. This test is its own compiler: started
//! with `serve` it is the child.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, reason = "it says what it does, as every test does")]

#[path = "support/mod.rs"]
mod support;

use rustix::process::{Signal, getpid, kill_process};
use std::ffi::OsString;
use std::io::Write as _;
use std::time::Duration;
use support::*;
use tread_engine::compile::{self, Compiler};
use tread_engine::limits::Limits;
use tread_engine::policy::{Policy, Wishes, compile_ahead};
use tread_engine::sandbox::{Options, Sandbox};
use tread_model::description::Description;
use tread_model::verdict::{FailureKind, Layer};

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("serve") => return compile::serve(&Limits::default()).unwrap(),
        Some("serve-slowly") => return compile::serve(&slow()).unwrap(),
        Some("together") => return together(),
        Some("hang") => loop {
            std::thread::park();
        },
        Some("compute") => loop {
            std::hint::spin_loop();
        },
        Some("killed") => return is_killed(b""),
        Some("killed-in-its-answer") => return is_killed(b"\0half"),
        _ => {}
    }
    let tests: [(&str, fn()); 8] = [
        ("a_child_compiles_what_is_then_served", a_child_compiles_what_is_then_served),
        ("what_the_compiler_refuses_it_refuses", what_the_compiler_refuses_it_refuses),
        ("a_child_that_takes_too_long_is_killed", a_child_that_takes_too_long_is_killed),
        ("a_child_that_needs_too_much_memory_fails", a_child_that_needs_too_much_memory_fails),
        ("a_child_that_is_no_compiler_fails", a_child_that_is_no_compiler_fails),
        ("a_child_that_is_not_there_fails", a_child_that_is_not_there_fails),
        (
            "a_compiler_that_is_killed_from_outside_fails_in_a_way_that_is_not_the_same_everywhere",
            a_compiler_that_is_killed_from_outside_fails_in_a_way_that_is_not_the_same_everywhere,
        ),
        ("several_policies_are_compiled_side_by_side", several_policies_are_compiled_side_by_side),
    ];
    for (name, test) in tests {
        test();
        println!("test {name} ... ok");
    }
}

fn with_child(program: &str, arg: &str, limits: Limits) -> Sandbox {
    let args: Vec<OsString> = vec![arg.into()];
    let compiler = Compiler::Child { program: program.into(), args };
    Sandbox::new(Options { limits, compiler, slots: 1, ..Options::default() }).unwrap()
}

fn this(arg: &str, limits: Limits) -> Sandbox {
    with_child(std::env::current_exe().unwrap().to_str().unwrap(), arg, limits)
}

/// For what fills much memory on a busy machine.
fn slow() -> Limits {
    Limits { compile_time: Duration::from_secs(600), ..Limits::default() }
}

fn a_child_compiles_what_is_then_served() {
    still_serves(&this("serve", Limits::default()));
}

fn what_the_compiler_refuses_it_refuses() {
    let mut component = Guest::default().component();
    let at = component.windows(3).position(|it| it == [0x41, 0x10, 0x76]).expect("a shift by 16");
    component[at] = 0x42;
    let failure = this("serve", Limits::default()).load(&component, None).unwrap_err();
    assert_failure(&failure, FailureKind::CompileFailed, "type mismatch");
}

fn a_child_that_takes_too_long_is_killed() {
    let limits = Limits { compile_time: Duration::from_millis(50), ..Limits::default() };
    let load = |arg, limits| this(arg, limits).load(&Guest::default().component(), None);
    let hangs = Limits { patience: 2, ..limits.clone() };
    let failure = load("hang", hangs).unwrap_err();
    assert_failure(&failure, FailureKind::CompileTimeout, "longer than 0.1 s, though little");
    // What computes ends by its processor time, unless the machine gives it so
    // little of it that it takes ten times as long.
    let begun = std::time::Instant::now();
    let failure = load("compute", limits.clone()).unwrap_err();
    let what = match begun.elapsed() < limits.compile_time * limits.patience {
        true => "longer than 0.05 s of processor time",
        false => "longer than 0.",
    };
    assert_failure(&failure, FailureKind::CompileTimeout, what);
}

/// Of one function with so many calls the compiler makes two gigabytes, and
/// of so many empty functions code that is fifty times as long.
fn a_child_that_needs_too_much_memory_fails() {
    let calls = format!("(func $f {})", "(call $f)".repeat(300_000));
    let functions = "(func)".repeat(300_000);
    let limits = Limits { compile_memory_per_byte: 16, ..slow() };
    for fields in [calls, functions] {
        let component = Guest { fields, ..Guest::default() }.component();
        let failure = this("serve-slowly", limits.clone()).load(&component, None).unwrap_err();
        assert_failure(&failure, FailureKind::CompileFailed, "needed more than");
    }
    still_serves(&this("serve", Limits::default()));
}

fn a_child_that_is_no_compiler_fails() {
    for program in ["/bin/true", "/bin/cat"] {
        let sandbox = with_child(program, "-", Limits::default());
        let failure = sandbox.load(&Guest::default().component(), None).unwrap_err();
        assert_eq!(failure.kind, FailureKind::CompileFailed, "{program}: {failure}");
    }
}

fn a_child_that_is_not_there_fails() {
    let sandbox = with_child("/nowhere/tread", "serve", Limits::default());
    let failure = sandbox.load(&Guest::default().component(), None).unwrap_err();
    assert_failure(&failure, FailureKind::NoRoom, "cannot be started");
}

/// Says this, and ends as if memory had run out.
fn is_killed(said: &[u8]) {
    let mut output = std::io::stdout();
    output.write_all(said).and_then(|()| output.flush()).unwrap();
    kill_process(getpid(), Signal::KILL).unwrap();
}

/// That a plan with this failure is not the same everywhere, is shown by
/// `a_policy_that_failed_to_load_for_lack_of_time_or_room_makes_a_plan_that_others_may_not_get`.
fn a_compiler_that_is_killed_from_outside_fails_in_a_way_that_is_not_the_same_everywhere() {
    for arg in ["killed", "killed-in-its-answer"] {
        let sandbox = this(arg, Limits::default());
        let failure = sandbox.load(&Guest::default().component(), None).unwrap_err();
        assert_failure(&failure, FailureKind::NoRoom, "killed from outside");
    }
}

/// How many are compiled at a time, of two that are asked.
fn at_a_time() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(2)
}

/// Compiles once as many of its kind are there as are compiled at a time.
fn together() {
    let place = std::env::args().nth(2).unwrap();
    std::fs::write(format!("{place}/{}", std::process::id()), "").unwrap();
    while std::fs::read_dir(&place).unwrap().count() < at_a_time() {
        std::thread::sleep(Duration::from_millis(5));
    }
    compile::serve(&Limits::default()).unwrap();
}

fn several_policies_are_compiled_side_by_side() {
    let place = tempfile::tempdir().unwrap();
    let program = std::env::current_exe().unwrap();
    let args = vec!["together".into(), place.path().into()];
    let compiler = Compiler::Child { program, args };
    let limits = Limits { patience: 60, ..Limits::default() };
    let options = Options { limits: limits.clone(), compiler, slots: 1, ..Options::default() };
    let sandbox = Sandbox::new(options).unwrap();
    let policy = |name: &str| {
        let described = Description { name: name.to_owned(), ..described() };
        let section = Some(serde_json::to_vec(&described).unwrap());
        let component = Guest { exported: described, section, ..Guest::default() }.component();
        Policy::new(component.into(), None, Layer::Template, Wishes::default(), &limits).unwrap()
    };
    let policies = ["one", "two", "three"].map(policy);
    let took = compile_ahead(&policies, &sandbox);
    assert_eq!(took.len(), policies.len(), "{took:?}");
    // What was compiled is loaded, and not compiled again.
    let children = || std::fs::read_dir(place.path()).unwrap().count();
    assert_eq!(children(), policies.len());
    for policy in &policies {
        policy.check(&sandbox).unwrap();
    }
    assert_eq!(children(), policies.len());
    assert!(compile_ahead(&policies, &sandbox).is_empty(), "they are loaded");
}
