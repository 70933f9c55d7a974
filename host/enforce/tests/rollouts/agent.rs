//! An agent that is played: it waits for orders and asks for permits as a real one does, and
//! says what it is told to say.

use super::clocks::off_by;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tread_enforce::read_order;
use tread_enforce::rollouts::Agents;
use tread_kube::agents::{Answer, Ask, Asked, Instructions};
use tread_kube::api::NodeUpdate;
use tread_kube::api::node_update::{UpdateOrder, UpdatePhase};
use tread_kube::node_lease::operation_text;
use tread_model::protocol::{Disrupts, Local, Phase};

/// How many questions of all agents were answered.
pub(super) static ANSWERED: AtomicUsize = AtomicUsize::new(0);

/// What comes of an order on a node, by the node's name and how often it was tried there.
pub(super) type Does = Arc<dyn Fn(&str, usize) -> UpdatePhase + Send + Sync>;

/// Everything goes well.
pub(super) fn well() -> Does {
    Arc::new(|_, _| UpdatePhase::Done)
}

/// The first try anywhere fails, after the boot where there is one.
pub(super) fn first_fails() -> Does {
    let failed = Mutex::new(None::<String>);
    Arc::new(move |node, tries| {
        let mut failed = failed.lock().unwrap();
        match failed.get_or_insert_with(|| node.to_owned()) == node && tries == 1 {
            true => UpdatePhase::Degraded,
            false => UpdatePhase::Done,
        }
    })
}

/// What an agent was permitted to do, to get which config.
pub(super) type Did = (String, Asked);

/// Where agents ask: another replica when theirs has ended.
pub(super) type Door = watch::Receiver<Agents>;

pub(super) struct Agent {
    pub(super) node: String,
    disk: Arc<Mutex<Disk>>,
    start: Box<dyn Fn() -> JoinHandle<()> + Send + Sync>,
    task: JoinHandle<()>,
}

impl Agent {
    pub(super) fn start(client: Client, asks: Door, node: &str, does: Does) -> Agent {
        Agent::start_on(Disk::default(), client, asks, node, does)
    }

    /// One on a node that joins with another disk than the config of its pool says.
    pub(super) fn start_where_it_differs(
        client: Client,
        asks: Door,
        node: &str,
        does: Does,
    ) -> Agent {
        let disk = Disk { differs: true, ..Disk::default() };
        Agent::start_on(disk, client, asks, node, does)
    }

    fn start_on(disk: Disk, client: Client, asks: Door, node: &str, does: Does) -> Agent {
        let disk = Arc::new(Mutex::new(disk));
        let start = {
            let (disk, node) = (Arc::clone(&disk), node.to_owned());
            move || {
                let plays = Plays {
                    asks: asks.clone(),
                    api: Api::all(client.clone()),
                    node: node.clone(),
                    does: does.clone(),
                    disk: disk.clone(),
                };
                tokio::spawn(plays.run())
            }
        };
        let task = start();
        Agent { node: node.to_owned(), disk, start: Box::new(start), task }
    }

    /// Kills it, and starts it again: it knows what is on its disk.
    pub(super) fn restart(&mut self) {
        self.task.abort();
        self.task = (self.start)();
    }

    /// Nobody starts it again before [`Agent::restart`].
    pub(super) fn stop(&self) {
        self.task.abort();
    }

    pub(super) fn did(&self) -> Vec<Did> {
        self.disk.lock().unwrap().did.clone()
    }

