//! The same facts, listed once with the rights of whoever asks: for the command
//! line.

use super::booted::of_status;
use super::facts::Facts;
use super::gathered::{Gathered, Input, Map};
use super::kinds::{self, CATALOGUE, CATALOGUE_NAMESPACE, CLUSTER_OPERATOR, KEPT};
use super::machine::brought;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ListParams;
use kube::core::DynamicObject;
use kube::runtime::watcher::Event;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use tread_kube::api::BootImages;
use tread_kube::api::words::STREAM_METADATA_LABEL;
use tread_kube::asking::{Call, CallOutcome, Failed};
use tread_kube::metrics::Metrics;
use tread_kube::paging::in_pages;
use tread_kube::watching::parsed::{Parsed, each_by_itself};
use tread_kube::watching::served::served;

/// What is known, and what cannot be listed: its name, and why.
pub async fn gather(client: &Client, namespace: &str) -> (Facts, Vec<(String, Failed)>) {
    let metrics = Metrics::new();
    let mut gathered = Gathered::default();
    let mut waits: Vec<(String, Failed)> = Vec::new();
    // An API server that did not answer for as long as one waits is not asked for all the others.
    let silent = |waits: &[(String, Failed)]| {
        let last = waits.last().map(|(_, failed)| failed);
        last.filter(|failed| failed.outcome == CallOutcome::Unanswered).cloned()
    };
    // What tread itself writes says nothing of images.
    for kind in kinds::all().filter(|kind| *kind != CLUSTER_OPERATOR) {
        let found = match silent(&waits) {
            Some(failed) => Err(failed),
            None => match served(client, &metrics, &kind).await {
                Ok(served) => {
                    let api: Api<DynamicObject> = Api::all_with(client.clone(), &served);
                    let call = Call::new("list", kind.name);
                    list(api, call, &metrics, &ListParams::default()).await
                }
                Err(failed) => Err(failed),
            },
        };
        match found {
            Ok(found) => {
                let all = found.into_iter().map(brought);
                all.for_each(|it| gathered.take(Input::Of(kind, Event::Apply(it))));
            }
            Err(why) => waits.push((kind.name.to_owned(), why)),
        }
    }
    let named = |name: &str| ListParams::default().fields(&format!("metadata.name={name}"));
    for (map, namespace, params) in [
        (Map::Current, CATALOGUE_NAMESPACE, named(CATALOGUE)),
        (Map::Kept, namespace, named(KEPT)),
        (Map::Given, namespace, ListParams::default().labels(STREAM_METADATA_LABEL)),
    ] {
        let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
        let call = Call::new("list", "configmaps").within(namespace);
        let found = match silent(&waits) {
            Some(failed) => Err(failed),
            None => list(api, call, &metrics, &params).await,
        };
        match found {
            Ok(found) => {
                let all = found.into_iter().filter_map(Parsed::read);
                all.for_each(|it| gathered.take(Input::Map(map, Event::Apply(it))));
            }
            Err(why) => waits.push((format!("configmaps of {namespace}"), why)),
        }
    }
    let (api, call) = (Api::<BootImages>::all(client.clone()), Call::new("list", "bootimages"));
    let found = match silent(&waits) {
        Some(failed) => Err(failed),
        None => list(api, call, &metrics, &ListParams::default()).await,
    };
    match found {
        Ok(found) => {
            let all = found.into_iter().filter_map(Parsed::read);
            all.for_each(|it| gathered.take(Input::Images(Event::Apply(it))));
            let status = gathered.facts.object.as_deref().and_then(|it| it.status.as_ref());
            // Nodes and their machines are many: the service has looked at them.
            gathered.facts.booted = status.map(of_status).unwrap_or_default().into();
        }
        Err(why) => waits.push(("bootimages".to_owned(), why)),
    }
    (gathered.facts, waits)
}

/// How many objects are listed at a time.
const PAGE: u32 = 100;

/// A kind that is not installed has no objects. An API server that is busy, as it
/// is with new definitions, is asked again for a while.
async fn list<K>(
    api: Api<K>,
    call: Call,
    metrics: &Metrics,
    params: &ListParams,
) -> Result<Vec<Parsed<K>>, Failed>
where
    K: Resource + Clone + DeserializeOwned + Debug + 'static,
{
    let api = each_by_itself(api);
    let list = async |params| api.list(&params).await;
    match in_pages(PAGE, metrics, call, params.clone(), list, Some).await {
        Ok(found) => Ok(found),
        Err(failed) if failed.outcome == CallOutcome::Gone => Ok(Vec::new()),
        Err(failed) => Err(failed),
    }
}
