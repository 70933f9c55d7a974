//! Changes of the slots that wait to be written. A replica writes all of its changes at once: when
//! several write the same object at the same time, one succeeds, and all others have to read
//! everything again.

use crate::still::Still;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex as Short, PoisonError};
use tokio::sync::{Mutex, OwnedMutexGuard, oneshot};
use tread_kube::asking::Failed;
use tread_model::protocol::{Limits, Operation, Slot, Slots};

/// The slots of nodes, by their names, and the names of their pools.
type All = Slots<String, String>;

/// What is to be changed for a node.
#[derive(Debug, Clone)]
pub(crate) enum To {
    /// It takes a slot.
    Take {
        slot: Slot,
        pool: String,
        limits: Limits,
        /// Nodes that are unavailable for any other reason than a slot, with their pools.
        unavailable: Arc<BTreeMap<String, String>>,
    },
    /// It gives that of this operation back.
    Release(Operation),
}

/// A change of a node's slot, and what the protocol saw of the slots when it answered with that.
#[derive(Debug)]
pub(crate) struct Change {
    node: String,
    to: To,
    /// Its slot, and whether there was room for one as it takes.
    slots_seen: (Option<Slot>, Option<bool>),
    /// Whether it is still that node's turn.
    still: Still,
}

impl Change {
    /// A change by what was read of the slots.
    pub(crate) fn new(node: String, to: To, read: &All, still: Still) -> Change {
        let slots_seen = slots_seen(&node, &to, read);
        Change { node, to, slots_seen, still }
    }

    /// That of this operation is given back.
    pub(crate) fn release(node: String, operation: Operation, read: &All) -> Change {
        Change::new(node, To::Release(operation), read, Still::default())
    }

    /// The slots with the change. None where the protocol would see something else by now, and
    /// so might answer with something else.
    fn onto(&self, slots: &All) -> Option<All> {
        if slots_seen(&self.node, &self.to, slots) != self.slots_seen || !self.still.holds() {
            return None;
        }
        let slots = slots.clone();
        Some(match &self.to {
            To::Take { slot, pool, .. } => slots.with(self.node.clone(), pool.clone(), *slot),
            To::Release(operation) => slots.without(&self.node, *operation),
        })
    }
}

/// What the protocol goes by in the slots for this change: to give a slot back needs no room.
fn slots_seen(node: &String, to: &To, slots: &All) -> (Option<Slot>, Option<bool>) {
    let room = match to {
        To::Release(_) => None,
        To::Take { slot, pool, limits, unavailable } => {
            Some(slots.has_room(node, pool, !slot.unavailable, *limits, unavailable))
        }
    };
    (slots.of(node), room)
}

/// A change, and where it is told what came of it.
pub(crate) type Waiting = (Change, oneshot::Sender<Result<(), Failed>>);

/// The slots after these changes, one after the other; the changes that are in there; and those
/// that are not, for which everything has to be read again.
pub(crate) fn onto(slots: &All, all: Vec<Waiting>) -> (All, Vec<Waiting>, Vec<Waiting>) {
    let (mut slots, mut within, mut others) = (slots.clone(), Vec::new(), Vec::new());
    for (change, answer) in all {
        // Nobody waits for it any more.
        if answer.is_closed() {
            continue;
        }
        match change.onto(&slots) {
            Some(next) => {
                slots = next;
                within.push((change, answer));
            }
            None => others.push((change, answer)),
        }
    }
    (slots, within, others)
}

/// Whose turn it is to write the slots, and all changes that wait for it. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Turn {
    turn: Arc<Mutex<()>>,
    waiting: Arc<Short<Vec<Waiting>>>,
}

impl Turn {
    /// Has a change wait for whoever has the turn next.
    pub(crate) fn wait(&self, change: Change) -> oneshot::Receiver<Result<(), Failed>> {
        let (answer, answered) = oneshot::channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push((change, answer));
        answered
    }

    /// How many changes wait.
    pub fn waiting(&self) -> usize {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The turn, as soon as nobody else has it.
    pub(crate) async fn taken(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.turn).lock_owned().await
    }

    /// All that wait.
    pub(crate) fn all(&self) -> Vec<Waiting> {
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(operation: u128, unavailable: bool) -> Slot {
        Slot { operation: Operation(operation), unavailable }
    }

    fn take(node: &str, slot: Slot, room: usize, read: &All) -> Change {
        let limits = Limits { pool: room, all: room, soft: room, one_by_one: false };
        let to = To::Take { slot, pool: "worker".to_owned(), limits, unavailable: Arc::default() };
        Change::new(node.to_owned(), to, read, Still::default())
    }

    fn release(node: &str, operation: u128, read: &All) -> Change {
        Change::release(node.to_owned(), Operation(operation), read)
    }

    /// The nodes that have a slot then, and the changes that are within.
    fn written(slots: &All, all: Vec<Change>) -> (Vec<String>, Vec<String>) {
        let (wait, _answers): (Vec<_>, Vec<_>) = all
            .into_iter()
            .map(|change| {
                let (answer, answered) = oneshot::channel();
                ((change, answer), answered)
            })
            .unzip();
        let count = wait.len();
        let (slots, within, others) = onto(slots, wait);
        assert_eq!(within.len() + others.len(), count);
        let within = within.into_iter().map(|(change, _)| change.node).collect();
        (slots.taken.into_keys().collect(), within)
    }

    #[test]
    fn many_that_read_the_same_take_no_more_slots_than_there_are() {
        let read = All::default();
        let all = ["a", "b", "c"].map(|node| take(node, slot(1, true), 2, &read));
        assert_eq!(
            written(&read, all.into()),
            (vec!["a".into(), "b".into()], vec!["a".into(), "b".into()])
        );
    }

    #[test]
    fn whoever_gives_a_slot_back_makes_no_room_for_one_that_read_none() {
        let read = All::default().with("a".to_owned(), "worker".to_owned(), slot(1, true));
        let all = vec![release("a", 1, &read), take("b", slot(2, true), 1, &read)];
        // It reads everything again, and then there is room.
        assert_eq!(written(&read, all), (vec![], vec!["a".into()]));
    }

    #[test]
    fn what_was_read_of_a_slot_and_is_otherwise_by_now_changes_nothing() {
        let read = All::default();
        let now = read.clone().with("a".to_owned(), "worker".to_owned(), slot(2, true));
        assert_eq!(
            written(&now, vec![take("a", slot(1, true), 9, &read)]),
            (vec!["a".into()], vec![])
        );
        let gone = release("a", 2, &now);
        assert_eq!(written(&read, vec![gone]), (vec![], vec![]));
    }

    #[test]
    fn nobody_takes_a_slot_whose_turn_has_ended_or_who_waits_no_more() {
        let read = All::default();
        let ended = Change { still: Still::by(|| false), ..take("a", slot(1, true), 9, &read) };
        assert_eq!(written(&read, vec![ended]), (vec![], vec![]));
        let (answer, _) = oneshot::channel();
        let (slots, within, others) =
            onto(&read, vec![(take("a", slot(1, true), 9, &read), answer)]);
        assert!(slots.taken.is_empty() && within.is_empty() && others.is_empty());
    }
}
