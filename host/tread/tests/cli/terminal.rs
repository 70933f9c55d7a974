//! On a terminal: colours, and what is inside of files, but no secret.

use crate::configs::{config, core_user, file};
use crate::support::Bench;
use nix::pty::openpty;
use serde_json::{Value, json};
use std::fs::File;
use std::io::Read as _;
use std::process::Stdio;

/// What a person sees who runs it.
fn seen(bench: &Bench, args: &[&str], variables: &[(&str, &str)]) -> String {
    let terminal = openpty(None, None).unwrap();
    let mut command = bench.command(&[&["plan", "old.json", "new.json"], args].concat());
    command.env_remove("NO_COLOR").envs(variables.iter().copied());
    let mut child =
        command.stdin(Stdio::null()).stdout(terminal.slave).stderr(Stdio::null()).spawn().unwrap();
    // It holds the other end too, which would never close.
    drop(command);
    let mut screen = Vec::new();
    // A terminal whose other end has closed ends with an error.
    let _ = File::from(terminal.master).read_to_end(&mut screen);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    String::from_utf8(screen).unwrap()
}

fn spec(text: &str) -> Value {
    let files = [
        file("/etc/a", &format!("{text}\n"), 0o644),
        file("/etc/b", &format!("secret {text}"), 0o600),
    ];
    let mut spec = config(json!({"storage": {"files": files}}));
    let hash = format!("secret {text}");
    spec["config"]["passwd"] = core_user(&[], Some(&hash))["config"]["passwd"].clone();
    spec
}

fn prepared() -> Bench {
    let bench = Bench::new();
    bench.plan(spec("before"), spec("after"), &[]);
    bench
}

#[test]
fn a_terminal_shows_what_changes_inside_files_in_colours() {
    let screen = seen(&prepared(), &[], &[]);
    assert!(screen.contains("\u{1b}[31m- before\u{1b}[0m"), "{screen}");
    assert!(screen.contains("\u{1b}[32m+ after\u{1b}[0m"), "{screen}");
    assert!(!screen.contains("secret before") && !screen.contains("secret after"), "{screen}");
}

#[test]
fn no_color_is_honoured_and_diff_never_too() {
    let bench = prepared();
    let plain = seen(&bench, &[], &[("NO_COLOR", "1")]);
    assert!(!plain.contains('\u{1b}') && plain.contains("+ after"), "{plain}");
    let closed = seen(&bench, &["--diff", "never"], &[]);
    assert!(closed.contains('\u{1b}') && !closed.contains("+ after"), "{closed}");
}

#[test]
fn what_is_for_scripts_holds_no_contents_on_a_terminal_either() {
    let bench = prepared();
    for output in ["json", "yaml"] {
        let screen = seen(&bench, &["-o", output], &[]);
        assert!(!screen.contains('\u{1b}') && !screen.contains("before"), "{screen}");
    }
}
