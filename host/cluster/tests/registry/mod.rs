//! The registry against a real API server, with real components.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper of a test fails the test"
)]
#![allow(unreachable_pub, reason = "modules of one test")]

mod admin;
mod builtins;
mod faults;
mod maps;
mod rules;
mod support;
mod tenants;
mod versions;
