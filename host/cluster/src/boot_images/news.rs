//! What the watches say, in one stream, and how it is folded into the facts.

use super::facts::{Facts, kept, stamped};
use super::kinds::{
    self, CATALOGUE, CATALOGUE_NAMESPACE, CLUSTER_OPERATOR, GIVEN_LABEL, KEPT, the_one,
};
use super::machine::{Brought, Key, brought};
use futures::StreamExt as _;
use futures::stream::{BoxStream, select_all};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::DynamicObject;
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Client, ResourceExt as _};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tread_kube::api::BootImages;
use tread_kube::api::boot_images::BOOT_IMAGES;
use tread_kube::api::machines::Kind;
use tread_kube::metrics::Metrics;
use tread_kube::watching::seen::Seen;
use tread_kube::watching::{Watches, follow, follow_served, left_out};

/// Which ConfigMap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Map {
    /// OpenShift's.
    Current,
    /// tread's own.
    Kept,
    /// An admin's.
    Given,
}

/// Something that a watch says.
#[derive(Debug)]
pub enum News {
    /// Of an object of others.
    Of(Kind, Event<Brought>),
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
/// The same where an admin gives it.
const GIVEN_STAMPS: &[&str] = &["release"];

/// All watches.
pub fn watches(
    client: &Client,
    namespace: &str,
    watches: &Watches,
    metrics: &Metrics,
) -> BoxStream<'static, News> {
    let mut all: Vec<BoxStream<'static, News>> = kinds::all()
        .map(|kind| {
            // Of ClusterOperators tread may see its own only.
            let config = match the_one(&kind).filter(|_| kind == CLUSTER_OPERATOR) {
                Some(name) => Config::default().fields(&format!("metadata.name={name}")),
                None => Config::default(),
            };
            let events = follow_served(client, kind, config, watches, metrics);
            let metrics = metrics.clone();
            events.map(move |event| News::Of(kind, told(&kind, event, &metrics))).boxed()
        })
        .collect();
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
        (Map::Given, namespace, GIVEN_MAPS, Config::default().labels(GIVEN_LABEL)),
    ];
    for (map, namespace, name, config) in maps {
        let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
        let events = follow(api, config, name, watches, metrics);
        all.push(events.map(move |event| News::Map(map, event)).boxed());
    }
    let api: Api<BootImages> = Api::all(client.clone());
    all.push(follow(api, Config::default(), IMAGES, watches, metrics).map(News::Images).boxed());
    select_all(all).boxed()
}

/// The event, as it is folded. What cannot be read is told of in the log.
fn told(kind: &Kind, event: Event<Seen<DynamicObject>>, metrics: &Metrics) -> Event<Brought> {
    if let Event::Apply(Seen::Unreadable(metadata, why))
    | Event::InitApply(Seen::Unreadable(metadata, why)) = &event
    {
        left_out(kind.name, metadata, why, metrics);
    }
    match event {
        Event::Init => Event::Init,
        Event::InitDone => Event::InitDone,
        Event::InitApply(seen) => Event::InitApply(brought(seen)),
        Event::Apply(seen) => Event::Apply(brought(seen)),
        Event::Delete(seen) => Event::Delete(brought(seen)),
    }
}

fn key_of(kind: &Kind, object: &Brought) -> Key {
    Key::of_metadata(kind, object.as_ref().map_or_else(|it| &*it.metadata, |it| &it.metadata))
}

/// The facts, and what of them was not listed yet.
#[derive(Debug, Default)]
pub struct Fold {
    /// What is known.
    pub facts: Facts,
    /// What was listed.
    listed: BTreeSet<&'static str>,
    /// What a list that is under way had so far.
    listing: BTreeMap<&'static str, BTreeSet<Key>>,
    /// The same of ConfigMaps, and whether it had the BootImages.
    seen: BTreeMap<&'static str, BTreeSet<String>>,
    images_seen: bool,
}

impl Fold {
    /// What was not listed yet, by the names of the watches.
    pub fn unlisted(&self) -> Vec<&'static str> {
        let names = kinds::all().map(|kind| kind.name);
        let all = names.chain([CURRENT_MAPS, KEPT_MAPS, GIVEN_MAPS, IMAGES]);
        all.filter(|name| !self.listed.contains(name)).collect()
    }

    /// Takes something in.
    pub fn take(&mut self, news: News) {
        match news {
            News::Of(kind, event) => self.object(&kind, event),
            News::Map(map, event) => self.map(map, event),
            News::Images(event) => self.images(event),
        }
    }

    fn object(&mut self, kind: &Kind, event: Event<Brought>) {
        match event {
            Event::Init => {
                self.listing.insert(kind.name, BTreeSet::new());
            }
            Event::InitApply(object) => {
                self.listing.entry(kind.name).or_default().insert(key_of(kind, &object));
                self.take_object(kind, &object);
            }
            Event::InitDone => {
                let listed = self.listing.remove(kind.name).unwrap_or_default();
                self.facts.retain(kind, |key| listed.contains(key));
                let counts = |name: &str| listed.iter().any(|key| key.name == name);
                if the_one(kind).is_some_and(|name| !counts(name)) {
                    self.facts.forget(kind);
                }
                self.listed.insert(kind.name);
            }
            Event::Apply(object) => self.take_object(kind, &object),
            Event::Delete(object) => {
                let key = key_of(kind, &object);
                self.facts.retain(kind, |other| *other != key);
                if the_one(kind) == Some(key.name.as_str()) {
                    self.facts.forget(kind);
                }
            }
        }
    }

    fn take_object(&mut self, kind: &Kind, object: &Brought) {
        match object {
            Ok(object) => self.facts.take(kind, object),
            Err(unread) => self.facts.take_unread(kind, unread),
        }
    }

    fn map(&mut self, which: Map, event: Event<ConfigMap>) {
        let name = match which {
            Map::Current => CURRENT_MAPS,
            Map::Kept => KEPT_MAPS,
            Map::Given => GIVEN_MAPS,
        };
        match event {
            Event::Init => {
                self.seen.insert(name, BTreeSet::new());
            }
            Event::InitApply(map) => {
                self.seen.entry(name).or_default().insert(map.name_any());
                self.take_map(which, &map);
            }
            Event::Apply(map) => self.take_map(which, &map),
            Event::InitDone => {
                let seen = self.seen.remove(name).unwrap_or_default();
                self.retain_maps(which, |name| seen.contains(name));
                self.listed.insert(name);
            }
            Event::Delete(map) => {
                let gone = map.name_any();
                self.retain_maps(which, |name| name != gone);
            }
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

    fn retain_maps(&mut self, which: Map, there: impl Fn(&str) -> bool) {
        match which {
            Map::Current if !there(CATALOGUE) => self.facts.current = None,
            Map::Kept if !there(KEPT) => self.facts.kept = Arc::default(),
            Map::Given => self.facts.given.retain(|name, _| there(name)),
            Map::Current | Map::Kept => {}
        }
    }

    fn images(&mut self, event: Event<BootImages>) {
        match event {
            Event::Init => self.images_seen = false,
            Event::InitApply(object) | Event::Apply(object) => {
                if object.name_any() == BOOT_IMAGES {
                    self.images_seen = true;
                    self.facts.object = Some(Arc::new(object));
                }
            }
            Event::Delete(object) => {
                if object.name_any() == BOOT_IMAGES {
                    self.facts.object = None;
                }
            }
            Event::InitDone => {
                if !self.images_seen {
                    self.facts.object = None;
                }
                self.listed.insert(IMAGES);
            }
        }
    }
}
