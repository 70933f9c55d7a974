//! Which claim which node joined by, for good, and until when which config may still be asked
//! for: a ConfigMap in tread's namespace, each by a key of its own.

use crate::settings::Settings;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use tread_kube::api::words::{NAME as TREAD, PART_OF_LABEL};
use tread_kube::asking::{Call, CallOutcome, Failed, ask};
use tread_model::digest::Digest;
use tread_model::joining::{Id, Mark};

/// What the ConfigMap is called.
pub(super) const NAME: &str = "tread-joining";
const KIND: &str = "configmaps";
/// Before a claim's id; the value says who joined by it.
const CLAIM: &str = "claim.";
/// Before a config's name; the value is a time, in seconds since 1970.
const SERVED: &str = "served.";
/// From so many claims on those go whose nodes are gone: one is 100 bytes, and an object has a
/// megabyte.
const MOST: usize = 6000;

/// Who joined by a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bound {
    /// The node's name: the claim is good for it alone, for good.
    pub(super) node: String,
    /// Which node of that name it was first, and the config that its machine was served.
    first: Option<(String, String)>,
}

impl Bound {
    pub(super) fn new(node: &str, uid: &str, config: Mark) -> Bound {
        Bound { node: node.to_owned(), first: Some((short(uid), config.to_string())) }
    }

    fn read(text: &str) -> Bound {
        let mut words = text.split(' ').map(str::to_owned);
        let node = words.next().unwrap_or_default();
        Bound { node, first: words.next().zip(words.next()) }
    }

    /// The config that this node's machine was served, where it has not registered again since.
    fn served(&self, node: &str, uid: &str) -> Option<&str> {
        let (first, config) = self.first.as_ref()?;
        (self.node == node && *first == short(uid)).then_some(config)
    }
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.first {
            Some((uid, config)) => write!(f, "{} {uid} {config}", self.node),
            None => f.write_str(&self.node),
        }
    }
}

/// The first digits of a UID's digest: names and bytes are short.
fn short(uid: &str) -> String {
    Digest::of(uid.as_bytes()).hex().chars().take(16).collect()
}

/// What is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Record {
    version: String,
    claims: BTreeMap<String, Bound>,
    served: BTreeMap<String, u64>,
}

impl Record {
    pub(super) fn of(object: ConfigMap) -> Record {
        let mut record = Record {
            version: object.metadata.resource_version.unwrap_or_default(),
            ..Record::default()
        };
        for (key, value) in object.data.unwrap_or_default() {
            if let Some(id) = key.strip_prefix(CLAIM) {
                record.claims.insert(id.to_owned(), Bound::read(&value));
            } else if let Some(config) = key.strip_prefix(SERVED)
                && let Ok(until) = value.parse()
            {
                record.served.insert(config.to_owned(), until);
            }
        }
        record
    }

    /// The node that joined by a claim.
    pub(super) fn by(&self, id: Id) -> Option<&String> {
        self.claims.get(&id.to_string()).map(|bound| &bound.node)
    }

    /// By its mark, the config that the machine of a node was served, where it has not
    /// registered again since.
    pub(super) fn booted(&self, node: &str, uid: &str) -> Option<&str> {
        self.claims.values().find_map(|bound| bound.served(node, uid))
    }

    /// Until when a config may be asked for that somebody was served.
    pub(super) fn until(&self, config: &str) -> Option<u64> {
        self.served.get(config).copied()
    }

    /// The configs that may be asked for now.
    pub(super) fn served(&self, now: u64) -> impl Iterator<Item = &String> {
        self.served.iter().filter(move |(_, until)| **until > now).map(|(config, _)| config)
    }

    /// The claims by these nodes, and what goes for them.
    fn bound(
        &self,
        new: &BTreeMap<Id, Bound>,
        is_there: impl Fn(&str) -> bool,
        now: u64,
    ) -> Map<String, Value> {
        let mut data = Map::new();
        if self.claims.len() + new.len() > MOST {
            let gone = self.claims.iter().filter(|(_, it)| !is_there(&it.node));
            data.extend(gone.map(|(id, _)| (format!("{CLAIM}{id}"), Value::Null)));
        }
        let ended = self.served.iter().filter(|(_, until)| **until <= now);
        data.extend(ended.map(|(config, _)| (format!("{SERVED}{config}"), Value::Null)));
        data.extend(new.iter().map(|(id, by)| (format!("{CLAIM}{id}"), by.to_string().into())));
        data
    }
}

