//! What the text of a unit says of the system.

use crate::touch::{ends_the_system, touch_gently};
use std::borrow::Cow;

/// What a unit can have done to the system when it ends, fails or hangs.
const ACTIONS: [&str; 4] =
    ["SuccessAction", "FailureAction", "JobTimeoutAction", "StartLimitAction"];

/// What starts other units.
const STARTS: [&str; 9] = [
    "Requires",
    "Wants",
    "BindsTo",
    "Upholds",
    "OnSuccess",
    "OnFailure",
    "RequiresOverridable",
    // Of paths and timers, and of sockets.
    "Unit",
    "Service",
];

/// What any unit conflicts with that begins early: nothing happens where the
/// system does not end anyway.
const HARMLESS_CONFLICTS: [&str; 7] = [
    "shutdown.target",
    "umount.target",
    "final.target",
    "emergency.target",
    "rescue.target",
    "initrd-switch-root.target",
    "sleep.target",
];

const COMMANDS: [&str; 7] = ["reboot", "poweroff", "halt", "shutdown", "telinit", "init", "kexec"];

const VERBS: [&str; 16] = [
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
];

/// What stops other units when a unit starts or stops.
const STOPS: [&str; 2] = ["Conflicts", "PropagatesStopTo"];

/// What a node cannot do without, and may be restarted all the same.
const NEEDED: [&str; 2] = ["crio.service", "kubelet.service"];

/// Why touching a unit ends or isolates the system, by its text: a clause that
/// quotes no value.
pub(super) fn ends(text: &str, name: &str) -> Option<String> {
    for (section, key, value) in settings(text) {
        let value = value.trim();
        if ACTIONS.contains(&key) && !matches!(value, "" | "none") {
            return Some(format!("has {key}=, by which the system ends"));
        }
        let starts = STARTS.contains(&key);
        if starts || STOPS.contains(&key) {
            let Some(units) = units(value, name) else {
                return Some(format!("names units that only systemd can tell, by {key}="));
            };
            if starts && units.iter().any(|unit| ends_the_system(unit)) {
                return Some(format!("starts what ends the system, by {key}="));
            }
            if !starts && units.iter().any(|unit| is_missed(unit)) {
                return Some(format!("stops what a node needs, by {key}="));
            }
        }
        let is_local = |word: &str| word == "local-fs.target";
        if section == "Install" && key == "RequiredBy" && value.split_whitespace().any(is_local) {
            return Some(
                "is required by local-fs.target, without which the system isolates itself"
                    .to_owned(),
            );
        }
        if key.starts_with("Exec") && runs_the_end(&resolved(&unescaped(value), name)) {
            return Some(format!("runs what ends the system, by {key}="));
        }
    }
    None
}

/// Whether a node without this unit is not what it was.
fn is_missed(unit: &str) -> bool {
    !HARMLESS_CONFLICTS.contains(&unit) && (touch_gently(unit).is_err() || NEEDED.contains(&unit))
}

/// The units that start with a unit, as far as its text tells.
pub(super) fn started(text: &str, name: &str) -> Vec<String> {
    named_by(text, name, &STARTS)
}

/// The units with which a unit stops, as far as its text tells.
pub(super) fn stops_with(text: &str, name: &str) -> Vec<String> {
    named_by(text, name, &["PartOf", "BindsTo", "Requires", "StopPropagatedFrom"])
}

fn named_by(text: &str, name: &str, keys: &[&str]) -> Vec<String> {
    let named = settings(text).filter(|(_, key, _)| keys.contains(key));
    named.filter_map(|(.., value)| units(&value, name)).flatten().collect()
}

/// The units that a value names; None if only systemd can tell.
fn units(value: &str, name: &str) -> Option<Vec<String>> {
    let value = resolved(&unescaped(value), name);
    let words: Vec<String> =
        value.split_whitespace().map(|word| word.trim_matches(['"', '\'']).to_owned()).collect();
    (!words.iter().any(|word| word.contains('%'))).then_some(words)
}

/// A value with the specifiers that follow from the unit's name; others stay.
fn resolved(value: &str, name: &str) -> String {
    if !value.contains('%') {
        return value.to_owned();
    }
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let (prefix, instance) = stem.split_once('@').unwrap_or((stem, ""));
    let last = prefix.rsplit('-').next().unwrap_or(prefix);
    // In capitals: what stands escaped in the name, as it was.
    let [whole_prefix, whole_instance, whole_last] =
        [prefix, instance, last].map(|part| unescaped(part).into_owned());
    [
        ("%n", name),
        ("%N", stem),
        ("%p", prefix),
        ("%P", &whole_prefix),
        ("%i", instance),
        ("%I", &whole_instance),
        ("%j", last),
        ("%J", &whole_last),
    ]
    .iter()
    .fold(value.to_owned(), |value, (specifier, stands_for)| value.replace(specifier, stands_for))
}

