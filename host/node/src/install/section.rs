//! The `[Install]` section of a unit file, read as systemd reads it.

use super::specifiers::{Facts, Unresolved, resolved};
use crate::unit_name::{Form, UnitName};
use tread_model::unit_name::is_of_names;

/// What an `[Install]` section says. Specifiers still stand in what systemd replaces
/// only when it makes links.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) alias: Vec<String>,
    pub(super) wanted_by: Vec<String>,
    pub(super) required_by: Vec<String>,
    pub(super) upheld_by: Vec<String>,
    pub(super) also: Vec<String>,
    pub(super) default_instance: Option<String>,
}

/// A line that makes systemd refuse the whole file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    /// Counted from one.
    pub(super) line: usize,
    /// To follow the line's number in a sentence.
    pub(super) what: String,
}

impl Section {
    /// Whether enabling the unit makes links.
    pub(super) fn has_links(&self) -> bool {
        let lists = [&self.alias, &self.wanted_by, &self.required_by, &self.upheld_by];
        lists.iter().any(|list| !list.is_empty())
    }

    /// Adds what a unit file or a drop-in says: lists grow, and an empty value empties
    /// them.
    pub(super) fn add(
        &mut self,
        unit: UnitName<'_>,
        text: &str,
        facts: &Facts,
    ) -> Result<(), Wrong> {
        let mut inside = false;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for (number, line) in logical_lines(text) {
            let line = line.trim_matches(is_space);
            let wrong = |what: &str| Wrong { line: number, what: what.to_owned() };
            if let Some(header) = line.strip_prefix('[') {
                let Some(name) = header.strip_suffix(']') else {
                    return Err(wrong("has a `[` without its `]`"));
                };
                if name.contains(|it: char| it < ' ' || "\"'\\\x7f".contains(it)) {
                    return Err(wrong("names a section with letters that no section has"));
                }
                inside = name == "Install";
            } else if inside && let Some((key, value)) = line.split_once('=') {
                let (key, value) = (key.trim_matches(is_space), value.trim_matches(is_space));
                self.set(unit, key, value, facts).map_err(|what| wrong(&what))?;
            }
        }
        Ok(())
    }

    fn set(
        &mut self,
        unit: UnitName<'_>,
        key: &str,
        value: &str,
        facts: &Facts,
    ) -> Result<(), String> {
        let list = match key {
            "Alias" if unit.may_have_aliases() => &mut self.alias,
            "WantedBy" => &mut self.wanted_by,
            "RequiredBy" => &mut self.required_by,
            "UpheldBy" => &mut self.upheld_by,
            "Also" => return self.add_also(unit, value, facts),
            "DefaultInstance" if unit.form() == Form::Template => {
                return self.set_default(unit, value, facts);
            }
            _ => return Ok(()),
        };
        match value {
            "" => list.clear(),
            value => list.extend(quoted_words(value)),
        }
        Ok(())
    }

    fn add_also(&mut self, unit: UnitName<'_>, value: &str, facts: &Facts) -> Result<(), String> {
        for word in escaped_words(value)? {
            let name = resolved(&word, unit, self.default_instance.as_deref(), facts);
            let name = name.map_err(Unresolved::to_phrase)?;
            if UnitName::of(&name).is_none() {
                return Err(format!("names `{name}`, and no unit can have that name"));
            }
            self.also.push(name);
        }
        Ok(())
    }

    fn set_default(
        &mut self,
        unit: UnitName<'_>,
        value: &str,
        facts: &Facts,
    ) -> Result<(), String> {
        let instance = resolved(value, unit, self.default_instance.as_deref(), facts);
        let instance = instance.map_err(Unresolved::to_phrase)?;
        if !instance.bytes().all(is_of_names) {
            return Err(format!("names `{instance}`, and no instance can have that name"));
        }
        self.default_instance = (!instance.is_empty()).then_some(instance);
        Ok(())
    }
}

/// systemd's white space.
fn is_space(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\n' | '\r')
}

/// The lines of a text without comments, those that end in a backslash joined with the
/// next, and the number of the last one of each.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut open: Option<String> = None;
    let mut number = 0;
    for line in physical_lines(text) {
        number += 1;
        if line.trim_start_matches(is_space).starts_with(['#', ';']) {
            continue;
        }
        let mut whole = open.take().unwrap_or_default();
        whole.push_str(line);
        let backslashes = whole.len() - whole.trim_end_matches('\\').len();
        if backslashes % 2 == 1 {
            whole.pop();
            whole.push(' ');
            open = Some(whole);
        } else {
            lines.push((number, whole));
        }
    }
    lines.extend(open.map(|line| (number + 1, line)));
    lines
}

/// The lines of a text: a line feed, a carriage return, both, or a zero byte end one.
fn physical_lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text).filter(|text| !text.is_empty());
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(end) = text.find(['\n', '\r', '\0']) else {
            rest = None;
            return Some(text);
        };
        let (line, ended) = text.split_at(end);
        let length = if ended.starts_with("\r\n") || ended.starts_with("\n\r") { 2 } else { 1 };
        rest = ended.get(length..).filter(|it| !it.is_empty());
        Some(line)
    })
}

/// The words of a list, without their quotes. After a quote that is never closed
/// nothing more is read.
fn quoted_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for letter in text.chars() {
        match quote {
            Some(open) if letter == open => quote = None,
            Some(_) => word.get_or_insert_default().push(letter),
            None if is_space(letter) => words.extend(word.take()),
            None if matches!(letter, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            None => word.get_or_insert_default().push(letter),
        }
    }
    if quote.is_none() {
        words.extend(word);
    }
    words
}

/// The words of a list in which a backslash only keeps what follows it.
fn escaped_words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some(kept) => word.get_or_insert_default().push(kept),
                None => return Err("ends within a word".to_owned()),
            },
            letter if is_space(letter) => words.extend(word.take()),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests;
