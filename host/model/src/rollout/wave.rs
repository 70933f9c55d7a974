//! How many nodes get a soft plan at a time.

/// One node, then twice as many as succeeded, up to a limit.
pub fn soft_limit(succeeded: usize, limit: usize) -> usize {
    succeeded.saturating_mul(2).clamp(1, limit.max(1))
}
