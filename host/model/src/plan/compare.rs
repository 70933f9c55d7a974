//! What a plan would be with other policies, beside what it is: for policies
//! that are tried in the shadow, where they decide nothing.

use super::schema::{ChangeOutcome, GivenAnswer, Plan, PlanOutcome, PlannedChange, PolicyIdentity};
use super::steps::Step;
use crate::digest::{Digest, Sha256};
use crate::effect::Effect;
use crate::verdict::{Failure, Layer};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What some policies would have decided.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Shadow {
    /// The answer in one line.
    pub summary: String,
    /// The policies in the shadow; those that cannot be read come last.
    pub policies: Vec<ShadowPolicy>,
    /// The plan with them enforced.
    pub plan: ShadowPlan,
    /// Steps that it does without, in order.
    pub saved: Vec<Step>,
    /// Steps that it takes besides, in order.
    pub added: Vec<Step>,
    /// The changes that they claim, and those that would be decided otherwise.
    pub changes: Vec<ShadowChange>,
    /// How many other changes there are, on which nothing differs.
    pub as_today: usize,
    /// What an admin should know of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A policy in the shadow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShadowPolicy {
    /// Its name; that of its file, if it does not even say its name.
    pub policy: String,
    /// Who would speak.
    pub layer: Layer,
    /// Its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The digest of its component.
    pub digest: Sha256,
    /// The digest of its settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings_digest: Option<Sha256>,
    /// Whether it would replace one of the same name and layer.
    pub replaces: bool,
    /// The stable name of the failure to load it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<&'static str>,
    /// How it failed, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The plan with the policies enforced, without what stands elsewhere.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShadowPlan {
    /// As [`Plan::outcome`].
    pub outcome: PlanOutcome,
    /// As [`Plan::effect`].
    pub effect: Effect,
    /// As [`Plan::summary`].
    pub summary: String,
    /// As [`Plan::drain`].
    pub drain: bool,
    /// As [`Plan::reboot`].
    pub reboot: bool,
    /// As [`Plan::steps`].
    pub steps: Vec<Step>,
    /// As [`Plan::reproducible`].
    pub reproducible: bool,
    /// The digest that the plan will have once they are enforced.
    pub digest: Digest,
}

/// A change, as it is decided today and as it would be.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShadowChange {
    /// As [`PlannedChange::id`].
    pub id: String,
    /// What is decided on it.
    pub today: Fate,
    /// What would be.
    pub would: Fate,
    /// What each policy in the shadow says of it.
    pub answers: Vec<GivenAnswer>,
}

/// What is decided on a change.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fate {
    /// How the decision comes about.
    pub outcome: ChangeOutcome,
    /// What the change asks for by itself.
    pub actions: Vec<Step>,
    /// Who decides; null for a fallback and for what the host refuses.
    pub decided_by: Option<PolicyIdentity>,
    /// The reason, in words.
    pub reason: String,
}

/// What was heard of the policies in the shadow.
#[derive(Debug, Clone, Default)]
pub struct Heard {
    /// Who they are.
    pub policies: Vec<ShadowPolicy>,
    /// What they said, by the id of the change.
    pub answers: BTreeMap<String, Vec<GivenAnswer>>,
    /// What an admin should know of them.
    pub warnings: Vec<String>,
}

/// Stands in place of an answer where the admin layer has decided already.
pub const NOT_ASKED: &str = "not-asked";

impl Shadow {
    /// Whether it would take other steps.
    pub fn differs(&self) -> bool {
        !self.saved.is_empty() || !self.added.is_empty()
    }

    /// The policies in the shadow that answered for a change which would be decided
    /// otherwise.
    pub fn makers(&self) -> BTreeSet<&str> {
        let other = self.changes.iter().filter(|change| change.today != change.would);
        other.flat_map(|change| change.answers.iter().map(|it| it.policy.as_str())).collect()
    }
}

