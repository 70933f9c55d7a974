//! What is installed, and is found again by these names.

pub use tread_kube::api::words::NAME;

/// What belongs to no namespace is called after the one that it is for, so that
/// two installations do not take each other's.
pub fn of_installation(namespace: &str) -> String {
    format!("{NAME}.{namespace}")
}

/// The ValidatingWebhookConfiguration that `tread manifests` installs for the
/// tread of a namespace.
pub fn configuration(namespace: &str) -> String {
    of_installation(namespace)
}

/// The webhook in it.
pub const WEBHOOK: &str = "warn.tread.dev";
/// What the path begins with at which the API server asks; the rest cannot be
/// guessed.
pub const PATH: &str = "/warn";
/// The Secret that holds the certificates, in tread's own namespace.
pub const SECRET: &str = "tread-webhook";

/// What the role for people is called.
pub(crate) fn view_name(namespace: &str) -> String {
    format!("tread-view.{namespace}")
}
