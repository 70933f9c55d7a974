//! An agent that is played: it takes orders and asks for permits as a real one does, and says
//! that it did what they let it do.

use crate::fixture::{pause, room};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio::task::JoinHandle;
use tread_enforce::{Aim, Settings, permit, read_order};
use tread_kube::api::NodeUpdate;
use tread_kube::api::node_update::{NodeUpdateStatus, UpdateDisrupts, UpdateOrder, UpdatePhase};
use tread_kube::node_lease::operation_text;
use tread_model::protocol::{Local, Operation, Phase, Question, What};

/// What an agent did, in which operation.
pub(crate) type Did = (Operation, What);

pub(crate) struct Agent {
    pub(crate) node: String,
    did: Arc<Mutex<Vec<Did>>>,
    task: JoinHandle<()>,
}

impl Agent {
    pub(crate) fn start(settings: Settings, node: &str, aim: Aim) -> Agent {
        let did = Arc::new(Mutex::new(Vec::new()));
        let serves = Serves {
            settings,
            node: node.to_owned(),
            aim,
            local: Local::default(),
            asked: 0,
            did: did.clone(),
        };
        Agent { node: node.to_owned(), did, task: tokio::spawn(serves.run()) }
    }

    pub(crate) fn did(&self) -> Vec<Did> {
        self.did.lock().unwrap().clone()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Serves {
    settings: Settings,
    node: String,
    aim: Aim,
    local: Local,
    asked: u64,
    did: Arc<Mutex<Vec<Did>>>,
}

impl Serves {
    async fn run(mut self) {
        loop {
            let looked = Instant::now();
            self.looks().await;
            pause(looked.elapsed()).await;
        }
    }

    fn api(&self) -> Api<NodeUpdate> {
        Api::all(self.settings.client.clone())
    }

    async fn looks(&mut self) {
        let Ok(Some(update)) = self.api().get_opt(&self.node).await else { return };
        let (Some(order), said) = (update.spec.order, update.status.unwrap_or_default()) else {
            return;
        };
        self.local = self.local.hears(&read_order(&order).unwrap());
        if let Some((operation, phase)) = self.local.operation {
            self.goes_on(operation, phase, &order, &said).await;
        }
    }

    async fn goes_on(
        &mut self,
        operation: Operation,
        phase: Phase,
        order: &UpdateOrder,
        said: &NodeUpdateStatus,
    ) {
        if order.operation != operation_text(operation) {
            return;
        }
        let has = match order.disrupts {
            UpdateDisrupts::Nothing => None,
            UpdateDisrupts::Softly | UpdateDisrupts::Drain => Some(What::Unit),
            UpdateDisrupts::Reboot => Some(What::Boot),
        };
        match phase {
            Phase::Waiting if self.may(operation, What::Write).await => {
                self.becomes(operation, Phase::Begun, order).await;
            }
            Phase::Begun => match has {
                Some(what) if !self.may(operation, what).await => {}
                _ => self.becomes(operation, Phase::Done, order).await,
            },
            _ => {
                let of = said.operation.as_deref();
                let is_said = said.phase == Some(UpdatePhase::from(phase));
                if !is_said || of != Some(&operation_text(operation)) {
                    self.report(operation, phase, order).await;
                }
            }
        }
    }

    async fn may(&mut self, operation: Operation, what: What) -> bool {
        self.asked += 1;
        let question = Question { operation, what, number: self.asked };
        let asked = permit(&self.settings, &self.node, &self.aim, &room(9), &question).await;
        let may = matches!(asked, Ok(Ok(permit)) if !permit.lasts.is_zero());
        if may {
            self.did.lock().unwrap().push((operation, what));
        }
        may
    }

    async fn becomes(&mut self, operation: Operation, phase: Phase, order: &UpdateOrder) {
        self.local.operation = Some((operation, phase));
        self.report(operation, phase, order).await;
    }

    async fn report(&self, operation: Operation, phase: Phase, order: &UpdateOrder) {
        let now = MicroTime(Timestamp::now());
        let (operation, phase) = (operation_text(operation), UpdatePhase::from(phase));
        let mut status = json!({"operation": operation, "phase": phase, "since": now});
        if phase == UpdatePhase::Done {
            status["current"] = json!(order.config);
        }
        let patch = Patch::Merge(json!({"status": status}));
        let _ = self.api().patch_status(&self.node, &PatchParams::default(), &patch).await;
    }
}
