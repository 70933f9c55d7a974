//! Asking the policies, layer by layer.

use super::answers::Answers;
use super::asking::{Asked, Asking, CallRecord, Said};
use super::heard::Heard;
use super::question::digests;
use crate::policy::{Policy, PolicySet};
use crate::sandbox::Sandbox;
use std::cell::OnceCell;
use std::time::{Duration, Instant};
use tread_model::change::{Entry, State};
use tread_model::config::NodeConfig;
use tread_model::diff::{Comparison, unchanged};
use tread_model::digest::Digest;
use tread_model::plan::{self, Statement};
use tread_model::problem::Problems;
use tread_model::secrets::is_secret;
use tread_model::touch::OwnUnits;
use tread_model::verdict::{Answer, Layer, Verdict};

/// Asking the policies about the changes of one plan.
pub(super) struct Round<'r, 'a> {
    sandbox: &'r Sandbox,
    policies: &'r PolicySet,
    sides: (&'r NodeConfig<'a>, &'r NodeConfig<'a>),
    comparison: &'r Comparison<'a>,
    /// What was said so far, for each change.
    pub(super) statements: Vec<Vec<Statement<'r>>>,
    pub(super) reproducible: bool,
    pub(super) calls: Vec<CallRecord>,
    /// What the configs say of units, once somebody wants to touch one.
    pub(super) units: OnceCell<OwnUnits<'r>>,
    pub(super) offered_secrets: bool,
    /// How long it took.
    pub(super) asking: Duration,
    /// What was answered before, and the digest of each change.
    remembered: Option<(&'r Answers, Vec<Digest>)>,
}

impl<'r, 'a> Round<'r, 'a> {
    pub(super) fn new(
        sandbox: &'r Sandbox,
        policies: &'r PolicySet,
        sides: (&'r NodeConfig<'a>, &'r NodeConfig<'a>),
        comparison: &'r Comparison<'a>,
    ) -> Round<'r, 'a> {
        let statements = comparison.changes.iter().map(|_| Vec::new()).collect();
        let calls = Vec::new();
        Round {
            sandbox,
            policies,
            sides,
            comparison,
            statements,
            reproducible: true,
            calls,
            units: OnceCell::new(),
            offered_secrets: false,
            asking: Duration::ZERO,
            remembered: None,
        }
    }

    /// Asks nothing that is answered there.
    pub(super) fn remembering(mut self, answers: Option<&'r Answers>) -> Round<'r, 'a> {
        self.remembered = answers.map(|it| (it, digests(&self.comparison.changes)));
        self
    }

    /// Asks all who are to be asked, the admin layer first.
    pub(super) fn finished(mut self) -> Result<Round<'r, 'a>, Problems> {
        self.ask(|layer| layer == Layer::Admin)?;
        self.ask(|layer| layer != Layer::Admin)?;
        Ok(self)
    }

    /// Asks every policy of some layers that claims something which is still
    /// open (law 3). What an admin's policy failed for is: somebody may have to refuse it.
    fn ask(&mut self, layers: impl Fn(Layer) -> bool) -> Result<(), Problems> {
        let all = self.policies.policies();
        let mut offers: Vec<Vec<usize>> = all.iter().map(|_| Vec::new()).collect();
        for (index, change) in self.comparison.changes.iter().enumerate() {
            if self.statements.get(index).is_some_and(|said| said.iter().any(has_decided)) {
                continue;
            }
            for (policy, _) in self.policies.router().claimants(&change.id) {
                let asked = all.get(policy).is_some_and(|policy| layers(policy.identity.layer));
                // A change may match several claims of one policy.
                if let Some(offer) = offers.get_mut(policy)
                    && asked
                    && offer.last() != Some(&index)
                {
                    offer.push(index);
                }
            }
        }
        let offers = all.iter().zip(offers).filter(|(_, offer)| !offer.is_empty());
        let start = Instant::now();
        let mut questions = Vec::new();
        for (policy, offer) in offers {
            // If nobody waits any more, no plan is made, whatever was answered.
            if self.has_ended() {
                return Ok(());
            }
            let entries = self.neighbours(policy, &offer)?;
            let question = Asked { policy, offer, entries };
            // What an admin's policies are asked follows from what the ones before said.
            match policy.identity.layer {
                Layer::Admin => self.hear(&[question]),
                Layer::Template | Layer::Builtin => questions.push(question),
            }
        }
        self.hear(&questions);
        self.asking += start.elapsed();
        Ok(())
    }

