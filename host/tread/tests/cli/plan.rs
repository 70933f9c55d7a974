//! What `tread plan` prints for a person, and how it ends.

use crate::configs::{config, files, samples};
use crate::support::{Bench, tree};
use serde_json::json;

const LEVELS: [&str; 5] = ["none", "reload", "restart", "drain", "reboot"];

#[test]
fn the_first_line_is_the_answer_for_every_kind_of_plan() {
    let bench = Bench::new();
    for sample in samples() {
        let ran = sample.plan(&bench, &[]);
        assert_eq!(ran.first_line(), sample.first_line, "{}", ran.err());
        assert_eq!(ran.code(), if sample.effect.is_some() { 0 } else { 4 }, "{}", ran.out());
        assert_eq!(ran.err().is_empty(), sample.effect.is_some(), "{}", ran.err());
    }
}

#[test]
fn a_plan_beyond_max_ends_with_3_and_a_refusal_with_4_whatever_the_max() {
    let bench = Bench::new();
    for sample in samples() {
        for (rank, max) in LEVELS.into_iter().enumerate() {
            let ran = sample.plan(&bench, &["--max", max]);
            let wanted = match sample.effect {
                None => 4,
                Some(effect) if LEVELS.iter().position(|it| *it == effect).unwrap() > rank => 3,
                Some(_) => 0,
            };
            assert_eq!(ran.code(), wanted, "--max {max}: {}", ran.out());
            assert_eq!(ran.first_line(), sample.first_line);
            let second = ran.out().lines().nth(1).unwrap_or_default().to_owned();
            assert_eq!(second.contains(&format!("more disruptive than --max {max}")), wanted == 3);
        }
    }
}

#[test]
fn max_does_not_change_what_a_script_reads_and_tells_the_log_which_changes_are_too_much() {
    let bench = Bench::new();
    for sample in samples() {
        let without = sample.plan(&bench, &["-o", "json"]);
        let with = sample.plan(&bench, &["-o", "json", "--max", "none"]);
        assert_eq!(without.out(), with.out());
        let refusal = format!("warning: {}. ", sample.first_line);
        let expected = match sample.effect {
            None => refusal.clone(),
            Some("none") => String::new(),
            Some(effect) => {
                format!(
                    "warning: more disruptive than --max none: this plan is a {effect}, because of "
                )
            }
        };
        let err = with.err();
        assert!(
            err.starts_with(&expected) && err.lines().count() == usize::from(!expected.is_empty()),
            "{err}"
        );
        let err = without.err();
        assert!(err.is_empty() != err.starts_with(&refusal), "{err}");
        assert_eq!(err.is_empty(), sample.effect.is_some(), "{err}");
        let human = sample.plan(&bench, &["--max", "none"]);
        assert_eq!(human.err(), with.err(), "who keeps the plan in a file reads a log too");
    }
}

#[test]
fn a_refusal_says_in_the_log_what_cannot_be_taken_and_why() {
    let bench = Bench::new();
    let [old, new] = ["old", "new"].map(|side| {
        let path = tree().join(format!("examples/repartition-refused/{side}.yaml"));
        path.to_str().unwrap().to_owned()
    });
    for more in [&["-o", "json"][..], &["-o", "yaml", "--max", "restart"], &[]] {
        let ran = bench.tread(&[&["plan", old.as_str(), new.as_str()], more].concat());
        assert_eq!(ran.code(), 4, "{}", ran.err());
        let (err, lines) = (ran.err(), ran.err().lines().count());
        assert!(err.starts_with("warning: ") && lines == 1, "{err}");
        for part in ["a running node cannot take: storage:", "provision the nodes anew"] {
            assert!(err.contains(part), "{part} in {err}");
        }
    }
}

