//! sha256 over length-prefixed, versioned fields.

pub(crate) mod lanes;

use sha2::{Digest as _, Sha256};
use std::fmt;
use std::hash::{Hash, Hasher};

/// A sha256 digest; shown as `sha256:HEX`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The digest of plain bytes, without any framing.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(Sha256::digest(bytes).into())
    }

    /// Tells values apart within one run of the program: another build may give
    /// others, so it is neither shown nor kept.
    pub fn of_value(value: &(impl Hash + ?Sized)) -> Digest {
        let mut fields = ByHash(Sha256::new());
        value.hash(&mut fields);
        Digest(fields.0.finalize().into())
    }

    /// `sha256:` and this, cut to twelve characters: for people.
    pub fn short(&self) -> String {
        let [a, b, c, d, e, f, ..] = self.0;
        format!("{a:02x}{b:02x}{c:02x}{d:02x}{e:02x}{f:02x}")
    }

    /// Reads what [`fmt::Display`] wrote.
    pub fn parse(text: &str) -> Option<Digest> {
        let hex = text.strip_prefix("sha256:")?.as_bytes();
        let (pairs, []) = hex.as_chunks::<2>() else { return None };
        let mut out = [0u8; 32];
        if pairs.len() != out.len() {
            return None;
        }
        let nibble = |c: u8| match c {
            b'0'..=b'9' => Some(c - b'0'),
            b'a'..=b'f' => Some(c - b'a' + 10),
            _ => None,
        };
        for (byte, [high, low]) in out.iter_mut().zip(pairs) {
            *byte = nibble(*high)? << 4 | nibble(*low)?;
        }
        Some(Digest(out))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl serde::Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Takes what a value hashes, which tells all its fields apart.
struct ByHash(Sha256);

impl Hasher for ByHash {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let Digest([a, b, c, d, e, f, g, h, ..]) = Digest(self.0.clone().finalize().into());
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }
}

/// A digest in the making: every field is preceded by its length, so that no
/// two lists of fields give the same bytes.
pub struct Fields(Sha256);

impl Fields {
    /// Starts a digest of the kind that `version` names, such as `tread plan 1`.
    pub fn new(version: &str) -> Fields {
        let mut fields = Fields(Sha256::new());
        fields.field(version.as_bytes());
        fields
    }

    /// Adds one field.
    pub fn field(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    /// Adds a count or a number.
    pub fn number(&mut self, number: u64) {
        self.0.update(number.to_le_bytes());
    }

    /// Adds another digest.
    pub fn digest(&mut self, digest: &Digest) {
        self.0.update(digest.0);
    }

    /// The digest of all fields so far.
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_reads_back_what_it_printed() {
        let digest = Digest::of(b"tread");
        assert_eq!(Digest::parse(&digest.to_string()), Some(digest));
        assert_eq!(Digest::parse("sha256:00"), None);
        assert_eq!(Digest::parse("tread"), None);
    }

    #[test]
    fn values_that_differ_have_digests_that_differ() {
        type Part = (&'static str, Option<&'static [u8]>);
        let of = |value: &[Part]| Digest::of_value(value);
        let values: &[&[Part]] = &[
            &[],
            &[("", None)],
            &[("ab", Some(b"c"))],
            &[("a", Some(b"bc"))],
            &[("a", Some(b"")), ("bc", None)],
            &[("a", None), ("bc", Some(b""))],
        ];
        for (index, one) in values.iter().enumerate() {
            for (other_index, other) in values.iter().enumerate() {
                assert_eq!(of(one) == of(other), index == other_index, "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn moving_a_byte_from_one_field_to_the_next_changes_the_digest() {
        let of = |fields: &[&[u8]]| {
            let mut all = Fields::new("test 1");
            fields.iter().for_each(|field| all.field(field));
            all.finish()
        };
        assert_ne!(of(&[b"ab", b"c"]), of(&[b"a", b"bc"]));
    }
}
