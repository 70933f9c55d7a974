//! What joins a node to its cluster: an agent's orders and permits come from the service, and
//! the node's NodeUpdate says how far it is. What is done on the node is host/node's.

mod having;
mod kept;
mod listening;
mod phase;
mod reading;
mod saying;
mod service;
mod status;
mod wire;

pub use phase::{Known, phase};
pub use service::{Settings, Unheard};
pub use wire::{Wire, start};
