//! Whatever is written how, the answer is never gentler than that of a slow
//! reference, which reads both sides with a whole reader and looks at each key.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a helper of a test fails the test"
)]

use proptest::prelude::*;
use std::collections::BTreeMap;
use tread_guest_sdk::{Effect, test};
use tread_policy_node_services::NodeServices;

const KUBELET: &str = "/etc/kubernetes/kubelet.conf";
const DROP_IN: &str = "/etc/crio/crio.conf.d/50-x";

fn effect(path: &str, before: &str, after: &str) -> Effect {
    let verdict = test::verdict::<NodeServices>(test::file(path, before, after));
    verdict.effect().expect("a claimed file is answered for")
}

/// As a key is compared where capitals do not count, with the two letters that
/// only Unicode folds into ASCII.
fn folded(key: &str) -> String {
    key.to_lowercase().replace('\u{17f}', "s")
}

/// Every value and every table, by its key.
type Flat = BTreeMap<Vec<String>, String>;

fn written(value: &toml::de::DeValue) -> String {
    match value {
        toml::de::DeValue::Array(items) => {
            items.iter().map(|item| format!("[{}]", written(item.get_ref()))).collect()
        }
        toml::de::DeValue::Table(table) => {
            let item = |(key, value): (&toml::Spanned<_>, &toml::Spanned<_>)| {
                format!("{{{:?}{}}}", key.get_ref(), written(value.get_ref()))
            };
            table.iter().map(item).collect()
        }
        scalar => format!("{scalar:?}"),
    }
}

/// None: this is no TOML.
fn toml(text: &str) -> Option<Flat> {
    fn flatten(path: &[String], value: &toml::de::DeValue, flat: &mut Flat) {
        match value {
            toml::de::DeValue::Table(table) => {
                flat.insert(path.to_vec(), "table".to_string());
                for (key, value) in table {
                    let mut path = path.to_vec();
                    path.push(key.get_ref().to_string());
                    flatten(&path, value.get_ref(), flat);
                }
            }
            other => {
                flat.insert(path.to_vec(), written(other));
            }
        }
    }
    let table = toml::de::DeTable::parse(text).ok()?;
    let mut flat = Flat::new();
    flatten(&[], &toml::de::DeValue::Table(table.into_inner()), &mut flat);
    Some(flat)
}

/// Whether a list begins with all that another one has, in the same order.
fn goes_on(before: Option<&String>, after: Option<&String>) -> bool {
    let (Some(before), Some(after)) = (before, after) else { return false };
    [before, after].iter().all(|list| list.is_empty() || list.starts_with('['))
        && after.starts_with(before.as_str())
}

/// After how many seconds a pull is cancelled, as far as that can be told; 0 is never.
fn patience(value: Option<&String>) -> Option<u64> {
    match value.map_or("String(\"0s\")", String::as_str) {
        "String(\"0s\")" => Some(u64::MAX),
        "String(\"10s\")" => Some(10),
        "String(\"1m\")" => Some(60),
        _ => None,
    }
}

/// What the manual of CRI-O and the experience of its admins say of a key.
fn crio(path: &[String], before: Option<&String>, after: Option<&String>, comes: bool) -> Effect {
    let goes = after.is_none();
    // The name of a handler, the fourth key, is what it is.
    let fold = |(at, key): (usize, &String)| if at == 3 { key.clone() } else { folded(key) };
    let folded: Vec<String> = path.iter().enumerate().map(fold).collect();
    let keys: Vec<&str> = folded.iter().map(String::as_str).collect();
    match keys.as_slice() {
        [] | ["crio"] | ["crio", "runtime" | "image" | "metrics" | "network" | "api"] => {
            Effect::None
        }
        // One that is new and that nothing else defines is found once CRI-O starts again.
        ["crio", "runtime", "runtimes", "runc" | "crun", ..] => Effect::Reboot,
        ["crio", "runtime", "runtimes", _, ..] if goes || !comes => Effect::Reboot,
        ["crio", "runtime", "runtimes", ..] => Effect::Restart,
        ["crio", "runtime", "default_runtime"] => Effect::Reboot,
        // The first directory counts that has a plugin.
        ["crio", "network", "plugin_dirs"] if goes_on(before, after) => Effect::Restart,
        ["crio", "network", ..] => Effect::Reboot,
        ["crio", "image", "pull_progress_timeout"] => match (patience(before), patience(after)) {
            (Some(before), Some(after)) if before <= after => Effect::Restart,
            // Nanoseconds, which are not told apart here.
            _ if [before, after].iter().flatten().any(|it| it.starts_with("Integer")) => {
                Effect::Restart
            }
            _ => Effect::Drain,
        },
        ["crio", "runtime", "log_level" | "log_filter"]
        | ["crio", "image", "pause_image" | "pause_image_auth_file" | "pause_command"] => {
            Effect::Reload
        }
        ["crio", "runtime", "cgroup_manager" | "selinux" | "uid_mappings" | "gid_mappings", ..] => {
            Effect::Reboot
        }
        ["crio", "runtime", "separate_pull_cgroup"]
        | ["crio", "image", "big_files_temporary_dir"] => Effect::Drain,
        ["crio", "runtime" | "image" | "metrics", ..] => Effect::Restart,
        _ => Effect::Reboot,
    }
}

