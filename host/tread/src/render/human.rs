//! A plan for a person: the answer first, then why.

use crate::plan::Timings;
use anyhow::Result;
use std::fmt;
use std::io::Write;
use std::time::Duration;
use tread_engine::planner::Planned;
use tread_model::change::{Change, Content, Edit, State};
use tread_model::effect::Effect;
use tread_model::plan::{ChangeOutcome, Plan, PlanOutcome, PlannedChange, Step};
use tread_model::read::is_unfit;
use tread_model::secrets::is_secret;
use tread_model::text_diff::{Line, line_diff};

/// How it may look.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    /// Whether colours are welcome.
    pub(crate) colours: bool,
    /// Whether what is inside files may be shown (law 10).
    pub(crate) contents: bool,
}

#[derive(Clone, Copy)]
enum Colour {
    Red,
    Green,
    Yellow,
    Bold,
    Dim,
}

impl Look {
    fn paint(self, colour: Colour, text: impl fmt::Display) -> String {
        let code = match colour {
            Colour::Red => "31",
            Colour::Green => "32",
            Colour::Yellow => "33",
            Colour::Bold => "1",
            Colour::Dim => "2",
        };
        if self.colours { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }
}

/// Prints the whole plan.
pub(crate) fn plan(
    out: &mut impl Write,
    planned: &Planned<'_>,
    timings: Option<&Timings>,
    max: Option<Effect>,
    look: Look,
) -> Result<()> {
    let plan = &planned.plan;
    let colour = match plan.effect {
        Effect::Refuse | Effect::Reboot => Colour::Red,
        Effect::Drain => Colour::Yellow,
        _ => Colour::Green,
    };
    writeln!(out, "{}", look.paint(Colour::Bold, look.paint(colour, &plan.summary)))?;
    if let Some(max) = max
        && plan.outcome != PlanOutcome::Refuse
        && plan.effect > max
    {
        let text = format!("more disruptive than --max {max}: this plan is a {}", plan.effect);
        writeln!(out, "{}", look.paint(Colour::Red, text))?;
    }
    for warning in &plan.warnings {
        writeln!(out, "{} {warning}", look.paint(Colour::Yellow, "warning:"))?;
    }
    for change in &plan.changes {
        writeln!(out)?;
        let sides = planned.changes.binary_search_by(|sides| sides.id.cmp(&change.id));
        let sides = sides.ok().and_then(|index| planned.changes.get(index));
        one_change(out, change, sides, look)?;
    }
    if plan.outcome != PlanOutcome::Nothing {
        writeln!(out)?;
        footer(out, plan, look)?;
    }
    if let Some(timings) = timings {
        writeln!(out)?;
        print_timings(out, timings)?;
    }
    Ok(())
}

fn one_change(
    out: &mut impl Write,
    change: &PlannedChange,
    sides: Option<&Change<'_>>,
    look: Look,
) -> Result<()> {
    let (sign, colour) = match change.edit {
        Edit::Added => ("+", Colour::Green),
        Edit::Changed => ("~", Colour::Yellow),
        Edit::Removed => ("-", Colour::Red),
    };
    let asks = match change.outcome {
        ChangeOutcome::Refused => "refused".to_owned(),
        _ if change.actions.is_empty() => "no action".to_owned(),
        _ => change.actions.iter().map(Step::to_string).collect::<Vec<_>>().join(", "),
    };
    let sign = look.paint(colour, sign);
    let id = look.paint(Colour::Bold, &change.id);
    writeln!(out, "{sign} {id}: {asks}")?;
    wrapped(out, "    ", &change.reason)?;
    let who = match (&change.decided_by, change.outcome) {
        (Some(policy), ChangeOutcome::Failed) => {
            format!("failed: {} {} ({})", policy.policy, policy.version, policy.layer)
        }
        (Some(policy), _) => {
            format!("decided by {} {} ({})", policy.policy, policy.version, policy.layer)
        }
        (None, ChangeOutcome::Refused) => "refused by tread itself".to_owned(),
        (None, _) => "decided by nobody: fallback".to_owned(),
    };
    writeln!(out, "    {}", look.paint(Colour::Dim, who))?;
    for answer in change.answers.iter().filter(|answer| !answer.counted) {
        let text = format!("overruled: {} ({}): {}", answer.policy, answer.layer, answer.reason);
        writeln!(out, "    {}", look.paint(Colour::Dim, text.trim_end()))?;
    }
    if let Some(advice) = &change.advice {
        wrapped(out, "    ", advice)?;
    }
    if let Some(sides) = sides {
        difference(out, sides, look)?;
    }
    Ok(())
}

fn footer(out: &mut impl Write, plan: &Plan, look: Look) -> Result<()> {
    if plan.outcome == PlanOutcome::Apply {
        let steps: Vec<String> = plan.steps.iter().map(Step::to_string).collect();
        writeln!(out, "steps: {}", steps.join(", "))?;
    }
    if !plan.reproducible {
        writeln!(out, "A time or stack limit had a part in this plan: another run may differ.")?;
    }
    writeln!(out, "{}", look.paint(Colour::Dim, format!("plan {}", plan.digest)))?;
    Ok(())
}

/// What differs, as far as it may be shown.
fn difference(out: &mut impl Write, change: &Change<'_>, look: Look) -> Result<()> {
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
                    lines(out, &old, &new, secret, look)?;
                }
            }
            attributes(out, &unit_attributes(&change.before), &unit_attributes(&change.after), look)
        }
        _ => {
            let (before, after) = (text_of(&change.before), text_of(&change.after));
            match (before, after) {
                (Shown::Text(before), Shown::Text(after)) => {
                    if before != after {
                        lines(out, &before, &after, secret, look)?;
                    }
                }
                (Shown::Bytes(before), after) => sizes(out, before, after.len())?,
                (before, Shown::Bytes(after)) => sizes(out, before.len(), after)?,
            }
            attributes(out, &file_attributes(&change.before), &file_attributes(&change.after), look)
        }
    }
}

