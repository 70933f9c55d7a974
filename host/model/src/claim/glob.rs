//! From the text of a glob to the elements by which a name is matched.
//!
//! The alternatives in braces are written out. Each alternative is a row of elements;
//! only the length of what a star matches is open.

use super::automaton::{ByteSet, Element};

/// No glob stands for more alternatives.
const MOST_ALTERNATIVES: usize = 16;

/// A piece of a glob.
#[derive(Clone, Copy)]
pub(super) enum Token<'g> {
    /// `**`
    Globstar,
    /// Stands for itself, or for what a glob character stands for.
    Plain(char),
    /// Stood behind a backslash, and stands for itself.
    Escaped(char),
    /// `[…]`, without the brackets.
    Class(&'g str),
}

/// The pieces of a glob whose brackets are closed.
fn tokens(glob: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::with_capacity(glob.len());
    let mut chars = glob.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        tokens.push(match c {
            '\\' => Token::Escaped(chars.next().map_or(c, |(_, c)| c)),
            '[' => {
                chars.next_if(|(_, c)| matches!(c, '^' | '!'));
                // The first character is a member, even if it is a bracket.
                let mut first = true;
                let mut end = glob.len();
                while let Some((here, member)) = chars.next() {
                    match member {
                        ']' if !first => {
                            end = here;
                            break;
                        }
                        '\\' => _ = chars.next(),
                        _ => {}
                    }
                    first = false;
                }
                Token::Class(glob.get(at + 1..end).unwrap_or_default())
            }
            '*' if chars.next_if(|(_, c)| *c == '*').is_some() => Token::Globstar,
            c => Token::Plain(c),
        });
    }
    tokens
}

/// Tokens as a glob.
pub(super) fn text(tokens: &[Token<'_>]) -> String {
    let one = |token: &Token<'_>| match token {
        Token::Globstar => "**".to_owned(),
        Token::Plain(c) => c.to_string(),
        Token::Escaped(c) => format!("\\{c}"),
        Token::Class(members) => format!("[{members}]"),
    };
    tokens.iter().map(one).collect()
}

/// What stands before the first glob character, escapes resolved, and whether
/// there is one.
pub(super) fn start_of(name: &str) -> Result<(String, bool), String> {
    let mut start = String::new();
    let mut is_glob = false;
    for token in tokens(name) {
        match token {
            // The library with which policies match reads a letter behind a backslash
            // as a control character, and a character of several bytes as several.
            Token::Escaped(c) if !c.is_ascii_punctuation() => {
                return Err(format!("{name:?}: a backslash stands only before a glob character"));
            }
            Token::Class(members) => {
                check_class(name, members)?;
                is_glob = true;
            }
            Token::Globstar | Token::Plain('*' | '?' | '{') => is_glob = true,
            Token::Plain(c) | Token::Escaped(c) if !is_glob => start.push(c),
            Token::Plain(_) | Token::Escaped(_) => {}
        }
    }
    Ok((start, is_glob))
}

fn check_class(name: &str, members: &str) -> Result<(), String> {
    let mut chars = members.chars();
    while let Some(member) = chars.next() {
        let fine = match member {
            '\\' => chars.next().is_some_and(|c| c.is_ascii_punctuation()),
            member => member.is_ascii(),
        };
        if !fine {
            return Err(format!("{name:?}: only ASCII characters can stand in []"));
        }
    }
    Ok(())
}

/// The globs without braces that a glob stands for.
pub(super) fn written_out(name: &str) -> Result<Vec<Vec<Token<'_>>>, String> {
    let tokens = tokens(name);
    if alternatives(&tokens) > MOST_ALTERNATIVES {
        return Err(format!(
            "{name:?} stands for more than {MOST_ALTERNATIVES} alternatives: write several patterns"
        ));
    }
    if !(0..tokens.len()).all(|at| is_plain_globstar(&tokens, at)) {
        return Err(not_alone(name));
    }
    Ok(sequence(&mut tokens.into_iter().peekable(), false))
}

fn not_alone(glob: &str) -> String {
    format!("{glob:?}: ** stands alone between slashes, as in /etc/**/*.conf")
}

