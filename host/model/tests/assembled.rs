//! Sides that are put together of configs which were read before are those that are read of
//! their bytes.

// Helpers of tests may fail as tests do.
#![allow(clippy::panic, clippy::unwrap_used, clippy::indexing_slicing)]

mod generate;
#[path = "generate/layered.rs"]
mod layered;

use generate::{ignition_alone, machine_config, written};
use layered::layered;
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeSet;
use tread_model::config::NodeConfig;
use tread_model::diff::{self, Comparison};
use tread_model::digest::Digest;
use tread_model::operator::{self, Alike, Layer, Rendered, Topology};
use tread_model::read::{
    Assembled, Input, ReadConfig, assembled, side_diagnosed, side_fast_only, side_in_order,
};

const NAMES: [&str; 3] = ["one.json", "two.json", "three.json"];

fn without_text(mut config: NodeConfig<'_>) -> NodeConfig<'_> {
    config.files.iter_mut().for_each(|file| file.raw = &[]);
    config.units.iter_mut().for_each(|unit| unit.raw = &[]);
    config
}

fn inputs<'t>(texts: &'t [&String]) -> Vec<Input<'t>> {
    let named = NAMES.into_iter().zip(texts);
    named.map(|(name, text)| Input { name, bytes: text.as_bytes() }).collect()
}

fn read(texts: &[&String]) -> Option<Vec<ReadConfig>> {
    texts.iter().map(|text| ReadConfig::of(text.as_bytes())).collect()
}

fn put_together(configs: &[ReadConfig]) -> Option<Assembled<'_>> {
    let named: Vec<(&str, &ReadConfig)> = NAMES.into_iter().zip(configs).collect();
    assembled(&named)
}

fn compared<'a>(old: &Assembled<'a>, new: &Assembled<'a>) -> Comparison<'a> {
    let (from, to) = Assembled::differences(old, new).unwrap();
    diff::compare_digested(&old.config, &from, &new.config, &to).unwrap()
}

fn without_digests(comparison: Comparison<'_>) -> Comparison<'_> {
    Comparison { from: Digest::of(b""), to: Digest::of(b""), ..comparison }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_side_that_is_put_together_is_the_one_that_is_read(
        configs in (
            machine_config(&["a"], ignition_alone()),
            machine_config(&["b", "a"], ignition_alone()),
            machine_config(&["c", "rendered-c-1"], ignition_alone()),
        ),
        order in Just([0usize, 1, 2]).prop_shuffle(),
    ) {
        let texts = [configs.0, configs.1, configs.2].map(|json| written(&json, 1));
        let old: Vec<&String> = order.iter().take(2).map(|at| &texts[*at]).collect();
        let new: Vec<&String> = order.iter().map(|at| &texts[*at]).collect();
        let sides = [old.as_slice(), new.as_slice(), &new[..1], &old[1..]];
        for old in sides {
            let Some(old_configs) = read(old) else { continue };
            let before = put_together(&old_configs);
            let old = inputs(old);
            let old = side_in_order("old", &old);
            if let Some(before) = &before {
                let read = old.as_ref().unwrap().config.clone();
                prop_assert_eq!(&without_text(read), &before.config);
            }
            for new in sides {
                let Some(new_configs) = read(new) else { continue };
                let after = put_together(&new_configs);
                let new = inputs(new);
                let new = side_in_order("new", &new);
                let (Some(before), Some(after)) = (&before, &after) else { continue };
                let read = diff::compare(&old.as_ref().unwrap().config, &new.unwrap().config);
                prop_assert_eq!(
                    without_digests(read.unwrap()),
                    without_digests(compared(before, after))
                );
            }
        }
    }

    #[test]
    fn all_readers_agree_on_configs_that_say_something_of_the_same_things(
        configs in (layered(&["a"]), layered(&["b"]), layered(&["c"])),
        order in Just([0usize, 1, 2]).prop_shuffle(),
        style in any::<u64>(),
    ) {
        let texts = [configs.0, configs.1, configs.2].map(|json| written(&json, style));
        let all: Vec<&String> = order.iter().map(|at| &texts[*at]).collect();
        for some in [&all[..1], &all[..2], &all[..]] {
            let inputs = inputs(some);
            let slow = side_diagnosed("new", &inputs);
            if let Some(fast) = side_fast_only(&inputs) {
                let Ok(slow) = &slow else { panic!("only the fast one reads {some:?}: {slow:?}") };
                prop_assert_eq!(&without_text(fast.config), &without_text(slow.config.clone()));
            }
            let Some(configs) = read(some) else { continue };
            let Some(together) = put_together(&configs) else { continue };
            let Ok(slow) = &slow else { panic!("only put together: {some:?}: {slow:?}") };
            prop_assert_eq!(&together.config, &without_text(slow.config.clone()));
            // And they tell the same differences.
            let Some(first) = read(&some[..1]) else { continue };
            let Some(before) = put_together(&first) else { continue };
            let old = side_diagnosed("old", &inputs[..1]).unwrap();
            prop_assert_eq!(
                without_digests(diff::compare(&old.config, &slow.config).unwrap()),
                without_digests(compared(&before, &together))
            );
        }
    }

    #[test]
    fn what_the_operator_does_is_the_same_whether_entries_are_held_once_or_not(
        configs in (layered(&["a"]), layered(&["b"]), layered(&["c"])),
        order in Just([0usize, 1, 2]).prop_shuffle(),
    ) {
        let texts = [configs.0, configs.1, configs.2].map(|json| written(&json, 1));
        let all: Vec<&String> = order.iter().map(|at| &texts[*at]).collect();
        let shared = Alike::default();
        let rendered = |texts: &[&String], is_shared: bool| {
            let read = |text: &&String| {
                let config = serde_json::from_str(text).unwrap();
                match is_shared {
                    true => Layer::of(config, &shared),
                    false => Layer::of(config, &Alike::default()),
                }
            };
            Rendered::merged(texts.iter().map(read))
        };
        let sides = [&all[..1], &all[..2], &all[1..], &all[..]];
        for old in sides {
            for new in sides {
                let [apart, once] = [false, true].map(|is_shared| {
                    let (old, new) = (rendered(old, is_shared), rendered(new, is_shared));
                    let policies = operator::Policies::of(None);
                    let topology = Topology::HighlyAvailable;
                    (operator::forecast(&old, &new, &policies, topology), old, new)
                });
                prop_assert_eq!(apart, once);
            }
        }
    }

    #[test]
    fn what_makes_no_side_is_not_put_together(
        one in machine_config(&["a"], ignition_alone()),
        other in machine_config(&["a", "b", "rendered-b-1"], ignition_alone()),
    ) {
        let texts = [one, other].map(|json| written(&json, 1));
        let both = [&texts[0], &texts[1]];
        let both_inputs = inputs(&both);
        let is_read = side_in_order("new", &both_inputs).is_ok();
        let is_put_together = read(&both).is_some_and(|it| put_together(&it).is_some());
        prop_assert!(is_read || !is_put_together);
    }
}

fn config(name: &str, spec: serde_json::Value) -> String {
    json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": name}, "spec": spec,
    })
    .to_string()
}

