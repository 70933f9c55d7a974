//! A unit of tread's own that is started.

use super::manager::Manager;
use super::problem::Problem;
use zbus::OwnedObjectPath;

impl Manager {
    /// Starts a unit, or starts it anew if it runs. Its job is not waited for.
    pub async fn start_anew(&self, unit: &str) -> Result<(), Problem> {
        let asked = self.ask("RestartUnit", &(unit, "replace"), self.soon()).await;
        let started = asked.map(|_: OwnedObjectPath| ());
        started
            .map_err(|why| Problem::unanswered(&format!("start {unit}"), self.limits.answer, why))
    }
}
