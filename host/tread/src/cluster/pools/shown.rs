//! Whether machines will be served with what their user data shows: the token of its pool, and
//! the authority that they trust. Both are compared with the rights of whoever asks; no token is
//! ever printed.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, Client};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tread_cluster::boot_images::machine::{Key, Machine};
use tread_cluster::membership::gather::Gathered;
use tread_cluster::membership::stub::{self, Shown, certificates};
use tread_front::names::{AGENTS_AUTHORITY_KEY, MACHINES};
use tread_kube::asking::{Call, ask};
use tread_kube::metrics::Metrics;
use tread_model::joining::{SECRETS_KEY, TOKENS_SECRET, Tokens};

/// What is known of tokens and authorities, as far as whoever asks may read it.
struct Known {
    tokens: Result<BTreeMap<String, Tokens>, String>,
    authorities: Option<Vec<String>>,
}

/// What the user data of a MachineSet is worth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UserData {
    /// The MachineSet.
    pub(super) resource: String,
    pool: String,
    token: Token,
    /// Whether one that it trusts is one of today's; none: that cannot be told.
    trusts: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Newest,
    Former,
    /// None of the pool's.
    Other,
    /// The tokens cannot be read: why.
    Unknown(String),
}

/// What the user data is worth of each MachineSet whose machines show a token.
pub(super) async fn look(client: &Client, namespace: &str, gathered: &Gathered) -> Vec<UserData> {
    let mut found = Vec::new();
    if !gathered.cluster.by_tread {
        return found;
    }
    let mut known = None;
    for (key, machine) in &gathered.facts.machines {
        let Some((pool, shown)) = of(client, key, machine).await else { continue };
        let Some(uid) = gathered.cluster.pools.get(&pool).map(|pool| pool.uid.as_str()) else {
            continue;
        };
        let known = match &mut known {
            Some(known) => known,
            none => none.insert(Known::read(client, namespace).await),
        };
        let resource = format!("{}/{}", key.namespace, key.name);
        found.push(known.judge(resource, (&pool, uid), &shown));
    }
    found
}

/// What the machines of a MachineSet show, of which pool. What cannot be read is told by whoever
/// looks for the pool.
async fn of(client: &Client, key: &Key, machine: &Machine) -> Option<(String, Shown)> {
    let secret = machine.user_data.as_ref().filter(|_| machine.left_out.is_none())?;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &key.namespace);
    let call = Call::new("get", "secrets").within(&key.namespace);
    let found = ask(&Metrics::new(), call, secrets.get(secret)).await.ok()?;
    let text = found.data?.remove("userData")?.0;
    let pool = stub::read(&text)?.pool;
    let shown = stub::shown(&text, &pool)?;
    Some((pool, shown))
}

impl Known {
    async fn read(client: &Client, namespace: &str) -> Known {
        let metrics = Metrics::new();
        let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
        let call = Call::new("get", "secrets").within(namespace);
        let tokens = ask(&metrics, call, secrets.get(TOKENS_SECRET)).await;
        let tokens = tokens.map_err(|failed| failed.to_string()).and_then(|secret| {
            let json = secret.data.unwrap_or_default().remove(SECRETS_KEY).unwrap_or_default();
            // What is wrong there would quote what it is.
            serde_json::from_slice(&json.0).map_err(|_| "it is not as tread writes it".to_owned())
        });
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
        let call = Call::new("get", "configmaps").within(namespace);
        let map = ask(&metrics, call, maps.get(MACHINES)).await.ok();
        let authority = map.and_then(|map| map.data?.remove(AGENTS_AUTHORITY_KEY));
        let authorities = authority.map(|pem| certificates(&pem));
        Known {
            tokens: tokens.map_err(|why| {
                format!("the Secret {namespace}/{TOKENS_SECRET} cannot be read: {why}")
            }),
            authorities,
        }
    }

