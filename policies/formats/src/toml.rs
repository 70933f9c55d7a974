//! Strict TOML 1.0.

use crate::toml_scalar::is_scalar;
use crate::toml_text::is_control;
use crate::{Map, Table, Value};

/// Arrays and inline tables inside each other, at most.
const DEPTH: usize = 64;

/// Why a text is not TOML.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Error {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong. It quotes nothing.
    pub what: &'static str,
}

/// Reads a document.
///
/// # Errors
/// The first thing that is not TOML 1.0.
pub fn parse(bytes: &[u8]) -> Result<Table, Error> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let line = line_at(bytes, error.valid_up_to());
            return Err(Error { line, what: "this is not UTF-8" });
        }
    };
    let mut reader = Reader { text, at: 0, depth: 0 };
    reader.document().map_err(|what| Error { line: line_at(bytes, reader.at), what })
}

fn line_at(bytes: &[u8], at: usize) -> usize {
    bytes.iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}

pub(crate) type Result<T, E = &'static str> = std::result::Result<T, E>;

/// A table under construction: it remembers how it came to be, which decides
/// who may add to it.
struct Draft {
    entries: Map<Node>,
    made: Made,
}

#[derive(Clone, Copy, PartialEq)]
enum Made {
    /// As the parent of a header; a header may still define it.
    Implied,
    /// By a header of its own.
    Header,
    /// By a dotted key; more dotted keys may add to it.
    Dotted,
}

enum Node {
    /// A value, an array or an inline table: nothing can be added.
    Closed(Value),
    Table(Draft),
    /// `[[header]]`: headers below it mean the last one.
    Tables(Vec<Draft>),
}

impl Draft {
    fn new(made: Made) -> Draft {
        Draft { entries: Map::new(), made }
    }

    fn finish(self) -> Table {
        let close = |node| match node {
            Node::Closed(value) => value,
            Node::Table(draft) => Value::Table(draft.finish()),
            Node::Tables(all) => {
                Value::List(all.into_iter().map(|draft| Value::Table(draft.finish())).collect())
            }
        };
        let mut table = Table::new();
        for (key, node) in self.entries.into_entries() {
            table.insert(key, close(node));
        }
        table
    }

    /// The table that a header on the way to another one names.
    fn pass(&mut self, key: String) -> Result<&mut Draft> {
        match self.entries.get_or_add(key, || Node::Table(Draft::new(Made::Implied))) {
            Some(Node::Table(draft)) => Ok(draft),
            Some(Node::Tables(all)) => all.last_mut().ok_or(TWICE),
            _ => Err(TWICE),
        }
    }

    /// The table that `[header]` defines.
    fn define(&mut self, key: String) -> Result<&mut Draft> {
        match self.entries.get_or_add(key, || Node::Table(Draft::new(Made::Implied))) {
            Some(Node::Table(draft)) if draft.made == Made::Implied => {
                draft.made = Made::Header;
                Ok(draft)
            }
            _ => Err(TWICE),
        }
    }

    /// The table that `[[header]]` adds.
    fn append(&mut self, key: String) -> Result<&mut Draft> {
        let node = self.entries.get_or_add(key, || Node::Tables(Vec::new()));
        let Some(Node::Tables(all)) = node else { return Err(TWICE) };
        all.push(Draft::new(Made::Header));
        all.last_mut().ok_or(TWICE)
    }

    /// Sets a key, which may be dotted.
    fn set(&mut self, mut keys: Vec<String>, value: Value) -> Result<()> {
        let Some(last) = keys.pop() else { return Err("a key is missing") };
        let mut table = self;
        for key in keys {
            let node = table.entries.get_or_add(key, || Node::Table(Draft::new(Made::Dotted)));
            table = match node {
                Some(Node::Table(draft)) if draft.made == Made::Dotted => draft,
                _ => return Err(TWICE),
            };
        }
        if table.entries.add(last, Node::Closed(value)) { Ok(()) } else { Err(TWICE) }
    }
}

const TWICE: &str = "this key is defined twice";

