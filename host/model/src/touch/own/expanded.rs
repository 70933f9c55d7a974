//! What a shell makes of a word with globs, with braces, and with what it puts in the place of a part.

use super::systemctl::BACKTICK;
use crate::path::clean;

/// What a shell makes names of files of, or several words.
const SPECIAL: [char; 4] = ['*', '?', '[', '{'];

/// A longer word is not looked into, nor is one with more alternatives: they count as the worst that
/// they could be.
const LONGEST: usize = 256;
const MOST_ALTERNATIVES: usize = 8;

/// Where the kernel takes commands from root, by which the system ends or sleeps.
const KERNEL: [&str; 9] = [
    "/proc/sysrq-trigger",
    "/proc/sys/kernel/sysrq",
    "/sys/power/autosleep",
    "/sys/power/disk",
    "/sys/power/resume",
    "/sys/power/state",
    "/dev/watchdog",
    "/dev/watchdog0",
    "/dev/watchdog1",
];

/// Where the programs of a system are.
const PROGRAMS: [&str; 4] = ["/bin", "/sbin", "/usr/bin", "/usr/sbin"];

/// Whether a shell may make several words of a word, or the name of a file that it does not say.
pub(super) fn is_spread(word: &str) -> bool {
    word.contains('/') && word.contains(['*', '?', '[']) || word.contains('{') && word.contains(',')
}

/// Whether a shell may make several words of a word by its braces.
pub(super) fn has_braces(word: &str) -> bool {
    word.contains('{')
}

/// Whether a shell may make one of these programs of a word that it spreads.
pub(super) fn may_be_program<'n>(word: &str, mut names: impl Iterator<Item = &'n str>) -> bool {
    if has_braces(word) {
        // A slash may stand in them.
        let may_be_at = |place: &str, name: &str| may_be(word, &format!("{place}/{name}"));
        return names
            .any(|name| may_be(word, name) || PROGRAMS.iter().any(|it| may_be_at(it, name)));
    }
    let Some((directory, program)) = word.rsplit_once('/') else { return false };
    PROGRAMS.iter().any(|place| may_be(directory, place)) && names.any(|name| may_be(program, name))
}

/// Whether a shell may make a path of a word at which the kernel takes commands.
pub(super) fn may_be_the_kernels(word: &str) -> bool {
    // As in `>/path` and `of=/path`.
    let Some(path) = word.find('/').and_then(|at| word.get(at..)) else { return false };
    let parts: Vec<String> = path.split('/').map(with_stars).collect();
    let path = parts.join("/");
    if !path.contains(SPECIAL) {
        return false;
    }
    let path = clean(&path);
    // All devices are meant, and no certain one.
    path.trim_end_matches('*') != "/dev/" && KERNEL.iter().any(|place| may_be(&path, place))
}

/// A part of a path with a star for all that only whoever runs the command can tell. If that is all of it,
/// it stays: it is the name of something else, as in `/proc/$PID`.
fn with_stars(part: &str) -> String {
    let mut out = String::with_capacity(part.len());
    let mut rest = part;
    while let Some((before, behind)) = rest.split_once(['$', BACKTICK]) {
        let is_variable = rest.get(before.len()..).is_some_and(|it| it.starts_with('$'));
        out.push_str(before);
        out.push('*');
        rest = if is_variable { behind_variable(behind) } else { behind };
    }
    out.push_str(rest);
    let is_all = out.trim_matches('*').is_empty() && !part.contains('*');
    if is_all { part.replace('{', "") } else { out }
}

/// What follows the name of a variable, which stands behind a `$`.
fn behind_variable(text: &str) -> &str {
    if let Some(name) = text.strip_prefix('{') {
        return name.split_once('}').map_or("", |(_, behind)| behind);
    }
    let is_of_names = |it: char| it.is_ascii_alphanumeric() || it == '_';
    let behind = text.trim_start_matches(is_of_names);
    match behind.len() == text.len() {
        true => behind.strip_prefix(['$', '?', '!', '#', '*', '@', '-']).unwrap_or(behind),
        false => behind,
    }
}

/// Whether a word is this name, or a shell may make it of that.
fn may_be(word: &str, name: &str) -> bool {
    let Some(start) = word.find(SPECIAL).and_then(|at| word.get(..at)) else { return word == name };
    name.starts_with(start) && (is_beyond(word) || fast_glob::glob_match(word, name))
}

/// Whether a word is more than is looked into, or a shell reads it in another sense than the library.
fn is_beyond(word: &str) -> bool {
    word.len() > LONGEST
        || word.matches(['{', ',']).count() > MOST_ALTERNATIVES
        || ["..", "[:", "[.", "[="].iter().any(|it| word.contains(it))
        || fast_glob::validate(word).is_err()
}
