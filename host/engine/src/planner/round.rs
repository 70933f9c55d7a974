//! Asking the policies, layer by layer.

use super::answers::{Answers, digests};
use super::heard::Heard;
use crate::discretion::offers_secret;
use crate::policy::{Policy, PolicySet};
use crate::sandbox::{Call, CallFailure, Module, Sandbox, Spent};
use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tread_model::change::{Change, Entry, State};
use tread_model::config::NodeConfig;
use tread_model::diff::{Comparison, unchanged};
use tread_model::digest::Digest;
use tread_model::plan::{Said, Statement};
use tread_model::problem::Problems;
use tread_model::secrets::{Tokens, is_secret};
use tread_model::touch::OwnUnits;
use tread_model::verdict::{Answer, FailureKind, Layer, Verdict};

/// One call of a policy.
#[derive(Debug, Clone, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallRecord {
    /// Which policy.
    pub policy: String,
    /// How many changes it was offered.
    pub offered: usize,
    /// Getting its module ready, compiling included.
    pub load: Duration,
    /// What the call used; None: it was offered a secret, which it could tell by
    /// what it uses.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub used: Option<Used>,
    /// What it wrote to its log: for its author, and no part of any output.
    #[serde(skip)]
    pub log: Vec<String>,
    /// How it failed. The plan says so, too.
    #[serde(skip)]
    pub failure: Option<FailureKind>,
}

/// What a call of a policy used.
#[derive(Debug, Clone, Copy, Default, serde::Serialize)]
pub struct Used {
    /// How long it took.
    pub call: Duration,
    /// Of its fuel.
    pub fuel: u64,
}

