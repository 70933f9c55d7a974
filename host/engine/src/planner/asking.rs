//! Asking several policies about the changes of one plan, side by side where nobody else
//! needs the processors.

use super::answers::{Answers, Patience};
use super::heard::Heard;
use super::question::Question;
use crate::discretion::offers_secret;
use crate::failure::is_reproducible;
use crate::policy::{Policy, compile_ahead};
use crate::sandbox::{Call, CallFailure, Module, Sandbox, Spent};
use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tread_model::change::{Change, Entry};
use tread_model::diff::Comparison;
use tread_model::digest::{Digest, Sha256};
use tread_model::secrets::{Tokens, is_secret};
use tread_model::verdict::{Answer, FailureKind, Verdict};

/// From so many questions on it is worth a second thread.
const MANY: usize = 8;

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

/// What a policy is asked.
pub(super) struct Asked<'r, 'a> {
    pub(super) policy: &'r Arc<Policy>,
    /// The changes, by index.
    pub(super) offer: Vec<usize>,
    /// What did not change.
    pub(super) entries: Vec<Entry<'a>>,
}

/// What came of it.
pub(super) struct Said {
    pub(super) heard: Heard,
    /// None: it was answered before.
    pub(super) record: Option<CallRecord>,
    pub(super) offered_secrets: bool,
}

/// What all questions have in common.
pub(super) struct Asking<'r, 'a> {
    pub(super) sandbox: &'r Sandbox,
    pub(super) comparison: &'r Comparison<'a>,
    /// What was answered before, and the digest of each change.
    pub(super) remembered: Option<&'r (&'r Answers, Vec<Digest>)>,
}

impl<'a> Asking<'_, 'a> {
    /// What policies say, in the order of the questions. None: nobody waits any more.
    pub(super) fn all(&self, questions: &[Asked<'_, 'a>]) -> Vec<Option<Said>> {
        let ahead = compile_ahead(questions.iter().map(|it| it.policy.as_ref()), self.sandbox);
        let places: Vec<OnceLock<Said>> = questions.iter().map(|_| OnceLock::new()).collect();
        let next = AtomicUsize::new(0);
        let ask = || {
            let mut others_ask = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some((question, place)) = questions.get(index).zip(places.get(index)) else {
                    break;
                };
                match self.ask(question, &ahead, Patience::GoesOn) {
                    _ if self.has_ended() => return,
                    Some(said) => drop(place.set(said)),
                    None => others_ask.push((question, place)),
                }
            }
            for (question, place) in others_ask {
                if let Some(said) = self.ask(question, &ahead, Patience::Waits) {
                    let _ = place.set(said);
                }
            }
        };
        let has_room = self.remembered.is_some_and(|(answers, _)| answers.are_for_one_plan());
        match has_room && questions.len() >= MANY {
            true => std::thread::scope(|scope| {
                // One that cannot be started is missed by nobody.
                let _ = std::thread::Builder::new().spawn_scoped(scope, ask);
                ask();
            }),
            false => ask(),
        }
        places.into_iter().map(OnceLock::into_inner).collect()
    }

    fn has_ended(&self) -> bool {
        self.remembered.is_some_and(|(answers, _)| answers.has_ended())
    }

    /// What a policy says. None: others ask it the same at the moment.
    fn ask(
        &self,
        asked: &Asked<'_, 'a>,
        ahead: &[(Sha256, Duration)],
        patience: Patience,
    ) -> Option<Said> {
        let Asked { policy, offer, entries } = asked;
        let start = Instant::now();
        let module = policy.module(self.sandbox);
        let ahead = ahead.iter().find(|(digest, _)| *digest == policy.identity.digest);
        let load = start.elapsed() + ahead.map_or(Duration::ZERO, |(_, took)| *took);
        let module = match module {
            Ok(module) => module,
            Err(failure) => {
                let record = CallRecord {
                    load,
                    failure: Some(failure.kind),
                    ..CallRecord::of(policy, offer)
                };
                let reproducible = is_reproducible(failure.kind);
                let heard = Heard::Failure { failure: failure.clone(), reproducible };
                return Some(Said { heard, record: Some(record), offered_secrets: false });
            }
        };
        let changes = offer.iter().filter_map(|index| self.comparison.changes.get(*index));
        let is_secret = offers_secret(&changes.collect::<Vec<_>>(), entries);
        let mut record = None;
        let mut call = || {
            let (heard, made) = self.call(asked, module);
            record = Some(CallRecord { load, ..made });
            heard
        };
        let heard = match self.remembered {
            Some((answers, digests)) => {
                let changes = offer.iter().filter_map(|index| digests.get(*index).copied());
                let question = Question::of(policy, &changes.collect::<Vec<_>>(), entries);
                answers.to((question, policy), is_secret, patience, call)?
            }
            None => call(),
        };
        let offered_secrets = is_secret && !policy.is_blind();
        Some(Said { heard, record, offered_secrets })
    }

    /// Calls a policy.
    fn call(&self, asked: &Asked<'_, 'a>, module: &Module) -> (Heard, CallRecord) {
        let Asked { policy, offer, entries } = asked;
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
            None => Cow::Borrowed(entries.as_slice()),
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
