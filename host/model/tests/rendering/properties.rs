//! What holds for any sources.

use crate::generate::{Json, ignition_alone, machine_config, written};
use crate::laws::{POOL, as_plans_read, holds, in_order, inputs, rendered};
use crate::layered::layered;
use crate::overlaps::overlapping;
use proptest::prelude::*;
use proptest::sample::subsequence;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use tread_model::config_digest::digests;
use tread_model::read::side_diagnosed;
use tread_model::refuse::unparsable;
use tread_model::rendering::{Rendered, Unrendered, render};

/// Up to four MachineConfigs of all kinds, in any order.
fn sources() -> BoxedStrategy<Vec<String>> {
    let of = |name: &'static [&'static str]| {
        prop_oneof![layered(name), overlapping(name), machine_config(name, ignition_alone()),]
    };
    let all = (of(&["a"]), of(&["b"]), of(&["c"]), of(&["d"]));
    let text = |json: Json, style| written(&json, style);
    (all, any::<u64>(), subsequence(vec![0, 1, 2, 3], 1..=4).prop_shuffle())
        .prop_map(move |((a, b, c, d), style, some)| {
            let all = [a, b, c, d].map(|json| text(json, style));
            some.into_iter().map(|at| all[at].clone()).collect()
        })
        .boxed()
}

fn mirrors() -> BoxedStrategy<Vec<String>> {
    let set = |kind: &str, list: &str, name: &str, source: &str| {
        json!({"apiVersion": "config.openshift.io/v1", "kind": kind, "metadata": {"name": name},
            "spec": {list: [{"source": source, "mirrors": ["m.example/x", "n.example/y"]}]}})
        .to_string()
    };
    let digest = |name, source| set("ImageDigestMirrorSet", "imageDigestMirrors", name, source);
    let tag = |name, source| set("ImageTagMirrorSet", "imageTagMirrors", name, source);
    let all = vec![digest("a", "quay.io/a"), digest("b", "quay.io"), tag("a", "quay.io/a")];
    prop_oneof![2 => Just(Vec::new()), 1 => subsequence(all, 1..=3).prop_shuffle()].boxed()
}

/// Whether plans read the sources, and Ignition's parser takes each and all of them.
fn is_sound(sources: &[String]) -> bool {
    let is_sound = |sources: &[String]| {
        let side = side_diagnosed("sources", &inputs(sources));
        side.is_ok_and(|side| digests(&side.config).is_ok() && unparsable(&side.config).is_empty())
    };
    let taken = |source: &String| {
        let side = side_diagnosed("source", &inputs(std::slice::from_ref(source)));
        side.is_ok_and(|side| unparsable(&side.config).is_empty())
    };
    is_sound(&in_order(sources)) && sources.iter().all(taken)
}

fn spec(rendered: &Rendered) -> &Value {
    &rendered.object["spec"]
}

proptest! {
    #![proptest_config(Config::with_cases(200))]

    #[test]
    fn what_is_rendered_is_read_as_what_it_was_rendered_from(
        sources in sources(),
        mirrors in mirrors(),
    ) {
        match rendered(&sources, &mirrors) {
            Ok(found) => holds(&found, &sources, &mirrors),
            Err(Unrendered::ReadsOtherwise { ids }) => {
                prop_assert!(false, "{ids:?} of {sources:#?}");
            }
            Err(_) => {}
        }
    }

    #[test]
    fn the_order_in_which_objects_are_listed_means_nothing(
        sources in sources(),
        mirrors in mirrors(),
    ) {
        let turned = |list: &[String]| list.iter().rev().cloned().collect::<Vec<_>>();
        let first = rendered(&sources, &mirrors);
        prop_assert_eq!(&first, &rendered(&sources, &mirrors));
        match (first, rendered(&turned(&sources), &turned(&mirrors))) {
            (Ok(one), Ok(other)) => prop_assert_eq!(one, other),
            (one, other) => prop_assert_eq!(
                one.err().map(|why| why.word()), other.err().map(|why| why.word())
            ),
        }
    }

    #[test]
    fn a_name_changes_exactly_when_what_is_rendered_does(
        sources in sources(),
        mirrors in mirrors(),
    ) {
        let (Ok(all), Ok(less)) = (rendered(&sources, &mirrors), rendered(&sources[1..], &mirrors))
        else {
            return Ok(());
        };
        prop_assert_eq!(all.name == less.name, spec(&all) == spec(&less));
        if all.name == less.name {
            prop_assert_eq!(all.digest, less.digest);
        }
    }

    #[test]
    fn whatever_was_rendered_is_rendered_as_itself(sources in sources()) {
        let Ok(found) = rendered(&sources, &[]) else { return Ok(()) };
        let again = rendered(&[found.object.to_string()], &[]).unwrap();
        prop_assert_eq!(spec(&again), spec(&found));
        prop_assert_eq!((again.name, again.digest), (found.name, found.digest));
    }

    #[test]
    fn nothing_that_is_no_object_panics(
        bytes in proptest::collection::vec(any::<u8>(), 0..40),
        sources in sources(),
        at in any::<proptest::sample::Index>(),
        cut in any::<proptest::sample::Index>(),
    ) {
        let mut inputs = inputs(&sources);
        let broken = at.get(&sources).as_bytes();
        let broken = [&broken[..cut.index(broken.len())], &bytes[..]].concat();
        inputs[at.index(sources.len())].bytes = &broken;
        let _: Result<Rendered, Unrendered> = render(&POOL, &inputs, &inputs);
    }
}

/// And so often that the properties say something.
#[test]
fn what_plans_read_and_ignition_takes_is_rendered() {
    let mut runner = TestRunner::deterministic();
    let (mut sound, mut merged) = (0, 0);
    for _ in 0..200 {
        let sources = sources().new_tree(&mut runner).unwrap().current();
        let found = rendered(&sources, &[]);
        assert_eq!(found.is_ok(), is_sound(&sources), "{:?}", found.err());
        sound += usize::from(found.is_ok());
        merged += usize::from(found.is_ok() && sources.len() > 1);
    }
    assert!(sound > 100 && merged > 50, "{sound} of 200, {merged} of them merged");
}

#[test]
fn what_plans_refuse_of_a_node_that_runs_is_rendered_for_one_that_boots() {
    let source = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": "a"},
        "spec": {"config": {"ignition": {"version": "3.4.0"}, "storage": {
            "disks": [{"device": "/dev/a", "wipeTable": true}],
            "files": [{"path": "/etc/a", "append": [{"source": "https://a.example/a"}]}]}}},
    });
    let sources = [source.to_string()];
    let found = rendered(&sources, &[]).unwrap();
    holds(&found, &sources, &[]);
    assert_eq!(as_plans_read(&sources, &[]).config.fixed.len(), 1);
    assert_eq!(spec(&found)["config"]["storage"], source["spec"]["config"]["storage"]);
}
