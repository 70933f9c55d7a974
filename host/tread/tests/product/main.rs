//! The whole product: a control plane, `tread serve --mode enforce` with the rights of
//! `tread manifests`, machines with a real systemd, and a `tread agent` on each.
//!
//! On each machine Kubernetes' own kubelet is a unit. What is played: its container runtime, which
//! only says that it runs pods, so that `container.rs` starts the program of an agent's pod.

#![allow(unreachable_pub, reason = "modules of one test")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod cluster;
mod container;
mod ignited;
mod judge;
mod machines;
#[path = "../../../node/tests/support/program.rs"]
mod program;
mod recorded;
mod rolled;
mod service;
