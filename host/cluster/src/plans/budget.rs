//! One budget for all plans that are made at the same time. What a plan takes is
//! counted before it is begun: the bytes that are compared, the values in them, and
//! what they unpack to. Most plans share a part of the budget; of those that need more, one is
//! made at a time, so that there is always a thread for the others; and what does
//! not fit at all is not planned, in a sentence.

use crate::previews::{Bodies, BodyKey, Parsed, Piece, Side, Work};
use crate::weight::Weight;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How often what is compared is held as values: as it was read, and as the
/// operator renders it.
const TIMES: usize = 2;
/// What all plans of a usual size may take together, and one of them.
const SHARED: usize = 64 << 20;
const USUAL: usize = 32 << 20;
/// What a plan may take.
const LARGEST: usize = 96 << 20;
/// The unit in which it is counted.
const UNIT: usize = 1 << 10;

/// How many changes the plans of all pools may keep together.
const CHANGES: usize = 50_000;
/// So many answers are put together in one plan: of each policy to each change.
const ANSWERS: usize = 100_000;
/// How many changes one plan may have: the first number in any case, the second one at most.
const OF_ONE: (usize, usize) = (100, 2000);

/// How many changes a plan may have in a cluster with so many pools and policies.
/// With more it is planned as a reboot, the same in each replica.
pub(super) fn most_changes(pools: usize, policies: usize) -> usize {
    let (least, most) = OF_ONE;
    (CHANGES / pools.max(1)).min(ANSWERS / policies.max(1)).clamp(least, most)
}

/// What is compared for a plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Cost(Weight);

impl Cost {
    /// Of what is compared for plans that are made one after the other, all of it
    /// together.
    pub(super) fn of(works: &[Work], bodies: &Bodies, parsed: &Parsed) -> Cost {
        let all = works.iter().map(|work| of_work(work, bodies, parsed));
        Cost(all.fold(Weight::default(), Weight::and))
    }

    /// Whether it shares the budget with others.
    pub(super) fn is_usual(&self) -> bool {
        self.takes() <= USUAL
    }

    /// What a plan takes: values, the texts that they are read from, and contents that
    /// change, which are held as they are.
    fn takes(&self) -> usize {
        let values = self.0.takes().saturating_mul(TIMES);
        values.saturating_add(self.0.bytes).saturating_add(self.0.unpacked)
    }
}

/// The ways of a pool one by one, each with where it goes.
fn of_work(work: &Work, bodies: &Bodies, parsed: &Parsed) -> Weight {
    let of_side = |side: &Side| of_side(side, bodies, parsed);
    let target = work.target.as_ref().map(|(_, side)| side);
    let from = work.ways.iter().filter_map(|way| way.from.as_ref()).chain(target);
    let from = from.map(of_side).max_by_key(|side| Cost(*side).takes()).unwrap_or_default();
    from.and(of_side(&work.to))
}

fn of_side(side: &Side, bodies: &Bodies, parsed: &Parsed) -> Weight {
    let pieces = side.configs.iter().chain(&side.mirrors).flat_map(Piece::parts);
    pieces.map(|piece| parsed.weight(piece, bodies)).fold(Weight::default(), Weight::and)
}

/// What all plans that are made at the same time may take. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Budget {
    shared: Arc<Semaphore>,
    large: Arc<Semaphore>,
    /// Of those that hold what they compare, and wait.
    waiting: Arc<Semaphore>,
}

/// Room in the budget, until it is dropped.
#[derive(Debug)]
pub(super) struct Room {
    _permit: Option<OwnedSemaphorePermit>,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget {
            shared: Arc::new(Semaphore::new(SHARED / UNIT)),
            large: Arc::new(Semaphore::new(1)),
            waiting: Arc::new(Semaphore::new(WAITING)),
        }
    }
}

/// How many plans hold what was fetched for them while they wait.
const WAITING: usize = 2;

/// Why what has to be fetched for a plan is not.
pub(super) fn too_much() -> String {
    format!(
        "more than {} MB have to be compared: planned as a reboot, since so much is not looked at",
        super::bodies::MOST >> 20
    )
}

impl Budget {
    /// Waits until there is room for what has to be fetched. It has to be dropped
    /// when the plan has room itself.
    pub(super) async fn to_fetch(&self) -> Room {
        Room { _permit: Arc::clone(&self.waiting).acquire_owned().await.ok() }
    }

    /// Waits until there is room for a plan; or says why there never is.
    pub(super) async fn room(&self, cost: Cost) -> Result<Room, String> {
        let takes = cost.takes();
        let waits = if cost.is_usual() {
            let units = u32::try_from(takes.div_ceil(UNIT)).unwrap_or(u32::MAX);
            Arc::clone(&self.shared).acquire_many_owned(units).await
        } else if takes <= LARGEST {
            Arc::clone(&self.large).acquire_owned().await
        } else {
            let unpacked = match cost.0.unpacked >> 20 {
                0 => String::new(),
                megabytes => format!(", which unpack to {megabytes} MB,"),
            };
            return Err(format!(
                "{} KB with {} values{unpacked} have to be compared: planned as a reboot, since so \
                 much is not looked at",
                cost.0.bytes / 1024,
                cost.0.values
            ));
        };
        // Closed never.
        Ok(Room { _permit: waits.ok() })
    }
}

