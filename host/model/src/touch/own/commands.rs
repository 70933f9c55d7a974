//! What a command line does to the system, as far as it says so itself: what a
//! program or a script does is its owner's affair.

use super::directives::is_known_property;
use super::needed::is_missed;
use crate::touch::{ends_the_system, touch_gently};

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

/// The verbs of systemctl by which a unit stops and starts again.
const RESTARTING: [&str; 6] = [
    "restart",
    "try-restart",
    "condrestart",
    "reload-or-restart",
    "try-reload-or-restart",
    "force-reload",
];

/// The methods on the bus by which the system ends, or another unit is started or
/// stopped.
const METHODS: [&str; 14] = [
    "Reboot",
    "PowerOff",
    "Halt",
    "KExec",
    "Suspend",
    "Hibernate",
    "HybridSleep",
    "Sleep",
    "ScheduleShutdown",
    "SwitchRoot",
    "Exit",
    "Isolate",
    "Unit",
    "rpmostree",
];

/// What runs another command, which stands somewhere behind it.
const WRAPPERS: [&str; 50] = [
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
    "systemd-mount",
];

/// Those of them behind which the command stands at once, if no option does.
const AT_ONCE: [&str; 9] =
    ["exec", "nohup", "setsid", "command", "builtin", "env", "sudo", "systemd-cat", "time"];

/// What runs the word behind its option `-c` as a command.
const SHELLS: [&str; 7] = ["sh", "bash", "dash", "ash", "ksh", "zsh", "rbash"];

/// What stands before a command in a shell.
const KEYWORDS: [&str; 9] = ["if", "then", "else", "elif", "while", "until", "do", "!", "{"];

/// Where the kernel takes commands from root, by which the system ends or sleeps.
const KERNEL: [&str; 4] = ["/sysrq", "sysrq-trigger", "/sys/power/", "/dev/watchdog"];

const QUOTES: [char; 2] = ['"', '\''];
/// What ends a command in a shell.
const SEPARATORS: [char; 7] = ['`', '(', ')', ';', '&', '|', '\n'];

/// Commands of more words are not looked into, and count as the worst.
const MOST_WORDS: usize = 512;

/// Behind wrappers, so many programs that could end the system are looked into; a line that names more
/// counts as the worst.
const MOST_PROGRAMS: usize = 16;

/// Programs that end the system by what stands behind them.
const BY_ARGUMENTS: [&str; 18] = [
    "systemctl",
    "loginctl",
    "rpm-ostree",
    "ostree",
    "bootc",
    "dnf",
    "dnf5",
    "yum",
    "leapp",
    "transactional-update",
    "busctl",
    "dbus-send",
    "gdbus",
    "varlinkctl",
    "kill",
    "pkill",
    "killall",
    "ipmitool",
];

/// What stands for something that only who runs the command can tell.
const UNKNOWN: [char; 2] = ['%', '$'];

/// Whether a text names where the kernel takes commands.
pub(super) fn reaches_the_kernel(text: &str) -> bool {
    KERNEL.iter().any(|place| text.contains(place))
}

/// Whether a command line is one that ends the system.
pub(super) fn runs_the_end(line: &str) -> bool {
    if reaches_the_kernel(line) || line.contains("RTMIN") {
        return true;
    }
    let mut looked_into = 0;
    let mut ends =
        |command: &Command| command.words.len() > MOST_WORDS || command.ends(&mut looked_into);
    commands(line).iter().any(&mut ends)
}

/// The units that a command line starts or restarts, as systemctl takes their names.
pub(super) fn units_begun(line: &str) -> Vec<String> {
    if !line.contains("systemctl") {
        return Vec::new();
    }
    let mut units = Vec::new();
    for Command { words, .. } in commands(line) {
        let behind = words.iter().position(|word| program(word) == "systemctl");
        let behind = behind.and_then(|at| words.get(at + 1..)).unwrap_or_default();
        for word in behind.iter().filter(|word| !word.starts_with('-')) {
            units.push(match word.contains('.') {
                true => (*word).to_owned(),
                false => format!("{word}.service"),
            });
        }
    }
    units
}

/// A command, in words.
struct Command {
    words: Vec<String>,
    /// It may be no more than what stands in quotes.
    is_part: bool,
}

