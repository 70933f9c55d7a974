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
/// The one that is asked when somebody takes a node.
pub const WEBHOOK_OF_NODES: &str = "nodes.warn.tread.dev";
/// What the path begins with at which the API server asks; the rest cannot be
/// guessed.
pub const PATH: &str = "/warn";
/// The Secret that holds the certificates, in tread's own namespace.
pub const SECRET: &str = "tread-webhook";

/// The Secret that holds the certificate by which machines that boot know tread, and the key of
/// its authority, in tread's own namespace.
pub const MACHINES_SECRET: &str = "tread-ignition";
/// The Service, and the ConfigMap with whom such machines are to trust.
pub const MACHINES: &str = "tread-ignition";
/// In that ConfigMap: where machines ask, as HOST:PORT.
pub const MACHINES_ADDRESS_KEY: &str = "address";

/// What the role for people is called.
pub(crate) fn view_name(namespace: &str) -> String {
    format!("tread-view.{namespace}")
}

/// What the role of those is called who plan from a laptop.
pub(crate) fn read_name(namespace: &str) -> String {
    format!("tread-read.{namespace}")
}

/// The service account of the agents, and their DaemonSet.
pub const AGENT: &str = "tread-agent";
/// The Service at which agents ask, in tread's own namespace.
pub const AGENTS_SERVICE: &str = "tread-agents";
/// The ConfigMap by which agents know the service, in their namespace: tread writes it.
pub const AGENTS_AUTHORITY: &str = "tread-agents-ca";
/// The certificates in it, in PEM.
pub const AGENTS_AUTHORITY_KEY: &str = "ca.crt";

/// The namespace of the agents of the tread of a namespace.
pub fn agents_namespace(namespace: &str) -> String {
    format!("{namespace}-agents")
}
