//! How output for a person may look: colours, width, and which characters the
//! terminal knows.

use std::fmt;
use std::io::{self, IsTerminal as _};

/// How it may look.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    /// Whether colours are welcome.
    pub(crate) colours: bool,
    /// Whether what is inside files may be shown (law 10).
    pub(crate) contents: bool,
    /// The columns that a line of text may take.
    pub(crate) width: usize,
    /// Whether the terminal knows only ASCII.
    pub(crate) ascii: bool,
}

/// Where lines are easy to read, on a terminal that would take longer ones too.
const WIDEST: usize = 100;
/// What is narrower wraps on its own.
const NARROWEST: usize = 40;

impl Look {
    /// What standard output takes; `contents` says whether contents may be
    /// shown if that is a terminal, and if it is not.
    pub(crate) fn of_stdout(contents: impl Fn(bool) -> bool) -> Look {
        let terminal = io::stdout().is_terminal();
        let columns = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| width.0);
        let variable = |name: &str| std::env::var(name).ok();
        Look {
            colours: terminal && std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty()),
            contents: contents(terminal),
            width: columns.map_or(WIDEST, |it| usize::from(it).clamp(NARROWEST, WIDEST)),
            ascii: terminal && is_ascii_only(variable),
        }
    }

    pub(crate) fn paint(self, colour: Colour, text: impl fmt::Display) -> String {
        let code = match colour {
            Colour::Red => "31",
            Colour::Green => "32",
            Colour::Yellow => "33",
            Colour::Bold => "1",
            Colour::Dim => "2",
        };
        if self.colours { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }

    /// A text as lines: the first one after `first`, those after it after as
    /// many blanks.
    pub(crate) fn wrap(self, first: &str, text: &str) -> Vec<String> {
        let indent = " ".repeat(first.chars().count());
        let mut lines: Vec<String> = Vec::new();
        let mut line = first.to_owned();
        let mut empty = true;
        for word in text.split_whitespace() {
            if !empty && line.chars().count() + 1 + word.chars().count() > self.width {
                lines.push(std::mem::replace(&mut line, indent.clone()));
                empty = true;
            }
            if !empty {
                line.push(' ');
            }
            line.push_str(word);
            empty = false;
        }
        if !empty {
            lines.push(line);
        }
        lines
    }

    /// The text in characters that the terminal knows.
    pub(crate) fn spelled(self, text: String) -> String {
        if !self.ascii || text.is_ascii() {
            return text;
        }
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                '−' | '–' => out.push('-'),
                '→' => out.push_str("->"),
                '…' => out.push_str("..."),
                c if c.is_ascii() => out.push(c),
                _ => out.push('?'),
            }
        }
        out
    }
}

/// What the locale says of a terminal: the first of these variables that is set
/// decides, and where none is, nothing is known against it.
fn is_ascii_only(variable: impl Fn(&str) -> Option<String>) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| variable(name).filter(|value| !value.is_empty()));
    locale.is_some_and(|locale| {
        let locale = locale.to_ascii_lowercase();
        !locale.contains("utf-8") && !locale.contains("utf8")
    })
}

/// The colours that mean something.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Colour {
    /// A reboot, a refusal, something that goes.
    Red,
    /// Nothing to fear, something that comes.
    Green,
    /// Something that changes.
    Yellow,
    /// What to read first.
    Bold,
    /// What to read last.
    Dim,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(width: usize, ascii: bool) -> Look {
        Look { colours: false, contents: false, width, ascii }
    }

    #[test]
    fn lines_keep_to_the_width_and_to_their_indent_and_long_words_stay_whole() {
        let wrapped = look(12, false).wrap("  - ", "one two three /a/very/long/path four");
        assert_eq!(wrapped, ["  - one two", "    three", "    /a/very/long/path", "    four"]);
        assert!(look(12, false).wrap("  ", " \n ").is_empty());
    }

    #[test]
    fn a_terminal_that_knows_only_ascii_gets_nothing_else() {
        let text = "+1 −0 lines → … ü".to_owned();
        assert_eq!(look(80, true).spelled(text.clone()), "+1 -0 lines -> ... ?");
        assert_eq!(look(80, false).spelled(text.clone()), text);
    }

    #[test]
    fn the_locale_decides_what_the_terminal_knows_by_its_first_variable() {
        let with = |pairs: &'static [(&str, &str)]| {
            is_ascii_only(move |name| {
                pairs.iter().find(|(it, _)| *it == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert!(!with(&[]));
        assert!(!with(&[("LANG", "en_US.UTF-8")]));
        assert!(!with(&[("LANG", "C.utf8")]));
        assert!(with(&[("LANG", "C")]));
        assert!(with(&[("LC_ALL", "POSIX"), ("LANG", "en_US.UTF-8")]));
        assert!(!with(&[("LC_ALL", ""), ("LC_CTYPE", "C.UTF-8"), ("LANG", "C")]));
    }
}
