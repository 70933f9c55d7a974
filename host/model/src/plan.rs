//! The plan: the ordered steps for a whole change, each traceable to verdicts.

mod build;
mod cause;
pub mod compare;
mod decide;
mod decider;
pub mod difference;
mod digest;
mod schema;
mod steps;
mod switched;
mod verify;

pub use build::{Decided, build, given_answers};
pub use cause::{By, Cause, causes, in_a_cluster};
pub use decide::{Decision, Said, Statement, decide};
pub use decider::Decider;
pub use digest::DIGEST_VERSION;
pub use schema::{
    ChangeOutcome, GivenAnswer, Overruled, Plan, PlanOutcome, PlannedChange, PolicyIdentity, SCHEMA,
};
pub(crate) use steps::{
    CA_TRUST_UNIT, QUADLET_DIRECTORIES, re_read_directories, re_read_files, unit_sources,
};
pub use steps::{Step, effect_of, needs_daemon_reload, steps};
pub use switched::warnings_of_units;
pub use verify::{PlanFault, VerifiablePlan};
