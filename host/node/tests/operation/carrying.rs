//! Ways to have an order carried out on the machine, and to go on with what stands.

use crate::node::{Bed, decided, plan};
use futures::future::LocalBoxFuture;
use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tread_model::plan::Step;
use tread_node::applied::Applied;
use tread_node::boot_units;
use tread_node::change::{Adopt, Order, adopt};
use tread_node::documents::{Documents, digest};
use tread_node::journal::{Journal, Note, standing_id};
use tread_node::operation::{Ended, Node, OperationError, Patience};
use tread_node::os::Wish;
use tread_node::permits::{Act, NoPermit, Permit, Permits};
use tread_node::progress::{Progress, Reporter, StepState};
use tread_node::systemd::{Limits, Manager, Reboot};
use tread_node::tree::{Unwatched, Witness};
use tread_test_machine::End;

/// Nobody may boot the machine.
pub(crate) struct NoBoot;

impl Permits for NoBoot {
    fn ask(&self, act: Act) -> LocalBoxFuture<'_, Result<Permit, NoPermit>> {
        Box::pin(async move {
            match act {
                Act::Boot { because } => Err(NoPermit::NotNow(format!("not now: {because}"))),
                Act::Write | Act::Unit { .. } => Ok(Permit::FOREVER),
            }
        })
    }
}

/// Nothing may be written.
pub(crate) struct NoWrite;

impl Permits for NoWrite {
    fn ask(&self, act: Act) -> LocalBoxFuture<'_, Result<Permit, NoPermit>> {
        Box::pin(async move {
            match act {
                Act::Write => Err(NoPermit::NotNow("not now".to_owned())),
                Act::Boot { .. } | Act::Unit { .. } => Ok(Permit::FOREVER),
            }
        })
    }
}

/// When the last step began, and when it was done.
#[derive(Default)]
struct Watch {
    begun: Cell<Option<Instant>>,
    done: Cell<Option<Instant>>,
}

impl Reporter for Watch {
    fn report(&self, progress: &Progress) {
        let seen = match progress.steps.last().map(|step| step.state) {
            Some(StepState::Running) => &self.begun,
            Some(StepState::Done) => &self.done,
            _ => return,
        };
        if seen.get().is_none() {
            seen.set(Some(Instant::now()));
        }
    }
}

/// The same node, with permits of somebody's.
fn permitted<'p>(node: &'p Node<'p>, permits: &'p dyn Permits) -> Node<'p> {
    let Node { ref tree, ref terms, host, label, manager, reporter, patience, kernel, .. } = *node;
    let (tree, terms) = (tree.clone(), terms.clone());
    Node { tree, host, label, manager, permits, reporter, terms, patience, kernel }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

async fn adopted(
    node: &Node<'_>,
    config: &Documents,
    what: Adopt,
) -> Result<Ended, OperationError> {
    let order = ("adopt-again", config.clone(), what);
    let adoption = adopt(&node.tree, node.host, node.label, order, Vec::new())?;
    node.adopt(adoption, true).await
}

impl Bed {
    fn order(&self, to: &Documents, steps: &[Step]) -> Order {
        let tree = self.tree(Arc::new(Unwatched));
        let from = Applied::read(&tree).unwrap().unwrap().documents;
        // One that waits for a boot has an id of its own.
        let is_taken = standing_id(&tree).unwrap().is_some_and(|id| id == "1");
        Order {
            id: if is_taken { "2" } else { "1" }.to_owned(),
            documents: to.clone(),
            plan: plan(&from, to, steps),
            accept: Vec::new(),
            others: Vec::new(),
        }
    }

    /// Carries it out although something differs that is named.
    pub(crate) fn carry_out_accepting(
        &self,
        to: &Documents,
        steps: &[Step],
        accept: &[String],
    ) -> Result<Ended, OperationError> {
        let order = Order { accept: accept.to_vec(), ..self.order(to, steps) };
        self.node(Arc::new(Unwatched), |node| runtime().block_on(node.carry_out(&order, true)))
    }

    /// Carries it out with a plan that an admin's policy decided.
    pub(crate) fn carry_out_as_admin(
        &self,
        to: &Documents,
        steps: &[Step],
    ) -> Result<Ended, OperationError> {
        self.carry_out_decided(to, steps, Arc::new(Unwatched))
    }

    /// The same with a reload, and with somebody who sees each change of the disk.
    pub(crate) fn carry_out_as_admin_watched(
        &self,
        to: &Documents,
        witness: Arc<dyn Witness>,
    ) -> Result<Ended, OperationError> {
        self.carry_out_decided(to, &crate::reload(), witness)
    }

    fn carry_out_decided(
        &self,
        to: &Documents,
        steps: &[Step],
        witness: Arc<dyn Witness>,
    ) -> Result<Ended, OperationError> {
        let mut order = self.order(to, steps);
        order.plan = decided(order.plan);
        self.node(witness, |node| runtime().block_on(node.carry_out(&order, true)))
    }

