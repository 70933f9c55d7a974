//! Whether a text is for certain no regular expression as Go's `regexp` reads them.
//!
//! What stands in braces, behind a backslash and between the ends of a range is not looked at.

/// What a repetition finds before it.
enum Before {
    Nothing,
    Piece,
    Repeated,
}

/// A text that is not broken for this may be so for Go.
pub(crate) fn is_broken(text: &str) -> bool {
    // What follows the one counts literally, and the other ends a range with a bracket.
    if text.contains("\\Q") || text.contains("-[:") {
        return false;
    }
    let (mut open, mut before) = (0_usize, Before::Nothing);
    let mut rest = text.chars();
    while let Some(next) = rest.next() {
        before = match next {
            '\\' => {
                if rest.next().is_none() {
                    return true;
                }
                Before::Piece
            }
            '[' => {
                let Some(behind) = behind_class(rest.as_str()) else { return true };
                rest = behind.chars();
                Before::Piece
            }
            '(' => {
                open += 1;
                let Some(behind) = behind_start_of_group(rest.as_str()) else { return true };
                rest = behind.chars();
                Before::Nothing
            }
            ')' if open == 0 => return true,
            ')' => {
                open -= 1;
                Before::Piece
            }
            '|' => Before::Nothing,
            '*' | '+' | '?' => {
                if !matches!(before, Before::Piece) {
                    return true;
                }
                // As little as possible.
                rest = rest.as_str().strip_prefix('?').unwrap_or(rest.as_str()).chars();
                Before::Repeated
            }
            _ => Before::Piece,
        };
    }
    open > 0
}

/// What follows the `]` of a class, of which this is what follows the `[`.
fn behind_class(text: &str) -> Option<&str> {
    let text = text.strip_prefix('^').unwrap_or(text);
    // Right at the start it is a member.
    let mut rest = text.strip_prefix(']').unwrap_or(text);
    loop {
        if let Some((_, behind)) = rest.strip_prefix("[:").and_then(|it| it.split_once(":]")) {
            rest = behind;
            continue;
        }
        let mut chars = rest.chars();
        match chars.next()? {
            ']' => return Some(chars.as_str()),
            '\\' => {
                chars.next()?;
            }
            _ => {}
        }
        rest = chars.as_str();
    }
}

/// What follows the name or the flags of a group, of which this is what follows the `(`.
fn behind_start_of_group(text: &str) -> Option<&str> {
    let Some(kind) = text.strip_prefix('?') else { return Some(text) };
    if let Some(named) = kind.strip_prefix("P<").or_else(|| kind.strip_prefix('<')) {
        let (name, behind) = named.split_once('>')?;
        let is_name = |it: char| it.is_alphanumeric() || it == '_';
        return (!name.is_empty() && name.chars().all(is_name)).then_some(behind);
    }
    let flags = kind.trim_start_matches(['i', 'm', 's', 'U', '-']);
    flags.strip_prefix(':').or_else(|| flags.starts_with(')').then_some(flags))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_reader_takes_is_broken() {
        for text in [
            r"( ) (a a) (a))( [ [a [] [^] [a\] [[:alpha:] a\ * *request* +a ? a|* (*a) (?:+a)",
            r"a** a+* a*?? (?=a) (?!a) (?<=a) (?<!a) (?>a) (?#a) (?P=a) (?P<a (?<>a) (? (?i (?x:a)",
            r"(?i:a",
        ] {
            for text in text.split(' ') {
                assert!(is_broken(text), "{text}");
            }
        }
    }

    #[test]
    fn what_go_takes_is_not_broken() {
        for text in [
            r" request ^a.*b$ a|b| () (|a)* a??b*?c+? []a] [^]a]* [[] [a(] [[:alpha:](] [\]] [[:a]",
            r"[[:^space:]*+] [+-[::] \( \* \\ \Q(*\E a{2} { } {a{,2}* (?i)a (?i:a) (?i-s:a) (?)",
            r"(?:a)+ (?P<name>a) (?<name>a) ^* \d+ \p{Greek}* é* ] a(?i)*",
        ] {
            for text in text.split(' ') {
                assert!(!is_broken(text), "{text}");
            }
        }
    }
}
