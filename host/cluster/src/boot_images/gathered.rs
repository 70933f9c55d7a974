//! What the watches and the index say, in one stream, and what it makes of the facts.

use super::facts::{Facts, kept, stamped};
use super::kinds::{
    self, CATALOGUE, CATALOGUE_NAMESPACE, CLUSTER_OPERATOR, CLUSTER_VERSION, KEPT,
    MACHINE_CONFIGURATION, POOL, the_one,
};
use super::machine::{Brought, Key, Unread, brought};
use crate::index::{All, Differences, Index, Object, differences};
use futures::StreamExt as _;
use futures::stream::{BoxStream, select_all};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::DynamicObject;
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, ResourceExt as _};
use std::collections::BTreeMap;
use std::sync::Arc;
use tread_kube::api::BootImages;
use tread_kube::api::boot_images::BOOT_IMAGES;
use tread_kube::api::machines::{INFRASTRUCTURE, Kind, PROVISIONING};
use tread_kube::api::words::STREAM_METADATA_LABEL;
use tread_kube::metrics::Metrics;
use tread_kube::watching::fold::{Fold, Folded};
use tread_kube::watching::parsed::Parsed;
use tread_kube::watching::{Watches, follow, follow_served, left_out};

/// A ConfigMap that is watched, by what it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Map {
    /// OpenShift's.
    Current,
    /// tread's own.
    Kept,
    /// An admin's.
    Given,
}

/// What a watch, or the index, brings.
#[derive(Debug)]
pub enum Input {
    /// Of an object of others.
    Of(Kind, Event<Brought>),
    /// All objects of a kind of the index.
    All(Kind, All<String, Object>),
    /// Of a ConfigMap.
    Map(Map, Event<ConfigMap>),
    /// Of the BootImages.
    Images(Event<BootImages>),
}

const CURRENT_MAPS: &str = "configmaps with the stream metadata of the release";
const KEPT_MAPS: &str = "configmaps with former stream metadata";
const GIVEN_MAPS: &str = "configmaps with stream metadata by admins";
const IMAGES: &str = "bootimages";

/// The keys that say of which release stream metadata is: the machine config
/// operator's stamp, and what came with the images.
const STAMPS: &[&str] = &["MCOReleaseImageVersion", "releaseVersion"];
/// The keys that say so where an admin gives stream metadata.
const GIVEN_STAMPS: &[&str] = &["release"];

/// What the index knows, and what is watched for boot images alone.
pub fn inputs(
    client: &Client,
    namespace: &str,
    index: &Index,
    watches: &Watches,
    metrics: &Metrics,
) -> BoxStream<'static, Input> {
    let known = [
        (POOL, &index.pools),
        (MACHINE_CONFIGURATION, &index.machine_configuration),
        (CLUSTER_VERSION, &index.cluster_version),
    ];
    let mut all: Vec<BoxStream<'static, Input>> = known
        .into_iter()
        .map(|(kind, kept)| kept.moments().map(move |now| Input::All(kind, now)).boxed())
        .collect();
    all.extend(kinds::watched().map(|kind| {
        // Of ClusterOperators tread may see its own only.
        let config = match the_one(&kind).filter(|_| kind == CLUSTER_OPERATOR) {
            Some(name) => Config::default().fields(&format!("metadata.name={name}")),
            None => Config::default(),
        };
        let events = follow_served(client, kind, config, watches, metrics);
        let metrics = metrics.clone();
        events.map(move |event| Input::Of(kind, logged(&kind, event, &metrics))).boxed()
    }));
    let maps = [
        (
            Map::Current,
            CATALOGUE_NAMESPACE,
            CURRENT_MAPS,
            Config::default().fields(&format!("metadata.name={CATALOGUE}")),
        ),
        (
            Map::Kept,
            namespace,
            KEPT_MAPS,
            Config::default().fields(&format!("metadata.name={KEPT}")),
        ),
        (Map::Given, namespace, GIVEN_MAPS, Config::default().labels(STREAM_METADATA_LABEL)),
    ];
    for (map, namespace, name, config) in maps {
        let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
        let events = follow(api, config, name, watches, metrics);
        all.push(events.map(move |event| Input::Map(map, event)).boxed());
    }
    let api: Api<BootImages> = Api::all(client.clone());
    all.push(follow(api, Config::default(), IMAGES, watches, metrics).map(Input::Images).boxed());
    select_all(all).boxed()
}

/// The event, as it is folded. What cannot be read is told of in the log.
fn logged(kind: &Kind, event: Event<Parsed<DynamicObject>>, metrics: &Metrics) -> Event<Brought> {
    if let Event::Apply(Parsed::Unreadable(metadata, why))
    | Event::InitApply(Parsed::Unreadable(metadata, why)) = &event
    {
        left_out(kind.name, metadata, why, metrics);
    }
    match event {
        Event::Init => Event::Init,
        Event::InitDone => Event::InitDone,
        Event::InitApply(object) => Event::InitApply(brought(object)),
        Event::Apply(object) => Event::Apply(brought(object)),
        Event::Delete(object) => Event::Delete(brought(object)),
    }
}

fn key_of(kind: &Kind, object: &Brought) -> Key {
    Key::of_metadata(kind, object.as_ref().map_or_else(|it| &*it.metadata, |it| &it.metadata))
}

