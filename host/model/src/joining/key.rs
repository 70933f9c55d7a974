//! What claims are signed with.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::hint::black_box;

/// How many bytes sign a claim.
pub(super) const SIGNATURE: usize = 16;

/// A key that only tread's service has.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Key([u8; 32]);

impl Key {
    /// Of random bytes.
    pub fn of(random: [u8; 32]) -> Key {
        Key(random)
    }

    pub(super) fn sign(&self, bytes: &[u8]) -> [u8; SIGNATURE] {
        let mut signature = [0; SIGNATURE];
        let all = blake3::keyed_hash(&self.0, bytes);
        signature.iter_mut().zip(all.as_bytes()).for_each(|(to, from)| *to = *from);
        signature
    }

    pub(super) fn has_signed(&self, bytes: &[u8], signature: &[u8; SIGNATURE]) -> bool {
        are_same(&self.sign(bytes), signature)
    }
}

/// Compares in a time that depends on the length alone.
pub(super) fn are_same<const N: usize>(one: &[u8; N], other: &[u8; N]) -> bool {
    let differing = one.iter().zip(other).fold(0, |all, (a, b)| black_box(all | (a ^ b)));
    black_box(differing) == 0
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

impl From<Key> for String {
    fn from(key: Key) -> String {
        base64_simd::STANDARD.encode_to_string(key.0)
    }
}

impl TryFrom<String> for Key {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Key, &'static str> {
        let bytes = base64_simd::STANDARD.decode_to_vec(text).ok();
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        bytes.map(Key).ok_or("expected a key: 32 bytes as base64")
    }
}
