//! Reports, and reports again what got no answer: a few times.

use super::strays::News;
use futures::future::join_all;
use std::time::Duration;
use tokio::time::Instant;
use tread_kube::asking::{Backoff, Failed};
use tread_kube::events::{Events, Once};

/// How long is waited before it is reported again, at first and at most: ten times take about
/// five minutes.
const WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(120));
/// How often it is reported in vain.
const MOST_TIMES: u32 = 10;
/// How many are reported again.
const MOST: usize = 300;

/// What was reported in vain, and when it is reported again.
#[derive(Debug)]
pub(super) struct Retries {
    unreported: Vec<(News, u32)>,
    backoff: Backoff,
    due: Option<Instant>,
}

impl Default for Retries {
    fn default() -> Retries {
        Retries { unreported: Vec::new(), backoff: Backoff::new(WAITS), due: None }
    }
}

impl Retries {
    /// When something is to be reported again.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Whoever leads next reports it.
    pub(super) fn forget(&mut self) {
        *self = Retries::default();
    }

    /// Reports this, and what was reported in vain if it is time for that.
    pub(super) async fn report(&mut self, events: &Events, news: Vec<News>) {
        let all = self.take(news, Instant::now());
        let done = join_all(all.iter().map(|(it, _)| report_one(events, it))).await;
        let failed = all.into_iter().zip(done).filter(|(_, done)| done.is_err());
        self.note(failed.map(|(it, _)| it), Instant::now());
    }

    /// What is reported now, with how often it was reported before.
    fn take(&mut self, news: Vec<News>, now: Instant) -> Vec<(News, u32)> {
        let mut all: Vec<(News, u32)> = news.into_iter().map(|it| (it, 0)).collect();
        if self.due.take_if(|at| *at <= now).is_some() {
            all.append(&mut self.unreported);
        }
        all
    }

    /// Notes what of it got no answer.
    fn note(&mut self, failed: impl Iterator<Item = (News, u32)>, now: Instant) {
        let failed = failed.map(|(it, times)| (it, times + 1));
        let (again, given_up): (Vec<_>, Vec<_>) =
            failed.partition(|(_, times)| *times < MOST_TIMES);
        let room = MOST.saturating_sub(self.unreported.len());
        let left_out = given_up.len() + again.len().saturating_sub(room);
        if left_out > 0 {
            tracing::warn!("{left_out} Events got no answer, and are not told again");
        }
        self.unreported.extend(again.into_iter().take(room));
        match self.unreported.is_empty() {
            true => self.forget(),
            false if self.due.is_none() => {
                self.due = Some(now + self.backoff.next_wait());
            }
            false => {}
        }
    }
}

async fn report_one(events: &Events, news: &News) -> Result<Once, Failed> {
    let News { about, note, of } = news;
    let name = about.name.as_deref().unwrap_or_default();
    let reported = events.report_each(about, note, of).await;
    // A node that says now this and now that fills no log, nor does an API server that says
    // nothing.
    if matches!(reported, Ok(Once::Now)) {
        tracing::warn!(name, reason = note.reason.word(), "{}", note.text);
    }
    reported
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ObjectReference;
    use tread_kube::events::{Note, Reason};

    fn news(name: &str) -> News {
        let about = ObjectReference { name: Some(name.to_owned()), ..ObjectReference::default() };
        let note = Note { reason: Reason::NodeStrays, warns: true, text: String::new() };
        News { about, note, of: name.to_owned() }
    }

    #[test]
    fn what_got_no_answer_is_told_again_a_few_times() {
        let mut retries = Retries::default();
        let (mut third, mut never, mut last) = (0, 0, Duration::ZERO);
        let mut now = Instant::now();
        let mut next = retries.take(vec![news("once"), news("third"), news("never")], now);
        loop {
            let count = |name: &str| next.iter().filter(|(it, _)| it.of == name).count();
            third += count("third");
            never += count("never");
            let failed = next.into_iter().filter(|(it, _)| match it.of.as_str() {
                "third" => third < 3,
                "never" => true,
                _ => false,
            });
            retries.note(failed, now);
            let Some(due) = retries.due() else { break };
            // What comes meanwhile hastens nothing, and holds nothing up.
            assert_eq!(retries.take(vec![news("another")], now).len(), 1);
            retries.note(std::iter::empty(), now);
            assert_eq!(retries.due(), Some(due));
            (last, now) = (due - now, due);
            next = retries.take(Vec::new(), now);
        }
        assert_eq!((third, never), (3, 10));
        assert!(last >= WAITS.1 / 2 && last <= WAITS.1, "{last:?}");
    }

    #[test]
    fn no_more_wait_than_there_is_room_for() {
        let (mut retries, now) = (Retries::default(), Instant::now());
        for _ in 0..3 {
            let many = (0..200).map(|number| news(&number.to_string())).collect();
            let many = retries.take(many, now);
            retries.note(many.into_iter(), now);
        }
        assert_eq!(retries.unreported.len(), MOST);
        retries.forget();
        assert!(retries.unreported.is_empty() && retries.due().is_none());
    }
}
