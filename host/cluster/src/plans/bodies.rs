//! What MachineConfigs hold, fetched where it is needed, and kept as long as
//! there is room.

use crate::previews::{Bodies, BodyKey};
use futures::{StreamExt as _, stream};
use kube::api::Request;
use kube::core::Resource as _;
use kube::{Api, Client};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use tread_kube::api::MachineConfig;
use tread_kube::asking::{Call, CallOutcome, Failed, ask};
use tread_kube::metrics::Metrics;
use tread_kube::whole::Whole;

/// How much is kept at hand.
const ROOM: usize = 48 << 20;
/// What is compared for one plan has so many bytes at most.
pub(super) const MOST: usize = 32 << 20;
/// How many are fetched at the same time.
const AT_ONCE: usize = 8;

/// What MachineConfigs hold. Clones share everything.
#[derive(Debug, Clone, Default)]
pub(super) struct BodyCache(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    bodies: HashMap<BodyKey, (Arc<[u8]>, u64)>,
    bytes: usize,
    clock: u64,
}

impl Kept {
    /// One of them, which is used now.
    fn used(&mut self, key: &BodyKey) -> Option<Arc<[u8]>> {
        self.clock += 1;
        let (body, used) = self.bodies.get_mut(key)?;
        *used = self.clock;
        Some(Arc::clone(body))
    }
}

/// Why something was not fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unfetched {
    /// It is gone. Whoever needs it has to do without.
    Gone,
    /// The API server could not say, or says something newer: look again.
    Later(Failed),
}

const CONFIGS: &str = "machineconfigs";

impl BodyCache {
    /// What these MachineConfigs hold, if all of it is at hand.
    pub(super) fn at_hand<'k>(
        &self,
        keys: impl IntoIterator<Item = &'k BodyKey>,
    ) -> Option<Bodies> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bodies = Bodies::new();
        for key in keys {
            if !bodies.contains_key(key) {
                bodies.insert(key.clone(), kept.used(key)?.into());
            }
        }
        Some(bodies)
    }

    /// What these MachineConfigs hold. One that is gone is not among them. None: it
    /// is more than is compared.
    pub(super) async fn get(
        &self,
        client: &Client,
        metrics: &Metrics,
        keys: BTreeSet<BodyKey>,
    ) -> Result<Option<Bodies>, Failed> {
        let mut bodies = Bodies::new();
        let mut missing = Vec::new();
        for key in keys {
            match self.kept(&key) {
                Some(body) => {
                    bodies.insert(key, body.into());
                }
                None => missing.push(key),
            }
        }
        let mut bytes: usize = bodies.values().map(|body| body.bytes().len()).sum();
        let mut fetched = stream::iter(missing)
            .map(async |key: BodyKey| (fetch(client, metrics, &key).await, key))
            .buffer_unordered(AT_ONCE);
        while let Some((result, key)) = fetched.next().await {
            match result {
                Ok(body) => {
                    self.keep(key.clone(), Arc::clone(&body));
                    bytes = bytes.saturating_add(body.len());
                    bodies.insert(key, body.into());
                }
                Err(Unfetched::Gone) => {}
                Err(Unfetched::Later(failed)) => return Err(of_config(&key.0, failed)),
            }
            if bytes > MOST {
                return Ok(None);
            }
        }
        Ok(Some(bodies))
    }

    fn kept(&self, key: &BodyKey) -> Option<Arc<[u8]>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).used(key)
    }

    fn keep(&self, key: BodyKey, body: Arc<[u8]>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clock += 1;
        let now = kept.clock;
        kept.bytes += body.len();
        if let Some((before, _)) = kept.bodies.insert(key, (body, now)) {
            kept.bytes = kept.bytes.saturating_sub(before.len());
        }
        while kept.bytes > ROOM {
            let oldest = kept.bodies.iter().min_by_key(|(_, (_, used))| *used);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else { return };
            if let Some((body, _)) = kept.bodies.remove(&key) {
                kept.bytes = kept.bytes.saturating_sub(body.len());
            }
        }
    }
}

/// Whether there is such a MachineConfig, by the API server itself.
pub(super) async fn is_there(
    client: &Client,
    metrics: &Metrics,
    name: &str,
) -> Result<bool, Failed> {
    let api: Api<MachineConfig> = Api::all(client.clone());
    let asked = api.get_metadata_opt(name);
    let found = ask(metrics, Call::new("get", CONFIGS), asked).await;
    found.map(|it| it.is_some()).map_err(|failed| of_config(name, failed))
}

fn of_config(name: &str, mut failed: Failed) -> Failed {
    failed.why = format!("MachineConfig {name}: {failed}");
    failed
}

async fn fetch(
    client: &Client,
    metrics: &Metrics,
    (name, version): &BodyKey,
) -> Result<Arc<[u8]>, Unfetched> {
    let call = || Call::new("get", CONFIGS);
    let later = |why: String| Unfetched::Later(call().refused(why));
    let request = Request::new(MachineConfig::url_path(&(), None))
        .get(name, &kube::api::GetParams::default())
        .map_err(|error| later(error.to_string()))?;
    let text = ask(metrics, call(), client.request_text(request)).await;
    let text = text.map_err(|failed| match failed.outcome {
        CallOutcome::Gone => Unfetched::Gone,
        _ => Unfetched::Later(failed),
    })?;
    // Its reader says what is wrong with it.
    let Ok(whole) = Whole::read(&text) else {
        return Ok(text.into_bytes().into());
    };
    if whole.version.as_deref() != Some(&**version) {
        return Err(later("was written again in the meantime".to_owned()));
    }
    Ok(whole.body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_last_stays_when_the_room_is_used_up() {
        let cache = BodyCache::default();
        let key = |name: &str| (name.into(), "1".into());
        let body: Arc<[u8]> = vec![0; ROOM / 3].into();
        for name in ["a", "b", "c"] {
            cache.keep(key(name), Arc::clone(&body));
        }
        assert!(cache.kept(&key("a")).is_some());
        cache.keep(key("d"), Arc::clone(&body));
        assert!(cache.kept(&key("b")).is_none());
        for name in ["a", "c", "d"] {
            assert!(cache.kept(&key(name)).is_some(), "{name}");
        }
        cache.keep(key("e"), vec![0; ROOM + 1].into());
        assert_eq!(cache.0.lock().unwrap().bytes, 0);
    }
}