fn file(path: &str, contents: &str) -> serde_json::Value {
    json!({"config": {"ignition": {"version": "3.4.0"}, "storage": {"files": [
        {"path": path, "contents": {"source": contents}}]}}})
}

#[test]
fn configs_are_merged_in_the_order_given_whichever_way_they_are_read() {
    // By name, the second one would come first.
    let image = |of: &str| json!({"osImageURL": of, "kernelArguments": [of]});
    let texts = [config("os-image", image("one")), config("99-own", image("two"))];
    let texts: Vec<&String> = texts.iter().collect();
    let inputs = inputs(&texts);
    let read_at_once = side_in_order("new", &inputs).unwrap().config;
    let configs = read(&texts).unwrap();
    for config in [&read_at_once, &put_together(&configs).unwrap().config] {
        assert_eq!(config.os_image, "two");
        assert_eq!(config.kernel_arguments, ["one", "two"]);
    }
}

#[test]
fn what_cannot_be_decoded_is_left_to_the_reader_that_tells_why() {
    for bad in ["data:;base64,a", "data:,%"] {
        assert!(ReadConfig::of(config("a", file("/etc/a", bad)).as_bytes()).is_none());
    }
    for text in ["", "{}", "[]", "no JSON"] {
        assert!(ReadConfig::of(text.as_bytes()).is_none(), "{text}");
    }
}

#[test]
fn files_that_are_forgotten_are_not_compared() {
    let texts = [config("a", file("/etc/a", "data:,a")), config("b", file("/etc/b", "data:,b"))];
    let texts: Vec<&String> = texts.iter().collect();
    let configs = read(&texts).unwrap();
    let new = put_together(&configs).unwrap();
    let mut old = new.clone();
    let ids = |old: &Assembled<'_>| {
        let changes = compared(old, &new).changes;
        changes.into_iter().map(|change| change.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(&old), [""; 0]);
    old.forget_files(&BTreeSet::from(["/etc/a".to_owned()]));
    assert_eq!(ids(&old), ["file:/etc/a"]);
}
