//! The text of a unit, read line by line as systemd reads it.

use std::borrow::Cow;
use std::rc::Rc;

/// What systemd takes for space around lines, keys and values.
const SPACE: [char; 4] = [' ', '\t', '\n', '\r'];

/// How sections and directives begin that systemd leaves to others.
const FOREIGN: &str = "X-";

/// One directive of a unit's text.
pub(super) struct Setting {
    pub(super) section: Rc<str>,
    pub(super) key: String,
    pub(super) value: String,
    /// Counted from one: the line on which it ends.
    pub(super) line: usize,
}

/// The directives of a unit's text as systemd reads them.
pub(super) fn settings(text: &str) -> impl Iterator<Item = Setting> {
    let mut section: Rc<str> = Rc::from("");
    lines(text).filter_map(move |(number, line)| {
        let line = line.trim_matches(SPACE);
        if let Some(name) = line.strip_prefix('[') {
            section = Rc::from(name.trim_end_matches(']'));
            return None;
        }
        // As systemd 239 has it: `.include /path`.
        let line = match line.strip_prefix(".include") {
            Some(path) => Cow::Owned(format!(".include={path}")),
            None => Cow::Borrowed(line),
        };
        let (key, value) = line.split_once('=')?;
        let [key, value] = [key, value].map(|part| part.trim_matches(SPACE).to_owned());
        if section.starts_with(FOREIGN) || key.starts_with(FOREIGN) {
            return None;
        }
        Some(Setting { section: Rc::clone(&section), key, value, line: number })
    })
}

/// The lines of a unit's text as systemd joins them, each with its number: a line
/// ends at a line break, a carriage return or a NUL, and goes on if a backslash that
/// is not escaped stands right before that. Comments stand between the lines of a
/// value, too.
fn lines(text: &str) -> impl Iterator<Item = (usize, Cow<'_, str>)> {
    let mut lines = text.trim_start_matches('\u{feff}').split(['\n', '\r', '\0']).zip(1..);
    std::iter::from_fn(move || {
        let mut begun = String::new();
        let mut last = 0;
        for (line, number) in lines.by_ref() {
            last = number;
            let line = line.trim_start_matches(SPACE);
            if line.starts_with(['#', ';']) {
                continue;
            }
            let escapes = line.len() - line.trim_end_matches('\\').len();
            match line.strip_suffix('\\').filter(|_| escapes % 2 == 1) {
                Some(line) => {
                    begun.push_str(line);
                    begun.push(' ');
                }
                None if begun.is_empty() => return Some((number, Cow::Borrowed(line))),
                None => {
                    begun.push_str(line);
                    return Some((number, Cow::Owned(begun)));
                }
            }
        }
        (!begun.is_empty()).then_some((last, Cow::Owned(begun)))
    })
}
