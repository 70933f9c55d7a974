//! A document that hardly differs from one that was read already.
//!
//! A list of tables (`[[key]]`, and nothing but that up to the end) is cut into
//! blocks, each from its header to the next one. Equal blocks say the same, so
//! only those between the equal ones at both ends are read.

use crate::toml::{Document, Error, read, without_mark};
use crate::words::common_start;
use crate::{Item, Section};

/// What a document says, next to another one.
#[derive(Debug)]
pub enum Beside<'a> {
    /// It was read by itself.
    Whole(Document<'a>),
    /// It says what the other one says, but of the tables of the list…
    Part {
        /// … it has so many first ones…
        first: usize,
        /// … then these…
        middle: Vec<Section<'a>>,
        /// … and so many last ones.
        last: usize,
    },
}

/// Reads a document. `other` was read from `other_bytes`; `key` is the list
/// that both are likely to have.
///
/// # Errors
/// As [`read`](crate::toml::read).
pub fn read_beside<'a>(
    bytes: &'a [u8],
    other_bytes: &[u8],
    other: &Document<'_>,
    key: &str,
) -> Result<Beside<'a>, Error> {
    match part(without_mark(bytes), without_mark(other_bytes), other, key) {
        Some(part) => Ok(part),
        None => read(bytes).map(Beside::Whole),
    }
}

fn part<'a>(
    bytes: &'a [u8],
    other_bytes: &[u8],
    other: &Document<'_>,
    key: &str,
) -> Option<Beside<'a>> {
    let Item::Tables(blocks) = other.root.get(key)? else { return None };
    let starts = |at: usize| blocks.get(at).map(|block| block.start);
    // Headers of anything else would mean that a block is not all there is to it.
    if starts(0)? != other.tail {
        return None;
    }
    // The last block's end is no header: whether a line ends there is not known.
    let same = common_start(bytes, other_bytes);
    let first = blocks.partition_point(|block| block.start <= same).checked_sub(1)?;
    let from = starts(first)?;
    // The blocks at the end, from the last to the first.
    let mut last = 0;
    let mut until = bytes.len();
    let mut other_until = other_bytes.len();
    while last + first < blocks.len() {
        let Some(start) = starts(blocks.len() - last - 1) else { break };
        let block = other_bytes.get(start..other_until)?;
        let Some(begin) = until.checked_sub(block.len()).filter(|begin| *begin >= from) else {
            break;
        };
        let candidate = bytes.get(begin..until)?;
        if common_start(candidate, block) != block.len() {
            break;
        }
        (last, until, other_until) = (last + 1, begin, start);
    }
    let text = bytes.get(from..until)?;
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n');
    let middle = if text.iter().all(blank) {
        Vec::new()
    } else if text.starts_with(b"[[") && (last == 0 || ends_a_line(text)) {
        read(text).ok()?.root.into_only(key)?
    } else {
        // Something else, or something that belongs to what stands before.
        return None;
    };
    Some(Beside::Part { first, middle, last })
}

/// Whether nothing but space stands behind the last newline.
fn ends_a_line(text: &[u8]) -> bool {
    let end = text.iter().rposition(|byte| !matches!(byte, b' ' | b'\t'));
    end.is_some_and(|end| text.get(end) == Some(&b'\n'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Table;
    use proptest::prelude::*;

    /// What `bytes` says by way of `other`, and whether that was any use.
    fn by_way_of(bytes: &[u8], other_bytes: &[u8]) -> (Option<Table>, bool) {
        let Ok(other) = read(other_bytes) else { return (None, false) };
        match read_beside(bytes, other_bytes, &other, "r") {
            Err(_) => (None, false),
            Ok(Beside::Whole(document)) => (Some(document.root.into_table()), false),
            Ok(Beside::Part { first, middle, last }) => {
                let mut other = other;
                let Some(Item::Tables(blocks)) = other.root.get_mut("r") else {
                    panic!("only a list is read in part");
                };
                let rest = blocks.split_off(first);
                blocks.extend(middle);
                blocks.extend(rest.into_iter().rev().take(last).rev());
                if blocks.is_empty() {
                    other.root.remove("r");
                }
                (Some(other.root.into_table()), true)
            }
        }
    }

    fn document() -> impl Strategy<Value = String> {
        const PIECES: &[&str] = &[
            "[[r]]\n",
            "[[r]]\nx = 1\n",
            "[[r]]\nx = 2\n",
            "  [[r]]\n  y = 'a'\n\n",
            "[[r.m]]\nz = 1\n",
            "  [[r.m]]\n    z = 2\n",
            "[r.t]\nz = 1\n",
            "x = 3\n",
            "# note\n",
            "[[r]] # note\n",
            "[o]\nx = 1\n",
            "[[o]]\n",
            "t = '''\n[[r]]\n'''\n",
            "'''\n",
            "l = [\n[1]]\n",
            "[[r]]",
            "\u{feff}",
            "\n",
            " ",
            "é = 1\n",
        ];
        let pieces = proptest::sample::select(PIECES);
        (prop::bool::ANY, proptest::collection::vec(pieces, 0..8)).prop_map(|(set, pieces)| {
            let root = if set { "a = 1\n\n" } else { "" };
            root.to_string() + &pieces.concat()
        })
    }

    /// A document, and one that differs in a piece.
    fn pair() -> impl Strategy<Value = (String, String)> {
        (document(), document(), document(), document()).prop_map(|(start, a, b, end)| {
            ([&*start, &a, &end].concat(), [&*start, &b, &end].concat())
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40_000, failure_persistence: None, ..Default::default() })]

        #[test]
        fn by_way_of_another_a_document_says_what_it_says_by_itself((a, b) in pair()) {
            for (text, other) in [(&a, &b), (&b, &a), (&a, &a)] {
                if read(other.as_bytes()).is_ok() {
                    let alone = read(text.as_bytes()).ok().map(|document| document.root.into_table());
                    let (found, _) = by_way_of(text.as_bytes(), other.as_bytes());
                    prop_assert_eq!(found, alone, "{:?} by way of {:?}", text, other);
                }
            }
        }
    }

    #[test]
    fn only_what_differs_is_read() {
        let block = |n: usize| format!("[[r]]\n  x = {n}\n\n  [[r.m]]\n    y = {n}\n\n");
        let text = |numbers: &[usize]| -> String {
            ["a = 1\n\n".to_string()].into_iter().chain(numbers.iter().map(|n| block(*n))).collect()
        };
        for (numbers, first, middle, last) in [
            (&[1, 2, 3][..], 2, 0, 1),
            (&[1, 2, 4, 3], 2, 1, 1),
            (&[1, 3], 1, 0, 1),
            (&[1, 2, 3, 4], 2, 2, 0),
            (&[1, 2], 2, 0, 0),
            (&[4, 2, 3], 0, 1, 2),
            (&[2, 3], 0, 0, 2),
        ] {
            let (other, text) = (text(&[1, 2, 3]), text(numbers));
            let document = read(other.as_bytes()).unwrap();
            match read_beside(text.as_bytes(), other.as_bytes(), &document, "r").unwrap() {
                Beside::Part { first: a, middle: b, last: c } => {
                    assert_eq!((a, b.len(), c), (first, middle, last), "{numbers:?}");
                }
                Beside::Whole(_) => panic!("{numbers:?} was read as a whole"),
            }
            let alone = read(text.as_bytes()).unwrap().root.into_table();
            assert_eq!(by_way_of(text.as_bytes(), other.as_bytes()), (Some(alone), true));
        }
    }
}
