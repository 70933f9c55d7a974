//! Nodes that do not get further. One that could not be drained is not begun until a budget, a
//! pod or the Rollout changes, or after a while that grows. One of which something cannot be read
//! or written leaves its turn to others, and is tried again later each time. One that could not be
//! looked at for a while keeps its turn, and is told of.

use super::budgets::Budget;
use crate::drain::Blocked;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;
use tread_cluster::index::All;
use tread_kube::asking::Backoff;
use tread_kube::clean::clean;
use tread_model::text::and_more;

/// How long it is before such a node is looked at again, at first and at most.
const WAITS: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(1800));
/// The same for one of which something cannot be read or written: somebody may mend that any time.
const FAILURE_WAITS: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(120));
/// After so many looks in a row that came to nothing it is told: an API server that begins anew answers
/// by then.
const TOLD_AFTER: u32 = 5;
/// So many pods are named.
const NAMED: usize = 3;
/// The longest that is repeated of why one does not move.
const LONGEST: usize = 300;

/// What its drain depends on, beside its pods.
#[derive(Debug, Clone, Default)]
pub(crate) struct By {
    /// All budgets.
    pub(crate) budgets: All<String, Budget>,
    /// The generation of its Rollout.
    pub(crate) generation: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Drain,
    Failure,
}

#[derive(Debug)]
struct Stuck {
    cause: Cause,
    why: String,
    /// The budgets that hold its pods, as they were before it was looked at.
    budgets: BTreeMap<String, Option<Budget>>,
    generation: Option<i64>,
    until: Instant,
    backoff: Backoff,
}

/// Looks at a node that came to nothing, one after the other, and may come to something any time.
#[derive(Debug)]
struct InVain {
    looks: u32,
    /// What the last one came to.
    why: String,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct AllStuck {
    nodes: BTreeMap<String, Stuck>,
    in_vain: BTreeMap<String, InVain>,
}

impl AllStuck {
    /// Notes that a node cannot be drained, with what was known before it was looked at.
    pub(crate) fn found(&mut self, node: &str, blocked: &[Blocked], by: &By, now: Instant) {
        let budgets = blocked.iter().flat_map(|it| {
            let namespace = it.pod.split_once('/').map_or("", |(namespace, _)| namespace);
            it.by.budgets().iter().map(move |name| format!("{namespace}/{name}"))
        });
        let budgets = budgets.map(|key| {
            let budget = by.budgets.get(&key).cloned();
            (key, budget)
        });
        let budgets = budgets.collect();
        self.put(node, Cause::Drain, in_words(blocked), (budgets, by.generation), now);
    }

    /// That something of a node cannot be read or written, for a reason that stays.
    pub(crate) fn fails(&mut self, node: &str, why: &str, by: &By, now: Instant) {
        let why: String = clean(why).chars().take(LONGEST).collect();
        let why = format!("it cannot be brought further: {why}");
        self.put(node, Cause::Failure, why, (BTreeMap::new(), by.generation), now);
    }

    fn put(
        &mut self,
        node: &str,
        cause: Cause,
        why: String,
        (budgets, generation): (BTreeMap<String, Option<Budget>>, Option<i64>),
        now: Instant,
    ) {
        let before = self.nodes.remove(node).filter(|before| before.cause == cause);
        let waits = match cause {
            Cause::Drain => WAITS,
            Cause::Failure => FAILURE_WAITS,
        };
        let mut backoff = before.map_or_else(|| Backoff::new(waits), |before| before.backoff);
        let until = now + backoff.next_wait();
        let stuck = Stuck { cause, why, budgets, generation, until, backoff };
        self.nodes.insert(node.to_owned(), stuck);
    }

    /// Notes that a node can be read and written again: that says nothing of its drain.
    pub(crate) fn is_read(&mut self, node: &str) {
        if self.failure(node).is_some() {
            self.is_none(node);
        }
    }

    /// Notes that a node is not stuck.
    pub(crate) fn is_none(&mut self, node: &str) {
        self.nodes.remove(node);
    }

