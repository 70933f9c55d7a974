//! The client that everything in the service uses.

use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::Client as Http;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ConfigExt as _};
use kube::config::InferConfigError;
use kube::{Client, Config};
use std::time::Duration;
use tower::{BoxError, ServiceBuilder};

/// A watch is silent for up to 290 seconds.
const SILENCE: Duration = Duration::from_secs(300);
const CONNECT: Duration = Duration::from_secs(5);

/// From the kubeconfig, or in a pod from its service account.
pub async fn config() -> Result<Config, InferConfigError> {
    Config::infer().await.map(bounded)
}

/// One that waits no longer than it has to, and tries nothing again by itself.
pub fn bounded(mut config: Config) -> Config {
    // kube waits without end for answers, and tries again by itself for minutes.
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT);
    config.read_timeout = Some(SILENCE);
    config.reset_reader_on_write = true;
    config
}

/// A client that sends what it has at once. That of kube leaves it to the system,
/// which holds back the rest of a request until the other side has confirmed what
/// came first: 40 ms for each object that is written.
pub fn connected(config: Config) -> kube::Result<Client> {
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
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(http);
    Ok(Client::new(service, config.default_namespace))
}
