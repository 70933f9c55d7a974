//! Copies that no status names: a leader that was killed after it wrote one, or
//! before it removed one, leaves it behind. Whoever leads next sweeps them away.

use super::Registry;
use super::entry::Copy;
use super::jobs::{Done, Hands};
use super::write::Write;
use crate::policies::kept;
use crate::policies::snapshot::Snapshot;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ApiResource, DynamicObject, ListParams, PartialObjectMeta, Preconditions};
use kube::{Api, ResourceExt as _};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;
use tread_kube::api::DisruptionPolicy;
use tread_kube::api::words::LAST_GOOD_LABEL;
use tread_kube::asking::{Call, Failed, ask};
use tread_kube::watching::seen::{Seen, each_by_itself};

/// What the leader before sent may arrive until then, a status that names a copy
/// for example: no request takes longer.
const SETTLES_AFTER: Duration = Duration::from_secs(30);

/// Before a list that failed is asked for again.
const AGAIN: Duration = Duration::from_secs(30);

/// How far the sweeping of a leader has come.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    /// When it begins; None: it does not lead, or has swept.
    begins: Option<Instant>,
    begun: bool,
    /// The copies to remove, as they were seen.
    copies: BTreeMap<String, Preconditions>,
}

/// What there is: each copy, whose it is, and as which it was seen; and what the
/// statuses name.
#[derive(Debug)]
pub(super) struct Leftovers {
    copies: Vec<Found>,
    named: BTreeSet<String>,
    /// The policies, by UID, that cannot be read: what they name is not known.
    unread: BTreeSet<String>,
}

/// A copy as it was seen.
#[derive(Debug)]
struct Found {
    place: String,
    /// The policy, by UID.
    of: Option<String>,
    as_seen: Preconditions,
}

impl Sweep {
    /// Whether this copy is about to go.
    pub(super) fn holds(&self, place: &str) -> bool {
        self.copies.contains_key(place)
    }

    /// Notes what was listed; None: it could not be.
    pub(super) fn found(&mut self, found: Option<Leftovers>) {
        match found {
            None => self.begins = Some(Instant::now() + AGAIN),
            Some(Leftovers { copies, named, unread }) => {
                let is_known = |it: &Found| it.of.as_ref().is_some_and(|uid| !unread.contains(uid));
                let left =
                    copies.into_iter().filter(|it| !named.contains(&it.place) && is_known(it));
                self.copies = left.map(|it| (it.place, it.as_seen)).collect();
            }
        }
    }

    /// Notes what is gone, or was written anew meanwhile, by [`Write::name`].
    pub(super) fn settled(&mut self, names: &[String]) {
        self.copies.retain(|place, _| !names.contains(&format!("copy {place}")));
    }
}

impl Registry {
    /// The copies to remove, once it leads for long enough.
    pub(super) fn sweep(&mut self, snapshot: &Snapshot) -> Vec<Write> {
        let now = Instant::now();
        if !self.swept.begun {
            self.swept =
                Sweep { begins: Some(now + SETTLES_AFTER), begun: true, ..Sweep::default() };
        }
        match self.swept.begins {
            Some(begins) if begins <= now => {
                self.swept.begins = None;
                self.jobs.spawn(self.hands.clone().leftovers());
            }
            Some(begins) => self.look_by(begins),
            None => {}
        }
        // What this replica wrote or is writing, or sees named by now, stays.
        let used = self.used(snapshot);
        self.swept.copies.retain(|place, _| !used.contains(place));
        let copies = self.swept.copies.iter();
        copies
            .map(|(place, as_seen)| Write::Sweep { place: place.clone(), as_seen: as_seen.clone() })
            .collect()
    }

    fn used(&self, snapshot: &Snapshot) -> BTreeSet<String> {
        if self.swept.copies.is_empty() {
            return BTreeSet::new();
        }
        let statuses = snapshot.policies.values().filter_map(|object| object.status.as_ref());
        let named = statuses.filter_map(|status| status.kept_in.clone());
        let own = self.entries.iter().flat_map(|(uid, entry)| {
            let written = match &entry.copy {
                Copy::Written { place, .. } => Some(place.clone()),
                _ => None,
            };
            let writing = entry.copying.as_ref().map(|running| kept::place(uid, &running.what));
            written.into_iter().chain(writing)
        });
        named.chain(own).collect()
    }
}

impl Hands {
    /// The copies that there are, and then what the statuses name: a copy is
    /// written before a status names it.
    async fn leftovers(self) -> Done {
        let found = self.listed().await.inspect_err(|failed| {
            tracing::warn!("copies that nobody needs are looked for later: {failed}");
        });
        Done::Swept(found.ok())
    }

    async fn listed(&self) -> Result<Leftovers, Failed> {
        let maps: Api<PartialObjectMeta<ConfigMap>> =
            Api::namespaced(self.client.clone(), &self.namespace);
        let maps = each_by_itself(maps);
        let (call, params) = (
            Call::new("list", "configmaps").within(&self.namespace),
            ListParams::default().labels(LAST_GOOD_LABEL),
        );
        let maps = ask(&self.metrics, call, maps.list(&params)).await?;
        let copies = maps.items.into_iter().filter_map(|seen| {
            let map = seen.read()?;
            let of = map.labels().get(LAST_GOOD_LABEL).cloned();
            let as_seen =
                Preconditions { uid: map.uid(), resource_version: map.resource_version() };
            Some(Found { place: map.name_any(), of, as_seen })
        });
        let copies = copies.collect();
        let kind = ApiResource::erase::<DisruptionPolicy>(&());
        let policies: Api<DynamicObject> = Api::all_with(self.client.clone(), &kind);
        let (mut named, mut unread) = (BTreeSet::new(), BTreeSet::new());
        let (policies, params) = (each_by_itself(policies), ListParams::default());
        let call = Call::new("list", "disruptionpolicies");
        for seen in ask(&self.metrics, call, policies.list(&params)).await?.items {
            match seen {
                Seen::Unreadable(metadata, _) => unread.extend(metadata.uid),
                Seen::Read(object) => {
                    let place = object.data.pointer("/status/keptIn").and_then(Value::as_str);
                    named.extend(place.map(str::to_owned));
                }
            }
        }
        Ok(Leftovers { copies, named, unread })
    }
}
