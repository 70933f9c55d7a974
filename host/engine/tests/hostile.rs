//! Whatever a policy does when it is asked has a stable name, and never harms
//! the next call.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::sync::OnceLock;
use std::time::Duration;
use support::*;
use tread_engine::limits::Limits;
use tread_engine::sandbox::Sandbox;
use tread_model::verdict::{self, FailureKind, Layer};

fn shared() -> &'static Sandbox {
    static SANDBOX: OnceLock<Sandbox> = OnceLock::new();
    SANDBOX.get_or_init(|| sandbox(Limits { fuel: 5_000_000, ..patient() }))
}

const LOOP: &str = "(loop $again (br $again)) (unreachable)";

#[test]
fn a_good_policy_answers() {
    let module = shared().load(&Guest::default().component(), None).unwrap();
    let reply = ask(shared(), &module).unwrap();
    let expected = verdict::Verdict {
        answer: verdict::Answer::Act(vec![verdict::Action::Reload("crio.service".to_owned())]),
        reason: "because".to_owned(),
    };
    assert_eq!(reply.verdicts, [Some(expected), None]);
    assert!(reply.spent.unwrap().fuel > 0);
    assert_eq!(reply.log, [""; 0]);
}

#[test]
fn the_same_call_uses_the_same_fuel() {
    let module = shared().load(&Guest::default().component(), None).unwrap();
    let first = ask(shared(), &module).unwrap();
    for _ in 0..3 {
        assert_eq!(ask(shared(), &module).unwrap(), first);
    }
}

#[test]
fn an_instance_remembers_nothing() {
    let guest = Guest {
        fields: "(global $asked (mut i32) (i32.const 0))".to_owned(),
        ..classifying(
            "(if (i32.or (global.get $asked) (i32.load (i32.const 60000)))
               (then (unreachable)))
             (global.set $asked (i32.const 1))
             (i32.store (i32.const 60000) (i32.const 1))
             (i32.store (i32.const 60008) (i32.const 0))
             (i32.const 60004)",
        )
    };
    let module = shared().load(&guest.component(), None).unwrap();
    for _ in 0..5 {
        assert_eq!(ask(shared(), &module).unwrap().verdicts, [None, None]);
    }
}

#[test]
fn an_endless_loop_runs_out_of_fuel() {
    let failed = fails(shared(), &classifying(LOOP));
    assert_failure(&failed.failure, FailureKind::OutOfFuel, "fuel");
    assert!(failed.reproducible);
    assert!(failed.spent.unwrap().fuel >= 5_000_000, "{}", failed.spent.unwrap().fuel);
}

#[test]
fn what_fuel_does_not_stop_the_clock_stops() {
    let limits =
        Limits { fuel: u64::MAX >> 1, deadline: Duration::from_millis(30), ..Limits::default() };
    let failed = fails_within(shared(), &classifying(LOOP), &limits);
    assert_failure(&failed.failure, FailureKind::Deadline, "processor time");
    assert!(!failed.reproducible);
}

#[test]
fn filling_memory_again_and_again_is_paid_for_by_the_byte() {
    let body = "(loop $again
        (memory.fill (i32.const 0) (i32.const 0) (i32.const 100000)) (br $again))
        (unreachable)";
    assert_failure(&fails(shared(), &classifying(body)).failure, FailureKind::OutOfFuel, "");
}

#[test]
fn memory_beyond_the_limit_is_refused_by_name() {
    for body in [
        "(drop (memory.grow (i32.const 65000))) (unreachable)",
        "(loop $again (drop (memory.grow (i32.const 1))) (br $again)) (unreachable)",
    ] {
        let failed = fails(shared(), &classifying(body));
        assert_failure(&failed.failure, FailureKind::Memory, "bytes of memory");
        assert!(failed.reproducible);
    }
}

#[test]
fn a_table_beyond_the_limit_is_refused_by_name() {
    let guest = Guest {
        fields: "(table $t 1 funcref)".to_owned(),
        ..classifying("(drop (table.grow $t (ref.null func) (i32.const 20000))) (unreachable)")
    };
    assert_failure(&fails(shared(), &guest).failure, FailureKind::Memory, "elements");
}

#[test]
fn calling_too_deep_is_a_full_stack() {
    let guest = Guest {
        fields: "(func $deep (param i64 i64) (result i64)
            (i64.add (call $deep (local.get 1) (local.get 0)) (local.get 0)))"
            .to_owned(),
        ..classifying("(drop (call $deep (i64.const 1) (i64.const 2))) (unreachable)")
    };
    let failed = fails(shared(), &guest);
    assert_failure(&failed.failure, FailureKind::Stack, "deep");
    assert!(!failed.reproducible);
}

