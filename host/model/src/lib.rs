//! The words of tread as data and pure functions: read node configs, compare
//! them, route changes to policies, and merge the policies' verdicts into a
//! plan. No I/O, no clock, no async, no sandbox and no Kubernetes in here.

pub mod boot_images;
pub mod canonical;
pub mod change;
pub mod claim;
pub mod config;
pub mod config_digest;
pub mod contents;
pub mod description;
pub mod diff;
pub mod digest;
pub mod effect;
mod ignition;
pub mod joining;
pub mod mirrors;
pub mod object_name;
pub mod openshift;
pub mod operator;
pub mod packed;
mod password;
pub mod path;
pub mod plan;
pub mod problem;
pub mod protocol;
pub mod read;
pub mod refuse;
pub mod rendering;
pub mod rollout;
pub mod rules;
pub mod schema;
pub mod secrets;
pub mod text;
pub mod text_diff;
pub mod touch;
pub mod unit_name;
#[path = "../../../guest-sdk/src/units.rs"]
mod units;
pub mod verdict;
