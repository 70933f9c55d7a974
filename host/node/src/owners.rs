//! The numbers behind the names of users and groups.
//!
//! They come from the host's own files: the process that applies a config may run with
//! another system's libraries, or with none. What the image ships stands in
//! `/usr/lib/passwd` and `/usr/lib/group` where the image is an ostree; the files below
//! `/etc` win, as nsswitch has them first.

pub mod table;

use crate::tree::{PathError, Tree};
use table::{Account, Group};

/// The files of users and of groups, those that win first.
const PASSWD: [&str; 2] = ["/etc/passwd", "/usr/lib/passwd"];
const GROUP: [&str; 2] = ["/etc/group", "/usr/lib/group"];

/// As many bytes as such a file may have.
const MOST: u64 = 16 << 20;

/// The last number but one: the last means "leave it" to the kernel.
const LAST: u32 = u32::MAX - 1;

/// Why a name has no number.
#[derive(Debug, thiserror::Error)]
pub enum OwnerError {
    /// A file of the host cannot be read.
    #[error("the users and groups of the host cannot be read: {0}")]
    Unreadable(#[from] PathError),
    /// The host does not know the user.
    #[error(
        "{path}: the host knows no user `{name}` (/etc/passwd, /usr/lib/passwd); name one that it knows, or a number, or add the user first"
    )]
    NoUser {
        /// What shall belong to the user.
        path: String,
        /// The user.
        name: String,
    },
    /// The host does not know the group.
    #[error(
        "{path}: the host knows no group `{name}` (/etc/group, /usr/lib/group); name one that it knows, or a number, or add the group first"
    )]
    NoGroup {
        /// What shall belong to the group.
        path: String,
        /// The group.
        name: String,
    },
    /// A number that no user or group can have.
    #[error("{path}: no user and no group can have the number {number}; {LAST} is the last")]
    NoNumber {
        /// What shall belong to it.
        path: String,
        /// The number.
        number: String,
    },
}

/// The users and groups of a host.
#[derive(Debug, Clone, Default)]
pub struct Owners {
    accounts: Vec<Account>,
    groups: Vec<Group>,
}

impl Owners {
    /// Reads them from the host's files; a file that is missing has none.
    pub fn read(tree: &Tree) -> Result<Owners, OwnerError> {
        let mut owners = Owners::default();
        for path in PASSWD {
            owners.accounts.extend(table::accounts(&text(tree, path)?));
        }
        for path in GROUP {
            owners.groups.extend(table::groups(&text(tree, path)?));
        }
        Ok(owners)
    }

    /// A user by name.
    pub fn account(&self, name: &str) -> Option<&Account> {
        self.accounts.iter().find(|account| account.name == name)
    }

    /// The number of the user to whom a path shall belong, by name or number.
    pub fn uid(&self, path: &str, name: &str) -> Result<u32, OwnerError> {
        if let Some(number) = number(path, name)? {
            return Ok(number);
        }
        match self.account(name) {
            Some(account) => Ok(account.uid),
            None if name == "root" => Ok(0),
            None => Err(OwnerError::NoUser { path: path.to_owned(), name: name.to_owned() }),
        }
    }

    /// The number of the group to which a path shall belong, by name or number.
    pub fn gid(&self, path: &str, name: &str) -> Result<u32, OwnerError> {
        if let Some(number) = number(path, name)? {
            return Ok(number);
        }
        match self.groups.iter().find(|group| group.name == name) {
            Some(group) => Ok(group.gid),
            None if name == "root" => Ok(0),
            None => Err(OwnerError::NoGroup { path: path.to_owned(), name: name.to_owned() }),
        }
    }
}

/// What a name is as a number, if it is one.
fn number(path: &str, name: &str) -> Result<Option<u32>, OwnerError> {
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(None);
    }
    match name.parse() {
        Ok(number) if number <= LAST => Ok(Some(number)),
        _ => Err(OwnerError::NoNumber { path: path.to_owned(), number: name.to_owned() }),
    }
}

/// What a file of the host says. Bytes that are not valid text are in fields that do
/// not matter here, such as a user's full name.
fn text(tree: &Tree, path: &str) -> Result<String, PathError> {
    let bytes = tree.read(path, MOST)?.unwrap_or_default();
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests;