/// What has to be fetched for a plan.
pub(super) fn keys(work: &Work) -> impl Iterator<Item = &BodyKey> {
    let sides = work.ways.iter().filter_map(|way| way.from.as_ref()).chain([&work.to]);
    let of_parts = work.parts.iter().filter_map(|part| match &part.body {
        Some(Piece::Stored(key)) => Some(key),
        _ => None,
    });
    sides.flat_map(Side::keys).chain(of_parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::previews::{Way, preview};
    use futures::FutureExt as _;
    use serde_json::json;
    use tread_kube::api::disruption_plan::Nodes;

    fn cost(megabytes: usize, objects: usize, values: usize) -> Cost {
        Cost(Weight { bytes: megabytes << 20, objects, values, unpacked: 0 })
    }

    /// Of a few bytes that unpack to so many megabytes.
    fn packed(megabytes: usize) -> Cost {
        Cost(Weight { bytes: 1 << 17, unpacked: megabytes << 20, ..Weight::default() })
    }

    #[test]
    fn what_usual_plans_take_is_shared_and_waited_for() {
        let budget = Budget::default();
        let room = |cost| budget.room(cost).now_or_never();
        let rooms: Vec<_> = (0..2).map(|_| room(cost(10, 0, 0)).unwrap().unwrap()).collect();
        assert!(room(cost(5, 0, 0)).is_none());
        assert!(room(cost(1, 0, 0)).is_some(), "there is a little left");
        drop(rooms);
        assert!(room(cost(5, 0, 0)).is_some());
    }

    #[test]
    fn what_contents_unpack_to_counts_in_the_budget_before_it_is_done() {
        let body = |name: &str, url: &str| {
            let contents = json!({"source": url, "compression": "gzip"});
            let config = json!({"ignition": {"version": "3.4.0"},
                "storage": {"files": [{"path": "/a", "contents": contents}]}});
            let object = json!({"metadata": {"name": name}, "spec": {"config": config}});
            Piece::given(name.to_owned(), object.to_string().into_bytes().into())
        };
        let side = |url: &str| Side { configs: vec![body("a", url)], ..Side::default() };
        let work = |from: &[&str], to: &str| Work {
            ways: from
                .iter()
                .map(|url| Way {
                    from: Some(side(url)),
                    from_name: String::new(),
                    nodes: Nodes::default(),
                })
                .collect(),
            to: side(to),
            ..preview("worker", 1, false, None).work
        };
        let of = |work| Cost::of(&[work], &Bodies::default(), &Parsed::default()).0.unpacked;
        // It says that it holds 1,000 and 2,000 bytes.
        let (small, large) = (
            "data:;base64,H4sIAAAAAAAAAAAAAAAAAOgDAAA=",
            "data:;base64,H4sIAAAAAAAAAAAAAAAAANAHAAA=",
        );
        assert_eq!(of(work(&[small], large)), 3000);
        assert_eq!(of(work(&[small, large], small)), 3000, "the ways are planned one by one");
        assert_eq!(of(work(&["data:,a"], "data:,b")), 0);
    }

    #[test]
    fn of_large_ones_one_is_made_at_a_time_and_others_do_not_wait_for_it() {
        for large in [cost(3, 30_000, 60_000), cost(1, 2, 250_000), packed(64)] {
            let budget = Budget::default();
            let room = |cost| budget.room(cost).now_or_never();
            let held = room(large).unwrap().unwrap();
            assert!(room(large).is_none());
            assert!(room(cost(3, 100, 1000)).is_some());
            drop(held);
            assert!(room(large).is_some());
        }
    }

    #[test]
    fn what_never_fits_is_told_at_once() {
        let budget = Budget::default();
        let refused = |cost| budget.room(cost).now_or_never().unwrap().unwrap_err();
        let why = refused(cost(2, 150_000, 150_000));
        assert!(why.starts_with("2048 KB with 150000 values have to be compared"), "{why}");
        assert!(why.contains("planned as a reboot"), "{why}");
        let why = refused(cost(1, 0, 500_000));
        assert!(why.starts_with("1024 KB with 500000 values"), "a list of short values: {why}");
        let why = refused(packed(100));
        assert!(why.starts_with("128 KB with 0 values, which unpack to 100 MB, have to"), "{why}");
        assert!(budget.room(cost(usize::MAX >> 20, 0, 0)).now_or_never().unwrap().is_err());
    }

    #[test]
    fn the_more_pools_and_policies_there_are_the_fewer_changes_a_plan_may_have() {
        for ((pools, policies), most) in [
            ((0, 0), 2000),
            ((3, 14), 2000),
            ((25, 50), 2000),
            ((50, 14), 1000),
            ((3, 200), 500),
            ((5000, 14), 100),
        ] {
            assert_eq!(most_changes(pools, policies), most, "{pools} {policies}");
        }
    }
}
