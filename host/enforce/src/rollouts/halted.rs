//! What halts all rollouts: somebody else who rolls out.

pub use tread_kube::api::words::{OPERATORS_DAEMON, OPERATORS_NAMESPACE};

/// Why nothing is done while it is there.
pub fn says_halted() -> String {
    format!(
        "the DaemonSet {OPERATORS_DAEMON} is in {OPERATORS_NAMESPACE}: OpenShift's operator \
         rolls out, so tread does nothing on any node; remove the operator, or run tread in \
         the mode advise"
    )
}
