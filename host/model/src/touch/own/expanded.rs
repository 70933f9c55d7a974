//! What a shell makes of a word with globs, with braces, and with what it puts in the place of a part.

use std::iter;

use super::systemctl::BACKTICK;
use crate::path::clean;

/// What a shell makes names of files of, or several words.
const SPECIAL: [char; 4] = ['*', '?', '[', '{'];

/// A longer word is not looked into, nor is one with more alternatives: they count as the worst that
/// they could be.
const LONGEST: usize = 256;
const MOST_ALTERNATIVES: usize = 8;

/// Of a word that may be a path of more words than these it does not matter what stands in its braces.
const MOST_WORDS: usize = 32;

/// So many letters say which path is meant behind a variable that may be empty.
const FEWEST_LETTERS: usize = 4;

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

/// A word with `?` for each class of characters that the library does not read as a shell does, such as
/// `[[:lower:]]`.
fn with_plain_classes(word: &str) -> String {
    let mut out = String::with_capacity(word.len());
    let mut rest = word;
    while let Some((before, behind)) = rest.split_once('[') {
        out.push_str(before);
        let class = end_of_class(behind).and_then(|end| behind.split_at_checked(end));
        let Some((class, behind_it)) = class else {
            out.push('[');
            rest = behind;
            continue;
        };
        rest = behind_it.strip_prefix(']').unwrap_or(behind_it);
        match class.contains(['[', ']']) {
            true => out.push('?'),
            false => out.extend(["[", class, "]"]),
        }
    }
    out + rest
}

/// Where a class ends that begins before a text. None: it is none.
fn end_of_class(text: &str) -> Option<usize> {
    let negated = usize::from(text.starts_with(['!', '^']));
    let mut at = negated + usize::from(text.get(negated..)?.starts_with(']'));
    loop {
        let rest = text.get(at..)?;
        at += rest.find(['[', ']', '/'])?;
        let rest = text.get(at..)?;
        if rest.starts_with(']') {
            return Some(at);
        }
        if rest.starts_with('/') {
            return None;
        }
        let ends = [("[:", ":]"), ("[.", ".]"), ("[=", "=]")];
        let inner = ends.iter().find(|(begin, _)| rest.starts_with(begin));
        let end = inner.and_then(|(_, end)| rest.get(2..)?.find(end));
        at += end.map_or(1, |end| 2 + end + 2);
    }
}

/// The words that a shell makes of one with braces, with a star for a sequence (`{1..9}`). None: they are too
/// many.
fn words_of(word: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut open = vec![word.to_owned()];
    while let Some(word) = open.pop() {
        match innermost(&word, |inner| inner.contains(',') || inner.contains("..")) {
            None => words.push(word),
            Some((before, inner, behind)) if inner.contains(',') => {
                open.extend(inner.split(',').map(|it| format!("{before}{it}{behind}")));
            }
            Some((before, _, behind)) => open.push(format!("{before}*{behind}")),
        }
        if words.len() + open.len() > MOST_WORDS {
            return None;
        }
    }
    Some(words)
}

/// A word with a star for all braces. None: a slash stands in them.
fn with_stars_for_braces(word: &str) -> Option<String> {
    let mut word = word.to_owned();
    while let Some((before, inner, behind)) = innermost(&word, |_| true) {
        if inner.contains('/') {
            return None;
        }
        word = format!("{before}*{behind}");
    }
    Some(word)
}

/// What stands before, in and behind the first braces without others of this sort in them.
fn innermost(word: &str, is_meant: impl Fn(&str) -> bool) -> Option<(&str, &str, &str)> {
    let mut begins = Vec::new();
    for (at, char) in word.char_indices() {
        match char {
            '{' => begins.push(at),
            '}' => {
                let Some(begin) = begins.pop() else { continue };
                let inner = word.get(begin + 1..at)?;
                if is_meant(inner) {
                    return Some((word.get(..begin)?, inner, word.get(at + 1..)?));
                }
            }
            _ => (),
        }
    }
    None
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
    start.len() >= least && KERNEL.iter().any(|place| place.starts_with(start))
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
    KERNEL.iter().any(|place| fast_glob::glob_match(&*glob, place) && is_meant(&glob, place))
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
