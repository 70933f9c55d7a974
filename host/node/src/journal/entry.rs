//! One name that changes.

use crate::shadow::Hash;
use crate::tree::{Attribute, Found, Owner};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// One name that changes, or is held, as the journal keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// As the config has it.
    pub path: String,
    /// Where its folder really is: from the root, without links.
    pub folder: String,
    /// Its name in there.
    pub name: String,
    /// The user whose password it is: then the entry is about that one field of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_of: Option<String>,
    /// The stage that is on the same mount, by index.
    pub stage: usize,
    /// What is there before.
    pub old: Found,
    /// What is there afterwards.
    pub new: Found,
    /// Said where what is there afterwards is what the booted image ships, and the next boot brings
    /// another deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shipped: Option<Shipped>,
}

impl Entry {
    /// Whether the name stays as it is in this deployment, and is only put back in another one.
    pub fn is_held(&self) -> bool {
        self.old == self.new
    }
}

/// Whose a name is that has what the booted image ships.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shipped {
    /// The config's: it stays as it is, whatever another image ships.
    Config,
    /// The image's: no config has it any more, so that it becomes what another image ships.
    Image,
}

/// A folder that an operation makes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    /// The folder that it is made in.
    pub folder: String,
    /// Its name in there.
    pub name: String,
    /// Whose it is.
    pub owned: Owned,
    /// The stage that is on the same mount, by index: it is made there, and moved.
    pub stage: usize,
    /// Extended attributes: its label.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<Attribute>,
}

/// Whose the folders on the way to an entry are where they have to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Owned {
    /// Root's, and readable for all.
    Root,
    /// Of a user alone.
    User(Owner),
}

/// What is put under a name: what the journal does not keep twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prepared<'b> {
    /// A file with these bytes.
    File {
        /// All that it holds.
        bytes: Cow<'b, [u8]>,
        /// Extended attributes, its label among them.
        attributes: Vec<Attribute>,
    },
    /// The file that is there, with this hash in a user's line, set on this day.
    Password {
        /// The hash.
        hash: Hash,
        /// The day, as shadow(5) counts.
        day: u64,
    },
    /// A link; the entry says where it leads.
    Link {
        /// Extended attributes: its label.
        attributes: Vec<Attribute>,
    },
    /// Nothing.
    Nothing,
}
