//! What happens on a node: from one config to another with exactly the steps of a plan.
//!
//! This crate knows neither Kubernetes nor wasmtime. It opens nothing but beneath the
//! root that it is given.

pub mod agent;
mod api_server;
pub mod applied;
pub mod boot_image;
pub mod boot_units;
pub mod booted;
pub mod change;
pub mod cli;
pub mod clock;
pub mod desired;
pub mod documents;
pub mod drift;
pub mod host;
pub mod install;
pub mod journal;
mod json;
mod kubelet;
pub mod labels;
pub mod left_open;
pub mod notices;
pub mod operation;
pub mod operation_unit;
pub mod orders;
pub mod originals;
pub mod os;
pub mod owners;
pub mod permits;
pub mod prepare;
pub mod presets;
pub mod program;
pub mod progress;
pub mod shadow;
pub mod shipped;
pub mod systemd;
pub mod terms;
pub mod tree;
pub mod unit_name;
pub mod view;
pub mod watch;