    fn judge(&self, resource: String, (pool, uid): (&str, &str), shown: &Shown) -> UserData {
        let token = match &self.tokens {
            Err(why) => Token::Unknown(why.clone()),
            Ok(all) => match all.get(pool).filter(|tokens| tokens.pool == uid) {
                Some(tokens) if !tokens.admit(&shown.token) => Token::Other,
                Some(tokens) if tokens.newest() == shown.token => Token::Newest,
                Some(_) => Token::Former,
                None => Token::Other,
            },
        };
        let is_known = |all: &Vec<String>| shown.authorities.iter().any(|it| all.contains(it));
        let trusts = self.authorities.as_ref().map(is_known);
        UserData { resource, pool: pool.to_owned(), token, trusts }
    }
}

impl UserData {
    /// Whether its machines are served nothing.
    pub(super) fn is_refused(&self) -> bool {
        self.token == Token::Other || self.trusts == Some(false)
    }

    /// Whether that cannot be told.
    pub(super) fn is_unknown(&self) -> bool {
        !self.is_refused() && matches!(self.token, Token::Unknown(_))
    }

    /// What there is to say, and what to do.
    pub(super) fn says(&self) -> String {
        let UserData { resource, pool, .. } = self;
        let anew = format!("tread pools stub {pool} prints the user data of today");
        let token = match &self.token {
            Token::Newest => "the newest token".to_owned(),
            Token::Former => {
                format!(
                    "a former token, which ends with tread pools stub {pool} --end-overlap: {anew}"
                )
            }
            Token::Other => {
                format!(
                    "a token that is none of pool {pool}'s, so that machines are refused: {anew}"
                )
            }
            Token::Unknown(why) => {
                format!("a token, and whether it is pool {pool}'s is not known: {why}")
            }
        };
        let trust = match self.trusts {
            Some(false) => format!(
                "; it trusts none of the authorities of today, so that machines do not ask: {anew}"
            ),
            _ => String::new(),
        };
        format!("The user data of {resource} shows {token}{trust}")
    }

    pub(super) fn json(&self) -> Value {
        let token = match &self.token {
            Token::Newest => "newest",
            Token::Former => "former",
            Token::Other => "other",
            Token::Unknown(_) => "unknown",
        };
        let (resource, pool) = (&self.resource, &self.pool);
        json!({"machineSet": resource, "pool": pool, "token": token,
            "trusted": self.trusts, "refused": self.is_refused(), "says": self.says()})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(token: &str, authority: &str) -> Shown {
        Shown { token: token.to_owned(), authorities: vec![authority.to_owned()] }
    }

    #[test]
    fn user_data_with_an_ended_token_or_of_a_pool_that_was_made_anew_is_refused() {
        let mut tokens = Tokens::fresh("1", [1; 32]);
        let first = tokens.newest().to_owned();
        let known = |tokens: &Tokens| Known {
            tokens: Ok([("infra".to_owned(), tokens.clone())].into()),
            authorities: Some(vec!["AAAA".to_owned(), "BBBB".to_owned()]),
        };
        let judge = |known: &Known, uid: &str, shown: &Shown| {
            let found = known.judge("machines/a".to_owned(), ("infra", uid), shown);
            for secret in [&first, &shown.token] {
                assert!(
                    !found.says().contains(secret.as_str())
                        && !found.json().to_string().contains(secret.as_str())
                );
            }
            (found.token.clone(), found.is_refused(), found.is_unknown())
        };
        let user_data = shown(&first, "AAAA");
        assert_eq!(judge(&known(&tokens), "1", &user_data), (Token::Newest, false, false));
        assert_eq!(judge(&known(&tokens), "2", &user_data), (Token::Other, true, false));
        tokens.exchange([2; 32]).unwrap();
        assert_eq!(judge(&known(&tokens), "1", &user_data), (Token::Former, false, false));
        tokens.end_former();
        assert_eq!(judge(&known(&tokens), "1", &user_data), (Token::Other, true, false));
        let newest = tokens.newest().to_owned();
        // Whom it trusts counts too.
        assert_eq!(
            judge(&known(&tokens), "1", &shown(&newest, "BBBB")),
            (Token::Newest, false, false)
        );
        assert_eq!(
            judge(&known(&tokens), "1", &shown(&newest, "CCCC")),
            (Token::Newest, true, false)
        );
        let nobody = Known { tokens: Err("forbidden".to_owned()), authorities: None };
        let unknown = Token::Unknown("forbidden".to_owned());
        assert_eq!(judge(&nobody, "1", &user_data), (unknown, false, true));
    }
}
