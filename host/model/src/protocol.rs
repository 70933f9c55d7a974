//! Who may disrupt a node, and when: slots, Leases, orders and permits as one machine of pure
//! functions. Controllers and agents read, ask it for the next act, and do that act.
//!
//! Nothing is remembered between two questions: whatever counts stands in the cluster, so that
//! any replica goes on with what another one began. Times are the API server's. `ROLLOUTS.md`
//! explains the whole; `tests/protocol` explores every order of events within its bounds.

mod act;
mod agent;
mod controller;
mod finish;
mod guards;
mod lease;
mod order;
mod permit;
mod prepare;
mod question;
mod seen;
mod slots;
mod stamp;
mod terms;
mod time;
mod upkeep;

pub use act::{Act, Waits};
pub use agent::Local;
pub use controller::{next, next_with, retakes};
pub use finish::wanted;
pub use guards::{AllGuards, Guards};
pub use lease::{Holder, Lease};
pub use order::{Config, Disrupts, Operation, Order, Phase, Report, Stage};
pub use permit::{NotNow, Permit, permit, permit_with};
pub use question::{Question, What};
pub use seen::{Cordon, HeldBy, Seen, Version, Versions, Wanted};
pub use slots::{Limits, Slot, Slots, Taken};
pub use stamp::Stamp;
pub use terms::Terms;
pub use time::Time;
pub use upkeep::lease_to_join;
