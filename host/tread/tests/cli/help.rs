//! Help, and manners towards whoever reads the output.

use crate::configs::{config, files, samples};
use crate::support::{Bench, run, unread};
use serde_json::{Value, json};
use std::process::Stdio;

/// Every command with its subcommands, as the help lists them.
fn commands(bench: &Bench) -> Vec<Vec<String>> {
    let mut found = vec![Vec::new()];
    let mut next = 0;
    while let Some(command) = found.get(next).cloned() {
        let help = help(bench, &command, "--help");
        let list = help.split("Commands:\n").nth(1).unwrap_or_default();
        for line in list.lines().take_while(|line| !line.is_empty()) {
            // What goes on from the line before stands further right.
            if line.starts_with("   ") {
                continue;
            }
            let name = line.split_whitespace().next().unwrap().to_owned();
            found.push([command.as_slice(), &[name]].concat());
        }
        next += 1;
    }
    found
}

fn help(bench: &Bench, command: &[String], flag: &str) -> String {
    let args: Vec<&str> = command.iter().map(String::as_str).chain([flag]).collect();
    let ran = bench.tread(&args);
    assert_eq!((ran.code(), ran.err().as_str()), (0, ""), "{command:?}");
    ran.out()
}

#[test]
fn every_command_explains_itself_with_examples() {
    let bench = Bench::new();
    let commands = commands(&bench);
    for known in ["plan", "policies", "policy build"] {
        assert!(commands.iter().any(|command| command.join(" ") == known), "{commands:?}");
    }
    for command in commands {
        for flag in ["--help", "-h"] {
            let help = help(&bench, &command, flag);
            let examples = help.split("Examples:\n").nth(1).unwrap_or_else(|| panic!("{help}"));
            let name = format!("tread {}", command.join(" "));
            assert!(examples.trim_start().starts_with(&name), "{command:?}: {examples}");
        }
    }
}

#[test]
fn the_exit_codes_and_the_levels_of_max_are_documented() {
    let help = Bench::new().tread(&["plan", "--help"]).out();
    let codes = help.split("Exit codes:\n").nth(1).unwrap();
    for code in 0..=4 {
        assert!(codes.contains(&format!("  {code}  ")), "{code} in {codes}");
    }
    for level in ["none", "reload", "restart", "drain", "reboot"] {
        let max = help.split("--max ").nth(1).unwrap().split("--timings").next().unwrap();
        assert!(max.contains(level), "{level} in {max}");
    }
}

#[test]
fn the_examples_of_the_help_are_command_lines_that_tread_takes() {
    let bench = Bench::new();
    let spec = files(&[("/etc/a", "x")]);
    let worker = crate::configs::machine_config("worker", spec).to_string();
    for name in
        ["old.yaml", "new.yaml", "old/a.yaml", "new/a.yaml", "worker/a.yaml", "machineconfig.yaml"]
    {
        bench.write(name, &worker);
    }
    for name in ["mirrors-now.yaml", "mirrors-next.yaml"] {
        bench.write(name, crate::configs::mirrors(&["m.example/a"]).to_string());
    }
    let cluster = json!({
        "apiVersion": "operator.openshift.io/v1", "kind": "MachineConfiguration",
        "metadata": {"name": "cluster"}, "spec": {},
    });
    bench.write("machineconfiguration.yaml", cluster.to_string());
    let claims = vec![crate::guests::claim(
        "file:/etc/chrony.conf",
        tread_model::effect::Effect::None,
        tread_model::effect::Effect::None,
    )];
    let policy = crate::guests::answering("chrony", claims, vec![]).component();
    bench.write("chrony.wasm", &policy);
    bench.write("my.wasm", &policy);
    let mut ran = 0;
    for command in [
        &[][..],
        &["plan"],
        &["policies"],
        &["manifests"],
        &["bootimages"],
        &["bootimages", "check"],
        &["pools"],
        &["pools", "explain"],
        &["pools", "admit"],
        &["pools", "stub"],
        &["pools", "check"],
        &["nodes"],
        &["rollout"],
        &["rollout", "status"],
        &["rollout", "pause"],
        &["rollout", "resume"],
        &["rollout", "retry"],
        &["rollout", "stop"],
        &["lease", "list"],
        &["lease", "hold"],
        &["lease", "release"],
    ] {
        let help = bench.tread(&[command, &["--help"]].concat()).out();
        let examples = help.split("Examples:\n").nth(1).unwrap().split("\n\n").next().unwrap();
        for line in examples.lines().filter_map(|line| line.split("tread ").nth(1)) {
            let line = line.split("   ").next().unwrap();
            // What reads the output is not tread.
            let line = line.split(" | ").next().unwrap();
            let args: Vec<&str> = line.split_whitespace().collect();
            let done = bench.tread_with(&args, worker.as_bytes());
            // There is no cluster here; everything before that is taken.
            let asks = ["-f", "--cluster", "bootimages", "lease", "nodes", "pools", "rollout"];
            if args.iter().any(|arg| asks.contains(arg)) {
                assert!(done.err().contains("no cluster to ask"), "tread {line}: {}", done.err());
            } else {
                assert_eq!(done.code(), 0, "tread {line}: {}", done.err());
            }
            ran += 1;
        }
    }
    assert!(ran >= 10, "{ran} examples were found");
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let bench = Bench::new();
    samples()[7].plan(&bench, &[]);
    for args in [
        &["plan", "old.json", "new.json"][..],
        &["plan", "old.json", "new.json", "-o", "json"],
        &["plan", "old.json", "new.json", "-o", "yaml"],
        &["policies", "-o", "json"],
        &["policies"],
        &["plan", "--help"],
        &["--version"],
    ] {
        assert_eq!(unread(bench.command(args)), (0, String::new()), "{args:?}");
    }
}

