//! The password of a user: one field of one line in /etc/shadow.
//!
//! The file is everybody's: other users' lines change whenever somebody changes a password.
//! So what is compared, kept and put back is that one field, and every other byte stays as
//! it is. Whoever changes the file holds the lock that shadow-utils and systemd take too.

mod hash;
mod line;
mod lock;

pub use hash::Hash;
pub use line::{FILE, ShadowError};
pub use lock::Lock;

use crate::tree::{Attribute, Folder, Found, Owner};
use line::Fields;
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};
use tread_model::digest::Digest;

/// What stands between the file and the user in the path of a password.
const BETWEEN: &str = ":";
/// More than any such file has.
const MOST: u64 = 16 << 20;
const SECONDS_OF_DAY: u64 = 86_400;

/// The path of a user's password among all that a config puts on the disk:
/// `/etc/shadow:core`.
pub fn path_of(user: &str) -> String {
    format!("{FILE}{BETWEEN}{user}")
}

/// The user whose password has this path.
pub fn user_of(path: &str) -> Option<&str> {
    path.strip_prefix(FILE)?.strip_prefix(BETWEEN)
}

/// Today, as shadow(5) counts.
pub fn today() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs() / SECONDS_OF_DAY
}

/// /etc/shadow as it is at one moment.
#[derive(Clone, PartialEq, Eq)]
pub struct Shadow {
    bytes: Vec<u8>,
}

impl Shadow {
    /// Reads it; nothing if it is not there.
    pub fn read(folder: &Folder, name: &str) -> io::Result<Option<Shadow>> {
        Ok(folder.read(name, MOST)?.map(|bytes| Shadow { bytes }))
    }

    /// All of it.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The hash of a user's password.
    pub fn hash(&self, user: &str) -> Result<Hash, ShadowError> {
        let fields = Fields::of(&self.bytes, user)?;
        Ok(Hash::of_field(self.bytes.get(fields.hash).unwrap_or_default()))
    }

    /// What counts of it: a user's hash, by its digest.
    pub fn seen(&self, user: &str) -> Result<Found, ShadowError> {
        Ok(self.hash(user)?.seen())
    }

    /// The same with another hash for a user, set on this day. Day 0 would have the user change
    /// the password at once, and is what a clock says that was never set: then no day is said.
    pub fn with(&self, user: &str, hash: &Hash, day: u64) -> Result<Shadow, ShadowError> {
        let day = if day == 0 { String::new() } else { day.to_string() };
        self.with_fields(user, hash.as_bytes(), day.as_bytes())
    }

    /// The same with a user's hash from `right`, and the day on which that was set. But a day that
    /// is no longer the one in `wrong` stays: somebody changed it meanwhile.
    pub fn with_hash_from(
        &self,
        user: &str,
        right: &Shadow,
        wrong: Option<&Shadow>,
    ) -> Result<Shadow, ShadowError> {
        let hash = right.hash(user)?;
        let own = self.day(user)?;
        let day = match wrong.map(|wrong| wrong.day(user)).transpose()? {
            Some(day) if day != own => own,
            _ => right.day(user)?,
        };
        self.with_fields(user, hash.as_bytes(), day)
    }

    /// Whether both are the same but for a user's hash and the day on which it was set.
    pub fn is_else_as(&self, other: &Shadow, user: &str) -> bool {
        let blank = |it: &Shadow| it.with_fields(user, b"", b"");
        matches!((blank(self), blank(other)), (Ok(one), Ok(two)) if one == two)
    }

    fn day(&self, user: &str) -> Result<&[u8], ShadowError> {
        Ok(self.bytes.get(Fields::of(&self.bytes, user)?.day).unwrap_or_default())
    }

    fn with_fields(&self, user: &str, hash: &[u8], day: &[u8]) -> Result<Shadow, ShadowError> {
        let fields = Fields::of(&self.bytes, user)?;
        let part = |range| self.bytes.get(range).unwrap_or_default();
        let between = part(fields.hash.end..fields.day.start);
        let (before, after) = (part(0..fields.hash.start), part(fields.day.end..self.bytes.len()));
        Ok(Shadow { bytes: [before, hash, between, day, after].concat() })
    }
}

/// What counts of what stands under a name: a user's hash. A file that is not there, or has
/// no line of the user, is nothing; a line that cannot be relied on is something else.
pub fn see(folder: &Folder, name: &str, user: &str) -> io::Result<Found> {
    match folder.stat(name)?.map(|stat| stat.kind) {
        None => return Ok(Found::Absent),
        Some(crate::tree::Kind::File) => {}
        Some(_) => return Ok(Found::Other),
    }
    let Some(shadow) = Shadow::read(folder, name)? else { return Ok(Found::Absent) };
    Ok(match shadow.seen(user) {
        Ok(seen) => seen,
        Err(ShadowError::Missing { .. }) => Found::Absent,
        Err(ShadowError::Twice { .. } | ShadowError::Odd { .. }) => Found::Other,
    })
}

/// Whose the file is, and what attributes it has: a new one gets the same.
pub fn kept(folder: &Folder, name: &str) -> io::Result<(Owner, Vec<Attribute>)> {
    let stat = folder.stat(name)?.ok_or(io::ErrorKind::NotFound)?;
    Ok((stat.owner, folder.lasting_attributes(name)?))
}

impl Hash {
    /// What is seen where it stands.
    pub fn seen(&self) -> Found {
        Found::Field { digest: Digest::of(self.as_bytes()) }
    }
}

#[cfg(test)]
mod tests;
