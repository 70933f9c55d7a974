//! One operation on a node: from the order to a node that is well, through crashes and
//! boots. What has to be known for that is in the journal; nothing else survives.

mod act;
mod going;
mod os;
mod prove;
mod telling;

use crate::api_server;
use crate::change::{Adoption, Change, Order, OrderError, change_to};
use crate::desired::Host;
use crate::journal::{Direction, Journal, JournalError, Note, Settled, Standing};
use crate::os::{Due, IDS, OsError, OsLimits};
use crate::permits::{Act, Permit, Permits};
use crate::prepare::{Label, Ready};
use crate::progress::{Phase, Progress, Reporter};
use crate::systemd::{Manager, Problem, Reboot, Unable};
use crate::terms::Terms;
use crate::tree::{PathError, Tree};
use going::Going;
pub use os::drift_of_os;
use serde::{Deserialize, Serialize};
use std::io;
use std::time::{Duration, Instant};
use telling::Telling;
use tread_model::plan::{PlanOutcome, Step, VerifiablePlan};

/// A node, and all that an operation on it needs.
pub struct Node<'n> {
    /// Its files.
    pub tree: Tree,
    /// What is known of its users and units.
    pub host: &'n dyn Host,
    /// How its files are labelled.
    pub label: &'n Label<'n>,
    /// Its systemd.
    pub manager: &'n Manager,
    /// Who says whether something may be done now.
    pub permits: &'n dyn Permits,
    /// Who is told how far it is.
    pub reporter: &'n dyn Reporter,
    /// On which terms a new operation is carried out.
    pub terms: Terms,
    /// How long things may take.
    pub patience: Patience,
    /// The last resort to boot.
    pub kernel: &'n dyn Fn() -> io::Result<()>,
}

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// How long the node may take to prove that it is well after a boot.
    pub proof: Duration,
    /// How a boot is asked for.
    pub reboot: Reboot,
    /// How long what changes the operating system may take.
    pub os: OsLimits,
}

impl Default for Patience {
    fn default() -> Patience {
        let (reboot, os) = (Reboot::default(), OsLimits::default());
        Patience { proof: Duration::from_secs(600), reboot, os }
    }
}

/// How an operation ended, as far as this process is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// There was none.
    Nothing,
    /// The node has the new config, and is well.
    Done,
    /// The node has the new config, and is well; a part of it takes effect with the next
    /// boot, which somebody else has to cause.
    WaitsForBoot,
    /// The node has the old config again.
    WentBack {
        /// Why.
        because: String,
    },
    /// The node is not well, and tread does nothing more by itself.
    Degraded {
        /// Why.
        because: String,
    },
}

/// Why an operation did not begin, or does not go on. Nothing was told to any unit.
#[derive(Debug, thiserror::Error)]
pub enum OperationError {
    /// The order is not carried out.
    #[error(transparent)]
    Order(#[from] OrderError),
    /// The journal stopped.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A path leads nowhere.
    #[error(transparent)]
    Path(#[from] PathError),
    /// systemd was not asked.
    #[error(transparent)]
    Systemd(#[from] Problem),
    /// A step cannot be carried out as planned.
    #[error("the plan cannot be carried out as it is: {}; use the plan that is always allowed (drain, write, reboot, uncordon), by --reboot", listed(.0))]
    Unable(Vec<Unable>),
    /// Drain and uncordon are a controller's.
    #[error(
        "the plan drains the node, which tread cannot do from the node itself; drain it, then say so: --no-drain"
    )]
    Drain,
    /// It takes the system itself.
    #[error(
        "{0} is changed by a tool of the system itself, while it runs; start this system, and apply it there"
    )]
    NotHere(&'static str),
    /// The operating system is not changed.
    #[error("{0}; nothing was written")]
    Os(#[from] OsError),
    /// It may not be done now.
    #[error("it may not be done now: {0}")]
    Forbidden(String),
    /// The operation that stands was begun by something else.
    #[error("the operation that stands cannot be gone on with: {0}")]
    Foreign(String),
}

fn listed(all: &[Unable]) -> String {
    let texts: Vec<String> = all.iter().map(Unable::to_string).collect();
    texts.join("; ")
}

/// What an operation has to know of itself after a crash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    plan: VerifiablePlan,
    /// The boot in which it began.
    boot: String,
    /// The units that were well before, and have to be well after it.
    well: Vec<String>,
    /// Whether the kubelet answered before.
    kubelet: bool,
    /// The API server that was reached before, and has to be reached afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reached: Option<String>,
    /// On which terms it goes on.
    #[serde(default)]
    terms: Terms,
    /// What of the operating system is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    os: Option<Due>,
}

