//! What jobs found.

use super::jobs::Done;
use super::state::Registry;
use tokio::task::JoinError;
use tokio::time::Instant;

impl Registry {
    /// Notes what a job found.
    pub(super) fn take(&mut self, done: Result<Done, JoinError>) {
        let now = Instant::now();
        match done {
            // It was not needed any more.
            Err(error) if error.is_cancelled() => {}
            Err(error) => tracing::error!("work on a policy was cut off: {error}"),
            Ok(Done::Loaded { uid, recipe, loaded }) => {
                let Some(entry) = self.entries.get_mut(&uid) else { return };
                entry.loaded(*recipe, *loaded, now);
            }
            Ok(Done::Restored { uid, sought, good }) => {
                let Some(entry) = self.entries.get_mut(&uid) else { return };
                if let Some(good) = entry.search.ended(sought, good, now) {
                    entry.last = Some(good);
                }
            }
            Ok(Done::Swept(found)) => self.swept.found(found),
            Ok(Done::Copied { uid, version, place }) => {
                let Some(entry) = self.entries.get_mut(&uid) else { return };
                // One of a time before, in which this replica led as well, is swept away.
                if entry.copying.as_ref().is_some_and(|running| running.what == *version) {
                    entry.copied(*version, place, now);
                }
            }
        }
    }
}
