//! Reasons as sentences, however a policy writes them.

/// What spells itself in lower case also where a sentence begins.
const NAMES: [&str; 18] = [
    "auditd",
    "chronyd",
    "conmon",
    "crio",
    "crun",
    "dnsmasq",
    "etcd",
    "irqbalance",
    "journald",
    "kubelet",
    "nmstate",
    "podman",
    "rsyslogd",
    "runc",
    "skopeo",
    "sshd",
    "systemd",
    "tread",
];

/// A sentence: it begins with a capital letter, unless with a name, and ends
/// with a stop.
pub(crate) fn sentence(text: &str) -> String {
    let text = text.trim();
    let first = text.split_whitespace().next().unwrap_or_default();
    let word = first.trim_end_matches([',', ';', ':', '.']);
    let plain = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
    let mut out = String::with_capacity(text.len() + 1);
    let mut chars = text.chars();
    if plain && !NAMES.contains(&word) {
        out.extend(chars.next().map(|c| c.to_ascii_uppercase()));
    }
    out.push_str(chars.as_str());
    if !out.is_empty() && !out.ends_with(['.', '!', '?', '…', ':']) {
        out.push('.');
    }
    out
}

/// `1 change`, `2 changes`.
pub(crate) fn count(number: usize, one: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ if one.ends_with('y') => format!("{number} {}ies", one.trim_end_matches('y')),
        _ => format!("{number} {one}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_begins_and_ends_like_a_sentence() {
        for (text, expected) in [
            (
                "kernel arguments are read at boot: nosmt is added",
                "Kernel arguments are read at boot: nosmt is added.",
            ),
            (
                "sshd reads the authorized keys at every login",
                "sshd reads the authorized keys at every login.",
            ),
            ("crio.runtime.log_level is read again", "crio.runtime.log_level is read again."),
            ("/etc/a cannot be read", "/etc/a cannot be read."),
            ("CRI-O reads it.", "CRI-O reads it."),
            ("why not?", "Why not?"),
            ("cut off …", "Cut off …"),
            ("ärger", "ärger."),
            ("  spaces ", "Spaces."),
            ("", ""),
        ] {
            assert_eq!(sentence(text), expected);
        }
    }

    #[test]
    fn one_is_not_several() {
        assert_eq!(count(1, "change"), "1 change");
        assert_eq!(count(0, "change"), "0 changes");
        assert_eq!(count(2, "ImageContentSourcePolicy"), "2 ImageContentSourcePolicies");
    }
}
