//! Warnings at admission: whoever applies a change reads what it will do. It
//! never blocks: everything is allowed, whatever happens here.

pub mod certificates;
pub mod handler;
pub mod registration;

pub use crate::names::{PATH, SECRET, WEBHOOK, WEBHOOK_OF_NODES, configuration};
pub use certificates::{Certificates, Paths, Purpose, Settings};
pub use handler::{Warn, webhook};
