//! What goes on in the background: fetching, loading, keeping copies.

use super::entry::{NotCopied, may_pass};
use super::hopeless::Hopeless;
use super::last_good::{Good, NotRestored, Sought};
use super::origin::{Origin, Recipe};
use super::sweep::{Found, Leftovers};
use super::turns::{Turn, Turns};
use crate::policies::choose::{Attempt, Version};
use crate::policies::kept;
use crate::policies::load::{Body, Job, Loaded, Loader, Terms};
use crate::policies::material::material;
use crate::policies::snapshot::Place;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::jiff::Timestamp;
use kube::api::{
    ApiResource, DynamicObject, ListParams, PartialObjectMeta, Patch, PatchParams, Preconditions,
};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tread_engine::sandbox::Module;
use tread_kube::api::DisruptionPolicy;
use tread_kube::api::words::{KEY_ANNOTATION, LAST_GOOD_LABEL, MANAGER};
use tread_kube::asking::{Backoff, Call, Failed, ask};
use tread_kube::leadership::Leading;
use tread_kube::metrics::Metrics;
use tread_kube::watching::Watches;
use tread_kube::watching::parsed::{Parsed, each_by_itself};
use tread_model::digest::Sha256;
use tread_model::verdict::{Failure, FailureKind};

/// Before the API server is asked again: at first, and at most.
const WAITS: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));

const MAPS: &str = "configmaps";

/// What a job found.
#[derive(Debug)]
pub(super) enum Done {
    /// A version was loaded, or not.
    Loaded { uid: String, recipe: Box<Recipe>, loaded: Box<Loaded> },
    /// A last good version was loaded from its copy, or not.
    Restored { uid: String, sought: Sought, good: Result<Box<Good>, NotRestored> },
    /// A copy was written, under this name and seen as this, or not.
    Copied { uid: String, version: Box<Version>, place: Result<(String, Preconditions), NotCopied> },
    /// The copies that there are, and those that are named, were listed, or not.
    Swept(Option<Leftovers>),
}

/// What jobs work with. Clones share everything.
#[derive(Clone)]
pub(super) struct Hands {
    pub(super) client: Client,
    pub(super) namespace: String,
    pub(super) loader: Arc<Loader>,
    /// Whose turn it is to be fetched and compiled.
    pub(super) turns: Turns,
    /// What is not compiled again soon.
    pub(super) hopeless: Hopeless,
    pub(super) metrics: Metrics,
    /// Where it is noted what is being read.
    pub(super) watches: Watches,
    pub(super) leads: Leading,
}

impl Hands {
    /// Fetches and loads a version.
    #[tracing::instrument(name = "load", skip_all, fields(policy = object))]
    pub(super) async fn load(
        self,
        uid: String,
        object: String,
        recipe: Recipe,
        module: Option<Module>,
        takes_long: bool,
    ) -> Done {
        let job = |body| Job {
            object,
            body,
            settings: recipe.settings.clone(),
            pin: recipe.pin.clone(),
            terms: recipe.terms.clone(),
            loaded: module,
        };
        let loaded = match &recipe.origin {
            Origin::Here(body) => {
                let turn = self.turns.take(None, false).await;
                self.blocking(job(body.clone()), turn).await
            }
            Origin::Nothing(failure) => Loaded::bad(failure.clone()),
            Origin::ConfigMap { place, key, .. } => {
                let (map, turn) = self.fetched_in_turn(place, takes_long).await;
                match material(&map, key.as_deref()) {
                    Ok(found) => self.compiled(job(Body::Module(found)), turn).await,
                    Err(unusable) => self.loader.unusable(unusable),
                }
            }
        };
        Done::Loaded { uid, recipe: Box::new(recipe), loaded: Box::new(loaded) }
    }

