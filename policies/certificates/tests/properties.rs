//! Whatever is in a file of anchors, the answer is never gentler than that of a
//! slow reference, which searches the file for certificates as p11-kit does.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a helper of a test fails the test"
)]

use proptest::prelude::*;
use std::collections::BTreeSet;
use tread_guest_sdk::{Effect, test};
use tread_policy_certificates::Certificates;

const PATH: &str = "/etc/pki/ca-trust/source/anchors/corp.pem";

/// What update-ca-trust reads of a file: what it trusts, and whether the file
/// may also say what not to trust.
#[derive(Default, PartialEq)]
struct Read {
    trusted: BTreeSet<Vec<u8>>,
    may_distrust: bool,
}

fn after<'a>(text: &'a [u8], part: &str) -> Option<(&'a [u8], &'a [u8])> {
    // The search is one of C, which ends at a zero.
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    let at = text[..end].windows(part.len()).position(|window| window == part.as_bytes())?;
    Some((&text[..at], &text[at + part.len()..]))
}

fn read(text: &[u8]) -> Read {
    let mut read = Read::default();
    if after(text, "[p11-kit-object-v1]").is_some() {
        read.may_distrust = true;
        return read;
    }
    let (mut rest, mut blocks) = (text, 0);
    while let Some((_, begin)) = after(rest, "-----BEGIN ") {
        let Some((kind, body)) = after(begin, "-----") else { break };
        if kind.contains(&b'\n') {
            break;
        }
        let Some((inside, end)) = after(body, "-----END ") else { break };
        let Some(end) = end.strip_prefix(kind).and_then(|end| end.strip_prefix(b"-----")) else {
            break;
        };
        if let Some(decoded) = decode(without_headers(inside)).filter(|_| !inside.is_empty()) {
            blocks += 1;
            match kind {
                b"CERTIFICATE" => {
                    read.trusted.insert(decoded);
                }
                b"TRUSTED CERTIFICATE" => read.may_distrust = true,
                _ => {}
            }
        }
        rest = end;
    }
    // Otherwise it is a certificate in DER, or nothing.
    if blocks == 0 && text.starts_with(b"\x30") {
        read.trusted.insert(text.to_vec());
    }
    read
}

/// What follows the first line that is empty but for space, if there is one.
fn without_headers(inside: &[u8]) -> &[u8] {
    for (at, _) in inside.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
        let line = &inside[at + 1..];
        let space = line.iter().position(|byte| *byte == b'\n' || !is_space(*byte));
        if let Some(end) = space.filter(|end| line[*end] == b'\n') {
            return &line[end..];
        }
    }
    inside
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | 9..=13)
}

fn decode(encoded: &[u8]) -> Option<Vec<u8>> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits: Vec<u8> = encoded.iter().copied().filter(|byte| !is_space(*byte)).collect();
    let padding = digits.iter().rev().take_while(|byte| **byte == b'=').count();
    if !digits.len().is_multiple_of(4) || padding > 2 {
        return None;
    }
    let (mut bits, mut decoded) = (String::new(), Vec::new());
    for digit in &digits[..digits.len() - padding] {
        let value = DIGITS.iter().position(|other| other == digit)?;
        bits.push_str(&format!("{value:06b}"));
    }
    while bits.len() >= 8 {
        let rest = bits.split_off(8);
        decoded.push(u8::from_str_radix(&bits, 2).unwrap());
        bits = rest;
    }
    Some(decoded)
}

fn reference(before: &Read, after: &Read) -> Effect {
    if before.may_distrust || after.may_distrust || !before.trusted.is_subset(&after.trusted) {
        Effect::Reboot
    } else if before.trusted == after.trusted {
        Effect::Reload
    } else {
        Effect::Restart
    }
}

