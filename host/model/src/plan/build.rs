//! From what was said of each change to the whole plan.

use super::decide::{Decision, Said, Statement, decide, ended};
use super::decider::Decider;
use super::digest::plan_digest;
use super::schema::{
    ChangeOutcome, GivenAnswer, Plan, PlanOutcome, PlannedChange, PolicyIdentity, SCHEMA,
};
use super::steps::{Step, needs_daemon_reload, steps};
use crate::change::Edit;
use crate::claim::escaped;
use crate::digest::Digest;
use crate::effect::Effect;
use crate::refuse::Refusal;
use crate::text::listed;
use crate::verdict::{Action, Answer, Failure, FailureKind, Layer};
use std::collections::BTreeMap;

/// How many changes a summary names.
const NAMED: usize = 5;

/// A change with all that was said of it.
#[derive(Debug, Clone)]
pub struct Decided<'p> {
    /// The change's id.
    pub id: String,
    /// What was done to it.
    pub edit: Edit,
    /// What the policies said, in any order.
    pub statements: Vec<Statement<'p>>,
    /// Why the host itself says that nothing has to be done; nobody was asked.
    pub settled: Option<String>,
}

/// Merges everything into the plan that leads from one config to the other.
pub fn build(
    (from, to): (Digest, Digest),
    changes: Vec<Decided<'_>>,
    refusals: &[Refusal],
    warnings: Vec<String>,
    reproducible: bool,
) -> Plan {
    let mut daemon_reload = false;
    let mut planned: Vec<PlannedChange> = Vec::with_capacity(changes.len() + refusals.len());
    // Keyed as they are shown and digested; the flag says whether one decided.
    let mut policies: BTreeMap<_, (&PolicyIdentity, bool)> = BTreeMap::new();
    for change in &changes {
        let decision = match &change.settled {
            Some(reason) => Decision::settled(reason.clone()),
            None => decide(&change.id, &change.statements),
        };
        for (index, statement) in change.statements.iter().enumerate() {
            let key = (statement.policy.layer, &statement.policy.policy);
            let entry = policies.entry(key).or_insert((statement.policy, false));
            entry.1 |= !decision.overruled.contains(&index) && has_opinion(&statement.said);
        }
        daemon_reload |= needs_daemon_reload(&change.id);
        planned.push(planned_change(change, decision));
    }
    planned.extend(refusals.iter().map(refused_change));
    planned.sort_by(|a, b| a.id.cmp(&b.id));

    let outcome = if planned.iter().any(|change| change.outcome == ChangeOutcome::Refused) {
        PlanOutcome::Refuse
    } else if planned.is_empty() {
        PlanOutcome::Nothing
    } else {
        PlanOutcome::Apply
    };
    let steps = match outcome {
        PlanOutcome::Apply => {
            steps(planned.iter().flat_map(|change| &change.decided), daemon_reload)
        }
        PlanOutcome::Nothing | PlanOutcome::Refuse => Vec::new(),
    };
    let decided = policies.values().filter(|(_, decided)| *decided);
    let deciders: Vec<Decider> = decided.map(|(policy, _)| Decider::from(*policy)).collect();
    let effect = match outcome {
        PlanOutcome::Refuse => Effect::Refuse,
        _ => steps.iter().map(Step::effect).max().unwrap_or(Effect::None),
    };
    Plan {
        schema: SCHEMA,
        outcome,
        effect,
        summary: summary(outcome, &steps, &planned),
        drain: steps.contains(&Step::Drain),
        reboot: steps.contains(&Step::Reboot),
        digest: plan_digest(outcome, &from, &to, &deciders, &steps),
        policies: policies.values().map(|(policy, _)| (*policy).clone()).collect(),
        deciders,
        steps,
        changes: planned,
        warnings,
        reproducible,
        from,
        to,
    }
}

fn has_opinion(said: &Said) -> bool {
    match said {
        Said::Verdict(verdict) => verdict.answer != Answer::Abstain,
        Said::Failed(_) => true,
    }
}

/// The answer in one line: what happens, and that neither drain nor reboot does
/// where they do not.
fn summary(outcome: PlanOutcome, steps: &[Step], changes: &[PlannedChange]) -> String {
    match outcome {
        PlanOutcome::Nothing => return "nothing to do; both configs mean the same".to_owned(),
        PlanOutcome::Refuse => return refusals(changes),
        PlanOutcome::Apply => {}
    }
    let done: Vec<String> = steps
        .iter()
        .filter(|step| !matches!(step, Step::Write | Step::Uncordon))
        .map(Step::to_string)
        .collect();
    let done = if done.is_empty() { "no action".to_owned() } else { done.join(", ") };
    match (steps.contains(&Step::Drain), steps.contains(&Step::Reboot)) {
        (false, false) => format!("{done}; no drain, no reboot"),
        (true, false) => format!("{done}; no reboot"),
        (false, true) => format!("{done}; no drain"),
        (true, true) => done,
    }
}

/// Who refuses what: tread itself what no running node can take, a policy what
/// it must not.
fn refusals(changes: &[PlannedChange]) -> String {
    let mut by: BTreeMap<Option<(Layer, &str)>, Vec<&str>> = BTreeMap::new();
    for change in changes.iter().filter(|change| change.outcome == ChangeOutcome::Refused) {
        let who = change.decided_by.as_ref().map(|policy| (policy.layer, policy.policy.as_str()));
        by.entry(who).or_default().push(&change.id);
    }
    let parts: Vec<String> = by
        .iter()
        .map(|(who, ids)| match who {
            None => format!("a running node cannot take: {}", listed(ids, NAMED)),
            Some((layer, policy)) => format!("{policy} ({layer}) refuses: {}", listed(ids, NAMED)),
        })
        .collect();
    format!("refused; {}", parts.join("; "))
}

