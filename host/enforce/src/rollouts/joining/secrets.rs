//! The keys that claims are signed with, and the tokens of pools: a Secret each, in tread's
//! namespace. Whoever makes user data reads the tokens, and learns no key.

use crate::settings::Settings;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::collections::BTreeMap;
use tread_cluster::pools::Pools;
use tread_kube::api::words::{NAME as TREAD, PART_OF_LABEL};
use tread_kube::asking::{Call, CallOutcome, Failed, ask};
use tread_model::joining::{
    KEYS_SECRET as KEYS, Key, SECRETS_KEY as FIELD, TOKENS_SECRET as TOKENS, Tokens,
};

const KIND: &str = "secrets";

/// What a Secret holds, by its version; or why it cannot be read.
#[derive(Debug, Clone)]
pub(super) struct Held<T> {
    version: String,
    pub(super) read: Result<T, String>,
}

/// The words of the condition `Serves` where a Secret cannot be read.
pub(super) const KEYS_UNREADABLE: &str = "KeysUnreadable";
const TOKENS_UNREADABLE: &str = "TokensUnreadable";

/// The first of them that cannot be read, and why.
pub(super) fn unread<K, T>(
    keys: Option<&Held<K>>,
    tokens: Option<&Held<T>>,
) -> Option<(&'static str, String)> {
    let of_keys = keys.and_then(|held| Some((KEYS_UNREADABLE, held.read.as_ref().err()?)));
    let of_tokens = || tokens.and_then(|it| Some((TOKENS_UNREADABLE, it.read.as_ref().err()?)));
    of_keys.or_else(of_tokens).map(|(word, why)| (word, why.clone()))
}

impl<T: DeserializeOwned> Held<T> {
    pub(super) fn of(name: &str, object: &Secret) -> Held<T> {
        let json = object.data.as_ref().and_then(|data| data.get(FIELD));
        // What serde found may be a secret.
        let read = json.and_then(|json| serde_json::from_slice(&json.0).ok()).ok_or_else(|| {
            format!(
                "the Secret {name} does not hold what tread writes: remove it, and tread makes it anew; what was \
                 signed or served with it counts no more"
            )
        });
        let version = object.metadata.resource_version.clone().unwrap_or_default();
        Held { version, read }
    }
}

/// Makes the first key.
pub(super) async fn make_keys(settings: &Settings) -> Result<(), Failed> {
    let call = Call::new("create", KIND).within(&settings.namespace);
    let key = Key::of(random(&call)?);
    make(settings, KEYS, &[key], call).await
}

/// So many tokens are kept of pools that are not there.
const ABSENT: usize = 200;

/// The tokens without those of pools that were made anew. One of a pool that is not there stays: once
/// the API server does not know the kind of pools for a moment, all seem to be gone, and the machines
/// of each have its token. Nobody is admitted by it meanwhile.
fn kept(known: &BTreeMap<String, Tokens>, pools: &Pools) -> BTreeMap<String, Tokens> {
    let mut absent = 0;
    let stays = |(name, tokens): &(&String, &Tokens)| {
        let Some(pool) = pools.get(*name) else {
            absent += 1;
            return absent <= ABSENT;
        };
        pool.uid == tokens.pool
    };
    let stay = known.iter().filter(stays);
    stay.map(|(name, tokens)| (name.clone(), tokens.clone())).collect()
}

/// Makes a token for each pool that has none, and takes away those of pools that were made anew.
pub(super) async fn keep_tokens(
    settings: &Settings,
    held: Option<&Held<BTreeMap<String, Tokens>>>,
    pools: &Pools,
) -> Result<(), Failed> {
    let call = |verb| Call::new(verb, KIND).within(&settings.namespace);
    // What cannot be read is an admin's to mend.
    let known = match held.map(|held| &held.read) {
        Some(Err(_)) => return Ok(()),
        Some(Ok(known)) => Some(known),
        None => None,
    };
    let mut next = known.map(|known| kept(known, pools)).unwrap_or_default();
    for (name, pool) in pools {
        if !next.contains_key(name) {
            next.insert(name.clone(), Tokens::fresh(&pool.uid, random(&call("create"))?));
        }
    }
    if known == Some(&next) {
        return Ok(());
    }
    let Some(held) = held else { return make(settings, TOKENS, &next, call("create")).await };
    let bytes = serde_json::to_vec(&next).unwrap_or_default();
    let patch = Patch::Merge(json!({
        "metadata": {"resourceVersion": held.version},
        "data": {FIELD: ByteString(bytes)},
    }));
    let api: Api<Secret> = Api::namespaced(settings.client.clone(), &settings.namespace);
    let params = PatchParams::default();
    made(ask(&settings.metrics, call("patch"), api.patch(TOKENS, &params, &patch)).await)
}

