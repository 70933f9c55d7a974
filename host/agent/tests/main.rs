//! An agent of a cluster: against the service's own port, a real API server, and a machine with a
//! real systemd. Who knows what is to be done is played.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod cluster;
mod machine;
#[path = "../../node/tests/support/program.rs"]
mod program;
mod wire;
