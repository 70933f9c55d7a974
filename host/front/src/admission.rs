//! Warnings at admission: whoever applies a change reads what it will do. It
//! never blocks: everything is allowed, whatever happens here.

pub mod certificates;
pub mod handler;
pub mod registration;

pub use certificates::{Certificates, Paths, Settings};
pub use handler::{Warn, webhook};

/// The ValidatingWebhookConfiguration that `tread manifests` installs for the
/// tread of a namespace.
pub fn configuration(namespace: &str) -> String {
    crate::manifests::of_installation(namespace)
}

/// The webhook in it.
pub const WEBHOOK: &str = "warn.tread.dev";
/// What the path begins with at which the API server asks; the rest cannot be
/// guessed.
pub const PATH: &str = "/warn";
/// The Secret that holds the certificates, in tread's own namespace.
pub const SECRET: &str = "tread-webhook";
