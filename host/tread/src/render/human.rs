//! A plan for a person: the answer first, then why.

use super::difference::difference;
use super::groups::{Group, groups};
use super::look::{Colour, Look};
use super::timings::{Timings, print_timings};
use crate::plan::too_disruptive::TooDisruptive;
use anyhow::Result;
use std::fmt;
use std::io::Write;
use tread_console::sentence::{count, sentence};
use tread_engine::planner::Planned;
use tread_model::change::Edit;
use tread_model::claim::Kind;
use tread_model::effect::Effect;
use tread_model::plan::compare::Shadow;
use tread_model::plan::{
    ChangeOutcome, GivenAnswer, Overruled, Plan, PlanOutcome, PlannedChange, PolicyIdentity, Step,
    causes,
};
use tread_model::verdict::Layer;

/// What is told beside the plan itself.
#[derive(Debug, Default)]
pub(crate) struct Beside<'p> {
    /// What was read on each side, where that is not obvious.
    pub(crate) sides: Vec<String>,
    /// That it is more than was allowed.
    pub(crate) too_disruptive: Option<TooDisruptive>,
    /// How long everything took.
    pub(crate) timings: Option<&'p Timings>,
    /// What policies in the shadow would have decided.
    pub(crate) shadow: Option<&'p Shadow>,
}

/// Prints the whole plan.
pub(crate) fn plan(
    out: &mut impl Write,
    planned: &Planned<'_>,
    beside: &Beside<'_>,
    look: Look,
) -> Result<()> {
    let mut text = Vec::new();
    head(&mut text, &planned.plan, beside, look)?;
    let mut kept_back = false;
    for group in groups(&planned.plan) {
        writeln!(text)?;
        kept_back |= one_group(&mut text, &group, planned, look)?;
    }
    if planned.plan.outcome != PlanOutcome::Nothing {
        writeln!(text)?;
        footer(&mut text, &planned.plan, kept_back, look)?;
    }
    if let Some(timings) = beside.timings {
        writeln!(text)?;
        print_timings(&mut text, timings)?;
    }
    // Nothing but text was written to it.
    out.write_all(look.spelled(String::from_utf8_lossy(&text).into_owned()).as_bytes())?;
    Ok(())
}

/// The answer, what it is because of, and what it is about.
fn head(out: &mut impl Write, plan: &Plan, beside: &Beside<'_>, look: Look) -> Result<()> {
    let colour = match plan.effect {
        Effect::Refuse | Effect::Reboot => Colour::Red,
        Effect::Drain => Colour::Yellow,
        _ => Colour::Green,
    };
    writeln!(out, "{}", look.paint(Colour::Bold, look.paint(colour, &plan.summary)))?;
    if let Some(too_disruptive) = &beside.too_disruptive {
        writeln!(out, "{}", look.paint(Colour::Red, &too_disruptive.what))?;
        for cause in &too_disruptive.causes {
            paragraph(out, look, "  - ", cause)?;
        }
    } else if let Some(because) = because(plan) {
        paragraph(out, look, "", &because)?;
    }
    for warning in &plan.warnings {
        writeln!(out, "{} {warning}", look.paint(Colour::Yellow, "warning:"))?;
    }
    if !beside.sides.is_empty() {
        writeln!(out)?;
        for side in &beside.sides {
            paragraph(out, look, "", side)?;
        }
    }
    Ok(())
}

/// Which of several changes make the plan what it is.
fn because(plan: &Plan) -> Option<String> {
    if plan.changes.len() < 2 || plan.outcome != PlanOutcome::Apply || plan.effect == Effect::None {
        return None;
    }
    let causes = causes(plan, |effect| effect == plan.effect);
    let named: Vec<String> = causes.iter().map(ToString::to_string).collect();
    let costly: usize = causes.iter().map(|cause| cause.ids.len()).sum();
    let others = match plan.changes.len().saturating_sub(costly) {
        0 => String::new(),
        others => format!("; {} {} less", count(others, "change"), cost(others)),
    };
    (!named.is_empty()).then(|| format!("because of {}{others}", named.join("; ")))
}

fn cost(number: usize) -> &'static str {
    if number == 1 { "costs" } else { "cost" }
}

/// Changes that are alike, explained once; says whether contents were kept back
/// that a terminal would show.
fn one_group(
    out: &mut impl Write,
    group: &Group<'_>,
    planned: &Planned<'_>,
    look: Look,
) -> Result<bool> {
    let several = group.changes.len() > 1;
    let Some(first) = group.changes.first() else { return Ok(false) };
    if several {
        let text = format!("{}, each: {}", count(group.changes.len(), "change"), asks(first));
        writeln!(out, "{}", look.paint(Colour::Bold, text))?;
        explanation(out, first, group, look)?;
    }
    let mut kept_back = false;
    for change in &group.changes {
        let (sign, colour) = match change.edit {
            Edit::Added => ("+", Colour::Green),
            Edit::Changed => ("~", Colour::Yellow),
            Edit::Removed => ("-", Colour::Red),
        };
        let id = look.paint(Colour::Bold, &change.id);
        writeln!(out, "{} {id}: {}", look.paint(colour, sign), asks(change))?;
        if !several {
            explanation(out, change, group, look)?;
        }
        let sides = planned.changes.binary_search_by(|sides| sides.id.cmp(&change.id));
        if let Some(sides) = sides.ok().and_then(|index| planned.changes.get(index)) {
            kept_back |= difference(out, sides, look)?.0;
        }
    }
    Ok(kept_back)
}

/// What a change asks for by itself.
fn asks(change: &PlannedChange) -> String {
    match change.outcome {
        ChangeOutcome::Refused => "refused".to_owned(),
        _ => actions(&change.actions),
    }
}

