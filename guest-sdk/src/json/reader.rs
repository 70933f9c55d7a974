//! The grammar of JSON (RFC 8259), strictly.

use super::Error;
use std::borrow::Cow;

/// No value lies deeper: a policy's stack is small.
const DEEPEST: usize = 64;

/// What a value is, or begins with.
pub(super) enum Token<'de> {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    /// A number that is no whole one, or too large for one.
    Fraction(&'de str),
    Text(Cow<'de, str>),
    Array,
    Object,
}

/// A place in a text.
pub(super) struct Reader<'de> {
    text: &'de str,
    at: usize,
    depth: usize,
}

impl<'de> Reader<'de> {
    pub(super) fn new(text: &'de str) -> Reader<'de> {
        Reader { text, at: 0, depth: 0 }
    }

    /// The next byte that is no white space.
    pub(super) fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.byte() {
            self.at += 1;
        }
        self.byte()
    }

    /// Goes on behind the byte that was peeked.
    pub(super) fn step(&mut self) {
        self.at += 1;
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The value that comes, or its first bracket, which stays. Not inlined,
    /// like all that does not depend on the type that is read: it would be
    /// there once for each.
    #[inline(never)]
    pub(super) fn token(&mut self) -> Result<Token<'de>, Error> {
        Ok(match self.peek() {
            Some(b'"') => Token::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => {
                let number = self.number()?;
                if let Ok(number) = number.parse() {
                    Token::Unsigned(number)
                } else if let Ok(number) = number.parse() {
                    Token::Signed(number)
                } else {
                    Token::Fraction(number)
                }
            }
            Some(b't') => self.literal("true").map(|()| Token::Bool(true))?,
            Some(b'f') => self.literal("false").map(|()| Token::Bool(false))?,
            Some(b'n') => self.literal("null").map(|()| Token::Null)?,
            Some(b'[') => Token::Array,
            Some(b'{') => Token::Object,
            _ => return Err(self.fault("no JSON value")),
        })
    }

    #[cold]
    #[inline(never)]
    pub(super) fn fault(&self, what: &str) -> Error {
        Error::at(self.text, self.at, what)
    }

