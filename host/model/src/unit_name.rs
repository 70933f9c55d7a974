//! Names of systemd units.

pub use crate::units::{is_template, is_unit_name, kind_of_unit};

/// No name of a unit is longer, its type included.
pub const LONGEST: usize = 255;

/// Whether a name of a unit may have this: a type follows, and what it may begin with is
/// less.
pub fn is_of_names(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b":-_.\\@".contains(&byte)
}

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
    fn what_names_are_made_of_is_what_is_taken_as_a_name() {
        for byte in 0..128 {
            let name = format!("a{}a.service", char::from(byte));
            assert_eq!(is_of_names(byte), is_unit_name(&name), "{name:?}");
        }
        assert!(!(128..=255).any(is_of_names));
    }

    #[test]
    fn a_name_has_255_bytes_at_most() {
        let name = |length: usize| format!("{}.service", "a".repeat(length - ".service".len()));
        assert!(is_unit_name(&name(LONGEST)));
        assert!(!is_unit_name(&name(LONGEST + 1)));
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