fn logging(lines: &[&str], then: &str) -> Guest {
    let mut fields = String::new();
    let mut body = String::new();
    for (index, line) in lines.iter().enumerate() {
        let at = 70_000 + index * 1000;
        let escaped: String = line.bytes().map(|byte| format!("\\{byte:02x}")).collect();
        fields += &format!("(data (i32.const {at}) \"{escaped}\")");
        body += &format!("(call $log (i32.const {at}) (i32.const {}))", line.len());
    }
    Guest { fields, ..classifying(&(body + then)) }
}

#[test]
fn a_trap_carries_the_text_of_the_panic() {
    let text = "panicked at src/lib.rs:44:14:\nno \u{202e}entry \u{1b}[31mfor `mirror`";
    let failed = fails(shared(), &logging(&["tracing", text], "(unreachable)"));
    let message = "panicked at src/lib.rs:44:14: no entry [31mfor `mirror`";
    assert_failure(&failed.failure, FailureKind::Trap, message);
    assert_eq!(failed.log, ["tracing", message]);
}

#[test]
fn a_trap_without_a_text_says_which_trap_it_was() {
    for (body, words) in [
        ("(unreachable)", "unreachable"),
        ("(i32.div_u (i32.const 1) (i32.const 0))", "divide by zero"),
        ("(i32.load (i32.const -4))", "out of bounds memory access"),
    ] {
        let failed = fails(shared(), &classifying(body));
        assert_failure(&failed.failure, FailureKind::Trap, words);
    }
}

#[test]
fn a_flooded_log_is_cut_with_a_note_and_changes_no_decision() {
    let silent = "(i32.store (i32.const 60008) (i32.const 0)) (i32.const 60004)";
    let flood = format!(
        "(loop $again (call $log (i32.const 1024) (i32.const 3))
           (br_if $again (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1)))
                                   (i32.const 100))))
         {silent}"
    );
    let module = shared().load(&classifying(&flood).component(), None).unwrap();
    let log = ask(shared(), &module).unwrap().log;
    assert_eq!(log.len(), 17);
    assert_eq!(log[16], "(84 more lines were dropped)");

    let long = format!("(call $log (i32.const 0) (i32.const 60000)) {silent}");
    let guest = Guest {
        fields: "(data (i32.const 0) \"long\")".to_owned(),
        ..classifying(&format!(
            "(memory.fill (i32.const 0) (i32.const 97) (i32.const 60000)){long}"
        ))
    };
    let module = shared().load(&guest.component(), None).unwrap();
    let log = ask(shared(), &module).unwrap().log;
    assert_eq!(log.len(), 2);
    assert!(log[0].len() <= 4096 && log[0].ends_with('…'), "{}", log[0].len());
    assert_eq!(log[1], "(the log was cut here)");
}

#[test]
fn an_endless_log_runs_out_of_fuel() {
    let body = "(memory.fill (i32.const 65536) (i32.const 97) (i32.const 65536))
        (loop $again (call $log (i32.const 65536) (i32.const 65536)) (br $again)) (unreachable)";
    let failed = fails(shared(), &classifying(body));
    assert_failure(&failed.failure, FailureKind::OutOfFuel, "");
    assert_eq!(failed.log.len(), 2);
}

/// A guest that logs a character at a time.
fn putting(body: &str) -> Guest {
    let imports = r#"(import "tread:policy/characters@{version}" "put" (func $put (param i32)))"#;
    Guest { imports, version: "1.2.0", ..classifying(body) }
}

#[test]
fn a_panic_that_comes_a_character_at_a_time_is_the_text_of_the_trap() {
    let put = |text: &str| {
        text.chars().fold(String::new(), |all, it| {
            all + &format!("(call $put (i32.const {}))", u32::from(it))
        })
    };
    let body =
        put("tracing\n") + &put("panicked at src/lib.rs:1:2: é \u{1b}[31m") + "(unreachable)";
    let failed = fails(shared(), &putting(&body));
    let message = "panicked at src/lib.rs:1:2: é [31m";
    assert_failure(&failed.failure, FailureKind::Trap, message);
    assert_eq!(failed.log, ["tracing", message]);
}

#[test]
fn characters_without_end_run_out_of_fuel_and_are_cut() {
    let endless = "(loop $again (call $put (i32.const 97)) (br $again)) (unreachable)";
    let failed = fails(shared(), &putting(endless));
    assert_failure(&failed.failure, FailureKind::OutOfFuel, "");
    assert_eq!(failed.log.len(), 2);
    assert!(failed.log[0].len() <= 4096 && failed.log[0].ends_with('…'), "{}", failed.log[0].len());
    assert_eq!(failed.log[1], "(the log was cut here)");
}