/// The commands of a line: what stands in quotes may be one, or a part of one.
fn commands(line: &str) -> Vec<Command> {
    let apart = (line.replace(QUOTES, " \n "), true);
    let together = (line.replace(QUOTES, ""), false);
    let mut all = Vec::new();
    for (line, is_part) in [apart, together] {
        let line = line.replace(SEPARATORS, " \n ");
        all.extend(line.split('\n').map(|command| {
            let words = command.split_whitespace().skip_while(|word| {
                KEYWORDS.contains(word)
                    || (word.contains('=') && !word.starts_with('-'))
                    || word.starts_with(['>', '<'])
            });
            let words = words.take(MOST_WORDS + 1).map(str::to_owned).collect();
            Command { words, is_part }
        }));
    }
    all
}

impl Command {
    fn ends(&self, looked_into: &mut usize) -> bool {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        let Some((first, rest)) = words.split_first() else { return false };
        // Only who runs it can tell what that is.
        match is_unknown_program(first) {
            true => !self.is_part,
            false => command_ends(program(first), rest, looked_into),
        }
    }
}

fn command_ends(program: &str, rest: &[&str], looked_into: &mut usize) -> bool {
    if SHELLS.contains(&program) {
        return shell_ends(rest);
    }
    if !WRAPPERS.contains(&program) {
        return program_ends(program, rest);
    }
    if wrapper_ends(program, rest) {
        return true;
    }
    // Which of the words is the command depends on the options of each wrapper.
    let mut is_named = false;
    let mut at_once = AT_ONCE.contains(&program);
    for (at, word) in rest.iter().enumerate() {
        let behind = rest.get(at + 1..).unwrap_or_default();
        let inner = self::program(word);
        if !is_named && inner.contains(UNKNOWN) && !word.contains('=') {
            return true;
        }
        // Each is held against all that stands behind it.
        *looked_into += usize::from(BY_ARGUMENTS.contains(&inner) || SHELLS.contains(&inner));
        if *looked_into > MOST_PROGRAMS {
            return true;
        }
        if program_ends(inner, behind) || !is_named && SHELLS.contains(&inner) && shell_ends(behind)
        {
            return true;
        }
        let is_wrapper = WRAPPERS.contains(&inner);
        is_named |= !is_wrapper && (at_once && is_plain(word) || is_program(word));
        at_once &= is_wrapper || word.contains('=');
        at_once |= AT_ONCE.contains(&inner);
    }
    false
}

/// Whether a word behind a wrapper is no option, no assignment and no number.
fn is_plain(word: &str) -> bool {
    !word.starts_with('-')
        && !word.contains('=')
        && word.starts_with(|it: char| it.is_alphabetic() || it == '/')
}

/// Whether a word is a program by its whole path.
fn is_program(word: &str) -> bool {
    let places = ["/bin/", "/sbin/", "/libexec/", "/lib/", "/lib64/"];
    word.starts_with('/') && places.iter().any(|place| word.contains(place))
}

/// Whether what a shell runs ends the system.
fn shell_ends(rest: &[&str]) -> bool {
    let is_option = |word: &str| word.starts_with('-') && word.contains('c');
    // A variable may be the option.
    if rest.first().is_some_and(|word| word.contains(UNKNOWN)) {
        return true;
    }
    let Some(option) = rest.iter().position(|word| is_option(word)) else { return false };
    let behind = rest.get(option + 1..).unwrap_or_default();
    // More options may follow, and one of them may have a value.
    let is_more = |word: &&str| word.starts_with(['-', '+']);
    let first = behind.iter().take_while(|word| is_more(word)).count();
    let most = if first == 0 { 1 } else { 2 };
    (first..first + most).any(|at| {
        let Some((word, rest)) = behind.get(at..).and_then(<[&str]>::split_first) else {
            return false;
        };
        is_unknown_program(word) && !word.contains('=') || program_ends(program(word), rest)
    })
}

/// Whether the options of a wrapper do more than run a command.
fn wrapper_ends(program: &str, rest: &[&str]) -> bool {
    match program {
        // A whole command in one word.
        "env" => rest.iter().any(|word| is_short(word, 'S') || word.starts_with("--s")),
        "systemd-run" | "systemd-mount" => {
            let mut words = rest.iter().peekable();
            while let Some(word) = words.next() {
                let value = match word.split_once('=') {
                    Some((option, value)) if sets_property(option) => value,
                    None if sets_property(word) => {
                        words.peek().copied().copied().unwrap_or_default()
                    }
                    _ if *word == "-p" => words.peek().copied().copied().unwrap_or_default(),
                    _ => match word.strip_prefix("-p") {
                        Some(value) => value,
                        None => continue,
                    },
                };
                let key = value.split_once('=').map_or(value, |(key, _)| key);
                if !is_property_alone(key) {
                    return true;
                }
            }
            false
        }
        _ => false,
    }
}