    /// Notes that a look at a node came to nothing, for a reason that may be over any time.
    pub(crate) fn looks_in_vain(&mut self, node: &str, why: &str) {
        let why = clean(why).chars().take(LONGEST).collect();
        let before = self.in_vain.remove(node).map_or(0, |before| before.looks);
        let looks = before.saturating_add(1);
        self.in_vain.insert(node.to_owned(), InVain { looks, why });
    }

    /// Notes that a look at a node came to something.
    pub(crate) fn is_looked_at(&mut self, node: &str) {
        self.in_vain.remove(node);
    }

    /// Forgets all others than these.
    pub(crate) fn keep(&mut self, is_there: impl Fn(&str) -> bool) {
        self.nodes.retain(|node, _| is_there(node));
    }

    /// Forgets of all others than these that looks at them came to nothing.
    pub(crate) fn keep_in_vain(&mut self, is_looked_at: impl Fn(&str) -> bool) {
        self.in_vain.retain(|node, _| is_looked_at(node));
    }

    /// Why a node does not get further of which something cannot be read or written.
    pub(crate) fn failure(&self, node: &str) -> Option<&str> {
        let stuck = self.nodes.get(node).filter(|stuck| stuck.cause == Cause::Failure);
        stuck.map(|stuck| stuck.why.as_str())
    }

    /// That nobody knows how a node stands, and why, where no look at it came to anything for a while.
    pub(crate) fn in_vain(&self, node: &str) -> Option<String> {
        let in_vain = self.in_vain.get(node).filter(|it| it.looks >= TOLD_AFTER)?;
        Some(format!(
            "looks at it come to nothing, and go on: {}; where that does not end, see what keeps the API \
             server from answering",
            in_vain.why
        ))
    }

    /// Why a node is not begun by a plan that drains it or not, as long as that is not looked at
    /// again.
    pub(crate) fn why(&self, node: &str, drains: bool, by: &By, now: Instant) -> Option<&str> {
        let stuck = self.nodes.get(node).filter(|it| drains || it.cause == Cause::Failure)?;
        let is_same =
            |(key, before): (&String, &Option<Budget>)| by.budgets.get(key) == before.as_ref();
        let holds = stuck.until > now
            && stuck.generation == by.generation
            && stuck.budgets.iter().all(is_same);
        holds.then_some(stuck.why.as_str())
    }

