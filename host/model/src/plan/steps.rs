//! From actions to ordered steps.

use crate::effect::Effect;
use crate::verdict::Action;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// One step of a plan, and one action of a change: `{"do": "reload", "unit":
/// "crio.service"}`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Step {
    /// Move the node's pods elsewhere.
    Drain,
    /// Bring files, units, keys, arguments and image to their new state.
    Write,
    /// Let the system's trust store follow its anchors.
    UpdateCaTrust,
    /// Let systemd re-read its units.
    DaemonReload,
    /// Ask a unit to re-read its configuration.
    Reload {
        /// The complete name.
        unit: String,
    },
    /// Stop and start a unit.
    Restart {
        /// The complete name.
        unit: String,
    },
    /// Boot the node.
    Reboot,
    /// Let pods come back.
    Uncordon,
}

/// The unit whose restart is the step `update-ca-trust`.
pub(crate) const CA_TRUST_UNIT: &str = "coreos-update-ca-trust.service";

impl Step {
    /// How long it may take before it counts as failed, where that does not
    /// depend on the cluster.
    pub fn deadline(&self) -> Option<Duration> {
        match self {
            Step::UpdateCaTrust | Step::DaemonReload | Step::Reload { .. } => {
                Some(Duration::from_secs(120))
            }
            Step::Restart { .. } => Some(Duration::from_secs(300)),
            Step::Drain | Step::Write | Step::Reboot | Step::Uncordon => None,
        }
    }

    /// The unit that it is about.
    pub fn unit(&self) -> Option<&str> {
        match self {
            Step::Reload { unit } | Step::Restart { unit } => Some(unit),
            _ => None,
        }
    }

    /// Where it stands in a plan: each step comes after those with a lower rank, and
    /// no two have the same.
    pub(super) fn rank(&self) -> (u8, &str) {
        match self {
            Step::Drain => (0, ""),
            Step::Write => (1, ""),
            Step::UpdateCaTrust => (2, ""),
            Step::DaemonReload => (3, ""),
            Step::Reload { unit } | Step::Restart { unit } => (4, unit),
            Step::Reboot => (5, ""),
            Step::Uncordon => (6, ""),
        }
    }

    /// How much it disturbs the node.
    pub fn effect(&self) -> Effect {
        match self {
            Step::Write | Step::Uncordon => Effect::None,
            Step::UpdateCaTrust | Step::DaemonReload | Step::Reload { .. } => Effect::Reload,
            Step::Restart { .. } => Effect::Restart,
            Step::Drain => Effect::Drain,
            Step::Reboot => Effect::Reboot,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Drain => f.write_str("drain"),
            Step::Write => f.write_str("write"),
            Step::UpdateCaTrust => f.write_str("update-ca-trust"),
            Step::DaemonReload => f.write_str("daemon-reload"),
            Step::Reload { unit } => write!(f, "reload {unit}"),
            Step::Restart { unit } => write!(f, "restart {unit}"),
            Step::Reboot => f.write_str("reboot"),
            Step::Uncordon => f.write_str("uncordon"),
        }
    }
}

impl From<&Action> for Step {
    fn from(action: &Action) -> Step {
        match action {
            Action::Reload(unit) | Action::Restart(unit) if unit == CA_TRUST_UNIT => {
                Step::UpdateCaTrust
            }
            Action::Reload(unit) => Step::Reload { unit: unit.clone() },
            Action::Restart(unit) => Step::Restart { unit: unit.clone() },
            Action::DaemonReload => Step::DaemonReload,
            Action::Drain => Step::Drain,
            Action::Reboot | Action::RebootUndrained => Step::Reboot,
        }
    }
}

/// How much these actions disturb a node.
pub fn effect_of(actions: &[Action]) -> Effect {
    actions.iter().map(|action| Step::from(action).effect()).max().unwrap_or(Effect::None)
}