fn planned_change(change: &Decided<'_>, decision: Decision) -> PlannedChange {
    let decider = decision.by.and_then(|index| change.statements.get(index));
    let advice = match (decision.outcome, decider.map(|statement| &statement.said)) {
        (ChangeOutcome::Fallback, _) => Some(advice_for_fallback(&change.id)),
        (_, Some(Said::Failed(failure))) => Some(advice_for_failure(failure)),
        (ChangeOutcome::Refused, _) => {
            decider.map(|statement| advice_for_refusal(&change.id, statement.policy))
        }
        _ => None,
    };
    let answers = match change.statements.as_slice() {
        [] | [_] => Vec::new(),
        all => {
            let mut answers: Vec<GivenAnswer> = all
                .iter()
                .enumerate()
                .map(|(index, statement)| given(statement, !decision.overruled.contains(&index)))
                .collect();
            answers.sort_by(|a, b| (a.layer, &a.policy).cmp(&(b.layer, &b.policy)));
            answers
        }
    };
    PlannedChange {
        id: change.id.clone(),
        edit: change.edit,
        outcome: decision.outcome,
        actions: shown(&decision.actions),
        decided: decision.actions,
        decided_by: decider.map(|statement| statement.policy.clone()),
        reason: match decision.also.as_slice() {
            [] => decision.reason,
            also => format!("{} {}", ended(&decision.reason), also.join(" ")).trim().to_owned(),
        },
        also: decision.also,
        advice,
        answers,
        instead_of: None,
        difference: None,
    }
}

/// Actions as steps, in the steps' order, each once.
fn shown(actions: &[Action]) -> Vec<Step> {
    let mut steps: Vec<Step> = actions.iter().map(Step::from).collect();
    steps.sort();
    steps.dedup();
    steps
}

fn given(statement: &Statement<'_>, counted: bool) -> GivenAnswer {
    let (answer, actions, reason) = match &statement.said {
        Said::Failed(failure) => (failure.kind.name(), Vec::new(), &failure.message),
        Said::Verdict(verdict) => match &verdict.answer {
            Answer::Abstain => ("abstain", Vec::new(), &verdict.reason),
            Answer::Act(actions) => ("act", shown(actions), &verdict.reason),
            Answer::Refuse => ("refuse", Vec::new(), &verdict.reason),
        },
    };
    GivenAnswer {
        policy: statement.policy.policy.clone(),
        layer: statement.policy.layer,
        answer: answer.to_owned(),
        actions,
        reason: reason.clone(),
        counted,
    }
}

/// What each policy said of a change, as plans show it.
pub fn given_answers(change_id: &str, statements: &[Statement<'_>]) -> Vec<GivenAnswer> {
    let overruled = decide(change_id, statements).overruled;
    let counts = |index: usize| !overruled.contains(&index);
    (0..).zip(statements).map(|(index, it)| given(it, counts(index))).collect()
}

fn refused_change(refusal: &Refusal) -> PlannedChange {
    PlannedChange {
        id: refusal.id.clone(),
        edit: refusal.edit,
        outcome: ChangeOutcome::Refused,
        actions: Vec::new(),
        decided: Vec::new(),
        decided_by: None,
        reason: format!("{}: {}", refusal.field, refusal.reason),
        also: Vec::new(),
        advice: None,
        answers: Vec::new(),
        instead_of: None,
        difference: None,
    }
}

fn advice_for_fallback(id: &str) -> String {
    let id = escaped(id);
    format!(
        "If less is enough, say so: an admin with a rule for {id} (--rules), or the owner of the \
         template with a policy (--policy)."
    )
}

fn advice_for_refusal(id: &str, policy: &PolicyIdentity) -> String {
    match policy.layer {
        Layer::Admin => format!(
            "An admin set the rules of {}: leave {id} as it was, or have them change the rule.",
            policy.policy
        ),
        Layer::Template | Layer::Builtin => format!(
            "Correct {id}, or leave it as it was. If it is right as it is, an admin's rule for it \
             (--rules) overrules {}.",
            policy.policy
        ),
    }
}

fn advice_for_failure(failure: &Failure) -> String {
    match failure.kind {
        FailureKind::OutOfFuel
        | FailureKind::Deadline
        | FailureKind::Memory
        | FailureKind::Stack
        | FailureKind::Trap
        | FailureKind::BadOutput
        | FailureKind::UnknownChange
        | FailureKind::InvalidUnit
        | FailureKind::BeyondClaim => {
            "Give this message to the policy's author. Until it is mended, an admin rule for this \
             change decides instead of the policy."
        }
        FailureKind::InvalidSettings => "Correct the policy's settings.",
        FailureKind::ForbiddenImport
        | FailureKind::TooLarge
        | FailureKind::NotAComponent
        | FailureKind::CompileTimeout
        | FailureKind::CompileFailed
        | FailureKind::WrongWorld
        | FailureKind::BadDescription => {
            "The module cannot be loaded: give this message to its author, and load the version \
             before it until then."
        }
        FailureKind::DigestMismatch => {
            "Somebody replaced the module: compare it with what was approved, then pin the new \
             digest or restore the old module."
        }
        FailureKind::Missing => "Restore the module, or remove the policy that refers to it.",
        FailureKind::NoRoom => "The host could not run the policy: see its log, then plan again.",
    }
    .to_owned()
}

#[cfg(test)]
mod tests;
