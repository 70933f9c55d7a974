//! Who may read: whoever the API server says may read the objects themselves.

use super::answer::Refused;
use super::asks::Asks;
use super::kept::Kept;
use super::sender::Sender;
use crate::names::view_name;
use axum::http::StatusCode;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};
use tread_kube::api::words::{GROUP, VERSION};
use tread_kube::asking::SHORT_PATIENCE;
use tread_kube::metrics::Metrics;
use tread_model::digest::Digest;

/// How long an answer of the API server counts: whoever loses a right keeps it
/// here for no longer.
const KEPT: Duration = Duration::from_secs(10);
/// How many answers are kept.
const MOST_KEPT: usize = 1024;
/// How many reviews run at a time: made-up tokens must not flood the API server.
const AT_A_TIME: usize = 4;
const ADVICE: &str =
    "send a token of the cluster: Authorization: Bearer TOKEN, such as of kubectl create token";

/// What somebody wants to read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Asked {
    verb: &'static str,
    resource: &'static str,
    name: Option<String>,
}

impl Asked {
    /// All of them.
    pub fn list(resource: &'static str) -> Asked {
        Asked { verb: "list", resource, name: None }
    }

    /// One of them.
    pub fn get(resource: &'static str, name: &str) -> Asked {
        Asked { verb: "get", resource, name: Some(name.to_owned()) }
    }
}

/// Asks the API server, and remembers for a moment. Clones share what they know.
#[derive(Clone)]
pub struct Reviewer(Arc<Inner>);

impl std::fmt::Debug for Reviewer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reviewer").finish_non_exhaustive()
    }
}

struct Inner {
    client: Client,
    /// The role that lets people read.
    view: String,
    asks: Asks,
    /// Whose turn it is to be asked about.
    turns: Semaphore,
    users: Kept<Digest, UserInfo>,
    /// Tokens that nobody knows: by themselves, so that made-up ones do not push
    /// out those that are known.
    unknown: Kept<Digest, ()>,
    allowed: Kept<(Digest, Asked), ()>,
    denied: Kept<(Digest, Asked), ()>,
}

impl Reviewer {
    /// One that asks with this client, for the tread in this namespace; its
    /// requests must not be tried again by the client itself.
    pub fn new(client: Client, namespace: &str, metrics: Metrics) -> Reviewer {
        Reviewer(Arc::new(Inner {
            client,
            view: view_name(namespace),
            asks: Asks::new(AT_A_TIME, metrics),
            turns: Semaphore::new(AT_A_TIME),
            users: Kept::new(MOST_KEPT),
            unknown: Kept::new(MOST_KEPT),
            allowed: Kept::new(MOST_KEPT),
            denied: Kept::new(MOST_KEPT),
        }))
    }

    /// Whether whoever sent these headers may read this.
    pub async fn allow(&self, from: &Sender, asked: Asked) -> Result<(), Refused> {
        let token = from.token(ADVICE)?;
        // Tokens themselves are not kept.
        let key = Digest::of(token.as_bytes());
        let user = self.user(from, key, token).await?;
        if self.may(from, key, &user, &asked).await? {
            return Ok(());
        }
        let who = user.username.unwrap_or_default();
        let Asked { verb, resource, name } = asked;
        let name = name.map(|name| format!(" {name}")).unwrap_or_default();
        let sentence = format!(
            "{who} may not {verb} {resource}.{GROUP}{name}: an admin can bind the \
             ClusterRole {}",
            self.0.view
        );
        Err(Refused::new(StatusCode::FORBIDDEN, sentence))
    }

    async fn user(&self, from: &Sender, key: Digest, token: &str) -> Result<UserInfo, Refused> {
        let unknown = || {
            let sentence =
                "the API server does not know this token: take one of kubectl create token";
            Refused::new(StatusCode::UNAUTHORIZED, sentence)
        };
        if let Some(user) = find(&self.0.users, &key) {
            return Ok(user);
        }
        if find(&self.0.unknown, &key).is_some() {
            return Err(unknown());
        }
        let _turn = self.turn().await?;
        if let Some(user) = find(&self.0.users, &key) {
            return Ok(user);
        }
        self.0.asks.take(from)?;
        let spec = TokenReviewSpec { token: Some(token.to_owned()), audiences: None };
        let review = TokenReview { spec, ..TokenReview::default() };
        let status = self.ask(from, "tokenreviews", review).await?.status.unwrap_or_default();
        match status.user.filter(|_| status.authenticated == Some(true)) {
            Some(user) => {
                self.0.asks.give_back(from);
                keep(&self.0.users, key, user.clone());
                Ok(user)
            }
            None => {
                keep(&self.0.unknown, key, ());
                Err(unknown())
            }
        }
    }

    async fn may(
        &self,
        from: &Sender,
        key: Digest,
        user: &UserInfo,
        asked: &Asked,
    ) -> Result<bool, Refused> {
        let key = (key, asked.clone());
        if find(&self.0.allowed, &key).is_some() {
            return Ok(true);
        }
        if find(&self.0.denied, &key).is_some() {
            return Ok(false);
        }
        let _turn = self.turn().await?;
        self.0.asks.take(from)?;
        let attributes = ResourceAttributes {
            group: Some(GROUP.to_owned()),
            version: Some(VERSION.to_owned()),
            resource: Some(asked.resource.to_owned()),
            verb: Some(asked.verb.to_owned()),
            name: asked.name.clone(),
            ..ResourceAttributes::default()
        };
        let spec = SubjectAccessReviewSpec {
            user: user.username.clone(),
            uid: user.uid.clone(),
            groups: user.groups.clone(),
            extra: user.extra.clone(),
            resource_attributes: Some(attributes),
            ..SubjectAccessReviewSpec::default()
        };
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let review = self.ask(from, "subjectaccessreviews", review).await?;
        let allowed = review.status.is_some_and(|status| status.allowed);
        if allowed {
            self.0.asks.give_back(from);
        }
        keep(if allowed { &self.0.allowed } else { &self.0.denied }, key, ());
        Ok(allowed)
    }

    /// Waits for a turn to ask the API server. Only questions that have their turn count against an
    /// address: there are fewer of them at a time than may be wrong, so that many readers behind one
    /// address are not refused while they wait for answers.
    async fn turn(&self) -> Result<SemaphorePermit<'_>, Refused> {
        let turn = timeout_at(Instant::now() + SHORT_PATIENCE, self.0.turns.acquire()).await;
        turn.ok().and_then(Result::ok).ok_or_else(|| {
            let sentence = "too many readers come at once; ask again";
            Refused::new(StatusCode::SERVICE_UNAVAILABLE, sentence)
        })
    }

    async fn ask<K>(&self, from: &Sender, kind: &'static str, review: K) -> Result<K, Refused>
    where
        K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug,
        K: serde::Serialize + serde::de::DeserializeOwned,
    {
        let (api, params): (Api<K>, _) = (Api::all(self.0.client.clone()), PostParams::default());
        self.0.asks.ask(from, kind, async { api.create(&params, &review).await }).await
    }
}

fn find<K: Eq + Hash, V: Clone>(kept: &Kept<K, V>, key: &K) -> Option<V> {
    kept.find(key, Instant::now())
}

fn keep<K: Eq + Hash, V: Clone>(kept: &Kept<K, V>, key: K, value: V) {
    let now = Instant::now();
    kept.keep(key, value, now, now + KEPT);
}
