//! What a call of systemctl does to the units that it names. The verbs and options are those of systemd
//! 252 to 259, with the older names that these still take (`src/systemctl`: `verbs[]`, `unit_actions[]`
//! and `options[]`).

use super::names::mounts_of;
use super::needed::is_missed;
use crate::touch::{ends_the_system, touch_gently};
use crate::unit_name::kind_of_unit;

/// What stands around a command whose output a shell puts in its place. In a word it stands for that
/// output.
pub(super) const BACKTICK: char = '`';

/// The verbs by which the system ends, sleeps, or has all but a few of its units stopped. Loginctl has
/// some of them, too.
pub(super) const ENDING: [&str; 17] = [
    "reboot",
    "poweroff",
    "halt",
    "kexec",
    "soft-reboot",
    "exit",
    "isolate",
    "default",
    "rescue",
    "emergency",
    "switch-root",
    "suspend",
    "sleep",
    "hibernate",
    "hybrid-sleep",
    "suspend-then-hibernate",
    "when",
];

/// The verbs by which nothing stops that runs: they tell something, have units read again, or start what
/// does not run, which is looked into apart from this.
const HARMLESS: [&str; 34] = [
    "cat",
    "check",
    "daemon-reexec",
    "daemon-reload",
    "enable",
    "get-default",
    "help",
    "import-environment",
    "is-active",
    "is-enabled",
    "is-failed",
    "is-system-running",
    "list-automounts",
    "list-dependencies",
    "list-jobs",
    "list-machines",
    "list-paths",
    "list-sockets",
    "list-timers",
    "list-unit-files",
    "list-units",
    "log-level",
    "log-target",
    "reload",
    "reset-failed",
    "service-log-level",
    "service-log-target",
    "set-environment",
    "show",
    "show-environment",
    "start",
    "status",
    "unmask",
    "unset-environment",
];

/// The verbs by which the units that are named stop and start again.
const RESTARTING: [&str; 9] = [
    "restart",
    "try-restart",
    "condrestart",
    "reload-or-restart",
    "try-reload-or-restart",
    "reload-or-try-restart",
    "condreload",
    "force-reload",
    // With `--now`.
    "reenable",
];

/// The verbs by which the units that are named may run no more, or not as they did, and no others.
const STOPPING: [&str; 14] = [
    "stop",
    "condstop",
    "kill",
    "mask",
    "disable",
    "freeze",
    "thaw",
    "clean",
    "revert",
    "preset",
    "set-property",
    "edit",
    "bind",
    "mount-image",
];

/// Long options behind which no value stands.
const FLAGS: [&str; 38] = [
    "after",
    "all",
    "before",
    "dry-run",
    "fail",
    "failed",
    "firmware-setup",
    "force",
    "full",
    "global",
    "help",
    "ignore-dependencies",
    "ignore-inhibitors",
    "irreversible",
    "mkdir",
    "no-ask-password",
    "no-block",
    "no-legend",
    "no-pager",
    "no-reload",
    "no-wall",
    "no-warn",
    "now",
    "plain",
    "quiet",
    "read-only",
    "recursive",
    "reverse",
    "runtime",
    "show-transaction",
    "show-types",
    "stdin",
    "system",
    "user",
    "value",
    "version",
    "wait",
    "with-dependencies",
];

/// Long options whose value is the next word, if it does not stand behind a `=`.
const WITH_VALUE: [&str; 25] = [
    "boot-loader-entry",
    "boot-loader-menu",
    "capsule",
    "check-inhibitors",
    "drop-in",
    "host",
    "image",
    "image-policy",
    "job-mode",
    "kill-value",
    "kill-who",
    "kill-whom",
    "legend",
    "lines",
    "machine",
    "message",
    "output",
    "preset-mode",
    "property",
    "root",
    "signal",
    "state",
    "timestamp",
    "type",
    "what",
];

