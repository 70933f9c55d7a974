//! The programs that a command line may name, by what they do to the system or to the words behind them.

/// The programs by which the system ends or sleeps, whatever stands behind them.
pub(super) const ENDING: [&str; 14] = [
    "reboot",
    "poweroff",
    "halt",
    "shutdown",
    "telinit",
    "init",
    "kexec",
    "killall5",
    "rtcwake",
    "systemd-sleep",
    "systemd-shutdown",
    "pm-suspend",
    "pm-hibernate",
    "stonith_admin",
];

/// Those of them whose names other programs have as verbs of their own (`redis-cli shutdown`, `kubeadm
/// init`).
pub(super) const ALSO_VERBS: [&str; 3] = ["shutdown", "init", "kexec"];

/// The methods on the bus by which the system ends, or another unit is started or
/// stopped.
pub(super) const METHODS: [&str; 14] = [
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

/// Programs that run another command, which stands somewhere behind them. A program that is not listed
/// counts as one of them where a word behind it is a program that ends the system. Behind those that are
/// listed, a variable in the place of the command counts too: only whoever runs it can tell what it is.
pub(super) const WRAPPERS: [&str; 74] = [
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
    "setarch",
    "linux32",
    "linux64",
    "i386",
    "x86_64",
    "choom",
    "uclampset",
    "chronic",
    "openvt",
    "bwrap",
    "firejail",
    "cgexec",
    "sg",
    "systemd-socket-activate",
    "start-stop-daemon",
    "gosu",
    "su-exec",
    "setuidgid",
    "s6-setuidgid",
    "chpst",
    "softlimit",
    "fakeroot",
    "dbus-run-session",
    "ltrace",
];

/// How the names of the dynamic loader begin, which runs the program behind it.
pub(super) const LOADERS: [&str; 3] = ["ld-linux", "ld64.so", "ld.so"];

/// Those that take more words for the command from elsewhere.
pub(super) const FEEDING: [&str; 2] = ["xargs", "parallel"];

/// Beside shells, those that take whole commands from a pipe, or may.
pub(super) const READING: [&str; 7] = ["at", "batch", "su", "ssh", "nsenter", "unshare", "chroot"];

/// What prints its words.
pub(super) const PRINTING: [&str; 2] = ["echo", "printf"];

/// Options of them whose value is a command, also where they are cut short.
pub(super) const COMMAND_OPTIONS: [&str; 4] =
    ["--command", "--session-command", "--exec", "--startas"];

/// Programs that run no other command: they print words, look at files or move them, or note what the system
/// does. And words of a shell behind which no command stands.
pub(super) const LOOKING: [&str; 48] = [
    "echo",
    "printf",
    "logger",
    "wall",
    "mail",
    "systemd-notify",
    "systemd-update-utmp",
    "journalctl",
    "last",
    "test",
    "[",
    "[[",
    "for",
    "case",
    "export",
    "set",
    "read",
    "local",
    "return",
    "grep",
    "egrep",
    "fgrep",
    "cat",
    "head",
    "tail",
    "ls",
    "stat",
    "file",
    "which",
    "type",
    "rpm",
    "auditctl",
    "sha256sum",
    "readlink",
    "realpath",
    "basename",
    "chmod",
    "chown",
    "chcon",
    "restorecon",
    "touch",
    "mkdir",
    "rm",
    "ln",
    "cp",
    "mv",
    "install",
    "true",
];

/// Those of them behind which the command stands at once, if no option does.
pub(super) const AT_ONCE: [&str; 9] =
    ["exec", "nohup", "setsid", "command", "builtin", "env", "sudo", "systemd-cat", "time"];

/// What runs the word behind its option `-c` as a command.
pub(super) const SHELLS: [&str; 7] = ["sh", "bash", "dash", "ash", "ksh", "zsh", "rbash"];

/// What stands before a command in a shell.
pub(super) const KEYWORDS: [&str; 9] =
    ["if", "then", "else", "elif", "while", "until", "do", "!", "{"];

/// Programs that end the system by what stands behind them.
pub(super) const BY_ARGUMENTS: [&str; 18] = [
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

/// Those of them whose names are hardly anything else where they stand behind another program.
pub(super) const UNMISTAKABLE: [&str; 5] =
    ["systemctl", "loginctl", "rpm-ostree", "bootc", "busctl"];
