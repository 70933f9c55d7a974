//! What a cluster will say of a policy, told before it gets there.

use tread_console::print::{line, warn};
use tread_model::claim::approval;
use tread_model::description::Claim;

/// Tells whoever works on a policy that an admin has to approve it.
pub(crate) fn warn_of_wide(claims: &[Claim]) {
    if let Some(why) = approval::needed(claims, None) {
        warn(&format!(
            "{}: in a cluster it decides nothing until an admin approves it \
             (`spec.approved: true`); claim no more than the template writes",
            line(&why)
        ));
    }
}
