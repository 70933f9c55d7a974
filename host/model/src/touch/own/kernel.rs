//! Where the kernel takes commands from root, by which the system ends or sleeps, and which words of a command
//! line may lead there.

use super::expanded::{LONGEST, SPECIAL, with_plain_classes, with_stars_for_braces, words_of};
use super::systemctl::BACKTICK;
use crate::path::clean;
use std::iter;

/// The places.
const PLACES: [&str; 9] = [
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

/// What says in a text that one of them is meant.
const SIGNS: [&str; 4] = ["/sysrq", "sysrq-trigger", "/sys/power/", "/dev/watchdog"];

/// So many letters say which path is meant behind a variable that may be empty.
const FEWEST_LETTERS: usize = 4;

/// Whether a text names one of them in one piece.
pub(super) fn is_named_in(text: &str) -> bool {
    SIGNS.iter().any(|sign| text.contains(sign))
}

/// Whether a shell may make a path of a word at which the kernel takes commands.
pub(super) fn may_be_the_kernels(word: &str) -> bool {
    if !word.contains('/') {
        return false;
    }
    let word = without_variables(word);
    let begins_as_one =
        |word: &str, least: usize| paths(word).any(|path| begins_as_the_kernels(path, least));
    // All paths begin with `/`: that is enough of a word only, and not of a piece of one.
    let least = if word.starts_with('/') { 1 } else { 2 };
    if word.len() > LONGEST {
        return begins_as_one(&word, least);
    }
    let word = with_plain_classes(&word);
    let is_one = |word: &String| paths(word).any(is_the_kernels);
    match words_of(&word) {
        Some(words) => words.iter().any(is_one),
        // It is not known which: any text may stand there.
        None => match with_stars_for_braces(&word) {
            Some(starred) => is_one(&starred) || begins_as_one(&word, 2),
            None => begins_as_one(&word, least),
        },
    }
}

/// A word with a backtick in the place of each variable, as there is for what a command prints.
fn without_variables(word: &str) -> String {
    let mut out = String::with_capacity(word.len());
    let mut rest = word;
    while let Some((before, behind)) = rest.split_once('$') {
        out.push_str(before);
        out.push(BACKTICK);
        rest = behind_variable(behind);
    }
    out + rest
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

/// The paths from the root in a word, in which variables may stand before the first slash: at its begin, and
/// behind a redirection, an assignment (`of=/path`), a type (`file:/path`) or a short option. What stands
/// behind `://` is no path.
fn paths(word: &str) -> impl Iterator<Item = &str> {
    let may_begin = |text: &str| text.starts_with(['/', BACKTICK]);
    let mut rest = Some(word);
    let mut is_address = false;
    iter::from_fn(move || {
        let path = rest?;
        let behind = |at: usize| path.get(at + 1..).unwrap_or_default();
        let next = path.match_indices(['>', '<', '=', ':']).find(|(at, _)| may_begin(behind(*at)));
        let was_address = is_address;
        is_address = next.is_some_and(|(at, found)| {
            let is_file = path.get(..at).is_some_and(|before| before.ends_with("file"));
            found == ":" && behind(at).starts_with("//") && !is_file
        });
        rest = next.map(|(at, _)| behind(at));
        let path = next.and_then(|(at, _)| path.get(..at)).unwrap_or(path);
        Some(if was_address { "" } else { behind_short_option(path) })
    })
    .filter(|path| path.trim_start_matches(BACKTICK).starts_with('/'))
}

/// The value that stands in one word with a short option, as in `-o/path`; any other text stays.
fn behind_short_option(text: &str) -> &str {
    let value = text
        .strip_prefix('-')
        .and_then(|option| option.strip_prefix(|it: char| it.is_ascii_alphabetic()));
    value.unwrap_or(text)
}

/// Whether a path that is more than is looked into begins as one at which the kernel takes commands, with so
/// many bytes at least.
fn begins_as_the_kernels(path: &str, least: usize) -> bool {
    let path = path.trim_start_matches(BACKTICK);
    let end = path.find(|it| it == BACKTICK || SPECIAL.contains(&it));
    let start = end.and_then(|end| path.get(..end)).unwrap_or_default();
    start.len() >= least && PLACES.iter().any(|place| place.starts_with(start))
}

/// Whether a path without braces may be one at which the kernel takes commands.
fn is_the_kernels(path: &str) -> bool {
    let from_root = path.trim_start_matches(BACKTICK);
    let pieces: Vec<String> = from_root.split('/').map(with_stars).collect();
    let glob = clean(&pieces.join("/"));
    if glob.contains(['{', '}']) || fast_glob::validate(&*glob).is_err() {
        return false;
    }
    let letters = |text: &str| text.chars().filter(char::is_ascii_alphabetic).count();
    // All is meant, and nothing certain.
    if letters(&glob) == 0 {
        return false;
    }
    if from_root.len() < path.len() {
        // What stands before it is hardly empty, unless it says which path is meant.
        let first = glob.split('/').nth(1).unwrap_or_default();
        if letters(first) == 0 || letters(&glob) < FEWEST_LETTERS {
            return false;
        }
    }
    PLACES.iter().any(|place| fast_glob::glob_match(&*glob, place) && is_meant(&glob, place))
}

/// A part of a path with a star for all that only whoever runs the command can tell. If that is all of it,
/// it stays: it is the name of something else, as in `/proc/$PID`.
fn with_stars(part: &str) -> String {
    if part.trim_matches(BACKTICK).is_empty() {
        return part.to_owned();
    }
    let mut out = String::with_capacity(part.len());
    // Two stars that somebody wrote stand for directories, too. A variable beside a star makes none of it.
    let mut is_own = true;
    for char in part.chars() {
        match char {
            BACKTICK if out.ends_with('*') => (),
            BACKTICK => {
                out.push('*');
                is_own = false;
            }
            '*' if !is_own && out.ends_with('*') => (),
            char => {
                out.push(char);
                is_own = true;
            }
        }
    }
    out
}

/// Whether a glob that a place matches says something of its name, and does not mean all devices or all
/// that is in `/proc`.
fn is_meant(glob: &str, place: &str) -> bool {
    let Some(name) = place.strip_prefix("/dev/").or_else(|| place.strip_prefix("/proc/")) else {
        return true;
    };
    let last = glob.rsplit('/').next().unwrap_or_default();
    name.contains('/') || last.contains(|it: char| !it.is_ascii_digit() && name.contains(it))
}
