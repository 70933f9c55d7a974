//! Whose configuration it is.
//!
//! A policy is not told for which pool of machines a plan is made: the same
//! change must get the same answer everywhere. But the configuration itself says
//! it: the kubelet's unit registers the node with labels, and those of a control
//! plane are its role's.

use tread_guest_sdk::{Content, Context, State};

/// What the kubelet's node is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    ControlPlane,
    Worker,
}

/// The value of the setting that leaves it to the labels.
pub const DETECT: &str = "detect";

impl Role {
    /// As the setting names it.
    pub fn named(name: &str) -> Option<Role> {
        match name {
            "control-plane" => Some(Role::ControlPlane),
            "worker" => Some(Role::Worker),
            _ => None,
        }
    }
}

/// By the labels in kubelet.service, on both sides if it changes. None: they do
/// not say, or it is not there.
pub fn detect(context: &Context<'_>) -> Option<Role> {
    let changed = context.changes.iter().filter(|change| change.id == super::SERVICE);
    let same = context.unchanged.iter().filter(|entry| entry.id == super::SERVICE);
    let states = changed
        .flat_map(|change| [&change.before, &change.after])
        .chain(same.map(|entry| &entry.state));
    let roles: Vec<Role> = states.filter_map(of_unit).collect();
    // A node that is both, or becomes one, is guarded.
    if roles.contains(&Role::ControlPlane) {
        return Some(Role::ControlPlane);
    }
    roles.first().copied()
}

fn of_unit(state: &State) -> Option<Role> {
    let unit = state.as_unit()?;
    let dropins = unit.dropins.iter().map(|dropin| &dropin.contents);
    let texts = std::iter::once(&unit.contents).chain(dropins).filter_map(Content::text);
    let roles: Vec<Role> = texts.flat_map(of_text).collect();
    if roles.contains(&Role::ControlPlane) {
        return Some(Role::ControlPlane);
    }
    roles.first().copied()
}

/// The roles among the labels of `--node-labels=…`, comments aside.
fn of_text(text: &str) -> Vec<Role> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with(['#', ';']));
    let words = lines.flat_map(str::split_whitespace);
    let labels =
        words.filter_map(|word| word.trim_matches(['"', '\'']).strip_prefix("--node-labels="));
    let labels = labels.flat_map(|labels| labels.split(','));
    let role = |label: &str| {
        let name = label.split('=').next()?.strip_prefix("node-role.kubernetes.io/")?;
        match name {
            "master" | "control-plane" => Some(Role::ControlPlane),
            "worker" => Some(Role::Worker),
            _ => None,
        }
    };
    labels.filter_map(role).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_read_from_labels_and_from_nothing_else() {
        for (text, roles) in [
            ("ExecStart=k --node-labels=node-role.kubernetes.io/worker,a=b", &[Role::Worker][..]),
            (
                "ExecStart=k \\\n  --node-labels=node-role.kubernetes.io/control-plane,\
                 node-role.kubernetes.io/master=,x \\\n --v=2",
                &[Role::ControlPlane, Role::ControlPlane],
            ),
            ("Environment=\"--node-labels=node-role.kubernetes.io/worker=\"", &[]),
            ("# --node-labels=node-role.kubernetes.io/master", &[]),
            ("--register-with-taints=node-role.kubernetes.io/master=:NoSchedule", &[]),
        ] {
            assert_eq!(of_text(text), roles, "{text}");
        }
    }
}
