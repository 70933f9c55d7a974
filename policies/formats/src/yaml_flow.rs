//! Flow collections and scalars of YAML, which are JSON and a little more.

use crate::yaml::{DEPTH, is_null, null};
use crate::{Table, Value};

/// A place in a text.
pub(crate) struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Cursor<'a> {
        Cursor { rest: text }
    }

    /// What has not been read.
    pub(crate) fn rest(&self) -> &'a str {
        self.rest
    }

    /// Whether nothing but space is left.
    pub(crate) fn only_space(&mut self) -> bool {
        self.space();
        self.rest.is_empty()
    }

    pub(crate) fn value(&mut self, depth: usize) -> Option<Value> {
        if depth == DEPTH {
            return None;
        }
        self.space();
        match self.rest.chars().next()? {
            '"' | '\'' => self.quoted().map(Value::Text),
            '[' => self.list(depth).map(Value::List),
            '{' => self.table(depth).map(Value::Table),
            _ => plain(self.bare()?),
        }
    }

    fn list(&mut self, depth: usize) -> Option<Vec<Value>> {
        self.eat("[");
        let mut items = Vec::new();
        loop {
            self.space();
            if self.eat("]") {
                return Some(items);
            }
            items.push(self.value(depth + 1)?);
            self.separator(']')?;
        }
    }

    fn table(&mut self, depth: usize) -> Option<Table> {
        self.eat("{");
        let mut seen = Vec::new();
        let mut table = Table::new();
        loop {
            self.space();
            if self.eat("}") {
                return Some(table);
            }
            let quoted = self.rest.starts_with(['"', '\'']);
            let key = if quoted { self.quoted()? } else { plain_key(self.bare()?)? };
            self.space();
            // `{a:1}` has the key `a:1`; only a quoted key may touch its value.
            if !self.eat(":") || !(quoted || self.rest.starts_with([' ', '\n', '\t', '\r'])) {
                return None;
            }
            let value = self.value(depth + 1)?;
            if table.contains_key(&key) || seen.contains(&key) {
                return None;
            }
            if is_null(&value) {
                seen.push(key);
            } else {
                table.insert(key, value);
            }
            self.separator('}')?;
        }
    }

    /// A comma, or the end that follows.
    fn separator(&mut self, end: char) -> Option<()> {
        self.space();
        (self.eat(",") || self.rest.starts_with(end)).then_some(())
    }

    /// A scalar without quotes, inside a flow collection.
    fn bare(&mut self) -> Option<&'a str> {
        let bare = |c: char| c.is_ascii_alphanumeric() || "_-./+%".contains(c);
        let end = self.rest.find(|c| !bare(c)).unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest;
        (!text.is_empty()).then_some(text)
    }

    pub(crate) fn quoted(&mut self) -> Option<String> {
        let mut text = String::new();
        if self.eat("'") {
            loop {
                let (part, rest) = self.rest.split_once('\'')?;
                self.rest = rest;
                if part.contains(['\n', '\r']) {
                    return None;
                }
                text.push_str(part);
                if !self.eat("'") {
                    return Some(text);
                }
                text.push('\'');
            }
        }
        if !self.eat("\"") {
            return None;
        }
        loop {
            let character = self.next()?;
            match character {
                '"' => return Some(text),
                '\\' => text.push(self.escape()?),
                // A line break is folded into a space: not read.
                character if (character as u32) < 0x20 => return None,
                character => text.push(character),
            }
        }
    }

    /// The escapes of JSON. YAML has more, which machines do not write.
    fn escape(&mut self) -> Option<char> {
        Some(match self.next()? {
            '"' => '"',
            '\\' => '\\',
            '/' => '/',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let first = self.unit()?;
                if !(0xd800..0xdc00).contains(&first) {
                    return char::from_u32(first);
                }
                // The first half of a pair, so the second must follow.
                if !self.eat("\\u") {
                    return None;
                }
                let second = self.unit()?.checked_sub(0xdc00).filter(|half| *half < 0x400)?;
                char::from_u32(0x10000 + ((first - 0xd800) << 10) + second)?
            }
            _ => return None,
        })
    }

    /// Four hexadecimal digits.
    fn unit(&mut self) -> Option<u32> {
        let (digits, rest) = self.rest.split_at_checked(4)?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        self.rest = rest;
        u32::from_str_radix(digits, 16).ok()
    }

    fn next(&mut self) -> Option<char> {
        let character = self.rest.chars().next()?;
        self.eat_char(character);
        Some(character)
    }

    fn eat_char(&mut self, character: char) {
        self.rest = self.rest.strip_prefix(character).unwrap_or(self.rest);
    }

    fn eat(&mut self, token: &str) -> bool {
        let rest = self.rest.strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }
}

/// A plain scalar, typed as far as YAML 1.1 and 1.2 may give it a type: what
/// only one of them takes for a string stays as it is written.
pub(crate) fn plain(text: &str) -> Option<Value> {
    const SPECIAL: &str = "&*!|>%@`?#,]}:";
    if text.starts_with(|c| SPECIAL.contains(c)) || text == "-" || text.starts_with("- ") {
        return None;
    }
    let lower = text.to_ascii_lowercase();
    Some(match lower.as_str() {
        "" | "~" | "null" => null(),
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        "yes" | "no" | "on" | "off" | "y" | "n" => Value::Other(lower),
        _ if text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c))
            && text.bytes().all(|b| b.is_ascii_hexdigit() || b"+-._:xoXOinINT".contains(&b)) =>
        {
            Value::Other(text.to_string())
        }
        _ => Value::Text(text.to_string()),
    })
}

/// A key without quotes, if it is surely a text.
pub(crate) fn plain_key(key: &str) -> Option<String> {
    match plain(key)? {
        Value::Text(key) => Some(key),
        _ => None,
    }
}
