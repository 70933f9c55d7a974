//! Texts compared eight bytes at a time: in a component, whose library does
//! it byte by byte, most of the time goes there.

use std::cmp::Ordering;

const WORD: usize = 8;
const LOW: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|chunk| u64::from_le_bytes(*chunk))
}

/// How many bytes are the same at the start.
pub fn common_start(a: &[u8], b: &[u8]) -> usize {
    let mut at = 0;
    while let (Some(left), Some(right)) = (word(a, at), word(b, at)) {
        if left != right {
            return at + bytes_below(left ^ right);
        }
        at += WORD;
    }
    while let (Some(left), Some(right)) = (a.get(at), b.get(at)) {
        if left != right {
            break;
        }
        at += 1;
    }
    at
}

/// Whether both are the same.
pub fn equal(a: &str, b: &str) -> bool {
    a.len() == b.len() && common_start(a.as_bytes(), b.as_bytes()) == a.len()
}

/// The order of the bytes, which is that of [`str`].
pub fn order(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let same = common_start(a, b);
    a.get(same).cmp(&b.get(same))
}

/// Whether `text` starts with `start`.
pub fn starts_with(text: &str, start: &str) -> bool {
    text.len() >= start.len() && common_start(text.as_bytes(), start.as_bytes()) == start.len()
}

/// Whether `part`, which is ASCII, stands somewhere in `text`.
pub fn contains(text: &str, part: &str) -> bool {
    let (text, part) = (text.as_bytes(), part.as_bytes());
    let Some((last, before)) = part.split_last() else { return true };
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| position(rest, *last)) {
        at += found + 1;
        if text.get(..at - 1).is_some_and(|text| text.ends_with(before)) {
            return true;
        }
    }
    false
}

fn position(bytes: &[u8], wanted: u8) -> Option<usize> {
    let mut at = 0;
    while let Some(word) = word(bytes, at) {
        let found = zeros(word ^ (LOW * u64::from(wanted)));
        if found != 0 {
            return Some(at + bytes_below(found));
        }
        at += WORD;
    }
    let rest = bytes.get(at..)?;
    rest.iter().position(|byte| *byte == wanted).map(|found| at + found)
}

/// How many bytes at `at` are spaces.
pub(crate) fn spaces(bytes: &[u8], at: usize) -> usize {
    let mut end = at;
    while let Some(word) = word(bytes, end) {
        let other = word ^ (LOW * u64::from(b' '));
        if other != 0 {
            return end + bytes_below(other) - at;
        }
        end += WORD;
    }
    while bytes.get(end) == Some(&b' ') {
        end += 1;
    }
    end - at
}

/// Where, from `at` on, the first byte is that may end a plain part of a text:
/// a control character (the tab too), `quote`, a backslash, or the end.
pub(crate) fn plain_end(bytes: &[u8], mut at: usize, quote: u8) -> usize {
    while let Some(word) = word(bytes, at) {
        let control = word.wrapping_sub(LOW * 0x20) & !word & HIGH;
        let found = control
            | zeros(word ^ (LOW * u64::from(quote)))
            | zeros(word ^ (LOW * u64::from(b'\\')))
            | zeros(word ^ (LOW * 0x7f));
        if found != 0 {
            return at + bytes_below(found);
        }
        at += WORD;
    }
    while let Some(byte) = bytes.get(at) {
        if *byte < 0x20 || *byte == quote || *byte == b'\\' || *byte == 0x7f {
            break;
        }
        at += 1;
    }
    at
}

/// Marks the bytes that are zero. Above the first there may be marks too many.
fn zeros(word: u64) -> u64 {
    word.wrapping_sub(LOW) & !word & HIGH
}

/// The number of whole bytes below the first bit.
fn bytes_below(word: u64) -> usize {
    (word.trailing_zeros() / 8) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text() -> impl Strategy<Value = String> {
        "[ab\\\\\"'\t\n\u{1}\u{7f} é]{0,40}"
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 5_000, failure_persistence: None, ..Default::default() })]

        #[test]
        fn words_say_what_the_library_says(a in text(), b in text(), start in text()) {
            let longer = start.clone() + &b;
            prop_assert_eq!(order(&a, &b), a.cmp(&b));
            prop_assert_eq!(equal(&a, &b), a == b);
            prop_assert!(equal(&a, &a.clone()));
            prop_assert_eq!(starts_with(&longer, &start), longer.starts_with(&start));
            prop_assert_eq!(starts_with(&a, &b), a.starts_with(&b));
            let bytes = (a.as_bytes(), b.as_bytes());
            let same = bytes.0.iter().zip(bytes.1).take_while(|(a, b)| a == b).count();
            prop_assert_eq!(common_start(bytes.0, bytes.1), same);
            for part in ["", "a", "ab", "aba", "bb a"] {
                prop_assert_eq!(contains(&a, part), a.contains(part));
            }
        }

        #[test]
        fn the_end_of_a_plain_part_is_found(text in text(), at in 0..8_usize) {
            let bytes = text.as_bytes();
            for quote in [b'"', b'\''] {
                let ends = |byte: &u8| *byte < 0x20 || *byte == quote || *byte == b'\\' || *byte == 0x7f;
                let end = (at..bytes.len()).find(|at| ends(&bytes[*at])).unwrap_or(bytes.len().max(at));
                prop_assert_eq!(plain_end(bytes, at, quote), end);
            }
            let spaced = " ".repeat(at * 3) + &text;
            let count = spaced.bytes().take_while(|byte| *byte == b' ').count();
            prop_assert_eq!(spaces(spaced.as_bytes(), 0), count);
        }
    }
}
