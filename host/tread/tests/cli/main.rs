//! The binary as a person or a pipeline meets it: every promise of its command
//! line, one module for each part.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::indexing_slicing, clippy::string_slice, unreachable_pub)]

#[path = "../support/mod.rs"]
mod support;

mod answers;
mod authors;
mod build;
mod by_hand;
mod cache;
mod configs;
mod digests;
mod examples;
mod failures;
mod from;
mod guests;
mod help;
mod inputs;
mod layers;
mod manifests;
mod plan;
mod policies;
mod policy_rules;
mod readable;
mod reading;
mod rules;
mod schema;
mod secrets;
mod shadow;
mod strangers;
mod terminal;
