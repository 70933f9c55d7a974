//! The way to a cluster.

use anyhow::{Context as _, Result, anyhow};
use clap::Args;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use std::future::Future;
use std::path::PathBuf;
use tread_kube::asking::{CallOutcome, Failed};
use tread_kube::errors::with_causes;

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

/// A cluster that can be asked.
pub(super) struct Cluster {
    /// It does not try again by itself.
    pub(super) client: Client,
    /// Where its API server is.
    address: String,
}

/// The cluster that was named.
pub(super) async fn cluster(args: &ClusterArgs) -> Result<Cluster> {
    let options = KubeConfigOptions { context: args.context.clone(), ..Default::default() };
    let config = match &args.kubeconfig {
        Some(path) => {
            let read = Kubeconfig::read_from(path).map_err(|error| {
                // It names the file.
                anyhow!("no cluster to ask: {}: see --kubeconfig", with_causes(&error))
            })?;
            Config::from_custom_kubeconfig(read, &options).await
        }
        None => Config::from_kubeconfig(&options).await,
    };
    let config = config.map_err(|error| {
        anyhow!(
            "no cluster to ask: set KUBECONFIG, or name a kubeconfig with --kubeconfig and a \
             context of it with --context: {}",
            with_causes(&error)
        )
    })?;
    let address = config.cluster_url.to_string().trim_end_matches('/').to_owned();
    let client = tread_kube::client::client(config).context("the kubeconfig cannot be used")?;
    Ok(Cluster { client, address })
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

impl Cluster {
    /// Why something cannot be listed, and what to do.
    pub(super) fn failed(&self, what: &str, failed: &Failed) -> anyhow::Error {
        anyhow!("cannot list {what}: {}", why(&self.address, failed))
    }
}

impl Cluster {
    /// That there is nothing of rollouts in it, and what to do.
    pub(super) fn rolls_out_nothing(&self) -> anyhow::Error {
        anyhow!(
            "tread rolls out nothing in the cluster at {}: there are no Rollouts, so it runs there in the mode \
             advise, or is not installed; `tread plans` says what is about to happen, and `tread manifests --mode \
             enforce` prints what rolls out",
            self.address
        )
    }
}

/// What says how tread is installed: the plain command would bring another one than there was.
pub(super) const INSTALLS: &str = "`tread manifests --help`";

/// Why a call failed, where the kind is no matter of the address.
pub(super) fn in_words(failed: &Failed) -> String {
    match failed.outcome {
        CallOutcome::Unauthenticated => {
            format!("the cluster does not know who asks ({failed}): {LOG_IN}")
        }
        _ => failed.to_string(),
    }
}

/// What to do where the API server does not know who asks.
const LOG_IN: &str = "log in again, or see which user the kubeconfig names";

fn why(address: &str, failed: &Failed) -> String {
    match failed.code {
        _ if failed.outcome == CallOutcome::Unreadable => format!(
            "what answers at {address} is no API server: {failed}: see whether a proxy stands before it"
        ),
        // Of a group that is not there it says so in plain text, without a reason.
        404 => format!(
            "tread is not installed in the cluster at {address}, which has none of that kind: \
             {INSTALLS} says how to install it"
        ),
        403 => format!(
            "{failed}: an admin can bind tread's ClusterRole tread-view.NAMESPACE to you \
             (tread-view.tread-system, unless tread is installed in another namespace)"
        ),
        401 => format!("the cluster at {address} does not know who asks ({failed}): {LOG_IN}"),
        0 => format!(
            "no answer from the cluster at {address}: {failed}: see whether it is the one that is \
             meant (`kubectl config view --minify`), and whether it answers (`kubectl get --raw \
             /readyz`)"
        ),
        _ => failed.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tread_kube::asking::{Call, ask};
    use tread_kube::metrics::Metrics;
    use tread_test_bed::refusal;

    #[tokio::test]
    async fn an_answer_that_is_no_list_says_what_to_do() {
        let explained = async |error: kube::Error| {
            let answer = std::future::ready(Err::<(), _>(error));
            let call = Call::new("list", "disruptionplans");
            let failed = ask(&Metrics::new(), call, answer).await.unwrap_err();
            why("https://api.example:6443", &failed)
        };
        let error = async |code: u16, message: &str, reason: &str| {
            explained(refusal(json!({"code": code, "message": message, "reason": reason}))).await
        };
        // As kube makes it of an answer in plain text.
        let missing = error(404, "404 page not found", "Failed to parse error data").await;
        assert!(
            missing.starts_with("tread is not installed in the cluster at https://"),
            "{missing}"
        );
        assert!(missing.contains("`tread manifests --help` says how to install it"), "{missing}");
        let forbidden = error(403, "disruptionplans is forbidden", "Forbidden").await;
        assert!(forbidden.starts_with("disruptionplans is forbidden: an admin can"), "{forbidden}");
        assert!(forbidden.contains("tread-view.NAMESPACE"), "{forbidden}");
        let unknown = error(401, "Unauthorized", "Unauthorized").await;
        assert!(unknown.contains("https://api.example:6443 does not know who asks"), "{unknown}");
        let refused = kube::Error::ReadEvents(std::io::Error::other("connection refused"));
        let refused = explained(refused).await;
        assert!(refused.starts_with("no answer from the cluster at https://api.ex"), "{refused}");
        assert_eq!(refused.matches("connection refused").count(), 1, "{refused}");
    }

    #[tokio::test]
    async fn a_kubeconfig_that_is_not_there_is_named_with_its_cause_once() {
        let args = ClusterArgs { kubeconfig: Some("/no/such/file".into()), context: None };
        let error = format!("{:#}", cluster(&args).await.err().unwrap());
        assert_eq!(error.matches("No such file").count(), 1, "{error}");
        assert_eq!(error.matches("/no/such/file").count(), 1, "{error}");
    }
}
