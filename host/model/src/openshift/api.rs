//! What OpenShift's API server takes of a nodeDisruptionPolicy.

use crate::rules::policy::OF_OPENSHIFT;
use crate::unit_name::kind_of_unit;

pub(crate) const API_VERSION: &str = "operator.openshift.io/v1";

/// What the policy is called in plans.
pub const POLICY_NAME: &str = OF_OPENSHIFT;

/// How many entries a list may have.
pub(super) const MOST_ENTRIES: usize = 50;

/// How many actions an entry may have.
pub(super) const MOST_ACTIONS: usize = 10;

/// Whether OpenShift takes this name of a unit, by its two patterns. The second
/// pattern also takes names that are no units; `real` says which are.
pub(super) fn check_service(name: &str, real: fn(&str) -> bool) -> Result<(), String> {
    // A type that systemd had once is one for OpenShift still.
    let known_type = kind_of_unit(name).is_some() || name.ends_with(".snapshot");
    let fine = |c: char| c.is_ascii_alphanumeric() || ":._\\-".contains(c);
    let start: usize = name.chars().take_while(|c| fine(*c)).map(char::len_utf8).sum();
    let dotted = name.get(..start).is_some_and(|start| {
        start.char_indices().skip(1).any(|(at, c)| c == '.' && at + 1 < name.len())
    });
    if !known_type || !dotted {
        return Err(format!(
            "{name:?} is no name that OpenShift takes: letters, digits and : . _ \\ - \
             (no @), then a type, as in crio.service"
        ));
    }
    if !real(name) {
        return Err(format!(
            "{name:?} passes OpenShift's check, but systemd has no unit of that name"
        ));
    }
    Ok(())
}
