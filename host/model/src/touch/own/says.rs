//! What the text of a unit says of the system.

use crate::touch::ends_the_system;
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

const COMMANDS: [&str; 6] = ["reboot", "poweroff", "halt", "shutdown", "telinit", "init"];

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

/// Why touching a unit ends or isolates the system, by its text: a clause that
/// quotes no value.
pub(super) fn ends(text: &str) -> Option<String> {
    for (section, key, value) in settings(text) {
        let value = value.trim();
        let mut words = value.split_whitespace().map(|word| word.trim_matches('"'));
        if ACTIONS.contains(&key) && !matches!(value, "" | "none") {
            return Some(format!("has {key}=, by which the system ends"));
        }
        if STARTS.contains(&key) && words.clone().any(ends_the_system) {
            return Some(format!("starts what ends the system, by {key}="));
        }
        let stops = |word: &str| word.ends_with(".target") && !HARMLESS_CONFLICTS.contains(&word);
        if key == "Conflicts" && words.any(stops) {
            return Some("stops a target, by Conflicts=".to_owned());
        }
        let is_local = |word: &str| word == "local-fs.target";
        if section == "Install" && key == "RequiredBy" && value.split_whitespace().any(is_local) {
            return Some(
                "is required by local-fs.target, without which the system isolates itself"
                    .to_owned(),
            );
        }
        if key.starts_with("Exec") && runs_the_end(value) {
            return Some(format!("runs what ends the system, by {key}="));
        }
    }
    None
}

/// Whether a command line is one that ends the system, as far as it says so
/// itself: what a script does is not seen.
fn runs_the_end(line: &str) -> bool {
    let separated = line.replace(['"', '\'', '`', '(', ')', ';', '&', '|'], " \n ");
    for command in separated.split('\n') {
        let mut words = command.split_whitespace();
        let Some(first) = words.by_ref().find(|word| !word.contains('=')) else { continue };
        let mut program = base(first.trim_start_matches(['-', '@', ':', '+', '!', '|']));
        if matches!(program, "exec" | "env" | "sudo" | "nohup" | "setsid" | "timeout") {
            let skipped =
                |word: &&str| !(word.starts_with(['-', '+']) || word.parse::<f64>().is_ok());
            program = words.by_ref().find(skipped).map_or("", base);
        }
        if COMMANDS.contains(&program) {
            return true;
        }
        if program == "systemctl" {
            let rest: Vec<&str> = words.filter(|word| !word.starts_with('-')).collect();
            if rest.first().is_some_and(|verb| VERBS.contains(verb))
                || rest.iter().skip(1).any(|unit| ends_the_system(unit) && unit.contains('.'))
            {
                return true;
            }
        }
    }
    false
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The other names of a unit, by its text.
pub(super) fn aliases(text: &str) -> impl Iterator<Item = String> {
    let lines = settings(text).filter(|(section, key, _)| section == "Install" && *key == "Alias");
    lines.flat_map(|(.., value)| value.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
}

/// The settings of a unit's text as systemd reads them: section, key and value.
fn settings(text: &str) -> impl Iterator<Item = (String, &str, Cow<'_, str>)> {
    let mut lines = text.lines();
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
