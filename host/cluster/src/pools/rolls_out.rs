//! Who brings what is rendered for a pool to its nodes.

/// Who brings what is rendered for a pool to its nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RollsOut {
    /// OpenShift's operator.
    Operator,
    /// tread.
    Tread,
    /// Nobody that tread knows of: its nodes are taken to have what the pool was made of when
    /// tread saw it first.
    Nobody,
}
