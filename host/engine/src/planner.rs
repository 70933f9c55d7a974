//! From changes to a plan: route, ask, merge.

mod answers;
mod shadow;

pub use answers::{Answers, Unplanned};
pub use shadow::{Shadows, plan_with_shadows, shadow};

use crate::discretion::offers_secret;
use crate::failure::failure;
use crate::policy::{Policy, PolicySet};
use crate::sandbox::{Call, CallFailure, Module, Sandbox, Speaker, Spent};
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tread_model::change::{Change, Entry, State};
use tread_model::config::NodeConfig;
use tread_model::config_digest::{Digests, differences_of_pair, digests_of_pair};
use tread_model::diff::{Comparison, compare_digested, unchanged};
use tread_model::digest::Digest;
use tread_model::plan::compare::Shadow;
use tread_model::plan::{Decided, Plan, Said, Statement, build};
use tread_model::problem::Problems;
use tread_model::secrets::{Tokens, is_secret};
use tread_model::touch::{OwnUnits, ROOM};
use tread_model::verdict::{Action, Answer, Failure, FailureKind, Layer, Verdict};

/// A plan, and what making it took.
#[derive(Debug)]
pub struct Planned<'a> {
    /// The plan.
    pub plan: Plan,
    /// The changes that it is for, with contents: for a local terminal only.
    pub changes: Vec<Change<'a>>,
    /// How long digesting and comparing took.
    pub comparing: Duration,
    /// Each call of a policy, in the order in which they were made.
    pub calls: Vec<CallRecord>,
    /// Whether a policy was offered a secret, which it could tell by how long it
    /// took: nobody is told how long this plan took.
    pub offered_secrets: bool,
    asking: Duration,
}

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

/// Plans the way from one config to another.
pub fn plan<'a>(
    sandbox: &Sandbox,
    policies: &PolicySet,
    old: &NodeConfig<'a>,
    new: &NodeConfig<'a>,
    warnings: Vec<String>,
) -> Result<Planned<'a>, Problems> {
    let start = Instant::now();
    let (from, to) = digests_of_pair(old, new)?;
    let mut planned = plan_digested(sandbox, policies, (old, &from), (new, &to), warnings)?;
    planned.comparing = start.elapsed().saturating_sub(planned.asking);
    Ok(planned)
}

/// One of several plans that are made together: as [`plan`], or
/// [`plan_with_shadows`], and asks nothing that is answered already. The calls of
/// both are with the plan. It is not made where it has more changes than it may,
/// nor for somebody who does not wait any more.
pub fn plan_together<'a>(
    sandbox: &Sandbox,
    policies: &PolicySet,
    shadows: Option<&Shadows>,
    answers: &Answers,
    (old, new): (&NodeConfig<'a>, &NodeConfig<'a>),
    warnings: Vec<String>,
) -> Result<(Planned<'a>, Option<Shadow>), Unplanned> {
    let start = Instant::now();
    answers.check(0)?;
    let (from, to) = match answers.digests() {
        true => digests_of_pair(old, new)?,
        false => differences_of_pair(old, new)?,
    };
    let comparison = compare_digested(old, &from, new, &to)?;
    // What the host itself refuses or settles stands in the plan as well.
    let Comparison { changes, refusals, settled, .. } = &comparison;
    answers.check(changes.len() + refusals.len() + settled.len())?;
    let (remembered, sides) = (Some(answers), (old, new));
    let mut planned = plan_compared(sandbox, policies, remembered, sides, comparison, warnings)?;
    planned.comparing = start.elapsed().saturating_sub(planned.asking);
    answers.check(0)?;
    let Some(shadows) = shadows else { return Ok((planned, None)) };
    let sides = ((old, &from), (new, &to));
    let shadow =
        shadow::shadow_remembering(sandbox, shadows, remembered, sides.0, sides.1, &planned.plan)?;
    answers.check(0)?;
    planned.calls.extend(shadow.calls);
    planned.offered_secrets |= shadow.offered_secrets;
    Ok((planned, Some(shadow.made)))
}

/// As [`plan`], for configs whose digests are known: the cost follows the
/// changes, not what the configs hold.
pub fn plan_digested<'a>(
    sandbox: &Sandbox,
    policies: &PolicySet,
    old: (&NodeConfig<'a>, &Digests),
    new: (&NodeConfig<'a>, &Digests),
    warnings: Vec<String>,
) -> Result<Planned<'a>, Problems> {
    let start = Instant::now();
    let comparison = compare_digested(old.0, old.1, new.0, new.1)?;
    let comparing = start.elapsed();
    let sides = (old.0, new.0);
    let planned = plan_compared(sandbox, policies, None, sides, comparison, warnings)?;
    Ok(Planned { comparing, ..planned })
}

/// Plans what differs, and asks nothing that is answered already.
fn plan_compared<'a>(
    sandbox: &Sandbox,
    policies: &PolicySet,
    answers: Option<&Answers>,
    sides: (&NodeConfig<'a>, &NodeConfig<'a>),
    comparison: Comparison<'a>,
    warnings: Vec<String>,
) -> Result<Planned<'a>, Problems> {
    let warnings = [warnings, comparison.warnings.clone()].concat();
    let round = Round::new(sandbox, policies, sides, &comparison).remembering(answers);
    let Round { statements, reproducible, calls, offered_secrets, asking, .. } =
        round.finished()?;
    let decided = decided(&comparison, statements);
    let plan = build(
        (comparison.from, comparison.to),
        decided,
        &comparison.refusals,
        warnings,
        reproducible,
    );
    let (changes, comparing) = (comparison.changes, Duration::ZERO);
    Ok(Planned { plan, changes, comparing, calls, offered_secrets, asking })
}

