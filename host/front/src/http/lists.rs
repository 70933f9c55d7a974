//! Plans and policies for other tools, for whoever may read the objects.

use super::answer::Refused;
use super::guard::{Limits, guarded};
use super::review::{Asked, Reviewer, Sender};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const LIMITS: Limits = Limits { at_a_time: 16, time: Duration::from_secs(15), body: 1024 };

/// The API server takes no longer name.
const LONGEST_NAME: usize = 253;

/// What there is to list, without contents (law 10).
pub trait Lists: Send + Sync + 'static {
    /// All plans, as they are in the cluster.
    fn plans(&self) -> Vec<Value>;
    /// One plan, whole: with what its object leaves out for its size.
    fn plan(&self, name: &str) -> Option<Value>;
    /// All policies, as they are in the cluster.
    fn policies(&self) -> Vec<Value>;
    /// What all machine resources boot.
    fn boot_images(&self) -> Vec<Value>;
}

#[derive(Clone)]
struct Service {
    reviewer: Reviewer,
    lists: Arc<dyn Lists>,
}

/// `/v1/plans`, `/v1/plans/{name}`, `/v1/policies` and `/v1/bootimages`.
pub fn lists(reviewer: Reviewer, lists: Arc<dyn Lists>) -> Router {
    let router = Router::new()
        .route("/v1/plans", get(plans))
        .route("/v1/plans/{name}", get(plan))
        .route("/v1/policies", get(policies))
        .route("/v1/bootimages", get(boot_images))
        .with_state(Service { reviewer, lists });
    guarded(router, LIMITS)
}

async fn plans(State(service): State<Service>, from: Sender) -> Result<Response, Refused> {
    service.reviewer.allow(&from, Asked::list("disruptionplans")).await?;
    Ok(Json(json!({ "items": service.lists.plans() })).into_response())
}

async fn plan(
    State(service): State<Service>,
    Path(name): Path<String>,
    from: Sender,
) -> Result<Response, Refused> {
    // Nothing is asked for a name that no object can have.
    let possible = name.len() <= LONGEST_NAME
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'.'));
    if !possible {
        let sentence = "this is no name of a plan: kubectl get dplan lists them";
        return Err(Refused::new(StatusCode::BAD_REQUEST, sentence));
    }
    service.reviewer.allow(&from, Asked::get("disruptionplans", &name)).await?;
    let plan = service.lists.plan(&name).ok_or_else(|| {
        let sentence = format!("there is no plan {name}: /v1/plans lists them");
        Refused::new(StatusCode::NOT_FOUND, sentence)
    })?;
    Ok(Json(plan).into_response())
}

async fn policies(State(service): State<Service>, from: Sender) -> Result<Response, Refused> {
    service.reviewer.allow(&from, Asked::list("disruptionpolicies")).await?;
    Ok(Json(json!({ "items": service.lists.policies() })).into_response())
}

async fn boot_images(State(service): State<Service>, from: Sender) -> Result<Response, Refused> {
    service.reviewer.allow(&from, Asked::list("bootimages")).await?;
    Ok(Json(json!({ "items": service.lists.boot_images() })).into_response())
}
