//! What an agent asks before each step that disrupts.

use super::order::Operation;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum What {
    /// The first name changes.
    Write,
    /// A unit is told.
    Unit,
    /// The node boots, and once more if it has to go back.
    Boot,
}

/// What an agent asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Question {
    /// In which operation.
    pub operation: Operation,
    /// What for.
    pub what: What,
    /// No two questions of an agent have the same.
    pub number: u64,
}
