//! One operation on a node: from the order to a node that is well, through crashes and
//! boots. What has to be known for that is in the journal; nothing else survives.

mod act;
mod anchors;
mod cut_off;
mod going;
mod half_read;
mod node;
mod os;
mod own_units;
mod prove;
mod reached;
mod reporting;
mod tries;

use crate::api_server::Server;
use crate::change::{Adopt, Adoption, Checked, Order, OrderError, change_to};
use crate::drift::is_of_others;
use crate::journal::{Direction, Journal, JournalError, Note, Settled};
use crate::json::place;
use crate::os::{Due, IDS};
use crate::permits::{Act, NoPermit, Permit};
use crate::prepare::{Pinned, Ready, hold};
use crate::progress::{Phase, Progress, StepState};
use crate::terms::Asked;
use going::{Going, note_degraded, waits_again, with};
pub use half_read::why_half_read;
pub use node::{Ended, Node, OperationError, Patience, terms_of};
use node::{Kept, instead};
pub use os::drift_of_os;
use reached::BEFORE_WRITE;
use reporting::Reporting;
use std::time::Instant;
use tread_model::plan::{PlanOutcome, Step, VerifiablePlan};
pub use tries::{note_boot, why_back_early};

/// Drain and uncordon are a controller's: whoever carries a plan out with them is told that it
/// was done, or need not be.
pub(crate) fn needs_nobody_else(
    plan: &VerifiablePlan,
    drained: bool,
) -> Result<(), OperationError> {
    let is_of_others = |step: &Step| matches!(step, Step::Drain | Step::Uncordon);
    match !drained && plan.steps.iter().any(is_of_others) {
        true => Err(OperationError::Drain),
        false => Ok(()),
    }
}

