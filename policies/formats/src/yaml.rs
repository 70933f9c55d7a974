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

/// Why a text is not read. It quotes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Error {
    /// The line, counted from 1.
    pub line: usize,
    /// A part of a sentence.
    pub what: &'static str,
}

/// As [`read`], for whoever does not ask why.
pub fn parse(text: &str) -> Option<Table> {
    read(text).ok()
}

/// Reads a document whose root is a mapping, or that is empty.
///
/// # Errors
/// It is not one, or not written in the subset above.
pub fn read(text: &str) -> Result<Table, Error> {
    if let Some(line) = odd_line(text) {
        return Err(Error { line, what: "a character that not every reader of YAML takes" });
    }
    if text.trim_start_matches([' ', '\t', '\n', '\r']).starts_with('{') {
        let mut cursor = Cursor::json(text);
        let value = cursor.value(0).filter(|_| cursor.only_space());
        let what = "what starts with { has to be JSON, without a key that is there twice";
        return value.and_then(into_table).ok_or(Error { line: 1, what });
    }
    let mut lines = Lines { lines: Vec::new(), at: 0, last: 1 };
    let mut documents = 0;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_end_matches(' ');
        let content = line.trim_start_matches(' ');
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        if line == "---" && documents == 0 && lines.lines.is_empty() {
            documents = 1;
            continue;
        }
        if content.contains('\t') {
            return Err(Error { line: number, what: "a tab; YAML is indented by spaces" });
        }
        if line.starts_with('%') || line.starts_with("---") || line.starts_with("...") {
            return Err(Error { line: number, what: "more than one document, or a directive" });
        }
        lines.lines.push(Line { number, indent: line.len() - content.len(), content });
    }
    let Some(first) = lines.peek() else { return Ok(Table::new()) };
    let value = lines.block(first.indent, 0).map_err(|what| Error { line: lines.last, what })?;
    if let Some(line) = lines.peek() {
        return Err(Error { line: line.number, what: INDENTED });
    }
    into_table(value).ok_or(Error { line: first.number, what: "the whole is no mapping" })
}

const INDENTED: &str = "indented as no line above it is";
const DEEP: &str = "collections are too deep inside each other";
const KEY: &str = "no key with a colon and a space behind it, or one that readers differ on";
const VALUE: &str = "a value that is not on one line, has an anchor or a tag, or that readers \
    differ on";
const TWICE: &str = "this key is there twice";

/// The first line with a character that YAML forbids, or with an end of a line
/// but `\n` and `\r\n`: YAML 1.1 knows more of them, with which a comment
/// could end.
fn odd_line(text: &str) -> Option<usize> {
    let mut line = 1;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let plain = match character {
            '\n' => {
                line += 1;
                true
            }
            '\t' | ' '..='~' => true,
            '\r' => characters.peek() == Some(&'\n'),
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => false,
            character => character >= '\u{a0}',
        };
        if !plain {
            return Some(line);
        }
    }
    None
}

fn into_table(value: Value) -> Option<Table> {
    match value {
        Value::Table(table) => Some(table),
        _ => None,
    }
}

#[derive(Clone, Copy)]
struct Line<'a> {
    number: usize,
    indent: usize,
    content: &'a str,
}

struct Lines<'a> {
    lines: Vec<Line<'a>>,
    at: usize,
    /// The number of the line that was read last.
    last: usize,
}

type Result<T, E = &'static str> = std::result::Result<T, E>;

impl<'a> Lines<'a> {
    fn peek(&self) -> Option<Line<'a>> {
        self.lines.get(self.at).copied()
    }

    fn peek_at(&mut self, indent: usize) -> Option<&'a str> {
        let line = self.peek().filter(|line| line.indent == indent)?;
        self.last = line.number;
        Some(line.content)
    }

    /// A mapping or a sequence whose lines start at `indent`.
    fn block(&mut self, indent: usize, depth: usize) -> Result<Value> {
        if depth == DEPTH {
            return Err(DEEP);
        }
        if item(self.peek_at(indent).ok_or(INDENTED)?).is_some() {
            self.sequence(indent, depth).map(Value::List)
        } else {
            self.mapping(indent, depth).map(Value::Table)
        }
    }

    fn sequence(&mut self, indent: usize, depth: usize) -> Result<Vec<Value>> {
        let mut items = Vec::new();
        while let Some(content) = self.peek_at(indent) {
            let Some(rest) = item(content) else { break };
            let nested = item(rest).is_some() || key(rest).is_some();
            if nested {
                // A collection that starts on the line of its dash.
                let start = indent + content.len() - rest.len();
                if let Some(line) = self.lines.get_mut(self.at) {
                    *line = Line { number: line.number, indent: start, content: rest };
                }
                items.push(self.block(start, depth + 1)?);
            } else {
                self.at += 1;
                items.push(self.after(rest, indent, false, depth)?);
            }
        }
        Ok(items)
    }

    fn mapping(&mut self, indent: usize, depth: usize) -> Result<Table> {
        let mut table = Table::new();
        while let Some(content) = self.peek_at(indent) {
            if item(content).is_some() {
                break;
            }
            let (key, rest) = key(content).ok_or(KEY)?;
            if table.contains_key(&key) {
                return Err(TWICE);
            }
            self.at += 1;
            let value = self.after(rest, indent, true, depth)?;
            table.insert(key, value);
        }
        Ok(table)
    }

    /// What follows a colon or a dash: on its line, or in deeper lines.
    fn after(
        &mut self,
        rest: &str,
        indent: usize,
        in_mapping: bool,
        depth: usize,
    ) -> Result<Value> {
        if !rest.is_empty() && !rest.starts_with('#') {
            let value = scalar(rest).ok_or(VALUE)?;
            // A deeper line would go on with this scalar.
            let goes_on = self.peek().is_some_and(|next| next.indent > indent);
            return if goes_on { Err(VALUE) } else { Ok(value) };
        }
        match self.peek() {
            Some(next) if next.indent > indent => self.block(next.indent, depth + 1),
            Some(next) if in_mapping && next.indent == indent && item(next.content).is_some() => {
                self.sequence(indent, depth + 1).map(Value::List)
            }
            _ => Ok(null()),
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
        // A colon is a part of the key if no space is behind it: `host:5000:`.
        let (key, rest) = match content.split_once(": ") {
            Some((key, _)) => (key, content.get(key.len() + 1..)?),
            None => (content.strip_suffix(':')?, ""),
        };
        let bare = |c: char| c.is_ascii_alphanumeric() || "_-./:".contains(c);
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
