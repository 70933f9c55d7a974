//! On a terminal: colours, and what is inside of files, but no secret.

use crate::configs::{config, core_user, file};
use crate::guests::{act, answering, claim};
use crate::support::{Bench, Ran};
use nix::pty::{Winsize, openpty};
use serde_json::{Value, json};
use std::fs::File;
use std::io::Read as _;
use std::process::Stdio;
use tread_model::effect::Effect;

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

/// What a person sees of standard error, who writes standard output into a file.
fn seen_beside(bench: &Bench, args: &[&str]) -> (String, Ran) {
    let size = Winsize { ws_row: 24, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
    let terminal = openpty(&size, None).unwrap();
    let mut command = bench.command(args);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(terminal.slave);
    let child = command.spawn().unwrap();
    // It holds the other end too, which would never close.
    drop(command);
    let screen = std::thread::spawn(move || {
        let mut screen = Vec::new();
        // A terminal whose other end has closed ends with an error.
        let _ = File::from(terminal.master).read_to_end(&mut screen);
        String::from_utf8(screen).unwrap()
    });
    let ran = Ran(child.wait_with_output().unwrap());
    (screen.join().unwrap(), ran)
}

#[test]
fn whoever_waits_at_a_terminal_is_told_what_is_tried_and_nobody_else() {
    let bench = Bench::new();
    let claims = ["file:/etc/a", "file:/etc/b"];
    let claims = claims.map(|it| claim(it, Effect::None, Effect::None)).to_vec();
    bench.write("it.wasm", answering("it", claims, vec![act(0, &[])]).component());
    let sides = "old: {files: {/etc/a: one}}\nnew: {files: {/etc/a: two}}";
    let case = format!("title: One\n{sides}\nexpect: {{plan: no action}}\n");
    bench.write("cases/a.yaml", case);
    for output in ["human", "json", "junit"] {
        let args = ["policy", "test", "it.wasm", "-o", output];
        let piped = bench.tread(&args);
        assert_eq!((piped.code(), piped.err().as_str()), (0, ""), "{}", piped.out());
        let (screen, ran) = seen_beside(&bench, &args);
        let lines: Vec<&str> = screen.lines().collect();
        let [line] = lines.as_slice() else { panic!("{output}: {screen}") };
        let begin = "trying what every policy must keep: it is asked about ";
        assert!(line.starts_with(begin), "{output}: {screen}");
        if output != "json" {
            assert_eq!(ran.out(), piped.out(), "{output}");
            continue;
        }
        // As many as the results say.
        let titles = ran.json()["results"].to_string();
        let numbers = |text: &str| -> Vec<String> {
            let digits = |word: &str| word.chars().filter(char::is_ascii_digit).collect::<String>();
            text.split(' ').map(digits).filter(|it| !it.is_empty()).collect()
        };
        let [changes, calls] = numbers(line).try_into().unwrap();
        let words = format!("({changes} made-up changes, {calls} calls with several)");
        assert!(titles.contains(&words), "{words} in {titles}");
    }
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