#[test]
fn a_reader_that_leaves_early_does_not_hide_that_a_plan_is_too_disruptive() {
    let bench = Bench::new();
    // Far more than fits into a pipe or a buffer.
    let many: Vec<(String, String)> =
        (0..3000).map(|n| (format!("/etc/unknown/{n}"), "x".to_owned())).collect();
    let many: Vec<(&str, &str)> =
        many.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    for new in [files(&[("/etc/unknown", "x")]), files(&many)] {
        for output in ["human", "json", "yaml"] {
            let args = ["--max", "restart", "-o", output];
            assert_eq!(bench.plan(files(&[]), new.clone(), &args).code(), 3);
            let args = [&["plan", "old.json", "new.json"][..], &args].concat();
            let (code, err) = unread(bench.command(&args));
            assert_eq!((code, err.lines().count()), (3, 1), "{args:?}: {err}");
        }
    }
    let refused = bench.plan(json!({"fips": false}), json!({"fips": true}), &[]);
    assert_eq!(refused.code(), 4);
    assert_eq!(unread(bench.command(&["plan", "old.json", "new.json"])).0, 4);
}

#[test]
fn an_output_that_cannot_be_written_is_an_error() {
    let bench = Bench::new();
    bench.plan(config(json!({})), config(json!({})), &[]);
    for args in [&["plan", "old.json", "new.json"][..], &["policies"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let child = bench.command(args).stdout(full).stderr(Stdio::piped()).spawn();
        let output = child.unwrap().wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains("No space left"), "{error}");
    }
}

#[test]
fn the_log_goes_to_standard_error_and_leaves_the_output_alone() {
    let bench = Bench::new();
    let quiet = samples()[4].plan(&bench, &["-o", "json"]);
    for level in ["", "off", "error", "warn", "info", "debug", "trace", "DEBUG"] {
        let mut command = bench.command(&["plan", "old.json", "new.json", "-o", "json"]);
        command.env("TREAD_LOG", level);
        let ran = run(command, b"");
        assert_eq!(ran.out(), quiet.out(), "{level}");
        serde_json::from_str::<Value>(&ran.out()).unwrap();
    }
}

#[test]
fn a_log_level_that_is_none_is_a_usage_error_that_names_those_there_are() {
    let bench = Bench::new();
    for level in ["nonsense", "tread=debug", "3"] {
        let mut command = bench.command(&["policies"]);
        command.env("TREAD_LOG", level);
        let ran = run(command, b"");
        assert_eq!((ran.code(), ran.out().as_str()), (2, ""), "{level}");
        let err = ran.err();
        for part in ["TREAD_LOG", level, "off, error, warn, info, debug or trace"] {
            assert!(err.contains(part), "{part} in {err}");
        }
    }
}
