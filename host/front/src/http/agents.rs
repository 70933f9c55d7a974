//! What agents ask, on a port of their own: what is to be done on their node, and whether
//! something may begin. Which node it is, the API server says of the token that is sent.

mod one;
mod reviewer;
mod token;

pub use reviewer::{AgentReviewer, OfNode};

use super::answer::Refused;
use super::connections::Connected;
use super::guard::{Limits, guarded};
use super::sender::Sender;
use super::sending::sent;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use futures::future::BoxFuture;
use one::{Few, Newest};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};
use tread_kube::agents::{Answer, Ask, Instructions, PERMIT, WAIT, Wait};

/// The port on which agents ask.
pub const PORT: u16 = 8444;
/// How long an agent may wait until there is something else, at most. Connections through a
/// cluster's network rest for longer.
const WAITS: Duration = Duration::from_secs(280);
/// How long it may take to send what it asks.
const READING: Duration = Duration::from_secs(10);
/// How long it may take to send what answers it.
const SENDING: Duration = Duration::from_secs(30);
/// How many configs are on their way at a time; the others wait.
const SENT_AT_A_TIME: usize = 32;
/// An answer of so many bytes waits for nobody.
const LITTLE: usize = 8 << 10;
/// No question is longer.
const LONGEST: usize = 4 << 10;
/// How many permits an agent may ask for at a time.
const PERMITS_OF_NODE: usize = 4;
/// How many of all that were asked for are decided at a time; the others wait.
const DECIDED_AT_A_TIME: usize = 256;

const OF_WAITS: Limits =
    Limits { at_a_time: 8192, time: WAITS.saturating_add(SENDING), body: LONGEST };
/// Whoever is slow to send what it asks takes no place of those who have sent it.
const OF_PERMITS: Limits =
    Limits { at_a_time: OF_WAITS.at_a_time, time: Duration::from_secs(30), body: LONGEST };

/// Who knows what is to be done on nodes.
pub trait Agents: Send + Sync + 'static {
    /// What is to be done on a node, once it is something else than what its agent has seen, or
    /// after a while. It is given up where it takes longer than 280 seconds.
    fn wait(&self, node: &OfNode, wait: Wait) -> BoxFuture<'static, Result<Instructions, Refused>>;

    /// Whether something may begin there.
    fn permit(&self, node: &OfNode, ask: Ask) -> BoxFuture<'static, Answer>;
}

#[derive(Clone)]
struct Service {
    reviewer: AgentReviewer,
    agents: Arc<dyn Agents>,
    waiting: Newest,
    asking: Few,
    deciding: Arc<Semaphore>,
    sending: Arc<Semaphore>,
}

/// `/v1/agent/wait` and `/v1/agent/permit`, for agents alone.
pub fn agents(reviewer: AgentReviewer, agents: Arc<dyn Agents>) -> Router {
    let service = Service {
        reviewer,
        agents,
        waiting: Newest::default(),
        asking: Few::of(PERMITS_OF_NODE),
        deciding: Arc::new(Semaphore::new(DECIDED_AT_A_TIME)),
        sending: Arc::new(Semaphore::new(SENT_AT_A_TIME)),
    };
    let waits = Router::new().route(WAIT, post(wait)).with_state(service.clone());
    let permits = Router::new().route(PERMIT, post(permit)).with_state(service);
    guarded(waits, OF_WAITS).merge(guarded(permits, OF_PERMITS))
}

async fn wait(
    State(service): State<Service>,
    from: Sender,
    request: Request,
) -> Result<Response, Refused> {
    // Before anything is read: whoever is none holds nothing.
    let node = service.reviewer.node(&from).await?;
    let connection = request.extensions().get::<Connected>().cloned();
    if let Some(too_many) = too_many(connection.as_ref(), &node) {
        return Ok(too_many);
    }
    let wait: Wait = read(request).await?;
    let (_place, another) = service.waiting.take(&node.name);
    let instructions = tokio::select! {
        instructions = timeout(WAITS, service.agents.wait(&node, wait)) => instructions.unwrap_or_else(|_| {
            let sentence = format!("nothing was to be told within {} s; ask again", WAITS.as_secs());
            Err(Refused::new(StatusCode::SERVICE_UNAVAILABLE, sentence))
        })?,
        () = another => {
            let sentence = "the node's agent asked anew meanwhile, and that is answered";
            return Err(Refused::new(StatusCode::CONFLICT, sentence));
        }
    };
    // Its pod may be gone since.
    if service.reviewer.node(&from).await? != node {
        let sentence = "the token is of another node by now; ask again";
        return Err(Refused::new(StatusCode::UNAUTHORIZED, sentence));
    }
    let is_little = instructions.config.as_ref().is_none_or(|config| config.text.len() <= LITTLE);
    let room = match is_little {
        true => None,
        false => Arc::clone(&service.sending).acquire_owned().await.ok(),
    };
    Ok(sent(json(&instructions)?, ([room, None], connection), Instant::now() + SENDING))
}

async fn permit(
    State(service): State<Service>,
    from: Sender,
    request: Request,
) -> Result<Response, Refused> {
    let node = service.reviewer.node(&from).await?;
    if let Some(too_many) = too_many(request.extensions().get(), &node) {
        return Ok(too_many);
    }
    // Before anything is read: one node's slow questions are few.
    let Some(_place) = service.asking.take(&node.name) else {
        let sentence = "the node's agent asks for too many permits at a time; ask again";
        return Err(Refused::new(StatusCode::TOO_MANY_REQUESTS, sentence));
    };
    let ask: Ask = read(request).await?;
    // It is never closed; if it were, the answer would be given without this limit.
    let _decided = service.deciding.acquire().await.ok();
    let answer: Answer = service.agents.permit(&node, ask).await;
    json(&answer)
}

/// The answer to a node that has too many connections, by all of which it asks something.
fn too_many(connection: Option<&Connected>, node: &OfNode) -> Option<Response> {
    let has_room = connection.is_none_or(|connection| connection.is_of(&node.name));
    let sentence = "the node's agent has too many connections, and asks something on each; end \
                    them, or wait until they are answered";
    (!has_room).then(|| Refused::new(StatusCode::TOO_MANY_REQUESTS, sentence).and_ends())
}

/// What is asked.
async fn read<T: DeserializeOwned>(request: Request) -> Result<T, Refused> {
    let bad = |status, sentence: String| Refused::new(status, sentence);
    let body = timeout(READING, to_bytes(request.into_body(), LONGEST)).await;
    let body = body.map_err(|_| {
        let sentence = format!("the question did not come within {} s", READING.as_secs());
        bad(StatusCode::REQUEST_TIMEOUT, sentence)
    })?;
    let body = body.map_err(|_| {
        let sentence = format!("the question is longer than {LONGEST} bytes, or was cut off");
        bad(StatusCode::PAYLOAD_TOO_LARGE, sentence)
    })?;
    serde_json::from_slice(&body).map_err(|error| {
        let sentence =
            format!("this is no question of an agent that this tread knows: {error}; upgrade whoever is older");
        bad(StatusCode::BAD_REQUEST, sentence)
    })
}

fn json(answer: &impl Serialize) -> Result<Response, Refused> {
    let text = serde_json::to_vec(answer).map_err(|error| {
        tracing::error!(%error, "an answer cannot be written; please report it");
        Refused::new(StatusCode::INTERNAL_SERVER_ERROR, "tread failed to answer; its log says more")
    })?;
    Ok(([(header::CONTENT_TYPE, "application/json")], Body::from(text)).into_response())
}
