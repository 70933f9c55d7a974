//! That a unit is well that was told nothing, as after a boot.

use super::bus::Unanswered;
use super::facts::{Active, Load, UnitFacts};
use super::manager::{Changes, Manager};
use super::problem::{Problem, What};
use super::standing::Ill;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Why nothing is to be proved of a unit that does not run.
fn is_off(unit: &UnitFacts) -> Option<&'static str> {
    match unit.active {
        Active::Inactive if unit.job.is_some() => None,
        _ if unit.load == Load::Masked => Some("the unit is masked"),
        Active::Inactive if unit.unmet => Some("a condition of the unit is not met"),
        Active::Inactive => Some("the unit is inactive"),
        _ => None,
    }
}

impl Manager {
    /// Waits until a unit has stayed well. How often it fails before that does not count,
    /// as long as it is well in time. For one that does not run and did not fail, there is
    /// a note instead.
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
        let deadline = Instant::now() + limit;
        let path = self.path(unit, deadline).await.map_err(unanswered)?;
        let mut changes = self.changes_of(&path, deadline).await.map_err(unanswered)?;
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
            let stayed = self.stays_well(&path, facts.restarts, &mut changes, deadline).await;
            let Some(ill) = stayed.map_err(unanswered)?.1 else { return Ok(None) };
            if !self.changes_in_time(&path, &mut changes, deadline).await.map_err(unanswered)? {
                return Err(Problem::new(asked, self.at_the_end(ill, limit)));
            }
        }
    }

    fn at_the_end(&self, ill: Ill, limit: Duration) -> What {
        match ill {
            Ill::Undecided(_) => What::TimedOut { limit, cancelled: false },
            ill => What::NotWell(ill),
        }
    }

    async fn changes_in_time(
        &self,
        path: &zbus::OwnedObjectPath,
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