#[test]
fn what_is_no_character_ends_the_call() {
    for number in ["0xd800", "0x110000", "-1"] {
        let body = format!("(call $put (i32.const {number})) (unreachable)");
        let failed = fails(shared(), &putting(&body));
        assert_failure(&failed.failure, FailureKind::BadOutput, "");
        assert_eq!(failed.log, [""; 0], "{number}");
    }
}

#[test]
fn answers_that_break_the_rules_void_the_call() {
    use Action::*;
    let good = || act(0, &[Reload("crio.service")]);
    let refuse = Says { change: 0, answer: Answer::Refuse, reason: b"no" };
    let many = vec![DaemonReload; 65];
    for (verdicts, kind, words) in [
        (vec![act(2, &[])], FailureKind::UnknownChange, "change 2"),
        (vec![act(u32::MAX, &[])], FailureKind::UnknownChange, "offered 2"),
        (vec![good(), good()], FailureKind::BadOutput, "two verdicts for file:/etc/0000.conf"),
        (vec![good(), act(1, &[Reload("crio")])], FailureKind::InvalidUnit, "crio"),
        (vec![act(0, &[Restart("a@.service")])], FailureKind::InvalidUnit, "a@.service"),
        (vec![act(0, &[Restart("reboot.target")])], FailureKind::InvalidUnit, "ends or isolates"),
        (vec![act(0, &[Reload("systemd-kexec.service")])], FailureKind::InvalidUnit, "ends or"),
        (
            vec![act(0, &[Restart("multi-user.target")])],
            FailureKind::InvalidUnit,
            "none of services",
        ),
        (vec![act(0, &[Restart("-.mount")])], FailureKind::InvalidUnit, "begins with -"),
        (vec![act(0, &[Restart("x y.service; rm")])], FailureKind::InvalidUnit, "0000.conf"),
        (vec![act(0, &[Drain])], FailureKind::BeyondClaim, "none to restart"),
        (vec![act(0, &[Reload("a.service"), Reboot])], FailureKind::BeyondClaim, "reboot"),
        (vec![act(0, &[RebootUndrained])], FailureKind::BeyondClaim, "admin"),
        (vec![refuse], FailureKind::BeyondClaim, "refuse"),
        (vec![act(0, &many)], FailureKind::BadOutput, "65 actions"),
    ] {
        let failed = fails(shared(), &answering(verdicts));
        assert_failure(&failed.failure, kind, words);
        assert!(failed.reproducible);
    }
}

#[test]
fn every_answer_within_the_rules_is_taken() {
    use verdict::Action as Checked;
    let verdicts = vec![
        Says { change: 1, answer: Answer::Abstain, reason: b"" },
        Says {
            change: 0,
            answer: Answer::Act(vec![Action::DaemonReload, Action::Restart("a@b.service")]),
            reason: "  two\nlines \u{2066}and\u{0}more".as_bytes(),
        },
    ];
    let module = shared().load(&answering(verdicts).component(), None).unwrap();
    let reply = ask(shared(), &module).unwrap();
    let actions = vec![Checked::DaemonReload, Checked::Restart("a@b.service".to_owned())];
    let first = verdict::Verdict {
        answer: verdict::Answer::Act(actions),
        reason: "two lines and more".to_owned(),
    };
    let second = verdict::Verdict { answer: verdict::Answer::Abstain, reason: String::new() };
    assert_eq!(reply.verdicts, [Some(first), Some(second)]);
}

#[test]
fn a_long_reason_is_cut() {
    static LONG: [u8; 2000] = [b'x'; 2000];
    let says = Says { change: 0, answer: Answer::Act(Vec::new()), reason: &LONG };
    let module = shared().load(&answering(vec![says]).component(), None).unwrap();
    let reply = ask(shared(), &module).unwrap();
    assert_eq!(reply.verdicts[0].as_ref().unwrap().reason.len(), 512);
}