/// Whether CRI-O cannot use a value of a key that a reload reads again, so that it gives up.
fn is_of_no_use(path: &[String], value: &str) -> bool {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let usable: &[&str] = match path.as_slice() {
        ["crio", "runtime", "log_level"] => &["debug", "INFO"],
        ["crio", "runtime", "log_filter"] | ["crio", "image", "pause_image"] => {
            &["a", "b", "debug", "INFO"]
        }
        ["crio", "image", "pause_command" | "pause_image_auth_file"] => {
            &["a", "b", "debug", "INFO", "(a"]
        }
        _ => return false,
    };
    !usable.iter().any(|text| value == format!("String({text:?})"))
}

fn crio_reference(before: &str, after: &str) -> Effect {
    let (Some(before), Some(after)) = (toml(before), toml(after)) else { return Effect::Reboot };
    let mut comes_anew = after.iter().filter(|(key, value)| before.get(*key) != Some(*value));
    if comes_anew.any(|(key, value)| is_of_no_use(key, value)) {
        return Effect::Refuse;
    }
    let keys = before.keys().chain(after.keys());
    // The table of a handler is the fourth key.
    let comes = |key: &[String]| key.get(..4).is_some_and(|table| !before.contains_key(table));
    keys.filter(|key| before.get(*key) != after.get(*key))
        .map(|key| crio(key, before.get(key), after.get(key), comes(key)))
        .max()
        .unwrap_or(Effect::None)
}

fn spelled(key: &'static str) -> impl Strategy<Value = String> {
    let odd = any::<u8>().prop_map(move |odd| match odd % 12 {
        0 => key.to_uppercase(),
        1 => key.replacen('s', "\u{17f}", 1),
        2 => key.replacen('k', "\u{212a}", 1),
        3 => key.replacen('l', "L", 1),
        _ => key.to_string(),
    });
    let quoted = |part: &str| {
        let bare = part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if bare { part.to_string() } else { format!("\"{part}\"") }
    };
    // As a way through tables, and seldom as one key with dots in it.
    (odd, any::<u8>()).prop_map(move |(key, whole)| match whole % 16 {
        0 => quoted(&key),
        _ => key.split('.').map(quoted).collect::<Vec<_>>().join("."),
    })
}

fn one_of(keys: &'static [&'static str]) -> impl Strategy<Value = String> {
    proptest::sample::select(keys).prop_flat_map(spelled)
}

const TIMEOUTS: &[&str] = &["'0s'", "'10s'", "\"1m\"", "'a'", "1", "[]"];
const DIRECTORIES: &[&str] =
    &["[]", "['/a']", "[\"/a\", '/b']", "['/b', '/a']", "['/a', '/b', '/c']", "'/a'"];

fn crio_line() -> impl Strategy<Value = String> {
    let value = proptest::sample::select(
        &[
            "'a'",
            "'debug'",
            "\"debug\"",
            "'INFO'",
            "'(a'",
            "\"a\"",
            "'b'",
            "1",
            "0x1",
            "true",
            "[]",
            "['a', 'b']",
            "{}",
            "{ a = 1 }",
        ][..],
    );
    let key = || {
        one_of(&[
            // Often, so that enough edits are answered gently.
            "log_level",
            "log_level",
            "log_filter",
            "pids_limit",
            "selinux",
            "cgroup_manager",
            "pids_limit",
            "pause_image",
            "pause_command",
            "runtimes.kata.runtime_path",
            "runtimes.kata.allowed_annotations",
            "runtimes.kata",
            "runtimes.crun.runtime_root",
            "default_runtime",
            "workloads.w",
            "uid_mappings",
            "quantum",
        ])
    };
    let header = one_of(&["runtime", "image", "network", "metrics", "api", "x"])
        .prop_map(|section| format!("[crio.{section}]"));
    prop_oneof![
        3 => (key(), value.clone()).prop_map(|(key, value)| format!("{key} = {value}")),
        2 => header,
        1 => one_of(&["crio", "other"]).prop_map(|section| format!("[{section}]")),
        1 => one_of(&["runtimes.kata", "runtimes", "workloads.w", "workloads", "selinux"])
            .prop_map(|table| format!("[crio.runtime.{table}]")),
        1 => (key(), value).prop_map(|(key, value)| format!("runtime.{key} = {value}")),
        1 => Just("# a comment".to_string()),
    ]
}

