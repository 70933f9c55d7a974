//! Reasons as sentences, however a policy writes them.

use tread_model::description::Claim;
use tread_model::effect::Effect;

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
pub fn sentence(text: &str) -> String {
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
pub fn count(number: usize, one: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ if one.ends_with('y') => format!("{number} {}ies", one.trim_end_matches('y')),
        _ => format!("{number} {one}s"),
    }
}

/// `1,234,567`
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// The range of the answers to a claim: `none..reload`, or the only effect.
pub fn effects(claim: &Claim) -> String {
    let Claim { least, most, .. } = claim;
    if least == most { Effect::to_string(least) } else { format!("{least}..{most}") }
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

    #[test]
    fn thousands_are_apart() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(thousands(number), text);
        }
    }
}
