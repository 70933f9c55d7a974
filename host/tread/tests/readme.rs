//! What the README and the install page show is what tread does.
//!
//! `TREAD_UPDATE=1 cargo test --release -p tread --test readme` writes the
//! parts of the README that are made of something else anew.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use support::{Bench, run, tree};
use tread_authoring::cases;

/// Tests write the same file when they update it.
static README: Mutex<()> = Mutex::new(());

#[test]
fn the_table_of_what_costs_what_is_what_the_cases_say() {
    compare(
        "README.md",
        "<!-- what costs what -->\n",
        "<!-- end of what costs what -->",
        &expected_table(),
    );
}

#[test]
fn the_table_of_what_tread_may_do_is_what_the_roles_are_made_of() {
    let table = tread_front::manifests::grants::table();
    compare(
        "examples/install/README.md",
        "<!-- what it may do -->\n",
        "<!-- end of what it may do -->",
        &table,
    );
    compare(
        "examples/install/README.md",
        "<!-- what it may do besides where it rolls out -->\n",
        "<!-- end of what it may do besides where it rolls out -->",
        &tread_front::manifests::grants::enforcing_table(),
    );
}

#[test]
fn the_page_for_operators_names_every_metric_condition_event_and_state() {
    use tread_kube::api::conditions;
    use tread_kube::api::disruption_policy::State;
    use tread_kube::{events, metrics};
    let page = "examples/install/OPERATE.md";
    for (name, table) in [
        ("conditions", conditions::table()),
        ("events", events::table()),
        ("metrics", metrics::Metrics::table()),
        ("metrics of a node", tread_node::cli::metrics::table()),
    ] {
        compare(page, &format!("<!-- {name} -->\n"), &format!("<!-- end of {name} -->"), &table);
    }
    let text = std::fs::read_to_string(tree().join(page)).unwrap();
    for (_, state) in State::ALL {
        assert!(text.contains(&format!("| `{state}` |")), "{state}");
    }
}

#[test]
fn the_commands_of_the_install_page_are_commands() {
    let page = std::fs::read_to_string(tree().join("examples/install/README.md")).unwrap();
    let mut commands = 0;
    for line in page.lines().filter_map(|line| line.strip_prefix("    tread ")) {
        let command = line.split(" | ").next().unwrap();
        let arguments: Vec<&str> = command.split_whitespace().collect();
        let ran = run(Bench::new().command(&arguments), b"");
        assert_eq!((ran.code(), ran.err().as_str()), (0, ""), "{line}");
        commands += 1;
    }
    assert!(commands >= 4, "{commands}");
}

#[test]
fn the_first_command_prints_what_the_readme_shows() {
    let readme = std::fs::read_to_string(tree().join("README.md")).unwrap();
    let command =
        readme.lines().find_map(|line| line.trim().strip_prefix("cargo run --release -- "));
    let command = command.expect("the README has a command");
    let arguments: Vec<&str> = command.split_whitespace().collect();
    let mut command = Bench::new().command(&arguments);
    command.current_dir(tree());
    let ran = run(command, b"");
    assert_eq!(ran.code(), 0, "{}", ran.err());
    let shown = format!("```\n{}```\n", ran.out());
    compare(
        "README.md",
        "<!-- output of the command above -->\n",
        "<!-- end of output -->",
        &shown,
    );
}

/// Holds a part of a page against what it has to be, or replaces it.
fn compare(page: &str, start: &str, end: &str, expected: &str) {
    let _one_at_a_time = README.lock().unwrap_or_else(PoisonError::into_inner);
    let path = tree().join(page);
    let readme = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = readme.split_once(start).expect("the page has the start of the part");
    let (found, after) = rest.split_once(end).expect("the page has the end of the part");
    if tread_test_bed::is_update() {
        std::fs::write(&path, format!("{before}{start}{expected}{end}{after}")).unwrap();
        return;
    }
    assert!(
        found == expected,
        "{page} is not up to date: run again with TREAD_UPDATE=1, which makes it\n{expected}"
    );
}

fn expected_table() -> String {
    let mut rows: Vec<(String, String)> = Vec::new();
    for path in cases::files(&tree().join("tests/cases/policies")).unwrap() {
        for case in cases::read_file(&path).unwrap() {
            rows.extend(case.costs.zip(case.expect.plan));
        }
    }
    assert!(!rows.is_empty(), "no case says what it costs");
    // The gentle ones first; within a cost, as the files have them.
    rows.sort_by_key(|(_, plan)| weight(plan));
    let mut table = String::from("| to | costs |\n| --- | --- |\n");
    for (costs, plan) in rows {
        writeln!(table, "| {costs} | {plan} |").unwrap();
    }
    table
}

fn weight(plan: &str) -> usize {
    const WORDS: [&str; 8] =
        ["refuse", "reboot", "drain", "restart", "reload", "update", "no action", "nothing"];
    WORDS.len() - WORDS.iter().position(|word| plan.contains(word)).unwrap_or(WORDS.len())
}