#[test]
fn where_plan_and_log_are_one_the_plan_says_it_and_nothing_says_it_again() {
    let bench = Bench::new();
    for sample in samples() {
        let apart = sample.plan(&bench, &["--max", "none"]);
        let log = std::fs::File::create(bench.dir.path().join("log")).unwrap();
        let mut command = bench.command(&["plan", "old.json", "new.json", "--max", "none"]);
        if sample.rule.is_some() {
            command.args(["--rules", "rule.json"]);
        }
        command.stdout(log.try_clone().unwrap()).stderr(log);
        let code = command.status().unwrap().code();
        assert_eq!(code, Some(apart.code()));
        assert_eq!(std::fs::read_to_string(bench.dir.path().join("log")).unwrap(), apart.out());
    }
}

#[test]
fn what_only_a_cluster_would_use_is_a_usage_error_without_one() {
    let bench = Bench::new();
    bench.plan(config(json!({})), config(json!({})), &[]);
    for option in [
        &["--delete"][..],
        &["--pool", "worker"],
        &["-n", "tread-system"],
        &["--lease-namespace", "leases"],
        &["--context", "a"],
        &["--kubeconfig", "a"],
    ] {
        let ran = bench.tread(&[&["plan", "old.json", "new.json"], option].concat());
        assert_eq!((ran.code(), ran.out().as_str()), (2, ""), "{option:?}");
        let word = if option[0] == "-n" { "--namespace" } else { option[0] };
        for part in [word, "is for a cluster", "tread plan -f FILE"] {
            assert!(ran.err().contains(part), "{part} in {}", ran.err());
        }
    }
    for args in [&["policies", "--context", "a"][..], &["policies", "--kubeconfig", "a"]] {
        let ran = bench.tread(args);
        assert_eq!(ran.code(), 2, "{}", ran.err());
        assert!(ran.err().contains("add --cluster"), "{}", ran.err());
    }
}

#[test]
fn each_change_names_its_policy_its_reason_and_what_to_do_next() {
    let bench = Bench::new();
    let old = files(&[("/etc/unknown", "x"), ("/etc/NetworkManager/a.conf", "x")]);
    let new = files(&[("/etc/unknown", "y"), ("/etc/NetworkManager/a.conf", "y")]);
    let out = bench.plan(old, new, &[]).out();
    for part in [
        "~ file:/etc/unknown: reboot",
        "decided by nobody: fallback",
        "No policy claims this",
        "a rule for file:/etc/unknown (--rules)",
        "~ file:/etc/NetworkManager/a.conf: reboot",
        "decided by network 0.1.0 (builtin)",
        "\nsteps: drain, write, reboot, uncordon\n",
        "\nplan blake3:",
    ] {
        assert!(out.contains(part), "{part:?} in\n{out}");
    }
}

#[test]
fn a_refusal_names_the_field_and_the_way_out_and_has_no_steps() {
    let bench = Bench::new();
    let disks = |size: u32| {
        let partition = json!({"label": "var", "sizeMiB": size});
        config(json!({"storage": {"disks": [{"device": "/dev/sda", "partitions": [partition]}]}}))
    };
    let ran = bench.plan(disks(100), disks(200), &[]);
    assert_eq!(ran.code(), 4);
    let out = ran.out().replace("\n    ", " ");
    for part in [
        "storage:disks: refused",
        "spec.config.storage.disks: ",
        "provision the nodes anew",
        "refused by tread itself",
    ] {
        assert!(out.contains(part), "{part:?} in\n{out}");
    }
    assert!(!out.contains("steps:"), "{out}");
}

#[test]
fn nothing_is_coloured_where_no_terminal_is() {
    let bench = Bench::new();
    for sample in samples() {
        assert!(!sample.plan(&bench, &["--diff", "always"]).out().contains('\u{1b}'));
    }
}

#[test]
fn what_a_config_holds_cannot_drive_the_terminal() {
    let bench = Bench::new();
    let hostile = "\u{1b}]0;title\u{7}\u{1b}[2J\r\n\u{9b}31m";
    let new = files(&[("/etc/unknown", hostile)]);
    let out = bench.plan(files(&[]), new, &["--diff", "always"]).out();
    let control = |c: char| c.is_control() && c != '\n' && c != '\t';
    assert!(!out.contains(control), "{out:?}");
    assert!(out.contains("]0;title"), "the line itself is shown: {out:?}");
}

