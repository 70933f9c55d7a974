//! Many globs, matched at once.
//!
//! Each element of each glob has a bit. The bits of the elements at which a match can
//! stand move over the bytes of a name together, 64 with one instruction, so
//! that the cost is the length of the name times the number of words, whatever
//! the globs are. There is no backtracking.

use std::collections::BTreeSet;

/// A set of bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ByteSet([u128; 2]);

impl ByteSet {
    pub(super) fn only(byte: u8) -> ByteSet {
        let mut set = ByteSet::default();
        set.add(byte);
        set
    }

    pub(super) fn all_but_slash() -> ByteSet {
        let mut set = ByteSet::default().inverted();
        set.remove(b'/');
        set
    }

    pub(super) fn add(&mut self, byte: u8) {
        let ByteSet([low, high]) = self;
        *(if byte < 128 { low } else { high }) |= 1 << (byte % 128);
    }

    pub(super) fn remove(&mut self, byte: u8) {
        let ByteSet([low, high]) = self;
        *(if byte < 128 { low } else { high }) &= !(1 << (byte % 128));
    }

    pub(super) fn inverted(self) -> ByteSet {
        ByteSet(self.0.map(|half| !half))
    }

    /// Whether all of its bytes are in the other one too.
    pub(super) fn is_within(self, other: ByteSet) -> bool {
        let ByteSet([low, high]) = self;
        let ByteSet([others_low, others_high]) = other;
        low & !others_low == 0 && high & !others_high == 0
    }

    fn has(self, byte: u8) -> bool {
        let ByteSet([low, high]) = self;
        (if byte < 128 { low } else { high }) >> (byte % 128) & 1 == 1
    }

    /// The byte, if there is only one.
    pub(super) fn single(self) -> Option<u8> {
        let ByteSet([low, high]) = self;
        match (low.count_ones(), high.count_ones()) {
            (1, 0) => u8::try_from(low.trailing_zeros()).ok(),
            (0, 1) => u8::try_from(128 + high.trailing_zeros()).ok(),
            _ => None,
        }
    }
}

/// One part of a glob: what the next bytes of a name may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    /// One byte of these.
    One(ByteSet),
    /// `*`: any bytes but slashes, or none.
    Star,
    /// `**/`: whole components with their slashes, or none. Two do not follow
    /// each other.
    Parts,
    /// `**` at the end: anything.
    Rest,
    /// Here the name ends.
    End,
}

/// All elements of all globs, one bit each.
#[derive(Debug, Clone, Default)]
pub(super) struct Automaton {
    words: usize,
    /// The row of each byte in `moves`.
    row_of: Vec<u8>,
    /// For each class of bytes, the elements that are done with one of them.
    moves: Vec<u64>,
    /// [`Element::Star`]
    stars: Vec<u64>,
    /// The elements that may be nothing: where one begins, the next begins too.
    empty: Vec<u64>,
    /// The elements at which a match stays whatever the next byte is.
    stays: Vec<u64>,
    /// Where a name may end.
    ends: Vec<u64>,
}

/// Where a match can stand, in the words between `from` and `to`.
#[derive(Debug, Default)]
pub(super) struct Run {
    state: Vec<u64>,
    from: usize,
    to: usize,
    /// How many words were worked on: the cost.
    pub(super) cost: u64,
}

fn set(words: &mut [u64], bit: usize) {
    if let Some(word) = words.get_mut(bit / 64) {
        *word |= 1 << (bit % 64);
    }
}

fn has(words: &[u64], bit: usize) -> bool {
    words.get(bit / 64).is_some_and(|word| word >> (bit % 64) & 1 == 1)
}

impl Automaton {
    /// Makes it of the elements of all globs, one glob behind the other; each glob
    /// ends with [`Element::End`].
    pub(super) fn new(elements: &[Element]) -> Automaton {
        let words = elements.len().div_ceil(64);
        let (row_of, examples) = classes(elements);
        let none = vec![0u64; words];
        let mut all = Automaton {
            words,
            row_of,
            moves: vec![0; words * examples.len()],
            stars: none.clone(),
            empty: none.clone(),
            stays: none.clone(),
            ends: none,
        };
        for (bit, element) in elements.iter().enumerate() {
            match element {
                Element::One(bytes) => {
                    let rows = all.moves.chunks_exact_mut(words).zip(&examples);
                    rows.filter(|(_, example)| bytes.has(**example)).for_each(|(r, _)| set(r, bit));
                }
                Element::Star => {
                    set(&mut all.stars, bit);
                    set(&mut all.empty, bit);
                }
                Element::Parts => {
                    let rows = all.moves.chunks_exact_mut(words).zip(&examples);
                    rows.filter(|(_, example)| **example == b'/').for_each(|(r, _)| set(r, bit));
                    set(&mut all.empty, bit);
                    set(&mut all.stays, bit);
                }
                Element::Rest => {
                    set(&mut all.stays, bit);
                    set(&mut all.ends, bit);
                }
                Element::End => set(&mut all.ends, bit),
            }
        }
        all
    }

