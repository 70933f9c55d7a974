//! Nodes go from one config to the next on a real API server, as the protocol has it. Their
//! agents are played; controllers, Leases, slots, cordons and evictions are real.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod agent;
mod by_hand;
mod drains;
mod fixture;
mod gate;
mod judge;
mod nodes;
mod rollouts;
mod slots;