/// Whether all that differs is in files: the tree of another system has nothing else.
pub(crate) fn needs_files_only(change: &Checked<'_>) -> Result<(), OperationError> {
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
        self.settle_own_units(&journal)?;
        let waits = self.waiting(&journal)?;
        let config = order.documents.config().map_err(OrderError::Config)?;
        let mut change = change_to(&self.tree, self.host, self.label, (order, &config))?;
        let plan = &order.plan;
        if plan.outcome == PlanOutcome::Nothing && waits.is_none() {
            let reporting = Reporting::new(self, Progress::new(&order.id, plan.to, &[]));
            self.write(&journal, &reporting, (&change.ready, None)).await?;
            reporting.phase(Phase::Done, "");
            journal.finish()?;
            return Ok(Ended::Done);
        }
        needs_nobody_else(plan, drained)?;
        let always = VerifiablePlan::always_allowed(plan.from, plan.to);
        let (plan, why) = match (self.is_able(plan, &config).await, self.terms.permits) {
            // Never a gentler plan.
            (Err(OperationError::Unable(why)), Asked::Nobody) if drained => {
                (&always, instead(&why))
            }
            // Whoever gave the order drains the node for the boot that it asks for (law 6).
            (Err(OperationError::Unable(why)), Asked::Agent) => (plan, instead(&why)),
            (able, _) => {
                able?;
                (plan, String::new())
            }
        };
        let due = self.os_due(order, &change, waits).await?;
        if self.own_units_first(&journal, &order.others)? {
            change = change_to(&self.tree, self.host, self.label, (order, &config))?;
        }
        self.begin(&journal, (plan, &why), (change.ready, change.pinned), due).await
    }

    /// What would forbid to carry an order out: nothing is changed.
    /// Where the node would boot instead, it is said why.
    pub async fn would_carry_out(
        &self,
        order: &Order,
        drained: bool,
    ) -> Result<(Checked<'static>, Option<String>), OperationError> {
        let journal = Journal::open_soon(&self.tree)?;
        self.waiting(&journal)?;
        let config = order.documents.config().map_err(OrderError::Config)?;
        let change = change_to(&self.tree, self.host, self.label, (order, &config))?;
        let ids: Vec<&str> = IDS.into_iter().filter(|id| change.has(id)).collect();
        if !ids.is_empty() {
            self.os(&order.id).tool_for(&ids, &change.from, &change.to)?;
        }
        match (self.is_able(&order.plan, &config).await, self.terms.permits) {
            (Err(OperationError::Unable(why)), permits) if drained || permits == Asked::Agent => {
                Ok((change, Some(instead(&why))))
            }
            (able, _) => able.map(|()| (change, None)),
        }
    }

    /// Adopts a node: what is overwritten costs a boot, since nobody planned it.
    pub async fn adopt(
        &self,
        adoption: Adoption<'_>,
        drained: bool,
    ) -> Result<Ended, OperationError> {
        let journal = Journal::open_soon(&self.tree)?;
        let waits = self.waiting(&journal)?;
        if adoption.plan.is_some() && !drained {
            return Err(OperationError::Drain);
        }
        let config = adoption.config;
        // What a machine could not boot with is brought, where it may boot for that.
        let what = match drained && adoption.is_booted && adoption.what == Adopt::Ask {
            true => Adopt::Overwrite,
            false => adoption.what,
        };
        let due = self.os_adopted(&adoption, (what, drained), waits).await?;
        let plan = due.as_ref().map(|_| VerifiablePlan::always_allowed(config, config));
        match adoption.plan.or(plan) {
            Some(plan) => {
                self.begin(&journal, (&plan, ""), (adoption.ready, adoption.pinned), due).await
            }
            None => {
                let id = adoption.ready.record.id.clone();
                let reporting = Reporting::new(self, Progress::new(&id, config, &[]));
                self.write(&journal, &reporting, (&adoption.ready, None)).await?;
                reporting.phase(Phase::Done, "");
                journal.finish()?;
                Ok(Ended::Done)
            }
        }
    }

    /// Writes, and carries out what follows.
    async fn begin(
        &self,
        journal: &Journal,
        (plan, instead): (&VerifiablePlan, &str),
        (mut ready, pinned): (Ready<'_>, Pinned),
        os: Option<Due>,
    ) -> Result<Ended, OperationError> {
        if os.is_some() {
            hold(&self.tree, &mut ready, pinned, self.label)?;
        }
        // Without a permit, what waits for a boot stands as it is.
        ready.record.takes_along = journal.standing()?.map(|waits| waits.record.id);
        let permit = match &ready.record.takes_along {
            Some(_) => Some(self.permits.ask(Act::Write).await.map_err(not_permitted)?),
            None => None,
        };
        let (reached, warning) = self.asked_before(BEFORE_WRITE).await;
        let kept = Kept {
            plan: plan.clone(),
            instead: instead.to_owned(),
            boot: self.boot()?,
            well: self.well_units(plan).await?,
            kubelet: crate::kubelet::answers().await,
            proven: reached.as_ref().is_some_and(Server::is_known),
            reached: reached.map(|server| server.address),
            terms: self.terms.clone(),
            os,
        };
        ready.record.order = serde_json::to_value(&kept)
            .map_err(|error| OperationError::Foreign(error.to_string()))?;
        let told = Progress::read(&self.tree).ok().flatten();
        let reporting = Reporting::new(
            self,
            Progress::new(&ready.record.id, plan.to, &plan.steps).by(plan.digest),
        );
        reporting.update(|it| it.warning = warning.unwrap_or_default());
        reporting.phase(Phase::Writing, instead);
        let writes = plan.steps.iter().position(|step| *step == Step::Write);
        reporting.update(|it| writes.iter().for_each(|index| it.begins(*index)));
        if let Err(error) = self.write(journal, &reporting, (&ready, permit)).await {
            reporting.update(|it| {
                writes.iter().for_each(|index| it.ends(*index, StepState::Failed, ""))
            });
            match journal.standing() {
                Ok(None) => reporting.phase(Phase::Refused, &error.to_string()),
                // What waits for a boot does so as before, and the status says it again.
                Ok(Some(waits)) if waits.record.id != ready.record.id => {
                    let told = told.filter(|told| told.operation == waits.record.id);
                    let told = told.or_else(|| waits_again(&self.tree, &waits));
                    // Where nobody can be told, that does not stop it.
                    let _ = told.map(|told| told.write(&self.tree));
                }
                _ => reporting.phase(Phase::Degraded, &not_settled(&error)),
            }
            return Err(error);
        }
        reporting.update(|it| writes.iter().for_each(|index| it.ends(*index, StepState::Done, "")));
        self.go_on_with(journal).await
    }

    /// Stages everything, and changes names only with a permit that still holds then: the one at
    /// hand, or another one.
    async fn write(
        &self,
        journal: &Journal,
        reporting: &Reporting<'_>,
        (ready, permit): (&Ready<'_>, Option<Permit>),
    ) -> Result<(), OperationError> {
        let staged = journal.stage(&ready.record, &ready.new)?;
        let asked = Instant::now();
        let permit = match permit.filter(Permit::holds) {
            Some(permit) => Ok(permit),
            None => self.permit(reporting, Act::Write).await,
        };
        let permit = match permit {
            Ok(permit) => permit,
            Err(error) => {
                journal.settle()?;
                return Err(error);
            }
        };
        // After a long wait, what was found before the permit was asked for counts no more.
        if asked.elapsed() >= self.patience.recently {
            let (reached, warning) = self.asked_before(BEFORE_WRITE).await;
            journal.note(&match reached {
                Some(server) => {
                    Note::Reached { proven: server.is_known(), address: server.address }
                }
                None => Note::Unreached,
            })?;
            reporting.update(|it| it.warning = warning.unwrap_or_default());
        }
        Ok(journal.place_if(&ready.record, &staged, || permit.holds())?)
    }

    /// Asks for a permit, and says so while it waits.
    async fn permit(&self, reporting: &Reporting<'_>, act: Act) -> Result<Permit, OperationError> {
        let asked = reporting.while_waiting(self.permits.ask(act)).await;
        asked.map_err(not_permitted)
    }

    /// Goes on with the operation that stands, after a crash or a boot. What waited for a boot before it
    /// stands again where this one comes to nothing, and is gone on with on terms of its own.
    pub async fn go_on(&self) -> Result<Ended, OperationError> {
        let journal = Journal::open_soon(&self.tree)?;
        self.go_on_with(&journal).await
    }

    async fn go_on_with(&self, journal: &Journal) -> Result<Ended, OperationError> {
        let Some(mut standing) = journal.standing()? else { return Ok(Ended::Nothing) };
        half_read::note(&self.tree, journal, &mut standing);
        if standing.record.order.is_null() {
            let ended = nothing_follows(journal.settle()?);
            if ended == Ended::Done {
                Progress::ends_here(&self.tree, &standing.record.id, Phase::Done, "")?;
            }
            return Ok(ended);
        }
        let kept: Kept = match serde_json::from_value(standing.record.order.clone()) {
            Ok(kept) => kept,
            Err(error) => {
                journal.settle()?;
                return Err(OperationError::Foreign(place(&error)));
            }
        };
        let (id, plan) = (standing.record.id.clone(), kept.plan.clone());
        let known = || Progress::of(&self.tree, &id, plan.to, &plan.steps).by(plan.digest);
        let (boot, reporting) = (self.boot()?, Reporting::new(self, known()));
        let (covered, left) = (None, Vec::new());
        let mut going =
            Box::new(Going { node: self, journal, standing, kept, boot, reporting, covered, left });
        // Its names are not to be put into the `/etc` of another deployment.
        if going.standing.direction() == Direction::Forward
            && let Some(why) = going.other_image().await
        {
            return going.degraded(&why).await;
        }
        let settled = match journal.settle() {
            // It is in the `/etc` of the deployment in which it was staged.
            Err(JournalError::Away { stage }) => {
                return match going.elsewhere(&format!("{stage} is not there")) {
                    Some(why) => going.degraded(&why).await,
                    None => Err(JournalError::Away { stage }.into()),
                };
            }
            settled => settled?,
        };
        let Some(settled) = settled else { return Ok(Ended::Nothing) };
        if settled.direction == Direction::Undone {
            let because = with("it was cut short before anything took effect", settled.covered());
            going.reporting.phase(Phase::WentBack, &because);
            return Ok(Ended::WentBack { because });
        }
        // What was put back is noted.
        if settled.changed
            && let Some(standing) = journal.standing()?
        {
            going.standing = standing;
        }
        going.covered = settled.covered();
        // What others own is theirs to change at any time.
        going.left = settled.left;
        going.left.retain(|path| !is_of_others(path));
        let ended = match settled.direction {
            Direction::Back => going.back().await,
            Direction::Forward | Direction::Undone if going.left.is_empty() => {
                going.forward().await
            }
            Direction::Forward | Direction::Undone => going.differs().await,
        };
        match ended {
            // It stands as it is: whoever is to mend the node finds what was there before.
            Err(OperationError::Over(because)) => {
                note_degraded(journal, &self.boot()?);
                Reporting::new(self, known()).phase(Phase::Degraded, &because);
                Ok(Ended::Degraded { because })
            }
            ended => ended,
        }
    }

    fn boot(&self) -> Result<String, OperationError> {
        Ok(crate::systemd::boot_id_of(&self.tree)?)
    }
}

fn not_permitted(refused: NoPermit) -> OperationError {
    match refused {
        NoPermit::NotNow(why) => OperationError::Forbidden(why),
        NoPermit::Never(why) => OperationError::Over(why),
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
