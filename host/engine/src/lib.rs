//! The sandbox: load, inspect, limit and call policies.
//!
//! A policy is a stranger's program. Whatever it does ends in verdicts that
//! keep the contract, or in a [`tread_model::verdict::Failure`] with a stable
//! name; never in a crash, and never in an effect on another call.

mod ahead;
mod cache;
mod call;
mod check;
mod clock;
pub mod compile;
mod convert;
mod discretion;
mod failure;
mod function;
mod guest_log;
pub mod inspect;
pub mod limits;
pub mod planner;
pub mod policy;
mod question;
mod room;
pub mod sandbox;
mod serving;
mod slots;
mod ticker;
mod v1;
mod words;