/// Whether a long option sets a property of a unit, also where it is cut short.
fn sets_property(option: &str) -> bool {
    let kinds = ["--property", "--timer-property", "--path-property", "--socket-property"];
    option.len() > "--".len() && kinds.iter().any(|whole| whole.starts_with(option))
}

/// Whether a property of a unit that a command makes concerns that unit alone.
fn is_property_alone(key: &str) -> bool {
    is_known_property(key)
        && super::relations::of_key(key).is_none_or(|_| key == "Slice")
        && !key.ends_with("Action")
        && !key.ends_with("JobMode")
        && !key.starts_with("Exec")
}

fn program(word: &str) -> &str {
    base(word.trim_start_matches(['-', '@', ':', '+', '!', '|']))
}

/// Whether only who runs it can tell which program a word is: by a variable, or by what
/// a shell makes names of files of.
fn is_unknown_program(word: &str) -> bool {
    program(word).contains(UNKNOWN)
        || word.contains('/') && word.contains(['*', '?', '['])
        || word.contains('{') && word.contains(',')
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether a word is short options, with this one among them.
fn is_short(word: &str, option: char) -> bool {
    word.starts_with('-') && !word.starts_with("--") && word.contains(option)
}

fn program_ends(program: &str, rest: &[&str]) -> bool {
    if COMMANDS.contains(&program) {
        return true;
    }
    let says = |wanted: &[&str]| rest.iter().any(|word| wanted.contains(word));
    let is_unknown = || rest.iter().any(|word| word.contains(UNKNOWN));
    match program {
        "systemctl" => {
            let verbs: Vec<&str> =
                rest.iter().copied().filter(|word| !word.starts_with('-')).collect();
            let stops = verbs.iter().any(|word| STOPPING.contains(word));
            let restarts = verbs.iter().any(|word| RESTARTING.contains(word));
            let ends =
                |unit: &str| ends_the_system(unit) || ends_the_system(&format!("{unit}.service"));
            is_unknown()
                || rest
                    .iter()
                    .any(|word| word.contains(['*', '?', '[']) || word.contains("isolate"))
                || verbs.iter().any(|verb| VERBS.contains(verb))
                || verbs.iter().any(|unit| ends(unit))
                || stops && verbs.iter().any(|unit| is_stopped_at_a_cost(unit))
                || restarts && verbs.iter().any(|unit| is_restarted_at_a_cost(unit))
        }
        "loginctl" => is_unknown() || says(&VERBS),
        "rpm-ostree" => {
            is_unknown()
                || says(&["--reboot", "finalize-deployment"])
                || rest.iter().any(|word| is_short(word, 'r'))
        }
        "ostree" => is_unknown() || says(&["--reboot"]),
        "bootc" => is_unknown() || rest.iter().any(|word| word.starts_with("--apply")),
        "dnf" | "dnf5" | "yum" | "leapp" | "transactional-update" => {
            is_unknown() || says(&["reboot", "--reboot", "kexec", "soft-reboot"])
        }
        "busctl" | "dbus-send" | "gdbus" | "varlinkctl" => {
            is_unknown()
                || rest.iter().any(|word| METHODS.iter().any(|method| word.contains(method)))
        }
        // The first process of the system, or all of them.
        "kill" => kills_the_first(rest),
        "pkill" | "killall" => is_unknown() || says(&["systemd", "init"]),
        "killall5"
        | "rtcwake"
        | "systemd-sleep"
        | "systemd-shutdown"
        | "pm-suspend"
        | "pm-hibernate"
        | "machine-config-daemon"
        | "stonith_admin" => true,
        "ipmitool" => is_unknown() || says(&["power", "chassis"]),
        other => other.starts_with("fence_"),
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
    let is_own = |word: &str| word.contains("PID") || word.contains("pid");
    let is_first = |word: &str| matches!(word.parse(), Ok(1_i64 | -1));
    words.any(|word| is_first(word) || word.contains(UNKNOWN) && !is_own(word))
}

/// As systemctl takes names: a service if it does not say.
fn is_stopped_at_a_cost(unit: &str) -> bool {
    match unit {
        verb if STOPPING.contains(&verb) => false,
        unit if unit.contains('.') => is_missed(unit),
        unit => is_missed(&format!("{unit}.service")),
    }
}

fn is_restarted_at_a_cost(unit: &str) -> bool {
    match unit {
        verb if RESTARTING.contains(&verb) => false,
        unit if unit.contains('.') => touch_gently(unit).is_err(),
        unit => touch_gently(&format!("{unit}.service")).is_err(),
    }
}
