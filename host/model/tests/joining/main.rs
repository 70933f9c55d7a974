//! How a machine becomes a node of its pool: `tests/cases/joining.yaml`, and what holds for
//! whatever is given.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod cases;
mod first_boot;
mod properties;
mod served;