    fn has_ended(&self) -> bool {
        self.remembered.as_ref().is_some_and(|(answers, _)| answers.has_ended())
    }

    /// Asks policies, and notes what they say.
    fn hear(&mut self, questions: &[Asked<'r, 'a>]) {
        let asking = Asking {
            sandbox: self.sandbox,
            comparison: self.comparison,
            remembered: self.remembered.as_ref(),
        };
        let answered = asking.all(questions);
        let (before, after) = self.sides;
        for (question, answered) in questions.iter().zip(answered) {
            // Nobody waits any more.
            let Some(Said { heard, mut record, offered_secrets }) = answered else { continue };
            let Asked { policy, offer, .. } = question;
            self.offered_secrets |= offered_secrets;
            let units = || self.units.get_or_init(|| OwnUnits::of(before, after));
            let heard = heard.held_to(policy, offer, self.comparison, units);
            if let (Some(record), Heard::Failure { failure, .. }) = (&mut record, &heard) {
                record.failure = Some(failure.kind);
            }
            self.calls.extend(record);
            self.note(policy, offer, heard);
        }
    }

    /// Notes what a policy said of each change it was offered. A failure voids
    /// the whole call: it is the policy's word on all of them.
    fn note(&mut self, policy: &'r Policy, offer: &[usize], heard: Heard) {
        let said: Vec<plan::Said> = match heard {
            Heard::Verdicts(verdicts) => {
                let silent = || Verdict { answer: Answer::Abstain, reason: String::new() };
                let verdicts = verdicts.into_iter().map(|it| it.unwrap_or_else(silent));
                verdicts.map(plan::Said::Verdict).collect()
            }
            Heard::Failure { failure, reproducible } => {
                self.reproducible &= reproducible;
                vec![plan::Said::Failed(failure); offer.len()]
            }
        };
        for (index, said) in offer.iter().zip(said) {
            if let Some(of_change) = self.statements.get_mut(*index) {
                of_change.push(statement(policy, said));
            }
        }
    }

    /// What the policy claims `with-unchanged`, as it stands on both sides. `offer` are the changes
    /// that it is asked about.
    fn neighbours(&self, policy: &Policy, offer: &[usize]) -> Result<Vec<Entry<'a>>, Problems> {
        if !policy.sees_unchanged() {
            return Ok(Vec::new());
        }
        let (old, new) = self.sides;
        let changes = &self.comparison.changes;
        let has_changed = |id: &str| changes.binary_search_by(|it| (*it.id).cmp(id)).is_ok();
        let mut entries = unchanged(old, new, |id| policy.wants_unchanged(id) && !has_changed(id))?;
        // What an admin answered for is not offered to this policy as a change. It
        // still belongs to the whole that the policy compares, and is taken as done.
        for (index, (change, said)) in changes.iter().zip(&self.statements).enumerate() {
            // The policy is asked about this change itself, as each of the admin layer that claims it.
            if offer.binary_search(&index).is_ok() {
                continue;
            }
            let answered =
                said.iter().any(|it| it.policy.layer == Layer::Admin && has_answered(it));
            let there = change.after != State::Absent;
            if answered && there && policy.wants_unchanged(&change.id) {
                let (id, state) = (change.id.clone(), change.after.clone());
                entries.push(Entry { id, state, was_secret: is_secret(change) });
            }
        }
        entries.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        Ok(entries)
    }
}

fn statement(policy: &Policy, said: plan::Said) -> Statement<'_> {
    Statement { policy: &policy.identity, may_relax: policy.may_relax, said }
}

/// Whether nobody below has a say any more.
fn has_decided(statement: &Statement<'_>) -> bool {
    matches!(statement.said, plan::Said::Verdict(_)) && has_answered(statement)
}

fn has_answered(statement: &Statement<'_>) -> bool {
    match &statement.said {
        plan::Said::Failed(_) => true,
        plan::Said::Verdict(verdict) => verdict.answer != Answer::Abstain,
    }
}
