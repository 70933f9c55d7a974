//! Tells, and tells again what got no answer: a few times.

use super::strays::News;
use futures::future::join_all;
use std::time::Duration;
use tokio::time::Instant;
use tread_kube::asking::{Backoff, Failed};
use tread_kube::events::{Events, Once};

/// How long is waited before it is told again, at first and at most: ten times take about
/// five minutes.
const WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(120));
/// How often it is told in vain.
const MOST_TIMES: u32 = 10;
/// How many are told again.
const MOST: usize = 300;

/// What was told in vain, and when it is told again.
#[derive(Debug)]
pub(super) struct Telling {
    untold: Vec<(News, u32)>,
    backoff: Backoff,
    due: Option<Instant>,
}

impl Default for Telling {
    fn default() -> Telling {
        Telling { untold: Vec::new(), backoff: Backoff::new(WAITS), due: None }
    }
}

impl Telling {
    /// When something is to be told again.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Whoever leads next tells it.
    pub(super) fn forget(&mut self) {
        *self = Telling::default();
    }

    /// Tells this, and what was told in vain if it is time for that.
    pub(super) async fn tell(&mut self, events: &Events, news: Vec<News>) {
        let all = self.take(news, Instant::now());
        let done = join_all(all.iter().map(|(it, _)| tell_one(events, it))).await;
        let failed = all.into_iter().zip(done).filter(|(_, done)| done.is_err());
        self.note(failed.map(|(it, _)| it), Instant::now());
    }

    /// What is told now, with how often it was told before.
    fn take(&mut self, news: Vec<News>, now: Instant) -> Vec<(News, u32)> {
        let mut all: Vec<(News, u32)> = news.into_iter().map(|it| (it, 0)).collect();
        if self.due.take_if(|at| *at <= now).is_some() {
            all.append(&mut self.untold);
        }
        all
    }

    /// Notes what of it got no answer.
    fn note(&mut self, failed: impl Iterator<Item = (News, u32)>, now: Instant) {
        let failed = failed.map(|(it, times)| (it, times + 1));
        let (again, given_up): (Vec<_>, Vec<_>) =
            failed.partition(|(_, times)| *times < MOST_TIMES);
        let room = MOST.saturating_sub(self.untold.len());
        let left_out = given_up.len() + again.len().saturating_sub(room);
        if left_out > 0 {
            tracing::warn!("{left_out} Events got no answer, and are not told again");
        }
        self.untold.extend(again.into_iter().take(room));
        match self.untold.is_empty() {
            true => self.forget(),
            false if self.due.is_none() => {
                self.due = Some(now + self.backoff.next_wait());
            }
            false => {}
        }
    }
}

async fn tell_one(events: &Events, news: &News) -> Result<Once, Failed> {
    let News { about, note, of } = news;
    let name = about.name.as_deref().unwrap_or_default();
    let told = events.report_each(about, note, of).await;
    // A node that says now this and now that fills no log, nor does an API server that says
    // nothing.
    if matches!(told, Ok(Once::Now)) {
        tracing::warn!(name, reason = note.reason.word(), "{}", note.text);
    }
    told
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
        let mut telling = Telling::default();
        let (mut third, mut never, mut last) = (0, 0, Duration::ZERO);
        let mut now = Instant::now();
        let mut next = telling.take(vec![news("once"), news("third"), news("never")], now);
        loop {
            let count = |name: &str| next.iter().filter(|(it, _)| it.of == name).count();
            third += count("third");
            never += count("never");
            let failed = next.into_iter().filter(|(it, _)| match it.of.as_str() {
                "third" => third < 3,
                "never" => true,
                _ => false,
            });
            telling.note(failed, now);
            let Some(due) = telling.due() else { break };
            // What comes meanwhile hastens nothing, and holds nothing up.
            assert_eq!(telling.take(vec![news("another")], now).len(), 1);
            telling.note(std::iter::empty(), now);
            assert_eq!(telling.due(), Some(due));
            (last, now) = (due - now, due);
            next = telling.take(Vec::new(), now);
        }
        assert_eq!((third, never), (3, 10));
        assert!(last >= WAITS.1 / 2 && last <= WAITS.1, "{last:?}");
    }

    #[test]
    fn no_more_wait_than_there_is_room_for() {
        let (mut telling, now) = (Telling::default(), Instant::now());
        for _ in 0..3 {
            let many = (0..200).map(|number| news(&number.to_string())).collect();
            let many = telling.take(many, now);
            telling.note(many.into_iter(), now);
        }
        assert_eq!(telling.untold.len(), MOST);
        telling.forget();
        assert!(telling.untold.is_empty() && telling.due().is_none());
    }
}
