//! Who may read: whoever the API server says may read the objects themselves.

use super::answer::Refused;
use super::connections::Peer;
use super::rates::{self, Rates};
use crate::names::view_name;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use std::collections::HashMap;
use std::convert::Infallible;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tread_kube::api::words::{GROUP, VERSION};
use tread_kube::asking::{Call, SHORT_PATIENCE, ask_before};
use tread_kube::metrics::Metrics;
use tread_model::digest::Digest;

/// How long an answer of the API server counts: whoever loses a right keeps it
/// here for no longer.
const KEPT: Duration = Duration::from_secs(10);
/// How many answers are kept.
const MOST_KEPT: usize = 1024;
/// How many reviews run at a time: made-up tokens must not flood the API server.
const AT_A_TIME: usize = 4;
/// Tokens are no longer.
const LONGEST_TOKEN: usize = 16 * 1024;

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

/// Who asks: from where, and with which headers.
#[derive(Debug, Clone)]
pub struct Sender {
    peer: IpAddr,
    headers: HeaderMap,
}

impl<S: Sync> FromRequestParts<S> for Sender {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Sender, Infallible> {
        // Requests that came by no connection are of one peer.
        let nowhere = IpAddr::from(Ipv6Addr::UNSPECIFIED);
        let peer = parts.extensions.get::<Peer>().map_or(nowhere, |peer| peer.0);
        Ok(Sender { peer, headers: parts.headers.clone() })
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
    metrics: Metrics,
    room: Semaphore,
    /// How often each peer may be wrong.
    rates: Mutex<Rates<IpAddr>>,
    users: Mutex<Kept<Digest, UserInfo>>,
    /// Tokens that nobody knows: by themselves, so that made-up ones do not push
    /// out those that are known.
    unknown: Mutex<Kept<Digest, ()>>,
    allowed: Mutex<Kept<(Digest, Asked), ()>>,
    denied: Mutex<Kept<(Digest, Asked), ()>>,
}

impl Reviewer {
    /// One that asks with this client, for the tread in this namespace; its
    /// requests must not be tried again by the client itself.
    pub fn new(client: Client, namespace: &str, metrics: Metrics) -> Reviewer {
        Reviewer(Arc::new(Inner {
            client,
            view: view_name(namespace),
            metrics,
            room: Semaphore::new(AT_A_TIME),
            rates: Mutex::default(),
            users: Mutex::default(),
            unknown: Mutex::default(),
            allowed: Mutex::default(),
            denied: Mutex::default(),
        }))
    }

