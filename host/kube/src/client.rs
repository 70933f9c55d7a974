//! The client that everything in the service uses.

use crate::asking::has_time_until;
use crate::short_watches::{ShortWatches, is_watch};
use http::{Request, Response, StatusCode, header};
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::Client as Http;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ConfigExt as _};
use kube::config::InferConfigError;
use kube::{Client, Config};
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tower::{BoxError, ServiceBuilder, service_fn};

/// A watch is silent for up to 290 seconds.
const SILENCE: Duration = Duration::from_secs(300);
const CONNECT: Duration = Duration::from_secs(5);
/// No API server that is busy is waited for longer than this, whatever it says.
const BUSY: Duration = Duration::from_secs(10);

/// An API server begins a watch at once: one that is not begun by then is as good as cut.
pub(crate) const BEGINS: Duration = Duration::from_secs(20);

/// Where Leases are kept.
const LEASES: &str = "/apis/coordination.k8s.io/";
/// How the path of an eviction ends.
const EVICTION: &str = "/eviction";

/// From the kubeconfig, or in a pod from its service account.
pub async fn config() -> Result<Config, InferConfigError> {
    Config::infer().await.map(bounded)
}

/// One that waits no longer than it has to, and tries nothing again by itself.
fn bounded(mut config: Config) -> Config {
    // kube waits without end for answers, and tries again by itself for minutes.
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT);
    config.read_timeout = Some(SILENCE);
    config.reset_reader_on_write = true;
    config
}

/// Why a watch is given up that does not begin.
fn not_begun() -> String {
    format!("the API server did not begin the watch within {} s", BEGINS.as_secs())
}

/// The client. It tries nothing again by itself, waits as long as a busy API
/// server says, where the call has so much time, and sends what it has at once: that of kube leaves it to the
/// system, which holds back the rest of a request until the other side has
/// confirmed what came first, 40 ms for each object that is written.
///
/// # Errors
/// The configuration cannot be used.
pub fn client(config: Config) -> kube::Result<Client> {
    let config = bounded(config);
    if config.proxy_url.is_some() {
        return Client::try_from(config);
    }
    let mut sockets = HttpConnector::new();
    sockets.enforce_http(false);
    sockets.set_nodelay(true);
    let mut connector =
        TimeoutConnector::new(config.rustls_https_connector_with_connector(sockets)?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let http: Http<_, Body> = Http::builder(TokioExecutor::new()).build(connector);
    let short = ShortWatches::default();
    let patient = service_fn(move |request: Request<Body>| {
        let path = request.uri().path().to_owned();
        let pause = is_watch(request.uri()).then(|| short.pause(request.uri(), Instant::now()));
        let http = http.clone();
        async move {
            let answer = match pause {
                Some(pause) => {
                    sleep(pause).await;
                    timeout(BEGINS, http.request(request)).await.map_err(|_| not_begun())??
                }
                None => http.request(request).await?,
            };
            let until = wait(&path, &answer).map(|wait| Instant::now() + wait);
            if let Some(until) = until.filter(|until| has_time_until(*until)) {
                sleep_until(until).await;
            }
            Ok::<_, BoxError>(answer)
        }
    });
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(patient);
    Ok(Client::new(service, config.default_namespace))
}

/// How long to leave the API server alone, if it asks for that. The leader must not lose its Lease
/// by waiting. If an eviction is answered with an object, a budget is still being counted, and
/// other pods can go: an API server with too much to do answers in plain text.
fn wait<B>(path: &str, answer: &Response<B>) -> Option<Duration> {
    let of = answer.headers().get(header::CONTENT_TYPE).and_then(|of| of.to_str().ok());
    let is_object = of.is_some_and(|of| of.starts_with("application/json"));
    if path.contains(LEASES) || (path.ends_with(EVICTION) && is_object) {
        return None;
    }
    let is_busy =
        [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE].contains(&answer.status());
    let said = answer.headers().get(header::RETRY_AFTER).filter(|_| is_busy)?;
    let seconds = said.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds).min(BUSY))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asking::{Call, SHORT_PATIENCE, ask_again, is_busy};
    use crate::metrics::Metrics;
    use k8s_openapi::api::core::v1::Node;
    use kube::Api;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    /// A client of an API server that is busy for so many seconds, and how often that was asked.
    async fn busy(seconds: u64) -> (Client, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<AtomicUsize> = Arc::default();
        let counted = Arc::clone(&asked);
        let answer = format!(
            "HTTP/1.1 429 Too Many Requests\r\nRetry-After: {seconds}\r\nContent-Length: 4\r\n\
             Connection: close\r\n\r\nbusy"
        );
        tokio::spawn(async move {
            while let Ok((mut connection, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                let _ = connection.read(&mut [0; 4096]).await;
                let _ = connection.write_all(answer.as_bytes()).await;
            }
        });
        (client(Config::new(url.parse().unwrap())).unwrap(), asked)
    }

    #[tokio::test]
    async fn who_is_busy_for_longer_than_there_is_time_is_told_as_busy_and_not_asked_again() {
        let (client, asked) = busy(7).await;
        let (nodes, metrics) = (Api::<Node>::all(client), Metrics::new());
        let call = Call::new("get", "nodes");
        let failed = ask_again(SHORT_PATIENCE, &metrics, call, || nodes.get("a"), is_busy).await;
        assert_eq!(failed.unwrap_err().code, 429);
        assert_eq!(asked.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn who_is_busy_is_waited_for_as_long_as_it_says_and_no_longer_than_bearable() {
        let answer = |status: u16, after: &str| {
            let answer = Response::builder().status(status).header(header::RETRY_AFTER, after);
            wait("/api/v1/nodes", &answer.body(()).unwrap())
        };
        assert_eq!(answer(429, "2"), Some(Duration::from_secs(2)));
        assert_eq!(answer(503, "99999999"), Some(BUSY));
        assert_eq!(answer(429, "Wed, 21 Oct 2026 07:28:00 GMT"), None);
        assert_eq!(answer(200, "2"), None);
    }

    #[test]
    fn neither_a_lease_nor_a_budget_that_refuses_an_eviction_is_waited_for() {
        let two = Some(Duration::from_secs(2));
        let eviction = "/api/v1/namespaces/default/pods/a/eviction";
        for (path, of, expected) in [
            ("/api/v1/namespaces/default/pods/a", "application/json", two),
            (eviction, "application/json", None),
            (eviction, "text/plain; charset=utf-8", two),
            ("/apis/coordination.k8s.io/v1/namespaces/a/leases/b", "text/plain", None),
        ] {
            let answer = Response::builder().status(429).header(header::RETRY_AFTER, "2");
            let answer = answer.header(header::CONTENT_TYPE, of).body(()).unwrap();
            assert_eq!(wait(path, &answer), expected, "{path} {of}");
        }
    }
}