#[test]
fn ends_of_lines_are_shown_where_they_are_what_differs() {
    let bench = Bench::new();
    let shown = |old: &str, new: &str| {
        let [old, new] = [old, new].map(|text| files(&[("/etc/unknown", text)]));
        bench.plan(old, new, &["--diff", "always"]).out()
    };
    let out = shown("a\nb\n", "a\r\nb\r\n");
    assert!(out.contains("- a\n") && out.contains("+ a (a carriage return at the end)\n"), "{out}");
    let out = shown("a\r\nb\r\n", "a\r\nc\r\n");
    assert!(out.contains("+ c\n") && !out.contains("carriage"), "{out}");
}

#[test]
fn the_usage_is_checked_before_anything_is_read() {
    let bench = Bench::new();
    for args in [
        &[][..],
        &["plan"],
        &["plan", "a"],
        &["plan", "a", "b", "c"],
        &["plan", "--old", "a"],
        &["plan", "a", "b", "--old", "c"],
        &["plan", "a", "b", "--max", "refuse"],
        &["plan", "a", "b", "--max", ""],
        &["plan", "a", "b", "-o", "xml"],
        &["plan", "a", "b", "--diff", "maybe"],
        &["plan", "a", "b", "--no-such-flag"],
        &["plan", "-f", "a", "--diff", "always"],
        &["policies", "extra"],
        &["policies", "-o", "table"],
        &["policy"],
        &["nonsense"],
    ] {
        let ran = bench.tread(args);
        assert_eq!(ran.code(), 2, "{args:?}: {}", ran.err());
        assert_eq!(ran.out(), "", "{args:?}");
        assert!(!ran.err().is_empty(), "{args:?}");
    }
}

#[test]
fn a_command_line_that_names_what_is_not_there_is_a_usage_error() {
    let bench = Bench::new();
    for (args, parts) in [
        (&["--set", "drain=always"][..], &["POLICY.KEY=VALUE"][..]),
        (&["--set", "registry.drain=always"], &["\"registry\"", "known here are certificates"]),
        (&["--set", "registrys.drain=always"], &["\"registrys\": did you mean \"registries\"?"]),
        (&["--set", "registries.drian=always"], &["\"drian\": did you mean \"drain\"?"]),
        (&["--set", "registries.drain=sometimes"], &["when-needed, always, never", "sometimes"]),
        (&["--set", "ssh-keys.drain=always"], &["ssh-keys takes no settings"]),
        (&["--may-relax", "network"], &["--may-relax network", "built in", "--policy"]),
        (&["--may-relax", "netwrk"], &["--may-relax netwrk", "--policy"]),
        (&["--read-secrets", "nobody"], &["--read-secrets nobody", "--policy"]),
    ] {
        let ran = bench.plan(config(json!({})), config(json!({})), args);
        assert_eq!(ran.code(), 2, "{args:?}");
        assert_eq!(ran.out(), "", "{args:?}");
        for part in parts {
            assert!(ran.err().contains(part), "{part} in {}", ran.err());
        }
    }
}

#[test]
fn timings_tell_of_each_part_and_of_each_policy_that_was_asked() {
    let bench = Bench::new();
    let sample = samples().swap_remove(4);
    let out = sample.plan(&bench, &["--timings"]).out();
    for part in ["reading ", "starting ", "comparing ", "node-services: 1 change,", "fuel "] {
        assert!(out.contains(part), "{part:?} in\n{out}");
    }
    let json = sample.plan(&bench, &["--timings", "-o", "json"]).json();
    assert_eq!(json["timings"]["calls"][0]["policy"], "node-services");
    assert_eq!(json["timings"]["calls"].as_array().unwrap().len(), 1, "only what claims it");
}
