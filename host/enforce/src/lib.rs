//! What acts on nodes. It is the only crate that writes nodes, their Leases and their
//! NodeUpdates: who may do what is decided by `tread_model::protocol`, and carried out here.

pub mod by_hand;
mod carry;
mod conditions;
pub mod drain;
mod held;
mod order;
mod proof;
mod reading;
mod settings;
mod slots;
mod step;

pub use held::{CORDON_ANNOTATION, Maintained};
pub use order::{Target, report};
pub use reading::{Aim, Cluster, Read, Unread};
pub use settings::Settings;
pub use slots::{NAME as SLOTS, SlotsObject};
pub use step::{Ended, forget, permit, step};
