//! Digests: of what only tread compares, and of what others check too.

use sha2::Digest as _;
use std::cell::Cell;
use std::fmt;
use std::hash::{Hash, Hasher};

/// BLAKE3 works on sixteen parts of 1,024 bytes at a time at most: what is smaller is
/// hashed faster beside others, and what is larger need not be copied.
const SMALL: usize = 16 << 10;

/// The digest of what only tread compares: BLAKE3, which is fast on every
/// processor; shown as `blake3:HEX`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

/// The digest of what others check too: components, pins, settings; shown as
/// `sha256:HEX`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sha256(pub [u8; 32]);

impl Digest {
    /// Stands where no digest has been computed: it is the digest of nothing.
    pub(crate) const NONE: Digest = Digest([0; 32]);
    const ALGORITHM: &str = "blake3:";

    /// The digest of plain bytes, without any framing.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(blake3::hash(bytes).into())
    }

    /// The digest of bytes that come piece by piece; the same as of all of them at once.
    pub fn of_pieces() -> Pieces {
        Pieces(blake3::Hasher::new())
    }

    /// Tells values apart within one run of the program: another build may give
    /// others, so it is neither shown nor kept.
    pub fn of_value(value: &(impl Hash + ?Sized)) -> Digest {
        let mut fields = ByHash(blake3::Hasher::new());
        value.hash(&mut fields);
        Digest(fields.0.finalize().into())
    }
}

/// A digest on its way: what was not read at once.
#[derive(Debug, Default, Clone)]
pub struct Pieces(blake3::Hasher);

impl Pieces {
    /// The next piece.
    pub fn add(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// The digest of all of them.
    pub fn finish(&self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

impl Sha256 {
    const ALGORITHM: &str = "sha256:";

    /// The digest of plain bytes.
    pub fn of(bytes: &[u8]) -> Sha256 {
        DIGESTED.set(DIGESTED.get().wrapping_add(bytes.len()));
        Sha256(sha2::Sha256::digest(bytes).into())
    }

    /// How many bytes this thread has had digested: what needs none is as fast on a
    /// processor without instructions for it.
    pub fn digested() -> usize {
        DIGESTED.get()
    }
}

thread_local! {
    static DIGESTED: Cell<usize> = const { Cell::new(0) };
}

/// What both are as text.
macro_rules! as_text {
    ($digest:ident) => {
        impl $digest {
            /// Reads what [`fmt::Display`] wrote.
            pub fn parse(text: &str) -> Option<$digest> {
                read_hex(text.strip_prefix($digest::ALGORITHM)?).map($digest)
            }

            /// The first twelve of its hexadecimal digits: for people.
            pub fn short(&self) -> String {
                let [a, b, c, d, e, f, ..] = self.0;
                format!("{a:02x}{b:02x}{c:02x}{d:02x}{e:02x}{f:02x}")
            }

            /// Its hexadecimal digits alone.
            pub fn hex(&self) -> String {
                let shown = self.to_string();
                shown.strip_prefix($digest::ALGORITHM).unwrap_or_default().to_owned()
            }
        }

        impl AsRef<[u8; 32]> for $digest {
            fn as_ref(&self) -> &[u8; 32] {
                &self.0
            }
        }

        impl fmt::Display for $digest {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($digest::ALGORITHM)?;
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $digest {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl serde::Serialize for $digest {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $digest {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<$digest, D::Error> {
                let text = std::borrow::Cow::<str>::deserialize(from)?;
                $digest::parse(&text).ok_or_else(|| {
                    let expected =
                        concat!("64 hexadecimal digits behind the name of a ", stringify!($digest));
                    serde::de::Error::invalid_value(serde::de::Unexpected::Str(&text), &expected)
                })
            }
        }
    };
}

as_text!(Digest);
as_text!(Sha256);

fn read_hex(hex: &str) -> Option<[u8; 32]> {
    let (pairs, []) = hex.as_bytes().as_chunks::<2>() else { return None };
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
    Some(out)
}

/// Takes what a value hashes, which tells all its fields apart.
struct ByHash(blake3::Hasher);

impl Hasher for ByHash {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = *self.0.finalize().as_bytes();
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }
}

/// A digest in the making: every field is preceded by its length, so that no
/// two lists of fields give the same bytes.
#[derive(Debug, Default)]
pub struct Fields(Vec<u8>);

impl Fields {
    /// Starts a digest of the kind that `version` names, such as `tread plan 1`.
    pub fn new(version: &str) -> Fields {
        let mut fields = Fields::default();
        fields.field(version.as_bytes());
        fields
    }

    /// Forgets all fields.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// How many bytes there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The digest of the bytes from here on.
    pub(crate) fn digest_from(&self, begin: usize) -> Digest {
        Digest::of(self.0.get(begin..).unwrap_or_default())
    }

    /// Adds what stands in other fields from here on.
    pub(crate) fn copy_from(&mut self, other: &Fields, begin: usize) {
        self.0.extend_from_slice(other.0.get(begin..).unwrap_or_default());
    }

    /// Adds one field.
    pub fn field(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// Adds one field that may be large.
    pub fn contents(&mut self, contents: &Contents<'_>) {
        match contents {
            Contents::Small(bytes) => {
                self.number(0);
                self.field(bytes);
            }
            Contents::Large(digest) => {
                self.number(1);
                self.digest(digest);
            }
        }
    }

    /// Adds a count or a number.
    pub fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    /// Adds another digest, of either kind.
    pub fn digest(&mut self, digest: &impl AsRef<[u8; 32]>) {
        self.0.extend_from_slice(digest.as_ref());
    }

    /// The digest of all fields so far.
    pub fn finish(&self) -> Digest {
        Digest::of(&self.0)
    }
}

/// Bytes as a digest takes them: what is large by a digest of its own. That is made
/// without a copy, of several parts at a time, and once for all that have these
/// bytes.
#[derive(Debug)]
pub enum Contents<'b> {
    /// As they are.
    Small(&'b [u8]),
    /// By their digest.
    Large(Digest),
}

impl Contents<'_> {
    /// Bytes, however many.
    pub fn of(bytes: &[u8]) -> Contents<'_> {
        match bytes.len() {
            ..=SMALL => Contents::Small(bytes),
            _ => Contents::Large(Digest::of(bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_reads_back_what_it_printed() {
        let digest = Digest::of(b"tread");
        assert_eq!(Digest::parse(&digest.to_string()), Some(digest));
        assert_eq!(Digest::parse("blake3:00"), None);
        assert_eq!(Digest::parse("tread"), None);
        let pin = Sha256::of(b"tread");
        assert_eq!(Sha256::parse(&pin.to_string()), Some(pin));
        assert_eq!(pin.to_string(), format!("sha256:{}", pin.hex()));
        assert_eq!(Digest::parse(&pin.to_string()), None, "neither is taken for the other");
        assert_eq!(Sha256::parse(&digest.to_string()), None);
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