/// Where systemd looks for units.
pub(crate) const UNIT_DIRECTORIES: [&str; 21] = [
    "/etc/systemd/system/",
    "/etc/systemd/system.attached/",
    "/etc/systemd/system.control/",
    "/run/systemd/system.attached/",
    "/run/systemd/system.control/",
    "/run/systemd/transient/",
    "/lib/systemd/system/",
    "/run/systemd/system/",
    "/usr/local/lib/systemd/system/",
    "/usr/lib/systemd/system/",
    // What /usr/local is where the image is immutable.
    "/var/usrlocal/lib/systemd/system/",
    // Until systemd re-reads its units, it takes what stands there.
    "/run/systemd/generator/",
    "/run/systemd/generator.early/",
    "/run/systemd/generator.late/",
    // /var/run is /run.
    "/var/run/systemd/generator/",
    "/var/run/systemd/generator.early/",
    "/var/run/systemd/generator.late/",
    "/var/run/systemd/system.attached/",
    "/var/run/systemd/system.control/",
    "/var/run/systemd/transient/",
    "/var/run/systemd/system/",
];

/// Where Quadlet looks for what systemd makes units of when it re-reads.
pub(crate) const QUADLET_DIRECTORIES: [&str; 4] = [
    "/etc/containers/systemd/",
    "/run/containers/systemd/",
    "/usr/share/containers/systemd/",
    "/var/run/containers/systemd/",
];

/// Everything of which systemd makes units.
pub(crate) fn unit_sources() -> impl Iterator<Item = &'static str> {
    UNIT_DIRECTORIES.into_iter().chain(QUADLET_DIRECTORIES)
}

/// Where systemd looks for generators, and for the scripts of which one of them makes services. They
/// run when it re-reads its units: systemd.generator(7), systemd-sysv-generator(8).
const GENERATOR_DIRECTORIES: [&str; 9] = [
    "/etc/systemd/system-generators/",
    "/run/systemd/system-generators/",
    "/lib/systemd/system-generators/",
    "/usr/lib/systemd/system-generators/",
    "/usr/local/lib/systemd/system-generators/",
    "/var/usrlocal/lib/systemd/system-generators/",
    "/var/run/systemd/system-generators/",
    "/etc/init.d/",
    "/etc/rc.d/init.d/",
];

/// Files of which generators make units: systemd-fstab-generator(8), systemd-cryptsetup-generator(8),
/// systemd-veritysetup-generator(8), systemd-integritysetup-generator(8), systemd-rc-local-generator(8).
const GENERATOR_FILES: [&str; 6] = [
    "/etc/fstab",
    "/etc/crypttab",
    "/etc/veritytab",
    "/etc/integritytab",
    "/etc/rc.local",
    "/etc/rc.d/rc.local",
];

/// Each directory in which a file that changes has systemd re-read its units.
pub(crate) fn re_read_directories() -> impl Iterator<Item = &'static str> {
    unit_sources().chain(GENERATOR_DIRECTORIES)
}

/// Each such file that stands alone.
pub(crate) fn re_read_files() -> impl Iterator<Item = &'static str> {
    GENERATOR_FILES.into_iter()
}

/// Whether systemd has to re-read its units when this changes.
pub fn needs_daemon_reload(change_id: &str) -> bool {
    match change_id.split_once(':') {
        Some(("unit", _)) => true,
        Some(("file", path)) => {
            re_read_directories().any(|dir| path.starts_with(dir))
                || re_read_files().any(|file| path == file)
        }
        _ => false,
    }
}

