//! What policies in the shadow would have decided, for a person.

use super::look::{Colour, Look};
use anyhow::Result;
use std::io::Write;
use tread_model::plan::compare::{Fate, NOT_ASKED, Shadow, ShadowPolicy};
use tread_model::plan::{ChangeOutcome, GivenAnswer, PlanOutcome, Step};

/// Prints it below the plan.
pub(crate) fn shadow(out: &mut impl Write, shadow: &Shadow, look: Look) -> Result<()> {
    writeln!(out)?;
    let colour = match (shadow.saved.is_empty(), shadow.added.is_empty()) {
        _ if shadow.plan.outcome == PlanOutcome::Refuse => Colour::Red,
        (false, true) => Colour::Green,
        (true, false) => Colour::Yellow,
        _ => Colour::Bold,
    };
    writeln!(out, "in the shadow: {}", look.paint(colour, &shadow.summary))?;
    for policy in &shadow.policies {
        writeln!(out, "  {}", who(policy))?;
    }
    for warning in &shadow.warnings {
        writeln!(out, "  {} {warning}", look.paint(Colour::Yellow, "warning:"))?;
    }
    for change in &shadow.changes {
        writeln!(out, "  {}", look.paint(Colour::Bold, &change.id))?;
        writeln!(out, "    today: {}", fate(&change.today))?;
        writeln!(out, "    would: {}", fate(&change.would))?;
        for answer in &change.answers {
            for line in look.wrap("      ", &said(answer)) {
                writeln!(out, "{}", look.spelled(line))?;
            }
        }
    }
    match (shadow.as_today, shadow.changes.is_empty()) {
        (0, _) => {}
        (1, true) => writeln!(out, "  the change as today: none of these policies claims it")?,
        (n, true) => {
            writeln!(out, "  all {n} changes as today: none of these policies claims one")?
        }
        (1, false) => writeln!(out, "  1 other change as today")?,
        (n, false) => writeln!(out, "  {n} other changes as today")?,
    }
    if shadow.plan.outcome == PlanOutcome::Apply {
        let steps: Vec<String> = shadow.plan.steps.iter().map(Step::to_string).collect();
        writeln!(out, "  steps would be: {}", steps.join(", "))?;
    }
    if !shadow.plan.reproducible {
        writeln!(out, "  A time or stack limit had a part in this: another run may differ.")?;
    }
    let note = "It decides nothing: the plan above is the same without --shadow.";
    writeln!(out, "  {}", look.paint(Colour::Dim, note))?;
    Ok(())
}

fn who(policy: &ShadowPolicy) -> String {
    let version = policy.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    let place = if policy.replaces { ", in place of the one of its name" } else { "" };
    let name = format!("{}{version} ({}{place})", policy.policy, policy.layer);
    match (policy.failure, &policy.message) {
        (Some(failure), Some(message)) => {
            format!("{name} cannot be loaded: {failure}: {message}")
        }
        _ => name,
    }
}

/// `reboot (fallback)`
fn fate(fate: &Fate) -> String {
    let asks = match fate.outcome {
        ChangeOutcome::Refused => "refused".to_owned(),
        _ if fate.actions.is_empty() => "no action".to_owned(),
        _ => fate.actions.iter().map(Step::to_string).collect::<Vec<_>>().join(", "),
    };
    let by = match (&fate.decided_by, fate.outcome) {
        (Some(policy), ChangeOutcome::Failed) => {
            format!("failed: {} {}", policy.policy, policy.version)
        }
        (Some(policy), _) => format!("{} {}", policy.policy, policy.version),
        (None, ChangeOutcome::Refused | ChangeOutcome::Decided) => "tread itself".to_owned(),
        (None, _) => "fallback".to_owned(),
    };
    format!("{asks} ({by})")
}

fn said(answer: &GivenAnswer) -> String {
    let GivenAnswer { policy, answer: word, reason, .. } = answer;
    match word.as_str() {
        "act" => format!("{policy}: {reason}"),
        "abstain" => format!("{policy} abstains: {reason}").trim_end_matches(": ").to_owned(),
        "refuse" => format!("{policy} refuses: {reason}"),
        NOT_ASKED => format!("{policy} is not asked: {reason}"),
        failure => format!("{policy} failed: {failure}: {reason}"),
    }
}
