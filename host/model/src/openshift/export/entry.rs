//! One entry of a nodeDisruptionPolicy, as OpenShift's API takes it.

use crate::openshift::api::{MOST_ACTIONS, check_service};
use crate::plan::{CA_TRUST_UNIT, Step, steps};
use crate::unit_name::can_be_restarted;
use crate::verdict::Action;
use serde::Serialize;

/// An action as OpenShift writes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type")]
pub(super) enum Act {
    None,
    Drain,
    DaemonReload,
    Reload { reload: Service },
    Restart { restart: Service },
    Reboot,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Service {
    service_name: String,
}

/// The actions as a list that OpenShift takes and carries out in the order in
/// which tread would, or why there is none.
pub(super) fn entry(actions: &[Action], daemon_reload: bool) -> Result<Vec<Act>, String> {
    if actions.contains(&Action::RebootUndrained) && !actions.contains(&Action::Reboot) {
        return Err("it reboots without a drain (drain: false), and OpenShift drains before each \
                    reboot"
            .to_owned());
    }
    let mut list = Vec::new();
    for step in steps(actions, daemon_reload) {
        match step {
            Step::Reboot => return Ok(vec![Act::Reboot]),
            Step::Drain => list.push(Act::Drain),
            Step::DaemonReload => list.push(Act::DaemonReload),
            Step::Reload { unit } => list.push(Act::Reload { reload: service(unit)? }),
            Step::Restart { unit } => list.push(Act::Restart { restart: service(unit)? }),
            // OpenShift has a unit for it, and runs the program itself if the unit
            // fails.
            Step::UpdateCaTrust => {
                list.push(Act::Restart { restart: service(CA_TRUST_UNIT.to_owned())? });
            }
            Step::Write | Step::Uncordon => {}
        }
    }
    if list.len() > MOST_ACTIONS {
        return Err(format!(
            "it takes {} actions, and OpenShift lists {MOST_ACTIONS} at most",
            list.len()
        ));
    }
    if list.is_empty() {
        list.push(Act::None);
    }
    Ok(list)
}

fn service(service_name: String) -> Result<Service, String> {
    check_service(&service_name, can_be_restarted)?;
    Ok(Service { service_name })
}

/// Whether an entry does more to the node than booting it or nothing.
pub(super) fn runs_something(list: &[Act]) -> bool {
    list.iter().any(|act| !matches!(act, Act::None | Act::Reboot | Act::Drain))
}
