//! What answers what would happen, and why it may not.

use super::bodies::BodyCache;
use super::budget::Budget;
use super::planners::Planners;
use super::settings::Settings;
use crate::policies::current::Published;
use crate::pools::{Members, Strays};
use crate::previews::{Cluster, Described, Once, Parsed};
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::watch;
use tread_engine::planner::Remembered;
use tread_engine::sandbox::Sandbox;
use tread_kube::asking;
use tread_kube::metrics::Metrics;

/// Answers what would happen. Clones share everything.
#[derive(Clone)]
pub struct Previewer {
    pub(super) cluster: Arc<RwLock<Cluster>>,
    pub(super) described: Arc<RwLock<BTreeMap<String, Vec<Arc<Described>>>>>,
    /// Pools of which the plans could not be made as things are, and why.
    pub(super) unplanned: Arc<RwLock<BTreeMap<String, String>>>,
    pub(super) bodies: BodyCache,
    pub(super) client: Client,
    pub(super) sandbox: Sandbox,
    pub(super) policies: Published,
    pub(super) metrics: Metrics,
    pub(super) planners: Planners,
    pub(super) budget: Budget,
    pub(super) parsed: Arc<Parsed>,
    /// What policies answered lately.
    pub(super) remembered: Arc<Remembered>,
    /// What plans say of changes.
    pub(super) once: Arc<Once>,
    /// Nodes that stray, as soon as all is known that it takes to tell.
    strays: Arc<watch::Sender<Strays>>,
    /// Whenever what is known of pools or MachineConfigs is put in.
    changes: Arc<watch::Sender<()>>,
    /// Whenever what pools are made of is.
    sources: Arc<watch::Sender<()>>,
    ready: Arc<watch::Sender<bool>>,
}

/// Why a preview could not be made.
#[derive(Debug, Clone)]
pub struct NotKnown {
    /// In words.
    pub why: String,
    /// What the API server was asked for in vain, if that is why.
    pub failed: Option<asking::Failed>,
}

impl From<String> for NotKnown {
    fn from(why: String) -> NotKnown {
        NotKnown { why, failed: None }
    }
}

impl From<asking::Failed> for NotKnown {
    fn from(failed: asking::Failed) -> NotKnown {
        NotKnown { why: failed.to_string(), failed: Some(failed) }
    }
}

impl std::fmt::Display for NotKnown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.why)
    }
}

impl Previewer {
    pub(super) fn new(settings: &Settings) -> Previewer {
        Previewer {
            cluster: Arc::new(RwLock::new(Cluster {
                by_tread: settings.by_tread,
                members: Arc::new(Members::since(Timestamp::now().as_second())),
                ..Cluster::default()
            })),
            described: Arc::default(),
            unplanned: Arc::default(),
            bodies: BodyCache::default(),
            client: settings.client.clone(),
            sandbox: settings.sandbox.clone(),
            policies: settings.policies.clone(),
            metrics: settings.metrics.clone(),
            planners: Planners::start(),
            budget: Budget::default(),
            parsed: Arc::default(),
            remembered: Arc::default(),
            once: Arc::default(),
            strays: Arc::default(),
            changes: Arc::default(),
            sources: Arc::default(),
            ready: Arc::new(watch::Sender::new(false)),
        }
    }

    /// Whether everything is known that a preview needs.
    pub fn is_ready(&self) -> bool {
        *self.ready.borrow()
    }

    /// Waits until everything is known that a preview needs.
    pub async fn ready(&self) {
        // The sender is as old as the previewer.
        let _ = self.ready.subscribe().wait_for(|ready| *ready).await;
    }

    pub(super) fn set_ready(&self) {
        self.ready.send_if_modified(|ready| !std::mem::replace(ready, true));
    }

    pub(super) fn set_strays(&self, now: &Strays) {
        self.strays.send_if_modified(|before| {
            let is_new = !before.is_same(now);
            if is_new {
                *before = now.clone();
            }
            is_new
        });
    }

    /// The nodes that stray, and whenever others do.
    pub fn strays(&self) -> watch::Receiver<Strays> {
        self.strays.subscribe()
    }

    pub(super) fn note_change(&self) {
        self.changes.send_replace(());
    }

    /// Whenever pools or MachineConfigs may be others than before, as the snapshot has them.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    pub(super) fn note_sources(&self) {
        self.sources.send_replace(());
    }

    /// Whenever pools may be made of something else than before, as the snapshot has it: of other
    /// MachineConfigs, or with other mirrors. How far a pool is into a rollout is none of that.
    pub fn sources(&self) -> watch::Receiver<()> {
        self.sources.subscribe()
    }

    /// The pending plans, whole, by pool.
    pub fn plans(&self) -> Vec<Arc<Described>> {
        let plans = self.described.read().unwrap_or_else(PoisonError::into_inner);
        plans.values().flatten().cloned().collect()
    }

    /// The pools of which the plans could not be made as things are, and why.
    pub fn unplanned(&self) -> BTreeMap<String, String> {
        self.unplanned.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The cluster as it is.
    pub fn snapshot(&self) -> Cluster {
        self.cluster.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
