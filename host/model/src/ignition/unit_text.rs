//! Whether Ignition's parser of unit files takes a text. It is not systemd's:
//! it is stricter about what stands behind a section's name, a name without a
//! value and long lines, and laxer elsewhere.

/// The longest line, in bytes.
const LONGEST: usize = 2048;

/// How many bytes the buffer of its reader holds. Of a longer line it sees only what
/// is in the buffer.
const HELD: usize = 4096;

/// What is wrong with the text of a unit or of a drop-in.
pub(crate) fn fault(text: &str) -> Option<String> {
    let mut reader = Reader { text, at: 0, held: 0 };
    let (line, why) = match reader.read() {
        Ok(()) => return None,
        Err(why) => (text.get(..reader.at).unwrap_or(text).matches('\n').count() + 1, why),
    };
    let (what, way_out) = match why {
        Why::LongLine => (
            format!("line {line} has {LONGEST} bytes or more"),
            "Break it with a backslash at the end of a line",
        ),
        Why::OpenSection => {
            ("the name of its last section has no `]`".to_owned(), "Write `[NAME]`")
        }
        Why::BehindSection => (
            format!("something stands behind the section's name in line {line}"),
            "Put it into a line of its own",
        ),
        Why::NoValue => (
            format!("a line near line {line} has neither `NAME=VALUE` nor `[SECTION]`"),
            "Write a `#` in front of it if it is a comment; a backslash continues a line only at its very end",
        ),
    };
    Some(format!("Ignition rejects this text of a unit: {what}. {way_out}."))
}

enum Why {
    LongLine,
    OpenSection,
    BehindSection,
    NoValue,
}

/// What is to be read next.
#[derive(Clone, Copy)]
enum Next {
    Section,
    SectionName,
    BehindSectionName,
    SectionOrOption,
    OptionName,
    OptionValue,
    /// A comment, in a section or before the first one.
    Comment {
        in_section: bool,
    },
}

/// The text, from where it is not read yet, and how far it is held.
struct Reader<'t> {
    text: &'t str,
    at: usize,
    held: usize,
}

impl<'t> Reader<'t> {
    fn read(&mut self) -> Result<(), Why> {
        let mut next = Some(Next::Section);
        while let Some(now) = next {
            if self.held - self.at >= LONGEST {
                let line = self.text.as_bytes().get(self.at..self.at + LONGEST).unwrap_or_default();
                if memchr::memchr2(b'\n', b'\r', line).is_none() {
                    return Err(Why::LongLine);
                }
            }
            next = self.step(now)?;
        }
        Ok(())
    }

    fn step(&mut self, now: Next) -> Result<Option<Next>, Why> {
        Ok(match now {
            Next::Section => match self.character() {
                None => None,
                Some('[') => Some(Next::SectionName),
                Some('#' | ';') => Some(Next::Comment { in_section: false }),
                Some(_) => Some(Next::Section),
            },
            Next::SectionName => match self.until(b']') {
                (_, true) => Some(Next::BehindSectionName),
                (_, false) => return Err(Why::OpenSection),
            },
            Next::BehindSectionName => {
                let begun = self.at;
                if !self.line().trim().is_empty() {
                    self.at = begun;
                    return Err(Why::BehindSection);
                }
                Some(Next::SectionOrOption)
            }
            Next::SectionOrOption => match self.character() {
                None => None,
                Some(c) if c.is_whitespace() => Some(Next::SectionOrOption),
                Some('[') => Some(Next::SectionName),
                Some('#' | ';') => Some(Next::Comment { in_section: true }),
                Some(c) => {
                    self.at -= c.len_utf8();
                    Some(Next::OptionName)
                }
            },
            Next::OptionName => loop {
                match self.character() {
                    None | Some('\n' | '\r') => {
                        self.at = self.at.saturating_sub(1);
                        return Err(Why::NoValue);
                    }
                    Some('=') => break Some(Next::OptionValue),
                    Some(_) => {}
                }
            },
            Next::OptionValue => match self.line() {
                line if !line.trim().is_empty() && line.ends_with('\\') => Some(now),
                _ => Some(Next::SectionOrOption),
            },
            Next::Comment { in_section } => {
                loop {
                    let line = self.line();
                    if !line.strip_suffix(' ').unwrap_or(line).ends_with('\\') {
                        break;
                    }
                }
                Some(if in_section { Next::SectionOrOption } else { Next::Section })
            }
        })
    }

    /// Holds as much as there is room for.
    fn hold(&mut self) {
        self.held = self.text.len().min(self.at + HELD);
    }

    fn character(&mut self) -> Option<char> {
        let c = self.text.get(self.at..)?.chars().next();
        // It holds more when what it holds ends within a character.
        if self.at + c.map_or(1, char::len_utf8) > self.held {
            self.hold();
        }
        self.at += c?.len_utf8();
        c
    }

    /// What stands before the next such byte, or the end, and whether the byte
    /// is there. It goes on behind it.
    fn until(&mut self, byte: u8) -> (&'t str, bool) {
        let begun = self.at;
        let rest = self.text.as_bytes().get(begun..).unwrap_or_default();
        let found = memchr::memchr(byte, rest);
        let end = begun + found.unwrap_or(rest.len());
        self.at = end + usize::from(found.is_some());
        let mut from = begun;
        while self.held < self.at {
            // A full buffer is handed out, and the next one begins behind it.
            if self.held - from == HELD {
                from = self.held;
            }
            self.held = self.text.len().min(from + HELD);
        }
        (self.text.get(begun..end).unwrap_or_default(), found.is_some())
    }

    fn line(&mut self) -> &'t str {
        self.until(b'\n').0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_taken_as_ignition_takes_it() {
        let line = |bytes: usize| format!("[Service]\nExecStart={}\n", "x".repeat(bytes - 10));
        for text in [
            "",
            "no section, and so nothing",
            "[Unit]\nDescription=a\n\n[Service]\nExecStart=/bin/a \\\n  b\n",
            "# a comment \\\n that continues\n[Unit]\n",
            "[Unit]\n; a comment\nA=\n",
            "[Unit] \t\nA = b",
            "[a\nb]\n",
            "[Unit]\r\nA=b\r\n",
            "[Unit]\nA=b\\",
            &line(2047),
            // In a value only what stands behind the `=` counts.
            &format!("[Service]\nA=b \\\n{}\n", "x".repeat(2047)),
        ] {
            assert_eq!(fault(text), None, "{text:?}");
        }
        for (text, want) in [
            ("[Unit", "has no `]`"),
            ("[Unit]\nA=b\n[Service\n", "has no `]`"),
            ("[Unit] A=b\n", "behind the section's name in line 1"),
            ("[Unit]\n[Service]x\n", "behind the section's name in line 2"),
            ("[Unit]\nA=b\nnothing\nC=d\n", "near line 3"),
            ("[Unit]\nnothing", "near line 2"),
            ("[Unit]\nA=b \\ \nc\n", "near line 3"),
            ("[Unit]\nA=b \\\r\nc\n", "near line 3"),
            (&line(2048), "line 2 has 2048 bytes or more"),
            (&format!("#{}\n[Unit]\n", "x".repeat(3000)), "line 1 has 2048"),
        ] {
            let found = fault(text).unwrap_or_else(|| panic!("{text:?}"));
            assert!(found.contains(want), "{text:?}: {found}");
        }
    }
}