/// A file and one with some of its lines gone, new, elsewhere or otherwise.
fn crio_pair() -> impl Strategy<Value = (String, String)> {
    let lines = proptest::collection::vec((crio_line(), any::<u8>()), 0..9);
    let start = proptest::sample::select(&["[crio.runtime]", "[crio]", "# c"][..]);
    let list = |section: &'static str, key: &'static str, values: &'static [&'static str]| {
        let value = || proptest::sample::select(values);
        proptest::option::weighted(0.1, [value(), value()]).prop_map(move |values| {
            let line = |value| format!("[crio.{section}]\n{key} = {value}");
            values.map(|values| values.map(line))
        })
    };
    let timeouts = list("image", "pull_progress_timeout", TIMEOUTS);
    let directories = list("network", "plugin_dirs", DIRECTORIES);
    (start, lines, timeouts, directories).prop_map(|(start, lines, timeouts, directories)| {
        let mut sides = [vec![start.to_string()], vec![start.to_string()]];
        for (line, side) in lines {
            for (number, text) in sides.iter_mut().enumerate() {
                match side % 8 {
                    0 if number == 0 => {}
                    1 if number == 1 => {}
                    2 if number == 1 => text.insert(1, line.clone()),
                    _ => text.push(line.clone()),
                }
            }
        }
        for pair in timeouts.into_iter().chain(directories) {
            sides.iter_mut().zip(pair).for_each(|(side, line)| side.push(line));
        }
        let [before, after] = sides.map(|side| side.join("\n"));
        (before, after)
    })
}

/// Files of crio.conf.d in the order in which CRI-O reads them.
const DROP_INS: [&str; 4] = ["05-a", "10-b/z", "10-b.d/a", "90-c"];
/// What a file says of the log level, if there is one.
const LEVELS: [Option<&str>; 8] = [
    None,
    None,
    Some(""),
    Some("'info'"),
    Some("'debug'"),
    Some("'loud'"),
    Some("'LOUD'"),
    Some("4"),
];

