//! What differs between the sides of a change, as far as it may be shown.

use super::look::{Colour, Look};
use anyhow::Result;
use std::io::Write;
use tread_model::change::{Change, Content, Edit, State};
use tread_model::plan::difference::Attribute;
use tread_model::secrets::is_secret;
use tread_model::text::is_unfit;
use tread_model::text_diff::{Line, line_diff};

/// Prints what differs. Of what is kept back it tells how much it is, and
/// whether that was so for want of a terminal.
pub(super) fn difference(
    out: &mut impl Write,
    change: &Change<'_>,
    look: Look,
) -> Result<KeptBack> {
    let mut kept_back = KeptBack(false);
    print(out, change, look, &mut kept_back)?;
    Ok(kept_back)
}

/// Whether contents are not shown that a terminal would show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeptBack(pub(super) bool);

fn print(
    out: &mut impl Write,
    change: &Change<'_>,
    look: Look,
    kept_back: &mut KeptBack,
) -> Result<()> {
    let secret = is_secret(change);
    match (&change.before, &change.after) {
        (State::Unit(_), _) | (_, State::Unit(_)) => {
            let (before, after) = (unit_texts(&change.before), unit_texts(&change.after));
            let mut names: Vec<&str> = before.iter().chain(&after).map(|(name, _)| *name).collect();
            names.sort_unstable();
            names.dedup();
            let text = |side: &[(&str, String)], name: &str| {
                side.iter().find(|(it, _)| *it == name).map(|(_, text)| text.clone())
            };
            for name in names {
                let (old, new) = (text(&before, name), text(&after, name));
                if old != new {
                    if !name.is_empty() {
                        writeln!(out, "      {}", look.paint(Colour::Dim, name))?;
                    }
                    let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
                    lines(out, (&old, &new), secret, look, kept_back)?;
                }
            }
        }
        _ => {
            let (before, after) = (text_of(&change.before), text_of(&change.after));
            match (before, after) {
                (Shown::Text(before), Shown::Text(after)) => {
                    if before != after {
                        lines(out, (&before, &after), secret, look, kept_back)?;
                    }
                }
                _ if is_same_content(&change.before, &change.after) => {}
                (Shown::Bytes(before), after) => sizes(out, before, after.len())?,
                (before, Shown::Bytes(after)) => sizes(out, before.len(), after)?,
            }
        }
    }
    for attribute in attributes(change) {
        let text = attribute_line(change.edit(), &attribute);
        writeln!(out, "      {}", look.paint(Colour::Yellow, text))?;
    }
    Ok(())
}

fn sizes(out: &mut impl Write, before: usize, after: usize) -> Result<()> {
    writeln!(out, "      not text: {before} bytes before, {after} after")?;
    Ok(())
}

fn lines(
    out: &mut impl Write,
    (before, after): (&str, &str),
    secret: bool,
    look: Look,
    kept_back: &mut KeptBack,
) -> Result<()> {
    let lines = line_diff(before, after, 2);
    if let [Line::TooLong { before, after }] = lines.as_slice() {
        let text = format!("too long to show: {before} lines before, {after} after");
        writeln!(out, "      {}", look.paint(Colour::Dim, text))?;
        return Ok(());
    }
    if secret || !look.contents {
        let count = |wanted: fn(&Line) -> bool| lines.iter().filter(|line| wanted(line)).count();
        let added = count(|line| matches!(line, Line::Added(_)));
        let removed = count(|line| matches!(line, Line::Removed(_)));
        let hidden = if secret { " (a secret, not shown)" } else { "" };
        kept_back.0 |= !secret;
        let text = format!("+{added} −{removed} lines{hidden}");
        writeln!(out, "      {}", look.paint(Colour::Dim, text))?;
        return Ok(());
    }
    // Where only one side has such ends of lines, they are what differs, and nobody sees them.
    let shows_ends = before.contains("\r\n") != after.contains("\r\n");
    let with_end = |text: &str| match text.ends_with('\r') && shows_ends {
        true => format!("{} (a carriage return at the end)", clean(text)),
        false => clean(text),
    };
    for line in lines {
        let line = match line {
            Line::Context(text) => format!("  {}", clean(&text)),
            Line::Removed(text) => look.paint(Colour::Red, format!("- {}", with_end(&text))),
            Line::Added(text) => look.paint(Colour::Green, format!("+ {}", with_end(&text))),
            Line::Gap | Line::TooLong { .. } => look.paint(Colour::Dim, "…"),
        };
        writeln!(out, "      {line}")?;
    }
    Ok(())
}

