//! What is rendered for a pool: `tests/cases/rendering.yaml`, and what holds for any
//! sources.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod cases;
mod collecting;
#[path = "../generate/mod.rs"]
mod generate;
mod laws;
#[path = "../generate/layered.rs"]
mod layered;
mod order;
mod overlaps;
mod properties;
mod size;
