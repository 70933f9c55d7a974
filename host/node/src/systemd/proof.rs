//! That a unit is well that was told nothing, as after a boot.

use super::bus::Unanswered;
use super::facts::{Active, Load, UnitFacts};
use super::manager::{Changes, Manager};
use super::problem::{Problem, What};
use super::standing::Ill;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use zbus::OwnedObjectPath;

/// The start of a unit may wait for other units for so many times the limit that the unit itself has:
/// networks and disks of other machines come late after a power cut.
const QUEUED: u32 = 3;

/// Why nothing is to be proved of a unit that does not run, and need not. One that is enabled and was
/// not even begun in this boot has to: what it depends on failed.
fn is_off(unit: &UnitFacts) -> Option<&'static str> {
    let needs_to_run = unit.file_state.starts_with("enabled")
        && unit.invocation.is_empty()
        && !unit.runs_once()
        && !unit.triggered;
    match unit.active {
        Active::Inactive if unit.job.is_some() => None,
        _ if unit.load == Load::Masked => Some("the unit is masked"),
        Active::Inactive if unit.unmet => Some("a condition of the unit is not met"),
        Active::Inactive if needs_to_run => None,
        Active::Inactive => Some("the unit is inactive"),
        _ => None,
    }
}

/// Why a unit is not well that was to be started by the boot.
fn of_this_boot(ill: Ill, unit: &UnitFacts) -> Ill {
    match ill {
        Ill::Ended if unit.invocation.is_empty() => Ill::NotStarted,
        ill => ill,
    }
}

/// Whether its start waits for the job of another unit: it has not run in this boot yet.
fn is_queued(unit: &UnitFacts) -> bool {
    unit.active == Active::Inactive && unit.job.is_some()
}

impl Manager {
    /// Waits until a unit has no job, whatever came of it, and no longer than this.
    pub async fn until_it_has_no_job(&self, unit: &str, limit: Duration) -> Result<(), Problem> {
        let deadline = Instant::now() + limit;
        let waited = async {
            let path = self.path(unit, deadline).await?;
            let mut changes = self.changes_of(&path, deadline).await?;
            while self.facts_at(&path, self.soon()).await?.job.is_some()
                && self.changes_in_time(&path, &mut changes, deadline).await?
            {}
            Ok(())
        };
        let asked = format!("look-at {unit}");
        waited.await.map_err(|why| Problem::unanswered(&asked, limit, why))
    }

    /// Waits until a unit has stayed well. How often it fails before that does not count,
    /// as long as it is well in time. For one that does not run, and need not, there is a note
    /// instead.
    pub async fn proves_well(
        &self,
        unit: &str,
        limit: Duration,
    ) -> Result<Option<&'static str>, Problem> {
        let mut proven = self.prove(unit, limit).await;
        if let Err(problem) = &mut proven
            && problem.what.is_of_the_unit()
        {
            problem.excerpt = self.excerpt_of(unit).await;
        }
        proven
    }

    async fn prove(&self, unit: &str, limit: Duration) -> Result<Option<&'static str>, Problem> {
        let asked = format!("prove {unit}");
        let unanswered = |why: Unanswered| Problem::unanswered(&asked, limit, why);
        let queued_at_most = limit.saturating_mul(QUEUED);
        let last = Instant::now() + queued_at_most;
        let mut deadline = Instant::now() + limit;
        let path = self.path(unit, deadline).await.map_err(unanswered)?;
        let mut changes = self.changes_of(&path, deadline).await.map_err(unanswered)?;
        let mut was_queued = false;
        loop {
            let facts = self.facts_at(&path, self.soon()).await.map_err(unanswered)?;
            match &facts.load {
                Load::NotFound => return Err(Problem::new(asked, What::Missing)),
                Load::Unusable(why) => {
                    return Err(Problem::new(asked, What::Unusable(why.clone())));
                }
                Load::Loaded | Load::Masked => {}
            }
            if let Some(note) = is_off(&facts) {
                return Ok(Some(note));
            }
            let is_queued = is_queued(&facts);
            if was_queued && !is_queued {
                // It begins now.
                deadline = Instant::now() + limit;
            }
            was_queued = is_queued;
            let ill = match is_queued {
                true => None,
                false => {
                    let stayed =
                        self.stays_well(&path, facts.restarts, &mut changes, deadline).await;
                    let (facts, Some(ill)) = stayed.map_err(unanswered)? else { return Ok(None) };
                    Some(of_this_boot(ill, &facts))
                }
            };
            let until = if is_queued { last } else { deadline };
            if !self.changes_in_time(&path, &mut changes, until).await.map_err(unanswered)? {
                let what = match ill {
                    Some(Ill::Undecided(_)) => What::TimedOut { limit, cancelled: false },
                    Some(ill) => What::NotWell(ill),
                    None => {
                        let behind = self.before(facts.job).await;
                        What::Queued { limit: queued_at_most, behind }
                    }
                };
                return Err(Problem::new(asked, what));
            }
        }
    }

    /// The units whose jobs have to end before this one begins; none where nobody knows.
    async fn before(&self, job: Option<u32>) -> Vec<String> {
        let Some(job) = job else { return Vec::new() };
        let before = self.ask("GetJobBefore", &(job,), self.soon()).await;
        let before: Vec<(u32, String, String, String, OwnedObjectPath, OwnedObjectPath)> =
            before.unwrap_or_default();
        before.into_iter().map(|(_, unit, ..)| unit).collect()
    }

    async fn changes_in_time(
        &self,
        path: &OwnedObjectPath,
        changes: &mut Changes,
        deadline: Instant,
    ) -> Result<bool, Unanswered> {
        match timeout_at(deadline, changes.next()).await {
            Err(_) => return Ok(false),
            Ok(true) => {}
            Ok(false) => *changes = self.changes_of(path, self.soon()).await?,
        }
        Ok(Instant::now() < deadline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_that_is_enabled_has_to_run_unless_it_runs_once_or_is_started_when_it_is_needed() {
        let unit = |state: &str, change: fn(&mut UnitFacts)| {
            let (load, file_state) = (Load::Loaded, state.to_owned());
            let mut unit = UnitFacts { load, file_state, ..UnitFacts::default() };
            change(&mut unit);
            unit
        };
        let as_is = |_: &mut UnitFacts| {};
        let (inactive, unmet) = ("the unit is inactive", "a condition of the unit is not met");
        for (unit, expected) in [
            (unit("enabled", as_is), None),
            (unit("enabled-runtime", as_is), None),
            (unit("enabled", |it| it.unmet = true), Some(unmet)),
            (unit("enabled", |it| it.invocation = "1".to_owned()), Some(inactive)),
            (unit("disabled", as_is), Some(inactive)),
            (unit("static", as_is), Some(inactive)),
            (unit("static", |it| it.unmet = true), Some(unmet)),
            (unit("enabled", |it| it.triggered = true), Some(inactive)),
            (unit("enabled", |it| it.kind = "oneshot".to_owned()), Some(inactive)),
            (unit("enabled", |it| (it.kind, it.remains) = ("oneshot".to_owned(), true)), None),
            (unit("masked", |it| it.load = Load::Masked), Some("the unit is masked")),
            (unit("disabled", |it| it.job = Some(1)), None),
            (unit("disabled", |it| it.active = Active::Active), None),
        ] {
            assert_eq!(is_off(&unit), expected, "{unit:?}");
        }
    }
}
