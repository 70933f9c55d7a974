//! Many digests at once.
//!
//! One sha256 waits for itself: each step needs the one before. Two messages
//! side by side keep the processor busy, and take about a third less time than
//! one after the other. What comes out is what [`Fields`](super::Fields) gives.

use super::Digest;
use sha2::block_api::compress256;

const BLOCK: usize = 64;

/// What sha256 starts from (FIPS 180-4, 5.3.3).
const START: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

/// A message in the making, framed as [`Fields`](super::Fields) frames it.
#[derive(Debug, Default)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    /// Starts again, with a message of the kind that `version` names.
    pub(crate) fn start(&mut self, version: &str) {
        self.0.clear();
        self.field(version.as_bytes());
    }

    /// Adds one field.
    pub(crate) fn field(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// Adds a count or a number.
    pub(crate) fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    /// The digest of this one message.
    pub(crate) fn digest(&self) -> Digest {
        Digest::of(&self.0)
    }

    /// Adds what ends every message of sha256: a bit, zeros, and the length.
    fn pad(&mut self) {
        let bits = (self.0.len() as u64).wrapping_mul(8);
        self.0.push(0x80);
        let whole = (self.0.len() + 8).next_multiple_of(BLOCK) - 8;
        self.0.resize(whole, 0);
        self.0.extend_from_slice(&bits.to_be_bytes());
    }
}

/// Digests messages two by two. `T` says which message a digest is of.
#[derive(Debug)]
pub(crate) struct Lanes<T> {
    busy: Option<Lane<T>>,
    spare: Vec<Message>,
}

#[derive(Debug)]
struct Lane<T> {
    message: Message,
    /// How many of its blocks went in.
    taken: usize,
    state: [u32; 8],
    which: T,
}

impl<T> Lanes<T> {
    /// Without any message yet.
    pub(crate) fn new() -> Lanes<T> {
        Lanes { busy: None, spare: Vec::new() }
    }

    /// Takes a message that `write` writes, and hands over the digests that are
    /// done by now, in any order.
    pub(crate) fn add<E>(
        &mut self,
        which: T,
        write: impl FnOnce(&mut Message) -> Result<(), E>,
        done: &mut impl FnMut(T, Digest),
    ) -> Result<(), E> {
        let mut message = self.spare.pop().unwrap_or_default();
        if let Err(error) = write(&mut message) {
            self.spare.push(message);
            return Err(error);
        }
        message.pad();
        let mut new = Lane { message, taken: 0, state: START, which };
        self.busy = match self.busy.take() {
            None => Some(new),
            Some(mut old) => {
                side_by_side(&mut old, &mut new);
                let (short, long) = if old.left() == 0 { (old, new) } else { (new, old) };
                self.end(short, done);
                match long.left() {
                    0 => {
                        self.end(long, done);
                        None
                    }
                    _ => Some(long),
                }
            }
        };
        Ok(())
    }

    /// Hands over the digests that are left.
    pub(crate) fn finish(mut self, done: &mut impl FnMut(T, Digest)) {
        if let Some(mut last) = self.busy.take() {
            let (blocks, _) = last.message.0.as_chunks::<BLOCK>();
            compress256(&mut last.state, blocks.get(last.taken..).unwrap_or_default());
            self.end(last, done);
        }
    }

    fn end(&mut self, lane: Lane<T>, done: &mut impl FnMut(T, Digest)) {
        let mut digest = [0; 32];
        for (bytes, word) in digest.as_chunks_mut::<4>().0.iter_mut().zip(lane.state) {
            *bytes = word.to_be_bytes();
        }
        done(lane.which, Digest(digest));
        self.spare.push(lane.message);
    }
}

impl<T> Lane<T> {
    fn blocks(&self) -> &[[u8; BLOCK]] {
        self.message.0.as_chunks().0.get(self.taken..).unwrap_or_default()
    }

    fn left(&self) -> usize {
        self.blocks().len()
    }
}

/// Goes on with both until one of them is through.
fn side_by_side<T>(one: &mut Lane<T>, other: &mut Lane<T>) {
    let (mut a, mut b) = (one.state, other.state);
    let mut taken = 0;
    for (x, y) in one.blocks().iter().zip(other.blocks()) {
        compress256(&mut a, std::slice::from_ref(x));
        compress256(&mut b, std::slice::from_ref(y));
        taken += 1;
    }
    (one.state, other.state) = (a, b);
    one.taken += taken;
    other.taken += taken;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Fields;

    #[test]
    fn many_digests_at_once_are_those_of_one_after_the_other() {
        // Every length around the edges of blocks, and pairs of unlike lengths.
        let lengths: Vec<usize> = (0..200).chain([1000, 3, 4096, 64, 5000, 63, 0, 9999]).collect();
        let text: Vec<u8> = (0..10_000u32).map(|n| (n * 31 % 251) as u8).collect();
        let mut lanes = Lanes::new();
        let mut found = vec![None; lengths.len()];
        let mut done = |which: usize, digest| found[which] = Some(digest);
        for (which, length) in lengths.iter().enumerate() {
            let write = |message: &mut Message| {
                message.start("test 1");
                message.field(&text[..*length]);
                message.number(7);
                Ok::<(), ()>(())
            };
            lanes.add(which, write, &mut done).unwrap();
        }
        lanes.finish(&mut done);
        for (length, found) in lengths.iter().zip(found) {
            let mut fields = Fields::new("test 1");
            fields.field(&text[..*length]);
            fields.number(7);
            assert_eq!(found, Some(fields.finish()), "{length}");
        }
    }

    #[test]
    fn a_message_that_cannot_be_written_leaves_the_others_alone() {
        let mut lanes = Lanes::new();
        let mut found = Vec::new();
        let mut done = |which: u8, digest| found.push((which, digest));
        let write = |message: &mut Message| {
            message.start("test 1");
            Ok::<(), &str>(())
        };
        lanes.add(1, write, &mut done).unwrap();
        let broken = |message: &mut Message| {
            message.start("half");
            Err("broken")
        };
        assert_eq!(lanes.add(2, broken, &mut done), Err("broken"));
        lanes.add(3, write, &mut done).unwrap();
        lanes.finish(&mut done);
        let expected = Fields::new("test 1").finish();
        found.sort();
        assert_eq!(found, [(1, expected), (3, expected)]);
    }
}
