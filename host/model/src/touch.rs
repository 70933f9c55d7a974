//! Which units a policy or a rule may have reloaded or restarted.
//!
//! `restart` is what a plan calls gentle, so it must not be a way to end the
//! system. What does is known by its name, which is shared with the SDK, or by
//! what the configs that are compared say of it.

mod own;

pub use crate::units::{Touch, ends_the_system, touch, touch_gently};
pub(crate) use own::said_of_units;
pub use own::{OwnUnits, ROOM};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unit_name::is_unit_name;

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
            "var-lib-app.mount",
            "mnt-data.mount",
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

    #[test]
    fn what_the_system_stands_on_is_touched_by_nobody() {
        for name in [
            "-.mount",
            "boot.mount",
            "boot-efi.mount",
            "etc.mount",
            "home.mount",
            "run.mount",
            "run-lock.mount",
            "sys-fs-cgroup.mount",
            "sysroot.mount",
            "sysroot-ostree.mount",
            "tmp.mount",
            "usr.mount",
            "usr-local.mount",
            "var.mount",
            "var-log.mount",
            "var-tmp.mount",
        ] {
            assert!(touch(name).is_err(), "{name}");
        }
        for name in ["boot.service", "run.timer", "home.path", "usr-x.service", "various.mount"] {
            assert_eq!(touch_gently(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn what_carries_plans_out_is_touched_by_nobody() {
        for name in ["boot", "operation", "resume", "settle", "watch"] {
            let name = format!("tread-{name}.service");
            assert!(touch(&name).is_err_and(|why| why.contains("never end")), "{name}");
            assert!(touch_gently(&name).is_err(), "{name}");
        }
    }

    #[test]
    fn what_boots_into_another_image_is_touched_by_nobody() {
        for name in [
            "bootc-fetch-apply-updates.service",
            "bootc-fetch-apply-updates.timer",
            "coreos-kargs-reboot.service",
            "dnf-automatic.timer",
            "dnf-system-upgrade.service",
            "greenboot-healthcheck.service",
            "machine-config-daemon-firstboot.service",
            "ostree-finalize-staged.service",
            "rpm-ostreed-automatic.service",
            "selinux-autorelabel.service",
            "zincati.service",
        ] {
            assert!(touch(name).is_err(), "{name}");
        }
    }

    #[test]
    fn what_takes_much_of_a_node_with_it_is_for_rules_of_an_admin_only() {
        for name in [
            "dbus.service",
            "dbus.socket",
            "dbus-broker.service",
            "blk-availability.service",
            "systemd-cryptsetup@root.service",
            "crio-wipe.service",
            "var-lib-containers.mount",
            "var-lib-kubelet.mount",
            "var-lib-etcd.mount",
            "sbd.service",
        ] {
            assert_eq!(touch(name), Ok(Touch::Wide), "{name}");
            let why = touch_gently(name).unwrap_err();
            assert!(why.starts_with("takes much of a node with it"), "{name}: {why}");
        }
    }

    const SYSTEMD: &str = "/usr/lib/systemd/system";

    /// Whatever ends the system that is installed here is known.
    #[test]
    fn the_units_of_a_systemd_that_is_installed_here_are_known() {
        let entries = std::fs::read_dir(SYSTEMD).unwrap_or_else(|error| {
            panic!(
                "{SYSTEMD}: {error}. This test holds the list of units against those of a real \
                 systemd, and was not run: install systemd"
            )
        });
        let ends = |text: &str| {
            text.lines().any(|line| {
                let Some((key, value)) = line.split_once('=') else { return false };
                match key {
                    "SuccessAction" | "FailureAction" | "JobTimeoutAction" | "StartLimitAction" => {
                        value != "none"
                    }
                    "OnFailure" | "OnSuccess" => value.split(' ').any(ends_the_system),
                    "ExecStart" => ["isolate", "switch-root", "systemd-sleep", "--force reboot"]
                        .iter()
                        .any(|word| value.contains(word)),
                    _ => false,
                }
            })
        };
        let mut seen = 0;
        for entry in entries {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let is_touchable = touch_gently(&name).is_ok();
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let target = std::fs::read_link(&path).ok();
            let of = target.as_ref().and_then(|it| it.file_name()?.to_str());
            let alias = of.is_some_and(|of| touch_gently(of).is_err() && is_unit_name(of));
            seen += usize::from(is_unit_name(&name));
            let own_mount = name.ends_with(".mount");
            assert!(
                !(is_touchable && (ends(&text) || alias || own_mount)),
                "{name} ends the system, and is not in the list"
            );
        }
        assert!(seen > 100, "{SYSTEMD} holds {seen} units, which is no systemd");
    }
}
