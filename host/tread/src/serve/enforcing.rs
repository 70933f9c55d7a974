//! What the mode enforce needs besides.

use super::checks::Start;
use crate::acting::ActingArgs;
use anyhow::{Context as _, Result, bail};
use axum::http::StatusCode;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::{Api, Client};
use std::time::Duration;
use tread_enforce::rollouts::{Agents, OPERATORS_DAEMON, OPERATORS_NAMESPACE, says_halted};
use tread_enforce::{Clock, Settings, Turn};
use tread_front::http::{OfNode, Refused};
use tread_kube::agents::{Answer, Ask, Instructions, Wait};
use tread_kube::asking::{Backoff, Call, CallOutcome, Failed, ask};
use tread_kube::metrics::Metrics;
use tread_kube::node_lease;
use tread_model::protocol::Terms;

/// The first Kubernetes 1.x whose tokens say which node they are bound to.
const MINOR: u32 = 32;
/// For how long a node has to be Ready before it is proved, unless set otherwise.
const READY_FOR: Duration = Duration::from_secs(30);
/// Before an API server is asked again that did not answer, at first and at most.
const WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

/// What nodes are acted upon with, where that may be done here. An API server that does not answer,
/// or does not allow what is asked, is asked again until it does.
pub(super) async fn begin(
    client: &Client,
    namespace: &str,
    args: &ActingArgs,
    metrics: &Metrics,
    start: &Start,
) -> Result<Settings> {
    let asks = Asks { metrics, start };
    let call = Call::new("get", "version");
    let unknown = "the API server does not say which version it is";
    let version = asks.until_answered(unknown, call, || client.apiserver_version()).await;
    let version = version.context(unknown)?;
    if is_too_old(&version.major, &version.minor) {
        bail!(
            "the API server is of Kubernetes {}.{}, and the mode enforce needs 1.{MINOR}: upgrade \
             it, or run tread in the mode advise",
            version.major,
            version.minor
        );
    }
    let daemons: Api<DaemonSet> = Api::namespaced(client.clone(), OPERATORS_NAMESPACE);
    let call = Call::new("get", "daemonsets").within(OPERATORS_NAMESPACE);
    let unknown = "whether OpenShift's operator rolls out here cannot be found out";
    match asks.until_answered(unknown, call, || daemons.get_metadata(OPERATORS_DAEMON)).await {
        Ok(_) => bail!(says_halted()),
        Err(failed) if failed.outcome == CallOutcome::Gone => {}
        Err(failed) => return Err(failed).context(unknown),
    }
    let uid = uid(client, namespace, asks).await?;
    let terms = Terms::default();
    Ok(Settings {
        client: client.clone(),
        metrics: metrics.clone(),
        namespace: namespace.to_owned(),
        leases: args.lease_namespace().to_owned(),
        holder: node_lease::holder(&uid),
        terms: Terms { boot: args.boot_for.unwrap_or(terms.boot), ..terms },
        at_slots: Turn::default(),
        clock: Clock::default(),
        ready_for: args.ready_for.unwrap_or(READY_FOR),
    })
}

/// Asking before the parts of the service run.
#[derive(Clone, Copy)]
struct Asks<'a> {
    metrics: &'a Metrics,
    start: &'a Start,
}

impl Asks<'_> {
    async fn until_answered<T, F: Future<Output = kube::Result<T>>>(
        self,
        unknown: &str,
        call: Call,
        request: impl Fn() -> F,
    ) -> Result<T, Failed> {
        let mut backoff = Backoff::new(WAITS);
        loop {
            match ask(self.metrics, call.clone(), request()).await {
                Err(failed) if is_asked_again(failed.outcome) => {
                    self.start.waits(format!("{unknown}: {failed}"));
                }
                answer => return answer,
            }
            backoff.wait().await;
        }
    }
}

/// Whether another answer may come later.
fn is_asked_again(outcome: CallOutcome) -> bool {
    use CallOutcome::{Forbidden, Unanswered, Unauthenticated};
    matches!(outcome, Unanswered | Forbidden | Unauthenticated)
}

/// Whether this is a Kubernetes whose tokens do not say which node they are bound to. Providers add
/// to the number, as `32+`; one that says nothing that could be read is taken at what it can do.
fn is_too_old(major: &str, minor: &str) -> bool {
    let digits: String = minor.chars().take_while(char::is_ascii_digit).collect();
    major == "1" && digits.parse::<u32>().is_ok_and(|minor| minor < MINOR)
}

/// By what this installation is known: the UID of its namespace.
async fn uid(client: &Client, namespace: &str, asks: Asks<'_>) -> Result<String> {
    let api: Api<Namespace> = Api::all(client.clone());
    let named = ListParams::default().fields(&format!("metadata.name={namespace}"));
    let call = Call::new("list", "namespaces");
    let unknown = "tread's own namespace cannot be read";
    let found = asks.until_answered(unknown, call, || api.list_metadata(&named)).await;
    let found = found.context(unknown)?;
    let uid = found.items.into_iter().next().and_then(|it| it.metadata.uid);
    uid.with_context(|| format!("there is no namespace {namespace}: name tread's with --namespace"))
}

/// What agents ask is answered by what rolls out.
pub(super) struct Answers(pub(super) Agents);

impl tread_front::http::Agents for Answers {
    fn wait(&self, node: &OfNode, wait: Wait) -> BoxFuture<'static, Result<Instructions, Refused>> {
        let (agents, node) = (self.0.clone(), node.clone());
        async move {
            let of = (node.name.as_str(), node.uid.as_deref());
            let instructions =
                agents.wait_having(of, wait.seen.as_deref(), wait.has.as_ref()).await;
            instructions
                .map_err(|why| Refused::new(StatusCode::SERVICE_UNAVAILABLE, why.to_string()))
        }
        .boxed()
    }

    fn permit(&self, node: &OfNode, ask: Ask) -> BoxFuture<'static, Answer> {
        let (agents, node) = (self.0.clone(), node.clone());
        async move { agents.permit(&node.name, node.uid.as_deref(), &ask).await }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_answer_or_does_not_allow_it_yet_is_asked_again() {
        use CallOutcome::{
            Conflict, Forbidden, Gone, Refused, Unanswered, Unauthenticated, Unreadable,
        };
        assert!([Unanswered, Forbidden, Unauthenticated].into_iter().all(is_asked_again));
        assert!(![Refused, Conflict, Gone, Unreadable].into_iter().any(is_asked_again));
    }

    #[test]
    fn enforce_needs_kubernetes_1_32() {
        for old in ["0", "9", "31", "31+", "31-gke.1"] {
            assert!(is_too_old("1", old), "{old}");
        }
        for (major, minor) in
            [("1", "32"), ("1", "32+"), ("1", "100"), ("2", "0"), ("1", ""), ("1", "+"), ("", "")]
        {
            assert!(!is_too_old(major, minor), "{major}.{minor}");
        }
    }
}
