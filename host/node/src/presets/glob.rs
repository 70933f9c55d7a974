//! Shell patterns as fnmatch(3) has them: `*`, `?` and `[…]`, without escapes.

/// Whether a name matches a pattern from end to end.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let (mut at, mut here) = (0, 0);
    // Where to go on if what follows the last `*` does not match: it takes one more.
    let mut back: Option<(usize, usize)> = None;
    loop {
        let step = match (pattern.get(at), name.get(here)) {
            (None, None) => return true,
            (Some('*'), _) => {
                back = Some((at + 1, here));
                at += 1;
                continue;
            }
            (None, Some(_)) | (Some(_), None) => None,
            (Some('?'), Some(_)) => Some(at + 1),
            (Some('['), Some(letter)) => match class(&pattern, at + 1, *letter) {
                Some((true, next)) => Some(next),
                Some((false, _)) => None,
                None => (*letter == '[').then_some(at + 1),
            },
            (Some(wanted), Some(letter)) => (wanted == letter).then_some(at + 1),
        };
        match (step, back) {
            (Some(next), _) => (at, here) = (next, here + 1),
            (None, Some((after, taken))) if taken < name.len() => {
                (at, here) = (after, taken + 1);
                back = Some((after, taken + 1));
            }
            (None, _) => return false,
        }
    }
}

/// Whether a letter is in a class, and where the class ends; nothing if it never does:
/// then `[` stands for itself.
fn class(pattern: &[char], start: usize, letter: char) -> Option<(bool, usize)> {
    let mut at = start;
    let not = matches!(pattern.get(at), Some('!' | '^'));
    at += usize::from(not);
    let first = at;
    let mut found = false;
    loop {
        let from = *pattern.get(at)?;
        if from == ']' && at > first {
            return Some((found != not, at + 1));
        }
        if let Some((is, next)) = named(pattern, at, letter) {
            found |= is;
            at = next;
            continue;
        }
        let to = pattern.get(at + 2).filter(|it| **it != ']' && pattern.get(at + 1) == Some(&'-'));
        match to {
            Some(to) => {
                found |= (from..=*to).contains(&letter);
                at += 3;
            }
            None => {
                found |= from == letter;
                at += 1;
            }
        }
    }
}

/// Whether a letter is in a class with a name, such as `[:digit:]`, and where that ends.
fn named(pattern: &[char], at: usize, letter: char) -> Option<(bool, usize)> {
    if (pattern.get(at), pattern.get(at + 1)) != (Some(&'['), Some(&':')) {
        return None;
    }
    let name: String = pattern.iter().skip(at + 2).take_while(|it| **it != ':').collect();
    let end = at + 2 + name.len();
    if (pattern.get(end), pattern.get(end + 1)) != (Some(&':'), Some(&']')) {
        return None;
    }
    let is = match name.as_str() {
        "alnum" => letter.is_ascii_alphanumeric(),
        "alpha" => letter.is_ascii_alphabetic(),
        "digit" => letter.is_ascii_digit(),
        "lower" => letter.is_ascii_lowercase(),
        "upper" => letter.is_ascii_uppercase(),
        "punct" => letter.is_ascii_punctuation(),
        "xdigit" => letter.is_ascii_hexdigit(),
        "graph" | "print" => letter.is_ascii_graphic(),
        _ => false,
    };
    Some((is, end + 2))
}
