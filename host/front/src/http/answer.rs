//! Answers that are no success: a status, and a sentence as JSON.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// Why a request is not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The HTTP status.
    pub status: StatusCode,
    /// A sentence on what is wrong, and what to do.
    pub sentence: String,
}

impl Refused {
    /// A refusal.
    pub fn new(status: StatusCode, sentence: impl Into<String>) -> Refused {
        Refused { status, sentence: sentence.into() }
    }

    /// The same as an answer after which the connection ends.
    pub(super) fn and_ends(self) -> Response {
        let mut response = self.into_response();
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
        response
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(json!({ "error": self.sentence }))).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            let value = HeaderValue::from_static("Bearer realm=\"tread\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, value);
        }
        response
    }
}

/// For a path that means nothing.
pub(crate) async fn not_found() -> Refused {
    Refused::new(StatusCode::NOT_FOUND, "there is nothing at this path")
}

/// For a method that means nothing.
pub(super) async fn wrong_method() -> Refused {
    Refused::new(StatusCode::METHOD_NOT_ALLOWED, "this path does not take this method")
}
