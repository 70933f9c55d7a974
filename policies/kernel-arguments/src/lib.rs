//! Kernel arguments and the kernel type take effect at boot only. What the
//! reboot is for stands in the reason, argument by argument.

use tread_guest_sdk::{Change, Claim, Context, Effect, Policy, Verdict, export};

/// The policy `kernel-arguments`.
pub struct KernelArguments;

impl Policy for KernelArguments {
    type Settings = ();
    const NAME: &'static str = "kernel-arguments";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str = "Kernel arguments and the kernel type take effect at boot";
    const CLAIMS: &'static [Claim] = &[
        Claim::on("kernel-arguments", Effect::Reboot, Effect::Reboot),
        Claim::on("kernel-type", Effect::Reboot, Effect::Reboot),
    ];

    fn classify((): &(), change: &Change, _: &Context<'_>) -> Verdict {
        match change.kind() {
            "kernel-arguments" => {
                let what = arguments(change.before.as_list(), change.after.as_list());
                Verdict::reboot(format!("kernel arguments are read at boot: {what}"))
            }
            "kernel-type" => {
                let before = change.before.as_text().unwrap_or("default");
                let after = change.after.as_text().unwrap_or("default");
                Verdict::reboot(format!(
                    "another kernel starts at boot: kernel type {before} becomes {after}"
                ))
            }
            _ => Verdict::abstain(),
        }
    }
}

export!(KernelArguments);

/// How much of a reason may go into arguments; there is a limit on the whole.
const ROOM: usize = 400;

/// What was done to which argument, in words.
fn arguments(before: &[String], after: &[String]) -> String {
    let mut removed = beyond(before, after);
    let mut added = beyond(after, before);
    // `a=1` that goes where another `a=2` comes is one change, not two.
    let mut parts = Vec::new();
    removed.retain(|old| {
        let same_name = |new: &&str| has_value(old) && has_value(new) && name(old) == name(new);
        let Some(at) = added.iter().position(same_name) else { return true };
        parts.push(format!("{old} becomes {}", added.remove(at)));
        false
    });
    parts.splice(..0, removed.iter().map(|old| format!("{old} goes")));
    parts.splice(..0, added.iter().map(|new| format!("{new} is added")));
    if parts.is_empty() {
        parts.push(
            "their order changes, and of two that contradict the kernel takes the last".into(),
        );
    } else if stay(before, after) != stay(after, before) {
        parts.push("the others change their order".into());
    }
    within(&parts)
}

/// The parts in one line; what does not fit any more is counted.
fn within(parts: &[String]) -> String {
    let mut line = String::new();
    for (at, part) in parts.iter().enumerate() {
        if line.len() + part.len() > ROOM {
            line.push_str(&format!("{} more", parts.len() - at));
            return line;
        }
        line.push_str(part);
        if at + 1 < parts.len() {
            line.push_str(", ");
        }
    }
    line
}

fn name(argument: &str) -> &str {
    argument.split_once('=').map_or(argument, |(name, _)| name)
}

fn has_value(argument: &str) -> bool {
    argument.contains('=')
}

/// What `these` have more often than `others`.
fn beyond<'a>(these: &'a [String], others: &[String]) -> Vec<&'a str> {
    let mut left: Vec<&String> = others.iter().collect();
    these
        .iter()
        .filter(|argument| match left.iter().position(|other| other == argument) {
            Some(at) => {
                left.swap_remove(at);
                false
            }
            None => true,
        })
        .map(String::as_str)
        .collect()
}

/// Those of `these` that `others` have too, each where it stands last: there it
/// counts.
fn stay<'a>(these: &'a [String], others: &[String]) -> Vec<&'a String> {
    let mut stay: Vec<&String> = Vec::new();
    for argument in these.iter().rev().filter(|argument| others.contains(argument)) {
        if !stay.contains(&argument) {
            stay.push(argument);
        }
    }
    stay
}

#[cfg(test)]
mod tests {
    use super::*;
    use tread_guest_sdk::test;

    fn reason(before: &[&str], after: &[&str]) -> String {
        let verdict =
            test::verdict::<KernelArguments>(test::list("kernel-arguments", before, after));
        assert_eq!(verdict.effect(), Some(Effect::Reboot));
        verdict.reason().strip_prefix("kernel arguments are read at boot: ").unwrap().to_string()
    }

    #[test]
    fn the_reason_says_what_happens_to_which_argument() {
        for (before, after, expected) in [
            (&["quiet"][..], &["quiet", "nosmt"][..], "nosmt is added"),
            (&["quiet", "nosmt"], &["quiet"], "nosmt goes"),
            (
                &["mitigations=off"],
                &["mitigations=auto"],
                "mitigations=off becomes mitigations=auto",
            ),
            (&["a", "b"], &["b", "c"], "c is added, a goes"),
            (&["console=tty0"], &["console=tty0", "console=ttyS0"], "console=ttyS0 is added"),
            (&["a", "a"], &["a"], "a goes"),
            (
                &["a", "b", "c"],
                &["b", "a", "d"],
                "d is added, c goes, the others change their order",
            ),
            (&[], &["a"], "a is added"),
        ] {
            assert_eq!(reason(before, after), expected, "{before:?} → {after:?}");
        }
        assert!(reason(&["a=1", "a=2"], &["a=2", "a=1"]).starts_with("their order changes"));
    }

    #[test]
    fn many_arguments_are_counted_and_not_cut_in_the_middle() {
        let many: Vec<String> = (0..100).map(|n| format!("argument{n}=value")).collect();
        let after: Vec<&str> = many.iter().map(String::as_str).collect();
        let reason = reason(&[], &after);
        assert!(reason.ends_with(" more"), "{reason}");
        let named = reason.matches("is added").count();
        assert!(reason.ends_with(&format!(", {} more", 100 - named)), "{reason}");
    }

    #[test]
    fn another_kernel_type_reboots_and_is_named() {
        let verdict =
            test::verdict::<KernelArguments>(test::text("kernel-type", "default", "realtime"));
        assert_eq!(verdict.effect(), Some(Effect::Reboot));
        assert!(verdict.reason().ends_with("default becomes realtime"));
    }
}
