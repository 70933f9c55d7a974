//! What is asked on a connection: by whom, and whether it is being answered.

use super::room::{Place, Room};
use crate::http::answer::Refused;
use axum::http::{Request, StatusCode};
use axum::response::Response;
use futures::future::BoxFuture;
use std::net::IpAddr;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use tower::Service;

/// What is answered in the places that are left for probes.
const PROBES: [&str; 2] = ["/healthz", "/readyz"];

/// Who asks: every request has it among its extensions.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct Peer(pub(in crate::http) IpAddr);

/// The connection on which something is asked: every request has it among its
/// extensions, and it counts as being answered until this is dropped.
#[derive(Debug, Clone)]
pub(in crate::http) struct Connected(Arc<Asked>);

/// What closes a connection, as long as it is there.
#[derive(Debug)]
pub(in crate::http) struct Closes(Weak<Room>);

impl Connected {
    /// Notes of which node the connection is; whether there is room for one more of that.
    pub(in crate::http) fn is_of(&self, node: &str) -> bool {
        self.0.0.is_of(node)
    }

    pub(in crate::http) fn closes(&self) -> Closes {
        Closes(Arc::downgrade(&self.0.0))
    }
}

impl Closes {
    pub(in crate::http) fn close(&self) {
        if let Some(room) = self.0.upgrade() {
            room.close();
        }
    }
}

/// The service of one connection.
#[derive(Debug, Clone)]
pub(in crate::http) struct Watched<S> {
    service: S,
    room: Arc<Room>,
    peer: IpAddr,
}

impl<S> Watched<S> {
    pub(super) fn new(service: S, room: Arc<Room>, peer: IpAddr) -> Watched<S> {
        Watched { service, room, peer }
    }
}

impl<S, B> Service<Request<B>> for Watched<S>
where
    S: Service<Request<B>, Response = Response>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        if self.room.place == Place::Probes && !PROBES.contains(&request.uri().path()) {
            let sentence = "too many connections are open; try again";
            let response = Refused::new(StatusCode::SERVICE_UNAVAILABLE, sentence).and_ends();
            return Box::pin(async move { Ok(response) });
        }
        request.extensions_mut().insert(Peer(self.peer));
        let asked = Connected(Arc::new(Asked::on(&self.room)));
        request.extensions_mut().insert(asked.clone());
        let answer = self.service.call(request);
        Box::pin(async move {
            let answer = answer.await;
            drop(asked);
            answer
        })
    }
}

/// A request that is being answered, or was given up.
#[derive(Debug)]
struct Asked(Arc<Room>);

impl Asked {
    fn on(room: &Arc<Room>) -> Asked {
        room.asked(|asked| asked + 1);
        Asked(Arc::clone(room))
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.0.asked(|asked| asked.saturating_sub(1));
    }
}
