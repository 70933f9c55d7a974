//! What happens on a node: from one config to another with exactly the steps of a plan.
//!
//! This crate knows neither Kubernetes nor wasmtime.
