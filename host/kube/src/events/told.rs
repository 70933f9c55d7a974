//! Which Events were written a short while ago.

use std::collections::BTreeMap;

/// Of one object and one reason there are at most so many Events of a window, whatever they say:
/// their texts may be made by anybody who may write the object.
const MOST: usize = 5;

/// An object, by its UID, and a reason in a word.
type Of = (String, &'static str);

/// The Events of this window.
#[derive(Debug, Default)]
pub(super) struct Told {
    window: i64,
    /// How often each was reported, by its name.
    events: BTreeMap<Of, BTreeMap<String, u32>>,
}

/// What has to be done for an Event.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It has to be written.
    First,
    /// It has to be said that it happened so many times.
    Again(u32),
    /// There are as many others as there may be.
    TooMany,
}

impl Told {
    /// Notes that an Event is reported, by its name; what has to be done for it.
    pub(super) fn turn(&mut self, window: i64, of: Of, name: &str) -> Turn {
        if self.window != window {
            *self = Told { window, ..Told::default() };
        }
        let events = self.events.entry(of).or_default();
        if let Some(times) = events.get_mut(name) {
            *times = times.saturating_add(1);
            return Turn::Again(*times);
        }
        if events.len() >= MOST {
            return Turn::TooMany;
        }
        events.insert(name.to_owned(), 1);
        Turn::First
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_many_texts_there_are_an_object_has_few_events_of_a_reason_at_a_time() {
        let mut told = Told::default();
        let of = |uid: &str| (uid.to_owned(), "PolicyFailed");
        for number in 0..MOST {
            assert_eq!(told.turn(1, of("1"), &number.to_string()), Turn::First);
        }
        assert_eq!(told.turn(1, of("1"), "one more"), Turn::TooMany);
        assert_eq!(told.turn(1, of("1"), "0"), Turn::Again(2));
        assert_eq!(told.turn(1, of("2"), "one more"), Turn::First, "it is another object");
        assert_eq!(told.turn(1, ("1".to_owned(), "PolicyLoaded"), "other"), Turn::First);
        assert_eq!(told.turn(2, of("1"), "one more"), Turn::First, "some minutes later");
        assert_eq!(told.events.len(), 1, "what was before is forgotten");
    }
}
