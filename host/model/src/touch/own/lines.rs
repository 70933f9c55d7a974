//! The text of a unit, read line by line as systemd reads it.

use std::borrow::Cow;

/// What systemd takes for space around lines, keys and values.
const fn is_space(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// A text without the space around it. It is looked at byte by byte, since this is done for each line
/// of all units.
fn trimmed(text: &str) -> &str {
    let end = text.as_bytes().iter().rposition(|byte| !is_space(byte)).map_or(0, |last| last + 1);
    without_indent(text.get(..end).unwrap_or_default())
}

/// A text without the space before it.
fn without_indent(text: &str) -> &str {
    let begin = text.as_bytes().iter().position(|byte| !is_space(byte)).unwrap_or(text.len());
    text.get(begin..).unwrap_or_default()
}

/// How sections and directives begin that systemd leaves to others.
const FOREIGN: &str = "X-";

/// One directive of a unit's text.
pub(super) struct Setting<'t> {
    pub(super) section: Cow<'t, str>,
    pub(super) key: Cow<'t, str>,
    pub(super) value: Cow<'t, str>,
    /// Counted from one: the line on which it ends.
    pub(super) line: usize,
}

/// The directives of a unit's text as systemd reads them.
pub(super) fn settings(text: &str) -> impl Iterator<Item = Setting<'_>> {
    settings_among(text, |_, _| true)
}

/// The directives of which `is_wanted` says so by their section and the first byte of their line. Of a
/// text that is not plain all directives come.
pub(super) fn settings_among(
    text: &str,
    is_wanted: impl Fn(&str, u8) -> bool,
) -> impl Iterator<Item = Setting<'_>> {
    let text = text.trim_start_matches('\u{feff}');
    let is_plain = memchr::memchr3(b'\r', b'\0', b'\\', text.as_bytes()).is_none();
    let plain = is_plain.then(|| of_plain_lines(text, is_wanted));
    let others = (!is_plain).then(|| of_all_lines(text));
    plain.into_iter().flatten().chain(others.into_iter().flatten())
}

/// Of a text in which nothing ends a line but a line break, and no line goes on: what most units
/// are.
fn of_plain_lines(
    text: &str,
    is_wanted: impl Fn(&str, u8) -> bool,
) -> impl Iterator<Item = Setting<'_>> {
    let mut section = Section::default();
    let mut lines = memchr::memchr_iter(b'\n', text.as_bytes()).chain([text.len()]).zip(1..);
    let mut begin = 0;
    std::iter::from_fn(move || {
        for (end, number) in lines.by_ref() {
            let line = without_indent(text.get(begin..end).unwrap_or_default());
            begin = end + 1;
            let is_read = match line.as_bytes().first() {
                None | Some(b'#' | b';') => false,
                Some(b'[') => true,
                Some(first) => is_wanted(&section.name, *first),
            };
            if !is_read {
                continue;
            }
            if let Some(setting) = section.setting(number, Cow::Borrowed(line)) {
                return Some(setting);
            }
        }
        None
    })
}

fn of_all_lines(text: &str) -> impl Iterator<Item = Setting<'_>> {
    // To systemd 239 a carriage return is a space, so that both readings count.
    let is_odd = memchr::memchr2(b'\r', b'\0', text.as_bytes()).is_some();
    let older = is_odd.then(|| of_lines(text.split(['\n', '\0'])));
    of_lines(ended_lines(text)).chain(older.into_iter().flatten())
}

fn of_lines<'t>(all: impl Iterator<Item = &'t str>) -> impl Iterator<Item = Setting<'t>> {
    let mut section = Section::default();
    joined(all).filter_map(move |(number, line)| section.setting(number, line))
}

/// The section that a line stands in.
#[derive(Default)]
struct Section<'t> {
    name: Cow<'t, str>,
    /// Systemd leaves it to others.
    is_foreign: bool,
}

impl<'t> Section<'t> {
    /// The directive on a line, which is no comment; None: it is none, or begins a section.
    fn setting(&mut self, number: usize, line: Cow<'t, str>) -> Option<Setting<'t>> {
        if let Some(name) = heading(&line) {
            self.is_foreign = name.starts_with(FOREIGN);
            self.name = match &line {
                Cow::Borrowed(line) => Cow::Borrowed(heading(line)?),
                Cow::Owned(_) => Cow::Owned(name.to_owned()),
            };
            return None;
        }
        // As systemd 239 has it: `.include /path`.
        let line = match trimmed(&line).strip_prefix(".include") {
            Some(path) => Cow::Owned(format!(".include={path}")),
            None => line,
        };
        let (key, value) = key_and_value(line)?;
        if self.is_foreign || key.starts_with(FOREIGN) {
            return None;
        }
        Some(Setting { section: self.name.clone(), key, value, line: number })
    }
}

/// The name of the section that a line begins.
fn heading(line: &str) -> Option<&str> {
    Some(trimmed(line).strip_prefix('[')?.trim_end_matches(']'))
}

/// The two sides of the first `=` of a line, without the space around them.
fn key_and_value(line: Cow<'_, str>) -> Option<(Cow<'_, str>, Cow<'_, str>)> {
    fn split(line: &str) -> Option<[&str; 2]> {
        let (key, value) = line.split_at_checked(memchr::memchr(b'=', line.as_bytes())?)?;
        Some([key, value.strip_prefix('=')?].map(trimmed))
    }
    Some(match line {
        Cow::Borrowed(line) => split(line)?.map(Cow::Borrowed).into(),
        Cow::Owned(line) => split(&line)?.map(|part| Cow::Owned(part.to_owned())).into(),
    })
}

/// What ends a line, each as a bit of its own.
fn end_of_line(byte: u8) -> u8 {
    match byte {
        b'\n' => 1,
        b'\r' => 2,
        b'\0' => 4,
        _ => 0,
    }
}

/// The lines of a text: one ends at a line break, a carriage return or a NUL. Where
/// they stand side by side, each once, they end one line together.
fn ended_lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest.take()?;
        let end = memchr::memchr3(b'\n', b'\r', b'\0', text.as_bytes());
        let Some((line, behind)) = end.and_then(|end| text.split_at_checked(end)) else {
            return Some(text);
        };
        let mut seen = 0;
        let ends = behind.bytes().map(end_of_line).take_while(|end| {
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
            let line = without_indent(line);
            if line.starts_with(['#', ';']) {
                continue;
            }
            let goes_on =
                |line: &&str| (line.len() - line.trim_end_matches('\\').len()).is_multiple_of(2);
            match line.strip_suffix('\\').filter(goes_on) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read<'t>(
        settings: impl Iterator<Item = Setting<'t>>,
    ) -> Vec<(String, String, String, usize)> {
        let text = |text: Cow<'_, str>| text.into_owned();
        settings.map(|it| (text(it.section), text(it.key), text(it.value), it.line)).collect()
    }

    proptest! {
        #[test]
        fn what_has_plain_lines_only_is_read_as_if_it_had_others(
            text in "([ \t#;=a\\[\\].\u{a0}\n]|X-|\\[Unit\\]\n|After = b\n|\\.include /a\n){0,24}",
        ) {
            prop_assert_eq!(read(of_plain_lines(&text, |_, _| true)), read(of_all_lines(&text)));
        }
    }
}