impl CallRecord {
    fn of(policy: &Policy, offer: &[usize]) -> CallRecord {
        CallRecord {
            policy: policy.identity.policy.clone(),
            offered: offer.len(),
            load: Duration::ZERO,
            used: Some(Used::default()),
            log: Vec::new(),
            failure: None,
        }
    }
}

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
    /// open (law 3).
    fn ask(&mut self, layers: impl Fn(Layer) -> bool) -> Result<(), Problems> {
        let all = self.policies.policies();
        let mut offers: Vec<Vec<usize>> = all.iter().map(|_| Vec::new()).collect();
        for (index, change) in self.comparison.changes.iter().enumerate() {
            if self.statements.get(index).is_some_and(|said| said.iter().any(has_answered)) {
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
        for (policy, offer) in all.iter().zip(offers) {
            // If nobody waits any more, no plan is made, whatever was answered.
            if self.remembered.as_ref().is_some_and(|(answers, _)| answers.has_ended()) {
                return Ok(());
            }
            if !offer.is_empty() {
                self.call(policy, &offer)?;
            }
        }
        Ok(())
    }

    /// Asks one policy, and notes what it said of each change it was offered.
    fn call(&mut self, policy: &'r Arc<Policy>, offer: &[usize]) -> Result<(), Problems> {
        let start = Instant::now();
        let module = policy.module(self.sandbox);
        let load = start.elapsed();
        let mut record = None;
        let heard = match module {
            Ok(module) => {
                let entries = self.neighbours(policy)?;
                let offers = offer.iter().filter_map(|index| self.comparison.changes.get(*index));
                self.offered_secrets |=
                    !policy.is_blind() && offers_secret(&offers.collect::<Vec<_>>(), &entries);
                let mut ask = || {
                    let (heard, made) = self.hear(policy, module, offer, &entries);
                    record = Some(CallRecord { load, ..made });
                    heard
                };
                match &self.remembered {
                    Some((answers, digests)) => {
                        let changes = offer.iter().filter_map(|index| digests.get(*index).copied());
                        answers.to(policy, &changes.collect::<Vec<_>>(), &entries, ask)
                    }
                    None => ask(),
                }
            }
            Err(failure) => {
                record = Some(CallRecord {
                    load,
                    failure: Some(failure.kind),
                    ..CallRecord::of(policy, offer)
                });
                Heard::Failure { failure: failure.clone(), reproducible: true }
            }
        };
        let (before, after) = self.sides;
        let units = || self.units.get_or_init(|| OwnUnits::of(before, after));
        let heard = heard.held_to(policy, offer, self.comparison, units);
        if let (Some(record), Heard::Failure { failure, .. }) = (&mut record, &heard) {
            record.failure = Some(failure.kind);
        }
        self.calls.extend(record);
        self.asking += start.elapsed();
        self.note(policy, offer, heard);
        Ok(())
    }

    /// Calls a policy.
    fn hear(
        &self,
        policy: &Policy,
        module: &Module,
        offer: &[usize],
        entries: &[Entry<'a>],
    ) -> (Heard, CallRecord) {
        let mut tokens = policy.is_blind().then(Tokens::default);
        let changes = offer.iter().filter_map(|index| self.comparison.changes.get(*index));
        let changes: Vec<Cow<'_, Change<'a>>> = changes
            .map(|change| match &mut tokens {
                Some(tokens) => tokens.redact(change),
                None => Cow::Borrowed(change),
            })
            .collect();
        let offers: Vec<&Change<'a>> = changes.iter().map(AsRef::as_ref).collect();
        let entries: Cow<'_, [Entry<'a>]> = match &mut tokens {
            Some(tokens) => {
                entries.iter().map(|entry| tokens.redact_entry(entry).into_owned()).collect()
            }
            None => Cow::Borrowed(entries),
        };
        let start = Instant::now();
        let call = Call {
            settings: &policy.settings,
            changes: &offers,
            unchanged: &entries,
            claims: &policy.claims,
            layer: policy.identity.layer,
            speaker: policy.speaker(),
            words: policy.words(),
        };
        let limits = policy.limits().unwrap_or_else(|| self.sandbox.limits());
        let reply = self.sandbox.classify_within(module, &call, limits);
        let took = start.elapsed();
        let record = |spent: Option<Spent>| CallRecord {
            used: spent.map(|Spent { fuel, .. }| Used { call: took, fuel }),
            ..CallRecord::of(policy, offer)
        };
        match reply {
            Ok(reply) => {
                let verdicts = offers.iter().zip(reply.verdicts);
                let verdicts =
                    verdicts.map(|(change, verdict)| with_reason(policy, change, verdict));
                (
                    Heard::Verdicts(verdicts.collect()),
                    CallRecord { log: reply.log, ..record(reply.spent) },
                )
            }
            Err(CallFailure { failure, spent, log, reproducible }) => {
                let record = CallRecord { log, failure: Some(failure.kind), ..record(spent) };
                (Heard::Failure { failure, reproducible }, record)
            }
        }
    }

    /// Notes what a policy said of each change it was offered. A failure voids
    /// the whole call: it is the policy's word on all of them.
    fn note(&mut self, policy: &'r Policy, offer: &[usize], heard: Heard) {
        let said: Vec<Said> = match heard {
            Heard::Verdicts(verdicts) => {
                let silent = || Verdict { answer: Answer::Abstain, reason: String::new() };
                let verdicts = verdicts.into_iter().map(|it| it.unwrap_or_else(silent));
                verdicts.map(Said::Verdict).collect()
            }
            Heard::Failure { failure, reproducible } => {
                self.reproducible &= reproducible;
                vec![Said::Failed(failure); offer.len()]
            }
        };
        for (index, said) in offer.iter().zip(said) {
            if let Some(of_change) = self.statements.get_mut(*index) {
                of_change.push(statement(policy, said));
            }
        }
    }

    /// What the policy claims `with-unchanged`, as it stands on both sides.
    fn neighbours(&self, policy: &Policy) -> Result<Vec<Entry<'a>>, Problems> {
        if !policy.claims.iter().any(|claim| claim.with_unchanged) {
            return Ok(Vec::new());
        }
        let (old, new) = self.sides;
        let mut entries = unchanged(old, new, |id| policy.wants_unchanged(id))?;
        // What an admin answered for is not offered to this policy as a change. It
        // still belongs to the whole that the policy compares, and is taken as done.
        for (change, said) in self.comparison.changes.iter().zip(&self.statements) {
            let answered =
                said.iter().any(|it| it.policy.layer == Layer::Admin && has_answered(it));
            let there = change.after != State::Absent;
            if answered && there && policy.wants_unchanged(&change.id) {
                entries.push(Entry { id: change.id.clone(), state: change.after.clone() });
            }
        }
        entries.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        Ok(entries)
    }
}

/// The verdict of a policy that needs secrets and may not read them: it says why it
/// has no opinion on this one, and who can change that.
fn with_reason(policy: &Policy, change: &Change<'_>, said: Option<Verdict>) -> Option<Verdict> {
    let silent = said.as_ref().is_none_or(|verdict| verdict.answer == Answer::Abstain);
    if !(silent && policy.misses_secrets() && is_secret(change)) {
        return said;
    }
    let what = if change.id.starts_with("file:") { "file" } else { "secret" };
    let mut reason = format!(
        "it may not read this {what}: `--read-secrets {}`, in a cluster `spec.readSecrets: true`, \
         lets it",
        policy.identity.policy
    );
    if let Some(own) = said.map(|verdict| verdict.reason).filter(|own| !own.is_empty()) {
        reason = format!("{reason}; it says: {own}");
    }
    Some(Verdict { answer: Answer::Abstain, reason })
}

fn statement(policy: &Policy, said: Said) -> Statement<'_> {
    Statement { policy: &policy.identity, may_relax: policy.may_relax, said }
}

fn has_answered(statement: &Statement<'_>) -> bool {
    match &statement.said {
        Said::Failed(_) => true,
        Said::Verdict(verdict) => verdict.answer != Answer::Abstain,
    }
}
