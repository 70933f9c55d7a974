//! Nodes that are not begun, since they could not be drained: until a budget, a pod or the
//! Rollout changes, or after a while that grows.

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

#[derive(Debug)]
struct Stuck {
    why: String,
    /// The budgets that hold its pods, as they were before it was looked at.
    budgets: BTreeMap<String, Option<Budget>>,
    generation: Option<i64>,
    until: Instant,
    backoff: Backoff,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct AllStuck(BTreeMap<String, Stuck>);

impl AllStuck {
    /// That a node is one, by what was known before it was looked at.
    pub(crate) fn found(&mut self, node: &str, blocked: &[Blocked], by: &By, now: Instant) {
        let budgets = blocked.iter().flat_map(|it| {
            let namespace = it.pod.split_once('/').map_or("", |(namespace, _)| namespace);
            it.by.budgets().iter().map(move |name| format!("{namespace}/{name}"))
        });
        let budgets = budgets.map(|key| {
            let budget = by.budgets.get(&key).cloned();
            (key, budget)
        });
        let backoff = self.0.remove(node).map(|before| before.backoff);
        let mut backoff = backoff.unwrap_or_else(|| Backoff::new(WAITS));
        let stuck = Stuck {
            why: in_words(blocked),
            budgets: budgets.collect(),
            generation: by.generation,
            until: now + backoff.next_wait(),
            backoff,
        };
        self.0.insert(node.to_owned(), stuck);
    }

    /// That a node is none.
    pub(crate) fn is_none(&mut self, node: &str) {
        self.0.remove(node);
    }

    /// Forgets all others than these.
    pub(crate) fn keep(&mut self, is_there: impl Fn(&str) -> bool) {
        self.0.retain(|node, _| is_there(node));
    }

    /// Why a node is not begun, as long as that is not looked at again.
    pub(crate) fn why(&self, node: &str, by: &By, now: Instant) -> Option<&str> {
        let stuck = self.0.get(node)?;
        let is_same =
            |(key, before): (&String, &Option<Budget>)| by.budgets.get(key) == before.as_ref();
        let holds = stuck.until > now
            && stuck.generation == by.generation
            && stuck.budgets.iter().all(is_same);
        holds.then_some(stuck.why.as_str())
    }

    /// When the next one may be looked at again.
    pub(crate) fn due(&self, now: Instant) -> Option<Instant> {
        self.0.values().map(|stuck| stuck.until).filter(|until| *until > now).min()
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
            let why = all.why("n", &by(1, 1), now).unwrap();
            assert!(why.contains("a/p: the PodDisruptionBudget b"), "{why}");
            let wait = all.due(now).unwrap() - now;
            assert!(wait >= last / 2 && wait <= WAITS.1, "{wait:?} after {last:?}");
            now += wait;
            assert_eq!((all.why("n", &by(1, 1), now), all.due(now)), (None, None));
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
    fn it_is_looked_at_at_once_when_its_budget_or_its_rollout_changes() {
        let (mut all, now) = (AllStuck::default(), Instant::now());
        all.found("n", &blocked(), &by(1, 1), now);
        let why = |by: &By| all.why("n", by, now).is_some();
        assert!(why(&by(1, 1)));
        assert!(!why(&by(2, 1)), "its pods are others");
        assert!(!why(&by(1, 2)), "the Rollout says something else");
        assert!(!why(&By { generation: Some(1), ..By::default() }), "it is gone");
        assert_eq!(all.why("other", &by(1, 1), now), None);
    }
}
