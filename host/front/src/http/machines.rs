//! What machines ask that boot for the first time, on a port of their own: the config of a
//! pool, for whoever shows its token. Whoever shows none is told nothing of any pool.

use super::answer::Refused;
use super::guard::{Limits, guarded};
use super::sender::Sender;
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
use tread_model::joining::first_boot::Told;
use tread_model::joining::{Asked, asked};
use tread_model::object_name::is_name;

/// The port on which machines ask.
pub const PORT: u16 = 22623;
/// What stands before the pool's name.
const PATH: &str = "/config/";
/// Many machines of a site start at the same time. A config is of a megabyte, and lines to far
/// sites are slow.
const LIMITS: Limits = Limits { at_a_time: 256, time: Duration::from_secs(120), body: 1 };
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
    pub told: Told,
}

/// Who knows what machines boot with.
pub trait Machines: Send + Sync + 'static {
    /// Whether a token is one of this pool's; none as long as no tokens are known. It says no, and
    /// takes as long, where there is no such pool.
    fn admit(&self, pool: &str, token: &str) -> Option<bool>;

    /// What a machine gets that shows this token.
    fn serve(&self, fetch: Fetch, token: &str) -> BoxFuture<'static, Result<Machine, Refused>>;

    /// Takes what a machine says of its first boot.
    fn hear(&self, first_boot: FirstBoot) -> Result<(), Refused>;
}

/// `GET` and `HEAD` of `/config/POOL`.
pub fn machines(machines: Arc<dyn Machines>) -> Router {
    guarded(Router::new().route("/config/{pool}", get(config)).with_state(machines), LIMITS)
}

/// The pool that a request is about, and whose token it shows.
pub(super) fn admitted(
    machines: &dyn Machines,
    from: &Sender,
    request: &Request,
    before: &str,
) -> Result<String, Refused> {
    let token = from.token(ADVICE)?;
    // As it was sent: the name of a pool needs no escapes.
    let pool = request.uri().path().strip_prefix(before).unwrap_or_default();
    // What is no name is asked for as well, so that it takes as long.
    let Some(admitted) = machines.admit(pool, token) else {
        let sentence = "tread does not know the tokens of pools yet; ask again";
        return Err(Refused::new(StatusCode::SERVICE_UNAVAILABLE, sentence));
    };
    if admitted && is_name(pool) {
        return Ok(pool.to_owned());
    }
    Err(Refused::new(StatusCode::UNAUTHORIZED, ADVICE))
}

async fn config(
    State(machines): State<Arc<dyn Machines>>,
    from: Sender,
    request: Request,
) -> Result<Response, Refused> {
    let pool = admitted(&*machines, &from, &request, PATH)?;
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
    let fetch = Fetch { pool, minor, from: from.peer, whole };
    Ok(answered(machines.serve(fetch, from.token(ADVICE)?).await?))
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
