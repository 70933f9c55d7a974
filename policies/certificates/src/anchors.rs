//! Whether a file of trust anchors trusts more than before, or less.
//!
//! update-ca-trust reads with p11-kit, which decides what counts here: a file
//! with the header of p11-kit's own format is one (and may distrust); otherwise
//! every PEM block counts, wherever on its line it begins; a file without any
//! is taken for one certificate in DER. What p11-kit may read in another way
//! than this is not compared at all. It passes over directories: a file in one
//! trusts nothing, and distrusts nothing.

use crate::state::bytes;
use std::collections::BTreeSet;
use tread_guest_sdk::{Change, Content, State};

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

const DIRECTORY: &str = "/etc/pki/ca-trust/source/anchors/";

/// Whether a file is one of trust anchors, read or not.
pub(crate) fn is_one(path: &str) -> bool {
    path.starts_with(DIRECTORY)
}

/// Whether update-ca-trust reads a file.
pub(crate) fn is_read(path: &str) -> bool {
    path.strip_prefix(DIRECTORY).is_some_and(|name| !name.contains('/'))
}

/// The certificates of all files of trust anchors that change and are read, on both sides: one that
/// moves from file to file is trusted as before.
#[derive(Debug, Default)]
pub(crate) struct Anchors {
    before: BTreeSet<Vec<u8>>,
    after: BTreeSet<Vec<u8>>,
}

impl Anchors {
    /// Of those of these changes that are read. What cannot be compared trusts nothing.
    pub(crate) fn of<'c>(changes: impl Iterator<Item = &'c Change>) -> Anchors {
        let mut all = Anchors::default();
        for file in changes.filter(|change| change.path().is_some_and(is_read)) {
            all.before.extend(side(&file.before).into_iter().flatten());
            all.after.extend(side(&file.after).into_iter().flatten());
        }
        all
    }

    /// Compares the certificates of both sides of one of the files; their order, repetition and what
    /// stands between them do not matter.
    pub(crate) fn compare(&self, change: &Change) -> Trust {
        let (Some(before), Some(after)) = (side(&change.before), side(&change.after)) else {
            return Trust::Unknown;
        };
        if !before.iter().all(|block| self.after.contains(block)) {
            Trust::Withdrawn
        } else if after.iter().all(|block| self.before.contains(block)) {
            Trust::Same
        } else {
            Trust::Added
        }
    }
}

/// Whether either side may say what a certificate is not to be trusted for.
pub(crate) fn may_distrust(change: &Change) -> bool {
    [&change.before, &change.after].into_iter().any(|state| {
        bytes(state).is_some_and(|bytes| has(bytes, OWN_FORMAT) || has(bytes, TRUSTED))
    })
}

const OWN_FORMAT: &[u8] = b"[p11-kit-object";
const TRUSTED: &[u8] = b"-----BEGIN TRUSTED ";
const ANY: &[u8] = b"-----BEGIN";
const BEGIN: &[u8] = b"-----BEGIN CERTIFICATE-----";
const END: &[u8] = b"-----END CERTIFICATE-----";

fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Whether Go may find a certificate in a file.
pub(crate) fn may_hold_one(bytes: &[u8]) -> bool {
    may_hold(bytes, |kind| kind == b"CERTIFICATE")
}

/// Whether Go may find a private key in a file.
pub(crate) fn may_hold_key(bytes: &[u8]) -> bool {
    may_hold(bytes, |kind| kind.ends_with(b"PRIVATE KEY"))
}

/// Whether Go may find a block of such a kind: its first and last lines hold nothing else, and between
/// the two no other block begins or ends. What is in it is not looked at.
fn may_hold(bytes: &[u8], is_wanted: fn(&[u8]) -> bool) -> bool {
    let mut open = None;
    bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end).any(|line| {
        if let Some(end) = line.strip_prefix(b"-----END ") {
            return open.take().is_some_and(|kind| end.strip_suffix(b"-----") == Some(kind));
        }
        if let Some(begin) = line.strip_prefix(b"-----BEGIN ") {
            open = begin.strip_suffix(b"-----").filter(|kind| is_wanted(kind));
        }
        false
    })
}

/// The certificates of one side, each once; none if they cannot be told.
fn side(state: &State) -> Option<Vec<Vec<u8>>> {
    match state {
        State::Absent => Some(Vec::new()),
        State::File(file) => match &file.content {
            Content::Bytes(bytes) => certificates(bytes),
            Content::Absent | Content::Digest(_) => None,
        },
        _ => None,
    }
}

/// The certificates in a file, each once; none if they cannot be told.
pub(crate) fn certificates(bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    if has(bytes, OWN_FORMAT) {
        return None;
    }
    if !has(bytes, ANY) {
        let whole = if bytes.is_empty() { Vec::new() } else { vec![bytes.to_vec()] };
        return Some(whole);
    }
    // The search for blocks ends at a zero, and other control characters are
    // space inside them.
    let control = |byte: &u8| *byte < b' ' && !matches!(byte, b'\n' | b'\r' | b'\t');
    if bytes.iter().any(control) {
        return None;
    }
    let mut found: Vec<Vec<u8>> = Vec::new();
    let mut lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    while let Some(begin) = lines.find(|line| has(line, ANY)) {
        if begin != BEGIN {
            return None;
        }
        let block = block(&mut lines)?;
        if !found.contains(&block) {
            found.push(block);
        }
    }
    Some(found)
}

