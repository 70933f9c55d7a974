//! Sweeps copies away that nobody needs, once this replica leads for long enough.

use super::entry::Copy;
use super::state::Registry;
use super::sweep::SETTLES_AFTER;
use super::write::Write;
use crate::policies::kept;
use crate::policies::snapshot::Snapshot;
use std::collections::BTreeSet;
use tokio::time::Instant;

impl Registry {
    /// The copies to remove, once it leads for long enough.
    pub(super) fn sweep(&mut self) -> Vec<Write> {
        let now = Instant::now();
        if !self.swept.begun {
            (self.swept.begins, self.swept.begun) = (Some(now + SETTLES_AFTER), true);
        }
        match self.swept.begins {
            Some(begins) if begins <= now => {
                self.swept.begins = None;
                self.jobs.spawn(self.hands.clone().leftovers());
            }
            Some(begins) => self.look_by(begins),
            None => {}
        }
        let copies = self.swept.copies.iter();
        copies
            .map(|(place, as_seen)| Write::Sweep { place: place.clone(), as_seen: as_seen.clone() })
            .collect()
    }

    /// Lets those stay that this replica wrote or is writing, or sees named by now.
    pub(super) fn spare_used(&mut self, snapshot: &Snapshot) {
        let used = self.used(snapshot);
        self.swept.copies.retain(|place, _| !used.contains(place));
    }

    fn used(&self, snapshot: &Snapshot) -> BTreeSet<String> {
        if self.swept.copies.is_empty() {
            return BTreeSet::new();
        }
        let statuses = snapshot.policies.values().filter_map(|object| object.status.as_ref());
        let named = statuses.filter_map(|status| status.kept_in.clone());
        let own = self.entries.iter().flat_map(|(uid, entry)| {
            let written = match &entry.copy {
                Copy::Written { place, .. } => Some(place.clone()),
                _ => None,
            };
            let writing = entry.copying.as_ref().map(|running| kept::place(uid, &running.what));
            // The watch may not have told of it yet.
            written.into_iter().chain(writing).chain(entry.named().cloned())
        });
        named.chain(own).collect()
    }
}
