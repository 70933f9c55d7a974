//! Sends answers piece by piece. An answer takes its place among those that are
//! answered until all of it is sent. Whoever asks and does not read holds no more than
//! one piece, and the connection is closed when the time is over.

use super::connections::Connected;
use axum::body::Bytes;
use axum::body::{Body, HttpBody as _};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures::{StreamExt as _, stream};
use std::convert::Infallible;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::{Instant, timeout_at};

/// What is handed over at a time; less is handed over at once.
const PIECE: usize = 16 << 10;

/// What is held until all is sent.
pub(super) type Held = ([Option<OwnedSemaphorePermit>; 2], Option<Connected>);

/// The answer, sent piece by piece.
pub(super) fn sent(response: Response, held: Held, ends: Instant) -> Response {
    let (mut parts, body) = response.into_parts();
    let size = body.size_hint().exact();
    if size.is_some_and(|size| size <= PIECE as u64) {
        return Response::from_parts(parts, body);
    }
    if let Some(size) = size {
        parts.headers.entry(header::CONTENT_LENGTH).or_insert(HeaderValue::from(size));
    }
    let (places, connection) = held;
    let (ending, ended) = oneshot::channel::<Infallible>();
    let closes = connection.as_ref().map(Connected::closes);
    tokio::spawn(async move {
        if timeout_at(ends, ended).await.is_err()
            && let Some(closes) = closes
        {
            closes.close();
        }
    });
    let begun = (body.into_data_stream(), Bytes::new(), (places, connection, ending));
    let pieces = stream::unfold(begun, async |(mut body, mut left, held)| {
        while left.is_empty() {
            match body.next().await? {
                Ok(more) => left = more,
                Err(error) => return Some((Err(error), (body, left, held))),
            }
        }
        // A copy, so that a piece does not keep the whole answer in memory.
        let piece = Bytes::copy_from_slice(&left.split_to(left.len().min(PIECE)));
        Some((Ok(piece), (body, left, held)))
    });
    Response::from_parts(parts, Body::from_stream(pieces))
}
