//! What a shell makes of a word with globs, with braces, and with what it puts in the place of a part.

/// What a shell makes names of files of, or several words.
pub(super) const SPECIAL: [char; 4] = ['*', '?', '[', '{'];

/// A longer word is not looked into, nor is one with more alternatives: they count as the worst that
/// they could be.
pub(super) const LONGEST: usize = 256;
const MOST_ALTERNATIVES: usize = 8;

/// Of a word that may be a path of more words than these it does not matter what stands in its braces.
const MOST_WORDS: usize = 32;

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

/// A word with `?` for each class of characters that the library does not read as a shell does, such as
/// `[[:lower:]]`.
pub(super) fn with_plain_classes(word: &str) -> String {
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
pub(super) fn words_of(word: &str) -> Option<Vec<String>> {
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
pub(super) fn with_stars_for_braces(word: &str) -> Option<String> {
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
