//! OpenShift's own way of saying what a change costs: the nodeDisruptionPolicy
//! of its MachineConfiguration, understood as it is, and checked as its API
//! server checks it.

mod api;
mod claimed;
mod convert;
mod differences;
mod export;
mod read;

pub(crate) use api::API_VERSION;
pub use api::POLICY_NAME;
pub use claimed::claimed;
pub use differences::differences;
pub use export::{Export, LeftOut, MachineConfiguration, Says, Voice, export};
pub(crate) use read::read;

#[cfg(test)]
mod tests;
