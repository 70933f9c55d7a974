//! Plans for a person.

mod difference;
mod groups;
pub(crate) mod human;
pub(crate) mod look;
pub(crate) mod measure;
pub mod output;
pub(crate) mod shadow;
pub(crate) mod timings;
