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
    let text = text.trim_start_matches('\u{feff}');
    // To systemd 239 a carriage return is a space, so that both readings count.
    let older = text.contains(['\r', '\0']).then(|| of_lines(text.split(['\n', '\0'])));
    of_lines(ended_lines(text)).chain(older.into_iter().flatten())
}

fn of_lines<'t>(all: impl Iterator<Item = &'t str>) -> impl Iterator<Item = Setting> {
    let mut section: Rc<str> = Rc::from("");
    joined(all).filter_map(move |(number, line)| {
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

/// What ends a line, each as a bit of its own.
fn end_of_line(character: char) -> u8 {
    match character {
        '\n' => 1,
        '\r' => 2,
        '\0' => 4,
        _ => 0,
    }
}

/// The lines of a text: one ends at a line break, a carriage return or a NUL. Where
/// they stand side by side, each once, they end one line together.
fn ended_lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest.take()?;
        let Some(end) = text.find(|it| end_of_line(it) != 0) else { return Some(text) };
        let (line, behind) = text.split_at(end);
        let mut seen = 0;
        let ends = behind.chars().map(end_of_line).take_while(|end| {
            let is_first = *end & !seen != 0;
            seen |= end;
            is_first
        });
        rest = behind.get(ends.count()..);
        Some(line)
    })
}

/// Lines as systemd joins them, each with its number: one goes on if a backslash that
/// is not escaped stands at its end. Comments stand between the lines of a value, too.
fn joined<'t>(lines: impl Iterator<Item = &'t str>) -> impl Iterator<Item = (usize, Cow<'t, str>)> {
    let mut lines = lines.zip(1..);
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
