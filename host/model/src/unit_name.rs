//! Names of systemd units.

pub use crate::units::{is_template, is_unit_name, kind_of_unit};

/// Whether an action can name it: a unit, and no template.
pub fn can_be_restarted(name: &str) -> bool {
    is_unit_name(name) && !is_template(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_systemd_takes_are_unit_names() {
        for name in [
            "crio.service",
            "a.socket",
            "dev-sda.device",
            "-.mount",
            "var-lib.automount",
            "zram.swap",
            "multi-user.target",
            "x.path",
            "x.timer",
            "user-1000.slice",
            "session-1.scope",
            "app@blue.service",
            "app@1.2.service",
            "app@a@b.service",
            "app@.service",
            "systemd-fsck@dev-disk-by\\x2duuid.service",
            "my.dotted:name_1.service",
        ] {
            assert!(is_unit_name(name), "{name}");
        }
    }

    #[test]
    fn names_that_systemd_refuses_are_none() {
        for name in [
            "",
            "crio",
            ".service",
            ".hidden.service",
            "@.service",
            "@x.service",
            "crio.Service",
            "crio.conf",
            "crio.snapshot",
            "crio.service ",
            "a b.service",
            "a/b.service",
            "a.service\n",
            "a*.service",
            "größe.service",
            "x.service.d",
        ] {
            assert!(!is_unit_name(name), "{name:?}");
        }
    }

    #[test]
    fn a_name_has_255_bytes_at_most() {
        let name = |length: usize| format!("{}.service", "a".repeat(length - ".service".len()));
        assert!(is_unit_name(&name(255)));
        assert!(!is_unit_name(&name(256)));
    }

    #[test]
    fn a_template_is_a_unit_that_nobody_can_restart() {
        for (name, restartable) in [
            ("app@.service", false),
            ("app@blue.service", true),
            ("app@a@.service", true),
            ("app.service", true),
            ("app@", false),
        ] {
            assert_eq!(can_be_restarted(name), restartable, "{name}");
        }
    }
}
