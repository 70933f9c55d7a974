//! How much is asked of one node at a time. An agent that lost its connection asks anew, and
//! what it asked before ends then.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

/// Of each node the newest question is answered.
#[derive(Clone, Default)]
pub(super) struct Newest(Arc<Mutex<Waiting>>);

#[derive(Default)]
struct Waiting {
    next: u64,
    /// Dropping the sender ends the question.
    all: HashMap<String, (u64, oneshot::Sender<()>)>,
}

/// That a question is answered, until this is dropped.
pub(super) struct Place {
    of: Newest,
    node: String,
    number: u64,
}

impl Newest {
    /// The place of the newest question of a node, and what tells when there is a newer one.
    pub(super) fn take(&self, node: &str) -> (Place, impl Future<Output = ()> + use<>) {
        let (ends, ended) = oneshot::channel();
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.next += 1;
        let number = waiting.next;
        waiting.all.insert(node.to_owned(), (number, ends));
        let place = Place { of: self.clone(), node: node.to_owned(), number };
        (place, async {
            let _ = ended.await;
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut waiting = self.of.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.all.get(&self.node).is_some_and(|(number, _)| *number == self.number) {
            waiting.all.remove(&self.node);
        }
    }
}

/// Of each node only a few questions are answered at a time.
#[derive(Clone)]
pub(super) struct Few {
    most: usize,
    of: Arc<Mutex<HashMap<String, usize>>>,
}

/// One of a few.
pub(super) struct OneOfFew {
    few: Few,
    node: String,
}

impl Few {
    pub(super) fn of(most: usize) -> Few {
        Few { most, of: Arc::default() }
    }

    /// One more for a node, if there is room.
    pub(super) fn take(&self, node: &str) -> Option<OneOfFew> {
        let mut of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        let count = of.entry(node.to_owned()).or_default();
        (*count < self.most).then(|| {
            *count += 1;
            OneOfFew { few: self.clone(), node: node.to_owned() }
        })
    }
}

impl Drop for OneOfFew {
    fn drop(&mut self) {
        let mut of = self.few.of.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = of.get_mut(&self.node) {
            *count -= 1;
            if *count == 0 {
                of.remove(&self.node);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    #[test]
    fn the_newest_question_of_a_node_ends_the_one_before_and_no_other() {
        let newest = Newest::default();
        let (first, ends) = newest.take("a");
        let (other, ends_other) = newest.take("b");
        let (mut ends, mut ends_other) = (Box::pin(ends), Box::pin(ends_other));
        assert!(ends.as_mut().now_or_never().is_none());
        let (second, ends_second) = newest.take("a");
        let mut ends_second = Box::pin(ends_second);
        assert!(ends.as_mut().now_or_never().is_some());
        drop(first);
        assert!(ends_second.as_mut().now_or_never().is_none());
        assert!(ends_other.as_mut().now_or_never().is_none());
        drop((second, other));
        assert!(newest.0.lock().unwrap().all.is_empty());
    }

    #[test]
    fn of_one_node_only_a_few_are_answered_at_a_time() {
        let few = Few::of(2);
        let held = [few.take("a").unwrap(), few.take("a").unwrap()];
        assert!(few.take("a").is_none());
        assert!(few.take("b").is_some());
        drop(held);
        assert!(few.take("a").is_some());
        assert!(few.of.lock().unwrap().is_empty());
    }
}
