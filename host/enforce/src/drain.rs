//! Draining a node as `kubectl drain` does, one pass at a time: whatever comes later is seen by
//! the next one.

mod asked;
mod budgets;
mod came_back;
mod evict;
mod filter;
mod listed;
mod look;
mod pass;

pub(crate) use asked::length;
pub use asked::{Asked, Which};
pub(crate) use came_back::Course;
pub use evict::Evicted;
pub use filter::{Fate, Refusal, fate};
pub use look::Left;
pub(crate) use look::look;
pub use pass::Blocked;
pub(crate) use pass::{blocked_for_good, pass};

#[cfg(test)]
mod tests;
