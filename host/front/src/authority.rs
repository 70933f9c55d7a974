//! By which authority others know the service: in a ConfigMap, which the leader keeps.

use crate::names::{
    AGENTS_AUTHORITY, AGENTS_AUTHORITY_KEY, MACHINES, MACHINES_ADDRESS_KEY, NAME, agents_namespace,
};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;
use tread_kube::api::words::PART_OF_LABEL;
use tread_kube::asking::{Backoff, Call, CallOutcome, Failed, ask};
use tread_kube::leadership::Leading;
use tread_kube::metrics::Metrics;

/// How long is waited after a failure, at first and at most.
const WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
const CONFIG_MAPS: &str = "configmaps";

/// Who is to trust the service by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Clients {
    /// Agents, in their namespace.
    Agents,
    /// Whoever makes user data of machines that ask at this address, in tread's own namespace.
    Machines(String),
}

/// Whom others are to trust, and where they look.
pub struct Authority {
    /// Who is to trust it.
    pub clients: Clients,
    /// A client that does not try again by itself.
    pub client: Client,
    /// tread's own namespace.
    pub namespace: String,
    /// What they are to trust, as PEM; empty as long as it is not known.
    pub bundle: watch::Receiver<String>,
    /// Whether this replica writes.
    pub leading: Leading,
    /// Where failed requests are counted.
    pub metrics: Metrics,
}

impl Authority {
    /// Keeps the ConfigMap for as long as it is polled.
    pub async fn keep(mut self) {
        let mut leads = self.leading.watch();
        let mut backoff = Backoff::new(WAITS);
        let mut written: Option<String> = None;
        loop {
            let bundle = self.bundle.borrow_and_update().clone();
            let is_due = !bundle.is_empty() && written.as_ref() != Some(&bundle);
            if is_due && self.leading.now() {
                match self.write(&bundle).await {
                    Ok(()) => {
                        backoff.reset();
                        written = Some(bundle);
                        continue;
                    }
                    Err(failed) => {
                        tracing::warn!(
                            error = %failed,
                            "others cannot be told whom to trust (ConfigMap {})", self.name()
                        );
                        sleep(backoff.next_wait()).await;
                        continue;
                    }
                }
            }
            tokio::select! {
                changed = self.bundle.changed() => if changed.is_err() {
                    return std::future::pending().await;
                },
                changed = leads.changed() => if changed.is_err() {
                    return std::future::pending().await;
                },
            }
            // Another leader may have written another one meanwhile.
            if !self.leading.now() {
                written = None;
            }
        }
    }

    fn name(&self) -> &'static str {
        match self.clients {
            Clients::Agents => AGENTS_AUTHORITY,
            Clients::Machines(_) => MACHINES,
        }
    }

    fn place(&self) -> String {
        match self.clients {
            Clients::Agents => agents_namespace(&self.namespace),
            Clients::Machines(_) => self.namespace.clone(),
        }
    }

    async fn write(&self, bundle: &str) -> Result<(), Failed> {
        let (name, namespace) = (self.name(), self.place());
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), &namespace);
        let mut data = BTreeMap::from([(AGENTS_AUTHORITY_KEY.to_owned(), bundle.to_owned())]);
        if let Clients::Machines(address) = &self.clients {
            data.insert(MACHINES_ADDRESS_KEY.to_owned(), address.clone());
        }
        let patch = Patch::Merge(json!({"data": data}));
        let call = |verb| Call::new(verb, CONFIG_MAPS).within(&namespace);
        let params = PatchParams::default();
        let patched = api.patch(name, &params, &patch);
        match ask(&self.metrics, call("patch"), patched).await {
            Err(failed) if failed.outcome == CallOutcome::Gone => {}
            patched => return patched.map(|_| ()),
        }
        let object = ConfigMap {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                labels: Some(BTreeMap::from([(PART_OF_LABEL.to_owned(), NAME.to_owned())])),
                ..ObjectMeta::default()
            },
            data: Some(data),
            ..ConfigMap::default()
        };
        let params = PostParams::default();
        let created = api.create(&params, &object);
        ask(&self.metrics, call("create"), created).await.map(|_| ())
    }
}