/// Whether the library with which policies match reads this `**` as a globstar too. In
/// front of it the library looks no further than the beginning of its alternative;
/// behind it, beyond the end of the braces.
fn is_plain_globstar(tokens: &[Token<'_>], at: usize) -> bool {
    let Some(Token::Globstar) = tokens.get(at) else { return true };
    let before = at.checked_sub(1).and_then(|before| tokens.get(before));
    if !matches!(before, None | Some(Token::Plain('/' | '{' | ',') | Token::Escaped('/'))) {
        return false;
    }
    let mut depth = 0usize;
    for token in tokens.iter().skip(at + 1) {
        match (token, depth) {
            (Token::Plain('/'), 0) => return true,
            // The other alternatives of the group do not follow this one: they are
            // skipped.
            (Token::Plain(','), 0) => depth = 1,
            (Token::Plain('}'), 0) => {}
            (_, 0) => return false,
            (Token::Plain('{'), _) => depth += 1,
            (Token::Plain('}'), _) => depth -= 1,
            _ => {}
        }
    }
    true
}

/// Of groups within groups this counts too many, never too few.
fn alternatives(tokens: &[Token<'_>]) -> usize {
    let mut alternatives = 1usize;
    let mut open: Vec<usize> = Vec::new();
    for token in tokens {
        match token {
            Token::Plain('{') => open.push(1),
            Token::Plain(',') => {
                if let Some(group) = open.last_mut() {
                    *group += 1;
                }
            }
            Token::Plain('}') => {
                alternatives = alternatives.saturating_mul(open.pop().unwrap_or(1));
            }
            _ => {}
        }
    }
    alternatives
}

type Tokens<'g> = std::iter::Peekable<std::vec::IntoIter<Token<'g>>>;

/// Writes out what follows, up to the end of the alternative that it is inside
/// of. Braces are nested ten deep at most, which the check of the whole glob sees to.
fn sequence<'g>(tokens: &mut Tokens<'g>, inside: bool) -> Vec<Vec<Token<'g>>> {
    let mut written = vec![Vec::new()];
    while let Some(token) =
        tokens.next_if(|token| !(inside && matches!(token, Token::Plain('}' | ','))))
    {
        if let Token::Plain('{') = token {
            let mut options = sequence(tokens, true);
            while matches!(tokens.next(), Some(Token::Plain(','))) {
                options.append(&mut sequence(tokens, true));
            }
            let longer = |so_far: &Vec<Token<'g>>| {
                let join = |option: &Vec<Token<'g>>| [so_far.as_slice(), option].concat();
                options.iter().map(join).collect::<Vec<_>>()
            };
            written = written.iter().flat_map(longer).collect();
        } else {
            written.iter_mut().for_each(|so_far| so_far.push(token));
        }
    }
    written
}

/// The elements of a glob without braces, of which a literal of `skip` bytes that
/// it begins with is left out.
pub(super) fn elements(glob: &[Token<'_>], skip: usize) -> Result<Vec<Element>, String> {
    let mut elements = Vec::with_capacity(glob.len());
    let mut left = skip;
    let mut rest = glob;
    let mut starts_part = true;
    while let Some((token, after)) = rest.split_first() {
        rest = after;
        let is_start = std::mem::replace(&mut starts_part, false);
        match token {
            Token::Globstar => match rest {
                [] if is_start => elements.push(Element::Rest),
                [Token::Plain('/'), after @ ..] if is_start => {
                    if elements.last() != Some(&Element::Parts) {
                        elements.push(Element::Parts);
                    }
                    (rest, starts_part) = (after, true);
                }
                // Elsewhere `**` matches no more than `*`, but looks like more: it is
                // refused.
                _ => {
                    return Err(not_alone(&text(glob)));
                }
            },
            // Where braces are written out, two stars may come to stand side by side:
            // they are one.
            Token::Plain('*') if elements.last() == Some(&Element::Star) => {}
            Token::Plain('*') => elements.push(Element::Star),
            Token::Plain('?') => elements.push(Element::One(ByteSet::all_but_slash())),
            Token::Class(members) => elements.push(Element::One(class(members))),
            Token::Plain(c) | Token::Escaped(c) => {
                starts_part = *c == '/';
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    match left.checked_sub(1) {
                        Some(fewer) => left = fewer,
                        None => elements.push(Element::One(ByteSet::only(byte))),
                    }
                }
            }
        }
    }
    elements.push(Element::End);
    Ok(elements)
}

/// What a class takes; never a slash.
fn class(members: &str) -> ByteSet {
    let negated = members.starts_with(['^', '!']);
    let members = if negated { members.get(1..).unwrap_or_default() } else { members };
    let mut bytes = members.bytes().peekable();
    let mut set = ByteSet::default();
    // What stands behind a backslash stands for itself.
    let member = |bytes: &mut std::iter::Peekable<std::str::Bytes<'_>>| match bytes.next() {
        Some(b'\\') => bytes.next(),
        other => other,
    };
    while let Some(low) = member(&mut bytes) {
        // A dash at the end is a member.
        let mut ahead = bytes.clone();
        let high = match (ahead.next(), ahead.peek()) {
            (Some(b'-'), Some(_)) => {
                bytes = ahead;
                member(&mut bytes).unwrap_or(low)
            }
            _ => low,
        };
        (low..=high).for_each(|byte| set.add(byte));
    }
    let mut set = if negated { set.inverted() } else { set };
    set.remove(b'/');
    set
}
