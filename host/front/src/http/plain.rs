//! The plain port: alive, ready, and what is counted.

use super::guard::{Limits, guarded};
use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use tread_kube::api::conditions::cut;
use tread_kube::clean::clean;
use tread_kube::metrics::Metrics;

const LIMITS: Limits = Limits { at_a_time: 16, time: Duration::from_secs(5), body: 1024 };

/// A longer message is cut; the log has all of it.
const LONGEST_MESSAGE: usize = 1024;

/// Something that has to be so before tread is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What: a word or two.
    pub name: String,
    /// Whether it is so.
    pub ok: bool,
    /// How it is; if it is not fulfilled, why, and what to do.
    pub message: String,
}

impl Check {
    /// It is so.
    pub fn good(name: &str, message: impl Into<String>) -> Check {
        Check { name: name.to_owned(), ok: true, message: message.into() }
    }

    /// It is not.
    pub fn bad(name: &str, message: impl Into<String>) -> Check {
        Check { name: name.to_owned(), ok: false, message: message.into() }
    }
}

/// Tells how it stands now.
pub type Readiness = Arc<dyn Fn() -> Vec<Check> + Send + Sync>;

/// `/healthz`, `/readyz` and `/metrics`.
pub fn plain(readiness: Readiness, metrics: Metrics) -> Router {
    let probes = Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(async move || ready(&readiness())));
    let measures = Router::new().route("/metrics", get(async move || measured(&metrics)));
    // Both have limits of their own, so that probes do not wait for whoever reads
    // metrics.
    guarded(probes, LIMITS).merge(guarded(measures, LIMITS))
}

/// One line for each check; what fails comes first.
fn ready(checks: &[Check]) -> Response {
    let ready = checks.iter().all(|check| check.ok);
    let mut text = String::from(if ready { "ready\n" } else { "not ready\n" });
    for wanted in [false, true] {
        for Check { name, ok, message } in checks.iter().filter(|check| check.ok == wanted) {
            let word = if *ok { "ok" } else { "failed" };
            let (name, message) = (clean(name), cut(clean(message), LONGEST_MESSAGE));
            // Writing to a String does not fail.
            let _ = writeln!(text, "{word} {name}: {message}");
        }
    }
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, text).into_response()
}

fn measured(metrics: &Metrics) -> Response {
    const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    match metrics.text() {
        Ok(text) => ([(header::CONTENT_TYPE, TYPE)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}
