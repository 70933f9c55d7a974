//! What machines ask that boot for the first time, on a port of their own: the config of a
//! pool, for whoever shows its token. Whoever shows none is told nothing of any pool.

use super::answer::Refused;
use super::counting::{Asks, counted};
use super::guard::{Limits, guarded_by};
use super::sender::{Sender, bearer};
use super::shares::Shares;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use futures::future::BoxFuture;
use futures::stream;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tread_kube::metrics::Metrics;
use tread_model::joining::first_boot::FirstBootReport;
use tread_model::joining::{Asked, asked};
use tread_model::object_name::is_name;

/// The port on which machines ask.
pub const PORT: u16 = 22623;
/// What stands before the pool's name.
const PATH: &str = "/config/";
/// Many machines of a site start at the same time. A config is of a megabyte, and lines to far
/// sites are slow. Each that is answered has a connection, of which there are no more.
const LIMITS: Limits = Limits { at_a_time: 512, time: Duration::from_secs(120), body: 1 };
/// Of these, for one pool: whoever has its token, and does not read, keeps no other pool out.
const OF_POOL: usize = 208;
/// The same words, whatever is wrong: nobody learns which pools there are.
const ADVICE: &str = "send a pool's token: Authorization: Bearer TOKEN, as in the machine's user data; \
    if it was exchanged, make that anew: tread pools stub POOL";

/// Who asks for the config of a pool, and shows its token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetch {
    /// The pool.
    pub pool: String,
    /// The version that it reads: 3.X; none: whatever there is.
    pub minor: Option<u8>,
    /// The address that asks.
    pub from: IpAddr,
    /// Whether it gets the config; or else only what stands above it.
    pub whole: bool,
}

/// What a machine gets: the same text for all but the claim.
#[derive(Clone)]
pub struct Machine {
    /// What stands before the claim.
    pub head: Arc<[u8]>,
    /// Its claim.
    pub claim: String,
    /// What follows.
    pub tail: Arc<[u8]>,
}

/// What a machine of a pool says of its first boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstBoot {
    /// The pool whose token it shows.
    pub pool: String,
    /// The address that asks.
    pub from: IpAddr,
    /// What it says.
    pub report: FirstBootReport,
}

/// A machine that was sent away. Ignition does not ask again after that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentAway {
    /// The pool that it named: there may be none. Empty: it named none.
    pub pool: String,
    /// The address that asked.
    pub from: IpAddr,
    /// Why.
    pub why: WhySentAway,
}

/// Why a machine was sent away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhySentAway {
    /// It showed no token.
    NoToken,
    /// It showed one that is none of the pool's.
    OtherToken,
    /// It reads no version that its config fits: a sentence.
    Version(String),
}

/// Who knows what machines boot with.
pub trait Machines: Send + Sync + 'static {
    /// Whether a token is one of this pool's; none as long as no tokens, or no pools, are known. It says
    /// no, and takes as long, where there is no such pool.
    fn admit(&self, pool: &str, token: &str) -> Option<bool>;

    /// What a machine gets that shows this token.
    fn serve(&self, fetch: Fetch, token: &str) -> BoxFuture<'static, Result<Machine, Refused>>;

    /// Takes what a machine says of its first boot.
    fn hear(&self, first_boot: FirstBoot) -> Result<(), Refused>;

    /// That a machine was sent away: whoever asked is told nothing of what becomes of that, and it
    /// takes as long where there is no such pool.
    fn sent_away(&self, machine: SentAway);
}

/// `GET` and `HEAD` of `/config/POOL`.
pub fn machines(machines: Arc<dyn Machines>, metrics: &Metrics) -> Router {
    let knows = Arc::clone(&machines);
    let shares = Shares::new(OF_POOL, Arc::new(move |request| whose(&*knows, request)));
    let router = Router::new().route("/config/{pool}", get(config)).with_state(machines);
    counted(guarded_by(router, LIMITS, shares), Asks::Config, metrics)
}

/// The pool that a request is about, and whose token it shows.
pub(super) fn admitted(
    machines: &dyn Machines,
    from: &Sender,
    request: &Request,
    before: &str,
) -> Result<String, Refused> {
    let token = from.token(ADVICE)?;
    let pool = named(request, before);
    // What is no name is asked for as well, so that it takes as long.
    let Some(admitted) = machines.admit(pool, token) else {
        let sentence = "tread does not know the pools and their tokens now; ask again";
        return Err(Refused::new(StatusCode::SERVICE_UNAVAILABLE, sentence));
    };
    if admitted && is_name(pool) {
        return Ok(pool.to_owned());
    }
    Err(Refused::new(StatusCode::UNAUTHORIZED, ADVICE))
}

/// The pool whose token a request shows; whoever shows none is sent away at once.
fn whose(machines: &dyn Machines, request: &Request) -> Option<String> {
    let (pool, token) = (named(request, PATH), bearer(request.headers())?);
    let is_admitted = machines.admit(pool, token) == Some(true) && is_name(pool);
    is_admitted.then(|| pool.to_owned())
}

/// What a request names as its pool, as it was sent: the name of a pool needs no escapes.
fn named<'r>(request: &'r Request, before: &str) -> &'r str {
    request.uri().path().strip_prefix(before).unwrap_or_default()
}

async fn config(
    State(machines): State<Arc<dyn Machines>>,
    from: Sender,
    request: Request,
) -> Result<Response, Refused> {
    let pool = Some(named(&request, PATH)).filter(|pool| is_name(pool));
    let pool = pool.unwrap_or_default().to_owned();
    let fetch = fetch(&*machines, &from, &request);
    let answer = match fetch {
        Ok(fetch) => machines.serve(fetch, from.token(ADVICE)?).await.map(answered),
        Err(refused) => Err(refused),
    };
    if let Err(refused) = &answer {
        let why = match refused.status {
            StatusCode::UNAUTHORIZED if from.token(ADVICE).is_ok() => Some(WhySentAway::OtherToken),
            StatusCode::UNAUTHORIZED => Some(WhySentAway::NoToken),
            StatusCode::NOT_ACCEPTABLE => Some(WhySentAway::Version(refused.sentence.clone())),
            _ => None,
        };
        if let Some(why) = why {
            machines.sent_away(SentAway { pool, from: from.peer, why });
        }
    }
    answer
}

/// What a request asks for that shows a token of its pool.
fn fetch(machines: &dyn Machines, from: &Sender, request: &Request) -> Result<Fetch, Refused> {
    let pool = admitted(machines, from, request, PATH)?;
    let minor = match asked(&accepted(request.headers())) {
        Asked::Three(minor) => Some(minor),
        Asked::Any => None,
        Asked::Older => {
            let sentence = "the machine's Ignition reads version 2 or 1 alone, and configs are of version 3: \
                boot it from a newer image";
            return Err(Refused::new(StatusCode::NOT_ACCEPTABLE, sentence));
        }
    };
    let whole = request.method() != Method::HEAD;
    Ok(Fetch { pool, minor, from: from.peer, whole })
}

/// All that is accepted, as one text.
fn accepted(headers: &HeaderMap) -> String {
    let all = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    all.collect::<Vec<_>>().join(",")
}

fn answered(machine: Machine) -> Response {
    let Machine { head, claim, tail } = machine;
    let length = head.len() + claim.len() + tail.len();
    let parts = [Bytes::from_owner(head), Bytes::from(claim), Bytes::from_owner(tail)];
    let body = Body::from_stream(stream::iter(parts.map(Ok::<Bytes, Infallible>)));
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (header::CONTENT_LENGTH, HeaderValue::from(length)),
    ];
    (headers, body).into_response()
}