/// Each change with what was said of it.
fn decided<'p>(
    comparison: &Comparison<'_>,
    statements: Vec<Vec<Statement<'p>>>,
) -> Vec<Decided<'p>> {
    let changes = comparison.changes.iter().zip(statements);
    let changes = changes.map(|(change, statements)| Decided {
        id: change.id.clone(),
        edit: change.edit(),
        statements,
        settled: None,
    });
    let settled = comparison.settled.iter().map(|settled| Decided {
        id: settled.id.clone(),
        edit: settled.edit,
        statements: Vec::new(),
        settled: Some(settled.reason.clone()),
    });
    changes.chain(settled).collect()
}

/// What came of asking a policy.
#[derive(Debug, Clone)]
enum Heard {
    /// One for each offered change.
    Verdicts(Vec<Option<Verdict>>),
    /// It voids all that was answered.
    Failure {
        failure: Failure,
        /// As [`CallFailure::reproducible`].
        reproducible: bool,
    },
}

impl Heard {
    /// About what it takes to remember it.
    fn bytes(&self) -> usize {
        match self {
            Heard::Verdicts(verdicts) => {
                let reasons = verdicts.iter().flatten().map(|verdict| verdict.reason.len());
                reasons.sum::<usize>().saturating_add(verdicts.len().saturating_mul(128))
            }
            Heard::Failure { failure, .. } => failure.message.len(),
        }
    }

    /// What policies answer is remembered for many configs; what these say of a
    /// unit that it touches is not.
    fn held_to<'u>(
        self,
        policy: &Policy,
        offer: &[usize],
        comparison: &Comparison<'_>,
        units: impl FnOnce() -> &'u OwnUnits<'u>,
    ) -> Heard {
        let Heard::Verdicts(verdicts) = &self else { return self };
        if policy.speaker() == Speaker::AdminsRules {
            return self;
        }
        let changes = offer.iter().filter_map(|index| comparison.changes.get(*index));
        match touched_gently(changes.zip(verdicts), units) {
            Ok(()) => self,
            Err(failure) => Heard::Failure { failure, reproducible: true },
        }
    }

    /// Whether the same question has the same outcome everywhere.
    fn is_reproducible(&self) -> bool {
        !matches!(self, Heard::Failure { reproducible: false, .. })
    }
}

/// Whether the units that a policy touches are touched gently, by what the configs
/// say of them.
pub fn touched_gently<'v, 'a: 'v, 'u>(
    verdicts: impl IntoIterator<Item = (&'v Change<'a>, &'v Option<Verdict>)>,
    units: impl FnOnce() -> &'u OwnUnits<'u>,
) -> Result<(), Failure> {
    // Each unit once, with the first change that it is touched for.
    let mut touched: BTreeMap<&str, &str> = BTreeMap::new();
    for (change, verdict) in verdicts {
        let Some(Verdict { answer: Answer::Act(actions), .. }) = verdict else { continue };
        for action in actions {
            if let Action::Reload(unit) | Action::Restart(unit) = action {
                touched.entry(unit).or_insert(&change.id);
            }
        }
    }
    if touched.is_empty() {
        return Ok(());
    }
    let units = units();
    let mut room = ROOM;
    for (unit, id) in touched {
        if let Some(why) = units.why_not_gentle(unit, &mut room) {
            let message = format!("for {id} it names {unit:?}, which {why}");
            return Err(failure(FailureKind::InvalidUnit, message));
        }
    }
    Ok(())
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
struct Round<'r, 'a> {
    sandbox: &'r Sandbox,
    policies: &'r PolicySet,
    sides: (&'r NodeConfig<'a>, &'r NodeConfig<'a>),
    comparison: &'r Comparison<'a>,
    /// What was said so far, for each change.
    statements: Vec<Vec<Statement<'r>>>,
    reproducible: bool,
    calls: Vec<CallRecord>,
    /// What the configs say of units, once somebody wants to touch one.
    units: OnceCell<OwnUnits<'r>>,
    offered_secrets: bool,
    /// How long it took.
    asking: Duration,
    /// What was answered before, and the digest of each change.
    remembered: Option<(&'r Answers, Vec<Digest>)>,
}

impl<'r, 'a> Round<'r, 'a> {
    fn new(
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
    fn remembering(mut self, answers: Option<&'r Answers>) -> Round<'r, 'a> {
        self.remembered = answers.map(|it| (it, answers::digests(&self.comparison.changes)));
        self
    }

    /// Asks all who are to be asked, the admin layer first.
    fn finished(mut self) -> Result<Round<'r, 'a>, Problems> {
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
            // Whoever waits no longer gets no plan, whatever was answered.
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
                let verdicts = verdicts.map(|(change, verdict)| told_why(policy, change, verdict));
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
        // What an admin answered for changes out of this policy's sight, but not
        // out of the whole that it compares: it counts as done.
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

/// Of a policy that needs secrets and may not read them: why it has no opinion on
/// this one, and who can change that.
fn told_why(policy: &Policy, change: &Change<'_>, said: Option<Verdict>) -> Option<Verdict> {
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
