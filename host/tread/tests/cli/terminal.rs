//! On a terminal: colours, and what is inside of files, but no secret.

use crate::configs::{config, core_user, file};
use crate::support::Bench;
use nix::pty::{Winsize, openpty};
use serde_json::{Value, json};
use std::fs::File;
use std::io::Read as _;
use std::process::Stdio;

/// What a person sees who runs it.
fn seen(bench: &Bench, args: &[&str], variables: &[(&str, &str)]) -> String {
    seen_in(120, bench, args, variables)
}

/// The same, on a terminal with so many columns.
fn seen_in(columns: u16, bench: &Bench, args: &[&str], variables: &[(&str, &str)]) -> String {
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    let terminal = openpty(&size, None).unwrap();
    let mut command = bench.command(&[&["plan", "old.json", "new.json"], args].concat());
    for variable in ["NO_COLOR", "LC_ALL", "LC_CTYPE", "LANG"] {
        command.env_remove(variable);
    }
    command.envs(variables.iter().copied());
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

#[test]
fn a_narrow_terminal_gets_short_lines_and_whole_ids() {
    let bench = prepared();
    for columns in [40, 60, 80, 200] {
        let screen = seen_in(columns, &bench, &["--diff", "never"], &[("NO_COLOR", "1")]);
        let most = usize::from(columns.min(100));
        let prose = screen.lines().filter(|line| line.starts_with("    ") && line.contains(' '));
        for line in prose.map(|line| line.trim_end_matches('\r')) {
            assert!(line.chars().count() <= most, "{columns}: {line:?}");
        }
        assert!(screen.contains("~ file:/etc/a: reboot"), "{screen}");
    }
}

#[test]
fn a_terminal_whose_locale_is_not_utf_8_gets_ascii() {
    let bench = prepared();
    for (locale, ascii) in [("C", true), ("en_US.ISO-8859-1", true), ("C.UTF-8", false)] {
        let screen = seen(&bench, &["--diff", "never"], &[("LC_ALL", locale)]);
        assert_eq!(screen.is_ascii(), ascii, "{locale}: {screen}");
        assert!(screen.contains(if ascii { "+1 -1 lines" } else { "+1 −1 lines" }), "{screen}");
    }
}