/// The terms of an operation that stands.
pub fn terms_of(standing: &Standing) -> Terms {
    let kept: Option<Kept> = serde_json::from_value(standing.record.order.clone()).ok();
    kept.map(|kept| kept.terms).unwrap_or_default()
}

/// For how long it counts that an API server was reached.
const RECENTLY: Duration = Duration::from_secs(60);

/// Why a permit counts for nothing.
const ENDED: &str = "the permit ended before it was used";

/// Whether all that differs is in files: the tree of another system has nothing else.
pub(crate) fn needs_files_only(change: &Change<'_>) -> Result<(), OperationError> {
    match IDS.into_iter().find(|id| change.has(id)) {
        Some(id) => Err(OperationError::NotHere(id)),
        None => Ok(()),
    }
}

impl Node<'_> {
    /// Carries an order out, as far as the next boot. With `drained` the node was drained
    /// by somebody else.
    pub async fn carry_out(&self, order: &Order, drained: bool) -> Result<Ended, OperationError> {
        let journal = Journal::open_soon(&self.tree)?;
        let waits = match journal.standing()? {
            Some(standing) => match self.waits_for(&standing)? {
                None => return Err(JournalError::Unsettled.into()),
                waits => waits,
            },
            None => None,
        };
        let config = order.documents.config().map_err(OrderError::Config)?;
        let change = change_to(&self.tree, self.host, self.label, (order, &config))?;
        let plan = &order.plan;
        if plan.outcome == PlanOutcome::Nothing && waits.is_none() {
            let telling = Telling::new(self, Progress::new(&order.id, plan.to, &[]));
            self.write(&journal, &telling, &change.ready).await?;
            telling.phase(Phase::Done, "");
            journal.finish()?;
            return Ok(Ended::Done);
        }
        if plan.steps.contains(&Step::Drain) && !drained {
            return Err(OperationError::Drain);
        }
        self.is_able(plan, &config).await?;
        let due = self.os_due(order, &change, waits).await?;
        self.begin(&journal, &order.id, plan, change.ready, due).await
    }

    /// Adopts a node: what is overwritten costs a boot, since nobody planned it.
    pub async fn adopt(
        &self,
        adoption: Adoption<'_>,
        drained: bool,
    ) -> Result<Ended, OperationError> {
        let journal = Journal::open_soon(&self.tree)?;
        let (id, config) = (adoption.ready.record.id.clone(), adoption.config);
        let due = self.os_adopted(&id, &adoption.wish, adoption.what).await?;
        let plan = due.as_ref().map(|_| VerifiablePlan::always_allowed(config, config));
        match adoption.plan.or(plan) {
            Some(_) if !drained => Err(OperationError::Drain),
            Some(plan) => self.begin(&journal, &id, &plan, adoption.ready, due).await,
            None => {
                let telling = Telling::new(self, Progress::new(&id, config, &[]));
                self.write(&journal, &telling, &adoption.ready).await?;
                telling.phase(Phase::Done, "");
                journal.finish()?;
                Ok(Ended::Done)
            }
        }
    }

    /// Writes, and carries out what follows.
    async fn begin(
        &self,
        journal: &Journal,
        id: &str,
        plan: &VerifiablePlan,
        mut ready: Ready<'_>,
        os: Option<Due>,
    ) -> Result<Ended, OperationError> {
        let kept = Kept {
            plan: plan.clone(),
            boot: self.boot()?,
            well: self.well_units(plan).await?,
            kubelet: crate::kubelet::answers().await,
            reached: self.reached().await,
            terms: self.terms.clone(),
            os,
        };
        ready.record.order = serde_json::to_value(&kept)
            .map_err(|error| OperationError::Foreign(error.to_string()))?;
        let telling = Telling::new(self, Progress::new(id, plan.to, &plan.steps));
        telling.phase(Phase::Writing, "");
        // One that waits for a boot is over: what it waits for is a part of this one.
        journal.finish()?;
        if let Err(error) = self.write(journal, &telling, &ready).await {
            match journal.standing() {
                Ok(None) => telling.phase(Phase::Refused, &error.to_string()),
                _ => telling.phase(Phase::Degraded, &not_settled(&error)),
            }
            return Err(error);
        }
        self.go_on_with(journal).await
    }

    /// The API server that this node reaches now, where it has one.
    async fn reached(&self) -> Option<String> {
        let own = || api_server::of_kubelet(&self.tree);
        let address = self.terms.api_server.clone().or_else(own)?;
        api_server::answers(&address).await.then_some(address)
    }

    /// Stages everything, and changes names only with a permit that still holds then.
    async fn write(
        &self,
        journal: &Journal,
        telling: &Telling<'_>,
        ready: &Ready<'_>,
    ) -> Result<(), OperationError> {
        let staged = journal.stage(&ready.record, &ready.new)?;
        let asked = Instant::now();
        let permit = match self.permit(telling, Act::Write).await {
            Ok(permit) => permit,
            Err(error) => {
                journal.settle()?;
                return Err(error);
            }
        };
        if !permit.holds() {
            journal.settle()?;
            return Err(OperationError::Forbidden(ENDED.to_owned()));
        }
        // What was reached long ago says nothing.
        if asked.elapsed() > RECENTLY && self.reached().await.is_none() {
            journal.note(&Note::Unreached)?;
        }
        Ok(journal.place(&ready.record, &staged)?)
    }

    /// Asks for a permit, and says so while it waits.
    async fn permit(&self, telling: &Telling<'_>, act: Act) -> Result<Permit, OperationError> {
        let asked = telling.while_waiting(self.permits.ask(act)).await;
        asked.map_err(OperationError::Forbidden)
    }

    /// Goes on with the operation that stands, after a crash or a boot.
    pub async fn go_on(&self) -> Result<Ended, OperationError> {
        let journal = Journal::open_soon(&self.tree)?;
        self.go_on_with(&journal).await
    }

    async fn go_on_with(&self, journal: &Journal) -> Result<Ended, OperationError> {
        let Some(standing) = journal.standing()? else { return Ok(Ended::Nothing) };
        let settled = journal.settle()?;
        if standing.record.order.is_null() {
            return Ok(nothing_follows(settled));
        }
        let kept: Kept = match serde_json::from_value(standing.record.order.clone()) {
            Ok(kept) => kept,
            Err(error) => return Err(OperationError::Foreign(error.to_string())),
        };
        let progress = Progress::new(&standing.record.id, kept.plan.to, &kept.plan.steps);
        let telling = Telling::new(self, progress);
        let Some(settled) = settled else { return Ok(Ended::Nothing) };
        if settled.direction == Direction::Undone {
            let because = "it was cut short before anything took effect".to_owned();
            telling.phase(Phase::WentBack, &because);
            return Ok(Ended::WentBack { because });
        }
        let boot = self.boot()?;
        let going = Going { node: self, journal, standing, kept, boot, telling };
        match settled.direction {
            Direction::Back => going.back().await,
            Direction::Forward | Direction::Undone if settled.left.is_empty() => {
                going.forward().await
            }
            Direction::Forward | Direction::Undone => {
                let left = tread_model::text::listed(&settled.left, 10);
                going.degraded(&format!("somebody else changed {left} meanwhile")).await
            }
        }
    }

    fn boot(&self) -> Result<String, OperationError> {
        Ok(crate::systemd::boot_id_of(&self.tree)?)
    }
}

/// The end of what was written without a plan: nothing follows from it.
fn nothing_follows(settled: Option<Settled>) -> Ended {
    match settled.map(|settled| settled.direction) {
        None => Ended::Nothing,
        Some(Direction::Forward) => Ended::Done,
        Some(Direction::Undone | Direction::Back) => {
            let because = "it was cut short before anything took effect".to_owned();
            Ended::WentBack { because }
        }
    }
}

fn not_settled(error: &OperationError) -> String {
    format!("{error}; it could not be settled yet: tread node settle, then tread node resume")
}
