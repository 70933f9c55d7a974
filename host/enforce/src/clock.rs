//! The API server's time between two of its answers: no clock of a replica is compared with it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tread_model::protocol::Time;

/// The time that the API server gave last, and when it was asked for it. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Clock(Arc<Mutex<Option<Heard>>>);

#[derive(Debug, Clone, Copy)]
struct Heard {
    at: Time,
    asked: Instant,
}

impl Clock {
    /// Notes the time of an answer, and when it was asked for. What was asked for earlier than what
    /// is known changes nothing.
    pub(crate) fn hears(&self, at: Time, asked: Instant) {
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if heard.is_none_or(|heard| heard.asked <= asked) {
            *heard = Some(Heard { at, asked });
        }
    }

    /// The API server's time; nothing before its first answer.
    pub(crate) fn now(&self) -> Option<Time> {
        self.at(Instant::now())
    }

    /// How old the answer is that it goes by.
    pub(crate) fn age(&self) -> Option<Duration> {
        self.heard().map(|heard| heard.asked.elapsed())
    }

    fn at(&self, when: Instant) -> Option<Time> {
        let heard = self.heard()?;
        Some(heard.at.after(when.saturating_duration_since(heard.asked)))
    }

    fn heard(&self) -> Option<Heard> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time(Duration::from_secs(seconds))
    }

    #[test]
    fn it_goes_on_from_the_last_answer_of_the_api_server() {
        let (clock, begun) = (Clock::default(), Instant::now());
        let after = |seconds| begun + Duration::from_secs(seconds);
        assert_eq!((clock.now(), clock.age()), (None, None), "nobody has said the time");
        // Whatever this machine believes.
        clock.hears(at(3600), begun);
        assert_eq!(clock.at(begun), Some(at(3600)));
        assert_eq!(clock.at(after(90)), Some(at(3690)));
        // The API server's clock was set back.
        clock.clone().hears(at(3000), after(90));
        assert_eq!(clock.at(after(95)), Some(at(3005)));
        // An answer that took longer than a later one.
        clock.hears(at(3601), after(1));
        assert_eq!(clock.at(after(95)), Some(at(3005)));
    }
}