/// Whether what stands behind `systemctl` ends the system, or takes too much of it. `is_part`: the words may
/// be only a part of the command, as what stands in quotes.
pub(super) fn ends(rest: &[&str], is_part: bool) -> bool {
    let words: Vec<&str> = rest.iter().copied().filter(|word| !is_redirection(word)).collect();
    // A pattern, or several names in one word, means more units than are known here.
    if words.iter().any(|word| word.contains(['*', '?', '[', '{']) || word.contains("isolate")) {
        return true;
    }
    // `--marked`: units that the command line does not name.
    if words.iter().any(|word| word.starts_with("--mar")) {
        return true;
    }
    // The value of an option is held to be a unit as well.
    let plain: Vec<&str> = words
        .iter()
        .copied()
        .filter(|word| !word.starts_with('-') && !word.contains('='))
        .collect();
    plain.iter().any(|word| ENDING.contains(word) || any_name(word, ends_the_system))
        || verbs(&words).iter().any(|verb| verb_ends(verb, &plain, is_part))
}

fn verb_ends(verb: &str, plain: &[&str], is_part: bool) -> bool {
    let of_units: fn(&str) -> bool = match verb {
        verb if HARMLESS.contains(&verb) => return false,
        verb if RESTARTING.contains(&verb) => |unit: &str| touch_gently(unit).is_err(),
        verb if STOPPING.contains(&verb) => is_missed,
        // What such a verb does is not known. In a part of a command it may be a word of a sentence.
        _ => return !is_part,
    };
    let mut units = plain.iter().filter(|word| **word != verb).peekable();
    // If no unit is named, the names come from elsewhere, as by `xargs`. Nor is it known which ones a
    // command prints.
    !is_part && units.peek().is_none()
        || units.any(|word| word.contains(BACKTICK) || any_name(word, of_units))
}

/// The words that may be the verb: several if it is not known whether an option has the next word as its
/// value.
fn verbs<'w>(words: &[&'w str]) -> Vec<&'w str> {
    let mut verbs = Vec::new();
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        if word == "--" {
            verbs.extend(words.next());
            break;
        }
        if !word.starts_with('-') {
            verbs.push(word);
            break;
        }
        match has_value(word) {
            Some(false) => {}
            Some(true) => _ = words.next(),
            None => verbs.extend(words.next()),
        }
    }
    verbs
}

/// Whether the word behind an option is its value; None: that is not known, as of one that is cut short.
fn has_value(option: &str) -> Option<bool> {
    if let Some(long) = option.strip_prefix("--") {
        let is_whole = long.contains('=') || FLAGS.contains(&long);
        return match is_whole {
            true => Some(false),
            false => WITH_VALUE.contains(&long).then_some(true),
        };
    }
    let letters = option.trim_start_matches('-');
    for (at, letter) in letters.char_indices() {
        match letter {
            // The rest of the word is the value, if there is any.
            't' | 'p' | 'P' | 's' | 'H' | 'M' | 'n' | 'o' | 'C' => {
                return Some(at + letter.len_utf8() == letters.len());
            }
            'a' | 'f' | 'h' | 'i' | 'l' | 'q' | 'r' | 'T' => {}
            _ => return None,
        }
    }
    Some(false)
}

fn is_redirection(word: &str) -> bool {
    word.contains(['<', '>'])
}

/// Whether this is so of a unit that a word means.
fn any_name(word: &str, is_so: impl Fn(&str) -> bool) -> bool {
    units_of(word).iter().any(|unit| is_so(unit))
}

/// The units that systemctl may mean by a word: a service if it does not say, and by a path the mount
/// there, or the unit of that file.
pub(super) fn units_of(word: &str) -> Vec<String> {
    let whole = |name: &str| match kind_of_unit(name) {
        Some(_) => name.to_owned(),
        None => format!("{name}.service"),
    };
    if !word.starts_with('/') {
        return vec![whole(word)];
    }
    let mount = mounts_of(word).pop().unwrap_or_else(|| "-.mount".to_owned());
    let file = word.rsplit('/').next().filter(|file| file.contains('.'));
    std::iter::once(mount).chain(file.map(whole)).collect()
}