    /// Carries it out until something is so, and then goes away as a process that is told to end.
    pub(crate) fn until(&self, to: &Documents, steps: &[Step], is_so: impl Fn() -> bool) {
        let order = self.order(to, steps);
        self.node(Arc::new(Unwatched), |node| {
            runtime().block_on(async {
                tokio::select! {
                    () = waits_until(&is_so) => {}
                    ended = node.carry_out(&order, true) => panic!("it ended: {ended:?}"),
                }
            });
        });
    }

    /// Goes on until something is so, and then goes away.
    pub(crate) fn until_on_the_way(&self, is_so: impl Fn() -> bool) {
        self.node(Arc::new(Unwatched), |node| {
            runtime().block_on(async {
                tokio::select! {
                    () = waits_until(&is_so) => {}
                    ended = node.go_on() => panic!("it ended: {ended:?}"),
                }
            });
        });
    }

    /// Says which config it has.
    pub(crate) fn adopt(&self, config: &Documents, what: Adopt) -> Result<Ended, OperationError> {
        self.node(Arc::new(Unwatched), |node| runtime().block_on(adopted(node, config, what)))
    }

    /// The same of a node that was not drained.
    pub(crate) fn adopt_undrained(
        &self,
        config: &Documents,
        what: Adopt,
    ) -> Result<Ended, OperationError> {
        self.node(Arc::new(Unwatched), |node| {
            let order = ("adopt-again", config.clone(), what);
            let adoption = adopt(&node.tree, node.host, node.label, order, Vec::new())?;
            runtime().block_on(node.adopt(adoption, false))
        })
    }

    /// As an admin has it adopted, with tread's own units, as far as the boot, for which there is
    /// no permit.
    pub(crate) fn adopt_with_units(
        &self,
        config: &Documents,
        what: Adopt,
        witness: Arc<dyn Witness>,
    ) {
        self.node(witness, |node| {
            let order = ("adopt-again", config.clone(), what);
            let units = boot_units::targets();
            let node = permitted(node, &NoBoot);
            // It is killed, or may not boot.
            let _ = runtime().block_on(node.adopt_with(order, &units, &[], (true, false)));
        });
    }

    /// A machine that booted with this config says so, until it goes down for what it lacks of it.
    pub(crate) fn until_it_boots_to_join(&self, config: &Documents) -> End {
        self.until_it_goes_down(async |node| adopted(node, config, Adopt::Ask).await)
    }

    /// The same, with what differs overwritten, until it goes down for that.
    pub(crate) fn until_it_is_overwritten(&self, config: &Documents) -> End {
        self.until_it_goes_down(async |node| adopted(node, config, Adopt::Overwrite).await)
    }

    /// Carries it out as far as the boot, for which there is no permit.
    pub(crate) fn until_staged(&self, to: &Documents, steps: &[Step]) {
        let order = self.order(to, steps);
        self.node(Arc::new(Unwatched), |node| {
            let ended = runtime().block_on(permitted(node, &NoBoot).carry_out(&order, true));
            assert!(matches!(ended, Err(OperationError::Forbidden(_))), "{ended:?}");
        });
    }

    /// Carries it out with permits of somebody's.
    pub(crate) fn carry_out_with(
        &self,
        permits: &dyn Permits,
        to: &Documents,
        steps: &[Step],
    ) -> Result<Ended, OperationError> {
        let order = self.order(to, steps);
        self.node(Arc::new(Unwatched), |node| {
            runtime().block_on(permitted(node, permits).carry_out(&order, true))
        })
    }

    /// The same, until it goes down for that.
    pub(crate) fn until_it_boots_with(
        &self,
        permits: &dyn Permits,
        to: &Documents,
        steps: &[Step],
    ) -> End {
        let order = self.order(to, steps);
        self.until_it_goes_down(async |node| permitted(node, permits).carry_out(&order, true).await)
    }

    /// Has fetched what a config needs.
    pub(crate) fn fetch(&self, to: &Documents) -> Result<(), OperationError> {
        let config = to.config().unwrap();
        let (wish, to) = (Wish::of(&config), digest(&config).unwrap());
        self.node(Arc::new(Unwatched), |node| runtime().block_on(node.fetch("fetch", to, &wish)))
    }

    pub(crate) fn carry_out(
        &self,
        to: &Documents,
        steps: &[Step],
    ) -> Result<Ended, OperationError> {
        self.carry_out_watched(to, steps, Arc::new(Unwatched))
    }

    pub(crate) fn carry_out_watched(
        &self,
        to: &Documents,
        steps: &[Step],
        witness: Arc<dyn Witness>,
    ) -> Result<Ended, OperationError> {
        let order = self.order(to, steps);
        self.node(witness, |node| runtime().block_on(node.carry_out(&order, true)))
    }