fn piece() -> impl Strategy<Value = String> {
    let body = proptest::sample::select(
        &[
            "QUJD",
            "REVG",
            "YQ==",
            "QU\nJD",
            "QU JD",
            " QUJD\t",
            "QUJD\r",
            "QUJD\n\nREVG",
            "QUJD\n \r\nREVG",
            "\nQUJD",
            "QUJD\n",
            "A: b\n\nQUJD",
            "QUJ",
            "é",
            "",
        ][..],
    );
    let kind = proptest::sample::select(
        &[
            "CERTIFICATE",
            "CERTIFICATE",
            "CERTIFICATE",
            "CERTIFICATE",
            "TRUSTED CERTIFICATE",
            "X509 CRL",
            "PUBLIC KEY",
            "certificate",
        ][..],
    );
    let lead = proptest::sample::select(&["", "", "", " ", "\t", "# ", "x", "-----", "\r"][..]);
    let end = proptest::sample::select(&["\n", "\n", "\r\n", "", " \n"][..]);
    let block = (lead, kind.clone(), end, body, kind, any::<u8>()).prop_map(
        |(lead, kind, end, body, other, odd)| {
            let close = if odd.is_multiple_of(16) { other } else { kind };
            let begin_end = if odd % 16 == 1 { "" } else { "\n" };
            format!("{lead}-----BEGIN {kind}-----{begin_end}{body}\n-----END {close}-----{end}")
        },
    );
    let text = proptest::sample::select(
        &[
            "# a comment\n",
            "Subject: x\n",
            "\n",
            "-----BEGIN ",
            "-----END CERTIFICATE-----\n",
            "-----BEGIN\n",
            "\u{0}",
            "[p11-kit-object-v1]\n",
            "x-distrusted: true\n",
            "-----\n",
            "\u{30}\u{3}\u{1}",
            "é\n",
        ][..],
    );
    let plain = proptest::sample::select(&["QUJD", "REVG", "R0hJ"][..]).prop_map(|body| {
        format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n")
    });
    prop_oneof![2 => block, 1 => text.prop_map(str::to_string), 4 => plain]
}

/// A file and one with some of its pieces gone, new or elsewhere.
fn pair() -> impl Strategy<Value = (String, String)> {
    proptest::collection::vec((piece(), any::<u8>()), 0..6).prop_map(|pieces| {
        let mut sides = [Vec::new(), Vec::new()];
        for (piece, side) in pieces {
            for (number, side_pieces) in sides.iter_mut().enumerate() {
                match (side % 8, number) {
                    (0, 0) | (1, 1) => {}
                    (2, 1) => side_pieces.insert(0, piece.clone()),
                    (3, 1) => side_pieces.extend([piece.clone(), piece.clone()]),
                    _ => side_pieces.push(piece.clone()),
                }
            }
        }
        let [before, after] = sides.map(|side| side.concat());
        (before, after)
    })
}

/// Two files that are read, and one that is not.
const PATHS: [&str; 3] = [
    PATH,
    "/etc/pki/ca-trust/source/anchors/other.crt",
    "/etc/pki/ca-trust/source/anchors/old/corp.pem",
];

/// What the files say on both sides: each piece stands in one of them, or in none.
type Sides = [[Option<String>; 3]; 2];

fn files() -> impl Strategy<Value = Sides> {
    let place = proptest::sample::select(&[None, Some(0), Some(0), Some(1), Some(2)][..]);
    let pieces = proptest::collection::vec((piece(), [place.clone(), place]), 1..5);
    pieces.prop_map(|pieces| {
        let mut sides = Sides::default();
        for (piece, places) in pieces {
            for (side, place) in sides.iter_mut().zip(places) {
                if let Some(place) = place {
                    side[place].get_or_insert_default().push_str(&piece);
                }
            }
        }
        sides
    })
}