/// A value with its characters in place of what stands for them: `\x65`, `\145`,
/// `\s`.
fn unescaped(value: &str) -> Cow<'_, str> {
    if !value.contains('\\') {
        return Cow::Borrowed(value);
    }
    let mut out = String::with_capacity(value.len());
    let mut rest = value;
    while let Some((before, behind)) = rest.split_once('\\') {
        out.push_str(before);
        let (digits, radix, from) = match behind.as_bytes().first() {
            Some(b'x') => (2, 16, 1),
            Some(b'u') => (4, 16, 1),
            Some(b'U') => (8, 16, 1),
            Some(b'0'..=b'7') => (3, 8, 0),
            _ => (0, 0, 0),
        };
        let code = behind.get(from..from + digits).filter(|_| digits > 0);
        let character = code.and_then(|code| u32::from_str_radix(code, radix).ok());
        rest = match character.and_then(char::from_u32) {
            Some(character) => {
                out.push(character);
                behind.get(from + digits..).unwrap_or_default()
            }
            None => match behind.strip_prefix('s') {
                Some(behind) => {
                    out.push(' ');
                    behind
                }
                None => behind,
            },
        };
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// What runs another command, which stands somewhere behind it.
const WRAPPERS: [&str; 20] = [
    "exec",
    "env",
    "sudo",
    "nohup",
    "setsid",
    "timeout",
    "nice",
    "ionice",
    "chroot",
    "nsenter",
    "systemd-run",
    "stdbuf",
    "flock",
    "unshare",
    "runuser",
    "su",
    "time",
    "xargs",
    "busybox",
    "toybox",
];

/// What stands before a command in a shell.
const KEYWORDS: [&str; 9] = ["if", "then", "else", "elif", "while", "until", "do", "!", "{"];

/// Commands of more words are not looked into, and count as the worst.
const MOST_WORDS: usize = 512;

/// Whether a command line is one that ends the system, as far as it says so
/// itself: what a script does is not seen.
fn runs_the_end(line: &str) -> bool {
    if ["sysrq-trigger", "RTMIN"].iter().any(|word| line.contains(word)) {
        return true;
    }
    let separated = line.replace(['"', '\'', '`', '(', ')', ';', '&', '|', '\n'], " \n ");
    separated.split('\n').any(|command| {
        let words = command.split_whitespace().skip_while(|word| {
            KEYWORDS.contains(word) || (word.contains('=') && !word.starts_with('-'))
        });
        let words: Vec<&str> = words.take(MOST_WORDS + 1).collect();
        words.len() > MOST_WORDS || command_ends(&words)
    })
}

fn command_ends(words: &[&str]) -> bool {
    let Some((first, rest)) = words.split_first() else { return false };
    let program = program(first);
    // Only systemd can tell what that is.
    if program.contains('%') {
        return true;
    }
    match WRAPPERS.contains(&program) {
        // Which of the words is the command depends on the options of each wrapper.
        true => (1..words.len()).any(|at| {
            let (first, rest) = (words.get(at), words.get(at + 1..));
            first.zip(rest).is_some_and(|(first, rest)| program_ends(self::program(first), rest))
        }),
        false => program_ends(program, rest),
    }
}

fn program(word: &str) -> &str {
    base(word.trim_start_matches(['-', '@', ':', '+', '!', '|']))
}

fn program_ends(program: &str, rest: &[&str]) -> bool {
    if COMMANDS.contains(&program) {
        return true;
    }
    let says = |wanted: &[&str]| rest.iter().any(|word| wanted.contains(word));
    match program {
        "systemctl" => {
            let verbs: Vec<&str> =
                rest.iter().copied().filter(|word| !word.starts_with('-')).collect();
            let stops = verbs.iter().any(|word| matches!(*word, "stop" | "kill" | "mask"));
            rest.iter().any(|word| word.contains('%') || word.contains("isolate"))
                || verbs.iter().any(|verb| VERBS.contains(verb))
                || verbs.iter().any(|unit| unit.contains('.') && ends_the_system(unit))
                || stops && verbs.iter().any(|unit| is_stopped_at_a_cost(unit))
        }
        "rpm-ostree" => says(&["-r", "--reboot"]),
        "bootc" => says(&["--apply"]),
        "busctl" | "dbus-send" | "gdbus" => {
            let ends = ["Reboot", "PowerOff", "Halt", "KExec", "SoftReboot", "Suspend"];
            rest.iter().any(|word| ends.iter().any(|end| word.contains(end)))
        }
        _ => false,
    }
}

/// As systemctl takes names: a service if it does not say.
fn is_stopped_at_a_cost(unit: &str) -> bool {
    match unit {
        "stop" | "kill" | "mask" => false,
        unit if unit.contains('.') => is_missed(unit),
        unit => is_missed(&format!("{unit}.service")),
    }
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The other names of a unit, by its text; None in place of one that only systemd
/// can tell.
pub(super) fn aliases(text: &str, name: &str) -> Vec<Option<String>> {
    let lines = settings(text).filter(|(section, key, _)| section == "Install" && *key == "Alias");
    let words = lines.flat_map(|(.., value)| {
        let words = value.split_whitespace().map(str::to_owned);
        words.collect::<Vec<_>>()
    });
    words.map(|word| units(&word, name).and_then(|mut units| units.pop())).collect()
}

/// The settings of a unit's text as systemd reads them: section, key and value.
fn settings(text: &str) -> impl Iterator<Item = (String, &str, Cow<'_, str>)> {
    let mut lines = text.trim_start_matches('\u{feff}').lines();
    let mut section = String::new();
    std::iter::from_fn(move || {
        loop {
            let line = lines.next()?.trim();
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            if let Some(name) = line.strip_prefix('[') {
                section = name.trim_end_matches(']').to_owned();
                continue;
            }
            let Some((key, value)) = line.split_once('=') else { continue };
            let mut value = Cow::Borrowed(value.trim());
            while let Some(begun) = value.strip_suffix('\\') {
                let begun = begun.to_owned();
                // Comments stand between the lines of a value, too.
                let next = lines.by_ref().map(str::trim).find(|it| !it.starts_with(['#', ';']));
                value = Cow::Owned(format!("{begun} {}", next.unwrap_or_default()));
            }
            return Some((section.clone(), key.trim(), value));
        }
    })
}
