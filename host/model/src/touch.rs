//! Which units a policy or a rule may have reloaded or restarted.
//!
//! `restart` is what a plan calls gentle, so it must not be a way to end the
//! system. The list of what does is shared with the SDK.

use crate::unit_name::{is_template, is_unit_name, kind_of_unit};
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// How touching a unit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touch {
    /// A service, socket, path, timer or mount: any policy may name it.
    Gentle,
    /// Of a type that takes others with it: only an admin's rules may name it.
    Wide,
}

const GENTLE: [&str; 5] = ["service", "socket", "path", "timer", "mount"];

static SYSTEM_UNITS: LazyLock<BTreeSet<&str>> = LazyLock::new(|| {
    let lines = include_str!("../../../wit/system-units.txt").lines();
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
});

/// How touching the unit of this name is; or why nobody may name it, as the rest
/// of a sentence that begins with the name.
pub fn touch(name: &str) -> Result<Touch, &'static str> {
    let kind = kind_of_unit(name).filter(|_| is_unit_name(name));
    let Some(kind) = kind else {
        return Err("is no complete unit name such as crio.service");
    };
    if is_template(name) {
        return Err("is a template, which never runs: name an instance, such as app@blue.service");
    }
    if name.starts_with('-') {
        return Err("begins with -, as an option does and the root of all mounts");
    }
    if ends_the_system(name) {
        return Err(
            "ends or isolates the system, or is an alias of what does: what a change needs \
                    is a reboot, which is an action of its own",
        );
    }
    Ok(if GENTLE.contains(&kind) { Touch::Gentle } else { Touch::Wide })
}

/// Whether a policy that is no admin's rules may name it; or why not.
pub fn touch_gently(name: &str) -> Result<(), &'static str> {
    match touch(name)? {
        Touch::Gentle => Ok(()),
        Touch::Wide => {
            Err("is none of services, sockets, paths, timers and mounts, which are all \
                            that a policy can touch")
        }
    }
}

fn ends_the_system(name: &str) -> bool {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let prefix = stem.split_once('@').map_or(stem, |(prefix, _)| prefix);
    SYSTEM_UNITS.contains(stem) || SYSTEM_UNITS.contains(prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_sockets_paths_timers_and_mounts_are_touched_gently() {
        for name in [
            "crio.service",
            "app@blue.service",
            "systemd-journald.service",
            "systemd-sysctl.service",
            "reboot-notifier.service",
            "a.socket",
            "a.path",
            "a.timer",
            "var-lib-containers.mount",
        ] {
            assert_eq!((touch(name), touch_gently(name)), (Ok(Touch::Gentle), Ok(())), "{name}");
        }
    }

    #[test]
    fn other_types_are_for_rules_of_an_admin_only() {
        for name in [
            "multi-user.target",
            "network.target",
            "system.slice",
            "session-1.scope",
            "zram.swap",
            "dev-sda.device",
            "home.automount",
        ] {
            assert_eq!(touch(name), Ok(Touch::Wide), "{name}");
            assert!(touch_gently(name).is_err(), "{name}");
        }
    }

    #[test]
    fn what_ends_or_isolates_the_system_is_touched_by_nobody_under_no_name() {
        let words = [
            "reboot",
            "poweroff",
            "halt",
            "kexec",
            "soft-reboot",
            "exit",
            "emergency",
            "rescue",
            "suspend",
            "hibernate",
            "hybrid-sleep",
            "suspend-then-hibernate",
        ];
        let as_services = words.iter().map(|word| match *word {
            "emergency" | "rescue" => format!("{word}.service"),
            word => format!("systemd-{word}.service"),
        });
        let as_targets = words.iter().map(|word| format!("{word}.target"));
        let levels = (0..7).map(|level| format!("runlevel{level}.target"));
        let others = [
            "ctrl-alt-del.target",
            "default.target",
            "shutdown.target",
            "umount.target",
            "final.target",
            "sleep.target",
            "system-update.target",
            "initrd-switch-root.service",
            "initrd-cleanup.service",
            "systemd-sysupdate-reboot.timer",
            "systemd-reboot@now.service",
            "-.mount",
            "-x.service",
        ];
        let others = others.into_iter().map(str::to_owned);
        for name in as_services.chain(as_targets).chain(levels).chain(others) {
            assert!(touch(&name).is_err(), "{name}");
        }
        for name in ["", "crio", "a b.service", "app@.service", "x.conf"] {
            assert!(touch(name).is_err(), "{name:?}");
        }
    }

    /// Where systemd's own units are: whatever ends the system here is known.
    #[test]
    fn the_units_of_a_systemd_that_is_installed_here_are_known() {
        let dir = std::path::Path::new("/usr/lib/systemd/system");
        let Ok(entries) = std::fs::read_dir(dir) else { return };
        let ends = |text: &str| {
            let exits = ["SuccessAction=", "FailureAction=", "JobTimeoutAction="];
            text.lines().any(|line| {
                exits.iter().any(|key| line.strip_prefix(key).is_some_and(|it| it != "none"))
                    || line.starts_with("ExecStart=")
                        && ["isolate", "switch-root", "systemd-sleep"]
                            .iter()
                            .any(|word| line.contains(word))
            })
        };
        for entry in entries {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let target = std::fs::read_link(&path).ok();
            let of = target.as_ref().and_then(|it| it.file_name()?.to_str());
            let alias = of.is_some_and(ends_the_system);
            if (ends(&text) || alias) && is_unit_name(&name) {
                assert!(ends_the_system(&name), "{name} ends the system, and is not in the list");
            }
        }
    }
}