    /// Lets a match begin at an element; the glob that it is of ends before `end`.
    pub(super) fn begin(&self, run: &mut Run, first: usize, end: usize) {
        let (from, to) = (first / 64, end.div_ceil(64));
        if run.state.is_empty() {
            *run = Run { state: vec![0; self.words], from, to, cost: run.cost };
        }
        (run.from, run.to) = (run.from.min(from), run.to.max(to));
        let mut bit = first;
        set(&mut run.state, bit);
        while has(&self.empty, bit) {
            bit += 1;
            set(&mut run.state, bit);
        }
    }

    /// Moves on over bytes of a name.
    pub(super) fn advance(&self, run: &mut Run, bytes: &[u8]) {
        let range = run.from..run.to;
        let (Some(state), Some(stars), Some(empty), Some(stays)) = (
            run.state.get_mut(range.clone()),
            self.stars.get(range.clone()),
            self.empty.get(range.clone()),
            self.stays.get(range.clone()),
        ) else {
            return;
        };
        for byte in bytes {
            let row = self.row_of.get(usize::from(*byte)).copied().map_or(0, usize::from);
            let row = row * self.words;
            let Some(moves) = self.moves.get(row + range.start..row + range.end) else { return };
            run.cost += state.len() as u64;
            let goes_on = if *byte == b'/' { 0 } else { u64::MAX };
            let (mut moved, mut skipped, mut any) = (0, 0, 0);
            let words = state.iter_mut().zip(moves).zip(stars).zip(empty).zip(stays);
            for ((((state, moves), stars), empty), stays) in words {
                let done = *state & moves;
                let mut next = done << 1 | moved | skipped | *state & stars & goes_on;
                // `**/*` is the longest row of elements that may be nothing.
                next |= (next & empty) << 1;
                next |= (next & empty) << 1;
                (moved, skipped) = (done >> 63, (next & empty) >> 63);
                *state = next | *state & stays;
                any |= *state;
            }
            if any == 0 {
                break;
            }
        }
    }

    /// After the whole name: the elements at which a match ends.
    pub(super) fn ended<'r>(&'r self, run: &'r Run) -> impl Iterator<Item = usize> + 'r {
        run.state.iter().zip(&self.ends).enumerate().flat_map(|(word, (state, ends))| {
            let mut left = state & ends;
            std::iter::from_fn(move || {
                let bit = left.checked_ilog2()?;
                left &= !(1 << bit);
                Some(word * 64 + bit as usize)
            })
        })
    }
}

/// Classes of bytes that no element tells apart: the class of each byte, and one
/// byte of each class. A slash is always alone.
fn classes(elements: &[Element]) -> (Vec<u8>, Vec<u8>) {
    let mut singles = ByteSet::only(b'/');
    let mut sets = BTreeSet::new();
    for element in elements {
        if let Element::One(bytes) = element {
            match bytes.single() {
                Some(byte) => singles.add(byte),
                None => _ = sets.insert(*bytes),
            }
        }
    }
    // Each set splits the classes that are partly inside it. With 256 classes each
    // byte has one of its own, so that nothing can be split further.
    let mut class_of: Vec<usize> = vec![0; 256];
    let mut count = 1;
    for (byte, class) in (0..=u8::MAX).zip(class_of.iter_mut()) {
        if singles.has(byte) {
            *class = count;
            count += 1;
        }
    }
    for bytes in sets {
        let mut inside = vec![None; count];
        let mut next = count;
        let mut outside = vec![false; count];
        for (byte, class) in (0..=u8::MAX).zip(&class_of) {
            if let Some(seen) = outside.get_mut(*class).filter(|_| !bytes.has(byte)) {
                *seen = true;
            }
        }
        for (byte, class) in (0..=u8::MAX).zip(class_of.iter_mut()) {
            // A class that is wholly inside the set is not split.
            let splits = bytes.has(byte) && outside.get(*class) == Some(&true);
            if splits && let Some(inside) = inside.get_mut(*class) {
                *class = *inside.get_or_insert_with(|| {
                    next += 1;
                    next - 1
                });
            }
        }
        count = next;
    }
    let mut examples = vec![0; count];
    for (byte, class) in (0..=u8::MAX).zip(&class_of) {
        if let Some(example) = examples.get_mut(*class) {
            *example = byte;
        }
    }
    let rows = class_of.into_iter().map(|class| u8::try_from(class).unwrap_or_default());
    (rows.collect(), examples)
}
