//! What jobs found, and when what failed is tried again.

use super::Registry;
use super::entry::{Copy, NotRestored, may_pass};
use super::jobs::Done;
use crate::policies::choose::Attempt;
use k8s_openapi::jiff::Timestamp;
use std::time::Duration;
use tokio::task::JoinError;
use tokio::time::Instant;
use tread_kube::asking::pause;

/// Before a version that failed for lack of time or room is tried again: at
/// first, and at most.
const TRY_AGAIN: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(3600));

/// The same of the last good version: without it, what it claims costs reboots.
const RESTORE_AGAIN: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(600));

/// Before a copy that could not be written is tried again.
pub(super) const COPY_AGAIN: Duration = Duration::from_secs(30);

impl Registry {
    /// Notes what a job found.
    pub(super) fn take(&mut self, done: Result<Done, JoinError>) {
        match done {
            // It was not needed any more.
            Err(error) if error.is_cancelled() => {}
            Err(error) => tracing::error!("work on a policy was cut off: {error}"),
            Ok(Done::Loaded { uid, recipe, loaded }) => {
                let Some(entry) = self.entries.get_mut(&uid) else { return };
                if entry.loading.as_ref().is_none_or(|running| running.what != *recipe) {
                    return;
                }
                // It may only be bad since its ConfigMap was written meanwhile.
                let is_bad = matches!(loaded.attempt, Attempt::Bad { .. });
                let before = entry.newest.as_ref().map(|(before, _)| before);
                if entry.outdated && is_bad && before.is_some_and(|it| it.is_as_before(&recipe)) {
                    entry.loading = None;
                    return;
                }
                entry.again = match (&loaded.attempt, loaded.retry) {
                    (_, Some(retry)) => {
                        let wait = retry.at.duration_since(Timestamp::now());
                        Some(Instant::now() + Duration::try_from(wait).unwrap_or_default())
                    }
                    (Attempt::Bad { failure, .. }, _) if may_pass(failure) => {
                        entry.tries = entry.tries.saturating_add(1);
                        let times = 2_u32.saturating_pow(entry.tries.min(16)) / 2;
                        let wait = TRY_AGAIN.0.saturating_mul(times).min(TRY_AGAIN.1);
                        Some(Instant::now() + wait)
                    }
                    _ => None,
                };
                entry.tried(*recipe, *loaded);
            }
            Ok(Done::Restored { uid, sought, good }) => {
                let Some(entry) = self.entries.get_mut(&uid) else { return };
                entry.restoring = None;
                let before = entry.not_restored.take().filter(|(what, ..)| *what == sought);
                match good {
                    Ok(good) => entry.last = Some(*good),
                    Err(NotRestored::Lost) => entry.lost = Some(sought),
                    Err(NotRestored::NotNow(_)) => {
                        let tries = before.map_or(0, |(_, _, tries)| tries);
                        let again = Instant::now() + pause(RESTORE_AGAIN, tries);
                        entry.not_restored = Some((sought, again, tries.saturating_add(1)));
                    }
                }
            }
            Ok(Done::Swept(found)) => self.swept.found(found),
            Ok(Done::Copied { uid, version, place }) => {
                let Some(entry) = self.entries.get_mut(&uid) else { return };
                entry.copying = None;
                entry.copy = Some(match place {
                    Ok(place) => Copy::Written { version: *version, place },
                    Err(why) => {
                        let again = Instant::now() + COPY_AGAIN;
                        Copy::Failed { version: *version, again, why }
                    }
                });
            }
        }
    }
}
