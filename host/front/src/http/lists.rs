//! Plans and policies for other tools, for whoever may read the objects.

use super::answer::Refused;
use super::guard::{Limits, guarded};
use super::review::{Asked, Reviewer};
use super::sender::Sender;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use futures::{StreamExt as _, stream};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tread_model::object_name;

const LIMITS: Limits = Limits { at_a_time: 16, time: Duration::from_secs(15), body: 1024 };

/// JSON texts, each made when it is sent.
pub type Items = Box<dyn Iterator<Item = Vec<u8>> + Send>;

/// What there is to list, without contents (law 10).
pub trait Lists: Send + Sync + 'static {
    /// All plans, complete: also with what their objects leave out because of its
    /// size.
    fn plans(&self) -> Items;
    /// One plan, likewise.
    fn plan(&self, name: &str) -> Option<Vec<u8>>;
    /// All policies, as they are in the cluster.
    fn policies(&self) -> Items;
    /// What all machine resources boot.
    fn boot_images(&self) -> Items;
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
    Ok(listed(service.lists.plans()))
}

async fn plan(
    State(service): State<Service>,
    Path(name): Path<String>,
    from: Sender,
) -> Result<Response, Refused> {
    // Nothing is asked for a name that no object can have.
    if !object_name::is_possible(&name) {
        let sentence = "this is no name of a plan: kubectl get dplan lists them";
        return Err(Refused::new(StatusCode::BAD_REQUEST, sentence));
    }
    service.reviewer.allow(&from, Asked::get("disruptionplans", &name)).await?;
    let plan = service.lists.plan(&name).ok_or_else(|| {
        let sentence = format!("there is no plan {name}: /v1/plans lists them");
        Refused::new(StatusCode::NOT_FOUND, sentence)
    })?;
    Ok(json(Body::from(plan)))
}

async fn policies(State(service): State<Service>, from: Sender) -> Result<Response, Refused> {
    service.reviewer.allow(&from, Asked::list("disruptionpolicies")).await?;
    Ok(listed(service.lists.policies()))
}

async fn boot_images(State(service): State<Service>, from: Sender) -> Result<Response, Refused> {
    service.reviewer.allow(&from, Asked::list("bootimages")).await?;
    Ok(listed(service.lists.boot_images()))
}

fn json(body: Body) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// How many bytes are collected before they are sent.
const TOGETHER: usize = 64 << 10;

/// A list. One that is long is made while it is sent, so that whoever reads slowly
/// holds one item of it.
fn listed(items: Items) -> Response {
    let mut items = items.peekable();
    let mut text = b"{\"items\":[".to_vec();
    while text.len() < TOGETHER
        && let Some(item) = items.next()
    {
        text.extend(item);
        text.push(b',');
    }
    if items.peek().is_none() {
        if text.last() == Some(&b',') {
            text.pop();
        }
        text.extend(b"]}");
        return json(Body::from(text));
    }
    let mut end = Some(b"]}".to_vec());
    let rest = std::iter::from_fn(move || match items.next() {
        Some(mut item) => {
            if items.peek().is_some() {
                item.push(b',');
            }
            Some(item)
        }
        None => end.take(),
    });
    let all = std::iter::once(text).chain(rest).map(Bytes::from);
    json(Body::from_stream(stream::iter(all).map(Ok::<_, Infallible>)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::to_bytes;
    use serde_json::{Value, json};
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn items(count: usize, made: &Arc<AtomicUsize>) -> Items {
        let made = Arc::clone(made);
        Box::new((0..count).map(move |number| {
            made.fetch_add(1, Ordering::Relaxed);
            json!({"number": number, "text": "x".repeat(1000)}).to_string().into_bytes()
        }))
    }

    #[tokio::test]
    async fn a_list_is_the_same_however_long_it_is_and_is_made_while_it_is_sent() {
        for count in [0, 1, 2, 60, 65, 66, 67, 1000] {
            let made = Arc::default();
            let response = listed(items(count, &made));
            assert!(made.load(Ordering::Relaxed) <= 70, "{count}");
            let text = to_bytes(response.into_body(), usize::MAX).await.unwrap();
            let list: Value = serde_json::from_slice(&text).unwrap();
            let numbers: Vec<_> =
                list["items"].as_array().unwrap().iter().map(|it| it["number"].clone()).collect();
            assert_eq!(numbers, (0..count).map(Value::from).collect::<Vec<_>>());
        }
    }
}
