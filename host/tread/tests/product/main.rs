//! The whole product: a control plane, `tread serve --mode enforce` with the rights of
//! `tread manifests`, machines with a real systemd, and a `tread agent` on each.
//!
//! What is played: who runs containers. A machine has no kubelet of Kubernetes; `kubelet.rs`
//! stands for it, and `tread agent` is a unit of the machine.

#![allow(unreachable_pub, reason = "modules of one test")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod cluster;
mod judge;
mod kubelet;
mod machines;
#[path = "../../../node/tests/support/program.rs"]
mod program;
mod recorded;
mod rolled;
mod service;
