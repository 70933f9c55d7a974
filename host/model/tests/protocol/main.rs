//! The protocol of slots, Leases, permits and orders, explored exhaustively within bounds: by
//! tread's own functions, with crashes, pauses, lost, late and repeated messages, and slow clocks.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]
#![allow(clippy::print_stdout, reason = "with --nocapture, how much was explored is told")]

mod agents;
mod bounds;
mod covered;
mod guards;
mod laws;
mod marks;
mod reading;
mod search;
mod small;
mod state;
mod steps;
mod time;
mod writing;
