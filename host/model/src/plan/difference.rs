//! How much differs in a change, and in what: without contents.

use serde::Serialize;

/// What a script may know of both sides of a change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Whether the contents are a secret on the node, on either side.
    pub secret: bool,
    /// Each text that differs: of a unit its file and its drop-ins.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contents: Vec<Contents>,
    /// What differs beside the contents; of what is there on one side only, what is not the default.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<Attribute>,
}

/// Contents that differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Contents {
    /// The drop-in of a unit that they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropin: Option<String>,
    /// How much.
    #[serde(flatten)]
    pub amount: Amount,
}

/// How much differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum Amount {
    /// Of texts.
    Lines {
        /// Lines that only the new side has.
        added_lines: usize,
        /// Lines that only the old side has.
        removed_lines: usize,
    },
    /// Of texts that are too long to compare line by line.
    TooLong {
        /// All lines of the old side.
        lines_before: usize,
        /// All lines of the new side.
        lines_after: usize,
    },
    /// Of what is no text on one of the sides.
    NoText {
        /// The size of the old side.
        bytes_before: usize,
        /// The size of the new side.
        bytes_after: usize,
    },
}

/// A mode, an owner, or whether a unit is enabled or masked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Attribute {
    /// `mode`, `user`, `group`, `enabled` or `masked`.
    pub name: &'static str,
    /// As the node has it; empty if it is added.
    pub before: String,
    /// As it is to be; empty if it is removed.
    pub after: String,
}