/// The files that change, each with the least that its change takes.
fn changes(sides: &Sides) -> Vec<(tread_guest_sdk::Change, Effect)> {
    let read = sides.each_ref().map(|side| {
        side.each_ref().map(|text| text.as_ref().map_or(Read::default(), |it| read(it.as_bytes())))
    });
    let all = |side: usize| -> BTreeSet<Vec<u8>> {
        read[side].iter().take(2).flat_map(|read| read.trusted.clone()).collect()
    };
    let (all_before, all_after) = (all(0), all(1));
    let least = |file: usize| {
        let [before, after] = [&read[0][file], &read[1][file]];
        if file == 2 {
            Effect::Reload
        } else if before.may_distrust || after.may_distrust || !before.trusted.is_subset(&all_after)
        {
            Effect::Reboot
        } else if after.trusted.is_subset(&all_before) {
            Effect::Reload
        } else {
            Effect::Restart
        }
    };
    let [before, after] = sides;
    let change = |file: usize| match (&before[file], &after[file]) {
        (Some(before), Some(after)) if before != after => {
            Some((test::file(PATHS[file], before, after), least(file)))
        }
        (None, Some(after)) => Some((test::file_added(PATHS[file], after), least(file))),
        (Some(before), None) => Some((test::file_removed(PATHS[file], before), least(file))),
        _ => None,
    };
    let mut changes: Vec<_> = (0..PATHS.len()).filter_map(change).collect();
    changes.sort_by(|(a, _), (b, _)| a.id.cmp(&b.id));
    changes
}

fn effects(changes: &[(tread_guest_sdk::Change, Effect)]) -> Vec<Effect> {
    let changes = changes.iter().map(|(change, _)| change.clone()).collect();
    let verdicts = test::verdicts::<Certificates>(&(), changes, vec![]);
    verdicts.iter().map(|verdict| verdict.effect().expect("it is answered for")).collect()
}

fn effect(change: tread_guest_sdk::Change) -> Effect {
    test::verdict::<Certificates>(change).effect().expect("a claimed file is answered for")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60_000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_edit_of_an_anchor_is_answered_more_gently_than_what_is_read_of_it((before, after) in pair()) {
        let (read_before, read_after) = (read(before.as_bytes()), read(after.as_bytes()));
        let nothing = Read::default();
        for (change, least) in [
            (test::file(PATH, &before, &after), reference(&read_before, &read_after)),
            (test::file_added(PATH, &after), reference(&nothing, &read_after)),
            (test::file_removed(PATH, &before), reference(&read_before, &nothing)),
        ] {
            let answer = effect(change);
            prop_assert!(answer >= least, "{answer:?} < {least:?}\n{before:?}\n{after:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_move_among_anchors_is_answered_more_gently_than_what_is_read_of_all(sides in files()) {
        let changes = changes(&sides);
        for ((change, least), answer) in changes.iter().zip(effects(&changes)) {
            prop_assert!(answer >= *least, "{answer:?} < {least:?} for {}\n{sides:?}", change.id);
            let is_read = !change.id.contains("/old/");
            prop_assert!(is_read || answer == *least, "{answer:?} > {least:?}\n{sides:?}");
        }
    }
}

#[test]
fn the_moves_that_are_tried_come_to_every_answer() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut seen = std::collections::BTreeMap::new();
    for _ in 0..5_000 {
        let changes = changes(&files().new_tree(&mut runner).unwrap().current());
        for ((_, least), answer) in changes.iter().zip(effects(&changes)) {
            *seen.entry((*least, answer)).or_insert(0) += 1;
        }
    }
    for effect in [Effect::Reload, Effect::Restart, Effect::Reboot] {
        assert!(seen.get(&(effect, effect)).is_some_and(|times| *times > 100), "{seen:?}");
    }
}

#[test]
fn the_edits_that_are_tried_come_to_every_answer() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut seen = std::collections::BTreeMap::new();
    for _ in 0..5_000 {
        let (before, after) = pair().new_tree(&mut runner).unwrap().current();
        let exact = reference(&read(before.as_bytes()), &read(after.as_bytes()));
        *seen.entry((exact, effect(test::file(PATH, &before, &after)))).or_insert(0) += 1;
    }
    for effect in [Effect::Reload, Effect::Restart, Effect::Reboot] {
        assert!(seen.get(&(effect, effect)).is_some_and(|times| *times > 100), "{seen:?}");
    }
}

#[test]
fn the_reference_decodes_and_finds_what_it_should() {
    assert_eq!(decode(b"QUJDRA=="), Some(b"ABCD".to_vec()));
    let text = b"# -----BEGIN CERTIFICATE-----\nA: b\n\nQUJD\n-----END CERTIFICATE-----\nx";
    assert!(read(text).trusted == BTreeSet::from([b"ABC".to_vec()]));
}
