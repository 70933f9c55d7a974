//! Whose turn it is, and when: `tests/cases/rollouts`, and what holds for any pool.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod properties;
mod retries;
mod turns;
mod windows;
