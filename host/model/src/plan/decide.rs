//! The decision on one change, from all that policies said of it.

use super::schema::{ChangeOutcome, PolicyIdentity};
use super::steps::{Step, effect_of};
use crate::claim::Kind;
use crate::effect::Effect;
use crate::verdict::{Action, Answer, Failure, Layer, Verdict};
use std::cmp::Reverse;

/// What one policy said of one change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement<'p> {
    /// Who said it.
    pub policy: &'p PolicyIdentity,
    /// Whether an admin lets its actions stand against the built-ins.
    pub may_relax: bool,
    /// What it said.
    pub said: Said,
}

/// An answer, or the failure to give one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// An answer that keeps the contract.
    Verdict(Verdict),
    /// Everything else.
    Failed(Failure),
}

/// What was decided on one change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// How it came about.
    pub outcome: ChangeOutcome,
    /// What it asks for; empty for a refusal.
    pub actions: Vec<Action>,
    /// The statement that decided, by index; none for a fallback.
    pub by: Option<usize>,
    /// Why, in the words of whoever decided.
    pub reason: String,
    /// What others ask for besides, each in a sentence that names them.
    pub also: Vec<String>,
    /// The statements that did not count, by index.
    pub overruled: Vec<usize>,
}

impl Decision {
    /// What the host itself says costs nothing.
    pub(super) fn settled(reason: String) -> Decision {
        Decision {
            outcome: ChangeOutcome::Decided,
            actions: Vec::new(),
            by: None,
            reason,
            also: Vec::new(),
            overruled: Vec::new(),
        }
    }
}

/// Decides on one change from all that was said of it, in any order.
///
/// The higher layer decides (law 3), but one that fails takes nobody's refusal away (law 2); template and built-in policies combine as
/// one layer, in which a failure is a reboot, and refuse beats reboot beats the
/// union of the actions beats abstaining (law 4). Where nobody answers, it is
/// a reboot (law 1).
pub fn decide(change_id: &str, statements: &[Statement<'_>]) -> Decision {
    let of = |admin: bool| {
        let in_layer =
            move |statement: &Statement<'_>| (statement.policy.layer == Layer::Admin) == admin;
        (0..).zip(statements).filter(move |(_, statement)| in_layer(statement)).collect::<Vec<_>>()
    };
    if let Some(decision) = combine(&of(true)) {
        let failed = decision.outcome == ChangeOutcome::Failed;
        let below = failed.then(|| combine(&of(false))).flatten();
        if let Some(refused) = below.filter(|it| it.outcome == ChangeOutcome::Refused) {
            let overruled = of(true).iter().map(|(index, _)| *index).collect();
            return Decision { overruled, ..refused };
        }
        return Decision {
            overruled: of(false).iter().map(|(index, _)| *index).collect(),
            ..decision
        };
    }
    let relaxed = statements.iter().any(|statement| {
        statement.policy.layer == Layer::Template
            && statement.may_relax
            && answers_with_actions(statement)
    });
    let dropped = |statement: &Statement<'_>| {
        relaxed
            && statement.policy.layer == Layer::Builtin
            && matches!(statement.said, Said::Verdict(_))
    };
    let (overruled, counted): (Vec<_>, Vec<_>) =
        of(false).into_iter().partition(|(_, statement)| dropped(statement));
    let overruled = overruled.into_iter().map(|(index, _)| index).collect();
    match combine(&counted) {
        Some(decision) => floor(change_id, Decision { overruled, ..decision }),
        None => Decision {
            outcome: ChangeOutcome::Fallback,
            actions: vec![Action::Reboot],
            by: None,
            reason: unanswered(statements),
            also: Vec::new(),
            overruled,
        },
    }
}

