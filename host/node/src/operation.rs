//! One operation on a node: from the order to a node that is well, through crashes and
//! boots. What has to be known for that is in the journal; nothing else survives.

mod act;
mod prove;

use crate::change::{Adoption, Change, Order, OrderError, change};
use crate::desired::Host;
use crate::journal::{Direction, Journal, JournalError, Note, Settled, Standing};
use crate::prepare::{Label, Ready};
use crate::progress::{Phase, Progress, Reporter, StepState};
use crate::systemd::{Manager, Problem, Reboot, Unable};
use crate::tree::{PathError, Tree};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::io;
use std::time::Duration;
use tread_model::plan::{PlanOutcome, Step, VerifiablePlan};

/// The most boots that an operation asks for: one for its plan or for a step that failed,
/// and one more to go back.
const MOST_BOOTS: usize = 2;

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
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { proof: Duration::from_secs(600), reboot: Reboot::default() }
    }
}

/// What a permit is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act<'a> {
    /// The first name changes.
    Write,
    /// A unit is told.
    Unit(&'a str),
    /// The node boots.
    Boot,
}

/// Who says whether something may be done now.
pub trait Permits {
    /// Whether it may be done now; otherwise why not.
    fn ask(&self, act: Act<'_>) -> Result<(), String>;
}

/// Nobody else decides: everything may be done at any time.
pub struct Alone;

impl Permits for Alone {
    fn ask(&self, _: Act<'_>) -> Result<(), String> {
        Ok(())
    }
}

/// How an operation ended, as far as this process is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// There was none.
    Nothing,
    /// The node has the new config, and is well.
    Done,
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
    /// There is nothing on this host that could do it.
    #[error("{0} cannot be changed on this host by tread yet; nothing was touched")]
    NoTool(String),
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
}

/// What only a boot brings into effect, by tools that are not there yet.
const BY_TOOLS: [&str; 4] = ["kernel-arguments", "kernel-type", "os-image", "extensions"];

/// Whether all that differs is written by tread itself.
pub(crate) fn needs_files_only(change: &Change<'_>) -> Result<(), OperationError> {
    let by_tools = |id: &&String| BY_TOOLS.contains(&id.as_str()) || id.starts_with("password:");
    match change.differs.iter().find(by_tools) {
        Some(id) => Err(OperationError::NoTool(id.clone())),
        None => Ok(()),
    }
}

