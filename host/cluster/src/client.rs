//! The client that everything in the service uses.

use kube::Config;
use kube::config::InferConfigError;
use std::time::Duration;

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
