//! Flow collections and scalars of YAML, which are JSON and a little more.

use crate::yaml::DEPTH;
use crate::{Table, Value};

/// A place in a text.
pub(crate) struct Cursor<'a> {
    rest: &'a str,
    /// Nothing but JSON.
    json: bool,
}

impl<'a> Cursor<'a> {
    pub(crate) fn json(text: &'a str) -> Cursor<'a> {
        Cursor { rest: text, json: true }
    }

    pub(crate) fn yaml(text: &'a str) -> Cursor<'a> {
        Cursor { rest: text, json: false }
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
            _ => {
                let text = self.bare()?;
                if self.json { json_scalar(text) } else { plain(text) }
            }
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
        let mut table = Table::new();
        loop {
            self.space();
            if self.eat("}") {
                return Some(table);
            }
            let quoted = self.json || self.rest.starts_with(['"', '\'']);
            let key = if quoted { self.quoted()? } else { plain_key(self.bare()?)? };
            self.space();
            // `{a:1}` has the key `a:1`; only a quoted key may touch its value.
            if !self.eat(":") || !(quoted || self.rest.starts_with([' ', '\n', '\t', '\r'])) {
                return None;
            }
            let value = self.value(depth + 1)?;
            if !table.add(key, value) {
                return None;
            }
            self.separator('}')?;
        }
    }

    /// A comma, or the end that follows. In JSON not both.
    fn separator(&mut self, end: char) -> Option<()> {
        self.space();
        if self.rest.starts_with(end) {
            return Some(());
        }
        if !self.eat(",") {
            return None;
        }
        self.space();
        (!self.json || !self.rest.starts_with(end)).then_some(())
    }

    /// A scalar without quotes, inside a flow collection. A colon is a part of
    /// it if something else follows that is: `host:5000`, `https://host`.
    fn bare(&mut self) -> Option<&'a str> {
        let bare = |c: char| c.is_ascii_alphanumeric() || "_-./+%".contains(c);
        let colon = |at: usize| {
            let mut rest = self.rest.get(at..).unwrap_or_default().chars();
            !self.json && rest.next() == Some(':') && rest.next().is_some_and(bare)
        };
        let ends = |(at, c): &(usize, char)| !bare(*c) && !colon(*at);
        let end = self.rest.char_indices().find(ends).map_or(self.rest.len(), |(at, _)| at);
        let (text, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest;
        (!text.is_empty()).then_some(text)
    }

    pub(crate) fn quoted(&mut self) -> Option<String> {
        let mut text = String::new();
        if !self.json && self.eat("'") {
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

    /// The escapes of JSON. YAML has more, which machines do not write, and
    /// lacks two of them.
    fn escape(&mut self) -> Option<char> {
        Some(match self.next()? {
            '"' => '"',
            '\\' => '\\',
            '/' if self.json => '/',
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
                if !self.json || !self.eat("\\u") {
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

pub(crate) fn null() -> Value {
    Value::Other("null".to_string())
}

/// A scalar of JSON without quotes.
fn json_scalar(text: &str) -> Option<Value> {
    match text {
        "null" => Some(null()),
        "true" => Some(Value::Bool(true)),
        "false" => Some(Value::Bool(false)),
        _ => is_number(text).then(|| Value::Other(text.to_string())),
    }
}

/// A plain scalar, typed as far as YAML 1.1 and 1.2 agree on its type. All else
/// stays as it is written, and so is equal to nothing but itself.
pub(crate) fn plain(text: &str) -> Option<Value> {
    const SPECIAL: &str = "&*!|<>%@`?#,]}:=";
    if text.starts_with(|c| SPECIAL.contains(c)) || text == "-" || text.starts_with("- ") {
        return None;
    }
    // `.inf` and `.nan` are no values of a configuration, and not in JSON.
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if unsigned
        .strip_prefix('.')
        .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
    {
        return None;
    }
    Some(match text {
        "" | "~" | "null" | "Null" | "NULL" => null(),
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ if is_word(text) || (text.starts_with(starts_number) && !is_surely_text(text)) => {
            Value::Other(text.to_string())
        }
        _ => Value::Text(text.to_string()),
    })
}

/// A word that some version of YAML gives a meaning to, in whatever case.
fn is_word(text: &str) -> bool {
    ["true", "false", "null", "yes", "no", "on", "off", "y", "n"]
        .iter()
        .any(|word| text.eq_ignore_ascii_case(word))
}

fn starts_number(character: char) -> bool {
    character.is_ascii_digit() || "+-.".contains(character)
}

/// A number that stays what it is between YAML, JSON and a program's types: not
/// `010`, `1e3`, `1.0` or one that is too long.
fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').map_or((digits, "1"), |parts| parts);
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    (1..=15).contains(&(text.len()))
        && text != "-0"
        && (whole == "0" || (!whole.is_empty() && !whole.starts_with('0')))
        && all_digits(whole)
        && all_digits(fraction)
        && fraction.ends_with(|c: char| ('1'..='9').contains(&c))
}

/// What starts like a number, and is a text for every reader.
fn is_surely_text(text: &str) -> bool {
    text.contains('/') || is_quantity(text) || is_address(text)
}

/// `10.0.0.1`, `10.0.0.1:5000`.
fn is_address(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (host, port) = text.split_once(':').unwrap_or((text, "0"));
    digits(port) && host.split('.').count() == 4 && host.split('.').all(digits)
}

/// `10s`, `1m30s`, `100Mi`, `10%`: digits are followed by a unit, so this is a
/// text for every reader.
fn is_quantity(text: &str) -> bool {
    const UNITS: [&str; 18] = [
        "ns", "us", "ms", "s", "m", "h", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "k", "M", "G", "T",
        "P", "%",
    ];
    let mut rest = text;
    while !rest.is_empty() {
        let number = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        if number.len() == rest.len() {
            return false;
        }
        let number = match number.strip_prefix('.') {
            Some(fraction) => {
                let end = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
                if end.len() == fraction.len() {
                    return false;
                }
                end
            }
            None => number,
        };
        match UNITS.iter().find_map(|unit| number.strip_prefix(unit)) {
            Some(after) => rest = after,
            None => return false,
        }
    }
    true
}

/// A key without quotes, if it is surely a text.
pub(crate) fn plain_key(key: &str) -> Option<String> {
    match plain(key)? {
        Value::Text(key) => Some(key),
        _ => None,
    }
}