#[test]
fn output_that_is_no_value_of_the_contract_is_bad_output() {
    let list = |at: i64, len: i64| {
        format!(
            "(i32.store (i32.const 60000) (i32.const {at}))
             (i32.store (i32.const 60004) (i32.const {len})) (i32.const 60000)"
        )
    };
    let verdict = |answer: u32, at: u32, len: u32, reason: u32, reason_len: u32| {
        let words = [0, answer, at, len, reason, reason_len];
        let stores: String = words
            .iter()
            .enumerate()
            .map(|(n, word)| {
                format!("(i32.store (i32.const {}) (i32.const {word}))", 61000 + n * 4)
            })
            .collect();
        stores + &list(61000, 1)
    };
    const OUT: &str = "leads out of the policy's memory";
    const LARGE: &str = "takes more memory of the host than an answer may";
    for (what, body, words) in [
        ("the address of the answer is out of range", "(i32.const 0x7fffff00)".to_owned(), OUT),
        (
            "the address of the answer is not aligned",
            "(i32.const 60001)".to_owned(),
            "none at which such a value can lie",
        ),
        ("the list is out of range", list(0x7fff_ff00, 10), OUT),
        ("the list ends out of range", list(0, 1 << 20), OUT),
        ("the length of the list overflows", list(0, 0x7fff_ffff), OUT),
        (
            "an unknown answer",
            verdict(9, 0, 0, 0, 0),
            "a case that the contract does not have, of a variant, an enum, an option or a \
             result: was it built against another wit/policy.wit? (unexpected discriminant: 9)",
        ),
        ("actions out of range", verdict(1, 0x7fff_0000, 1, 0, 0), OUT),
        ("a reason out of range", verdict(0, 0, 0, 0x3f_ff00, 0x200), OUT),
        (
            "a reason that is no text",
            verdict(0, 0, 0, 62_000, 2)
                + "(i32.store (i32.const 62000) (i32.const 0xffff)) (drop) (i32.const 60000)",
            "a text in it is no UTF-8",
        ),
        ("a list that is too long", list(65536, 40_000), LARGE),
    ] {
        let guest = Guest { pages: 64, ..classifying(&body) };
        let module = shared().load(&guest.component(), None).unwrap();
        let failed = ask(shared(), &module).expect_err(what);
        assert_eq!(failed.failure.kind, FailureKind::BadOutput, "{what}: {}", failed.failure);
        let message = &failed.failure.message;
        assert!(message.starts_with("what it returned cannot be read"), "{what}: {message}");
        assert!(message.contains(words), "{what}: {message}");
        assert!(!message.contains("hostcall"), "{what}: {message}");
        still_serves(shared());
    }
}

#[test]
fn what_is_lifted_out_of_a_guest_is_bounded_before_the_host_allocates_it() {
    // 400,000 verdicts of 24 bytes each, all the same: 9.6 MB in the guest.
    let body = "(i32.store (i32.const 60000) (i32.const 65536))
        (i32.store (i32.const 60004) (i32.const 400000)) (i32.const 60000)";
    let guest = Guest { pages: 200, ..classifying(body) };
    let failed = fails(shared(), &guest);
    let words = "takes more memory of the host than an answer may: one verdict for each change";
    assert_failure(&failed.failure, FailureKind::BadOutput, words);
    assert!(!failed.failure.message.contains("hostcalls"), "{}", failed.failure);
}

#[test]
fn a_realloc_that_lies_is_bad_output() {
    let guest = Guest::default().component();
    let module = shared().load(&guest, None).unwrap();
    assert!(ask(shared(), &module).is_ok());
    // 1 GB of `next` makes the first argument land beyond the memory.
    let guest = Guest {
        fields: "(func $lie (global.set $next (i32.const 0x40000000))) (start $lie)".to_owned(),
        ..Guest::default()
    };
    let module = shared().load(&guest.component(), None).unwrap();
    let failed = ask(shared(), &module).unwrap_err();
    assert_eq!(failed.failure.kind, FailureKind::Memory, "{}", failed.failure);
}

#[test]
fn an_admin_may_reboot_undrained_within_the_claims() {
    use tread_engine::sandbox::{Call, Speaker, Words};
    use tread_model::effect::Effect;
    let guest = answering(vec![act(0, &[Action::RebootUndrained])]);
    let module = shared().load(&guest.component(), None).unwrap();
    let changes = changes(1, 4);
    let changes: Vec<_> = changes.iter().collect();
    // Claims that the host computed take the place of the declared ones.
    let claims = [claim("file:/etc/**", Effect::Reboot, Effect::Reboot)];
    let words = Words::default();
    let call = |layer| Call {
        settings: "{}",
        changes: &changes,
        unchanged: &[],
        claims: &claims,
        layer,
        speaker: Speaker::Policy,
        words: &words,
    };
    assert!(shared().classify(&module, &call(Layer::Admin)).is_ok());
    let failed = shared().classify(&module, &call(Layer::Template)).unwrap_err();
    assert_failure(&failed.failure, FailureKind::BeyondClaim, "admin");
}

#[test]
fn settings_are_refused_with_the_policy_s_own_words() {
    let guest =
        Guest { settings_errors: vec!["drain: yes or no", "x:\nwhat?"], ..Guest::default() };
    let module = shared().load(&guest.component(), None).unwrap();
    let failure = shared().check_settings(&module, "{}").unwrap_err();
    assert_failure(&failure, FailureKind::InvalidSettings, "drain: yes or no; x: what?");
    for text in ["", "[]", "null", "{\"a\":1"] {
        let failure = shared().check_settings(&module, text).unwrap_err();
        assert_failure(&failure, FailureKind::InvalidSettings, "no JSON object");
    }
    let module = shared().load(&Guest::default().component(), None).unwrap();
    assert_eq!(shared().check_settings(&module, "{\"a\": 1}"), Ok(()));
}
