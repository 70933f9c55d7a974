//! On which node an agent runs: as the API server says of its token.

use super::token;
use crate::http::answer::Refused;
use crate::http::asks::Asks;
use crate::http::kept::Kept;
use crate::http::sender::Sender;
use axum::http::StatusCode;
use k8s_openapi::api::authentication::v1::{
    TokenReview, TokenReviewSpec, TokenReviewStatus, UserInfo,
};
use kube::Client;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use tread_kube::agents::AUDIENCE;
use tread_kube::dated;
use tread_kube::metrics::Metrics;
use tread_model::digest::Digest;

/// How long an answer of the API server counts, at most: so long the token of a pod that is
/// gone is still taken.
const KEPT: Duration = Duration::from_secs(60);
/// How long an answer with no counts.
const KEPT_NO: Duration = Duration::from_secs(10);
/// As many as there may be agents.
const MOST_KEPT: usize = 8192;
/// How many reviews run at a time: all agents of a large cluster may come at once.
const AT_A_TIME: usize = 8;
/// How long a question waits for its turn.
const TURN: Duration = Duration::from_secs(20);

const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
const NODE_UID: &str = "authentication.kubernetes.io/node-uid";
const ADVICE: &str = "agents of tread are answered here: Authorization: Bearer TOKEN, of the agent's pod, with the \
                      audience tread.dev/agents";

/// The node on which an agent runs, by its token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfNode {
    /// The node's name.
    pub name: String,
    /// Its UID, where the API server says it.
    pub uid: Option<String>,
}

/// Asks the API server, and remembers for a moment. Clones share what they know.
#[derive(Clone)]
pub struct AgentReviewer(Arc<Inner>);

impl std::fmt::Debug for AgentReviewer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentReviewer").field("user", &self.0.user).finish_non_exhaustive()
    }
}

struct Inner {
    client: Client,
    /// Who agents are.
    user: String,
    asks: Asks,
    turns: Semaphore,
    kept: Duration,
    nodes: Kept<Digest, OfNode>,
    /// By themselves, so that made-up ones do not push out those that are known.
    refused: Kept<Digest, Refused>,
}

impl AgentReviewer {
    /// One that asks with this client, which must not try again by itself. Agents are the
    /// ServiceAccount `account` in `namespace`.
    pub fn new(client: Client, namespace: &str, account: &str, metrics: Metrics) -> AgentReviewer {
        AgentReviewer::remembering(KEPT, client, (namespace, account), metrics)
    }

    /// One for which an answer counts for so long.
    pub fn remembering(
        kept: Duration,
        client: Client,
        (namespace, account): (&str, &str),
        metrics: Metrics,
    ) -> AgentReviewer {
        AgentReviewer(Arc::new(Inner {
            client,
            user: format!("system:serviceaccount:{namespace}:{account}"),
            asks: Asks::new(AT_A_TIME, metrics),
            turns: Semaphore::new(AT_A_TIME),
            kept,
            nodes: Kept::new(MOST_KEPT),
            refused: Kept::new(MOST_KEPT),
        }))
    }

    /// The node of the agent that sent this.
    pub(super) async fn node(&self, from: &Sender) -> Result<OfNode, Refused> {
        let token = from.token(ADVICE)?;
        // Tokens themselves are not kept.
        let key = Digest::of(token.as_bytes());
        if let Some(known) = self.known(&key) {
            return known;
        }
        let turn = timeout_at(Instant::now() + TURN, self.0.turns.acquire()).await;
        let Ok(_turn) = turn else {
            let sentence = "too many agents come at once; ask again";
            return Err(Refused::new(StatusCode::SERVICE_UNAVAILABLE, sentence));
        };
        if let Some(known) = self.known(&key) {
            return known;
        }
        // Counted only now that the API server is asked: many agents behind one address may come at
        // once.
        self.0.asks.take(from)?;
        let spec = TokenReviewSpec {
            token: Some(token.to_owned()),
            audiences: Some(vec![AUDIENCE.to_owned()]),
        };
        let review = TokenReview { spec, ..TokenReview::default() };
        let asked = Instant::now();
        let answer = dated::create::<_, TokenReview>(&self.0.client, REVIEWS, &review);
        let answer = self.0.asks.ask(from, "tokenreviews", answer).await?;
        let status = answer.object.and_then(|review| review.status).unwrap_or_default();
        match node_of(&self.0.user, status) {
            Ok(node) => {
                self.0.asks.give_back(from);
                // No longer than it lives, by the API server's own clock.
                let lives = token::ends(token).map(|ends| ends.saturating_sub(answer.at.0));
                let until = asked + self.0.kept.min(lives.unwrap_or_default());
                self.0.nodes.keep(key, node.clone(), asked, until);
                Ok(node)
            }
            Err(refused) => {
                self.0.refused.keep(key, refused.clone(), asked, asked + KEPT_NO.min(self.0.kept));
                Err(refused)
            }
        }
    }

