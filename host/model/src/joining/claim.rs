//! What a machine says of itself when it registers, signed by who served it.

use super::key::{Key, SIGNATURE};
use crate::digest::{Digest, Fields};
use std::fmt;

/// How a claim begins; another form has another one.
const FORM: &str = "1";
/// How it ends: the value of a taint ends with a letter or a digit, and base64 need not.
const END: &str = "t";
/// What is signed besides.
const SIGNED: &[u8] = b"tread joining claim 1\0";
/// Pool, config, time, id.
const SAYS: usize = 8 + 8 + 5 + 8;
const ALL: usize = SAYS + SIGNATURE;

/// Which one of many objects: the first bytes of a digest of what it is called.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark([u8; 8]);

impl Mark {
    /// Of a pool, by its UID: another one of its name is another pool.
    pub fn of_pool(uid: &str) -> Mark {
        Mark::of("tread joining pool 1", uid)
    }

    /// Of a rendered config, by its name.
    pub fn of_config(name: &str) -> Mark {
        Mark::of("tread joining config 1", name)
    }

    /// As it is shown: sixteen digits.
    pub fn parse(text: &str) -> Option<Mark> {
        let is_digit = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
        let digits = Some(text).filter(|it| it.len() == 16 && it.bytes().all(is_digit))?;
        Some(Mark(u64::from_str_radix(digits, 16).ok()?.to_be_bytes()))
    }

    fn of(kind: &str, text: &str) -> Mark {
        let mut fields = Fields::new(kind);
        fields.field(text.as_bytes());
        let Digest([a, b, c, d, e, f, g, h, ..]) = fields.finish();
        Mark([a, b, c, d, e, f, g, h])
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}

impl fmt::Debug for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}

/// Which claim: random, and shown as sixteen digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub [u8; 8]);

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}

fn hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

/// What a claim says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// The pool.
    pub pool: Mark,
    /// The config that was served.
    pub config: Mark,
    /// When, in seconds since 1970.
    pub issued: u64,
    /// Which claim.
    pub id: Id,
}

/// Why a text is no claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invalid {
    /// It has not the form of one.
    Form,
    /// No key of tread's has signed it.
    Signature,
}

impl Claim {
    /// The text, as the value of a taint: 62 characters.
    pub fn signed(&self, key: &Key) -> String {
        let mut bytes = self.says();
        let signature = key.sign(&of_signature(&bytes));
        bytes.extend_from_slice(&signature);
        format!("{FORM}{}{END}", base64_simd::URL_SAFE_NO_PAD.encode_to_string(bytes))
    }

    /// What a text says that nobody proved: a hint for people, by which nothing is decided.
    pub fn unproved(text: &str) -> Option<Claim> {
        Claim::of(bytes(text)?.split_last_chunk::<SIGNATURE>()?.0)
    }

    /// Reads one that one of these keys has signed.
    pub fn read(text: &str, keys: &[Key]) -> Result<Claim, Invalid> {
        let bytes = bytes(text).ok_or(Invalid::Form)?;
        let (says, signature) = bytes.split_last_chunk::<SIGNATURE>().ok_or(Invalid::Form)?;
        let claim = Claim::of(says).ok_or(Invalid::Form)?;
        let signed = of_signature(says);
        // All of them: how long it takes says nothing of which.
        let by = keys.iter().filter(|key| key.has_signed(&signed, signature)).count();
        if by == 0 { Err(Invalid::Signature) } else { Ok(claim) }
    }

    fn says(&self) -> Vec<u8> {
        let [.., a, b, c, d, e] = self.issued.to_be_bytes();
        [&self.pool.0[..], &self.config.0, &[a, b, c, d, e], &self.id.0].concat()
    }

    fn of(says: &[u8]) -> Option<Claim> {
        let (pool, says) = says.split_first_chunk()?;
        let (config, says) = says.split_first_chunk()?;
        let ([a, b, c, d, e], says) = says.split_first_chunk()?;
        let id = says.try_into().ok()?;
        Some(Claim {
            pool: Mark(*pool),
            config: Mark(*config),
            issued: u64::from_be_bytes([0, 0, 0, *a, *b, *c, *d, *e]),
            id: Id(id),
        })
    }
}

/// Says and signature.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let inner = text.strip_prefix(FORM)?.strip_suffix(END)?;
    let inner = Some(inner).filter(|text| text.len() == ALL / 3 * 4)?;
    base64_simd::URL_SAFE_NO_PAD.decode_to_vec(inner).ok()
}

fn of_signature(says: &[u8]) -> Vec<u8> {
    [SIGNED, says].concat()
}
