//! What tread answers by HTTP: how it is and what it counts, on a plain port;
//! warnings at admission, and plans and policies for other tools, by TLS.
//!
//! Whoever reaches a port may send anything. So connections, requests at a time,
//! headers, bodies and times are bounded, and a panic answers one request.

mod agents;
mod answer;
mod asks;
mod connections;
mod counting;
mod first_boots;
mod guard;
mod kept;
mod lists;
mod machines;
mod plain;
mod rates;
mod review;
mod sender;
mod sending;
mod shares;

pub use agents::{AgentReviewer, Agents, OfNode, PORT as AGENTS_PORT, agents};
pub use answer::Refused;
pub(crate) use answer::not_found;
pub use first_boots::first_boots;
pub use guard::{Limits, guarded};
pub use lists::{Items, Lists, lists};
pub use machines::{
    Fetch, FirstBoot, Machine, Machines, PORT as MACHINES_PORT, SentAway, WhySentAway, machines,
};
pub use plain::{Check, Readiness, plain};
pub use review::{Asked, Reviewer};
pub use sender::Sender;

use axum::Router;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use axum_server::{Handle, Server};
use connections::{Bounded, Most};
use hyper_util::rt::TokioTimer;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use tread_kube::metrics::Metrics;

/// How long headers may take to come, on a new connection or a resting one.
const HEADERS: Duration = Duration::from_secs(5);
/// The same by TLS: the API server keeps connections, and a handshake costs time.
const HEADERS_BY_TLS: Duration = Duration::from_secs(15);
/// How long a TLS handshake may take: after a replica was started anew, all agents of a large cluster
/// begin theirs at once, and a few hundred machines that boot do too.
const HANDSHAKE: Duration = Duration::from_secs(15);
/// How long requests may go on after tread was told to stop.
const GRACE: Duration = Duration::from_secs(5);
/// How much of what is sent or received a connection holds.
const HELD: usize = 64 << 10;
/// How many connections the plain port takes at a time, and how many probes besides.
const CONNECTIONS: Most = Most { common: 256, of_peer: 64, of_node: 0, probes: 32 };
/// How many the port with TLS takes, where nobody probes.
const CONNECTIONS_BY_TLS: Most = Most { common: 256, of_peer: 64, of_node: 0, probes: 0 };
/// How many the port for agents takes. Each has one for good, and one or two for permits. Those of
/// many nodes may come from one address, all at once: only those count for it that have not shown yet
/// of which node they are, and they leave room for 5,000 nodes.
const CONNECTIONS_OF_AGENTS: Most = Most { common: 8192, of_peer: 2048, of_node: 8, probes: 0 };
/// How many the port for machines takes that boot. Those of many may come from one address, which
/// leaves room for others all the same.
const CONNECTIONS_OF_MACHINES: Most = Most { common: 512, of_peer: 256, of_node: 0, probes: 0 };
/// How much of what is sent or received a connection of an agent, or of such a machine, holds.
const HELD_BY_AGENT: usize = 16 << 10;

/// A port that is bound, and answers from [`Port::serve`] on.
#[derive(Debug)]
pub struct Port {
    listener: TcpListener,
    address: SocketAddr,
    metrics: Metrics,
}

impl Port {
    /// Binds an address; port 0 is any free one.
    pub fn bind(address: SocketAddr) -> io::Result<Port> {
        let listener = TcpListener::bind(address).map_err(|error| {
            let text = format!("cannot listen on {address}: {error}; name another address, or end what listens there");
            io::Error::new(error.kind(), text)
        })?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Port { listener, address, metrics: Metrics::new() })
    }

    /// Counts there what is turned away.
    #[must_use]
    pub fn counting(self, metrics: &Metrics) -> Port {
        Port { metrics: metrics.clone(), ..self }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `stop`, and then finishes what was begun.
    pub async fn serve(
        self,
        router: Router,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        let server = axum_server::from_tcp(self.listener)?
            .acceptor(Bounded::new(CONNECTIONS, &self.metrics, "plain"))
            .handle(handle(stop));
        bounded(server, HEADERS, HELD).serve(whole(router).into_make_service()).await
    }

    /// The same by TLS, with the certificate that `config` gives at each handshake.
    pub async fn serve_tls(
        self,
        config: Arc<rustls::ServerConfig>,
        router: Router,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        self.serve_by_tls((config, router), (CONNECTIONS_BY_TLS, HELD, "tls"), stop).await
    }

    /// The same for [`agents`], of which there are thousands.
    pub async fn serve_agents(
        self,
        config: Arc<rustls::ServerConfig>,
        router: Router,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        let bounds = (CONNECTIONS_OF_AGENTS, HELD_BY_AGENT, "agents");
        self.serve_by_tls((config, router), bounds, stop).await
    }

    /// The same for [`machines`], which read much and slowly.
    pub async fn serve_machines(
        self,
        config: Arc<rustls::ServerConfig>,
        router: Router,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        let bounds = (CONNECTIONS_OF_MACHINES, HELD_BY_AGENT, "machines");
        self.serve_by_tls((config, router), bounds, stop).await
    }

    /// The same without TLS, for tests of what is answered.
    #[doc(hidden)]
    pub async fn serve_machines_plainly(
        self,
        router: Router,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        self.serve_plainly(router, (CONNECTIONS_OF_MACHINES, "machines"), stop).await
    }

    /// [`Port::serve_agents`] without TLS, for tests of what is answered.
    #[doc(hidden)]
    pub async fn serve_agents_plainly(
        self,
        router: Router,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        self.serve_plainly(router, (CONNECTIONS_OF_AGENTS, "agents"), stop).await
    }

    async fn serve_plainly(
        self,
        router: Router,
        (most, name): (Most, &'static str),
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        let server = axum_server::from_tcp(self.listener)?
            .acceptor(Bounded::new(most, &self.metrics, name))
            .handle(handle(stop));
        // A test on a busy machine is slow to send its requests.
        let headers = 10 * HEADERS_BY_TLS;
        bounded(server, headers, HELD_BY_AGENT).serve(whole(router).into_make_service()).await
    }

    async fn serve_by_tls(
        self,
        (config, router): (Arc<rustls::ServerConfig>, Router),
        (most, held, name): (Most, usize, &'static str),
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        let tls =
            RustlsAcceptor::new(RustlsConfig::from_config(config)).handshake_timeout(HANDSHAKE);
        let acceptor = tls.acceptor(Bounded::new(most, &self.metrics, name));
        let server = axum_server::from_tcp(self.listener)?.acceptor(acceptor).handle(handle(stop));
        bounded(server, HEADERS_BY_TLS, held).serve(whole(router).into_make_service()).await
    }
}

/// With bounds on what a connection may send before a request is there.
fn bounded<A>(
    mut server: Server<SocketAddr, A>,
    headers: Duration,
    held: usize,
) -> Server<SocketAddr, A> {
    server
        .http_builder()
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(headers)
        .max_buf_size(held)
        .max_headers(64);
    server.http1_only()
}

/// With answers for paths and methods that no route takes.
fn whole(router: Router) -> Router {
    router.fallback(answer::not_found).method_not_allowed_fallback(answer::wrong_method)
}

/// What ends a server.
fn handle(stop: impl Future<Output = ()> + Send + 'static) -> Handle<SocketAddr> {
    let handle = Handle::new();
    let stopped = handle.clone();
    tokio::spawn(async move {
        stop.await;
        stopped.graceful_shutdown(Some(GRACE));
    });
    handle
}
