//! The same facts, listed once with the rights of whoever asks: for the command
//! line.

use super::facts::Facts;
use super::kinds::{self, CATALOGUE, CATALOGUE_NAMESPACE, CLUSTER_OPERATOR, GIVEN_LABEL, KEPT};
use super::machine::brought;
use super::news::{Fold, Map, News};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ListParams;
use kube::core::DynamicObject;
use kube::runtime::watcher::Event;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::time::Duration;
use tread_kube::api::BootImages;
use tread_kube::told::told;
use tread_kube::watching::seen::{Seen, each_by_itself};
use tread_kube::watching::served::served;

/// What is known, and what cannot be listed, in words.
pub async fn gather(client: &Client, namespace: &str) -> (Facts, Vec<String>) {
    let mut fold = Fold::default();
    let mut waits = Vec::new();
    // What tread itself writes says nothing of images.
    for kind in kinds::all().filter(|kind| *kind != CLUSTER_OPERATOR) {
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &served(client, &kind).await);
        match list(api, &ListParams::default()).await {
            Ok(found) => {
                let all = found.into_iter().map(brought);
                all.for_each(|it| fold.take(News::Of(kind, Event::Apply(it))));
            }
            Err(why) => waits.push(format!("{}: {why}", kind.name)),
        }
    }
    let named = |name: &str| ListParams::default().fields(&format!("metadata.name={name}"));
    for (map, namespace, params) in [
        (Map::Current, CATALOGUE_NAMESPACE, named(CATALOGUE)),
        (Map::Kept, namespace, named(KEPT)),
        (Map::Given, namespace, ListParams::default().labels(GIVEN_LABEL)),
    ] {
        let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
        match list(api, &params).await {
            Ok(found) => {
                let all = found.into_iter().filter_map(Seen::read);
                all.for_each(|it| fold.take(News::Map(map, Event::Apply(it))));
            }
            Err(why) => waits.push(format!("configmaps of {namespace}: {why}")),
        }
    }
    match list(Api::<BootImages>::all(client.clone()), &ListParams::default()).await {
        Ok(found) => {
            let all = found.into_iter().filter_map(Seen::read);
            all.for_each(|it| fold.take(News::Images(Event::Apply(it))));
        }
        Err(why) => waits.push(format!("bootimages: {why}")),
    }
    (fold.facts, waits)
}

/// How often a busy API server is asked again, and how long after the first time.
const TRIES: u32 = 8;
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// A kind that is not installed has no objects. An API server that is busy, as it
/// is with new definitions, is asked again for half a minute at most.
async fn list<K>(api: Api<K>, params: &ListParams) -> Result<Vec<Seen<K>>, String>
where
    K: Resource + Clone + DeserializeOwned + Debug + 'static,
{
    let api = each_by_itself(api);
    let mut tries = 0;
    loop {
        match api.list(params).await {
            Ok(found) => return Ok(found.items),
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(Vec::new()),
            Err(kube::Error::Api(status)) if matches!(status.code, 429 | 503) && tries < TRIES => {
                tokio::time::sleep(FIRST_WAIT * 2_u32.pow(tries)).await;
                tries += 1;
            }
            Err(error) => return Err(told(&error)),
        }
    }
}