    /// Whether whoever sent these headers may read this.
    pub async fn allow(&self, from: &Sender, asked: Asked) -> Result<(), Refused> {
        let token = bearer(&from.headers)?;
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
        self.take(from)?;
        let spec = TokenReviewSpec { token: Some(token.to_owned()), audiences: None };
        let review = TokenReview { spec, ..TokenReview::default() };
        let status = self.ask(from, "tokenreviews", review).await?.status.unwrap_or_default();
        match status.user.filter(|_| status.authenticated == Some(true)) {
            Some(user) => {
                self.give_back(from);
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
        self.take(from)?;
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
            self.give_back(from);
        }
        keep(if allowed { &self.0.allowed } else { &self.0.denied }, key, ());
        Ok(allowed)
    }

    /// Counts a question that the API server may answer with no.
    fn take(&self, from: &Sender) -> Result<(), Refused> {
        let mut rates = self.0.rates.lock().unwrap_or_else(PoisonError::into_inner);
        if rates.take(from.peer, Instant::now()) {
            return Ok(());
        }
        let sentence = format!(
            "too many questions of this address were answered with no; ask again in {} s",
            rates::PAUSE.as_secs()
        );
        Err(Refused::new(StatusCode::TOO_MANY_REQUESTS, sentence))
    }

    /// It was answered with yes.
    fn give_back(&self, from: &Sender) {
        self.0.rates.lock().unwrap_or_else(PoisonError::into_inner).give_back(from.peer);
    }

    async fn ask<K>(&self, from: &Sender, kind: &'static str, review: K) -> Result<K, Refused>
    where
        K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug,
        K: serde::Serialize + serde::de::DeserializeOwned,
    {
        let api: Api<K> = Api::all(self.0.client.clone());
        let params = PostParams::default();
        let answer = async {
            let _room = self.0.room.acquire().await;
            api.create(&params, &review).await
        };
        let unavailable = |why: &str| {
            // That is no answer with no.
            self.give_back(from);
            let sentence = format!("who asks cannot be found out ({kind}: {why}); try again");
            Refused::new(StatusCode::SERVICE_UNAVAILABLE, sentence)
        };
        let (answer_by, call) = (Instant::now() + SHORT_PATIENCE, Call::new("create", kind));
        ask_before(answer_by, &self.0.metrics, call, answer).await.map_err(|failed| {
            tracing::warn!(kind, "a review failed: {failed}");
            match failed.code {
                0 => unavailable("the API server does not answer"),
                _ => unavailable("the API server does not answer it"),
            }
        })
    }
}

fn bearer(headers: &HeaderMap) -> Result<&str, Refused> {
    let missing = || {
        let sentence = "send a token of the cluster: Authorization: Bearer TOKEN, such as of kubectl create token";
        Refused::new(StatusCode::UNAUTHORIZED, sentence)
    };
    let value = headers.get(header::AUTHORIZATION).ok_or_else(missing)?;
    let (scheme, token) =
        value.to_str().ok().and_then(|value| value.split_once(' ')).ok_or_else(missing)?;
    let token = token.trim();
    if !scheme.eq_ignore_ascii_case("bearer") || token.is_empty() || token.len() > LONGEST_TOKEN {
        return Err(missing());
    }
    Ok(token)
}

/// What is remembered, and until when.
struct Kept<K, V>(HashMap<K, (Instant, V)>);

impl<K, V> Default for Kept<K, V> {
    fn default() -> Kept<K, V> {
        Kept(HashMap::new())
    }
}

impl<K: Eq + Hash, V: Clone> Kept<K, V> {
    fn find(&self, key: &K, now: Instant) -> Option<V> {
        let (until, value) = self.0.get(key)?;
        (now < *until).then(|| value.clone())
    }

    fn keep(&mut self, key: K, value: V, now: Instant) {
        if self.0.len() >= MOST_KEPT {
            self.0.retain(|_, (until, _)| now < *until);
        }
        if self.0.len() >= MOST_KEPT {
            self.0.clear();
        }
        self.0.insert(key, (now + KEPT, value));
    }
}

fn find<K: Eq + Hash, V: Clone>(kept: &Mutex<Kept<K, V>>, key: &K) -> Option<V> {
    kept.lock().unwrap_or_else(PoisonError::into_inner).find(key, Instant::now())
}

fn keep<K: Eq + Hash, V: Clone>(kept: &Mutex<Kept<K, V>>, key: K, value: V) {
    kept.lock().unwrap_or_else(PoisonError::into_inner).keep(key, value, Instant::now());
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn sent(value: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::AUTHORIZATION, HeaderValue::from_str(value).unwrap())])
    }

    #[test]
    fn only_a_bearer_token_is_a_token() {
        assert_eq!(bearer(&sent("Bearer abc")).unwrap(), "abc");
        assert_eq!(bearer(&sent("bearer  abc ")).unwrap(), "abc");
        for bad in
            ["", "abc", "Bearer", "Bearer ", "Basic abc", &format!("Bearer {}", "a".repeat(20_000))]
        {
            assert_eq!(bearer(&sent(bad)).unwrap_err().status, StatusCode::UNAUTHORIZED, "{bad}");
        }
        assert_eq!(bearer(&HeaderMap::new()).unwrap_err().status, StatusCode::UNAUTHORIZED);
        let bytes = HeaderMap::from_iter([(
            header::AUTHORIZATION,
            HeaderValue::from_bytes(b"Bearer \xff\xfe").unwrap(),
        )]);
        assert_eq!(bearer(&bytes).unwrap_err().status, StatusCode::UNAUTHORIZED);
    }

    #[test]
    fn what_is_remembered_is_bounded_and_forgotten() {
        let mut kept = Kept::default();
        let now = Instant::now();
        for key in 0..5 * MOST_KEPT {
            kept.keep(key, true, now);
            assert_eq!(kept.find(&key, now), Some(true));
            assert!(kept.0.len() <= MOST_KEPT);
        }
        kept.keep(1, true, now);
        assert_eq!(kept.find(&1, now + KEPT), None);
    }
}