/// Whether a reader that takes blocks only where nothing else is on their first and
/// last lines finds the same certificates.
pub(crate) fn is_plain(bytes: &[u8]) -> bool {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    lines.all(|line| {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        line == BEGIN || line == END || !(has(line, ANY) || has(line, b"-----END"))
    })
}

/// What is encoded in a block, up to its end. An empty line would end its
/// headers, of which a certificate has none.
fn block<'a>(lines: &mut impl Iterator<Item = &'a [u8]>) -> Option<Vec<u8>> {
    let mut block = Vec::new();
    loop {
        let line = lines.next()?;
        if line == END {
            return Some(block);
        }
        let encoded = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/= \t".contains(byte);
        if line.is_empty() || !line.iter().all(encoded) {
            return None;
        }
        block.extend(line.iter().filter(|byte| !byte.is_ascii_whitespace()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tread_guest_sdk::test;

    const PATH: &str = "/etc/pki/ca-trust/source/anchors/a.pem";

    fn pem(body: &str) -> String {
        format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n")
    }

    fn compare(change: &Change) -> Trust {
        Anchors::of([change].into_iter()).compare(change)
    }

    fn trust(before: &str, after: &str) -> Trust {
        compare(&test::file(PATH, before, after))
    }

    #[test]
    fn certificates_are_compared_and_not_their_surroundings() {
        let (a, b) = (pem("QUJD\nREVG"), pem("R0hJ"));
        assert_eq!(trust(&a, &format!("# note ---\n{}", pem("QUJDREVG"))), Trust::Same);
        assert_eq!(trust(&a, &format!("{a}between\n{a}")), Trust::Same);
        assert_eq!(trust(&format!("{a}{b}"), &format!("{b}{a}")), Trust::Same);
        assert_eq!(trust(&a, &a.replace('\n', "\r\n")), Trust::Same);
        assert_eq!(trust(&a, &format!("{b}{a}")), Trust::Added);
        assert_eq!(trust(&format!("{a}{b}"), &b), Trust::Withdrawn);
        assert_eq!(trust(&a, &b), Trust::Withdrawn);
        assert_eq!(trust("", &a), Trust::Added);
        assert_eq!(trust(&a, ""), Trust::Withdrawn);
    }

    #[test]
    fn a_certificate_that_moves_to_another_file_is_trusted_as_before() {
        let (a, b) = (pem("QUJD"), pem("R0hJ"));
        let other = "/etc/pki/ca-trust/source/anchors/b.pem";
        let both = |before: &str, after: &str| {
            let files = [test::file_removed(PATH, before), test::file_added(other, after)];
            let all = Anchors::of(files.iter());
            files.map(|file| all.compare(&file))
        };
        assert_eq!(both(&a, &a), [Trust::Same, Trust::Same]);
        assert_eq!(both(&a, &format!("{b}{a}")), [Trust::Same, Trust::Added]);
        assert_eq!(both(&format!("{a}{b}"), &a), [Trust::Withdrawn, Trust::Same]);
        assert_eq!(both(&a, &b), [Trust::Withdrawn, Trust::Added]);
        let own = format!("[p11-kit-object-v1]\n{a}");
        assert_eq!(both(&a, &own), [Trust::Withdrawn, Trust::Unknown]);
    }

    #[test]
    fn what_is_in_a_directory_below_is_not_read() {
        let a = pem("QUJD");
        for below in ["/etc/pki/ca-trust/source/anchors/old/b.pem", &format!("{PATH}.d/a.pem")] {
            assert!(is_one(below) && !is_read(below), "{below}");
            let files = [test::file_removed(PATH, &a), test::file_added(below, &a)];
            assert_eq!(Anchors::of(files.iter()).compare(&files[0]), Trust::Withdrawn, "{below}");
            let files = [test::file_added(PATH, &a), test::file_removed(below, &a)];
            assert_eq!(Anchors::of(files.iter()).compare(&files[0]), Trust::Added, "{below}");
        }
        assert!(is_read(PATH) && is_read("/etc/pki/ca-trust/source/anchors/.hidden"));
        for elsewhere in ["/etc/pki/ca-trust/source/anchors", "/etc/pki/ca-trust/source/a.pem"] {
            assert!(!is_one(elsewhere) && !is_read(elsewhere), "{elsewhere}");
        }
    }

    #[test]
    fn a_block_needs_its_first_line_and_its_last_one() {
        let (begin, end) = ("-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----");
        let (key, other) = ("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----");
        for (text, expected) in [
            (format!("{begin}\nQUJD\n{end}\n"), true),
            (format!("{begin}\r\nQUJD\r\n{end}\r\n"), true),
            (format!("{begin} \t\nQUJD\n{end} "), true),
            (format!("# mine\n{key}\nQUJD\n{other}\n{begin}\nQUJD\n{end}"), true),
            // A whole one, and one that was cut off.
            (format!("{begin}\nQUJD\n{end}\n{begin}\nQU"), true),
            (format!("{begin}\nQU\n{begin}\nQUJD\n{end}\n"), true),
            (format!("{begin}\nQUJD\n"), false),
            (format!("{begin}\nQUJD\n-----END CERTIF"), false),
            (format!("{begin}\nQUJD\n{}", end.trim_end_matches('-')), false),
            (format!("{end}\nQUJD\n{begin}\n"), false),
            (format!("{begin}\nQUJD\n{other}\n{end}\n"), false),
            (format!("{begin}\n{key}\nQUJD\n{end}\n"), false),
            (format!("{begin}\nQUJD{end}\n"), false),
            (format!("{begin}QUJD\n{end}\n"), false),
            // Go looks at the start of a line only.
            (format!("  {begin}\n  QUJD\n  {end}\n"), false),
            (format!("\u{feff}{begin}\nQUJD\n{end}\n"), false),
            (format!("{begin} {end}"), false),
            (String::new(), false),
        ] {
            assert_eq!(may_hold_one(text.as_bytes()), expected, "{text:?}");
        }
        for kind in ["PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY"] {
            let block = format!("-----BEGIN {kind}-----\nQUJD\n-----END {kind}-----\n");
            assert!(may_hold_key(block.as_bytes()) && !may_hold_one(block.as_bytes()), "{kind}");
            assert!(!may_hold_key(block.replace("-----END ", "-----END OTHER ").as_bytes()));
            assert!(!may_hold_key(block.replace(kind, "CERTIFICATE").as_bytes()));
        }
    }

    #[test]
    fn a_block_counts_wherever_its_line_begins() {
        let (a, b) = (pem("QUJD"), pem("R0hJ"));
        let indented = |text: &str| text.replace("-----BEGIN", " \t\r-----BEGIN");
        assert_eq!(trust(&a, &indented(&a)), Trust::Same);
        assert_eq!(trust(&format!("{a}{}", indented(&b)), &a), Trust::Withdrawn);
        assert_eq!(trust(&a, &format!("{a}{}", indented(&b))), Trust::Added);
        // On a line with other text p11-kit finds it too.
        for before in ["# ", "x", "-----", "x\r"] {
            let hidden = b.replace("-----BEGIN", &format!("{before}-----BEGIN"));
            assert_eq!(trust(&format!("{a}{hidden}"), &a), Trust::Unknown, "{before:?}");
        }
    }

    #[test]
    fn what_p11_kit_may_read_in_another_way_is_not_compared() {
        let a = pem("QUJD");
        for odd in [
            "[p11-kit-object-v1]\nclass: certificate\nx-distrusted: true\n",
            "# [p11-kit-object-v1]\n",
            "-----BEGIN TRUSTED CERTIFICATE-----\nQUJD\n-----END TRUSTED CERTIFICATE-----\n",
            "-----BEGIN X509 CERTIFICATE-----\nQUJD\n-----END X509 CERTIFICATE-----\n",
            "-----BEGIN X509 CRL-----\nQUJD\n-----END X509 CRL-----\n",
            "-----BEGIN CERTIFICATE-----\nQUJD\n",
            "-----BEGIN CERTIFICATE-----\nQUJD\n-----END X-----\n-----END CERTIFICATE-----\n",
            "-----BEGIN CERTIFICATE-----\nQU\n\nJD\n-----END CERTIFICATE-----\n",
            "-----BEGIN CERTIFICATE-----\nQUJD\n \n-----END CERTIFICATE-----\n",
            "-----BEGIN CERTIFICATE-----\nA: b\nQUJD\n-----END CERTIFICATE-----\n",
            "-----BEGIN CERTIFICATE-----QUJD\n-----END CERTIFICATE-----\n",
            "-----BEGIN CERTIFICATE-----\nQUJD-----END CERTIFICATE-----\n",
            "-----BEGIN CERTIFICATE-----\n-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
            "-----BEGIN\n",
            "\u{0}",
        ] {
            for odd in [format!("{odd}{a}"), format!("{a}{odd}")] {
                assert_eq!(trust(&odd, &a), Trust::Unknown, "{odd:?}");
                assert_eq!(trust(&a, &odd), Trust::Unknown, "{odd:?}");
                let added = test::file_added(PATH, &odd);
                assert_eq!(compare(&added), Trust::Unknown, "{odd:?}");
                let removed = test::file_removed(PATH, &odd);
                assert_eq!(compare(&removed), Trust::Unknown, "{odd:?}");
            }
        }
    }

    #[test]
    fn a_file_without_pem_is_one_certificate() {
        let der = "\u{30}\u{1}\u{0}";
        assert_eq!(compare(&test::file_added(PATH, der)), Trust::Added);
        assert_eq!(compare(&test::file_removed(PATH, der)), Trust::Withdrawn);
        assert_eq!(trust(der, "\u{30}\u{1}\u{1}"), Trust::Withdrawn);
    }
}
