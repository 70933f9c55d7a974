//! Which claim is which node's, for good, and until when which config may still be asked
//! for: a ConfigMap in tread's namespace, each by a key of its own.

use super::bound::{Bound, Stands};
use super::room::{CLAIM, Room, room, takes};
use crate::settings::Settings;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tread_kube::api::words::{NAME as TREAD, PART_OF_LABEL};
use tread_kube::asking::{Call, CallOutcome, Failed, ask};
use tread_model::joining::{Id, Mark};

/// What the ConfigMap is called.
pub(super) const NAME: &str = "tread-joining";
const KIND: &str = "configmaps";
/// Before a config's name; the value is a time, in seconds since 1970.
const SERVED: &str = "served.";
/// Before the id of a claim that was served; the value says whom it was served, and when.
const FETCHED: &str = "fetched.";
/// As many are noted at a time: one is 100 bytes.
const MOST_FETCHED: usize = 1000;
/// As many of a pool from one address, behind which many machines may be.
const MOST_OF_ADDRESS: usize = 100;

/// Until when a config may be asked for that somebody was served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Until {
    /// In seconds since 1970.
    pub(super) at: u64,
    /// Whether machines have to be brought what Ignition cannot, before they join.
    pub(super) needs_agent: bool,
}

/// Behind the time.
const NEEDS_AGENT: &str = " agent";

impl Until {
    fn read(text: &str) -> Option<Until> {
        let at = text.strip_suffix(NEEDS_AGENT);
        let needs_agent = at.is_some();
        Some(Until { at: at.unwrap_or(text).parse().ok()?, needs_agent })
    }
}

impl std::fmt::Display for Until {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.at, if self.needs_agent { NEEDS_AGENT } else { "" })
    }
}

/// That a machine was served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fetched {
    /// Of which pool: its mark.
    pub(super) pool: String,
    /// From where it asked.
    pub(super) from: String,
    /// When, in seconds since 1970.
    pub(super) at: u64,
}

impl Fetched {
    fn read(text: &str) -> Option<Fetched> {
        let mut words = text.split(' ').map(str::to_owned);
        let (pool, from) = (words.next()?, words.next()?);
        Some(Fetched { pool, from, at: words.next()?.parse().ok()? })
    }
}

impl std::fmt::Display for Fetched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.pool, self.from, self.at)
    }
}

/// What is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Record {
    version: String,
    claims: BTreeMap<String, Bound>,
    served: BTreeMap<String, Until>,
    fetched: BTreeMap<String, Fetched>,
}