impl ShadowPolicy {
    /// One that says who it is.
    pub fn new(identity: &PolicyIdentity, replaces: bool, failure: Option<&Failure>) -> Self {
        ShadowPolicy {
            policy: identity.policy.clone(),
            layer: identity.layer,
            version: Some(identity.version.clone()),
            digest: identity.digest,
            settings_digest: Some(identity.settings_digest),
            replaces,
            failure: failure.map(|failure| failure.kind.name()),
            message: failure.map(|failure| failure.message.clone()),
        }
    }
}

/// Compares the plan as it is with the plan as it would be, of the same
/// changes.
pub fn compare(today: &Plan, would: &Plan, mut heard: Heard) -> Shadow {
    let fates: BTreeMap<&str, &PlannedChange> =
        today.changes.iter().map(|change| (change.id.as_str(), change)).collect();
    let mut changes = Vec::new();
    for change in &would.changes {
        let Some(now) = fates.get(change.id.as_str()) else { continue };
        let answers = heard.answers.remove(&change.id).unwrap_or_default();
        let (now, then) = (fate(now), fate(change));
        let differs = (now.outcome, &now.actions, &now.decided_by)
            != (then.outcome, &then.actions, &then.decided_by);
        if differs || !answers.is_empty() {
            changes.push(ShadowChange { id: change.id.clone(), today: now, would: then, answers });
        }
    }
    let without = |one: &[Step], other: &[Step]| -> Vec<Step> {
        let other: BTreeSet<&Step> = other.iter().collect();
        one.iter().filter(|step| !other.contains(step)).cloned().collect()
    };
    let saved = without(&today.steps, &would.steps);
    let added = without(&would.steps, &today.steps);
    Shadow {
        summary: summary(today, would, &saved, &added),
        policies: heard.policies,
        plan: ShadowPlan {
            outcome: would.outcome,
            effect: would.effect,
            summary: would.summary.clone(),
            drain: would.drain,
            reboot: would.reboot,
            steps: would.steps.clone(),
            reproducible: would.reproducible,
            digest: would.digest,
        },
        saved,
        added,
        as_today: would.changes.len().saturating_sub(changes.len()),
        changes,
        warnings: heard.warnings,
    }
}

fn fate(change: &PlannedChange) -> Fate {
    Fate {
        outcome: change.outcome,
        actions: change.actions.clone(),
        decided_by: change.decided_by.clone(),
        reason: change.reason.clone(),
    }
}

fn summary(today: &Plan, would: &Plan, saved: &[Step], added: &[Step]) -> String {
    match (today.outcome, would.outcome) {
        (PlanOutcome::Refuse, PlanOutcome::Refuse) => "refused, as today".to_owned(),
        (_, PlanOutcome::Refuse) => would.summary.clone(),
        (PlanOutcome::Refuse, _) => format!("not refused any more: {}", would.summary),
        _ if saved.is_empty() && added.is_empty() => "the same steps as today".to_owned(),
        _ => [("saves", saved), ("adds", added)]
            .into_iter()
            .filter(|(_, steps)| !steps.is_empty())
            .map(|(word, steps)| format!("{word} {}", counted(steps)))
            .collect::<Vec<_>>()
            .join("; "),
    }
}