/// Binds claims to nodes, onto the version that is known: nobody else bound them meanwhile. All
/// of them in one write.
pub(super) async fn bind(
    settings: &Settings,
    onto: Option<&Record>,
    new: &BTreeMap<Id, Bound>,
    is_there: impl Fn(&str) -> bool,
    now: u64,
) -> Result<Record, Failed> {
    match onto {
        None => make(settings, &Record::default().bound(new, is_there, now)).await,
        Some(record) => {
            let data = record.bound(new, is_there, now);
            let patch = json!({"metadata": {"resourceVersion": record.version}, "data": data});
            write(settings, patch).await
        }
    }
}

/// Notes until when a config may be asked for: whatever else is written meanwhile.
pub(super) async fn note_served(
    settings: &Settings,
    config: &str,
    until: u64,
) -> Result<(), Failed> {
    let data = Map::from_iter([(format!("{SERVED}{config}"), until.to_string().into())]);
    match write(settings, json!({"data": data})).await {
        Err(failed) if failed.outcome == CallOutcome::Gone => match make(settings, &data).await {
            // Somebody made it meanwhile.
            Err(failed) if failed.outcome == CallOutcome::Conflict => {
                write(settings, json!({"data": data})).await.map(drop)
            }
            made => made.map(drop),
        },
        written => written.map(drop),
    }
}

fn api(settings: &Settings) -> Api<ConfigMap> {
    Api::namespaced(settings.client.clone(), &settings.namespace)
}

async fn write(settings: &Settings, patch: Value) -> Result<Record, Failed> {
    let call = Call::new("patch", KIND).within(&settings.namespace);
    let (api, params, patch) = (api(settings), PatchParams::default(), Patch::Merge(patch));
    ask(&settings.metrics, call, api.patch(NAME, &params, &patch)).await.map(Record::of)
}

async fn make(settings: &Settings, data: &Map<String, Value>) -> Result<Record, Failed> {
    let call = Call::new("create", KIND).within(&settings.namespace);
    let object = json!({
        "metadata": {"name": NAME, "labels": {PART_OF_LABEL: TREAD}},
        "data": data,
    });
    let object: ConfigMap =
        serde_json::from_value(object).map_err(|error| call.clone().refused(error.to_string()))?;
    let (api, params) = (api(settings), PostParams::default());
    ask(&settings.metrics, call, api.create(&params, &object)).await.map(Record::of)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(data: Value) -> Record {
        let object = json!({"metadata": {"resourceVersion": "7"}, "data": data});
        Record::of(serde_json::from_value(object).unwrap())
    }

    #[test]
    fn what_is_written_is_read_and_what_is_none_is_passed_over() {
        let id = Id([1, 2, 3, 4, 5, 6, 7, 8]);
        let config = Mark::of_config("rendered-a");
        let new = BTreeMap::from([(id, Bound::new("node-1", "uid", config))]);
        let data = Record::default().bound(&new, |_| true, 0);
        let read = record(Value::Object(data));
        assert_eq!(read.by(id), Some(&"node-1".to_owned()));
        assert_eq!(read.booted("node-1", "uid"), Some(config.to_string().as_str()));
        assert_eq!(read.booted("node-1", "another"), None, "its machine may have another by now");
        assert_eq!(read.booted("node-2", "uid"), None);
        let by_hand = record(json!({"claim.0102030405060708": "node-1"}));
        assert_eq!((by_hand.by(id), by_hand.booted("node-1", "")), (read.by(id), None));
        let odd = json!({"served.a": "10", "served.b": "x", "other": "1", "claim.": "a"});
        let odd = record(odd);
        assert_eq!((odd.until("a"), odd.until("b")), (Some(10), None));
        assert_eq!(odd.served(9).collect::<Vec<_>>(), ["a"]);
        assert_eq!(odd.served(10).count(), 0);
    }

    #[test]
    fn only_what_is_over_goes_and_claims_only_where_there_are_too_many() {
        let id = |at: usize| Id((at as u64).to_be_bytes());
        let claims = |count: usize| {
            let one = |at: usize| (format!("claim.{}", id(at)), json!(format!("node-{at}")));
            let mut data: Map<String, Value> = (0..count).map(one).collect();
            data.insert("served.old".to_owned(), json!("10"));
            data.insert("served.new".to_owned(), json!("30"));
            record(Value::Object(data))
        };
        let new = BTreeMap::from([(id(MOST), Bound::new("new", "u", Mark::of_config("c")))]);
        let is_there = |node: &str| node != "node-3";
        let few = claims(MOST - 1).bound(&new, is_there, 20);
        let keys: Vec<&str> = few.keys().map(String::as_str).collect();
        assert_eq!(keys, [format!("claim.{}", id(MOST)).as_str(), "served.old"]);
        let many = claims(MOST).bound(&new, is_there, 20);
        assert_eq!(many.get(&format!("claim.{}", id(3))), Some(&Value::Null));
        assert_eq!(many.len(), 3);
    }
}
