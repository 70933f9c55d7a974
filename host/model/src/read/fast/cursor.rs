//! A place in a JSON text. `None` always means: not sure, read it again slowly.

use memchr::memchr2;
use std::borrow::Cow;

/// How deep parts that are skipped may be nested.
const DEPTH: u32 = 16;

/// How many bytes are looked at together.
const LANES: usize = 16;

/// How many fields an object that is skipped may have.
const FIELDS: usize = 64;

/// What is still to be read.
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Cursor { rest: bytes }
    }

    /// What is still to be read, from the next thing that is not space.
    pub(super) fn rest(&mut self) -> &'a [u8] {
        while let [b' ' | b'\n' | b'\r' | b'\t', rest @ ..] = self.rest {
            self.rest = rest;
        }
        self.rest
    }

    /// Skips so many bytes.
    pub(super) fn skip_bytes(&mut self, length: usize) -> Option<()> {
        self.rest = self.rest.get(length..)?;
        Some(())
    }

    /// The bytes that were read since `start` was what was left.
    pub(super) fn since(&self, start: &'a [u8]) -> Option<&'a [u8]> {
        start.get(..start.len().checked_sub(self.rest.len())?)
    }

    /// Nothing but space is left.
    pub(super) fn end(&mut self) -> Option<()> {
        self.rest().is_empty().then_some(())
    }

    fn next_is(&mut self, byte: u8) -> bool {
        match self.rest() {
            [first, rest @ ..] if *first == byte => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn word(&mut self, word: &[u8]) -> bool {
        match self.rest().strip_prefix(word) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// True or false.
    pub(super) fn boolean(&mut self) -> Option<bool> {
        if self.word(b"true") { Some(true) } else { self.word(b"false").then_some(false) }
    }

    /// A whole number, not below 0.
    pub(super) fn number(&mut self) -> Option<i64> {
        let rest = self.rest();
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = rest.split_at_checked(digits)?;
        let well_formed = matches!(digits, [b'0'] | [b'1'..=b'9', ..]) && digits.len() < 18;
        if !well_formed || matches!(rest, [b'.' | b'e' | b'E', ..]) {
            return None;
        }
        self.rest = rest;
        Some(digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
    }

    /// A text; it is borrowed if it has no escapes.
    pub(super) fn text(&mut self) -> Option<Cow<'a, str>> {
        let rest = self.rest().strip_prefix(b"\"")?;
        let (plain, special) = rest.split_at_checked(memchr2(b'"', b'\\', rest)?)?;
        match special {
            [b'"', rest @ ..] => {
                self.rest = rest;
                text_of(plain).map(Cow::Borrowed)
            }
            _ => self.escaped(plain, special).map(Cow::Owned),
        }
    }

    /// A text without escapes.
    fn plain_text(&mut self) -> Option<&'a str> {
        match self.text()? {
            Cow::Borrowed(text) => Some(text),
            Cow::Owned(_) => None,
        }
    }

    /// The rest of a text, from its first escape on.
    fn escaped(&mut self, mut plain: &'a [u8], mut special: &'a [u8]) -> Option<String> {
        let start = special;
        if has_control(plain) {
            return None;
        }
        // Most escapes are line ends: the text ends near the next quote.
        let mut bytes = Vec::with_capacity(plain.len() + memchr::memchr(b'"', special)?);
        loop {
            bytes.extend_from_slice(plain);
            let [b'\\', escape @ ..] = special else { break };
            special = unescape(escape, &mut bytes)?;
            (plain, special) = special.split_at_checked(memchr2(b'"', b'\\', special)?)?;
        }
        if has_control(start.get(..start.len() - special.len())?) {
            return None;
        }
        self.rest = special.strip_prefix(b"\"")?;
        String::from_utf8(bytes).ok()
    }

    /// An object with no other fields than `names`, each at most once; `read`
    /// gets the index of each that is not null.
    pub(super) fn object(
        &mut self,
        names: &[&str],
        mut read: impl FnMut(&mut Self, usize) -> Option<()>,
    ) -> Option<()> {
        let mut seen = 0u32;
        self.fields(
            |cursor| cursor.name_of(names),
            |cursor, index| {
                let bit = 1u32.checked_shl(u32::try_from(index).ok()?)?;
                if seen & bit != 0 {
                    return None;
                }
                seen |= bit;
                if cursor.word(b"null") { Some(()) } else { read(cursor, index) }
            },
        )
    }

    /// Which of these names stands here; no other text is looked for.
    fn name_of(&mut self, names: &[&str]) -> Option<usize> {
        let rest = self.rest().strip_prefix(b"\"")?;
        let index = names.iter().position(|name| {
            rest.get(name.len()) == Some(&b'"') && rest.starts_with(name.as_bytes())
        })?;
        self.rest = rest.get(names.get(index)?.len() + 1..)?;
        Some(index)
    }

    /// An object with any fields, each at most once.
    pub(super) fn any_object(
        &mut self,
        mut read: impl FnMut(&mut Self, &'a str) -> Option<()>,
    ) -> Option<()> {
        let mut seen = Vec::new();
        self.fields(Self::plain_text, |cursor, name| {
            if seen.len() == FIELDS || seen.contains(&name) {
                return None;
            }
            seen.push(name);
            read(cursor, name)
        })
    }

    fn fields<T>(
        &mut self,
        name: impl Fn(&mut Self) -> Option<T>,
        mut read: impl FnMut(&mut Self, T) -> Option<()>,
    ) -> Option<()> {
        if !self.next_is(b'{') {
            return None;
        }
        if self.next_is(b'}') {
            return Some(());
        }
        loop {
            let name = name(self)?;
            if !self.next_is(b':') {
                return None;
            }
            read(self, name)?;
            if self.next_is(b'}') {
                return Some(());
            }
            if !self.next_is(b',') {
                return None;
            }
        }
    }

    /// A list; `read` gets the index of each item.
    pub(super) fn list(
        &mut self,
        mut read: impl FnMut(&mut Self, u32) -> Option<()>,
    ) -> Option<()> {
        if !self.next_is(b'[') {
            return None;
        }
        if self.next_is(b']') {
            return Some(());
        }
        for index in 0.. {
            read(self, index)?;
            if self.next_is(b']') {
                return Some(());
            }
            if !self.next_is(b',') {
                return None;
            }
        }
        None
    }

    /// A list without items.
    pub(super) fn empty_list(&mut self) -> Option<()> {
        self.list(|_, _| None)
    }

    /// An object in which everything is null or empty.
    pub(super) fn empty_object(&mut self) -> Option<()> {
        (self.rest().first() == Some(&b'{') && self.skip()?).then_some(())
    }

    /// Any value; whether it is null or empty.
    pub(super) fn skip(&mut self) -> Option<bool> {
        self.skip_within(DEPTH)
    }

    fn skip_within(&mut self, depth: u32) -> Option<bool> {
        let depth = depth.checked_sub(1)?;
        let mut empty = true;
        match self.rest().first()? {
            b'{' => self.any_object(|cursor, _| {
                empty &= cursor.skip_within(depth)?;
                Some(())
            })?,
            b'[' => self.list(|cursor, _| {
                empty = false;
                cursor.skip_within(depth).map(|_| ())
            })?,
            b'n' => return self.word(b"null").then_some(true),
            b'"' => return self.text().map(|_| false),
            b't' | b'f' => return self.boolean().map(|_| false),
            _ => return self.number().map(|_| false),
        }
        Some(empty)
    }
}

/// The text that these bytes of a JSON string without escapes are.
fn text_of(bytes: &[u8]) -> Option<&str> {
    if has_control(bytes) {
        return None;
    }
    simdutf8::basic::from_utf8(bytes).ok()
}

/// Whether there is a byte that JSON wants escaped.
fn has_control(bytes: &[u8]) -> bool {
    let Some(last) = bytes.last_chunk::<LANES>() else {
        return bytes.iter().any(|byte| *byte < b' ');
    };
    // The least byte of each lane, without an early exit: so the compiler can look at
    // all lanes at once. The last chunk may overlap the one before.
    let mut least = *last;
    for chunk in bytes.as_chunks::<LANES>().0 {
        for (least, byte) in least.iter_mut().zip(chunk) {
            *least = (*least).min(*byte);
        }
    }
    least.iter().any(|byte| *byte < b' ')
}

/// Adds what the escape behind a backslash means, and returns what follows it.
fn unescape<'a>(escape: &'a [u8], bytes: &mut Vec<u8>) -> Option<&'a [u8]> {
    let (kind, rest) = escape.split_first()?;
    let byte = match kind {
        b'"' | b'\\' | b'/' => *kind,
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'b' => 0x08,
        b'f' => 0x0c,
        b'u' => {
            let (unit, rest) = hex(rest)?;
            // Halves of a pair are left to the slow reader.
            let c = char::from_u32(unit)?;
            bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            return Some(rest);
        }
        _ => return None,
    };
    bytes.push(byte);
    Some(rest)
}

/// The number that four hexadecimal digits are.
fn hex(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (digits, rest) = bytes.split_first_chunk::<4>()?;
    let digits = digits.iter().map(|digit| char::from(*digit).to_digit(16));
    let number = digits.reduce(|high, low| Some(high? << 4 | low?))??;
    Some((number, rest))
}