/// `2 steps (drain, reboot)`
fn counted(steps: &[Step]) -> String {
    let names: Vec<String> = steps.iter().map(Step::to_string).collect();
    let noun = if steps.len() == 1 { "step" } else { "steps" };
    format!("{} {noun} ({})", steps.len(), names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Edit;
    use crate::plan::{Decided, Said, Statement, build};
    use crate::verdict::{Action, Answer, Verdict};

    fn identity(name: &str) -> PolicyIdentity {
        PolicyIdentity {
            policy: name.to_owned(),
            layer: Layer::Template,
            version: "1.0.0".to_owned(),
            digest: Sha256::of(name.as_bytes()),
            settings_digest: Sha256::of(b"{}"),
        }
    }

    /// A plan of changes, each with the answer of one policy, or nobody's.
    fn plan(policy: &PolicyIdentity, answers: &[(&str, Option<Answer>)]) -> Plan {
        let decided = answers.iter().map(|(id, answer)| Decided {
            id: (*id).to_owned(),
            edit: Edit::Changed,
            settled: None,
            statements: answer
                .iter()
                .map(|answer| Statement {
                    policy,
                    may_relax: false,
                    said: Said::Verdict(Verdict {
                        answer: answer.clone(),
                        reason: "because".to_owned(),
                    }),
                })
                .collect(),
        });
        let configs = (Digest::of(b"from"), Digest::of(b"to"));
        build(configs, decided.collect(), &[], Vec::new(), true)
    }

    fn restart(unit: &str) -> Option<Answer> {
        Some(Answer::Act(vec![Action::Restart(unit.to_owned())]))
    }

    #[test]
    fn what_is_saved_and_what_is_added_is_said_in_steps() {
        let policy = identity("a");
        let nothing = Some(Answer::Act(Vec::new()));
        let reboot = Some(Answer::Act(vec![Action::Reboot]));
        for (today, would, summary) in [
            (
                None,
                restart("a.service"),
                "saves 3 steps (drain, reboot, uncordon); adds 1 step (restart a.service)",
            ),
            (None, None, "the same steps as today"),
            (None, reboot.clone(), "the same steps as today"),
            (nothing.clone(), restart("a.service"), "adds 1 step (restart a.service)"),
            (restart("a.service"), nothing.clone(), "saves 1 step (restart a.service)"),
            (nothing.clone(), reboot, "adds 3 steps (drain, reboot, uncordon)"),
            (None, Some(Answer::Refuse), "refused; a (template) refuses: file:/etc/a"),
            (Some(Answer::Refuse), nothing, "not refused any more: no action; no drain, no reboot"),
            (Some(Answer::Refuse), Some(Answer::Refuse), "refused, as today"),
        ] {
            let today = plan(&policy, &[("file:/etc/a", today)]);
            let would = plan(&policy, &[("file:/etc/a", would)]);
            assert_eq!(compare(&today, &would, Heard::default()).summary, summary);
        }
    }

    #[test]
    fn a_change_is_listed_where_it_differs_or_was_answered_and_the_rest_is_counted() {
        let (old, new) = (identity("a"), identity("b"));
        let ids = ["file:/etc/a", "file:/etc/b", "file:/etc/c"];
        let today = plan(&old, &[(ids[0], None), (ids[1], None), (ids[2], None)]);
        let would = plan(&new, &[(ids[0], restart("a.service")), (ids[1], None), (ids[2], None)]);
        let abstained = GivenAnswer {
            policy: "b".to_owned(),
            layer: Layer::Template,
            answer: "abstain".to_owned(),
            actions: Vec::new(),
            reason: String::new(),
            counted: true,
        };
        let heard = Heard {
            answers: BTreeMap::from([(ids[1].to_owned(), vec![abstained])]),
            ..Heard::default()
        };
        let shadow = compare(&today, &would, heard);
        let listed: Vec<&str> = shadow.changes.iter().map(|it| it.id.as_str()).collect();
        assert_eq!(listed, [ids[0], ids[1]]);
        assert_eq!(shadow.as_today, 1);
        let first = &shadow.changes[0];
        assert_eq!(first.today.outcome, ChangeOutcome::Fallback);
        assert_eq!(first.would.decided_by, Some(new));
        assert_eq!(shadow.makers(), BTreeSet::new(), "whoever abstained on another change");
        // Another change still costs the reboot.
        assert_eq!(shadow.summary, "the same steps as today");
        assert_eq!(shadow.plan.digest, would.digest);
    }

    #[test]
    fn another_decider_of_the_same_actions_is_a_difference() {
        let (old, new) = (identity("a"), identity("b"));
        let today = plan(&old, &[("file:/etc/a", restart("a.service"))]);
        let would = plan(&new, &[("file:/etc/a", restart("a.service"))]);
        let shadow = compare(&today, &would, Heard::default());
        assert_eq!(shadow.changes.len(), 1);
        assert_eq!((shadow.saved, shadow.added), (Vec::new(), Vec::new()));
    }
}
