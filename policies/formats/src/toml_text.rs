//! The four kinds of text in TOML.

use crate::toml::{Reader, Result};
use crate::words::plain_end;
use std::borrow::Cow;

const OPEN: &str = "a text does not end, or holds a control character";
const ESCAPE: &str = "there is no such escape after the backslash";

impl<'a> Reader<'a> {
    /// The text on one line whose quote was peeked.
    pub(crate) fn basic(&mut self) -> Result<Cow<'a, str>> {
        self.at += 1;
        let plain = self.plain(b'"');
        if self.eat(b'"') {
            return Ok(Cow::Borrowed(plain));
        }
        let mut text = plain.to_string();
        while !self.eat(b'"') {
            if !self.eat(b'\\') {
                return Err(OPEN);
            }
            text.push(self.escape()?);
            text.push_str(self.plain(b'"'));
        }
        Ok(Cow::Owned(text))
    }

    /// As [`Reader::basic`], with single quotes.
    pub(crate) fn literal(&mut self) -> Result<Cow<'a, str>> {
        self.at += 1;
        let text = self.plain(b'\'');
        if self.eat(b'\'') { Ok(Cow::Borrowed(text)) } else { Err(OPEN) }
    }

    pub(crate) fn basic_or_long(&mut self) -> Result<Cow<'a, str>> {
        if self.threefold(b'"') { self.long(b'"') } else { self.basic() }
    }

    pub(crate) fn literal_or_long(&mut self) -> Result<Cow<'a, str>> {
        if self.threefold(b'\'') { self.long(b'\'') } else { self.literal() }
    }

    fn threefold(&mut self, quote: u8) -> bool {
        let found = (0..3).all(|ahead| self.byte(ahead) == Some(quote));
        self.at += if found { 3 } else { 0 };
        found
    }

    /// Characters up to the quote, a newline, or what must not be there; with
    /// double quotes, up to a backslash too.
    fn plain(&mut self, quote: u8) -> &'a str {
        let start = self.at;
        loop {
            self.at = plain_end(self.bytes, self.at, quote);
            match self.peek() {
                Some(b'\t') => self.at += 1,
                Some(b'\\') if quote == b'\'' => self.at += 1,
                _ => return self.since(start),
            }
        }
    }

    /// The text behind three quotes.
    fn long(&mut self, quote: u8) -> Result<Cow<'a, str>> {
        self.newline();
        let mut text = String::new();
        loop {
            text.push_str(self.plain(quote));
            if self.threefold(quote) {
                // Up to two quotes right before the closing three are text.
                for _ in 0..2 {
                    if self.eat(quote) {
                        text.push(char::from(quote));
                    }
                }
                return Ok(Cow::Owned(text));
            }
            if self.eat(quote) {
                text.push(char::from(quote));
            } else if let Some(newline) = self.newline_as_written() {
                text.push_str(newline);
            } else if quote == b'\'' || !self.eat(b'\\') {
                return Err(OPEN);
            } else if matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
                self.space();
                if !self.newline() {
                    return Err(ESCAPE);
                }
                while self.newline() || self.space() {}
            } else {
                text.push(self.escape()?);
            }
        }
    }

    /// What reads the file may keep a carriage return, so this does too.
    fn newline_as_written(&mut self) -> Option<&'a str> {
        let start = self.at;
        self.newline().then(|| self.since(start))
    }

    fn escape(&mut self) -> Result<char> {
        let kind = self.peek().ok_or(OPEN)?;
        self.at += 1;
        Ok(match kind {
            b'b' => '\u{8}',
            b't' => '\t',
            b'n' => '\n',
            b'f' => '\u{c}',
            b'r' => '\r',
            b'"' => '"',
            b'\\' => '\\',
            b'u' => self.unicode(4)?,
            b'U' => self.unicode(8)?,
            _ => return Err(ESCAPE),
        })
    }

    fn unicode(&mut self, digits: usize) -> Result<char> {
        let mut code = 0_u32;
        for _ in 0..digits {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16)).ok_or(ESCAPE)?;
            code = code.checked_mul(16).ok_or(ESCAPE)? + digit;
            self.at += 1;
        }
        char::from_u32(code).ok_or(ESCAPE)
    }
}
