//! The steps `reload` and `restart`.

use super::bus::Unanswered;
use super::choose::{Ask, Choice, choose};
use super::facts::UnitFacts;
use super::job::NoJob;
use super::job_result::JobResult;
use super::manager::{Changes, Manager};
use super::problem::{Problem, What};
use super::standing::Ill;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use zbus::OwnedObjectPath;

/// How a step ended that did not fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was done, and the unit stayed well: with a note where something else was done
    /// than the plan says.
    Done {
        /// What was done.
        did: Ask,
        /// Why it is not what was asked.
        note: Option<String>,
    },
    /// There was nothing to do, for this reason.
    Skipped {
        /// As `the unit is masked`.
        note: String,
    },
}

/// One step while it is carried out.
struct UnitStep<'m> {
    manager: &'m Manager,
    unit: &'m str,
    ask: Ask,
    limit: Duration,
    deadline: Instant,
}

impl Manager {
    /// Reloads or restarts a unit as it is right for the state that it is in, and waits
    /// until it has stayed well. The limit is for the job; the time in which the unit has
    /// to stay well comes after it.
    pub async fn unit_step(
        &self,
        ask: Ask,
        unit: &str,
        limit: Duration,
    ) -> Result<Outcome, Problem> {
        let deadline = Instant::now() + limit;
        let outcome = UnitStep { manager: self, unit, ask, limit, deadline }.carry_out().await;
        match outcome {
            Err(mut problem) if problem.what.is_of_the_unit() => {
                problem.excerpt = self.excerpt_of(unit).await;
                Err(problem)
            }
            outcome => outcome,
        }
    }
}

impl UnitStep<'_> {
    fn problem(&self, what: What) -> Problem {
        Problem::new(format!("{} {}", self.ask, self.unit), what)
    }

    fn unanswered(&self, why: Unanswered) -> Problem {
        Problem::unanswered(&format!("{} {}", self.ask, self.unit), self.limit, why)
    }

    async fn carry_out(&self) -> Result<Outcome, Problem> {
        let manager = self.manager;
        let path =
            manager.path(self.unit, self.deadline).await.map_err(|it| self.unanswered(it))?;
        let mut changes =
            manager.changes_of(&path, self.deadline).await.map_err(|it| self.unanswered(it))?;
        // A job whose end was lost with the bus is asked for once more, where it is not
        // known to have been done.
        let mut again = true;
        loop {
            let (choice, before) = self.choice(&path, &mut changes).await?;
            let (did, note) = match choice {
                Choice::Do(did, note) => (did, note),
                Choice::Skip(note) => return Ok(Outcome::Skipped { note: note.to_owned() }),
                Choice::Missing => return Err(self.problem(What::Missing)),
                Choice::Unusable(state) => return Err(self.problem(What::Unusable(state))),
                Choice::CannotReload => return Err(self.problem(What::CannotReload)),
                Choice::Wait => return Err(self.late(false)),
            };
            match self.job(did, &path, &before).await? {
                JobResult::Done => {}
                JobResult::Unheard if again => {
                    again = false;
                    if !self.was_restarted(did, &path, &before).await? {
                        continue;
                    }
                }
                // It ended or was masked a moment ago; what is chosen now says so.
                JobResult::Skipped if again => {
                    again = false;
                    continue;
                }
                result => return Err(self.problem(What::Job(result))),
            }
            let restarts = if did == Ask::Reload { before.restarts } else { 0 };
            let stayed = manager.stays_well(&path, restarts, &mut changes, self.deadline).await;
            return match stayed.map_err(|it| self.unanswered(it))? {
                (_, None) => Ok(Outcome::Done { did, note: note.map(str::to_owned) }),
                (_, Some(Ill::Undecided(_))) => Err(self.late(false)),
                (_, Some(ill)) => Err(self.problem(What::NotWell(ill))),
            };
        }
    }

    fn late(&self, cancelled: bool) -> Problem {
        self.problem(What::TimedOut { limit: self.limit, cancelled })
    }

    /// What is to be done, once the unit is somewhere.
    async fn choice(
        &self,
        path: &OwnedObjectPath,
        changes: &mut Changes,
    ) -> Result<(Choice, UnitFacts), Problem> {
        loop {
            let facts = self.manager.facts_at(path, self.deadline).await;
            let facts = facts.map_err(|it| self.unanswered(it))?;
            let choice = choose(self.ask, &facts);
            if choice != Choice::Wait {
                return Ok((choice, facts));
            }
            match timeout_at(self.deadline, changes.next()).await {
                Err(_) => return Ok((Choice::Wait, facts)),
                Ok(true) => {}
                Ok(false) => {
                    let anew = self.manager.changes_of(path, self.deadline).await;
                    *changes = anew.map_err(|it| self.unanswered(it))?;
                }
            }
        }
    }

    async fn job(
        &self,
        did: Ask,
        path: &OwnedObjectPath,
        before: &UnitFacts,
    ) -> Result<JobResult, Problem> {
        let method = match did {
            Ask::Reload => "ReloadUnit",
            Ask::Restart => "RestartUnit",
        };
        let id = before.id.as_str();
        let ended =
            self.manager.run_job((path, id), method, &(self.unit, "replace"), self.deadline).await;
        ended.map_err(|why| match why {
            NoJob::Unanswered(why) => self.unanswered(why),
            NoJob::Late { cancelled } => self.late(cancelled),
        })
    }

    /// Whether a restart was done of whose end nothing was heard: the unit runs under
    /// another name in the journal than before.
    async fn was_restarted(
        &self,
        did: Ask,
        path: &OwnedObjectPath,
        before: &UnitFacts,
    ) -> Result<bool, Problem> {
        let facts = self.manager.facts_at(path, self.deadline).await;
        let facts = facts.map_err(|it| self.unanswered(it))?;
        Ok(did == Ask::Restart && facts.invocation != before.invocation)
    }
}
