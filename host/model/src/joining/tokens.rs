//! What a machine shows so that it is served the config of a pool.

use super::key::are_same;
use crate::digest::Digest;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The tokens of a pool: one, and while it is exchanged the one before it too.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tokens {
    /// Of which pool: its UID.
    pub pool: String,
    newest: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    former: Option<String>,
}

impl Tokens {
    /// A first one, of random bytes.
    pub fn fresh(pool: &str, random: [u8; 32]) -> Tokens {
        Tokens { pool: pool.to_owned(), newest: text(random), former: None }
    }

    /// Takes another one in its place. Machines with the one before are served until an admin
    /// ends that; there is none before that one, so this fails while there is one.
    pub fn exchange(&mut self, random: [u8; 32]) -> Result<(), &'static str> {
        if self.former.is_some() {
            return Err("it was exchanged already, and the token before the newest is still good");
        }
        self.former = Some(std::mem::replace(&mut self.newest, text(random)));
        Ok(())
    }

    /// Ends the one before the newest; whether there was one.
    pub fn end_former(&mut self) -> bool {
        self.former.take().is_some()
    }

    /// Whether the one before the newest is still good.
    pub fn has_former(&self) -> bool {
        self.former.is_some()
    }

    /// The one that new machines are given.
    pub fn newest(&self) -> &str {
        &self.newest
    }

    /// Whether this is one of them: in a time that depends on what was given alone.
    pub fn admit(&self, given: &str) -> bool {
        let given = Digest::of(given.as_bytes());
        let is = |token: &str| are_same(&Digest::of(token.as_bytes()).0, &given.0);
        let former = is(self.former.as_deref().unwrap_or(&self.newest));
        // Nobody is admitted by what was emptied by hand.
        let is_set = !self.newest.is_empty() && self.former.as_deref() != Some("");
        (is(&self.newest) | former) & is_set
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("pool", &self.pool).finish_non_exhaustive()
    }
}

fn text(random: [u8; 32]) -> String {
    base64_simd::URL_SAFE_NO_PAD.encode_to_string(random)
}
