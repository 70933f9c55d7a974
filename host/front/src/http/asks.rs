//! Asking the API server who somebody is, and what he may do: not too much at a time, and not
//! too often for whoever is mostly wrong.

use super::answer::Refused;
use super::rates::{self, Rates};
use super::sender::Sender;
use axum::http::StatusCode;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tread_kube::asking::{Call, SHORT_PATIENCE, ask_before};
use tread_kube::metrics::Metrics;

/// Questions of others that the API server answers.
pub(super) struct Asks {
    metrics: Metrics,
    /// How many are asked at a time.
    room: Semaphore,
    /// How often each peer may be wrong.
    rates: Mutex<Rates<IpAddr>>,
}

impl Asks {
    pub(super) fn new(at_a_time: usize, metrics: Metrics) -> Asks {
        Asks { metrics, room: Semaphore::new(at_a_time), rates: Mutex::default() }
    }

    /// Counts a question that the API server may answer with no.
    pub(super) fn take(&self, from: &Sender) -> Result<(), Refused> {
        let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        if rates.take(from.peer, Instant::now()) {
            return Ok(());
        }
        let sentence = format!(
            "too many questions of this address were answered with no; ask again in {} s",
            rates::PAUSE.as_secs()
        );
        Err(Refused::new(StatusCode::TOO_MANY_REQUESTS, sentence))
    }

    /// It was answered with yes.
    pub(super) fn give_back(&self, from: &Sender) {
        self.rates.lock().unwrap_or_else(PoisonError::into_inner).give_back(from.peer);
    }

    /// The answer to a question that was counted.
    pub(super) async fn ask<T>(
        &self,
        from: &Sender,
        kind: &'static str,
        question: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, Refused> {
        let answer = async {
            let _room = self.room.acquire().await;
            question.await
        };
        let unavailable = |why: &str| {
            // The API server did not say no, so this does not count against the peer.
            self.give_back(from);
            let sentence = format!("who asks cannot be found out ({kind}: {why}); try again");
            Refused::new(StatusCode::SERVICE_UNAVAILABLE, sentence)
        };
        let (answer_by, call) = (Instant::now() + SHORT_PATIENCE, Call::new("create", kind));
        ask_before(answer_by, &self.metrics, call, answer).await.map_err(|failed| {
            tracing::warn!(kind, "a review failed: {failed}");
            match failed.code {
                0 => unavailable("the API server does not answer"),
                _ => unavailable("the API server does not answer it"),
            }
        })
    }
}
