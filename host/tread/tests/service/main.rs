//! `tread serve` and whoever works with it, against a real control plane.

#![allow(unreachable_pub, reason = "modules of one test")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod boot_images;
mod busy;
mod events;
mod front;
mod installations;
mod joining;
mod leases;
mod listed;
mod maintenance;
mod openshift;
mod plugin;
mod pools;
mod preview;
mod replica;
mod restart;
mod rights;
mod rollouts;
mod serve;
mod story;
#[path = "../support/mod.rs"]
mod support;
mod waiting;
mod watches;