type Levels = [[Option<&'static str>; 2]; 4];

/// Whether CRI-O would give up: it reads all files, and the last level counts.
fn gives_up(levels: &Levels) -> bool {
    let is_usable = |level: &str| ["'info'", "'debug'", "4"].contains(&level);
    let counts = |side: usize| {
        levels.iter().rev().filter_map(|level| level[side]).find(|level| !level.is_empty())
    };
    let (before, after) = (counts(0), counts(1));
    levels.iter().any(|level| level[1] == Some("4") && level[0] != Some("4"))
        || after.is_some_and(|after| !is_usable(after)) && before != after
}

fn verdicts_of(levels: &Levels) -> Vec<tread_guest_sdk::Verdict> {
    let (mut changes, mut unchanged) = (Vec::new(), Vec::new());
    for (name, level) in DROP_INS.iter().zip(levels) {
        let path = format!("/etc/crio/crio.conf.d/{name}");
        let text = |level: &str| match level {
            "" => "# nothing\n".to_string(),
            level => format!("[crio.runtime]\nlog_level = {level}\n"),
        };
        match level.map(|side| side.map(text)) {
            [Some(before), Some(after)] if before == after => {
                unchanged.push(test::unchanged_file(&path, &before));
            }
            [Some(before), Some(after)] => changes.push(test::file(&path, &before, &after)),
            [Some(before), None] => changes.push(test::file_removed(&path, &before)),
            [None, Some(after)] => changes.push(test::file_added(&path, &after)),
            [None, None] => {}
        }
    }
    test::verdicts::<NodeServices>(&(), changes, unchanged)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_change_of_several_files_is_refused_exactly_if_crio_would_give_up(
        levels in proptest::array::uniform4(proptest::array::uniform2(proptest::sample::select(&LEVELS[..])))
    ) {
        let verdicts = verdicts_of(&levels);
        let is_refused = verdicts.iter().any(|verdict| verdict.effect() == Some(Effect::Refuse));
        prop_assert_eq!(is_refused, gives_up(&levels), "{:?} {:?}", levels, verdicts);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40_000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_edit_of_crio_conf_is_answered_more_gently_than_its_keys_allow((before, after) in crio_pair()) {
        let verdict = test::verdict::<NodeServices>(test::file(DROP_IN, &before, &after));
        let (answer, mut least) = (verdict.effect().unwrap(), crio_reference(&before, &after));
        // What the policy does not read, though the reference does, is a reboot.
        if verdict.reason().contains("cannot be read") {
            least = least.min(Effect::Reboot);
        }
        prop_assert!(answer >= least, "{answer:?} < {least:?}\n{before}\n---\n{after}");
    }
}

#[test]
fn the_edits_that_are_tried_come_to_every_answer() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut seen = BTreeMap::new();
    for _ in 0..10_000 {
        let (before, after) = crio_pair().new_tree(&mut runner).unwrap().current();
        let readable = toml(&before).is_some() && toml(&after).is_some();
        *seen.entry((readable, effect(DROP_IN, &before, &after))).or_insert(0) += 1;
    }
    for effect in [
        Effect::None,
        Effect::Reload,
        Effect::Restart,
        Effect::Drain,
        Effect::Reboot,
        Effect::Refuse,
    ] {
        assert!(seen.get(&(true, effect)).is_some_and(|times| *times > 20), "{seen:?}");
    }
}

/// Texts, and what the kubelet reads of them. The file was written once by a
/// program in Go that uses what the kubelet uses: `YAMLToJSON` of
/// sigs.k8s.io/yaml 1.6.0 or, for a text that starts with `{`, `encoding/json`.
/// A null is what these refuse, or no mapping; a text of comments says nothing.
fn kubelet_texts() -> Vec<(String, Option<serde_json::Map<String, serde_json::Value>>)> {
    let comment = |line: &str| line == "---" || line.is_empty() || line.starts_with('#');
    let lines = include_str!("kubelet-conf.jsonl").lines();
    lines
        .map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let text = line["text"].as_str().unwrap();
            let nothing = text.split('\n').all(comment).then(serde_json::Map::new);
            (text.to_string(), line["read"].as_object().cloned().or(nothing))
        })
        .collect()
}

/// Which fields admins know to need no more than a restart.
fn kubelet(field: &str) -> Effect {
    let restart = [
        "logging",
        "image",
        "containerLog",
        "evictionM",
        "evictionP",
        "kubeAPI",
        "event",
        "registry",
        "nodeStatus",
        "nodeLease",
        "tls",
        "shutdownGracePeriod",
        "serializeImagePulls",
        "maxParallelImagePulls",
        "streamingConnectionIdleTimeout",
        "syncFrequency",
        "volumeStatsAggPeriod",
    ];
    let drain = ["evictionHard", "evictionSoft", "mergeDefaultEviction", "maxPods", "podsPerCore"];
    let is_one = |all: &[&str]| all.iter().any(|start| field.starts_with(start));
    match (is_one(&restart), is_one(&drain)) {
        (true, _) => Effect::Restart,
        (false, true) => Effect::Drain,
        (false, false) => Effect::Reboot,
    }
}

#[test]
fn no_two_texts_of_kubelet_conf_are_taken_for_more_alike_than_the_kubelet_does() {
    let mut texts = kubelet_texts();
    assert!(texts.len() > 1_000);
    // Whatever is beside it, what is not read is a reboot.
    texts.retain(|(text, _)| {
        let verdict = test::verdict::<NodeServices>(test::file(KUBELET, "logging: {}", text));
        !verdict.reason().contains("cannot be read")
    });
    assert!(texts.len() > 300, "{}", texts.len());
    let (mut alike, mut restarts) = (0, 0);
    for (before, read_before) in &texts {
        for (after, read_after) in &texts {
            if before == after {
                continue;
            }
            let answer = effect(KUBELET, before, after);
            let least = match (read_before, read_after) {
                (Some(before), Some(after)) => {
                    let fields = before.keys().chain(after.keys());
                    fields
                        .filter(|field| before.get(*field) != after.get(*field))
                        .map(|field| kubelet(field))
                        .max()
                        .unwrap_or(Effect::None)
                }
                _ => Effect::Reboot,
            };
            assert!(answer >= least, "{answer:?} < {least:?}\n{before:?}\n{after:?}");
            alike += usize::from(answer == Effect::None);
            restarts += usize::from(answer == Effect::Restart);
        }
    }
    assert!(alike > 500 && restarts > 500, "{alike} {restarts}");
}