    /// Carries it out; how many calls over D-Bus that took.
    pub(crate) fn calls_of(&self, to: &Documents, steps: &[Step]) -> (Ended, u64) {
        let order = self.order(to, steps);
        self.node(Arc::new(Unwatched), |node| {
            let ended = runtime().block_on(node.carry_out(&order, true)).unwrap();
            (ended, node.manager.calls())
        })
    }

    /// Carries it out; how long that took in all, with what is read of the host for it, and
    /// how long its last step took, as somebody saw it who is told.
    pub(crate) fn times_of(
        &self,
        to: &Documents,
        steps: &[Step],
        witness: Arc<dyn Witness>,
    ) -> (Duration, Duration) {
        let order = self.order(to, steps);
        let watch = Watch::default();
        let began = Instant::now();
        let ended = self.node(witness, |node| {
            let Node {
                ref tree, ref terms, host, label, manager, permits, patience, kernel, ..
            } = *node;
            let (tree, terms) = (tree.clone(), terms.clone());
            let node = Node {
                tree,
                host,
                label,
                manager,
                permits,
                reporter: &watch,
                terms,
                patience,
                kernel,
            };
            runtime().block_on(node.carry_out(&order, true)).unwrap()
        });
        let took = began.elapsed();
        assert_eq!(ended, Ended::Done);
        let (begun, done) = (watch.begun.get().unwrap(), watch.done.get().unwrap());
        (took, done - begun)
    }

    pub(crate) fn carry_out_undrained(
        &self,
        to: &Documents,
        steps: &[Step],
    ) -> Result<Ended, OperationError> {
        let order = self.order(to, steps);
        self.node(Arc::new(Unwatched), |node| runtime().block_on(node.carry_out(&order, false)))
    }

    pub(crate) fn go_on(&self) -> Result<Ended, OperationError> {
        self.node(Arc::new(Unwatched), |node| runtime().block_on(node.go_on()))
    }

    /// As [`Bed::go_on`], where nobody may boot the machine.
    pub(crate) fn go_on_without_a_permit_to_boot(&self) -> Result<Ended, OperationError> {
        self.node(Arc::new(Unwatched), |node| runtime().block_on(permitted(node, &NoBoot).go_on()))
    }

    /// As [`Bed::go_on`], with somebody who sees each change of the disk.
    pub(crate) fn go_on_watched(&self, witness: Arc<dyn Witness>) -> Result<Ended, OperationError> {
        self.node(witness, |node| runtime().block_on(node.go_on()))
    }

    /// As a node decides that is cut off.
    pub(crate) fn decide_to_go_back(&self) {
        let journal = Journal::open(&self.tree(Arc::new(Unwatched))).unwrap();
        let note = Note::Back { because: "it was cut off".to_owned(), by_units: true };
        journal.note(&note).unwrap();
    }

    /// As [`Bed::go_on`], where nobody answers in the place of systemd.
    pub(crate) fn go_on_without_a_bus(&self) -> Result<Ended, OperationError> {
        let soon = Duration::from_millis(500);
        let manager =
            Manager::new("unix:path=/nobody/is/here", Limits { well_for: soon, answer: soon });
        let reboot = Reboot { inhibited: soon, going_down: soon };
        let patience = Patience { reboot, ..Patience::default() };
        self.node_of(&manager, patience, Arc::new(Unwatched), |node| {
            runtime().block_on(node.go_on())
        })
    }

    /// Carries it out until the machine goes down, which it has to.
    pub(crate) fn until_it_boots(&self, to: &Documents, steps: &[Step]) -> End {
        let order = self.order(to, steps);
        self.until_it_goes_down(async |node| node.carry_out(&order, true).await)
    }

    pub(crate) fn until_it_boots_again(&self) -> End {
        self.until_it_goes_down(async |node| node.go_on().await)
    }

    /// The same, where nobody may boot the machine.
    pub(crate) fn until_it_boots_without_a_permit(&self) -> End {
        self.until_it_goes_down(async |node| permitted(node, &NoBoot).go_on().await)
    }

    /// The same, with permits of somebody's.
    pub(crate) fn until_it_boots_again_with(&self, permits: &dyn Permits) -> End {
        self.until_it_goes_down(async |node| permitted(node, permits).go_on().await)
    }

    fn until_it_goes_down(
        &self,
        carry_out: impl AsyncFnOnce(&Node<'_>) -> Result<Ended, OperationError>,
    ) -> End {
        let down = async {
            while self.machine.boots().last().is_none_or(|boot| boot.end.is_none()) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        self.node(Arc::new(Unwatched), |node| {
            runtime().block_on(async {
                tokio::select! {
                    () = down => {}
                    // systemd takes the bus away before the machine is down.
                    ended = carry_out(node) => {
                        let boots = match &ended {
                            Ok(ended) => !matches!(ended, Ended::Done | Ended::Nothing),
                            Err(error) => !matches!(error, OperationError::Forbidden(_)),
                        };
                        assert!(boots, "it did not boot: {ended:?}");
                    }
                }
            });
        });
        self.machine.wait_for_end().unwrap()
    }
}

async fn waits_until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