impl Node<'_> {
    /// Carries an order out, as far as the next boot. With `drained` the node was drained
    /// by somebody else.
    pub async fn carry_out(&self, order: &Order, drained: bool) -> Result<Ended, OperationError> {
        let journal = Journal::open(&self.tree)?;
        if journal.standing()?.is_some() {
            return Err(JournalError::Unsettled.into());
        }
        let change = change(&self.tree, self.host, self.label, order)?;
        needs_files_only(&change)?;
        let plan = &order.plan;
        if plan.outcome == PlanOutcome::Nothing {
            journal.write(&change.ready.record, &change.ready.new)?;
            journal.finish()?;
            return Ok(Ended::Done);
        }
        if plan.steps.contains(&Step::Drain) && !drained {
            return Err(OperationError::Drain);
        }
        self.is_able(plan, &order.documents).await?;
        self.begin(&journal, &order.id, plan, change.ready).await
    }

    /// Adopts a node: what is overwritten costs a boot, since nobody planned it.
    pub async fn adopt(
        &self,
        adoption: Adoption<'_>,
        drained: bool,
    ) -> Result<Ended, OperationError> {
        let journal = Journal::open(&self.tree)?;
        match adoption.plan {
            Some(_) if !drained => Err(OperationError::Drain),
            Some(plan) => {
                let id = adoption.ready.record.id.clone();
                self.begin(&journal, &id, &plan, adoption.ready).await
            }
            None => {
                journal.write(&adoption.ready.record, &adoption.ready.new)?;
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
    ) -> Result<Ended, OperationError> {
        let kept = Kept {
            plan: plan.clone(),
            boot: self.boot()?,
            well: self.well_units(plan).await?,
            kubelet: crate::kubelet::answers().await,
        };
        ready.record.order = serde_json::to_value(&kept)
            .map_err(|error| OperationError::Foreign(error.to_string()))?;
        self.permits.ask(Act::Write).map_err(OperationError::Forbidden)?;
        let progress = Progress::new(id, plan.to, &plan.steps);
        let telling = Telling { node: self, progress: RefCell::new(progress) };
        telling.phase(Phase::Writing, "");
        if let Err(error) = journal.write(&ready.record, &ready.new) {
            match journal.standing() {
                Ok(None) => telling.phase(Phase::WentBack, &error.to_string()),
                _ => telling.phase(Phase::Degraded, &not_settled(&error)),
            }
            return Err(error.into());
        }
        self.go_on_with(journal).await
    }

    /// Goes on with the operation that stands, after a crash or a boot.
    pub async fn go_on(&self) -> Result<Ended, OperationError> {
        let journal = Journal::open(&self.tree)?;
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
        let telling = Telling { node: self, progress: RefCell::new(progress) };
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
        let read = |path: &str| {
            let text = self.tree.read(&format!("/{path}"), 4096).map_err(io::Error::other)?;
            let text = text.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
            String::from_utf8(text).map_err(io::Error::other)
        };
        let failed = |error| PathError::io(crate::systemd::BOOT_ID, error);
        Ok(crate::systemd::boot_id(read).map_err(failed)?)
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

fn not_settled(error: &JournalError) -> String {
    format!("{error}; it could not be settled yet: tread node settle, then tread node resume")
}

/// An operation that is gone on with.
struct Going<'g> {
    node: &'g Node<'g>,
    journal: &'g Journal,
    standing: Standing,
    kept: Kept,
    /// This boot.
    boot: String,
    telling: Telling<'g>,
}

impl Going<'_> {
    /// The boots in which one was asked for.
    fn asked(&self) -> Vec<&str> {
        let asked = self.standing.notes.iter().filter_map(|note| match note {
            Note::BootAsked { boot } => Some(boot.as_str()),
            _ => None,
        });
        let mut asked: Vec<&str> = asked.collect();
        asked.dedup();
        asked
    }

    /// Whether the node booted since the operation began: a boot does all that steps do.
    fn was_booted(&self) -> bool {
        self.kept.boot != self.boot
    }

    async fn forward(mut self) -> Result<Ended, OperationError> {
        if self.asked().contains(&self.boot.as_str()) {
            return self.boots("").await;
        }
        if !self.was_booted() {
            self.telling.phase(Phase::Acting, "");
            if let Err(why) = self.act().await? {
                return self.boots(&why).await;
            }
            if self.kept.plan.steps.contains(&Step::Reboot) {
                return self.boots("").await;
            }
        }
        self.telling.absorbed();
        self.telling.phase(Phase::Proving, "");
        match self.proof().await? {
            Ok(()) => {
                self.journal.finish()?;
                self.telling.phase(Phase::Done, "");
                Ok(Ended::Done)
            }
            // Without a boot that was asked for, a boot is what comes first (law 9).
            Err(why) if !self.was_booted() => self.boots(&why).await,
            Err(why) => {
                self.journal.take_back(&why)?;
                self.boots(&why).await
            }
        }
    }

    async fn back(self) -> Result<Ended, OperationError> {
        let because = self.standing.notes.iter().rev().find_map(|note| match note {
            Note::Back { because } => Some(because.clone()),
            _ => None,
        });
        let because = because.unwrap_or_default();
        let booted_since = self.asked().last().is_some_and(|asked| *asked != self.boot);
        // Files went back after the last boot that was asked for, unless one was asked for
        // since: the note of going back stands before that of the boot.
        let position = |wanted: fn(&Note) -> bool| self.standing.notes.iter().rposition(wanted);
        let back_at = position(|note| matches!(note, Note::Back { .. }));
        let boot_at = position(|note| matches!(note, Note::BootAsked { .. }));
        if boot_at < back_at || !booted_since {
            return self.boots(&because).await;
        }
        self.telling.phase(Phase::Proving, &because);
        match self.proof().await? {
            Ok(()) => {
                self.journal.finish()?;
                self.telling.phase(Phase::WentBack, &because);
                Ok(Ended::WentBack { because })
            }
            Err(why) => {
                let why = format!("{because}; with the old config: {why}");
                self.degraded(&why).await
            }
        }
    }

    /// Asks for a boot, if there may be one more.
    async fn boots(self, because: &str) -> Result<Ended, OperationError> {
        if !self.asked().contains(&self.boot.as_str()) {
            if self.asked().len() >= MOST_BOOTS {
                let why = format!("{because}; {MOST_BOOTS} boots were asked for already");
                return self.degraded(&why).await;
            }
            self.node.permits.ask(Act::Boot).map_err(OperationError::Forbidden)?;
            self.journal.note(&Note::BootAsked { boot: self.boot.clone() })?;
        }
        self.telling.phase(Phase::Booting, because);
        let note = |text: String| self.telling.message(&text);
        let failed = self.node.manager.reboot(self.node.patience.reboot, note, self.node.kernel);
        let problem = failed.await;
        self.degraded(&problem.to_string()).await
    }

    async fn degraded(self, because: &str) -> Result<Ended, OperationError> {
        // The operation stands: what it began with can still be gone back to.
        self.telling.phase(Phase::Degraded, because);
        Ok(Ended::Degraded { because: because.to_owned() })
    }
}

/// Tells how far it is.
struct Telling<'t> {
    node: &'t Node<'t>,
    progress: RefCell<Progress>,
}

impl Telling<'_> {
    fn tell(&self, change: impl FnOnce(&mut Progress)) {
        let mut progress = self.progress.borrow_mut();
        change(&mut progress);
        // Whoever cannot be told does not stop it.
        let _ = progress.write(&self.node.tree);
        self.node.reporter.report(&progress);
    }

    fn phase(&self, phase: Phase, message: &str) {
        self.tell(|progress| {
            progress.phase = phase;
            progress.message = tread_model::text::one_line_within(message, 4096).0;
        });
    }

    fn message(&self, message: &str) {
        self.tell(|progress| progress.message = message.to_owned());
    }

    fn absorbed(&self) {
        self.tell(|progress| {
            for step in &mut progress.steps {
                if matches!(step.state, StepState::Waiting | StepState::Running) {
                    step.state = StepState::Absorbed;
                }
            }
        });
    }
}