async fn make(
    settings: &Settings,
    name: &str,
    holds: &(impl Serialize + ?Sized),
    call: Call,
) -> Result<(), Failed> {
    let bytes = serde_json::to_vec(holds).unwrap_or_default();
    let object = json!({
        "metadata": {"name": name, "labels": {PART_OF_LABEL: TREAD}},
        "data": {FIELD: ByteString(bytes)},
    });
    let object: Secret =
        serde_json::from_value(object).map_err(|error| call.clone().refused(error.to_string()))?;
    let api: Api<Secret> = Api::namespaced(settings.client.clone(), &settings.namespace);
    made(ask(&settings.metrics, call, api.create(&PostParams::default(), &object)).await)
}

/// What somebody else wrote meanwhile comes by the watch.
fn made(answer: Result<Secret, Failed>) -> Result<(), Failed> {
    match answer {
        Err(failed) if failed.outcome != CallOutcome::Conflict => Err(failed),
        _ => Ok(()),
    }
}

fn random(call: &Call) -> Result<[u8; 32], Failed> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(|error| call.clone().refused(format!("no random bytes: {error}")))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tread_cluster::pools::Pool;

    #[test]
    fn a_token_stays_while_its_pool_is_not_there_and_goes_with_one_that_was_made_anew() {
        let pools = |all: &[(&str, &str)]| -> Pools {
            let pool = |(name, uid): &(&str, &str)| {
                let pool = Pool { uid: (*uid).to_owned(), ..Pool::default() };
                ((*name).to_owned(), Arc::new(pool))
            };
            all.iter().map(pool).collect()
        };
        let token = |name: &str, uid: &str| (name.to_owned(), Tokens::fresh(uid, [7; 32]));
        let known = BTreeMap::from([token("infra", "1"), token("worker", "2")]);
        // For a moment the API server says that it knows no pools.
        let mut next = kept(&known, &Pools::new());
        assert_eq!(next, known);
        next = kept(&next, &pools(&[("infra", "1"), ("worker", "2")]));
        assert_eq!(next, known);
        next = kept(&next, &pools(&[("infra", "3"), ("worker", "2")]));
        assert_eq!(next.keys().collect::<Vec<_>>(), ["worker"]);
        let many: BTreeMap<String, Tokens> =
            (0..=ABSENT).map(|at| token(&format!("gone-{at:03}"), "4")).chain(known).collect();
        let next = kept(&many, &pools(&[("infra", "1"), ("worker", "2")]));
        assert_eq!(next.len(), ABSENT + 2, "there is room for so many, and for all that are there");
        assert!(next.contains_key("worker"));
    }

    #[test]
    fn a_secret_that_cannot_be_read_says_which_one_and_what_to_do_and_nothing_of_what_it_holds() {
        let secret = |text: &str| {
            let data = BTreeMap::from([(FIELD.to_owned(), ByteString(text.as_bytes().to_vec()))]);
            Secret { data: Some(data), ..Secret::default() }
        };
        let tokens = |text: &str| Held::<BTreeMap<String, Tokens>>::of(TOKENS, &secret(text));
        let keys = |text: &str| Held::<Vec<Key>>::of(KEYS, &secret(text));
        assert_eq!(unread::<Vec<Key>, Vec<Key>>(None, None), None, "they are made yet");
        assert_eq!(unread(Some(&keys("[]")), Some(&tokens("{}"))), None);
        let spoilt = r#"{"infra": "s3cret"}"#;
        let (word, why) = unread(Some(&keys("[]")), Some(&tokens(spoilt))).unwrap();
        assert_eq!(word, TOKENS_UNREADABLE);
        assert!(why.contains(TOKENS) && why.contains("remove it") && !why.contains("s3cret"));
        let (word, why) = unread(Some(&keys(spoilt)), Some(&tokens(spoilt))).unwrap();
        assert!(word == KEYS_UNREADABLE && why.contains(KEYS), "{word}: {why}");
        let empty = Held::<Vec<Key>>::of(KEYS, &Secret::default());
        assert!(empty.read.is_err());
    }
}
