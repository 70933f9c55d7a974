//! The webhook: an AdmissionReview in, one that allows and warns out.

use super::certificates::Paths;
use crate::http::{Limits, Refused, guarded, not_found};
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Json, Router};
use futures::future::BoxFuture;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use tread_kube::clean::clean;
use tread_kube::metrics::Metrics;
use tread_kube::review::{Asked, Warned};

/// The API server waits for 2 s, and whoever applies something waits with it.
const DEADLINE: Duration = Duration::from_millis(1500);
/// No object in etcd is larger than 1.5 MiB, and an update has two. What came in
/// takes several times as much while it is read.
const LIMITS: Limits =
    Limits { at_a_time: 8, time: Duration::from_millis(1800), body: 4 * 1024 * 1024 };
/// The API server cuts longer warnings at any place; tread cuts them at a better one.
const LONGEST: usize = 256;
/// How much of a warning is looked at, so that a flood of them is cleaned in time.
const READ: usize = 16 * LONGEST;
/// How many bytes of all warnings together the API server passes on.
const ALL: usize = 4096;

/// Says what a request will do. Dropped: nobody waits for it any more.
pub type Warn = Arc<dyn Fn(Asked) -> BoxFuture<'static, Warned> + Send + Sync>;

#[derive(Clone)]
struct Service {
    warn: Warn,
    metrics: Metrics,
}

/// `POST /warn/…`, for whoever knows the rest of the path: the API server.
pub fn webhook(warn: Warn, metrics: Metrics, paths: Paths) -> Router {
    let router = Router::new()
        .route(&format!("{}/{{path}}", super::PATH), post(answer))
        .with_state(Service { warn, metrics });
    // The path is checked first, so that nobody else is answered or takes a place.
    guarded(router, LIMITS).layer(from_fn_with_state(paths, only_there))
}

/// Everybody else gets the answer for a path at which there is nothing.
async fn only_there(State(paths): State<Paths>, request: Request, next: Next) -> Response {
    match paths.has(request.uri().path()) {
        true => next.run(request).await,
        false => not_found().await.into_response(),
    }
}

async fn answer(State(service): State<Service>, body: Bytes) -> Result<Json<Value>, Refused> {
    let begun = Instant::now();
    let asked = Asked::read(&body).map_err(|why| {
        Refused::new(
            StatusCode::BAD_REQUEST,
            format!("expected an AdmissionReview of admission.k8s.io/v1: {why}"),
        )
    })?;
    drop(body);
    let (uid, kind, name) = (asked.uid.clone(), asked.kind.clone(), asked.name.clone());
    let mut said = Warned::default();
    // In a task of its own: a panic, or a computation without a pause, does not keep
    // the answer back. The task ends when this function ends.
    let mut warned = JoinSet::new();
    warned.spawn(async move { (service.warn)(asked).await });
    match timeout_at(begun + DEADLINE, warned.join_next()).await {
        Ok(Some(Ok(warned))) => said = warned,
        Ok(_) => {
            tracing::error!(%kind, %name, "a panic instead of warnings; please report it")
        }
        Err(_) => {
            tracing::warn!(%kind, %name, "no warnings within {DEADLINE:?}: allowed without");
        }
    }
    match said.offered_secrets {
        true => drop(service.metrics.untimed_warnings.inc()),
        false => service.metrics.warning_time.observe(begun.elapsed().as_secs_f64()),
    }
    Ok(Json(Asked::allowed(&uid, &passed_on(said.lines))))
}

/// The warnings, as the API server passes them on and a terminal can show them.
fn passed_on(warnings: Vec<String>) -> Vec<String> {
    let lines: Vec<String> =
        warnings.iter().map(|line| one_line(line)).filter(|l| !l.is_empty()).collect();
    let total: usize = lines.iter().map(String::len).sum();
    if total <= ALL {
        return lines;
    }
    // Room for the line that counts the rest.
    let mut room = ALL - 64;
    let mut kept: Vec<String> = Vec::new();
    let all = lines.len();
    for line in lines {
        let Some(left) = room.checked_sub(line.len()) else { break };
        room = left;
        kept.push(line);
    }
    kept.push(format!("and {} more warnings", all - kept.len()));
    kept
}

fn one_line(text: &str) -> String {
    // Only as much of it is read as may be shown.
    let (text, rest) = text.split_at(text.floor_char_boundary(READ));
    let visible = clean(text);
    if rest.is_empty() && visible.chars().count() <= LONGEST || visible.is_empty() {
        return visible;
    }
    let mut cut: String = visible.chars().take(LONGEST - 1).collect();
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_lines_that_a_terminal_can_take() {
        let lines = passed_on(vec![
            "pool worker: \u{1b}[31mreboot\u{1b}[0m\n\r\tof 5 nodes".to_owned(),
            "\n\0\u{202e}".to_owned(),
            "\u{202e}olleh\u{200b}".to_owned(),
            "größer als früher → drain".to_owned(),
        ]);
        assert_eq!(
            lines,
            ["pool worker: [31mreboot [0m; of 5 nodes", "olleh", "größer als früher → drain"]
        );
    }

    #[test]
    fn a_warning_has_256_characters_at_most() {
        for (given, shown) in [(255, 255), (256, 256), (257, 256), (100_000, 256)] {
            let [line] = passed_on(vec!["ä".repeat(given)]).try_into().unwrap();
            assert_eq!(line.chars().count(), shown);
            assert_eq!(line.ends_with('…'), given > 256);
        }
    }

    #[test]
    fn all_warnings_together_have_a_limit_and_the_rest_is_counted() {
        for (count, letter) in [(1000, "a"), (1000, "𝄞"), (17, "a")] {
            let lines = passed_on(vec![letter.repeat(300); count]);
            assert!(lines.iter().map(String::len).sum::<usize>() <= ALL);
            let left_out = count - (lines.len() - 1);
            assert_eq!(*lines.last().unwrap(), format!("and {left_out} more warnings"));
        }
        assert_eq!(passed_on(vec!["a".repeat(256); 16]).len(), 16);
        assert!(passed_on(Vec::new()).is_empty());
    }
}
