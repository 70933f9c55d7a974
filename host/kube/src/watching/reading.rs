//! Single objects that are being read, and why that does not go well: whoever
//! waits is told for what.

use super::watches::{Reads, Watches};
use crate::asking::Failed;
use tokio::sync::watch;

/// Something that is being read, until it is dropped.
#[derive(Debug)]
pub struct Reading {
    all: watch::Sender<Reads>,
    key: (String, u64),
}

impl Reading {
    /// Notes why it did not go well the last time.
    pub fn failed(&self, why: Failed) {
        self.all.send_if_modified(|all| {
            let before = all.insert(self.key.clone(), Some(why.clone()));
            before != Some(Some(why))
        });
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.all.send_modify(|all| {
            all.remove(&self.key);
        });
    }
}

impl Watches {
    /// Notes that an object is being read: `configmaps apps/chrony`.
    pub fn reading(&self, what: String) -> Reading {
        let mut key = (what, 0);
        self.reads.send_modify(|all| {
            while all.contains_key(&key) {
                key.1 += 1;
            }
            all.insert(key.clone(), None);
        });
        Reading { all: self.reads.clone(), key }
    }

    /// The objects that are being read, with the reason where it does not go well:
    /// `configmaps apps/chrony: … is forbidden …`.
    pub fn reads(&self) -> Vec<String> {
        let all = self.reads.borrow();
        let said = all.iter().map(|((what, _), why)| match why {
            Some(why) => format!("{what}: {why}"),
            None => format!("{what}: no answer yet"),
        });
        let mut said: Vec<String> = said.collect();
        said.dedup();
        said
    }

    /// Which objects could not be read, and why.
    pub fn read_errors(&self) -> Vec<(String, Failed)> {
        let all = self.reads.borrow();
        let failed = all.iter().filter_map(|((what, _), why)| Some((what.clone(), why.clone()?)));
        failed.collect()
    }

    /// Waits until something else is being read, or does not go well.
    pub fn reads_changed(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut all = self.reads.subscribe();
        async move {
            // The sender is as old as whoever waits.
            let _ = all.changed().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asking::Call;

    #[tokio::test]
    async fn what_is_read_is_named_until_it_was_read() {
        let watches = Watches::default();
        let changed = watches.reads_changed();
        let one = watches.reading("configmaps a/b".to_owned());
        changed.await;
        let two = watches.reading("configmaps a/b".to_owned());
        assert_eq!(watches.reads(), ["configmaps a/b: no answer yet"]);
        let failed = Call::new("get", "configmaps").refused("forbidden".to_owned());
        two.failed(failed.clone());
        assert_eq!(watches.reads()[1], "configmaps a/b: forbidden");
        assert_eq!(watches.read_errors(), [("configmaps a/b".to_owned(), failed)]);
        drop(two);
        assert_eq!((watches.reads().len(), watches.read_errors().len()), (1, 0));
        drop(one);
        assert!(watches.reads().is_empty());
    }
}
