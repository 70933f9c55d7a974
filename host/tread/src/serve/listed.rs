//! What `/v1` serves.

use futures::StreamExt as _;
use kube::runtime::watcher::Event;
use kube::{Client, ResourceExt as _};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::{Arc, PoisonError, RwLock};
use tread_cluster::boot_images::Known as BootImagesKnown;
use tread_cluster::listed::{self, follow_policies};
use tread_cluster::plans::Previewer;
use tread_front::http::{Items, Lists};
use tread_kube::api::DisruptionPolicy;
use tread_kube::metrics::Metrics;
use tread_kube::watching::Watches;

/// The plans as they were made, and the policies as they stand in the cluster.
pub(super) struct Listed {
    previewer: Previewer,
    boot_images: BootImagesKnown,
    policies: Arc<RwLock<BTreeMap<String, Arc<Value>>>>,
}

impl Listed {
    /// What is listed, and what keeps it up to date for as long as it is polled.
    pub(super) fn new(
        previewer: Previewer,
        boot_images: BootImagesKnown,
        client: Client,
        watches: &Watches,
        metrics: &Metrics,
    ) -> (Listed, impl Future<Output = ()> + Send + use<>) {
        let policies: Arc<RwLock<BTreeMap<String, Arc<Value>>>> = Arc::default();
        let events = follow_policies(client, "disruptionpolicies to list", watches, metrics);
        let listed = Listed { previewer, boot_images, policies: Arc::clone(&policies) };
        (listed, keep(events, policies))
    }
}

async fn keep(
    mut events: impl futures::Stream<Item = Event<listed::Listed<DisruptionPolicy>>> + Send + Unpin,
    policies: Arc<RwLock<BTreeMap<String, Arc<Value>>>>,
) {
    let mut listing = BTreeSet::new();
    while let Some(event) = events.next().await {
        let mut policies = policies.write().unwrap_or_else(PoisonError::into_inner);
        let mut put = |it: listed::Listed<DisruptionPolicy>| {
            policies.insert(it.object.name_any(), Arc::new(it.value));
        };
        match event {
            Event::Init => listing.clear(),
            Event::InitApply(it) => {
                listing.insert(it.object.name_any());
                put(it);
            }
            Event::InitDone => policies.retain(|name, _| listing.contains(name)),
            Event::Apply(it) => put(it),
            Event::Delete(it) => {
                policies.remove(&it.object.name_any());
            }
        }
    }
}

impl Lists for Listed {
    fn plans(&self) -> Items {
        Box::new(self.previewer.plans().into_iter().filter_map(|plan| json(&*plan)))
    }

    fn plan(&self, name: &str) -> Option<Vec<u8>> {
        let plans = self.previewer.plans();
        json(&**plans.iter().find(|plan| plan.name == name)?)
    }

    fn boot_images(&self) -> Items {
        let Some(known) = self.boot_images.now() else { return Box::new(std::iter::empty()) };
        let all = (0..known.1.resources.len())
            .filter_map(move |at| known.1.resources.get(at).map(|it| json(&it.shown)));
        Box::new(all.flatten())
    }

    fn policies(&self) -> Items {
        let policies = self.policies.read().unwrap_or_else(PoisonError::into_inner);
        let all: Vec<Arc<Value>> = policies.values().cloned().collect();
        Box::new(all.into_iter().filter_map(|it| json(&*it)))
    }
}

fn json(of: &impl serde::Serialize) -> Option<Vec<u8>> {
    serde_json::to_vec(of).ok()
}
