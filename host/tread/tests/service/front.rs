//! A way to the API server on which single requests are refused, or held up.

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderName, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use kube::Client;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It arrives.
    Passes,
    /// It arrives when another rule lets it pass.
    Waits,
    /// The API server has too much to do; Retry-After says so many seconds.
    Busy(u64),
    /// Somebody else was faster.
    Conflict,
}

/// Method and path decide.
type Rule = Arc<dyn Fn(&Method, &str) -> Fate + Send + Sync>;

/// A request that was refused.
#[derive(Debug, Clone)]
pub struct Refused {
    pub at: Instant,
    /// `PUT /apis/…`, without what is asked with it.
    pub what: String,
}

#[derive(Clone)]
pub struct Front {
    pub url: String,
    rule: watch::Sender<Rule>,
    refused: Arc<Mutex<Vec<Refused>>>,
    client: Client,
}

impl Front {
    /// Whoever asks here is whoever this client is.
    pub async fn start(client: Client) -> Front {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let all_pass: Rule = Arc::new(|_: &Method, _: &str| Fate::Passes);
        let front =
            Front { url, rule: watch::Sender::new(all_pass), refused: Arc::default(), client };
        let router = Router::new().fallback(handle).with_state(front.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        front
    }

    /// From now on.
    pub fn set(&self, rule: impl Fn(&Method, &str) -> Fate + Send + Sync + 'static) {
        self.rule.send_replace(Arc::new(rule));
    }

    /// What was refused so far.
    pub fn refused(&self) -> Vec<Refused> {
        self.refused.lock().unwrap().clone()
    }

    /// A kubeconfig for whoever goes this way.
    pub fn kubeconfig(&self) -> String {
        format!(
            "{{apiVersion: v1, kind: Config, current-context: front, contexts: [{{name: front, \
             context: {{cluster: front, user: front}}}}], users: [{{name: front, user: {{}}}}], \
             clusters: [{{name: front, cluster: {{server: '{}'}}}}]}}",
            self.url
        )
    }

    async fn fate(&self, method: &Method, path: &str) -> Fate {
        let mut rule = self.rule.subscribe();
        loop {
            let now = rule.borrow_and_update().clone();
            match now(method, path) {
                Fate::Waits => rule.changed().await.unwrap(),
                fate => return fate,
            }
        }
    }
}

async fn handle(State(front): State<Front>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let fate = front.fate(&parts.method, &path).await;
    let (status, reason, after) = match fate {
        Fate::Passes | Fate::Waits => return onward(&front, parts, body).await,
        Fate::Busy(seconds) => (StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", Some(seconds)),
        Fate::Conflict => (StatusCode::CONFLICT, "Conflict", None),
    };
    let what = format!("{} {path}", parts.method);
    front.refused.lock().unwrap().push(Refused { at: Instant::now(), what });
    let text = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason,
        "message": format!("{reason}: so says the test"), "code": status.as_u16(),
    });
    let mut answer =
        (status, [(header::CONTENT_TYPE, "application/json")], text.to_string()).into_response();
    if let Some(seconds) = after {
        answer.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    answer
}

async fn onward(front: &Front, parts: axum::http::request::Parts, body: Body) -> Response {
    let body = axum::body::to_bytes(body, 64 << 20).await.unwrap();
    let target = parts.uri.path_and_query().unwrap().as_str();
    let mut request = axum::http::Request::builder().method(parts.method).uri(target);
    // Who asks, and how long it is, the client says itself.
    let own: [HeaderName; 5] = [
        header::HOST,
        header::AUTHORIZATION,
        header::CONTENT_LENGTH,
        header::ACCEPT_ENCODING,
        header::CONNECTION,
    ];
    for (name, value) in parts.headers.iter().filter(|(name, _)| !own.contains(name)) {
        request = request.header(name, value);
    }
    let request = request.body(kube::client::Body::from(body.to_vec())).unwrap();
    match front.client.send(request).await {
        Ok(answer) => {
            let (mut parts, body) = answer.into_parts();
            for name in [header::TRANSFER_ENCODING, header::CONNECTION] {
                parts.headers.remove(name);
            }
            Response::from_parts(parts, Body::new(body))
        }
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}
