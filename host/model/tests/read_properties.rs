//! What holds for every input: the fast reader and the diagnosing one agree,
//! nothing panics, and the order of documents means nothing.

// Helpers of tests may fail as tests do.
#![allow(clippy::panic, clippy::unwrap_used, clippy::indexing_slicing)]

mod generate;
#[path = "generate/pair.rs"]
mod pair;

use generate::{ignition_alone, machine_config, written};
use pair::pair;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use std::fs;
use std::path::Path;
use tread_model::config::NodeConfig;
use tread_model::read::{Input, Side, diagnosed, fast_only, sides};

type Sides<'a> = (Side<'a>, Side<'a>);

fn read_both<'a>(old: &'a [u8], new: &'a [u8]) -> (Option<Sides<'a>>, Result<Sides<'a>, String>) {
    let old = [Input { name: "old.json", bytes: old }];
    let new = [Input { name: "new.json", bytes: new }];
    let slow = diagnosed(&old, &new).map_err(|problems| problems.to_string());
    (fast_only(&old, &new), slow)
}

fn without_text<'a>(side: &Side<'a>) -> Side<'a> {
    let mut side = side.clone();
    side.config.files.iter_mut().for_each(|file| file.raw = &[]);
    side.config.units.iter_mut().for_each(|unit| unit.raw = &[]);
    side
}

fn mutated(mut bytes: Vec<u8>, edits: &[(Index, u8, Vec<u8>)]) -> Vec<u8> {
    for (at, kind, with) in edits {
        let at = at.index(bytes.len() + 1);
        match kind % 3 {
            0 => drop(bytes.splice(at..(at + with.len()).min(bytes.len()), with.iter().copied())),
            1 => drop(bytes.splice(at..at, with.iter().copied())),
            _ => drop(bytes.drain(at..(at + with.len()).min(bytes.len()))),
        }
    }
    bytes
}

fn edits() -> impl Strategy<Value = Vec<(Index, u8, Vec<u8>)>> {
    const TOKENS: &[&str] = &[
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\",
        "\\u0026",
        "\\ud800",
        "null",
        "0",
        "-",
        ".5",
        "1e9",
        "99999999999999999999",
        "true",
        "\"path\":\"/a\",",
        "\"mode\":1,",
        "\n",
        "\u{1}",
        "/",
        "..",
        "{},",
        "[],",
        "a",
        "ü",
        "\u{7f}",
        "\"name\":\"x\",",
        "---\n",
        " ",
    ];
    let with = prop_oneof![
        select(TOKENS).prop_map(|token| token.as_bytes().to_vec()),
        vec(any::<u8>(), 1..3),
    ];
    vec((any::<Index>(), any::<u8>(), with), 1..4)
}

fn corpus() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/read");
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