    /// When the next one may be looked at again.
    pub(crate) fn due(&self, now: Instant) -> Option<Instant> {
        self.nodes.values().map(|stuck| stuck.until).filter(|until| *until > now).min()
    }
}

fn in_words(blocked: &[Blocked]) -> String {
    let one = |it: &Blocked| -> String {
        let text = format!("{}: {}", it.pod, it.by);
        clean(&text).chars().take(LONGEST).collect()
    };
    let named: Vec<String> = blocked.iter().take(NAMED).map(one).collect();
    let more = and_more(blocked.len(), NAMED);
    format!("it could not be drained, so it is not cordoned: {}{more}", named.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drain::Evicted;
    use serde_json::json;
    use std::sync::Arc;

    fn by(expected: i32, generation: i64) -> By {
        let budget = json!({"metadata": {"name": "b", "namespace": "a", "uid": "1"},
            "status": {"expectedPods": expected, "desiredHealthy": 1, "currentHealthy": 1,
                "disruptionsAllowed": 0}});
        let budget = Budget::of(&serde_json::from_value(budget).unwrap());
        let budgets = Arc::new(BTreeMap::from([("a/b".to_owned(), budget)]));
        By { budgets, generation: Some(generation) }
    }

    fn blocked() -> Vec<Blocked> {
        let full = Evicted::Full { budget: "b".to_owned(), why: "it wants 1".to_owned() };
        vec![Blocked { pod: "a/p".to_owned(), by: full }]
    }

    #[test]
    fn a_node_that_cannot_be_drained_is_looked_at_again_later_each_time() {
        let mut all = AllStuck::default();
        let (mut now, mut last) = (Instant::now(), Duration::ZERO);
        for _ in 0..8 {
            all.found("n", &blocked(), &by(1, 1), now);
            let why = all.why("n", true, &by(1, 1), now).unwrap();
            assert!(why.contains("a/p: the PodDisruptionBudget b"), "{why}");
            assert_eq!(all.why("n", false, &by(1, 1), now), None, "nothing is drained");
            let wait = all.due(now).unwrap() - now;
            assert!(wait >= last / 2 && wait <= WAITS.1, "{wait:?} after {last:?}");
            now += wait;
            assert_eq!((all.why("n", true, &by(1, 1), now), all.due(now)), (None, None));
            last = wait;
        }
        assert!(last > WAITS.0 * 4, "{last:?}");
        all.is_none("n");
        all.found("n", &blocked(), &by(1, 1), now);
        assert!(all.due(now).unwrap() - now < WAITS.0 * 2, "it began anew");
        all.keep(|_| false);
        assert_eq!(all.due(now), None);
    }

    #[test]
    fn a_node_that_could_not_be_looked_at_for_a_while_is_told_of_and_keeps_its_turn() {
        let (mut all, now) = (AllStuck::default(), Instant::now());
        for looks in 1..20 {
            all.looks_in_vain("n", "the API server\u{1b}[2J does not answer");
            let Some(why) = all.in_vain("n") else {
                assert!(looks < TOLD_AFTER, "{looks}");
                continue;
            };
            assert!(looks >= TOLD_AFTER, "{looks}");
            assert!(why.starts_with("looks at it come to nothing, and go on: the API"), "{why}");
            assert!(!why.contains('\u{1b}'), "{why}");
        }
        assert_eq!((all.why("n", true, &by(1, 1), now), all.due(now)), (None, None));
        assert_eq!(all.failure("n"), None);
        // One look that comes to something ends that.
        all.is_looked_at("n");
        all.looks_in_vain("n", "the API server does not answer");
        assert_eq!(all.in_vain("n"), None);
        all.keep_in_vain(|_| false);
        assert!(all.in_vain.is_empty());
    }

    #[test]
    fn it_is_looked_at_at_once_when_its_budget_or_its_rollout_changes() {
        let (mut all, now) = (AllStuck::default(), Instant::now());
        all.found("n", &blocked(), &by(1, 1), now);
        let why = |by: &By| all.why("n", true, by, now).is_some();
        assert!(why(&by(1, 1)));
        assert!(!why(&by(2, 1)), "its pods are others");
        assert!(!why(&by(1, 2)), "the Rollout says something else");
        assert!(!why(&By { generation: Some(1), ..By::default() }), "it is gone");
        assert_eq!(all.why("other", true, &by(1, 1), now), None);
    }

    #[test]
    fn one_that_cannot_be_read_leaves_its_turn_and_is_tried_again_soon_and_then_later() {
        let (mut all, mut now) = (AllStuck::default(), Instant::now());
        all.found("n", &blocked(), &by(1, 1), now);
        assert_eq!(all.failure("n"), None);
        let mut last = Duration::ZERO;
        for _ in 0..8 {
            all.fails("n", "the Lease\u{1b}[2J is odd", &by(1, 1), now);
            let why = all.why("n", false, &by(2, 1), now).unwrap();
            assert!(why.contains("it cannot be brought further: the Lease"), "{why}");
            assert!(!why.contains('\u{1b}'), "{why}");
            assert_eq!(all.failure("n"), Some(why));
            assert_eq!(all.why("n", false, &by(1, 2), now), None, "the Rollout is another one");
            last = all.due(now).unwrap() - now;
            assert!(last <= FAILURE_WAITS.1, "{last:?}");
            now += last;
            assert_eq!(all.why("n", false, &by(1, 1), now), None);
        }
        assert!(last > FAILURE_WAITS.0 * 4, "{last:?}");
        all.is_none("n");
        assert_eq!(all.failure("n"), None);
    }
}
