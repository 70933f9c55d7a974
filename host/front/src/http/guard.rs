//! What holds for every request: so many at a time, so much, so long, until all of
//! the answer is sent; and a panic is one failed answer.

use super::answer::Refused;
use super::sending::sent;
use super::shares::Shares;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use futures::FutureExt as _;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

/// What requests may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How many are answered at a time; the others wait.
    pub at_a_time: usize,
    /// How long waiting, reading, answering and sending may take together.
    pub time: Duration,
    /// How many bytes a body may have.
    pub body: usize,
}

#[derive(Clone)]
struct Guard {
    room: Arc<Semaphore>,
    time: Duration,
    shares: Option<Shares>,
}

/// A router that answers within limits.
pub fn guarded(router: Router, limits: Limits) -> Router {
    watched(router, limits, None)
}

/// The same, where each of several who ask has a share of those that are answered at a time.
pub(super) fn guarded_by(router: Router, limits: Limits, shares: Shares) -> Router {
    watched(router, limits, Some(shares))
}

fn watched(router: Router, limits: Limits, shares: Option<Shares>) -> Router {
    let room = Arc::new(Semaphore::new(limits.at_a_time));
    let guard = Guard { room, time: limits.time, shares };
    router.layer(DefaultBodyLimit::max(limits.body)).layer(from_fn_with_state(guard, watch_over))
}

async fn watch_over(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    // Only the first part of a path is logged: the rest may be a secret of the API
    // server.
    let path = request.uri().path().split('/').nth(1).unwrap_or_default().to_owned();
    let ends = Instant::now() + guard.time;
    let connection = request.extensions().get().cloned();
    let share = match guard.shares.as_ref().map(|shares| shares.take(&request)) {
        Some(Err(refused)) => return refused.and_ends(),
        Some(Ok(share)) => share,
        None => None,
    };
    let answer = async {
        // It is never closed; if it were, the answer would be given without this
        // limit.
        let room = Arc::clone(&guard.room).acquire_owned().await.ok();
        (AssertUnwindSafe(next.run(request)).catch_unwind().await, room)
    };
    match timeout_at(ends, answer).await {
        Ok((Ok(response), room)) => sent(response, ([room, share], connection), ends),
        Ok((Err(_), _)) => {
            tracing::error!(%path, "a panic while answering; please report it");
            let sentence = "tread failed to answer; its log says more";
            Refused::new(StatusCode::INTERNAL_SERVER_ERROR, sentence).into_response()
        }
        Err(_) => {
            let sentence = format!("no answer within {:?}; try again", guard.time);
            Refused::new(StatusCode::SERVICE_UNAVAILABLE, sentence).into_response()
        }
    }
}