    /// Fetches the ConfigMap when it is its namespace's turn: so only as many modules are in memory
    /// as are compiled at the same time. Without an answer the turn is given back before the next
    /// try.
    async fn fetched_in_turn(&self, place: &Place, takes_long: bool) -> (ConfigMap, Turn) {
        let (namespace, name) = place;
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
        let reading = self.watches.reading(format!("configmaps {namespace}/{name}"));
        let mut backoff = Backoff::new(WAITS);
        loop {
            let turn = self.turns.take(Some(namespace), takes_long).await;
            match self.asked(&maps, namespace, name).await {
                Ok(Some(map)) => return (map, turn),
                // When it is gone the watch says so, and this job ends.
                Ok(None) => {}
                Err(failed) => reading.failed(failed),
            }
            drop(turn);
            backoff.wait().await;
        }
    }

    /// Loads a module, unless its bytes failed to compile a short while ago.
    async fn compiled(&self, job: Job, turn: Turn) -> Loaded {
        let Body::Module(found) = &job.body else { return self.blocking(job, turn).await };
        let digest = Sha256::of(&found.component);
        if let Some((failure, retry)) = self.hopeless.why(&digest, Timestamp::now()) {
            let loaded = self.loader.not_tried(&found.component, digest, failure);
            return Loaded { retry: Some(retry), ..loaded };
        }
        let loaded = self.blocking(job, turn).await;
        let failure = match &loaded.attempt {
            Attempt::Bad { failure, .. } => Some(failure),
            Attempt::Good(_) => None,
        };
        let retry = self.hopeless.note(digest, failure, Timestamp::now());
        Loaded { retry, ..loaded }
    }

    /// Loads a last good version from its copy.
    #[tracing::instrument(name = "restore", skip_all, fields(policy = object))]
    pub(super) async fn restore(
        self,
        uid: String,
        object: String,
        namespace: Option<String>,
        sought: Sought,
    ) -> Done {
        let good = self.restored(object, namespace.as_deref(), &sought).await.map(Box::new);
        match &good {
            Ok(_) => {}
            Err(NotRestored::Lost) => {
                tracing::warn!(place = sought.place, "this last good version is lost");
            }
            Err(NotRestored::NotNow(why)) => {
                let (place, why) = (&sought.place, &why.message);
                tracing::warn!(place, "this last good version is tried again: {why}");
            }
        }
        Done::Restored { uid, sought, good }
    }

    async fn restored(
        &self,
        object: String,
        namespace: Option<&str>,
        sought: &Sought,
    ) -> Result<Good, NotRestored> {
        let map = self.fetch(&self.namespace, &sought.place).await.ok_or(NotRestored::Lost)?;
        let body = kept::read(&map).ok_or(NotRestored::Lost)?;
        // Nothing else is even compiled.
        let pin = matches!(body, Body::Module(_)).then(|| sought.digest.clone());
        // The settings of then, not those that came with the bad version.
        let (settings, terms) = (Map::new(), sought.terms.clone());
        let job = Job { object, body, settings, pin, terms, loaded: None };
        let turn = self.turns.take(namespace, false).await;
        let Loaded { attempt, policy, module, .. } = self.blocking(job, turn).await;
        let (version, policy) = match (attempt, policy) {
            (Attempt::Good(version), Some(policy)) => (version, policy),
            (Attempt::Bad { failure, .. }, _) if may_pass(&failure) => {
                return Err(NotRestored::NotNow(failure));
            }
            _ => return Err(NotRestored::Lost),
        };
        let terms: Terms = sought.terms.clone();
        let good = Good { version, policy, module, terms };
        if sought.is(&good) { Ok(good) } else { Err(NotRestored::Lost) }
    }

    /// Writes a copy of a version that is good.
    #[tracing::instrument(name = "keep", skip_all, fields(policy = object.metadata.name))]
    pub(super) async fn copy(
        self,
        object: Arc<DisruptionPolicy>,
        origin: Origin,
        version: Version,
        settings: String,
    ) -> Done {
        let uid = object.uid().unwrap_or_default();
        let place = self.copied(&object, origin, &version, &settings).await;
        Done::Copied { uid, version: Box::new(version), place }
    }

