//! Waiting until a unit has stayed well.

use super::bus::Unanswered;
use super::facts::UnitFacts;
use super::manager::{Changes, Manager};
use super::standing::{Ill, Standing, standing};
use tokio::time::{Instant, timeout_at};
use zbus::OwnedObjectPath;

impl Manager {
    /// Waits until a unit has been well for long enough, or is not. Its state is read when
    /// systemd says that it changed.
    pub(crate) async fn stays_well(
        &self,
        path: &OwnedObjectPath,
        before: u32,
        changes: &mut Changes,
        deadline: Instant,
    ) -> Result<(UnitFacts, Option<Ill>), Unanswered> {
        let end = Instant::now() + self.limits.well_for;
        loop {
            let facts = self.facts_at(path, self.soon()).await?;
            let until = match standing(before, &facts) {
                Standing::Well => return Ok((facts, None)),
                Standing::Ill(ill) => return Ok((facts, Some(ill))),
                Standing::SoFar if Instant::now() >= end => return Ok((facts, None)),
                Standing::SoFar => end,
                Standing::Changing if Instant::now() >= end.max(deadline) => {
                    let ill = Ill::Undecided(facts.sub.clone());
                    return Ok((facts, Some(ill)));
                }
                Standing::Changing => end.max(deadline),
            };
            if let Ok(false) = timeout_at(until, changes.next()).await {
                *changes = self.changes_of(path, self.soon()).await?;
            }
        }
    }
}
