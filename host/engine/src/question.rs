//! A question to a policy, and what comes of it.

use crate::check::Speaker;
use crate::failure::is_reproducible;
use crate::words::Words;
use tread_model::change::{Change, Entry};
use tread_model::description::Claim;
use tread_model::verdict::{Failure, Layer, Verdict};

/// A question to a policy.
#[derive(Debug, Clone, Copy)]
pub struct Call<'c, 'a> {
    /// One complete JSON object.
    pub settings: &'c str,
    /// What is offered, in the order of ids.
    pub changes: &'c [&'c Change<'a>],
    /// What it claims `with-unchanged` and did not change.
    pub unchanged: &'c [Entry<'a>],
    /// The claims that hold it: the declared ones, or those that the host
    /// computed for it.
    pub claims: &'c [Claim],
    /// In which layer it speaks.
    pub layer: Layer,
    /// Whose words its answers hold.
    pub speaker: Speaker,
    /// What it can say when it is offered a secret.
    pub words: &'c Words,
}

/// What a policy answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// One for each offered change; `None`: it said nothing, and so abstains.
    pub verdicts: Vec<Option<Verdict>>,
    /// What the call used; None: it was offered a secret, which it could tell by
    /// what it uses.
    pub spent: Option<Spent>,
    /// What it wrote to its log.
    pub log: Vec<String>,
}

/// How a call failed. It voids all that was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallFailure {
    /// What happened.
    pub failure: Failure,
    /// As [`Reply::spent`].
    pub spent: Option<Spent>,
    /// What it wrote to its log.
    pub log: Vec<String>,
    /// Whether the same inputs fail like this on every machine. Not so for the
    /// wall clock, the native stack and the host's own resources.
    pub reproducible: bool,
}

impl CallFailure {
    pub(crate) fn new(failure: Failure, spent: Spent, log: Vec<String>) -> CallFailure {
        let reproducible = is_reproducible(failure.kind);
        CallFailure { failure, spent: Some(spent), log, reproducible }
    }
}

/// What a call used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// Of its fuel.
    pub fuel: u64,
    /// Linear memory at its peak, in bytes.
    pub memory: usize,
}
