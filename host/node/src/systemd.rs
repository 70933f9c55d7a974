//! What is asked of systemd and logind, over the system bus.
//!
//! [`Manager`] asks; what it learns of a unit is [`UnitFacts`]. Units are told by jobs
//! ([`Manager::unit_step`]), commands of the host run as transient units
//! ([`Manager::command`]), and the node boots by [`Manager::reboot`]. What can be decided
//! without asking is in plain functions: [`cannot`] before the first write, [`choose()`]
//! at a step.

mod ability;
mod boot_id;
mod bus;
mod ca_trust;
mod choose;
mod command;
mod early;
mod excerpt;
mod facts;
mod job;
mod job_result;
mod lasting;
mod manager;
mod output;
mod problem;
mod proof;
mod reboot;
mod standing;
mod start;
mod transient;
mod unit_step;
mod well;

pub use ability::{InConfig, Unable, cannot, says_reload};
pub use boot_id::{BOOT_ID, boot_id, boot_id_of};
pub use ca_trust::ca_trust;
pub use choose::{Ask, Choice, choose};
pub use command::{Command, CommandState};
pub use early::{PRIVATE, reload_before_the_bus};
pub use facts::{Active, Load, UnitFacts};
pub use job_result::JobResult;
pub use lasting::{AGAIN, Lasting, Started};
pub use manager::{Limits, Manager};
pub use problem::{Problem, What};
pub use reboot::{Inhibitor, Reboot, Rung};
pub use standing::Ill;
pub use unit_step::Outcome;