pub(crate) struct Reader<'a> {
    text: &'a str,
    pub(crate) at: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn document(&mut self) -> Result<Table> {
        let mut root = Draft::new(Made::Header);
        self.pairs(&mut root)?;
        while self.eat("[") {
            let array = self.eat("[");
            let mut keys = self.keys()?;
            if !self.eat(if array { "]]" } else { "]" }) {
                return Err("the header of a table does not end");
            }
            let Some(last) = keys.pop() else { return Err("a key is missing") };
            let mut table = &mut root;
            for key in keys {
                table = table.pass(key)?;
            }
            table = if array { table.append(last)? } else { table.define(last)? };
            self.line_end()?;
            self.pairs(table)?;
        }
        Ok(root.finish())
    }

    /// `key = value` lines up to a header or the end.
    fn pairs(&mut self, table: &mut Draft) -> Result<()> {
        loop {
            self.blank()?;
            match self.peek() {
                None | Some(b'[') => return Ok(()),
                Some(_) => self.pair(table)?,
            }
            self.line_end()?;
        }
    }

    fn pair(&mut self, table: &mut Draft) -> Result<()> {
        let keys = self.keys()?;
        if !self.eat("=") {
            return Err("there is no = after the key");
        }
        self.space();
        let value = self.value()?;
        table.set(keys, value)
    }

    /// A key and its dots, with the space around it.
    fn keys(&mut self) -> Result<Vec<String>> {
        let mut keys = Vec::new();
        loop {
            self.space();
            keys.push(match self.peek() {
                Some(b'"') => self.basic()?,
                Some(b'\'') => self.literal()?,
                _ => {
                    let bare = self
                        .run(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
                    if bare.is_empty() {
                        return Err("a key is missing");
                    }
                    bare.to_string()
                }
            });
            self.space();
            if !self.eat(".") {
                return Ok(keys);
            }
        }
    }

    fn value(&mut self) -> Result<Value> {
        if self.depth == DEPTH {
            return Err("values are nested too deeply");
        }
        self.depth += 1;
        let value = match self.peek() {
            Some(b'"') if self.eat("\"\"\"") => Value::Text(self.long_basic()?),
            Some(b'"') => Value::Text(self.basic()?),
            Some(b'\'') if self.eat("'''") => Value::Text(self.long_literal()?),
            Some(b'\'') => Value::Text(self.literal()?),
            Some(b'[') => Value::List(self.array()?),
            Some(b'{') => Value::Table(self.inline_table()?),
            _ => self.scalar()?,
        };
        self.depth -= 1;
        Ok(value)
    }

    fn scalar(&mut self) -> Result<Value> {
        let part = |byte: u8| byte.is_ascii_alphanumeric() || b"+-_.:".contains(&byte);
        let start = self.at;
        self.run(part);
        // The space between a date and a time.
        let is_date = self.at - start == 10 && self.since(start).as_bytes().get(4) == Some(&b'-');
        if is_date && self.peek() == Some(b' ') && self.byte(1).is_some_and(|b| b.is_ascii_digit())
        {
            self.at += 1;
            self.run(part);
        }
        match self.since(start) {
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            token if is_scalar(token) => Ok(Value::Other(token.replace('_', ""))),
            "" => Err("a value is missing"),
            _ => Err("this is no value; a text needs quotes"),
        }
    }

    fn array(&mut self) -> Result<Vec<Value>> {
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.blank()?;
            if self.eat("]") {
                return Ok(items);
            }
            items.push(self.value()?);
            self.blank()?;
            if !self.eat(",") && self.peek() != Some(b']') {
                return Err("an array does not end, or a comma is missing in it");
            }
        }
    }

    fn inline_table(&mut self) -> Result<Table> {
        self.at += 1;
        let mut table = Draft::new(Made::Header);
        self.space();
        if self.eat("}") {
            return Ok(table.finish());
        }
        loop {
            self.pair(&mut table)?;
            self.space();
            if self.eat("}") {
                return Ok(table.finish());
            }
            if !self.eat(",") {
                return Err(
                    "an inline table does not end on its line, or a comma is missing in it",
                );
            }
        }
    }

    /// Space, comments and newlines.
    fn blank(&mut self) -> Result<()> {
        loop {
            self.space();
            self.comment()?;
            if !self.newline() {
                return Ok(());
            }
        }
    }

    fn line_end(&mut self) -> Result<()> {
        self.space();
        self.comment()?;
        match self.peek() {
            None => Ok(()),
            Some(_) if self.newline() => Ok(()),
            Some(_) => Err("there is more on this line than there should be"),
        }
    }

    fn comment(&mut self) -> Result<()> {
        if self.peek() == Some(b'#') {
            self.run(|byte| !is_control(byte));
            if !matches!(self.peek(), None | Some(b'\n' | b'\r')) {
                return Err("a comment holds a control character");
            }
        }
        Ok(())
    }

    pub(crate) fn space(&mut self) -> bool {
        !self.run(|byte| byte == b' ' || byte == b'\t').is_empty()
    }

    pub(crate) fn newline(&mut self) -> bool {
        self.eat("\n") || self.eat("\r\n")
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.byte(0)
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    pub(crate) fn eat(&mut self, token: &str) -> bool {
        let found =
            self.text.as_bytes().get(self.at..).is_some_and(|b| b.starts_with(token.as_bytes()));
        if found {
            self.at += token.len();
        }
        found
    }

    /// Bytes while `part` holds; it must hold for all bytes that are not ASCII,
    /// or for none.
    pub(crate) fn run(&mut self, part: impl Fn(u8) -> bool) -> &'a str {
        let start = self.at;
        while self.peek().is_some_and(&part) {
            self.at += 1;
        }
        self.since(start)
    }

    pub(crate) fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }
}
