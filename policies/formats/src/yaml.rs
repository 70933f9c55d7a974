//! The YAML that machines write: block mappings and sequences, plain and
//! quoted scalars on one line, flow collections (so JSON too), comments.
//!
//! Anchors, tags, block scalars, scalars over several lines, keys that are not
//! scalars, several documents, duplicate keys, tabs, characters that some
//! readers take for the end of a line: not read at all. So nothing is ever
//! misread; at worst the whole text is not understood.
//!
//! What a text that starts with `{` says must be JSON: programs in Go read it
//! as such. Two scalars are equal only if programs that read YAML 1.1 and those
//! that read 1.2 take both for the same; a null is a value like any other.

use crate::yaml_flow::{Cursor, null, plain, plain_key};
use crate::{Table, Value};

/// Collections inside each other, at most.
pub(crate) const DEPTH: usize = 64;

/// Reads a document whose root is a mapping, or that is empty. `None`: it is
/// not one, or not written in the subset above.
pub fn parse(text: &str) -> Option<Table> {
    if !is_plain(text) {
        return None;
    }
    if text.trim_start_matches([' ', '\t', '\n', '\r']).starts_with('{') {
        let mut cursor = Cursor::json(text);
        let value = cursor.value(0)?;
        return if cursor.only_space() { into_table(value) } else { None };
    }
    if text.contains('\t') {
        return None;
    }
    let mut lines = Lines { lines: Vec::new(), at: 0 };
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_end_matches(' ');
        let content = line.trim_start_matches(' ');
        if content.is_empty() || content.starts_with('#') || (number == 0 && line == "---") {
            continue;
        }
        if line.starts_with('%') || line.starts_with("---") || line.starts_with("...") {
            return None;
        }
        lines.lines.push(Line { indent: line.len() - content.len(), content });
    }
    let Some(first) = lines.peek() else { return Some(Table::new()) };
    let value = lines.block(first.indent, 0)?;
    if lines.peek().is_some() { None } else { into_table(value) }
}

/// Whether a text has no character that YAML forbids, and no end of a line but
/// `\n` and `\r\n`: YAML 1.1 knows more of them, with which a comment could end.
fn is_plain(text: &str) -> bool {
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let plain = match character {
            '\n' | '\t' | ' '..='~' => true,
            '\r' => characters.peek() == Some(&'\n'),
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => false,
            character => character >= '\u{a0}',
        };
        if !plain {
            return false;
        }
    }
    true
}

fn into_table(value: Value) -> Option<Table> {
    match value {
        Value::Table(table) => Some(table),
        _ => None,
    }
}

#[derive(Clone, Copy)]
struct Line<'a> {
    indent: usize,
    content: &'a str,
}

struct Lines<'a> {
    lines: Vec<Line<'a>>,
    at: usize,
}

impl<'a> Lines<'a> {
    fn peek(&self) -> Option<Line<'a>> {
        self.lines.get(self.at).copied()
    }

    fn peek_at(&self, indent: usize) -> Option<&'a str> {
        self.peek().filter(|line| line.indent == indent).map(|line| line.content)
    }

    /// A mapping or a sequence whose lines start at `indent`.
    fn block(&mut self, indent: usize, depth: usize) -> Option<Value> {
        if depth == DEPTH {
            return None;
        }
        if item(self.peek_at(indent)?).is_some() {
            self.sequence(indent, depth).map(Value::List)
        } else {
            self.mapping(indent, depth).map(Value::Table)
        }
    }

    fn sequence(&mut self, indent: usize, depth: usize) -> Option<Vec<Value>> {
        let mut items = Vec::new();
        while let Some(content) = self.peek_at(indent) {
            let Some(rest) = item(content) else { break };
            let nested = item(rest).is_some() || key(rest).is_some();
            if nested {
                // A collection that starts on the line of its dash.
                let start = indent + content.len() - rest.len();
                if let Some(line) = self.lines.get_mut(self.at) {
                    *line = Line { indent: start, content: rest };
                }
                items.push(self.block(start, depth + 1)?);
            } else {
                self.at += 1;
                items.push(self.after(rest, indent, false, depth)?);
            }
        }
        Some(items)
    }

    fn mapping(&mut self, indent: usize, depth: usize) -> Option<Table> {
        let mut table = Table::new();
        while let Some(content) = self.peek_at(indent) {
            if item(content).is_some() {
                break;
            }
            let (key, rest) = key(content)?;
            self.at += 1;
            let value = self.after(rest, indent, true, depth)?;
            if !table.add(key, value) {
                return None;
            }
        }
        Some(table)
    }

    /// What follows a colon or a dash: on its line, or in deeper lines.
    fn after(
        &mut self,
        rest: &str,
        indent: usize,
        in_mapping: bool,
        depth: usize,
    ) -> Option<Value> {
        if !rest.is_empty() && !rest.starts_with('#') {
            let value = scalar(rest)?;
            // A deeper line would go on with this scalar.
            return if self.peek().is_some_and(|next| next.indent > indent) {
                None
            } else {
                Some(value)
            };
        }
        match self.peek() {
            Some(next) if next.indent > indent => self.block(next.indent, depth + 1),
            Some(next) if in_mapping && next.indent == indent && item(next.content).is_some() => {
                self.sequence(indent, depth + 1).map(Value::List)
            }
            _ => Some(null()),
        }
    }
}

/// What follows the dash of a sequence's item.
fn item(content: &str) -> Option<&str> {
    match content.strip_prefix('-')? {
        "" => Some(""),
        rest => rest.starts_with(' ').then(|| rest.trim_start_matches(' ')),
    }
}

/// A key and what follows its colon.
fn key(content: &str) -> Option<(String, &str)> {
    let (key, rest) = if content.starts_with(['"', '\'']) {
        let mut cursor = Cursor::yaml(content);
        let key = cursor.quoted()?;
        (key, cursor.rest().trim_start_matches(' ').strip_prefix(':')?)
    } else {
        let (key, rest) = content.split_once(':')?;
        let bare = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
        if !key.chars().all(bare) {
            return None;
        }
        (plain_key(key)?, rest)
    };
    match rest {
        "" => Some((key, "")),
        rest => rest.starts_with(' ').then(|| (key, rest.trim_start_matches(' '))),
    }
}

/// A scalar or a flow collection that ends on its line.
fn scalar(text: &str) -> Option<Value> {
    if text.starts_with(['"', '\'', '[', '{']) {
        let mut cursor = Cursor::yaml(text);
        let value = cursor.value(0)?;
        let rest = cursor.rest();
        let comment = rest.trim_start_matches(' ');
        let ends = comment.is_empty() || (comment.starts_with('#') && comment.len() < rest.len());
        return ends.then_some(value);
    }
    let text = text.split_once(" #").map_or(text, |(text, _)| text).trim_end_matches(' ');
    if text.contains(": ") || text.ends_with(':') { None } else { plain(text) }
}
