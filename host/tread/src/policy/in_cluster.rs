//! What a cluster will say of a policy, told before it gets there.

use crate::builtins;
use crate::render::line;
use anyhow::{Result, ensure};
use std::io::{self, Write as _};
use tread_cluster::policies::approval;
use tread_model::description::Claim;
use tread_model::digest::Sha256;

/// Whether a policy may have this name. `component` is its digest: a built-in one
/// has its own name.
pub(super) fn check_name(name: &str, component: Option<Sha256>) -> Result<()> {
    let builtin = builtins::BUILTINS.iter().find(|builtin| builtin.name == name);
    let own = builtin.is_none_or(|it| component == Some(Sha256::of(it.component)));
    ensure!(own, "{}", taken(name));
    Ok(())
}

/// Why no policy has the name of a built-in one.
pub(crate) fn taken(name: &str) -> String {
    format!(
        "a policy is named {name}, which is the name of a built-in one: rename it (`NAME` in its \
         source, mostly the crate's name; `metadata.name` of rules)"
    )
}

/// Tells whoever works on a policy that an admin has to approve it, by the rule
/// that clusters have.
pub(super) fn warn_of_wide(claims: &[Claim]) -> io::Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_built_in_policy_has_the_name_of_one() {
        let own = builtins::BUILTINS.first().unwrap();
        assert!(check_name("chrony", None).is_ok());
        assert!(check_name(own.name, Some(Sha256::of(own.component))).is_ok());
        for other in [None, Some(Sha256::of(b"other"))] {
            let error = check_name(own.name, other).unwrap_err().to_string();
            assert!(error.contains(own.name) && error.contains("rename it"), "{error}");
        }
    }
}