    async fn copied(
        &self,
        object: &DisruptionPolicy,
        origin: Origin,
        version: &Version,
        settings: &str,
    ) -> Result<(String, Preconditions), NotCopied> {
        let body = match origin {
            Origin::Here(body) => body,
            Origin::Nothing(_) => return Err(NotCopied::Moved),
            Origin::ConfigMap { place: (namespace, name), key, .. } => {
                let map = self.fetch(&namespace, &name).await.ok_or(NotCopied::Moved)?;
                let key = key.or_else(|| map.annotations().get(KEY_ANNOTATION).cloned());
                let found = material(&map, key.as_deref()).map_err(|_| NotCopied::Moved)?;
                if Sha256::of(&found.component) != version.digest {
                    return Err(NotCopied::Moved);
                }
                Body::Module(found)
            }
        };
        let copy = kept::config_map(object, &self.namespace, version, body, settings);
        let copy = copy.ok_or(NotCopied::Refused)?;
        if !self.leads.now() {
            // Fetching may have taken its time. Whoever leads now copies it.
            return Err(NotCopied::Moved);
        }
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), &self.namespace);
        let place = copy.name_any();
        let (params, patch) = (PatchParams::apply(MANAGER).force(), Patch::Apply(&copy));
        let call = Call::new("patch", MAPS).within(&self.namespace);
        let written = ask(&self.metrics, call, maps.patch(&place, &params, &patch)).await;
        match written {
            Ok(map) => {
                let (uid, resource_version) = (map.uid(), map.resource_version());
                Ok((place, Preconditions { uid, resource_version }))
            }
            Err(failed) => {
                let policy = object.name_any();
                tracing::warn!(policy, "it cannot be kept in {place}: {failed}");
                Err(NotCopied::Refused)
            }
        }
    }

    /// The ConfigMap, or None if there is none; asked for until there is an answer.
    async fn fetch(&self, namespace: &str, name: &str) -> Option<ConfigMap> {
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
        let reading = self.watches.reading(format!("configmaps {namespace}/{name}"));
        let mut backoff = Backoff::new(WAITS);
        loop {
            match self.asked(&maps, namespace, name).await {
                Ok(found) => return found,
                Err(failed) => reading.failed(failed),
            }
            backoff.wait().await;
        }
    }

    /// Asks for it once; None: there is none.
    async fn asked(
        &self,
        maps: &Api<ConfigMap>,
        namespace: &str,
        name: &str,
    ) -> Result<Option<ConfigMap>, Failed> {
        let maps = each_by_itself(maps.clone());
        let call = Call::new("get", MAPS).within(namespace);
        let failed = match ask(&self.metrics, call.clone(), maps.get_opt(name)).await {
            Ok(None) => return Ok(None),
            Ok(Some(Parsed::Read(found))) => return Ok(Some(found)),
            Ok(Some(Parsed::Unreadable(_, why))) => call.refused(why),
            Err(failed) => failed,
        };
        tracing::warn!("the ConfigMap {namespace}/{name} cannot be read: {failed}");
        Err(failed)
    }

    async fn blocking(&self, job: Job, turn: Turn) -> Loaded {
        let no_room = |message: String| Loaded::bad(Failure { kind: FailureKind::NoRoom, message });
        let loader = Arc::clone(&self.loader);
        // Its turn lasts for as long as it does, also if nobody waits for it any more.
        let work = tokio::task::spawn_blocking(move || {
            let loaded = loader.load(job);
            drop(turn);
            loaded
        });
        work.await.unwrap_or_else(|error| no_room(format!("loading it was cut off: {error}")))
    }

    /// The copies that there are, and then what the statuses name: a copy is
    /// written before a status names it.
    pub(super) async fn leftovers(self) -> Done {
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
                Parsed::Unreadable(metadata, _) => unread.extend(metadata.uid),
                Parsed::Read(object) => {
                    let place = object.data.pointer("/status/keptIn").and_then(Value::as_str);
                    named.extend(place.map(str::to_owned));
                }
            }
        }
        Ok(Leftovers { copies, named, unread })
    }
}

/// The place of a ConfigMap, for a person.
pub(super) fn shown((namespace, name): &Place) -> String {
    format!("{namespace}/{name}")
}