    pub(super) fn boots(&self) -> usize {
        self.did().iter().filter(|(_, what)| *what == Asked::Boot).count()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What an agent knows after it was killed.
#[derive(Default)]
struct Disk {
    local: Local,
    asked: u64,
    tries: usize,
    did: Vec<Did>,
    /// Whether it is another one than the config of the pool says.
    differs: bool,
}

/// What an agent says whose disk differs.
pub(super) const DIFFERS: &str = "/etc/first differs";

struct Plays {
    asks: Door,
    api: Api<NodeUpdate>,
    node: String,
    does: Does,
    disk: Arc<Mutex<Disk>>,
}

impl Plays {
    async fn run(mut self) {
        let mut seen = None;
        loop {
            let agents = self.asks.borrow_and_update().clone();
            let instructions = tokio::select! {
                instructions = agents.wait(&self.node, None, seen.as_deref()) => instructions,
                Ok(()) = self.asks.changed() => continue,
            };
            let Ok(instructions) = instructions else {
                soon().await;
                continue;
            };
            ANSWERED.fetch_add(1, Ordering::Relaxed);
            seen = match Box::pin(self.follows(&instructions)).await {
                true => Some(instructions.revision),
                // It asks again for what it may not do yet.
                false => None,
            };
            if seen.is_none() {
                soon().await;
            }
        }
    }

    /// Whether all is done that can be done now.
    async fn follows(&mut self, instructions: &Instructions) -> bool {
        if instructions.adopt
            && let Some(config) = &instructions.config
        {
            let differs = self.disk.lock().unwrap().differs;
            match differs {
                // An order that overwrites it comes with what it is to have.
                true if instructions.overwrite => {}
                true => self.says(json!({"message": DIFFERS})).await,
                false => self.says(json!({"current": config.name})).await,
            }
        }
        let Some(order) = &instructions.order else { return true };
        let phase = {
            let mut disk = self.disk.lock().unwrap();
            let before = disk.local.operation;
            disk.local = disk.local.hears(&read_order(order).unwrap());
            let Some((operation, phase)) = disk.local.operation else { return true };
            if operation_text(operation) != order.operation {
                return true;
            }
            if before.map(|(before, _)| before) != Some(operation) {
                disk.tries += 1;
            }
            phase
        };
        match phase {
            Phase::Waiting => {
                let has = instructions.config.as_ref().map(|config| &config.name);
                assert_eq!(has, Some(&order.config), "the config comes with the order");
                self.report(UpdatePhase::Waiting, order, phase).await;
                if !Box::pin(self.may(order, Asked::Write)).await {
                    return false;
                }
                self.report(UpdatePhase::Begun, order, Phase::Begun).await;
                Box::pin(self.works(order)).await
            }
            Phase::Begun | Phase::NeedsBoot => Box::pin(self.works(order)).await,
            Phase::TurnedBack => {
                self.report(UpdatePhase::TurnedBack, order, phase).await;
                true
            }
            Phase::Done => self.ended(UpdatePhase::Done, order).await,
            Phase::WentBack => self.ended(UpdatePhase::WentBack, order).await,
            Phase::Degraded => self.ended(UpdatePhase::Degraded, order).await,
        }
    }

    /// Says what came of it, also if it was killed before it had said so.
    async fn ended(&mut self, says: UpdatePhase, order: &UpdateOrder) -> bool {
        let known = self.api.get_opt(&self.node).await.ok().flatten().and_then(|it| it.status);
        let is_said = known.is_some_and(|status| {
            status.operation.as_ref() == Some(&order.operation) && status.phase == Some(says)
        });
        if !is_said {
            self.report(says, order, phase_of(says)).await;
        }
        true
    }

    async fn works(&mut self, order: &UpdateOrder) -> bool {
        let needs = match read_order(order).unwrap().disrupts {
            Disrupts::Nothing => None,
            Disrupts::Softly | Disrupts::Drain => Some(Asked::Unit),
            Disrupts::Reboot => Some(Asked::Boot),
        };
        let tries = self.disk.lock().unwrap().tries;
        let says = match (self.does)(&self.node, tries) {
            UpdatePhase::NeedsBoot if needs == Some(Asked::Boot) => UpdatePhase::Done,
            says => says,
        };
        if let Some(what) = needs
            && !self.may_then(order, what, Some(phase_of(says))).await
        {
            return false;
        }
        self.report(says, order, phase_of(says)).await;
        true
    }

    async fn may(&mut self, order: &UpdateOrder, what: Asked) -> bool {
        self.may_then(order, what, None).await
    }

    /// Does what it may, and notes on its disk with it what came of it.
    async fn may_then(&mut self, order: &UpdateOrder, what: Asked, then: Option<Phase>) -> bool {
        let number = {
            let mut disk = self.disk.lock().unwrap();
            disk.asked += 1;
            disk.asked
        };
        let ask = Ask { operation: order.operation.clone(), what, number };
        let agents = self.asks.borrow().clone();
        let answer = tokio::select! {
            answer = agents.permit(&self.node, None, &ask) => answer,
            Ok(()) = self.asks.changed() => return false,
        };
        ANSWERED.fetch_add(1, Ordering::Relaxed);
        let may = matches!(answer, Answer::Permitted { number: of, .. } if of == number);
        if may {
            let mut disk = self.disk.lock().unwrap();
            disk.did.push((order.config.name.clone(), what));
            if let (Some((operation, _)), Some(then)) = (disk.local.operation, then) {
                disk.local.operation = Some((operation, then));
            }
        }
        may
    }

    async fn report(&mut self, says: UpdatePhase, order: &UpdateOrder, phase: Phase) {
        {
            let mut disk = self.disk.lock().unwrap();
            let (operation, _) = disk.local.operation.unwrap();
            disk.local.operation = Some((operation, phase));
        }
        // Nodes have clocks of their own.
        let since = Timestamp::now() - k8s_openapi::jiff::SignedDuration::from_secs(off_by());
        let mut status = json!({"operation": order.operation, "phase": says,
            "since": MicroTime(since), "message": null});
        if says == UpdatePhase::Done {
            status["current"] = json!(order.config);
            self.disk.lock().unwrap().differs = false;
        }
        self.says(status).await;
    }

    async fn says(&self, mut status: Value) {
        let boots = {
            let disk = self.disk.lock().unwrap();
            disk.did.iter().filter(|(_, what)| *what == Asked::Boot).count()
        };
        status["bootId"] = json!(format!("{}-{boots}", self.node));
        let patch = Patch::Merge(json!({"status": status}));
        let params = PatchParams::default();
        while self.api.patch_status(&self.node, &params, &patch).await.is_err() {
            soon().await;
        }
    }
}

fn phase_of(says: UpdatePhase) -> Phase {
    match says {
        UpdatePhase::NeedsBoot => Phase::NeedsBoot,
        UpdatePhase::WentBack => Phase::WentBack,
        UpdatePhase::Degraded => Phase::Degraded,
        _ => Phase::Done,
    }
}

/// Before it is tried again.
async fn soon() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}
