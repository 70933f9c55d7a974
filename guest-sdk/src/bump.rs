//! Where the next block of memory goes. Pure arithmetic over addresses, so
//! that it is tested without any memory; `allocator.rs` does what it says.
//!
//! An instance lives for one call, so nothing is ever given back, except the
//! block that was handed out last: growing vectors and strings are that.

use std::alloc::Layout;
use std::ops::Range;

/// One page of WebAssembly memory.
pub(crate) const PAGE: usize = 65_536;

/// At most this much more than is needed is asked for at a time.
const MOST_EXTRA: usize = 16 * PAGE;

/// The free room: from `next` to `end`.
pub(crate) struct Room {
    pub(crate) next: usize,
    pub(crate) end: usize,
    /// What comes once that is full. What is left of the room before it is used no more.
    pub(crate) then: Option<Range<usize>>,
}

impl Room {
    /// The address of a new block. `grow` adds that many pages to the end, or
    /// says that it cannot.
    pub(crate) fn place(
        &mut self,
        layout: Layout,
        grow: impl FnOnce(usize) -> bool,
    ) -> Option<usize> {
        let start = self.start_of(layout)?;
        let end = start.checked_add(layout.size())?;
        if end <= self.end {
            self.next = end;
            return Some(start);
        }
        if let Some(then) = self.then.take_if(|then| then.start != self.end) {
            (self.next, self.end) = (then.start, then.end);
        }
        let start = self.start_of(layout)?;
        self.reach(start.checked_add(layout.size())?, grow)?;
        Some(start)
    }

    fn start_of(&self, layout: Layout) -> Option<usize> {
        // An alignment is a power of two: no division, at each block that comes in.
        let below = layout.align() - 1;
        Some(self.next.checked_add(below)? & !below)
    }

    /// Whether a block now has the new size, at the place where it is.
    pub(crate) fn resize(
        &mut self,
        block: usize,
        old: usize,
        new: usize,
        grow: impl FnOnce(usize) -> bool,
    ) -> bool {
        let Some(next) = block.checked_add(new).filter(|_| self.is_last(block, old)) else {
            return false;
        };
        // Where the next room lies elsewhere, the block moves there.
        let lies_elsewhere = self.then.as_ref().is_some_and(|then| then.start != self.end);
        (next <= self.end || !lies_elsewhere) && self.reach(next, grow).is_some()
    }

    /// Takes a block back, if it is the last.
    pub(crate) fn release(&mut self, block: usize, size: usize) {
        if self.is_last(block, size) {
            self.next = block;
        }
    }

    fn is_last(&self, block: usize, size: usize) -> bool {
        block.checked_add(size) == Some(self.next)
    }

    /// Moves `next`, and `end` as far as that needs. The next room, if there is one, lies right behind.
    fn reach(&mut self, next: usize, grow: impl FnOnce(usize) -> bool) -> Option<()> {
        if next > self.end
            && let Some(then) = self.then.take()
        {
            self.end = then.end;
        }
        if next > self.end {
            // A quarter more than there is, so that a long row of blocks does not ask for page after
            // page; and a page more where there is one.
            let extra = if self.end == PAGE { PAGE } else { (self.end / 4).min(MOST_EXTRA) };
            let end = next.checked_add(extra)?.checked_next_multiple_of(PAGE)?;
            if !grow((end - self.end) / PAGE) {
                return None;
            }
            self.end = end;
        }
        self.next = next;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).unwrap()
    }

    fn single(next: usize, end: usize) -> Room {
        Room { next, end, then: None }
    }

    fn never(_: usize) -> bool {
        panic!("there was room")
    }

    #[test]
    fn blocks_lie_behind_one_another_and_are_aligned() {
        let mut room = single(1001, PAGE);
        assert_eq!(room.place(layout(3, 1), never), Some(1001));
        assert_eq!(room.place(layout(8, 8), never), Some(1008));
        assert_eq!(room.next, 1016);
    }

    #[test]
    fn the_last_block_grows_shrinks_and_goes_in_place() {
        let mut room = single(1000, PAGE);
        let first = room.place(layout(10, 1), never).unwrap();
        let last = room.place(layout(10, 1), never).unwrap();
        assert!(!room.resize(first, 10, 20, never), "another block lies behind it");
        assert!(room.resize(last, 10, 100, never));
        assert_eq!(room.next, last + 100);
        assert!(room.resize(last, 100, 1, never));
        room.release(first, 10);
        assert_eq!(room.next, last + 1, "only the last block comes back");
        room.release(last, 1);
        assert_eq!(room.next, last);
    }

    #[test]
    fn memory_grows_by_whole_pages_and_covers_the_block() {
        let mut room = single(PAGE - 8, PAGE);
        let mut pages = 0;
        let block = room.place(layout(3 * PAGE, 8), |more| {
            pages = more;
            true
        });
        assert_eq!(block, Some(PAGE - 8));
        assert_eq!(room.end, PAGE + pages * PAGE);
        assert!(room.end >= PAGE - 8 + 3 * PAGE);
    }

    #[test]
    fn without_more_memory_nothing_moves() {
        let mut room = single(1000, PAGE);
        assert_eq!(room.place(layout(PAGE, 1), |_| false), None);
        assert_eq!(room.place(layout(isize::MAX as usize - 7, 8), |_| false), None);
        assert_eq!((room.next, room.end), (1000, PAGE));
        let mut room = single(usize::MAX - 3, usize::MAX);
        assert_eq!(room.place(layout(8, 8), |_| true), None);
    }

    #[test]
    fn what_does_not_fit_into_the_first_room_goes_to_the_next_one() {
        let mut room = Room { next: 1000, end: 1100, then: Some(2000..PAGE) };
        assert_eq!(room.place(layout(60, 1), never), Some(1000));
        assert_eq!(room.place(layout(60, 1), never), Some(2000), "40 were left");
        assert_eq!(room.place(layout(10, 1), never), Some(2060));
        let mut room = Room { next: 1000, end: 1100, then: Some(2000..PAGE) };
        assert_eq!(room.place(layout(2 * PAGE, 1), |_| true), Some(2000));
        assert_eq!(room.end % PAGE, 0);
    }

    #[test]
    fn a_room_right_behind_the_first_one_makes_one_room_of_both() {
        let mut room = Room { next: 1000, end: 1100, then: Some(1100..PAGE) };
        assert_eq!(room.place(layout(60, 1), never), Some(1000));
        assert_eq!(room.place(layout(60, 1), never), Some(1060));
        assert!(room.resize(1060, 60, 600, never));
        assert_eq!((room.next, room.end), (1660, PAGE));
    }

    #[test]
    fn a_block_that_grows_beyond_the_first_room_moves() {
        let mut room = Room { next: 1000, end: 1100, then: Some(2000..PAGE) };
        let block = room.place(layout(60, 1), never).unwrap();
        assert!(room.resize(block, 60, 100, never));
        assert!(!room.resize(block, 100, 101, never));
        assert_eq!(room.place(layout(101, 1), never), Some(2000));
        assert!(room.resize(2000, 101, 200, never));
    }
}
