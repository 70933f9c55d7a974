//! What a cluster will say of a policy, told before it gets there.

use std::io::{self, Write as _};
use tread_console::print::line;
use tread_model::description::Claim;

/// Why an admin of a cluster has to approve a policy with these claims; None: nobody
/// has to. The binary brings the rule, so that nothing here knows a cluster.
pub type NeedsApproval = fn(&[Claim]) -> Option<String>;

/// Tells whoever works on a policy that an admin has to approve it.
pub(crate) fn warn_of_wide(claims: &[Claim], needs_approval: NeedsApproval) -> io::Result<()> {
    match needs_approval(claims) {
        None => Ok(()),
        Some(why) => writeln!(
            io::stderr(),
            "warning: {}: in a cluster it decides nothing until an admin approves it \
             (`spec.approved: true`); claim no more than the template writes",
            line(&why)
        ),
    }
}