fn actions(actions: &[Step]) -> String {
    match actions {
        [] => "no action".to_owned(),
        some => some.iter().map(Step::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// Why, who says so, against whom, and what to do about it.
fn explanation(
    out: &mut impl Write,
    change: &PlannedChange,
    group: &Group<'_>,
    look: Look,
) -> Result<()> {
    let own = match change.also.as_slice() {
        [] => change.reason.as_str(),
        also => change.reason.strip_suffix(also.join(" ").as_str()).unwrap_or(&change.reason),
    };
    paragraph(out, look, "    ", &sentence(own))?;
    for addition in &change.also {
        paragraph(out, look, "    - ", addition)?;
    }
    let who = match (&change.decided_by, change.outcome) {
        (Some(policy), ChangeOutcome::Failed) => format!("failed: {}", Named(policy)),
        (Some(policy), ChangeOutcome::Refused) => format!("refused by {}", Named(policy)),
        (Some(policy), _) => format!("decided by {}", Named(policy)),
        (None, ChangeOutcome::Refused) => "refused by tread itself".to_owned(),
        (None, ChangeOutcome::Decided) => "decided by tread itself".to_owned(),
        (None, _) => "decided by nobody: fallback".to_owned(),
    };
    dim(out, look, &who)?;
    if let Some(overruled) = &change.instead_of {
        dim(out, look, &instead_of(overruled))?;
    }
    for answer in change.answers.iter().filter(|answer| !answer.counted) {
        dim(out, look, &not_counted(answer))?;
    }
    for answer in change.answers.iter().filter(|answer| asks_for_less(answer, change)) {
        dim(out, look, &less(answer, change))?;
    }
    if let Some(advice) = &group.advice {
        paragraph(out, look, "    ", advice)?;
    }
    Ok(())
}

/// What would be, were it not for an admin.
fn instead_of(overruled: &Overruled) -> String {
    let Overruled { outcome, actions: asked, decided_by, reason } = overruled;
    let asked = actions(asked);
    match (decided_by, outcome) {
        (None, ChangeOutcome::Refused) => format!("instead of a refusal by tread itself: {reason}"),
        (None, _) => format!("instead of {asked}, because no policy answers: fallback"),
        (Some(policy), ChangeOutcome::Refused) => {
            format!("instead of a refusal by {}: {}", Named(policy), sentence(reason))
        }
        (Some(policy), ChangeOutcome::Failed) => {
            format!("instead of {asked}, because {} failed", Named(policy))
        }
        (Some(policy), _) => {
            format!("instead of {asked} by {}: {}", Named(policy), sentence(reason))
        }
    }
}

fn not_counted(answer: &GivenAnswer) -> String {
    format!("overruled: {}", answered(answer))
}

/// `chrony (template): restart chronyd.service: The reason.`
fn answered(answer: &GivenAnswer) -> String {
    let said = match answer.answer.as_str() {
        "act" => actions(&answer.actions),
        other => other.to_owned(),
    };
    let text = format!("{} ({}): {said}: ", answer.policy, answer.layer);
    match sentence(&answer.reason) {
        reason if reason.is_empty() => text.trim_end_matches([':', ' ']).to_owned(),
        reason => text + &reason,
    }
}

/// Whether a template policy answered, and a built-in policy that asks for more
/// decided: nothing else would show that it was asked at all.
fn asks_for_less(answer: &GivenAnswer, change: &PlannedChange) -> bool {
    let effect = |steps: &[Step]| steps.iter().map(Step::effect).max().unwrap_or(Effect::None);
    let by_builtin = change.decided_by.as_ref().is_some_and(|by| by.layer == Layer::Builtin);
    let outdone = change.outcome == ChangeOutcome::Refused
        || effect(&answer.actions) < effect(&change.actions);
    by_builtin
        && outdone
        && answer.counted
        && answer.layer == Layer::Template
        && answer.answer == "act"
}

fn less(answer: &GivenAnswer, change: &PlannedChange) -> String {
    let policy = &answer.policy;
    let way_out = match Kind::is_applied_by_boot(&change.id) {
        true => "; only an admin's rule makes this cost less (--rules)".to_owned(),
        false => format!(", unless an admin lets {policy} relax it (--may-relax {policy})"),
    };
    let answered = answered(answer);
    let dot = if answered.ends_with('.') { "" } else { "." };
    format!(
        "not enough: {answered}{dot} Beside a built-in policy a template policy can only ask for \
         more{way_out}."
    )
}

/// `network 0.1.0 (builtin)`
struct Named<'p>(&'p PolicyIdentity);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PolicyIdentity { policy, version, layer, .. } = self.0;
        write!(f, "{policy} {version} ({layer})")
    }
}

fn footer(out: &mut impl Write, plan: &Plan, kept_back: bool, look: Look) -> Result<()> {
    if kept_back {
        let text = "The lines that change are shown on a terminal, or with --diff always.";
        writeln!(out, "{}", look.paint(Colour::Dim, text))?;
    }
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

fn paragraph(out: &mut impl Write, look: Look, first: &str, text: &str) -> Result<()> {
    look.wrap(first, text).iter().try_for_each(|line| writeln!(out, "{line}"))?;
    Ok(())
}

fn dim(out: &mut impl Write, look: Look, text: &str) -> Result<()> {
    let lines = look.wrap("    ", text);
    lines.iter().try_for_each(|line| {
        let text = line.trim_start();
        let indent = " ".repeat(line.chars().count().saturating_sub(text.chars().count()));
        writeln!(out, "{indent}{}", look.paint(Colour::Dim, text))
    })?;
    Ok(())
}