    fn known(&self, key: &Digest) -> Option<Result<OfNode, Refused>> {
        let now = Instant::now();
        let node = self.0.nodes.find(key, now).map(Ok);
        node.or_else(|| self.0.refused.find(key, now).map(Err))
    }
}

/// The node that a token is bound to, if it is an agent's.
fn node_of(agents: &str, status: TokenReviewStatus) -> Result<OfNode, Refused> {
    let is_for_agents =
        status.audiences.is_some_and(|audiences| audiences.iter().any(|it| it == AUDIENCE));
    let user = status.user.filter(|_| status.authenticated == Some(true) && is_for_agents);
    let Some(user) = user else {
        let sentence = format!("the API server does not know this token for {AUDIENCE}: {ADVICE}");
        return Err(Refused::new(StatusCode::UNAUTHORIZED, sentence));
    };
    let who = user.username.as_deref().unwrap_or_default();
    if who != agents {
        let sentence = format!("{who} is no agent of this tread: agents are {agents}");
        return Err(Refused::new(StatusCode::FORBIDDEN, sentence));
    }
    let name = only(&user, NODE_NAME).ok_or_else(|| {
        let sentence = "this token is bound to no pod on a node: the kubelet gives an agent's pod one that is, \
                        where Kubernetes is 1.32 or newer";
        Refused::new(StatusCode::FORBIDDEN, sentence)
    })?;
    Ok(OfNode { name, uid: only(&user, NODE_UID) })
}

/// What the API server says of a user, if it says one thing.
fn only(user: &UserInfo, key: &str) -> Option<String> {
    match user.extra.as_ref()?.get(key)?.as_slice() {
        [value] if !value.is_empty() => Some(value.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const AGENTS: &str = "system:serviceaccount:tread-agents:tread-agent";

    fn status(who: &str, audiences: &[&str], nodes: &[&str]) -> TokenReviewStatus {
        let nodes: Vec<String> = nodes.iter().map(|&it| it.to_owned()).collect();
        let extra = BTreeMap::from([
            (NODE_NAME.to_owned(), nodes),
            (NODE_UID.to_owned(), vec!["7e".to_owned()]),
        ]);
        let user =
            UserInfo { username: Some(who.to_owned()), extra: Some(extra), ..UserInfo::default() };
        TokenReviewStatus {
            authenticated: Some(true),
            audiences: Some(audiences.iter().map(|&it| it.to_owned()).collect()),
            user: Some(user),
            error: None,
        }
    }

    #[test]
    fn only_an_agents_token_for_agents_that_is_bound_to_one_node_is_one() {
        let good = status(AGENTS, &[AUDIENCE], &["worker-1"]);
        let node = OfNode { name: "worker-1".to_owned(), uid: Some("7e".to_owned()) };
        assert_eq!(node_of(AGENTS, good.clone()), Ok(node));
        let not = TokenReviewStatus { authenticated: Some(false), ..good.clone() };
        let unaware = TokenReviewStatus { audiences: None, ..good };
        for (what, bad, code) in [
            ("not known", not, 401),
            ("of an authenticator that knows no audiences", unaware, 401),
            ("nobody", TokenReviewStatus::default(), 401),
            ("another audience", status(AGENTS, &["https://kubernetes"], &["worker-1"]), 401),
            ("another account", status("system:node:worker-1", &[AUDIENCE], &["worker-1"]), 403),
            ("no node", status(AGENTS, &[AUDIENCE], &[]), 403),
            ("two nodes", status(AGENTS, &[AUDIENCE], &["worker-1", "worker-2"]), 403),
            ("an empty name", status(AGENTS, &[AUDIENCE], &[""]), 403),
        ] {
            let refused = node_of(AGENTS, bad).unwrap_err();
            assert_eq!(refused.status.as_u16(), code, "{what}: {}", refused.sentence);
        }
    }
}
