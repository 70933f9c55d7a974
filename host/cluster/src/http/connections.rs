//! No more connections at a time than there is room for, and no more of one peer
//! than leave room for others: the kubelet's questions come by the same port as
//! everybody's, and whoever could keep them out could have tread restarted.

use axum_server::accept::Accept;
use std::collections::HashMap;
use std::future::{Ready, ready};
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Of one peer a quarter at most.
const PART: usize = 4;

/// Closes connections for which there is no room.
#[derive(Debug, Clone)]
pub(super) struct Bounded {
    most: usize,
    open: Arc<Mutex<Open>>,
}

/// The connections that are open.
#[derive(Debug, Default)]
struct Open {
    all: usize,
    /// None of them has none.
    by_peer: HashMap<IpAddr, usize>,
}

impl Bounded {
    pub(super) fn new(most: usize) -> Bounded {
        Bounded { most, open: Arc::default() }
    }

    /// Room for one more connection of a peer, if there is some.
    fn room(&self, peer: IpAddr) -> Option<Room> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.all >= self.most {
            return None;
        }
        let of_peer = open.by_peer.get(&peer).copied().unwrap_or_default();
        if of_peer >= (self.most / PART).max(1) {
            return None;
        }
        open.all += 1;
        open.by_peer.insert(peer, of_peer + 1);
        Some(Room { open: Arc::clone(&self.open), peer })
    }
}

/// What a connection takes, until it ends.
#[derive(Debug)]
struct Room {
    open: Arc<Mutex<Open>>,
    peer: IpAddr,
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.all = open.all.saturating_sub(1);
        match open.by_peer.get(&self.peer).copied() {
            Some(2..) => *open.by_peer.entry(self.peer).or_default() -= 1,
            _ => drop(open.by_peer.remove(&self.peer)),
        }
    }
}

impl<S> Accept<TcpStream, S> for Bounded {
    type Stream = Counted;
    type Service = S;
    type Future = Ready<io::Result<(Counted, S)>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        // One without a peer has ended already.
        let peer = stream.peer_addr().map(|peer| peer.ip().to_canonical());
        ready(peer.and_then(|peer| match self.room(peer) {
            Some(room) => {
                // It only costs time if this cannot be set.
                let _ = stream.set_nodelay(true);
                Ok((Counted { stream, _room: room }, service))
            }
            None => Err(io::Error::other("too many connections")),
        }))
    }
}

/// A connection that makes room when it ends.
#[derive(Debug)]
pub(super) struct Counted {
    stream: TcpStream,
    _room: Room,
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_peer_has_a_quarter_at_most_and_nothing_is_left_of_what_ended() {
        let bounded = Bounded::new(8);
        let peer = |last| IpAddr::from([10, 0, 0, last]);
        let mut open: Vec<Room> = (0..3).filter_map(|_| bounded.room(peer(1))).collect();
        assert_eq!(open.len(), 2);
        for last in 2..9 {
            open.extend((0..3).filter_map(|_| bounded.room(peer(last))));
        }
        assert_eq!(open.len(), 8);
        open.pop();
        assert!(bounded.room(peer(1)).is_none());
        assert!(bounded.room(peer(99)).is_some());
        drop(open);
        let left = bounded.open.lock().unwrap();
        assert_eq!((left.all, left.by_peer.len()), (0, 0));
    }
}
