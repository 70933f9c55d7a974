//! Draining a node as `kubectl drain` does, one pass at a time: whatever comes later is seen by
//! the next one.

mod budgets;
mod evict;
mod filter;
mod pass;

pub use evict::Evicted;
pub use filter::{Fate, fate};
pub use pass::{Blocked, Left};
pub(crate) use pass::{look, pass};