fn without_origin(mut config: NodeConfig<'_>) -> NodeConfig<'_> {
    config.files.iter_mut().for_each(|file| file.origin = Default::default());
    config.units.iter_mut().for_each(|unit| unit.origin = Default::default());
    config.users.iter_mut().for_each(|user| user.origin = Default::default());
    config.places = Vec::new();
    config
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_fast_reader_reads_what_the_diagnosing_one_reads((old, new) in pair()) {
        let (fast, slow) = read_both(old.as_bytes(), new.as_bytes());
        let slow = slow.unwrap();
        // Halves of a pair are escaped only by accident: those it may leave.
        let has_pairs = old.contains("\\ud83d") || new.contains("\\ud83d");
        let rejected = [&slow.0, &slow.1].iter().any(|side| !side.config.faults.is_empty());
        prop_assert!(fast.is_some() || has_pairs || rejected, "not read fast: {old}\n{new}");
        prop_assert!(fast.is_none() || !rejected, "read fast: {old}\n{new}");
        if let Some((old, new)) = fast {
            prop_assert_eq!((without_text(&old), without_text(&new)), slow);
            // What is written alike is shared.
            for file in &new.config.files {
                let twin = old.config.files.iter().find(|old| old.raw == file.raw);
                if let Some(twin) = twin {
                    prop_assert_eq!(&twin.path, &file.path);
                }
            }
        }
    }

    #[test]
    fn what_the_fast_reader_accepts_is_accepted_by_all(
        (old, new) in pair(),
        old_edits in edits(),
        new_edits in edits(),
    ) {
        let old_mutated = mutated(old.clone().into_bytes(), &old_edits);
        let new_mutated = mutated(new.into_bytes(), &new_edits);
        for (old, new) in [(old.as_bytes(), &new_mutated[..]), (&old_mutated, &new_mutated)] {
            let (fast, slow) = read_both(old, new);
            let Some((fast_old, fast_new)) = fast else { continue };
            prop_assert_eq!(Ok((without_text(&fast_old), without_text(&fast_new))), slow);
            for bytes in [old, new] {
                prop_assert!(serde_json::from_slice::<serde_json::Value>(bytes).is_ok());
            }
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in vec(any::<u8>(), 0..200)) {
        let input = [Input { name: "x", bytes: &bytes }];
        let _ = sides(&input, &input);
    }

    #[test]
    fn no_change_to_a_tricky_input_makes_it_panic(at in any::<Index>(), edits in edits()) {
        let files = corpus();
        let (name, bytes) = at.get(&files);
        let bytes = mutated(bytes.clone(), &edits);
        let input = [Input { name, bytes: &bytes }];
        let (fast, slow) = (fast_only(&input, &input), diagnosed(&input, &input));
        if let Some((old, new)) = fast {
            prop_assert_eq!(Ok((without_text(&old), without_text(&new))), slow);
        }
    }

    #[test]
    fn several_configs_are_read_alike_by_both_readers(
        configs in (
            machine_config(&["a"], ignition_alone()),
            machine_config(&["b"], ignition_alone()),
            machine_config(&["c"], ignition_alone()),
        ),
        order in Just([0usize, 1, 2]).prop_shuffle(),
    ) {
        let texts = [configs.0, configs.1, configs.2].map(|json| written(&json, 1));
        let inputs = order.map(|at| Input { name: "some", bytes: texts[at].as_bytes() });
        let (one, all) = (&inputs[..1], &inputs[..]);
        for (old, new) in [(one, all), (all, one), (all, all)] {
            let Some((fast_old, fast_new)) = fast_only(old, new) else { continue };
            let slow = diagnosed(old, new).map_err(|problems| problems.to_string());
            prop_assert_eq!(Ok((without_text(&fast_old), without_text(&fast_new))), slow);
        }
    }

    #[test]
    fn the_order_of_documents_means_nothing(
        configs in (
            machine_config(&["a"], ignition_alone()),
            machine_config(&["b"], ignition_alone()),
            machine_config(&["c"], ignition_alone()),
        ),
        order in Just([0usize, 1, 2]).prop_shuffle(),
        split in any::<bool>(),
    ) {
        let texts = [configs.0, configs.1, configs.2].map(|json| written(&json, 1));
        let straight = texts.join("\n");
        let turned: Vec<&str> = order.iter().map(|at| texts[*at].as_str()).collect();
        let first = [Input { name: "one", bytes: straight.as_bytes() }];
        let joined = turned.join("\n");
        let second = if split {
            turned.iter().map(|text| Input { name: "some", bytes: text.as_bytes() }).collect()
        } else {
            vec![Input { name: "one", bytes: joined.as_bytes() }]
        };
        let (old, new) = sides(&first, &second).unwrap();
        prop_assert_eq!(without_origin(old.config), without_origin(new.config));
    }
}

/// A MachineConfig of a role, with files of these paths and what else it says.
fn of_role(name: &str, role: &str, paths: &[&str], rest: &str) -> String {
    let file =
        |path: &&str| format!(r#"{{"path":"{path}","contents":{{"source":"data:,{name}"}}}}"#);
    let files = paths.iter().map(file).collect::<Vec<_>>().join(",");
    format!(
        r#"{{"apiVersion":"machineconfiguration.openshift.io/v1","kind":"MachineConfig",
        "metadata":{{"name":"{name}","labels":{{"machineconfiguration.openshift.io/role":"{role}"}}}},
        "spec":{{"config":{{"ignition":{{"version":"3.4.0"}},
        "storage":{{"files":[{files}]}}}}{rest}}}}}"#
    )
}

#[test]
fn configs_of_which_no_two_say_anything_of_the_same_thing_are_read_fast_and_alike() {
    let a = of_role("a", "worker", &["/etc/z", "/etc/b"], r#","osImageURL":"one","fips":true"#);
    let b = of_role("b", "infra", &["/etc/c"], r#","kernelArguments":["x"],"osImageURL":"""#);
    let c = of_role("c", "worker", &["/etc/d"], r#","kernelArguments":["y"],"osImageURL":"two""#);
    let cases: [(&[&String], bool); 8] = [
        (&[&b, &a], true),
        (&[&c, &b, &a], true),
        (&[&a, &c], true),
        (&[&a], true),
        // Two of one name, of one path, of several pools, and one that is whole.
        (&[&a, &a], false),
        (&[&a, &of_role("e", "worker", &["/etc/z"], "")], false),
        (&[&b, &of_role("e", "other", &[], "")], false),
        (&[&a, &of_role("rendered-worker-1", "", &[], "")], false),
    ];
    for (number, (texts, is_fast)) in cases.into_iter().enumerate() {
        let inputs: Vec<Input<'_>> =
            texts.iter().map(|text| Input { name: "some", bytes: text.as_bytes() }).collect();
        let other = of_role("rendered-infra-1", "", &["/etc/b"], "");
        let other = [Input { name: "other", bytes: other.as_bytes() }];
        let fast = fast_only(&other, &inputs);
        assert_eq!(fast.is_some(), is_fast, "{number}");
        let Some((old, new)) = fast else { continue };
        let slow = diagnosed(&other, &inputs).unwrap();
        assert_eq!((without_text(&old), without_text(&new)), slow, "{number}");
    }
}
