//! The webhook's certificates, and the path at which it is asked: in a Secret of
//! tread's own namespace, so that all replicas serve the same. The leader makes and exchanges them; every replica
//! follows the Secret, and serves what is in it from the next handshake on.

mod keep;
mod lives;
mod material;
mod paths;
mod purpose;
mod serving;
mod state;

pub use lives::{CertificateError, Lives};
pub use material::{Due, Material, due};
pub use paths::Paths;
pub use purpose::Purpose;

use crate::http::Check;
use futures::future::{BoxFuture, FutureExt as _};
use k8s_openapi::jiff::Timestamp;
use kube::{Api, Client};
use serving::Serving;
use state::{State, lock};
use std::future::Future;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;
use tread_kube::leadership::Leading;
use tread_kube::metrics::Metrics;

/// What the certificates are for, and how they are kept.
pub struct Settings {
    /// A client that does not try again by itself.
    pub client: Client,
    /// tread's own namespace.
    pub namespace: String,
    /// What the server is called by those who ask it: [`service_names`], and
    /// others where it is reached in another way. Names, or addresses.
    pub names: Vec<String>,
    /// For whom they are.
    pub purpose: Purpose,
    /// For how long things are good.
    pub lives: Lives,
    /// Who makes them.
    pub leading: Leading,
    /// Where failed requests are counted.
    pub metrics: Metrics,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings").field("names", &self.names).finish_non_exhaustive()
    }
}

/// What a Service is called by the API server, and by others in the cluster.
pub fn service_names(service: &str, namespace: &str) -> Vec<String> {
    vec![
        format!("{service}.{namespace}.svc"),
        format!("{service}.{namespace}.svc.cluster.local"),
        format!("{service}.{namespace}"),
    ]
}

/// What is served. Clones share it.
#[derive(Debug, Clone)]
pub struct Certificates {
    serving: Arc<Serving>,
    paths: Paths,
    tls: Arc<rustls::ServerConfig>,
    state: Arc<Mutex<State>>,
    authority: watch::Receiver<String>,
}

impl Certificates {
    /// Follows and keeps the certificates until `stop`.
    pub fn start(
        settings: Settings,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(Certificates, BoxFuture<'static, ()>), rustls::Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let serving = Arc::new(Serving::default());
        let tls = Arc::new(serving::config(provider.clone(), serving.clone())?);
        let state = Arc::new(Mutex::new(State::default()));
        let paths = Paths::default();
        let (announce, authority) = watch::channel(String::new());
        let certificates = Certificates {
            serving: serving.clone(),
            paths: paths.clone(),
            tls,
            state: state.clone(),
            authority,
        };
        let keeper = keep::Keeper {
            secrets: Api::namespaced(settings.client.clone(), &settings.namespace),
            configurations: Api::all(settings.client),
            namespace: settings.namespace,
            names: settings.names,
            purpose: settings.purpose,
            lives: settings.lives,
            quiet: keep::QUIET,
            leading: settings.leading,
            metrics: settings.metrics,
            provider,
            serving,
            paths,
            state,
            announce,
        };
        Ok((certificates, keeper.run(stop).boxed()))
    }

    /// For the server. It stays the same when the certificates change.
    pub fn tls(&self) -> Arc<rustls::ServerConfig> {
        self.tls.clone()
    }

    /// Whom clients are to trust, as PEM; empty as long as there is no certificate.
    pub fn authority(&self) -> watch::Receiver<String> {
        self.authority.clone()
    }

    /// Where the API server asks. They change like the certificates.
    pub fn paths(&self) -> Paths {
        self.paths.clone()
    }

    /// How it stands: not ready without a certificate that can be served.
    pub fn check(&self) -> Check {
        let state = lock(&self.state);
        let problems: Vec<&str> = state.problems.values().map(String::as_str).collect();
        if !self.serving.serves() {
            let waits = vec!["the leader has not made one yet"];
            let why = if problems.is_empty() { waits } else { problems };
            return Check::bad("certificate", why.join("; "));
        }
        let ends = state.ends.and_then(|ends| i64::try_from(ends).ok());
        let ends = ends.and_then(|ends| Timestamp::from_second(ends).ok());
        let ends = ends.map(|ends| format!("good until {ends}")).unwrap_or_default();
        Check::good("certificate", state.said(&ends))
    }
}
