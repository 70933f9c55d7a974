//! The way to a cluster.

use anyhow::{Context as _, Result};
use clap::Args;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use std::future::Future;
use std::path::PathBuf;

/// Which cluster.
#[derive(Debug, Clone, Default, Args)]
pub struct ClusterArgs {
    /// The kubeconfig to use [default: $KUBECONFIG, or ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig to use
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

/// A client for the cluster. It does not try again by itself.
pub(super) async fn client(args: &ClusterArgs) -> Result<Client> {
    let options = KubeConfigOptions { context: args.context.clone(), ..Default::default() };
    let config = match &args.kubeconfig {
        Some(path) => {
            let read = Kubeconfig::read_from(path)
                .with_context(|| format!("cannot read the kubeconfig {}", path.display()))?;
            Config::from_custom_kubeconfig(read, &options).await
        }
        None => Config::from_kubeconfig(&options).await,
    };
    let config = config.context(
        "no cluster to ask: set KUBECONFIG, or name a kubeconfig with --kubeconfig and a context \
         of it with --context",
    )?;
    tread_kube::client::client(config).context("the kubeconfig cannot be used")
}

/// Runs what waits for a cluster.
pub(super) fn wait_for<T>(what: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the threads that ask the cluster")?
        .block_on(what)
}

/// An answer of the API server that is no success, in a sentence.
pub(super) fn failed(what: &str, error: &kube::Error) -> anyhow::Error {
    match error {
        kube::Error::Api(status) if status.is_not_found() => anyhow::anyhow!(
            "cannot list {what}: this cluster has none of that kind; install tread with \
             `tread manifests | kubectl apply --server-side -f -`"
        ),
        error => anyhow::anyhow!("cannot list {what}: {}", tread_kube::told::told(error)),
    }
}