fn sizes(out: &mut impl Write, before: usize, after: usize) -> Result<()> {
    writeln!(out, "      not text: {before} bytes before, {after} after")?;
    Ok(())
}

fn lines(out: &mut impl Write, before: &str, after: &str, secret: bool, look: Look) -> Result<()> {
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
        let hidden = if secret {
            "a secret, not shown"
        } else {
            "shown on a terminal, or with --diff always"
        };
        let text = format!("+{added} −{removed} lines ({hidden})");
        writeln!(out, "      {}", look.paint(Colour::Dim, text))?;
        return Ok(());
    }
    for line in lines {
        let line = match line {
            Line::Context(text) => format!("  {}", clean(&text)),
            Line::Removed(text) => look.paint(Colour::Red, format!("- {}", clean(&text))),
            Line::Added(text) => look.paint(Colour::Green, format!("+ {}", clean(&text))),
            Line::Gap | Line::TooLong { .. } => look.paint(Colour::Dim, "…"),
        };
        writeln!(out, "      {line}")?;
    }
    Ok(())
}

/// A config may be hostile: nothing in it may drive the terminal.
fn clean(text: &str) -> String {
    text.trim_end_matches(['\n', '\r'])
        .chars()
        .map(|c| if is_unfit(c) && c != '\t' { '\u{fffd}' } else { c })
        .collect()
}

enum Shown {
    Text(String),
    /// No text: its size.
    Bytes(usize),
}

impl Shown {
    fn len(&self) -> usize {
        match self {
            Shown::Text(text) => text.len(),
            Shown::Bytes(size) => *size,
        }
    }
}

fn text_of(state: &State<'_>) -> Shown {
    match state {
        State::Absent | State::Unit(_) => Shown::Text(String::new()),
        State::List(items) => Shown::Text(items.iter().map(|item| format!("{item}\n")).collect()),
        State::Text(text) => Shown::Text(format!("{text}\n")),
        State::Digest(digest) => Shown::Text(format!("{digest}\n")),
        State::File(file) => content(&file.content),
    }
}

fn content(content: &Content<'_>) -> Shown {
    match content {
        Content::Absent => Shown::Text(String::new()),
        Content::Digest(digest) => Shown::Text(digest.to_string()),
        Content::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => Shown::Text(text.to_owned()),
            _ => Shown::Bytes(bytes.len()),
        },
    }
}

/// The unit file under an empty name, and the drop-ins under theirs.
fn unit_texts<'s>(state: &'s State<'_>) -> Vec<(&'s str, String)> {
    let State::Unit(unit) = state else { return Vec::new() };
    let text = |it: &Content<'_>| match content(it) {
        Shown::Text(text) => text,
        Shown::Bytes(size) => format!("({size} bytes that are not text)"),
    };
    std::iter::once(("", text(&unit.contents)))
        .chain(unit.dropins.iter().map(|dropin| (&*dropin.name, text(&dropin.contents))))
        .collect()
}

fn unit_attributes(state: &State<'_>) -> Vec<(&'static str, String)> {
    let State::Unit(unit) = state else { return Vec::new() };
    let enabled = match unit.enabled {
        Some(true) => "enabled",
        Some(false) => "disabled",
        None => "left to presets",
    };
    let masked = if unit.masked { "yes" } else { "no" };
    vec![("enabled", enabled.to_owned()), ("masked", masked.to_owned())]
}

fn file_attributes(state: &State<'_>) -> Vec<(&'static str, String)> {
    let State::File(file) = state else { return Vec::new() };
    vec![
        ("mode", format!("{:04o}", file.mode)),
        ("user", file.user.to_string()),
        ("group", file.group.to_string()),
    ]
}

/// Attributes that differ; of something added or removed, none.
fn attributes(
    out: &mut impl Write,
    before: &[(&str, String)],
    after: &[(&str, String)],
    look: Look,
) -> Result<()> {
    for ((name, before), (_, after)) in before.iter().zip(after) {
        if before != after {
            let text = format!("{name}: {} → {}", clean(before), clean(after));
            writeln!(out, "      {}", look.paint(Colour::Yellow, text))?;
        }
    }
    Ok(())
}

/// Wraps a sentence for a terminal of a hundred columns.
fn wrapped(out: &mut impl Write, indent: &str, text: &str) -> Result<()> {
    const WIDTH: usize = 96;
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH {
            writeln!(out, "{indent}{line}")?;
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if !line.is_empty() {
        writeln!(out, "{indent}{line}")?;
    }
    Ok(())
}

fn print_timings(out: &mut impl Write, timings: &Timings) -> Result<()> {
    let ms = |duration: Duration| format!("{:.3} ms", duration.as_secs_f64() * 1e3);
    writeln!(out, "reading    {}", ms(timings.reading))?;
    writeln!(out, "starting   {}", ms(timings.starting))?;
    writeln!(out, "comparing  {}", ms(timings.comparing))?;
    for call in &timings.calls {
        writeln!(
            out,
            "{}: {} changes, loading {}, asking {}, fuel {}",
            call.policy,
            call.offered,
            ms(call.load),
            ms(call.call),
            call.fuel
        )?;
    }
    Ok(())
}
