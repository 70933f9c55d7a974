//! The four kinds of text in TOML.

use crate::toml::{Reader, Result};

const OPEN: &str = "a text does not end, or holds a control character";
const ESCAPE: &str = "there is no such escape after the backslash";

impl Reader<'_> {
    pub(crate) fn literal(&mut self) -> Result<String> {
        self.at += 1;
        let text = self.run(|byte| byte != b'\'' && !is_control(byte)).to_string();
        if self.eat("'") { Ok(text) } else { Err(OPEN) }
    }

    pub(crate) fn long_literal(&mut self) -> Result<String> {
        let _ = self.eat("\n") || self.eat("\r\n");
        let mut text = String::new();
        loop {
            text.push_str(self.run(|byte| byte != b'\'' && !is_control(byte)));
            if self.eat("'''") {
                self.extra_quotes('\'', &mut text);
                return Ok(text);
            }
            self.quote_or_newline('\'', &mut text)?;
        }
    }

    pub(crate) fn basic(&mut self) -> Result<String> {
        self.at += 1;
        let mut text = String::new();
        loop {
            text.push_str(self.run(|byte| byte != b'"' && byte != b'\\' && !is_control(byte)));
            if self.eat("\"") {
                return Ok(text);
            }
            if !self.eat("\\") {
                return Err(OPEN);
            }
            text.push(self.escape()?);
        }
    }

    pub(crate) fn long_basic(&mut self) -> Result<String> {
        let _ = self.eat("\n") || self.eat("\r\n");
        let mut text = String::new();
        loop {
            text.push_str(self.run(|byte| byte != b'"' && byte != b'\\' && !is_control(byte)));
            if self.eat("\"\"\"") {
                self.extra_quotes('"', &mut text);
                return Ok(text);
            }
            if !self.eat("\\") {
                self.quote_or_newline('"', &mut text)?;
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

    /// Up to two quotes that stand right before the closing three are text.
    fn extra_quotes(&mut self, quote: char, text: &mut String) {
        for _ in 0..2 {
            if self.peek() == Some(quote as u8) {
                self.at += 1;
                text.push(quote);
            }
        }
    }

    fn quote_or_newline(&mut self, quote: char, text: &mut String) -> Result<()> {
        if self.peek() == Some(quote as u8) {
            self.at += 1;
            text.push(quote);
            return Ok(());
        }
        if self.newline() {
            text.push('\n');
            return Ok(());
        }
        Err(OPEN)
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
        let start = self.at;
        while self.at < start + digits && self.peek().is_some_and(|b| b.is_ascii_hexdigit()) {
            self.at += 1;
        }
        if self.at != start + digits {
            return Err(ESCAPE);
        }
        let code = u32::from_str_radix(self.since(start), 16).ok();
        code.and_then(char::from_u32).ok_or(ESCAPE)
    }
}

/// Control characters, the tab excepted.
pub(crate) fn is_control(byte: u8) -> bool {
    (byte < 0x20 && byte != b'\t') || byte == 0x7f
}
