//! What machines say at their first boot: for whoever shows the token of their pool.

use super::answer::Refused;
use super::counting::{Asks, counted};
use super::guard::{Limits, guarded};
use super::machines::{FirstBoot, Machines, admitted};
use super::rates::{PAUSE, Rates};
use super::sender::Sender;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{FromRequest as _, Request, State};
use axum::http::StatusCode;
use axum::routing::post;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tread_kube::metrics::Metrics;
use tread_model::joining::first_boot::{FirstBootReport, LONGEST};

/// What stands before the pool's name.
const PATH: &str = "/first-boot/";
/// Little is said, and it is only passed on.
const LIMITS: Limits = Limits { at_a_time: 32, time: Duration::from_secs(15), body: LONGEST };

#[derive(Clone)]
struct Service {
    machines: Arc<dyn Machines>,
    /// How often the machines of each pool may say something: whoever has its token is one.
    rates: Arc<Mutex<Rates<String>>>,
}

/// `POST` of `/first-boot/POOL`.
pub fn first_boots(machines: Arc<dyn Machines>, metrics: &Metrics) -> Router {
    let service = Service { machines, rates: Arc::default() };
    let router = Router::new().route("/first-boot/{pool}", post(hear)).with_state(service);
    counted(guarded(router, LIMITS), Asks::FirstBoot, metrics)
}

async fn hear(
    State(service): State<Service>,
    from: Sender,
    request: Request,
) -> Result<StatusCode, Refused> {
    let pool = admitted(&*service.machines, &from, &request, PATH)?;
    let may = {
        let mut rates = service.rates.lock().unwrap_or_else(PoisonError::into_inner);
        rates.take(pool.clone(), Instant::now())
    };
    if !may {
        let sentence = format!(
            "machines of this pool said too much at once; say it again in {} s",
            PAUSE.as_secs()
        );
        return Err(Refused::new(StatusCode::TOO_MANY_REQUESTS, sentence));
    }
    let body = Bytes::from_request(request, &()).await.map_err(|_| {
        let sentence = format!("expected {LONGEST} bytes at most, all of them");
        Refused::new(StatusCode::PAYLOAD_TOO_LARGE, sentence)
    })?;
    let report =
        FirstBootReport::read(&body).map_err(|why| Refused::new(StatusCode::BAD_REQUEST, why))?;
    service.machines.hear(FirstBoot { pool, from: from.peer, report })?;
    Ok(StatusCode::ACCEPTED)
}