/// What stands in place of a reason where nobody gave an answer.
fn unanswered(statements: &[Statement<'_>]) -> String {
    let mut abstained: Vec<String> = statements
        .iter()
        .map(|statement| match reason_of(&statement.said) {
            "" => statement.policy.policy.clone(),
            reason => format!("{} ({reason})", statement.policy.policy),
        })
        .collect();
    abstained.sort();
    if abstained.is_empty() {
        return "No policy claims this, so nobody has said that less than a reboot is enough."
            .to_owned();
    }
    format!("Whoever claims this abstained, so it costs a reboot: {}.", abstained.join(", "))
}

fn answers_with_actions(statement: &Statement<'_>) -> bool {
    matches!(&statement.said, Said::Verdict(Verdict { answer: Answer::Act(_), .. }))
}

/// How much a statement asks for; nothing if it abstains.
fn weight(said: &Said) -> Option<Effect> {
    match said {
        Said::Failed(_) => Some(Effect::Reboot),
        Said::Verdict(verdict) => match &verdict.answer {
            Answer::Abstain => None,
            Answer::Act(actions) => Some(effect_of(actions)),
            Answer::Refuse => Some(Effect::Refuse),
        },
    }
}

/// Combines what was said within one layer; nothing if all abstained.
fn combine(statements: &[(usize, &Statement<'_>)]) -> Option<Decision> {
    let answered = || {
        statements.iter().filter_map(|(index, statement)| {
            weight(&statement.said).map(|weight| (weight, *index, *statement))
        })
    };
    // Of equal weights a failure is the one to name, then the first by name, so
    // that the order in which policies were asked does not show.
    let (weight, index, decider) = answered().max_by_key(|(weight, _, statement)| {
        let failed = matches!(statement.said, Said::Failed(_));
        (*weight, failed, Reverse((statement.policy.layer, &statement.policy.policy)))
    })?;
    let by = Some(index);
    let (also, overruled) = (Vec::new(), Vec::new());
    if let Said::Failed(failure) = &decider.said {
        let reason = format!(
            "The policy {} failed ({failure}), so this costs a reboot.",
            decider.policy.policy
        );
        let actions = vec![Action::Reboot];
        let outcome = ChangeOutcome::Failed;
        return Some(Decision { outcome, actions, by, reason, also, overruled });
    }
    let reason = reason_of(&decider.said).to_owned();
    if weight == Effect::Refuse {
        let actions = Vec::new();
        let outcome = ChangeOutcome::Refused;
        return Some(Decision { outcome, actions, by, reason, also, overruled });
    }
    let mut actions: Vec<Action> = answered()
        .flat_map(|(_, _, statement)| match &statement.said {
            Said::Verdict(Verdict { answer: Answer::Act(actions), .. }) => actions.clone(),
            Said::Verdict(_) => Vec::new(),
            Said::Failed(_) => vec![Action::Reboot],
        })
        .collect();
    actions.sort();
    actions.dedup();
    let mut also: Vec<String> = answered()
        .filter(|(_, other, _)| *other != index)
        .filter_map(|(_, _, statement)| addition(statement, decider))
        .collect();
    also.sort();
    Some(Decision { outcome: ChangeOutcome::Decided, actions, by, reason, also, overruled })
}

/// What a statement asks for that the decider does not, as a sentence.
fn addition(statement: &Statement<'_>, decider: &Statement<'_>) -> Option<String> {
    let actions = |said: &Said| match said {
        Said::Verdict(Verdict { answer: Answer::Act(actions), .. }) => actions.clone(),
        _ => Vec::new(),
    };
    let asked = actions(&decider.said);
    let more: Vec<String> = actions(&statement.said)
        .iter()
        .filter(|action| !asked.contains(action))
        .map(|action| Step::from(action).to_string())
        .collect();
    if more.is_empty() {
        return None;
    }
    let name = &statement.policy.policy;
    let sentence = match reason_of(&statement.said) {
        "" => format!("{name} adds {}", more.join(", ")),
        reason => format!("{name} adds {}: {reason}", more.join(", ")),
    };
    Some(ended(&sentence))
}

/// The sentence with a full stop at its end, so that another one can follow.
pub(super) fn ended(text: &str) -> String {
    let text = text.trim_end();
    let stop = if text.is_empty() || text.ends_with(['.', '!', '?', '…']) { "" } else { "." };
    format!("{text}{stop}")
}

fn reason_of(said: &Said) -> &str {
    match said {
        Said::Verdict(verdict) => &verdict.reason,
        Said::Failed(failure) => &failure.message,
    }
}

/// A decision on a change that never takes less than a reboot unless the admin layer
/// says so.
fn floor(change_id: &str, decision: Decision) -> Decision {
    let soft = decision.outcome == ChangeOutcome::Decided
        && !decision.actions.iter().any(|action| Step::from(action) == Step::Reboot);
    if !soft || !Kind::is_applied_by_boot(change_id) {
        return decision;
    }
    Decision {
        actions: vec![Action::Reboot],
        reason: format!(
            "{} It takes effect at boot, so it costs a reboot unless an admin-layer policy says otherwise.",
            ended(&decision.reason)
        )
        .trim_start()
        .to_owned(),
        ..decision
    }
}

#[cfg(test)]
mod tests;
