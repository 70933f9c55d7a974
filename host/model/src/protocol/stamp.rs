//! One cordon of a node is told from the next one.

/// Which of its cordons a node has: made at random for each of them, and never used again. Pods may
/// have come to a node between one cordon and the next, also where both are of one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stamp(pub u128);
