//! Counts what machines that boot asked for, by what became of it.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use tread_kube::metrics::{MachineAsked, Metrics};

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asks {
    Config,
    FirstBoot,
}

impl Asks {
    fn word(self) -> &'static str {
        match self {
            Asks::Config => "config",
            Asks::FirstBoot => "first-boot",
        }
    }

    /// What can become of it: each is there from the beginning, so that the first one counts too.
    fn outcomes(self) -> &'static [&'static str] {
        match self {
            Asks::Config => &["served", "seen", "no-token", "version", "later", "odd", "failed"],
            Asks::FirstBoot => &["heard", "no-token", "later", "odd", "failed"],
        }
    }
}

#[derive(Clone)]
struct Counts {
    asks: Asks,
    metrics: Metrics,
}

impl Counts {
    fn add(&self, outcome: &'static str, count: u64) {
        let asked = MachineAsked { asks: self.asks.word(), outcome };
        self.metrics.machines_asked.get_or_create(&asked).inc_by(count);
    }
}

/// A router whose answers are counted.
pub(super) fn counted(router: Router, asks: Asks, metrics: &Metrics) -> Router {
    let counts = Counts { asks, metrics: metrics.clone() };
    for outcome in asks.outcomes() {
        counts.add(outcome, 0);
    }
    router.layer(from_fn_with_state(counts, count))
}

async fn count(State(counts): State<Counts>, request: Request, next: Next) -> Response {
    let looks = request.method() == Method::HEAD;
    let response = next.run(request).await;
    counts.add(outcome(response.status(), looks), 1);
    response
}

fn outcome(status: StatusCode, looks: bool) -> &'static str {
    match status {
        StatusCode::OK if looks => "seen",
        StatusCode::OK => "served",
        StatusCode::ACCEPTED => "heard",
        StatusCode::UNAUTHORIZED => "no-token",
        StatusCode::NOT_ACCEPTABLE => "version",
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => "later",
        status if status.is_client_error() => "odd",
        _ => "failed",
    }
}
