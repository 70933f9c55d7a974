//! Boot images: the cases in `tests/cases/boot-images`, and what holds besides.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper of a test fails the test"
)]

mod cases;
mod properties;
mod provider;
mod user_data;
