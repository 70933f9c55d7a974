//! No more connections at a time than there is room for, and no more of one peer
//! than leave room for others. A connection on which nothing is asked makes way
//! for one that comes. Where all that are open are being answered, a few places
//! are left for probes: whoever could keep the kubelet out could have tread
//! restarted.

mod stream;
mod watched;

pub(super) use watched::{Connected, Peer};

use axum_server::accept::Accept;
use std::collections::BTreeMap;
use std::future::{Ready, ready};
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use stream::Counted;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tread_kube::metrics::{Metrics, Turned};
use watched::Watched;

/// Of one peer a quarter at most.
const PART: usize = 4;

/// How many connections a port takes at a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Most {
    /// For all.
    pub(super) common: usize,
    /// Besides, for probes.
    pub(super) probes: usize,
}

/// Takes connections for as long as there is room.
#[derive(Debug, Clone)]
pub(super) struct Bounded {
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
    /// How many requests are being answered on it.
    asked: usize,
    /// Dropping it closes the connection.
    _closes: oneshot::Sender<()>,
}

/// What a connection may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Common,
    Probes,
}

impl Bounded {
    pub(super) fn new(most: Most, metrics: &Metrics, port: &'static str) -> Bounded {
        Bounded { most, open: Arc::default(), metrics: metrics.clone(), port }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Room for one more connection of a peer, and what says when it has to end.
    fn room(&self, peer: IpAddr) -> Option<(Room, oneshot::Receiver<()>)> {
        let mut open = self.lock();
        let Some((place, closed)) = open.place(peer, self.most) else {
            drop(open);
            self.turned("refused");
            return None;
        };
        let (closes, ends) = oneshot::channel();
        let id = open.next;
        open.next += 1;
        open.all.insert(id, Connection { peer, place, asked: 0, _closes: closes });
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
        let own = |it: &Connection| common(it) && it.peer == peer;
        let of_peer = self.count(own);
        let room = match of_peer >= (most.common / PART).max(1) {
            true => self.close_oldest(own).then_some(true),
            false if self.count(common) < most.common => Some(false),
            false => self.close_oldest(common).then_some(true),
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
struct Room {
    of: Bounded,
    id: u64,
    place: Place,
}

impl Room {
    /// Closes the connection.
    fn close(&self) {
        if self.of.lock().all.remove(&self.id).is_some() {
            self.of.turned("closed");
        }
    }

    /// Notes that a request came, or was answered.
    fn asked(&self, change: impl FnOnce(usize) -> usize) {
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

impl<S> Accept<TcpStream, S> for Bounded {
    type Stream = Counted;
    type Service = Watched<S>;
    type Future = Ready<io::Result<(Counted, Watched<S>)>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        // One without a peer has ended already.
        let peer = stream.peer_addr().map(|peer| peer.ip().to_canonical());
        ready(peer.and_then(|peer| match self.room(peer) {
            Some((room, ends)) => {
                // It only costs time if this cannot be set.
                let _ = stream.set_nodelay(true);
                let room = Arc::new(room);
                Ok((
                    Counted::new(stream, Arc::clone(&room), ends),
                    Watched::new(service, room, peer),
                ))
            }
            None => Err(io::Error::other("too many connections")),
        }))
    }
}

#[cfg(test)]
mod tests;
