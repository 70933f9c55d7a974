//! What acts on nodes. It is the only crate that writes nodes, their Leases and their
//! NodeUpdates: who may do what is decided by `tread_model::protocol`, and carried out here.

mod balancers;
pub mod by_hand;
mod carry;
mod clock;
mod conditions;
mod cordon_mark;
pub mod drain;
mod drain_status;
mod namespace;
mod order;
mod proof;
mod reading;
mod remediation;
pub mod rollouts;
mod settings;
mod slots;
mod step;
mod still;
mod turn;

pub use balancers::{EXCLUDED_ANNOTATION, EXCLUDED_LABEL};
pub use clock::Clock;
pub use order::{Target, read as read_order, report};
pub use reading::{Aim, Read, Room, Unread};
pub use remediation::{Machine, SKIPPED_BY, SKIPS_REMEDIATION};
pub use settings::Settings;
pub use slots::{NAME as SLOTS, SlotsObject, pools_of_slots};
pub use step::{Ended, forget, permit, step};
pub use still::Still;
pub use tread_kube::held::{CORDON_ANNOTATION, Maintained};
pub use turn::Turn;
