//! What is shown of a policy that was offered a secret (law 10): only texts that it
//! had before it was asked. What the call used is kept back too, because it could tell
//! something of the secret.

use crate::call::Done;
use crate::failure::failure;
use crate::question::{Call, CallFailure, Reply, Spent};
use crate::words::Words;
use tread_model::change::{Change, Entry};
use tread_model::secrets::{reveals_secret, reveals_secret_entry};
use tread_model::verdict::{Action, Answer, Failure, FailureKind, Layer, Verdict};

/// In place of a reason that might quote a secret.
const UNSHOWN: &str = "The policy was offered a secret, so its reason, which might quote it, is not \
                       shown: it can declare the sentence as one of its `reasons`.";

/// The same for a policy that comes with the program: whoever reads the plan cannot change that policy.
const UNSHOWN_OF_BUILTIN: &str = "It was offered a file that not everybody on a node may read, so its reason, which might quote \
     that, is not shown: plan the same change with such files left out, or of mode 0644, to see it.";

/// In place of the message of a failure that might quote a secret.
const UNSHOWN_FAILURE: &str =
    "It was offered secrets, so what it said, which might quote them, is not shown.";

/// What of a policy's answer is shown in one call.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Discretion<'w> {
    /// It was offered no secret.
    Free,
    /// It was offered one: only texts that it had before are shown. The names of units
    /// count as such texts, unless the policy comes with the program.
    Bound { words: &'w Words, is_builtin: bool },
}

impl<'w> Discretion<'w> {
    pub(crate) fn of(call: &Call<'w, '_>) -> Discretion<'w> {
        match offers_secret(call.changes, call.unchanged) {
            true => {
                Discretion::Bound { words: call.words, is_builtin: call.layer == Layer::Builtin }
            }
            false => Discretion::Free,
        }
    }

    /// What is told of an answer.
    pub(crate) fn of_answer(
        self,
        changes: &[&Change<'_>],
        answer: Result<Done<Vec<Option<Verdict>>>, CallFailure>,
    ) -> Result<Reply, CallFailure> {
        let answer = answer.map_err(|failed| self.of_failure(failed));
        match answer.and_then(|done| done.and_then(|it| self.of_verdicts(changes, it))) {
            Ok(Done { value, spent, log }) => Ok(Reply {
                verdicts: value,
                spent: self.of_spent(Some(spent)),
                log: self.of_log(log),
            }),
            Err(failed) => Err(CallFailure {
                spent: self.of_spent(failed.spent),
                log: self.of_log(failed.log),
                ..failed
            }),
        }
    }

    fn of_log(self, log: Vec<String>) -> Vec<String> {
        match self {
            Discretion::Free => log,
            Discretion::Bound { .. } => Vec::new(),
        }
    }

    fn of_spent(self, spent: Option<Spent>) -> Option<Spent> {
        spent.filter(|_| matches!(self, Discretion::Free))
    }

    /// A failure's message may be the policy's own last words.
    fn of_failure(self, mut failed: CallFailure) -> CallFailure {
        if matches!(self, Discretion::Bound { .. }) && may_quote(failed.failure.kind) {
            failed.failure.message = UNSHOWN_FAILURE.to_owned();
        }
        failed
    }

    /// Replaces reasons that the policy did not have before. The name of a unit cannot
    /// be replaced, and could tell something of the secret: one that the policy did
    /// not have before is a failure.
    fn of_verdicts(
        self,
        changes: &[&Change<'_>],
        mut verdicts: Vec<Option<Verdict>>,
    ) -> Result<Vec<Option<Verdict>>, Failure> {
        let Discretion::Bound { words, is_builtin } = self else { return Ok(verdicts) };
        let unshown = if is_builtin { UNSHOWN_OF_BUILTIN } else { UNSHOWN };
        for (change, verdict) in changes.iter().zip(&mut verdicts) {
            let Some(verdict) = verdict else { continue };
            if !(verdict.reason.is_empty() || words.know_reason(&verdict.reason)) {
                unshown.clone_into(&mut verdict.reason);
            }
            let Answer::Act(actions) = &verdict.answer else { continue };
            if !is_builtin && !actions.iter().all(|action| is_known(action, words)) {
                return Err(failure(
                    FailureKind::InvalidUnit,
                    format!(
                        "it was offered secrets, and for {} it names a unit that is written \
                         neither in its description nor in its settings: make the unit's name a \
                         setting, or name it in a claim or in a reason that it declares",
                        change.id
                    ),
                ));
            }
        }
        Ok(verdicts)
    }
}

/// Whether a secret is in what a policy is offered.
pub(crate) fn offers_secret(changes: &[&Change<'_>], unchanged: &[Entry<'_>]) -> bool {
    changes.iter().any(|change| reveals_secret(change))
        || unchanged.iter().any(reveals_secret_entry)
}

fn is_known(action: &Action, words: &Words) -> bool {
    match action {
        Action::Reload(unit) | Action::Restart(unit) => words.know_unit(unit),
        Action::DaemonReload | Action::Drain | Action::Reboot | Action::RebootUndrained => true,
    }
}

/// Whether the message of a failure holds words or numbers of the policy, such as how
/// much memory it asked for. The others only name the limit that was reached.
fn may_quote(kind: FailureKind) -> bool {
    use FailureKind::{Deadline, NoRoom, OutOfFuel, Stack};
    !matches!(kind, Deadline | NoRoom | OutOfFuel | Stack)
}
