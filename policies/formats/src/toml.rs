//! Strict TOML 1.0.

use crate::toml_scalar::{is_scalar, is_too_large};
use crate::toml_tree::{Item, Made, Section};
use crate::{Table, words};
use std::borrow::Cow;

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

/// A document in pieces of its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document<'a> {
    /// The table of everything.
    pub root: Section<'a>,
    /// From this byte on all headers start with the same key.
    pub(crate) tail: usize,
}

/// Reads a document into a tree that owns its texts.
///
/// # Errors
/// The first thing that is not TOML 1.0.
pub fn parse(bytes: &[u8]) -> Result<Table, Error> {
    Ok(read(bytes)?.root.into_table())
}

/// Reads a document.
///
/// # Errors
/// The first thing that is not TOML 1.0.
pub fn read(bytes: &[u8]) -> Result<Document<'_>, Error> {
    let bytes = without_mark(bytes);
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let line = line_at(bytes, error.valid_up_to());
            return Err(Error { line, what: "this is not UTF-8" });
        }
    };
    let mut reader = Reader { text, bytes, at: 0, depth: 0 };
    reader.document().map_err(|what| Error { line: line_at(bytes, reader.at), what })
}

/// The text without a byte order mark at its start.
pub(crate) fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

fn line_at(bytes: &[u8], at: usize) -> usize {
    bytes.iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}

pub(crate) type Result<T, E = &'static str> = std::result::Result<T, E>;

pub(crate) struct Reader<'a> {
    pub(crate) text: &'a str,
    pub(crate) bytes: &'a [u8],
    pub(crate) at: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn document(&mut self) -> Result<Document<'a>> {
        let mut root = Section::new(Made::Whole, 0);
        self.pairs(&mut root)?;
        let mut tail = (Cow::Borrowed(""), usize::MAX);
        while self.peek() == Some(b'[') {
            let start = self.at;
            self.at += 1;
            let array = self.eat(b'[');
            let mut section = &mut root;
            let mut key = self.key()?;
            if tail.1 == usize::MAX || !words::equal(&tail.0, &key) {
                tail = (key.clone(), start);
            }
            while self.eat(b'.') {
                section = section.pass(key)?;
                key = self.key()?;
            }
            if !self.eat(b']') || (array && !self.eat(b']')) {
                return Err("the header of a table does not end");
            }
            section =
                if array { section.append(key, start)? } else { section.define(key, start)? };
            self.line_end()?;
            self.pairs(section)?;
        }
        Ok(Document { root, tail: tail.1 })
    }

    /// `key = value` lines up to a header or the end.
    fn pairs(&mut self, section: &mut Section<'a>) -> Result<()> {
        loop {
            self.blank()?;
            match self.peek() {
                None | Some(b'[') => return Ok(()),
                Some(_) => self.pair(section)?,
            }
            self.line_end()?;
        }
    }

    fn pair(&mut self, mut section: &mut Section<'a>) -> Result<()> {
        let mut key = self.key()?;
        while self.eat(b'.') {
            section = section.dotted(key)?;
            key = self.key()?;
        }
        if !self.eat(b'=') {
            return Err("there is no = after the key");
        }
        self.space();
        let value = self.value()?;
        section.set(key, value)
    }

    /// A key without dots, and the space around it.
    fn key(&mut self) -> Result<Cow<'a, str>> {
        self.space();
        let start = self.at;
        let key = match self.peek() {
            Some(b'"') => self.basic()?,
            Some(b'\'') => self.literal()?,
            _ => {
                while self.peek().is_some_and(is_bare) {
                    self.at += 1;
                }
                if self.at == start {
                    return Err("a key is missing");
                }
                Cow::Borrowed(self.since(start))
            }
        };
        self.space();
        Ok(key)
    }

    fn value(&mut self) -> Result<Item<'a>> {
        match self.peek() {
            Some(b'"') => self.basic_or_long().map(Item::Text),
            Some(b'\'') => self.literal_or_long().map(Item::Text),
            Some(b'[' | b'{') if self.depth == DEPTH => Err("values are nested too deeply"),
            Some(b'[') => self.array().map(Item::List),
            Some(b'{') => self.inline_table().map(Item::Table),
            _ => self.scalar(),
        }
    }

    fn scalar(&mut self) -> Result<Item<'a>> {
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
            "true" => Ok(Item::Bool(true)),
            "false" => Ok(Item::Bool(false)),
            token if is_too_large(token) => Err("a number is too large"),
            token if is_scalar(token) => Ok(Item::Other(token)),
            "" => Err("a value is missing"),
            _ => Err("this is no value; a text needs quotes"),
        }
    }

    fn array(&mut self) -> Result<Vec<Item<'a>>> {
        self.at += 1;
        self.depth += 1;
        let mut items = Vec::new();
        loop {
            self.blank()?;
            if self.eat(b']') {
                self.depth -= 1;
                return Ok(items);
            }
            items.push(self.value()?);
            self.blank()?;
            if !self.eat(b',') && self.peek() != Some(b']') {
                return Err("an array does not end, or a comma is missing in it");
            }
        }
    }

    fn inline_table(&mut self) -> Result<Section<'a>> {
        self.at += 1;
        self.depth += 1;
        let mut section = Section::new(Made::Inline, 0);
        self.space();
        let mut more = !self.eat(b'}');
        while more {
            self.pair(&mut section)?;
            self.space();
            more = !self.eat(b'}');
            if more && !self.eat(b',') {
                return Err(
                    "an inline table does not end on its line, or a comma is missing in it",
                );
            }
        }
        self.depth -= 1;
        Ok(section)
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
            loop {
                self.at = words::plain_end(self.bytes, self.at, b'\n');
                match self.peek() {
                    None | Some(b'\n' | b'\r') => break,
                    Some(b'\\' | b'\t') => self.at += 1,
                    Some(_) => return Err("a comment holds a control character"),
                }
            }
        }
        Ok(())
    }

    pub(crate) fn space(&mut self) -> bool {
        let start = self.at;
        if let Some(b' ' | b'\t') = self.peek() {
            self.at += words::spaces(self.bytes, self.at);
            while let Some(b' ' | b'\t') = self.peek() {
                self.at += 1;
            }
        }
        self.at > start
    }

    pub(crate) fn newline(&mut self) -> bool {
        match self.peek() {
            Some(b'\n') => self.at += 1,
            Some(b'\r') if self.byte(1) == Some(b'\n') => self.at += 2,
            _ => return false,
        }
        true
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    pub(crate) fn byte(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    pub(crate) fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Bytes while `part` holds; it must not hold for bytes that are not ASCII.
    fn run(&mut self, part: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(&part) {
            self.at += 1;
        }
    }

    pub(crate) fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }
}

/// Whether a key may hold this byte without quotes.
fn is_bare(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}
