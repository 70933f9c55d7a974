//! What a cluster will say of a policy, told before it gets there.

use std::io::{self, Write as _};
use tread_console::print::line;
use tread_model::claim::approval;
use tread_model::description::Claim;

/// Tells whoever works on a policy that an admin has to approve it.
pub(crate) fn warn_of_wide(claims: &[Claim]) -> io::Result<()> {
    match approval::needed(claims, None) {
        None => Ok(()),
        Some(why) => writeln!(
            io::stderr(),
            "warning: {}: in a cluster it decides nothing until an admin approves it \
             (`spec.approved: true`); claim no more than the template writes",
            line(&why)
        ),
    }
}
