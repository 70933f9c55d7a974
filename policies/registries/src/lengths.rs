//! How long the names are that a probe stands for.
//!
//! Behind a long location a name may become longer than the runtime takes. So
//! one name for each scope is not enough: it stands for names of each length up
//! to the longest that counts. Of these, two are looked up alike if they fit
//! behind the same places. So it is enough to ask for the longest name that fits
//! behind each place, and for the longest of all.

use crate::lookup::room_behind;
use crate::name::LONGEST;

/// The lengths that count.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lengths {
    /// Images' names are taken to have no more characters than this.
    longest: usize,
    /// By so much one of the names that a short one stands for is longer than
    /// another one at most.
    spread: usize,
}

/// By how much the path of a probe may be longer than it is written, or shorter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    least: isize,
    /// Up to here, as the name of an image.
    most: isize,
    /// Up to here, as a name that a short one stands for.
    reach: isize,
}

impl Lengths {
    /// `starts` are what the registries of the search lists put in front of a
    /// short name, at least and at most.
    pub(crate) fn new(longest: usize, starts: impl Iterator<Item = [usize; 2]>) -> Lengths {
        let starts: Vec<_> = starts.collect();
        let least = starts.iter().map(|[least, _]| *least).min().unwrap_or_default();
        let most = starts.iter().map(|[_, most]| *most).max().unwrap_or_default();
        Lengths { longest, spread: most - least }
    }

    /// Of names that have `length` characters as they are written, and `shortest`
    /// at least. None if there are no such names. Where names are longer than is
    /// taken to be, all that the runtime takes count.
    pub(crate) fn span(self, length: usize, shortest: usize) -> Option<Span> {
        if shortest > LONGEST {
            return None;
        }
        let longest = if shortest > self.longest { LONGEST } else { self.longest };
        let beyond = room_behind(length);
        let most = beyond.saturating_sub_unsigned(LONGEST - longest);
        let reach = beyond.min(most.saturating_add_unsigned(self.spread));
        let least = beyond.saturating_sub_unsigned(LONGEST - shortest);
        Some(Span { least, most, reach })
    }
}

impl Span {
    /// Of a name that stands for itself.
    pub(crate) const EXACT: Span = Span { least: 0, most: 0, reach: 0 };

    /// By how much a name is longer at most.
    pub(crate) fn reach(self) -> isize {
        self.reach
    }

    /// By how much it is shorter at most, as a number below zero.
    pub(crate) fn least(self) -> isize {
        self.least
    }

    /// Whether images have names that are by so much longer.
    pub(crate) fn counts(self, longer: isize) -> bool {
        longer <= self.most
    }

    /// The lengths to ask for: all others are looked up as the next longer one.
    /// `rooms` say by how much names may be longer for each place.
    pub(crate) fn tried(self, rooms: impl Iterator<Item = isize>) -> Vec<isize> {
        let mut tried = vec![self.most];
        // There are fewer lengths than the runtime takes characters.
        let mut add = |longer: isize| {
            if let Err(at) = tried.binary_search(&longer) {
                tried.insert(at, longer);
            }
        };
        for room in rooms.filter(|room| (self.least..self.reach).contains(room)) {
            add(room);
            add(self.reach);
        }
        tried
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lengths_that_are_tried_stand_for_all() {
        let lengths = Lengths::new(128, [[5, 5], [10, 18]].into_iter());
        for (length, shortest) in [(20, 18), (20, 20), (126, 120), (128, 125), (200, 190)] {
            let span = lengths.span(length, shortest).unwrap();
            for rooms in [vec![], vec![100], vec![-300, -1, 0, 3, 60, 118, 119, 300]] {
                let tried = span.tried(rooms.iter().copied());
                let fitting = |longer: isize| rooms.iter().filter(|room| longer <= **room).count();
                for longer in span.least..=span.reach {
                    let next = *tried.iter().find(|it| **it >= longer).unwrap_or(&span.most);
                    assert_eq!(fitting(longer), fitting(next), "{span:?} {rooms:?} {longer}");
                    assert!(!span.counts(longer) || span.counts(next), "{span:?} {longer}");
                }
            }
        }
    }

    #[test]
    fn names_have_as_many_characters_as_is_taken_to_be_and_more_where_they_are_longer() {
        let lengths = Lengths::new(128, [[5, 9]].into_iter());
        for (length, shortest, expected) in [
            (28, 26, Some((-2, 100, 104))),
            (130, 128, Some((-2, -2, 2))),
            (131, 129, Some((-2, 124, 124))),
            (255, 255, Some((0, 0, 0))),
            (258, 256, None),
        ] {
            let span = lengths.span(length, shortest);
            assert_eq!(span.map(|it| (it.least, it.most, it.reach)), expected, "{length}");
        }
    }
}
