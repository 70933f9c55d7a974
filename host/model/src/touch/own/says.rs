//! What the text of a unit says of the system.

use crate::touch::{ends_the_system, touch_gently};
use std::borrow::Cow;
use std::rc::Rc;

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

const VERBS: [&str; 17] = [
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

/// The verbs of systemctl by which a unit runs no more.
const STOPPING: [&str; 5] = ["stop", "kill", "mask", "freeze", "disable"];

/// The methods on the bus by which the system ends, or another unit is started or
/// stopped.
const METHODS: [&str; 12] = [
    "Reboot",
    "PowerOff",
    "Halt",
    "KExec",
    "Suspend",
    "Hibernate",
    "HybridSleep",
    "ScheduleShutdown",
    "SwitchRoot",
    "Exit",
    "Isolate",
    "Unit",
];

/// What stops other units when a unit starts or stops.
const STOPS: [&str; 2] = ["Conflicts", "PropagatesStopTo"];

/// What a node cannot do without, and may be restarted all the same.
const NEEDED: [&str; 2] = ["crio.service", "kubelet.service"];

/// Why touching a unit ends or isolates the system, by its text: a clause that
/// quotes no value.
pub(super) fn ends(text: &str, name: &str) -> Option<String> {
    for Setting { section, key, value } in settings(text) {
        let (key, value) = (key.as_str(), value.as_str());
        if ACTIONS.contains(&key) && !matches!(value, "" | "none") {
            return Some(format!("has {key}=, by which the system ends"));
        }
        if key.starts_with("Standard") && value.contains(SYSRQ) {
            return Some(format!("reaches the kernel's sysrq, by {key}="));
        }
        let isolates = key.ends_with("JobMode") && value.contains("isolate");
        if isolates
            || key == "OnFailureIsolate" && !matches!(value, "" | "no" | "false" | "0" | "off")
        {
            return Some(format!("isolates another unit, by {key}="));
        }
        let starts = STARTS.contains(&key);
        if starts || STOPS.contains(&key) {
            let Ok(units) = units(value, name) else {
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
        if &*section == "Install" && key == "RequiredBy" && value.split_whitespace().any(is_local) {
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
    let named = settings(text).filter(|it| STARTS.contains(&it.key.as_str()));
    // Of other values `ends` says that they count as the worst.
    named.filter_map(|it| units(&it.value, name).ok()).flatten().collect()
}

/// The units with which a unit stops, as far as its text tells; None: they are too
/// many.
pub(super) fn stops_with(text: &str, name: &str) -> Option<Vec<String>> {
    named_by(text, name, &["PartOf", "BindsTo", "Requires", "Requisite", "StopPropagatedFrom"])
}

/// The units that start a unit, where it is enabled; None: they are too many.
pub(super) fn started_by(text: &str, name: &str) -> Option<Vec<String>> {
    named_by(text, name, &["WantedBy", "RequiredBy", "UpheldBy"])
}

fn named_by(text: &str, name: &str, keys: &[&str]) -> Option<Vec<String>> {
    let named = settings(text).filter(|it| keys.contains(&it.key.as_str()));
    let mut all = Vec::new();
    for it in named {
        match units(&it.value, name) {
            Ok(units) => all.extend(units),
            // It names some of each instance, or of each node.
            Err(Unnamed::OnlySystemdCanTell) => {}
            Err(Unnamed::TooMany) => return None,
        }
        if all.len() > MOST_NAMED {
            return None;
        }
    }
    Some(all)
}

/// A unit that names more units than this is not looked into, and counts as the worst.
const MOST_NAMED: usize = 4096;

/// Why it is not known which units a value names.
enum Unnamed {
    OnlySystemdCanTell,
    TooMany,
}

/// The units that a value names.
fn units(value: &str, name: &str) -> Result<Vec<String>, Unnamed> {
    let value = resolved(&unescaped(value), name).replace(['"', '\''], "");
    let words = value.split_whitespace().take(MOST_NAMED + 1);
    let words: Vec<String> = words.map(str::to_owned).collect();
    if words.len() > MOST_NAMED {
        return Err(Unnamed::TooMany);
    }
    match words.iter().any(|word| word.contains('%')) {
        true => Err(Unnamed::OnlySystemdCanTell),
        false => Ok(words),
    }
}

/// A value with the specifiers that follow from the unit's name; others stay.
fn resolved(value: &str, name: &str) -> String {
    if !value.contains('%') {
        return value.to_owned();
    }
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let (prefix, instance) = stem.split_once('@').unwrap_or((stem, ""));
    let last = prefix.rsplit('-').next().unwrap_or(prefix);
    // Of a template they follow from the instance, which may be any.
    let is_template = stem.ends_with('@');
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
    .filter(|(specifier, _)| !is_template || matches!(*specifier, "%p" | "%P" | "%j" | "%J"))
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
const WRAPPERS: [&str; 49] = [
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
    "command",
    "builtin",
    "eval",
    "trap",
    "watch",
    "taskset",
    "chrt",
    "setpriv",
    "pkexec",
    "run0",
    "doas",
    "systemd-inhibit",
    "systemd-cat",
    "script",
    "strace",
    "prlimit",
    "numactl",
    "find",
    "parallel",
    "unbuffer",
    "at",
    "batch",
    "ssh",
    "capsh",
    "dumb-init",
    "tini",
    "catatonit",
    "machinectl",
    "coproc",
];

/// What runs the word behind its option `-c` as a command.
const SHELLS: [&str; 7] = ["sh", "bash", "dash", "ash", "ksh", "zsh", "rbash"];

/// What stands before a command in a shell.
const KEYWORDS: [&str; 9] = ["if", "then", "else", "elif", "while", "until", "do", "!", "{"];

/// Where the kernel takes commands from root.
const SYSRQ: &str = "/sysrq";

const QUOTES: [char; 2] = ['"', '\''];
/// What ends a command in a shell.
const SEPARATORS: [char; 7] = ['`', '(', ')', ';', '&', '|', '\n'];

/// Commands of more words are not looked into, and count as the worst.
const MOST_WORDS: usize = 512;

/// Whether a command line is one that ends the system, as far as it says so
/// itself: what a script does is not seen.
fn runs_the_end(line: &str) -> bool {
    if [SYSRQ, "RTMIN"].iter().any(|word| line.contains(word)) {
        return true;
    }
    // What stands in quotes may be a command, or a part of one.
    let apart = line.replace(QUOTES, " \n ");
    let together = line.replace(QUOTES, "");
    let commands = [apart, together].map(|line| line.replace(SEPARATORS, " \n "));
    commands.iter().flat_map(|line| line.split('\n')).any(|command| {
        let words = command.split_whitespace().skip_while(|word| {
            KEYWORDS.contains(word)
                || (word.contains('=') && !word.starts_with('-'))
                || word.starts_with(['>', '<'])
        });
        let words: Vec<&str> = words.take(MOST_WORDS + 1).collect();
        words.len() > MOST_WORDS || command_ends(&words)
    })
}

fn command_ends(words: &[&str]) -> bool {
    let Some((first, rest)) = words.split_first() else { return false };
    let program = program(first);
    // Only who runs it can tell what that is.
    if program.contains(['%', '$']) {
        return true;
    }
    if SHELLS.contains(&program) {
        let is_option = |word: &str| word.starts_with('-') && word.contains('c');
        let option = rest.iter().position(|word| is_option(word));
        let behind = option.and_then(|at| rest.get(at + 1..)).and_then(<[&str]>::split_first);
        return behind.is_some_and(|(word, rest)| program_ends(self::program(word), rest));
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
            let stops = verbs.iter().any(|word| STOPPING.contains(word));
            let ends =
                |unit: &str| ends_the_system(unit) || ends_the_system(&format!("{unit}.service"));
            rest.iter().any(|word| word.contains(['%', '$', '*', '?']) || word.contains("isolate"))
                || verbs.iter().any(|verb| VERBS.contains(verb))
                || verbs.iter().any(|unit| ends(unit))
                || stops && verbs.iter().any(|unit| is_stopped_at_a_cost(unit))
        }
        "rpm-ostree" => says(&["-r", "--reboot"]),
        "bootc" => says(&["--apply"]),
        "busctl" | "dbus-send" | "gdbus" | "varlinkctl" => {
            rest.iter().any(|word| METHODS.iter().any(|method| word.contains(method)))
        }
        // The first process of the system, or all of them.
        "kill" => kills_the_first(rest),
        "pkill" | "killall" => says(&["systemd", "init"]),
        "killall5" | "rtcwake" | "systemd-sleep" => true,
        "ipmitool" => says(&["power", "chassis"]),
        _ => false,
    }
}

/// Whether one of those that are killed is the first process, or stands for all. What
/// comes first may be the signal.
fn kills_the_first(rest: &[&str]) -> bool {
    let mut words = rest.iter().copied().peekable();
    if let Some(signal) = words.next_if(|word| word.starts_with('-')) {
        // The signal by itself is another word.
        words.next_if(|_| matches!(signal, "-s" | "-n"));
    }
    words.any(|word| matches!(word, "1" | "-1"))
}

/// As systemctl takes names: a service if it does not say.
fn is_stopped_at_a_cost(unit: &str) -> bool {
    match unit {
        verb if STOPPING.contains(&verb) => false,
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
    let lines = settings(text).filter(|it| &*it.section == "Install" && it.key == "Alias");
    let mut all = Vec::new();
    for line in lines {
        for word in line.value.split_whitespace() {
            if all.len() == MOST_NAMED {
                all.push(None);
                return all;
            }
            all.push(units(word, name).ok().and_then(|mut units| units.pop()));
        }
    }
    all
}

/// What systemd takes for space around lines, keys and values.
const SPACE: [char; 4] = [' ', '\t', '\n', '\r'];

/// One line of a unit's text.
struct Setting {
    section: Rc<str>,
    key: String,
    value: String,
}

/// The settings of a unit's text as systemd reads them.
fn settings(text: &str) -> impl Iterator<Item = Setting> {
    let mut section: Rc<str> = Rc::from("");
    lines(text).filter_map(move |line| {
        let line = line.trim_matches(SPACE);
        if let Some(name) = line.strip_prefix('[') {
            section = Rc::from(name.trim_end_matches(']'));
            return None;
        }
        let (key, value) = line.split_once('=')?;
        let [key, value] = [key, value].map(|part| part.trim_matches(SPACE).to_owned());
        Some(Setting { section: Rc::clone(&section), key, value })
    })
}

/// The lines of a unit's text as systemd joins them: a line ends at a line break, a
/// carriage return or a NUL, and goes on if a backslash that is not escaped stands
/// right before that. Comments stand between the lines of a value, too.
fn lines(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let mut lines = text.trim_start_matches('\u{feff}').split(['\n', '\r', '\0']);
    std::iter::from_fn(move || {
        let mut begun = String::new();
        for line in lines.by_ref() {
            let line = line.trim_start_matches(SPACE);
            if line.starts_with(['#', ';']) {
                continue;
            }
            let escapes = line.len() - line.trim_end_matches('\\').len();
            match line.strip_suffix('\\').filter(|_| escapes % 2 == 1) {
                Some(line) => {
                    begun.push_str(line);
                    begun.push(' ');
                }
                None if begun.is_empty() => return Some(Cow::Borrowed(line)),
                None => {
                    begun.push_str(line);
                    return Some(Cow::Owned(begun));
                }
            }
        }
        (!begun.is_empty()).then_some(Cow::Owned(begun))
    })
}
