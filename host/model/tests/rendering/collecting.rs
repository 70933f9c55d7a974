//! Which rendered configs go.

use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;
use tread_model::rendering::{Existing, KEPT, Pool, unneeded};

const WORKER: Pool<'_> = Pool { name: "worker", uid: "1" };

fn existing(name: &str, created: i64) -> Existing<'_> {
    Existing { name, rendered_by: Some("tread 1.0.0"), owner: Some(WORKER), created }
}

fn goes<'a>(there: &[Existing<'a>], named: &[&str]) -> Vec<&'a str> {
    unneeded(there, &named.iter().copied().collect())
}

#[test]
fn what_nobody_names_goes_but_for_the_newest_of_each_pool() {
    let all = ["a", "b", "c", "d", "e", "f"];
    let there: Vec<Existing<'_>> =
        all.iter().zip(1..).map(|(name, at)| existing(name, at)).collect();
    assert_eq!(goes(&there, &[]), ["a", "b", "c"]);
    assert_eq!(goes(&there, &["b", "e", "x"]), ["a", "c"]);
    assert_eq!(goes(&there[..KEPT], &[]), [""; 0]);
    assert_eq!(goes(&[], &["a"]), [""; 0]);
}

#[test]
fn those_of_another_pool_count_for_themselves_also_if_it_had_the_same_name() {
    let mut there: Vec<Existing<'_>> =
        ["a", "b", "c", "d"].iter().map(|name| existing(name, 1)).collect();
    there.push(Existing { owner: Some(Pool { name: "worker", uid: "2" }), ..existing("e", 0) });
    there.push(Existing { owner: Some(Pool { name: "infra", uid: "3" }), ..existing("f", 0) });
    assert_eq!(goes(&there, &[]), [""; 0], "nor can it be told which of one second is older");
    there.push(existing("g", 0));
    assert_eq!(goes(&there, &[]), ["g"]);
}

#[test]
fn what_tread_did_not_make_stays() {
    let mut there: Vec<Existing<'_>> =
        ["w", "x", "y"].iter().map(|name| existing(name, 9)).collect();
    there.push(Existing { rendered_by: None, ..existing("of-the-operator", 1) });
    there.push(Existing { rendered_by: Some("somebody"), ..existing("of-somebody", 1) });
    there.push(Existing { owner: None, ..existing("of-no-pool", 1) });
    assert_eq!(goes(&there, &[]), [""; 0]);
}

proptest! {
    #[test]
    fn nothing_goes_that_is_named_new_or_not_treads(
        there in vec((0..40_u32, any::<bool>(), 0..3_usize, 0..8_i64), 0..30),
        named in proptest::collection::btree_set(0..40_u32, 0..10),
    ) {
        let pools = [None, Some(WORKER), Some(Pool { name: "infra", uid: "2" })];
        let names: Vec<String> = there.iter().map(|(name, ..)| name.to_string()).collect();
        let there: Vec<Existing<'_>> = there.iter().zip(&names).map(|(it, name)| Existing {
            name,
            rendered_by: it.1.then_some("tread 1"),
            owner: pools[it.2],
            created: it.3,
        }).collect();
        let named: Vec<String> = named.iter().map(u32::to_string).collect();
        let named: BTreeSet<&str> = named.iter().map(String::as_str).collect();
        let gone = unneeded(&there, &named);
        for pool in pools {
            let ours = |it: &&Existing<'_>| it.owner == pool && it.rendered_by.is_some();
            let newest = there.iter().filter(ours).map(|it| it.created).max();
            for it in there.iter().filter(|it| it.owner == pool) {
                // Where a name stands there twice, one of both may go.
                let once = there.iter().filter(|other| other.name == it.name).count() == 1;
                if once && gone.contains(&it.name) {
                    prop_assert!(!named.contains(it.name));
                    prop_assert!(pool.is_some() && it.rendered_by.is_some());
                    prop_assert!(Some(it.created) < newest);
                }
            }
        }
        let mut turned = there.clone();
        turned.reverse();
        prop_assert_eq!(unneeded(&turned, &named), gone);
    }
}