/// The facts, and what of them was not listed yet.
#[derive(Debug, Default)]
pub struct Gathered {
    /// What is known.
    pub facts: Facts,
    /// What the watches have told of, by the names of their kinds.
    objects: BTreeMap<&'static str, Fold<Key>>,
    /// What the index has told of.
    known: BTreeMap<&'static str, All<String, Object>>,
    /// The ConfigMaps, and the BootImages, as their watches brought them.
    maps: BTreeMap<&'static str, Fold<String>>,
    images: Fold<String>,
}

impl Gathered {
    /// What was not listed yet, by the names of the watches.
    pub fn unlisted(&self) -> Vec<&'static str> {
        let known = kinds::known().filter(|kind| !self.known.contains_key(kind.name));
        let objects = kinds::watched().filter(|kind| !is_synced(self.objects.get(kind.name)));
        let maps = [CURRENT_MAPS, KEPT_MAPS, GIVEN_MAPS];
        let maps = maps.into_iter().filter(|name| !is_synced(self.maps.get(name)));
        let images = [IMAGES].into_iter().filter(|_| !self.images.is_synced());
        let kinds = objects.map(|kind| kind.name).chain(known.map(|kind| kind.plural));
        kinds.chain(maps).chain(images).collect()
    }

    /// Whether all was listed that says what an image has to be.
    pub fn knows_limits(&self) -> bool {
        let needed =
            [CLUSTER_VERSION.plural, POOL.plural, INFRASTRUCTURE.name, PROVISIONING.name, IMAGES];
        !self.unlisted().iter().any(|name| needed.contains(name))
    }

    /// Takes something in.
    pub fn take(&mut self, input: Input) {
        match input {
            Input::Of(kind, event) => self.object(&kind, event),
            Input::All(kind, now) => self.all(&kind, now),
            Input::Map(map, event) => self.map(map, event),
            Input::Images(event) => self.image(event),
        }
    }

    fn object(&mut self, kind: &Kind, event: Event<Brought>) {
        let fold = self.objects.entry(kind.name).or_default();
        match fold.take(event, |object| key_of(kind, object)) {
            Folded::There(_, Ok(object)) => self.facts.take(kind, &object),
            Folded::There(_, Err(unread)) => self.facts.take_unread(kind, &unread),
            Folded::Gone(key) => self.facts.forget(kind, &key),
            Folded::Listed(gone) => gone.iter().for_each(|key| self.facts.forget(kind, key)),
            Folded::Nothing => {}
        }
    }

    fn all(&mut self, kind: &Kind, now: All<String, Object>) {
        let before = self.known.remove(kind.name).unwrap_or_default();
        let Differences { gone, there } = differences(&before, &now);
        for name in gone {
            let (kind_name, namespace) = (kind.name, String::new());
            self.facts.forget(kind, &Key { kind: kind_name, namespace, name: name.clone() });
        }
        for (_, object) in there {
            match &**object {
                Parsed::Read(object) => self.facts.take(kind, object),
                Parsed::Unreadable(metadata, why) => {
                    let unread = Unread { metadata: metadata.clone(), why: why.clone() };
                    self.facts.take_unread(kind, &unread);
                }
            }
        }
        self.known.insert(kind.name, now);
    }

    fn map(&mut self, which: Map, event: Event<ConfigMap>) {
        let name = match which {
            Map::Current => CURRENT_MAPS,
            Map::Kept => KEPT_MAPS,
            Map::Given => GIVEN_MAPS,
        };
        let fold = self.maps.entry(name).or_default();
        match fold.take(event, |map| map.name_any()) {
            Folded::There(_, map) => self.take_map(which, &map),
            Folded::Gone(name) => self.forget_map(which, &name),
            Folded::Listed(gone) => gone.iter().for_each(|name| self.forget_map(which, name)),
            Folded::Nothing => {}
        }
    }

    fn take_map(&mut self, which: Map, map: &ConfigMap) {
        let facts = &mut self.facts;
        match which {
            Map::Current => facts.current = Some(Arc::new(stamped(map, STAMPS))),
            Map::Kept => facts.kept = Arc::new(kept(map)),
            Map::Given => {
                facts.given.insert(map.name_any(), Arc::new(stamped(map, GIVEN_STAMPS)));
            }
        }
    }

    fn forget_map(&mut self, which: Map, name: &str) {
        match which {
            Map::Current if name == CATALOGUE => self.facts.current = None,
            Map::Kept if name == KEPT => self.facts.kept = Arc::default(),
            Map::Given => drop(self.facts.given.remove(name)),
            Map::Current | Map::Kept => {}
        }
    }

    fn image(&mut self, event: Event<BootImages>) {
        match self.images.take(event, |object| object.name_any()) {
            Folded::There(name, object) if name == BOOT_IMAGES => {
                self.facts.object = Some(Arc::new(object));
            }
            Folded::Gone(name) if name == BOOT_IMAGES => self.facts.object = None,
            Folded::Listed(gone) if gone.iter().any(|name| name == BOOT_IMAGES) => {
                self.facts.object = None;
            }
            _ => {}
        }
    }
}

fn is_synced<K: Ord + Clone>(fold: Option<&Fold<K>>) -> bool {
    fold.is_some_and(Fold::is_synced)
}