/// The steps that carry out all these actions and the writing itself.
///
/// The order is fixed; a unit is touched once, a restart absorbs its reload;
/// a reboot absorbs everything between writing and itself, and is drained
/// unless every reboot among the actions says that it need not be.
pub fn steps<'a>(actions: impl IntoIterator<Item = &'a Action>, daemon_reload: bool) -> Vec<Step> {
    let mut drain = false;
    let mut reboot = false;
    let mut update_ca_trust = false;
    let mut daemon_reload = daemon_reload;
    let mut units: BTreeMap<&str, bool> = BTreeMap::new();
    for action in actions {
        match action {
            Action::Reload(unit) | Action::Restart(unit) if unit == CA_TRUST_UNIT => {
                update_ca_trust = true;
            }
            Action::Reload(unit) => {
                units.entry(unit).or_insert(false);
            }
            Action::Restart(unit) => {
                units.insert(unit, true);
            }
            Action::DaemonReload => daemon_reload = true,
            Action::Drain => drain = true,
            Action::Reboot => (drain, reboot) = (true, true),
            Action::RebootUndrained => reboot = true,
        }
    }
    let mut steps = Vec::with_capacity(6);
    if drain {
        steps.push(Step::Drain);
    }
    steps.push(Step::Write);
    if reboot {
        steps.push(Step::Reboot);
    } else {
        if update_ca_trust {
            steps.push(Step::UpdateCaTrust);
        }
        if daemon_reload {
            steps.push(Step::DaemonReload);
        }
        steps.extend(units.into_iter().map(|(unit, restart)| {
            let unit = unit.to_owned();
            if restart { Step::Restart { unit } } else { Step::Reload { unit } }
        }));
    }
    if drain {
        steps.push(Step::Uncordon);
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(actions: &[Action], daemon_reload: bool) -> String {
        steps(actions, daemon_reload).iter().map(Step::to_string).collect::<Vec<_>>().join(", ")
    }

    fn reload(unit: &str) -> Action {
        Action::Reload(unit.to_owned())
    }

    fn restart(unit: &str) -> Action {
        Action::Restart(unit.to_owned())
    }

    #[test]
    fn steps_come_in_their_order_whatever_the_order_of_the_actions() {
        let actions = [
            restart("z.service"),
            Action::DaemonReload,
            reload("a.service"),
            restart(CA_TRUST_UNIT),
            Action::Drain,
        ];
        let expected = "drain, write, update-ca-trust, daemon-reload, reload a.service, \
                        restart z.service, uncordon";
        assert_eq!(planned(&actions, false), expected);
        let reversed: Vec<_> = actions.iter().rev().cloned().collect();
        assert_eq!(planned(&reversed, false), expected);
    }

    #[test]
    fn a_restart_absorbs_the_reload_of_the_same_unit() {
        let both = [restart("crio.service"), reload("crio.service")];
        assert_eq!(planned(&both, false), "write, restart crio.service");
        let both = [reload("crio.service"), restart("crio.service")];
        assert_eq!(planned(&both, false), "write, restart crio.service");
    }

    #[test]
    fn a_reboot_absorbs_all_between_writing_and_itself_and_drains() {
        let all = [restart("crio.service"), Action::Reboot, Action::DaemonReload];
        assert_eq!(planned(&all, true), "drain, write, reboot, uncordon");
    }

    #[test]
    fn a_reboot_without_a_drain_keeps_the_drain_that_another_action_asks_for() {
        assert_eq!(planned(&[Action::RebootUndrained], false), "write, reboot");
        let both = [Action::RebootUndrained, Action::Reboot];
        assert_eq!(planned(&both, false), "drain, write, reboot, uncordon");
    }

    #[test]
    fn no_action_at_all_still_writes() {
        assert_eq!(planned(&[], false), "write");
    }

    #[test]
    fn a_step_is_written_as_an_object_with_do_and_unit() {
        let step = Step::Reload { unit: "crio.service".to_owned() };
        let json = serde_json::to_string(&[step, Step::UpdateCaTrust]).unwrap();
        assert_eq!(json, r#"[{"do":"reload","unit":"crio.service"},{"do":"update-ca-trust"}]"#);
    }

    #[test]
    fn units_and_files_of_which_systemd_makes_units_need_a_daemon_reload() {
        for id in [
            "unit:a.service",
            "file:/etc/systemd/system/a.service.d/10.conf",
            "file:/etc/containers/systemd/a.container",
            "file:/etc/fstab",
            "file:/etc/crypttab",
            "file:/etc/veritytab",
            "file:/etc/integritytab",
            "file:/etc/rc.d/rc.local",
            "file:/etc/systemd/system-generators/mounts",
            "file:/usr/local/lib/systemd/system-generators/mounts",
            "file:/etc/rc.d/init.d/app",
            "file:/etc/init.d/app",
        ] {
            assert!(needs_daemon_reload(id), "{id}");
        }
        for id in [
            "file:/etc/systemd/journald.conf",
            "file:/etc/systemd/user-generators/a",
            "file:/etc/fstab.d/a",
            "file:/etc/fstab.bak",
            "file:/etc/init.d.bak/app",
            "file:/usr/etc/fstab",
            "file:/etc/a",
            "kernel-arguments",
        ] {
            assert!(!needs_daemon_reload(id), "{id}");
        }
    }
}
