//! How many connections there may be, and which makes way for another.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;
use tread_kube::metrics::{Metrics, Turned};

/// How many connections a port takes at a time.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct Most {
    /// For all.
    pub(in crate::http) common: usize,
    /// Of these, for one peer, as long as they are of no node.
    pub(in crate::http) of_peer: usize,
    /// Of these, for one node, where agents ask; 0: nodes are not told apart.
    pub(in crate::http) of_node: usize,
    /// Besides, for probes.
    pub(in crate::http) probes: usize,
}

/// Takes connections for as long as there is room.
#[derive(Debug, Clone)]
pub(in crate::http) struct Bounded {
    most: Most,
    open: Arc<Mutex<Open>>,
    metrics: Metrics,
    port: &'static str,
}

/// The connections that are open, in the order in which they came.
#[derive(Debug, Default)]
struct Open {
    next: u64,
    all: BTreeMap<u64, Connection>,
}

#[derive(Debug)]
struct Connection {
    peer: IpAddr,
    place: Place,
    /// Of which node it is, once its token was reviewed.
    node: Option<String>,
    /// How many requests are being answered on it.
    asked: usize,
    /// Dropping it closes the connection.
    _closes: oneshot::Sender<()>,
}

/// What a connection may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Common,
    Probes,
}

impl Bounded {
    pub(in crate::http) fn new(most: Most, metrics: &Metrics, port: &'static str) -> Bounded {
        Bounded { most, open: Arc::default(), metrics: metrics.clone(), port }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Room for one more connection of a peer, and what tells it to end.
    pub(super) fn room(&self, peer: IpAddr) -> Option<(Room, oneshot::Receiver<()>)> {
        let mut open = self.lock();
        let Some((place, closed)) = open.place(peer, self.most) else {
            drop(open);
            self.turned("refused");
            return None;
        };
        let (closes, ends) = oneshot::channel();
        let id = open.next;
        open.next += 1;
        open.all.insert(id, Connection { peer, place, node: None, asked: 0, _closes: closes });
        drop(open);
        if closed {
            self.turned("closed");
        }
        Some((Room { of: self.clone(), id, place }, ends))
    }

    fn turned(&self, how: &'static str) {
        self.metrics.turned_away.get_or_create(&Turned { port: self.port, how }).inc();
    }
}

impl Open {
    /// Where there is room for one more of a peer, and whether another connection
    /// was closed for it.
    fn place(&mut self, peer: IpAddr, most: Most) -> Option<(Place, bool)> {
        let common = |it: &Connection| it.place == Place::Common;
        let is_unknown = |it: &Connection| common(it) && it.node.is_none();
        let own = |it: &Connection| is_unknown(it) && it.peer == peer;
        let of_peer = self.count(own);
        let room = match of_peer >= most.of_peer.max(1) {
            true => self.close_oldest(own).then_some(true),
            false if self.count(common) < most.common => Some(false),
            // An agent that is known asks again soon.
            false => (self.close_oldest(is_unknown) || self.close_oldest(common)).then_some(true),
        };
        if let Some(closed) = room {
            return Some((Place::Common, closed));
        }
        let probes = |it: &Connection| it.place == Place::Probes;
        if self.count(probes) < most.probes {
            return Some((Place::Probes, false));
        }
        (most.probes > 0 && self.close_oldest(probes)).then_some((Place::Probes, true))
    }

    fn count(&self, which: impl Fn(&Connection) -> bool) -> usize {
        self.all.values().filter(|it| which(it)).count()
    }

    /// Closes the oldest of some connections on which nothing is asked; whether
    /// there was one.
    fn close_oldest(&mut self, which: impl Fn(&Connection) -> bool) -> bool {
        let oldest = self.all.iter().find(|(_, it)| it.asked == 0 && which(it));
        let oldest = oldest.map(|(id, _)| *id);
        oldest.is_some_and(|id| self.all.remove(&id).is_some())
    }
}

/// What a connection takes, until it ends.
#[derive(Debug)]
pub(super) struct Room {
    of: Bounded,
    id: u64,
    pub(super) place: Place,
}

impl Room {
    /// Closes the connection.
    pub(super) fn close(&self) {
        if self.of.lock().all.remove(&self.id).is_some() {
            self.of.turned("closed");
        }
    }

    /// Notes which node the connection belongs to, if there is room for one more of that node. If
    /// not, the oldest one of that node on which nothing is asked is closed for it.
    pub(super) fn is_of(&self, node: &str) -> bool {
        if self.of.most.of_node == 0 {
            return true;
        }
        let mut open = self.of.lock();
        let known = open.all.get(&self.id).map(|it| it.node.as_deref() == Some(node));
        if known != Some(false) {
            // It is known, or was closed meanwhile.
            return true;
        }
        let of_node = |it: &Connection| it.node.as_deref() == Some(node);
        let is_full = open.count(of_node) >= self.of.most.of_node;
        let has_room = !is_full || open.close_oldest(of_node);
        if has_room && let Some(it) = open.all.get_mut(&self.id) {
            it.node = Some(node.to_owned());
        }
        drop(open);
        if is_full {
            self.of.turned(if has_room { "closed" } else { "refused" });
        }
        has_room
    }

    /// Notes that a request came, or was answered.
    pub(super) fn asked(&self, change: impl FnOnce(usize) -> usize) {
        if let Some(it) = self.of.lock().all.get_mut(&self.id) {
            it.asked = change(it.asked);
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.of.lock().all.remove(&self.id);
    }
}

#[cfg(test)]
mod tests;
