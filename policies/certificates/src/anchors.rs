//! Whether a file of trust anchors trusts more than before, or less.

use std::collections::BTreeSet;
use tread_guest_sdk::{Change, State};

/// What becomes of the trust that a file gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    /// The same certificates.
    Same,
    /// All from before, and more.
    Added,
    /// One from before is missing.
    Withdrawn,
    /// The file cannot be compared.
    Unknown,
}

/// Compares the certificates of both sides; their order and what stands
/// between them does not matter.
pub(crate) fn compare(change: &Change) -> Trust {
    let (Some(before), Some(after)) = (side(&change.before), side(&change.after)) else {
        // Without anything before there is nothing to be withdrawn.
        return if change.before.is_absent() { Trust::Added } else { Trust::Unknown };
    };
    if !before.is_subset(&after) {
        Trust::Withdrawn
    } else if before.len() == after.len() {
        Trust::Same
    } else {
        Trust::Added
    }
}

/// The certificates of one side; none if they cannot be told.
fn side(state: &State) -> Option<BTreeSet<String>> {
    if state.is_absent() { Some(BTreeSet::new()) } else { certificates(state.as_text()?) }
}

const PEM: [(&str, &str); 2] = [
    ("-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"),
    ("-----BEGIN TRUSTED CERTIFICATE-----", "-----END TRUSTED CERTIFICATE-----"),
];

/// The PEM blocks of a text, without white space, each with its first line;
/// none if one is broken, or nothing is a certificate.
fn certificates(text: &str) -> Option<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let mut lines = text.lines().map(str::trim_ascii_end);
    while let Some(begin) = lines.find(|line| line.starts_with("-----BEGIN")) {
        let (_, end) = PEM.iter().find(|(known, _)| *known == begin)?;
        let mut block = begin.to_string();
        loop {
            let line = lines.next()?;
            if line == *end {
                break;
            }
            block.extend(line.split_ascii_whitespace());
        }
        found.insert(block);
    }
    (!found.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tread_guest_sdk::test;

    fn pem(body: &str) -> String {
        format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n")
    }

    fn trust(before: &str, after: &str) -> Trust {
        compare(&test::file("/etc/pki/ca-trust/source/anchors/a.pem", before, after))
    }

    #[test]
    fn certificates_are_compared_and_not_their_surroundings() {
        let (a, b) = (pem("QUJD\nREVG"), pem("R0hJ"));
        assert_eq!(trust(&a, &format!("# note\n{}", pem("QUJDREVG"))), Trust::Same);
        assert_eq!(trust(&format!("{a}{b}"), &format!("{b}{a}")), Trust::Same);
        assert_eq!(trust(&a, &a.replace('\n', "\r\n")), Trust::Same);
        assert_eq!(trust(&a, &format!("{b}{a}")), Trust::Added);
        assert_eq!(trust(&format!("{a}{b}"), &b), Trust::Withdrawn);
        assert_eq!(trust(&a, &b), Trust::Withdrawn);
    }

    #[test]
    fn a_trusted_certificate_is_another_than_the_plain_one() {
        let trusted = pem("QUJD").replace(" CERTIFICATE", " TRUSTED CERTIFICATE");
        assert_eq!(trust(&trusted, &pem("QUJD")), Trust::Withdrawn);
    }

    #[test]
    fn what_is_no_certificate_is_not_guessed() {
        let a = pem("QUJD");
        for odd in [
            "",
            "[p11-kit-object-v1]\nlabel: \"x\"",
            "-----BEGIN CERTIFICATE-----\nQUJD",
            "-----BEGIN X509 CRL-----\nQUJD\n-----END X509 CRL-----",
        ] {
            assert_eq!(trust(odd, &a), Trust::Unknown, "{odd:?}");
            assert_eq!(trust(&a, odd), Trust::Unknown, "{odd:?}");
        }
        let added = test::file_added("/etc/pki/ca-trust/source/anchors/a.der", "\u{30}\u{1}");
        assert_eq!(compare(&added), Trust::Added);
    }
}