    /// Nothing but white space may follow.
    pub(super) fn end(&mut self) -> Result<(), Error> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.fault("something behind the JSON value")),
        }
    }

    /// Whether there is another element before `close`, which is taken.
    #[inline(never)]
    pub(super) fn another(&mut self, close: u8, first: &mut bool) -> Result<bool, Error> {
        let next = self.peek();
        if next == Some(close) {
            self.step();
            return Ok(false);
        }
        if !std::mem::replace(first, false) {
            if next != Some(b',') {
                return Err(self.fault("no comma"));
            }
            self.step();
            if self.peek() == Some(close) {
                return Err(self.fault("no JSON value"));
            }
        }
        Ok(true)
    }

    /// The name of a field, and the colon behind it.
    #[inline(never)]
    pub(super) fn key(&mut self) -> Result<Cow<'de, str>, Error> {
        if self.peek() != Some(b'"') {
            return Err(self.fault("no name of a field"));
        }
        let key = self.string()?;
        self.colon()?;
        Ok(key)
    }

    pub(super) fn colon(&mut self) -> Result<(), Error> {
        if self.peek() != Some(b':') {
            return Err(self.fault("no colon"));
        }
        self.step();
        Ok(())
    }

    /// Goes behind the bracket that was peeked, one level deeper.
    #[inline(never)]
    pub(super) fn enter(&mut self) -> Result<(), Error> {
        if self.depth == DEEPEST {
            return Err(self.fault("too many values inside one another"));
        }
        self.depth += 1;
        self.step();
        Ok(())
    }

    /// Back up, behind the closing bracket.
    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    pub(super) fn literal(&mut self, word: &str) -> Result<(), Error> {
        if !self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            return Err(self.fault("no JSON value"));
        }
        self.at += word.len();
        Ok(())
    }

    /// The text of a number.
    #[inline(never)]
    pub(super) fn number(&mut self) -> Result<&'de str, Error> {
        let start = self.at;
        if self.byte() == Some(b'-') {
            self.step();
        }
        match self.byte() {
            Some(b'0') => self.step(),
            _ => self.digits()?,
        }
        if self.byte() == Some(b'.') {
            self.step();
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.byte() {
            self.step();
            if let Some(b'+' | b'-') = self.byte() {
                self.step();
            }
            self.digits()?;
        }
        Ok(self.text.get(start..self.at).unwrap_or_default())
    }

    /// One digit at least.
    fn digits(&mut self) -> Result<(), Error> {
        let start = self.at;
        while self.byte().is_some_and(|byte| byte.is_ascii_digit()) {
            self.step();
        }
        if start == self.at { Err(self.fault("no digit")) } else { Ok(()) }
    }

    /// The string whose quote was peeked.
    #[inline(never)]
    pub(super) fn string(&mut self) -> Result<Cow<'de, str>, Error> {
        self.step();
        let plain = self.plain()?;
        if self.byte() == Some(b'"') {
            self.step();
            return Ok(Cow::Borrowed(plain));
        }
        let mut text = plain.to_string();
        loop {
            // A quote or a backslash: `plain` stops at nothing else.
            let quote = self.byte() == Some(b'"');
            self.step();
            if quote {
                return Ok(Cow::Owned(text));
            }
            text.push(self.escape()?);
            text.push_str(self.plain()?);
        }
    }

    /// The characters up to a quote or a backslash.
    fn plain(&mut self) -> Result<&'de str, Error> {
        let start = self.at;
        loop {
            match self.byte() {
                Some(b'"' | b'\\') => break,
                None => return Err(self.fault("no end of the string")),
                Some(0..0x20) => return Err(self.fault("a control character in a string")),
                Some(_) => self.step(),
            }
        }
        Ok(self.text.get(start..self.at).unwrap_or_default())
    }

    /// What stands behind a backslash.
    fn escape(&mut self) -> Result<char, Error> {
        let escape = self.byte();
        self.step();
        Ok(match escape {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            _ => return Err(self.fault("no such escape in a string")),
        })
    }

    fn unicode(&mut self) -> Result<char, Error> {
        let first = self.hex()?;
        let code = match first {
            0xd800..0xdc00 => {
                self.literal("\\u").map_err(|_| self.fault("half a character in a string"))?;
                let second = self.hex()?;
                if !(0xdc00..0xe000).contains(&second) {
                    return Err(self.fault("half a character in a string"));
                }
                0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)
            }
            code => code,
        };
        char::from_u32(code).ok_or_else(|| self.fault("half a character in a string"))
    }

    /// Four hexadecimal digits.
    fn hex(&mut self) -> Result<u32, Error> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.byte().and_then(|byte| char::from(byte).to_digit(16));
            code = code * 16 + digit.ok_or_else(|| self.fault("no hexadecimal digit"))?;
            self.step();
        }
        Ok(code)
    }

    /// Reads over one value.
    #[inline(never)]
    pub(super) fn skip(&mut self) -> Result<(), Error> {
        match self.token()? {
            Token::Array => {
                self.enter()?;
                let mut first = true;
                while self.another(b']', &mut first)? {
                    self.skip()?;
                }
                self.leave();
            }
            Token::Object => {
                self.enter()?;
                let mut first = true;
                while self.another(b'}', &mut first)? {
                    self.key()?;
                    self.skip()?;
                }
                self.leave();
            }
            _ => {}
        }
        Ok(())
    }

    /// The text of one value.
    #[inline(never)]
    pub(super) fn piece(&mut self) -> Result<&'de str, Error> {
        self.peek();
        let start = self.at;
        self.skip()?;
        Ok(self.text.get(start..self.at).unwrap_or_default())
    }
}
