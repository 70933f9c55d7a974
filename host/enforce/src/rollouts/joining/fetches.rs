//! What machines were served is noted: a few writes for many of them.

use super::kept::{self, Fetched, Record};
use crate::settings::Settings;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::sleep;
use tread_cluster::index::Kept;
use tread_kube::api::rollout::MissingMachine;
use tread_kube::asking::Backoff;

/// What is served within so long is noted by one write.
const TOGETHER: Duration = Duration::from_secs(1);
/// As many wait to be noted; more are served all the same.
const ROOM: usize = 1024;
/// How long is waited after a failure, at first and at most.
const WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Machines that registered no node, by pool.
pub(crate) type Missing = BTreeMap<String, Vec<MissingMachine>>;

/// What was served, to be noted. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Served(mpsc::Sender<(String, Fetched)>);

impl Served {
    pub(super) fn new() -> (Served, mpsc::Receiver<(String, Fetched)>) {
        let (served, noted) = mpsc::channel(ROOM);
        (Served(served), noted)
    }

    pub(super) fn note(&self, id: String, fetched: Fetched) {
        if self.0.try_send((id, fetched)).is_err() {
            tracing::debug!("what a machine was served is not noted: too many are served now");
        }
    }
}

/// Notes what is served, for as long as it is polled: a replica that is killed may lose the last
/// second, and nobody waits for it.
pub(super) async fn note(
    settings: Settings,
    record: Kept<String, Arc<Record>>,
    mut served: mpsc::Receiver<(String, Fetched)>,
) {
    let mut all = Vec::new();
    let mut backoff = Backoff::new(WAITS);
    loop {
        if all.is_empty() {
            let Some(one) = served.recv().await else { return std::future::pending().await };
            all.push(one);
            sleep(TOGETHER).await;
        }
        while all.len() < ROOM
            && let Ok(one) = served.try_recv()
        {
            all.push(one);
        }
        let known = record.now().and_then(|all| all.values().next().cloned());
        match kept::note_fetched(&settings, known.as_deref(), &all).await {
            Ok(()) => {
                all.clear();
                backoff.reset();
            }
            Err(failed) => {
                tracing::warn!(error = %failed, "what machines were served cannot be noted");
                sleep(backoff.next_wait()).await;
            }
        }
    }
}
