//! Claims are bound to nodes, those of many in one write, while others are looked at already.

use super::bound::Bound;
use super::kept::{self, Record};
use super::letting::Entry;
use super::report::What;
use crate::settings::Settings;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tread_kube::asking::{CallOutcome, Failed};
use tread_model::joining::Id;

/// For so long the watch is waited for, to show what somebody else has written.
const LAGS: Duration = Duration::from_secs(1);

/// What is to be bound, and for whom.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    pub(super) claims: BTreeMap<Id, Bound>,
    /// Who joins once that is written.
    pub(super) entries: Vec<Entry>,
    /// Who is told then why it is held: a node's name and UID.
    pub(super) held: Vec<(String, String, What)>,
}

/// What is written now, and what the watch does not show yet.
#[derive(Default)]
pub(super) struct Binding {
    writing: Option<(Wanted, BoxFuture<'static, Result<Record, Failed>>)>,
    /// Which version that is written onto: none where there is no record yet.
    onto: String,
    ahead: Ahead,
}

/// The record that was written last, as long as the watch still shows one of those before it.
#[derive(Debug, Default)]
struct Ahead {
    /// None where somebody else wrote the one after these: that is waited for.
    record: Option<Arc<Record>>,
    before: Vec<String>,
    /// When that is not waited for any longer.
    until: Option<Instant>,
}

impl Ahead {
    /// The newest of what was written and what the watch shows. None: somebody else has written one
    /// that the watch has yet to show.
    fn newest(
        &mut self,
        watched: Option<Arc<Record>>,
        now: Instant,
    ) -> Option<Option<Arc<Record>>> {
        let is_old = self.before.iter().any(|it| it == version(watched.as_deref()));
        match &self.record {
            Some(record) if is_old => Some(Some(Arc::clone(record))),
            None if is_old && self.until.is_some_and(|until| until > now) => None,
            _ => {
                *self = Ahead::default();
                Some(watched)
            }
        }
    }

    /// That this was written onto a version.
    fn wrote(&mut self, record: Record, onto: String) {
        self.before.push(onto);
        self.record = Some(Arc::new(record));
    }

    /// That somebody else wrote onto a version.
    fn overtaken(&mut self, onto: String, now: Instant) {
        self.before.push(onto);
        (self.record, self.until) = (None, Some(now + LAGS));
    }
}

fn version(record: Option<&Record>) -> &str {
    record.map_or("", Record::version)
}

impl Binding {
    /// The newest record that is known: the watch shows this one, and may lag behind. None: somebody
    /// else has written a newer one, which it is about to show.
    pub(super) fn newest(&mut self, watched: Option<Arc<Record>>) -> Option<Option<Arc<Record>>> {
        self.ahead.newest(watched, Instant::now())
    }

    /// When that is not waited for any longer.
    pub(super) fn due(&self) -> Option<Instant> {
        self.ahead.until
    }

    /// Whether nothing is written now.
    pub(super) fn is_idle(&self) -> bool {
        self.writing.is_none()
    }

    /// Whether a claim is bound now: whose it is shows once that has ended.
    pub(super) fn has(&self, claim: Id) -> bool {
        self.writing.as_ref().is_some_and(|(wanted, _)| wanted.claims.contains_key(&claim))
    }

    /// Begins to write claims onto the newest record. Nothing else may be written now.
    pub(super) fn begin(
        &mut self,
        settings: &Settings,
        onto: Option<Arc<Record>>,
        wanted: Wanted,
        is_there: impl Fn(&str) -> bool + Send + Sync + 'static,
        times: (u64, u64),
    ) {
        version(onto.as_deref()).clone_into(&mut self.onto);
        let (settings, claims) = (settings.clone(), wanted.claims.clone());
        let write =
            async move { kept::bind(&settings, onto.as_deref(), &claims, is_there, times).await };
        self.writing = Some((wanted, write.boxed()));
    }

    /// Who waited for what was written, once it is, or failed. It is pending where nothing is.
    pub(super) async fn ended(&mut self) -> (Wanted, Result<(), Failed>) {
        let Some((wanted, write)) = &mut self.writing else { return std::future::pending().await };
        let written = write.await;
        let wanted = std::mem::take(wanted);
        self.writing = None;
        let onto = std::mem::take(&mut self.onto);
        let written = match written {
            Ok(record) => {
                self.ahead.wrote(record, onto);
                Ok(())
            }
            Err(failed) => {
                match failed.outcome {
                    CallOutcome::Conflict => self.ahead.overtaken(onto, Instant::now()),
                    _ => self.ahead = Ahead::default(),
                }
                Err(failed)
            }
        };
        (wanted, written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn record(version: &str) -> Record {
        let object = json!({"metadata": {"resourceVersion": version}});
        Record::of(serde_json::from_value(object).unwrap())
    }

    #[test]
    fn what_was_written_counts_until_the_watch_shows_it_or_something_newer() {
        let newest = |ahead: &mut Ahead, watched: &str| {
            let watched = Some(watched).filter(|it| !it.is_empty());
            let newest = ahead.newest(watched.map(record).map(Arc::new), Instant::now());
            version(newest.unwrap().as_deref()).to_owned()
        };
        for (watched, counts) in [("", "2"), ("1", "2"), ("2", "2"), ("3", "3")] {
            let mut ahead = Ahead::default();
            assert_eq!(newest(&mut ahead, ""), "", "nothing was written");
            ahead.wrote(record("1"), String::new());
            assert_eq!(newest(&mut ahead, ""), "1");
            ahead.wrote(record("2"), "1".to_owned());
            assert_eq!(newest(&mut ahead, watched), counts);
            // Once it was shown, what the watch shows is all that counts.
            assert_eq!(newest(&mut ahead, "4"), "4");
            assert_eq!(newest(&mut ahead, ""), "", "it was removed");
        }
    }

    #[test]
    fn what_somebody_else_wrote_is_waited_for_until_the_watch_shows_it_but_not_for_ever() {
        let now = Instant::now();
        let watched = |version: &str| Some(Arc::new(record(version)));
        let overtaken = || {
            let mut ahead = Ahead::default();
            ahead.wrote(record("2"), "1".to_owned());
            ahead.overtaken("2".to_owned(), now);
            assert_eq!(ahead.newest(watched("1"), now), None);
            assert_eq!(ahead.newest(watched("2"), now), None);
            ahead
        };
        assert_eq!(overtaken().newest(watched("3"), now), Some(watched("3")));
        assert_eq!(overtaken().newest(None, now), Some(None), "it was removed");
        assert_eq!(overtaken().newest(watched("2"), now + LAGS), Some(watched("2")));
    }
}
