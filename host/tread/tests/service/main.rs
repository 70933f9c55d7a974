//! `tread serve` and whoever works with it, against a real control plane.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod replica;
mod serve;
mod story;
#[path = "../support/mod.rs"]
mod support;
