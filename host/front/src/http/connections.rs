//! No more connections at a time than there is room for, and no more of one peer
//! than leave room for others. A connection on which nothing is asked makes way
//! for one that comes. Where all that are open are being answered, a few places
//! are left for probes: whoever could keep the kubelet out could have tread
//! restarted.

mod room;
mod stream;
mod watched;

pub(super) use room::{Bounded, Most};
pub(super) use watched::{Connected, Peer};

use axum_server::accept::Accept;
use std::future::{Ready, ready};
use std::io;
use std::sync::Arc;
use stream::Counted;
use tokio::net::TcpStream;
use watched::Watched;

impl<S> Accept<TcpStream, S> for Bounded {
    type Stream = Counted;
    type Service = Watched<S>;
    type Future = Ready<io::Result<(Counted, Watched<S>)>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        // A connection without the address of a peer has ended already.
        let peer = stream.peer_addr().map(|peer| peer.ip().to_canonical());
        ready(peer.and_then(|peer| match self.room(peer) {
            Some((room, ends)) => {
                // Without it answers only take longer.
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