/// A config may be hostile: nothing in it may drive the terminal.
pub(super) fn clean(text: &str) -> String {
    text.trim_end_matches(['\n', '\r'])
        .chars()
        .map(|c| if is_unfit(c) && c != '\t' { '\u{fffd}' } else { c })
        .collect()
}

pub(super) enum Shown {
    Text(String),
    /// No text: its size.
    Bytes(usize),
}

impl Shown {
    pub(super) fn len(&self) -> usize {
        match self {
            Shown::Text(text) => text.len(),
            Shown::Bytes(size) => *size,
        }
    }
}

pub(super) fn text_of(state: &State<'_>) -> Shown {
    match state {
        State::Absent | State::Unit(_) => Shown::Text(String::new()),
        State::List(items) => Shown::Text(items.iter().map(|item| format!("{item}\n")).collect()),
        State::Text(text) => Shown::Text(format!("{text}\n")),
        State::Token(token) => Shown::Text(format!("{token}\n")),
        State::File(file) => content(&file.content),
    }
}

fn content(content: &Content<'_>) -> Shown {
    match content {
        Content::Absent => Shown::Text(String::new()),
        Content::Token(token) => Shown::Text(token.to_string()),
        Content::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => Shown::Text(text.to_owned()),
            _ => Shown::Bytes(bytes.len()),
        },
    }
}

/// Whether both are files that differ in something else, such as their mode.
pub(super) fn is_same_content(before: &State<'_>, after: &State<'_>) -> bool {
    matches!((before, after), (State::File(before), State::File(after))
        if before.content == after.content)
}

/// The unit file under an empty name, and the drop-ins under theirs.
pub(super) fn unit_texts<'s>(state: &'s State<'_>) -> Vec<(&'s str, String)> {
    let State::Unit(unit) = state else { return Vec::new() };
    let text = |it: &Content<'_>| match content(it) {
        Shown::Text(text) => text,
        Shown::Bytes(size) => format!("({size} bytes that are not text)"),
    };
    std::iter::once(("", text(&unit.contents)))
        .chain(unit.dropins.iter().map(|dropin| (&*dropin.name, text(&dropin.contents))))
        .collect()
}

/// What a unit or a file is besides its contents, each with what it is if nobody says so.
fn attributes_of(state: &State<'_>) -> Vec<(&'static str, String, &'static str)> {
    match state {
        State::Unit(unit) => {
            let enabled = match unit.enabled {
                Some(true) => "enabled",
                Some(false) => "disabled",
                None => "left to presets",
            };
            let masked = match unit.masked {
                Some(true) => "yes",
                Some(false) => "unmasked",
                None => "no",
            };
            vec![
                ("enabled", enabled.to_owned(), "left to presets"),
                ("masked", masked.to_owned(), "no"),
            ]
        }
        State::File(file) => vec![
            ("mode", format!("{:04o}", file.mode), "0644"),
            ("user", file.user.to_string(), "root"),
            ("group", file.group.to_string(), "root"),
        ],
        State::Absent | State::List(_) | State::Text(_) | State::Token(_) => Vec::new(),
    }
}

/// Attributes that differ; of what is there on one side only, those that are not the default.
pub(super) fn attributes(change: &Change<'_>) -> Vec<Attribute> {
    let (before, after) = (attributes_of(&change.before), attributes_of(&change.after));
    let attribute = |name: &'static str, before: &str, after: &str| Attribute {
        name,
        before: clean(before),
        after: clean(after),
    };
    let of_one_side = |side: &[(&'static str, String, &str)]| {
        let said = side.iter().filter(|(_, value, default)| value != default);
        said.map(|(name, value, _)| (*name, value.clone())).collect::<Vec<_>>()
    };
    match (before.is_empty(), after.is_empty()) {
        (true, _) => {
            let said = of_one_side(&after);
            said.iter().map(|(name, value)| attribute(name, "", value)).collect()
        }
        (_, true) => {
            let said = of_one_side(&before);
            said.iter().map(|(name, value)| attribute(name, value, "")).collect()
        }
        (false, false) => {
            let pairs =
                before.iter().zip(&after).filter(|((_, one, _), (_, other, _))| one != other);
            pairs.map(|((name, one, _), (_, other, _))| attribute(name, one, other)).collect()
        }
    }
}

fn attribute_line(edit: Edit, Attribute { name, before, after }: &Attribute) -> String {
    match edit {
        Edit::Added => format!("{name}: {after}"),
        Edit::Removed => format!("{name}: was {before}"),
        Edit::Changed => format!("{name}: {before} → {after}"),
    }
}
