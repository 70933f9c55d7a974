//! From files to policies: those of the binary, those that somebody names, and the
//! sandbox that they run in. It knows no cluster.

pub mod args;
pub mod builtins;
pub mod file;
mod given;
pub mod manifest;
pub mod policies;
pub mod sandbox;
mod settings;
pub mod shadow;
pub mod what;
