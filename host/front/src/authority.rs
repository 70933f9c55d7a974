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
use tread_kube::asking::{Backoff, Call, CallOutcome, Failed, ask, jittered};
use tread_kube::leadership::Leading;
use tread_kube::metrics::Metrics;

/// How long is waited after a failure, at first and at most.
const WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// After this long it is written again, since nobody tells when somebody has removed or changed
/// it. Where that is not so, the API server keeps what it has.
const AGAIN: Duration = Duration::from_secs(300);
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
    pub async fn keep(self) {
        self.keep_again(AGAIN).await;
    }

    async fn keep_again(mut self, again: Duration) {
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
                () = sleep(jittered(again)) => written = None,
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

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{Method, Request, Response};
    use kube::client::Body;
    use serde_json::Value;
    use std::sync::{Arc, Mutex};
    use std::time::Instant;
    use tread_test_bed::eventually;

    /// The data of the ConfigMap, if there is one, and how many requests came.
    #[derive(Default)]
    struct Kept {
        data: Option<Value>,
        asked: u32,
    }

    impl Kept {
        fn answer(&mut self, method: &Method, sent: &Value) -> (u16, Value) {
            self.asked += 1;
            if method == Method::PATCH && self.data.is_none() {
                return (404, json!({"code": 404, "message": "not found", "reason": "NotFound"}));
            }
            let data = sent["data"].clone();
            self.data = Some(data.clone());
            let metadata = json!({"name": "any", "namespace": "any"});
            let map = json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data,
            });
            (200, map)
        }
    }

    /// An API server that has room for one ConfigMap.
    fn api_server() -> (Client, Arc<Mutex<Kept>>) {
        let kept: Arc<Mutex<Kept>> = Arc::default();
        let answers = Arc::clone(&kept);
        let service = tower::service_fn(move |request: Request<Body>| {
            let answers = Arc::clone(&answers);
            async move {
                let (parts, body) = request.into_parts();
                let sent = body.collect_bytes().await?;
                let sent: Value = serde_json::from_slice(&sent).unwrap();
                let (status, said) = answers.lock().unwrap().answer(&parts.method, &sent);
                let body = Body::from(serde_json::to_vec(&said).unwrap());
                Ok::<_, kube::Error>(Response::builder().status(status).body(body).unwrap())
            }
        });
        (Client::new(service, "tread"), kept)
    }

    async fn written(kept: &Mutex<Kept>) -> Value {
        eventually("it is written", async || kept.lock().unwrap().data.clone()).await
    }

    #[tokio::test]
    async fn what_somebody_removes_or_changes_is_written_again_by_the_same_leader_and_seldom() {
        let again = Duration::from_millis(50);
        let (leads, leading) = watch::channel(true);
        let (told, bundle) = watch::channel("PEM".to_owned());
        for clients in [Clients::Agents, Clients::Machines("https://tread.example".to_owned())] {
            let (client, kept) = api_server();
            let authority = Authority {
                clients: clients.clone(),
                client,
                namespace: "tread".to_owned(),
                bundle: bundle.clone(),
                leading: Leading::without_election(leading.clone(), None),
                metrics: Metrics::new(),
            };
            let begun = Instant::now();
            let keeps = tokio::spawn(authority.keep_again(again));
            let first = written(&kept).await;
            assert_eq!(first[AGENTS_AUTHORITY_KEY], "PEM", "{clients:?}");
            kept.lock().unwrap().data = None;
            assert_eq!(written(&kept).await, first, "{clients:?}");
            kept.lock().unwrap().data = Some(json!({}));
            eventually("it is as before", async || {
                (kept.lock().unwrap().data.as_ref() == Some(&first)).then_some(())
            })
            .await;
            keeps.abort();
            // Two requests where there is none, and one where there is.
            let asked = u128::from(kept.lock().unwrap().asked);
            let most = 2 + 2 * (begun.elapsed().as_millis() / again.as_millis());
            assert!(asked <= most, "{asked} requests, and not {most}");
        }
        drop((leads, told));
    }

    #[tokio::test]
    async fn who_does_not_lead_writes_nothing_however_often_it_would_be_time() {
        let (client, kept) = api_server();
        let (leads, leading) = watch::channel(false);
        let (told, bundle) = watch::channel("PEM".to_owned());
        let authority = Authority {
            clients: Clients::Agents,
            client,
            namespace: "tread".to_owned(),
            bundle,
            leading: Leading::without_election(leading, None),
            metrics: Metrics::new(),
        };
        let keeps = tokio::spawn(authority.keep_again(Duration::from_millis(1)));
        sleep(Duration::from_millis(100)).await;
        assert_eq!(kept.lock().unwrap().asked, 0);
        leads.send_replace(true);
        written(&kept).await;
        keeps.abort();
        drop(told);
    }
}