/// What was served of a pool: by address, each with its time and claim.
type OfPool<'r> = BTreeMap<&'r str, Vec<(u64, &'r String)>>;

impl Record {
    pub(super) fn of(object: ConfigMap) -> Record {
        let mut record = Record {
            version: object.metadata.resource_version.unwrap_or_default(),
            ..Record::default()
        };
        for (key, value) in object.data.unwrap_or_default() {
            if let Some(id) = key.strip_prefix(CLAIM) {
                record.claims.insert(id.to_owned(), Bound::read(&value));
            } else if let Some(id) = key.strip_prefix(FETCHED) {
                record.fetched.extend(Fetched::read(&value).map(|it| (id.to_owned(), it)));
            } else if let Some(config) = key.strip_prefix(SERVED) {
                record.served.extend(Until::read(&value).map(|until| (config.to_owned(), until)));
            }
        }
        record
    }

    /// Changes with every write.
    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// The node whose claim this is.
    pub(super) fn by(&self, id: Id) -> Option<&String> {
        self.bound_by(id).map(|bound| &bound.node)
    }

    /// Who has a claim.
    pub(super) fn bound_by(&self, id: Id) -> Option<&Bound> {
        self.claims.get(&id.to_string())
    }

    /// A claim of a node that was held when it was written.
    pub(super) fn held(&self, id: Id) -> Option<&Bound> {
        self.bound_by(id).filter(|bound| bound.is_held)
    }

    /// Whether a claim was bound to the node with this UID, which has not registered again since.
    pub(super) fn is_first(&self, id: Id, uid: &str) -> bool {
        self.bound_by(id).is_some_and(|bound| bound.is_first(uid))
    }

    /// By its mark, the config that the machine of a node was served, where it has not
    /// registered again since.
    pub(super) fn booted(&self, node: &str, uid: &str) -> Option<Mark> {
        self.claims.values().find_map(|bound| bound.served(node, uid))
    }

    /// Whether nodes are in this pool that have claims.
    pub(super) fn has_members(&self, pool: Mark) -> bool {
        self.claims.values().any(|it| it.pool == Some(pool) && it.gone.is_none() && !it.is_held)
    }

    /// What is to be noted of nodes that have claims, by where each of them is now: of those that are
    /// in another pool than was noted, and of all.
    pub(super) fn notes(
        &self,
        stands: impl Fn(&str) -> Stands,
        now: u64,
    ) -> [Map<String, Value>; 2] {
        let (mut moved, mut all) = (Map::new(), Map::new());
        for (id, bound) in &self.claims {
            let next = bound.standing(stands(&bound.node), now);
            if next == *bound {
                continue;
            }
            let (key, value) = (format!("{CLAIM}{id}"), Value::from(next.to_string()));
            if next.pool != bound.pool {
                moved.insert(key.clone(), value.clone());
            }
            all.insert(key, value);
        }
        [moved, all]
    }

    /// Until when a config may be asked for that somebody was served.
    pub(super) fn until(&self, config: &str) -> Option<Until> {
        self.served.get(config).copied()
    }

    /// The config with this mark, where machines have to be brought what Ignition cannot.
    pub(super) fn needs_agent(&self, mark: Mark) -> Option<&String> {
        let needs = self.served.iter().filter(|(_, until)| until.needs_agent);
        needs.map(|(config, _)| config).find(|config| Mark::of_config(config) == mark)
    }

    /// The configs that may be asked for now, and those that the agent of a node that waits for it
    /// has yet to bring.
    pub(super) fn served(
        &self,
        now: u64,
        joins: impl Fn(&str) -> bool,
    ) -> impl Iterator<Item = &String> {
        let waiting = self.brought_to(joins);
        let is_wanted = move |config: &str, until: &Until| {
            until.at > now || until.needs_agent && waiting.contains(&Mark::of_config(config))
        };
        self.served.iter().filter(move |(config, until)| is_wanted(config, until)).map(|it| it.0)
    }

    /// What the machines of these nodes were served, by its mark.
    fn brought_to(&self, which: impl Fn(&str) -> bool) -> BTreeSet<Mark> {
        let bound = self.claims.values().filter(|it| which(&it.node));
        bound.filter_map(Bound::config).collect()
    }

    /// What machines were served, by the id of their claim.
    pub(super) fn fetched(&self) -> impl Iterator<Item = (&String, &Fetched)> {
        self.fetched.iter()
    }

    /// Machines that were served longer ago than this, and of which no node registered; and in
    /// how many seconds another one will be missing. `shown` are claims that nodes have shown.
    pub(super) fn missing(
        &self,
        now: u64,
        patience: u64,
        shown: &BTreeSet<String>,
    ) -> (Vec<(&String, &Fetched)>, Option<u64>) {
        let came: BTreeSet<&String> = self.came(shown).collect();
        let open = self.fetched.iter().filter(|(id, _)| !came.contains(*id));
        let (missing, later): (Vec<_>, Vec<_>) =
            open.partition(|(_, it)| it.at.saturating_add(patience) <= now);
        let next = later.iter().map(|(_, it)| it.at.saturating_add(patience) - now).min();
        (missing, next)
    }

    /// The machines that need not be noted any more: a node registered with this claim, or with a
    /// later one from the same address. A node that shows a claim has registered, whatever becomes
    /// of it.
    pub(super) fn came(&self, shown: &BTreeSet<String>) -> impl Iterator<Item = &String> {
        let by = |id: &String| self.claims.contains_key(id) || shown.contains(id);
        let mut by_address: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for (_, it) in self.fetched.iter().filter(|(id, _)| by(id)) {
            let at = by_address.entry((&it.pool, &it.from)).or_default();
            *at = it.at.max(*at);
        }
        let came = move |it: &Fetched| {
            by_address.get(&(it.pool.as_str(), it.from.as_str())).is_some_and(|at| it.at <= *at)
        };
        self.fetched.iter().filter(move |(_, it)| came(it)).map(|(id, _)| id)
    }

    /// What is written to note that machines were served. If there are too many of an address, its
    /// oldest go; if there are too many in all, the oldest of the address that has most, in the
    /// pool that has most.
    fn noting(&self, new: &[(String, Fetched)]) -> Map<String, Value> {
        let mut pools: BTreeMap<&str, OfPool<'_>> = BTreeMap::new();
        let new: BTreeMap<&String, &Fetched> = new.iter().map(|(id, it)| (id, it)).collect();
        let known = self.fetched.iter().filter(|(id, _)| !new.contains_key(id));
        let mut count = 0;
        for (id, it) in known.chain(new.iter().map(|(id, it)| (*id, *it))) {
            let of_pool = pools.entry(&it.pool).or_default();
            of_pool.entry(&it.from).or_default().push((it.at, id));
            count += 1;
        }
        let mut gone = BTreeSet::new();
        for of_address in pools.values_mut().flat_map(BTreeMap::values_mut) {
            // The oldest last.
            of_address.sort_by(|a, b| b.cmp(a));
            let from = MOST_OF_ADDRESS.min(of_address.len());
            gone.extend(of_address.drain(from..).map(|(_, id)| id));
        }
        while count > MOST_FETCHED + gone.len() {
            let size = |of_pool: &OfPool<'_>| of_pool.values().map(Vec::len).sum::<usize>();
            let most = pools.values_mut().max_by_key(|of_pool| size(of_pool));
            let most =
                most.and_then(|it| it.values_mut().max_by_key(|of_address| of_address.len()));
            let Some((_, oldest)) = most.and_then(Vec::pop) else { break };
            gone.insert(oldest);
        }
        let known_gone = gone.iter().filter(|id| self.fetched.contains_key(**id));
        let known_gone = known_gone.map(|id| (format!("{FETCHED}{id}"), Value::Null));
        let noted = new.iter().filter(|(id, _)| !gone.contains(**id));
        let noted = noted.map(|(id, it)| (format!("{FETCHED}{id}"), it.to_string().into()));
        noted.chain(known_gone).collect()
    }

    /// What there is room for beside the claims that are bound, and which of these go for that.
    pub(super) fn room(
        &self,
        new: &BTreeMap<Id, Bound>,
        is_there: impl Fn(&str) -> bool,
        (now, lasts): (u64, u64),
    ) -> Room<'_> {
        let new = new.iter().map(|(id, it)| takes(&id.to_string(), it)).sum();
        room(&self.claims, new, is_there, (now, lasts))
    }

    /// The claims by these nodes, what goes for them, and what needs not be noted any more once they
    /// have their claims.
    fn bound(
        &self,
        new: &BTreeMap<Id, Bound>,
        goes: &BTreeSet<&String>,
        is_there: impl Fn(&str) -> bool,
        now: u64,
    ) -> Map<String, Value> {
        let gone = goes.iter().map(|id| (format!("{CLAIM}{id}"), Value::Null));
        let mut data: Map<String, Value> = gone.collect();
        // A node may wait for its agent for longer than its claim was good for.
        let waiting = self.brought_to(is_there);
        let ended = self.served.iter().filter(|(config, until)| {
            let waits = until.needs_agent && waiting.contains(&Mark::of_config(config));
            until.at <= now && !waits
        });
        data.extend(ended.map(|(config, _)| (format!("{SERVED}{config}"), Value::Null)));
        let shown = new.keys().map(Id::to_string).collect();
        data.extend(self.came(&shown).map(|id| (format!("{FETCHED}{id}"), Value::Null)));
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
    times: (u64, u64),
) -> Result<Record, Failed> {
    match onto {
        None => {
            make(settings, &Record::default().bound(new, &BTreeSet::new(), is_there, times.0)).await
        }
        Some(record) => {
            let goes = record.room(new, &is_there, times).goes;
            note(settings, record, record.bound(new, &goes, is_there, times.0)).await
        }
    }
}

/// Writes this onto the version that is known.
pub(super) async fn note(
    settings: &Settings,
    onto: &Record,
    data: Map<String, Value>,
) -> Result<Record, Failed> {
    write(settings, Some(&onto.version), &data).await
}

/// Notes until when a config may be asked for: whatever else is written meanwhile.
pub(super) async fn note_served(
    settings: &Settings,
    config: &str,
    until: Until,
) -> Result<(), Failed> {
    put(settings, Map::from_iter([(format!("{SERVED}{config}"), until.to_string().into())])).await
}

/// Notes what machines were served, as far as there is room.
pub(super) async fn note_fetched(
    settings: &Settings,
    known: Option<&Record>,
    new: &[(String, Fetched)],
) -> Result<(), Failed> {
    let data = known.unwrap_or(&Record::default()).noting(new);
    if data.is_empty() { Ok(()) } else { put(settings, data).await }
}

/// Forgets what machines were served.
pub(super) async fn forget_fetched(
    settings: &Settings,
    all: &BTreeSet<&String>,
) -> Result<(), Failed> {
    let data = all.iter().map(|id| (format!("{FETCHED}{id}"), Value::Null)).collect();
    put(settings, data).await
}

/// Writes these, whatever else is written meanwhile.
async fn put(settings: &Settings, data: Map<String, Value>) -> Result<(), Failed> {
    match write(settings, None, &data).await {
        Err(failed) if failed.outcome == CallOutcome::Gone => match make(settings, &data).await {
            // Somebody made it meanwhile.
            Err(failed) if failed.outcome == CallOutcome::Conflict => {
                write(settings, None, &data).await.map(drop)
            }
            made => made.map(drop),
        },
        written => written.map(drop),
    }
}

fn api(settings: &Settings) -> Api<ConfigMap> {
    Api::namespaced(settings.client.clone(), &settings.namespace)
}

/// Onto this version, where one is known. Who wrote which key is not kept: for thousands of keys that
/// takes the API server a third of a write's time.
async fn write(
    settings: &Settings,
    onto: Option<&str>,
    data: &Map<String, Value>,
) -> Result<Record, Failed> {
    let mut metadata = json!({"managedFields": [{}]});
    if let (Some(onto), Some(metadata)) = (onto, metadata.as_object_mut()) {
        metadata.insert("resourceVersion".to_owned(), onto.into());
    }
    let patch = json!({"metadata": metadata, "data": data});
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
        let (config, pool) = (Mark::of_config("rendered-a"), Mark::of_pool("p"));
        let new = BTreeMap::from([(id, Bound::new("node-1", "uid", config, pool))]);
        let bind = |new| Record::default().bound(new, &BTreeSet::new(), |_| true, 0);
        let data = bind(&new);
        let read = record(Value::Object(data));
        assert_eq!(read.by(id), Some(&"node-1".to_owned()));
        assert_eq!(read.booted("node-1", "uid"), Some(config));
        assert_eq!(read.booted("node-1", "another"), None, "its machine may have another by now");
        assert_eq!(read.booted("node-2", "uid"), None);
        assert!(read.is_first(id, "uid") && !read.is_first(id, "another"));
        assert!(!read.is_first(Id([0; 8]), "uid"));
        let held = Bound::new("node-1", "uid", config, pool).held(true);
        let data = bind(&BTreeMap::from([(id, held.clone())]));
        let held_one = record(Value::Object(data));
        assert_eq!((held_one.by(id), held_one.held(id)), (read.by(id), Some(&held)));
        assert!(held_one.is_first(id, "uid"));
        assert_eq!(held_one.booted("node-1", "uid"), None, "a held node gets no config");
        assert_eq!(read.held(id), None);
        let by_hand = record(json!({"claim.0102030405060708": "node-1"}));
        assert_eq!((by_hand.by(id), by_hand.booted("node-1", "")), (read.by(id), None));
        assert!(!by_hand.is_first(id, ""));
        let odd = json!({"served.a": "10", "served.b": "x", "other": "1", "claim.": "a"});
        let odd = record(odd);
        let ten = Until { at: 10, needs_agent: false };
        assert_eq!((odd.until("a"), odd.until("b")), (Some(ten), None));
        let needs = Until { needs_agent: true, ..ten };
        let needing = record(json!({"served.rendered-a": needs.to_string()}));
        assert_eq!(needing.until("rendered-a"), Some(needs));
        assert_eq!(needing.needs_agent(config), Some(&"rendered-a".to_owned()));
        assert_eq!(odd.needs_agent(Mark::of_config("a")), None);
        assert_eq!(odd.served(9, |_| false).collect::<Vec<_>>(), ["a"]);
        assert_eq!(odd.served(10, |_| false).count(), 0);
    }

    #[test]
    fn a_machine_is_missing_until_its_node_registers_or_that_of_its_next_try() {
        let (first, second, other) = (Id([1; 8]), Id([2; 8]), Id([3; 8]));
        let fetched = |from: &str, at: u64| format!("pool {from} {at}");
        let data = json!({
            format!("fetched.{first}"): fetched("192.0.2.1", 100),
            format!("fetched.{second}"): fetched("192.0.2.1", 200),
            format!("fetched.{other}"): fetched("192.0.2.2", 150),
            "fetched.odd": "x", "fetched.older": "pool 192.0.2.1 y",
        });
        let read = record(data);
        let missing = |now: u64, held: &[Id]| {
            let held = held.iter().map(ToString::to_string).collect();
            let (missing, next) = read.missing(now, 30, &held);
            (missing.into_iter().map(|(id, _)| id.clone()).collect::<Vec<_>>(), next)
        };
        assert_eq!(missing(120, &[]), (vec![], Some(10)));
        assert_eq!(missing(130, &[]), (vec![first.to_string()], Some(50)));
        assert_eq!(missing(130, &[first]), (vec![], Some(50)));
        assert_eq!(missing(999, &[]).0.len(), 3);
        let none = BTreeSet::new();
        assert_eq!(read.came(&none).count(), 0);
        // A node that is held has registered: also once somebody else lets it in.
        assert_eq!(missing(999, &[second]).0, [other.to_string()]);
        let shown = BTreeSet::from([second.to_string()]);
        assert_eq!(read.came(&shown).count(), 2);
        let by = Bound::new("node-1", "u", Mark::of_config("c"), Mark::of_pool("p"));
        let binding = BTreeMap::from([(second, by.clone())]);
        let binds = read.bound(&binding, &BTreeSet::new(), |_| true, 0);
        let forgets: Vec<_> = binds.iter().filter(|(_, value)| value.is_null()).collect();
        let both = [first, second].map(|id| format!("fetched.{id}"));
        assert!(forgets.iter().map(|(key, _)| *key).eq(&both), "whoever is bound came: {binds:?}");
        let mut bound = read.clone();
        bound.claims.insert(second.to_string(), by);
        assert_eq!(
            bound.came(&none).collect::<Vec<_>>(),
            [&first.to_string(), &second.to_string()]
        );
        let (left, _) = bound.missing(999, 30, &none);
        assert_eq!(left.into_iter().map(|(id, _)| id).collect::<Vec<_>>(), [&other.to_string()]);
    }

    #[test]
    fn whoever_asks_again_and_again_takes_no_room_of_other_addresses_and_pools() {
        let fetched = |pool: &str, from: &str, at: usize| Fetched {
            pool: pool.to_owned(),
            from: from.to_owned(),
            at: at as u64,
        };
        let mut read = Record::default();
        let note = |read: &mut Record, new: &[(String, Fetched)]| {
            let data = read.noting(new);
            for (key, value) in data {
                let id = key.strip_prefix(FETCHED).unwrap().to_owned();
                match value.as_str().and_then(Fetched::read) {
                    Some(it) => drop(read.fetched.insert(id, it)),
                    None => assert!(read.fetched.remove(&id).is_some(), "only what is there goes"),
                }
            }
        };
        let of = |read: &Record, pool: &str, from: &str| {
            read.fetched.values().filter(|it| it.pool == pool && it.from == from).count()
        };
        let good = [("good".to_owned(), fetched("infra", "192.0.2.1", 1))];
        note(&mut read, &good);
        let beside = [("beside".to_owned(), fetched("worker", "192.0.2.2", 2))];
        note(&mut read, &beside);
        // One address, by several writes: the newest of it stay.
        for times in 0..3 {
            let all: Vec<_> = (0..1000)
                .map(|at| {
                    (
                        format!("{times}-{at}"),
                        fetched("worker", "192.0.2.9", 10 + times * 1000 + at),
                    )
                })
                .collect();
            note(&mut read, &all);
        }
        assert_eq!(of(&read, "worker", "192.0.2.9"), MOST_OF_ADDRESS);
        let oldest =
            read.fetched.values().filter(|it| it.from == "192.0.2.9").map(|it| it.at).min();
        assert_eq!(oldest, Some(3010 - MOST_OF_ADDRESS as u64));
        // Many addresses of one pool, and then of another one.
        for pool in ["worker", "edge"] {
            let all: Vec<_> = (0..3 * MOST_FETCHED)
                .map(|at| {
                    (format!("{pool}-{at}"), fetched(pool, &format!("{pool}.{}", at / 2), at))
                })
                .collect();
            for some in all.chunks(1000) {
                note(&mut read, some);
                assert!(read.fetched.len() <= MOST_FETCHED);
            }
        }
        assert_eq!(read.fetched.len(), MOST_FETCHED);
        assert_eq!(of(&read, "infra", "192.0.2.1"), 1);
        let of_pool = |pool: &str| read.fetched.values().filter(|it| it.pool == pool).count();
        assert!(of_pool("worker").abs_diff(of_pool("edge")) <= 1, "they share it");
    }

    #[test]
    fn only_what_is_over_goes_and_claims_that_make_room() {
        let id = |at: u64| Id(at.to_be_bytes());
        let one = |at: u64| (format!("claim.{}", id(at)), json!(format!("node-{at}")));
        let mut data: Map<String, Value> = (0..4).map(one).collect();
        data.insert("served.old".to_owned(), json!("10"));
        data.insert("served.new".to_owned(), json!("30"));
        let read = record(Value::Object(data));
        let bound = Bound::new("new", "u", Mark::of_config("c"), Mark::of_pool("p"));
        let new = BTreeMap::from([(id(9), bound)]);
        let third = id(3).to_string();
        for goes in [vec![], vec![&third]] {
            let goes: BTreeSet<&String> = goes.into_iter().collect();
            let data = read.bound(&new, &goes, |_| true, 20);
            let mut expected = vec![format!("claim.{}", id(9)), "served.old".to_owned()];
            expected.extend(goes.iter().map(|id| format!("claim.{id}")));
            expected.sort();
            assert_eq!(data.keys().cloned().collect::<Vec<_>>(), expected);
            assert!(goes.iter().all(|id| data[&format!("claim.{id}")] == Value::Null));
        }
    }

    #[test]
    fn where_nodes_are_is_noted_of_those_that_have_claims_and_at_once_of_those_that_were_moved() {
        let [first, second] = ["1", "2"].map(Mark::of_pool);
        let bound = |node: &str| Bound::new(node, "u", Mark::of_config("c"), first);
        let keys = ["stays", "moved", "gone", "back", "held"];
        let back = bound("back").standing(Stands::Gone, 3);
        let of =
            |node: &str| if node == "back" { back.to_string() } else { bound(node).to_string() };
        let mut data: Map<String, Value> =
            keys.iter().map(|it| (format!("claim.{it}"), of(it).into())).collect();
        // Of a version that noted no pool.
        data.insert("claim.former".to_owned(), "former u 0123456789abcdef".into());
        let stands = |node: &str| match node {
            "moved" => Stands::In(second),
            "gone" => Stands::Gone,
            "held" => Stands::Outside,
            _ => Stands::In(first),
        };
        let [moved, all] = record(Value::Object(data.clone())).notes(stands, 7);
        let names = |all: &Map<String, Value>| all.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&moved), ["claim.former", "claim.moved"]);
        assert_eq!(names(&all), ["claim.back", "claim.former", "claim.gone", "claim.moved"]);
        data.extend(all);
        let after = record(Value::Object(data));
        assert_eq!(after.notes(stands, 9), [Map::new(), Map::new()], "it is noted once");
        assert_eq!(after.claims["moved"].pool, Some(second));
        assert!(after.has_members(first) && after.has_members(second));
        assert!(!after.has_members(Mark::of_pool("3")));
        assert_eq!(after.claims["gone"].gone, Some(7));
        assert_eq!(after.claims["former"].pool, Some(first));
    }

    #[test]
    fn a_config_that_only_an_agent_can_bring_is_kept_for_nodes_that_wait_for_theirs() {
        let needs = Until { at: 10, needs_agent: true };
        let ends = Until { at: 10, needs_agent: false };
        let bound = |config: &str| {
            Bound::new("slow", "u", Mark::of_config(config), Mark::of_pool("p")).to_string()
        };
        let of = |config: &str, until: Until| {
            let key = format!("served.{config}");
            record(json!({key: until.to_string(), "claim.0000000000000001": bound(config)}))
        };
        for (record, waits, is_kept) in [
            (of("image", needs), true, true),
            (of("image", needs), false, false),
            (of("files", ends), true, false),
        ] {
            let is_it = |node: &str| waits && node == "slow";
            assert_eq!(record.served(20, is_it).count() == 1, is_kept, "{record:?} {waits}");
            let gone = record.bound(&BTreeMap::new(), &BTreeSet::new(), is_it, 20);
            assert_eq!(gone.is_empty(), is_kept, "{record:?} {waits}");
        }
    }
}
