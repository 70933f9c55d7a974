//! Where a user's fields are among the lines of shadow(5).

use std::ops::Range;

/// The file.
pub const FILE: &str = "/etc/shadow";

/// How many fields a line has.
const FIELDS: usize = 9;

/// Why a user's line cannot be relied on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShadowError {
    /// There is none.
    #[error(
        "the host has no line of the user `{user}` in {FILE}, so it can have no password; add the user, or remove its passwordHash from the config"
    )]
    Missing {
        /// The user.
        user: String,
    },
    /// There are several: who reads them takes the first, and who writes them may not.
    #[error("the user `{user}` has several lines in {FILE}; remove all but one: pwck")]
    Twice {
        /// The user.
        user: String,
    },
    /// It is not as others read it.
    #[error(
        "the line of the user `{user}` in {FILE} does not have {FIELDS} fields; correct it: pwck"
    )]
    Odd {
        /// The user.
        user: String,
    },
}

/// Where in the file two of a user's fields are.
pub(super) struct Fields {
    /// The hash of its password.
    pub(super) hash: Range<usize>,
    /// The day on which that was set.
    pub(super) day: Range<usize>,
}

impl Fields {
    /// Of the one line of a user.
    pub(super) fn of(bytes: &[u8], user: &str) -> Result<Fields, ShadowError> {
        let user_of = || user.to_owned();
        let (mut start, mut found) = (0, None);
        for line in bytes.split(|byte| *byte == b'\n') {
            if line.split(|byte| *byte == b':').next() == Some(user.as_bytes()) {
                if found.is_some() {
                    return Err(ShadowError::Twice { user: user_of() });
                }
                found = Some((start, line));
            }
            start += line.len() + 1;
        }
        let (start, line) = found.ok_or_else(|| ShadowError::Missing { user: user_of() })?;
        let mut fields = Vec::new();
        let mut at = start;
        for field in line.split(|byte| *byte == b':') {
            fields.push(at..at + field.len());
            at += field.len() + 1;
        }
        match (fields.len(), fields.get(1), fields.get(2)) {
            (FIELDS, Some(hash), Some(day)) => Ok(Fields { hash: hash.clone(), day: day.clone() }),
            _ => Err(ShadowError::Odd { user: user_of() }),
        }
    }
}
