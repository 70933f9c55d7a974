//! What is shown of a policy that was offered a secret (law 10): only texts that it
//! had before it was asked. What the call used is kept back too, because it could tell
//! something of the secret.

use crate::call::Done;
use crate::check::Speaker;
use crate::failure::failure;
use crate::limits::{TOUCHES_BESIDE_SECRETS, UNITS_BESIDE_SECRETS};
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
    /// It was offered one: only texts that it had before are shown.
    Bound { words: &'w Words, author: Author },
}

/// Who wrote the program that answers, and so chooses which units it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Author {
    /// It comes with tread, and names units that it finds in what it is offered.
    Tread,
    /// It comes with tread, and answers with an admin's rules.
    Admin,
    /// Anybody.
    Stranger,
}

impl<'w> Discretion<'w> {
    pub(crate) fn of(call: &Call<'w, '_>) -> Discretion<'w> {
        if !offers_secret(call.changes, call.unchanged) {
            return Discretion::Free;
        }
        let author = match (call.layer, call.speaker) {
            (Layer::Builtin, _) => Author::Tread,
            (_, Speaker::AdminsRules) => Author::Admin,
            (_, Speaker::Policy) => Author::Stranger,
        };
        Discretion::Bound { words: call.words, author }
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
    /// be replaced, and could tell something of the secret: so could one of very many. Both are
    /// failures.
    fn of_verdicts(
        self,
        changes: &[&Change<'_>],
        mut verdicts: Vec<Option<Verdict>>,
    ) -> Result<Vec<Option<Verdict>>, Failure> {
        let Discretion::Bound { words, author } = self else { return Ok(verdicts) };
        let unshown = if author == Author::Tread { UNSHOWN_OF_BUILTIN } else { UNSHOWN };
        for (change, verdict) in changes.iter().zip(&mut verdicts) {
            let Some(verdict) = verdict else { continue };
            if !(verdict.reason.is_empty() || words.know_reason(&verdict.reason)) {
                unshown.clone_into(&mut verdict.reason);
            }
            let Answer::Act(actions) = &mut verdict.answer else { continue };
            // The order of actions, and how often one stands there, could tell a secret too.
            actions.sort();
            actions.dedup();
            if let Some(why) = tells(author, words, actions) {
                let message = format!("it was offered secrets, and for {} {why}", change.id);
                return Err(failure(FailureKind::InvalidUnit, message));
            }
        }
        Ok(verdicts)
    }
}

/// Why the units of these actions could tell a secret.
fn tells(author: Author, words: &Words, actions: &[Action]) -> Option<String> {
    let units: Vec<&str> = actions.iter().filter_map(unit).collect();
    if units.is_empty() || author == Author::Tread {
        return None;
    }
    if !units.iter().all(|unit| words.know_unit(unit)) {
        let why = "it names a unit that is written neither in its description nor in its settings: \
                   make the unit's name a setting, or name it in a claim or in a reason that it \
                   declares";
        return Some(why.to_owned());
    }
    if author == Author::Admin {
        return None;
    }
    let known = words.units();
    if known > UNITS_BESIDE_SECRETS {
        return Some(format!(
            "it names one of {known} units that are written in its description and its settings, and \
             {UNITS_BESIDE_SECRETS} are allowed, since a choice among many could spell a secret: \
             write fewer there, or abstain on secrets"
        ));
    }
    (units.len() > TOUCHES_BESIDE_SECRETS).then(|| {
        format!(
            "it reloads or restarts more than {TOUCHES_BESIDE_SECRETS} units, which could spell a \
             secret: answer with fewer, or with a reboot"
        )
    })
}

/// Whether a secret is in what a policy is offered.
pub(crate) fn offers_secret(changes: &[&Change<'_>], unchanged: &[Entry<'_>]) -> bool {
    changes.iter().any(|change| reveals_secret(change))
        || unchanged.iter().any(reveals_secret_entry)
}

/// The unit that an action reloads or restarts.
fn unit(action: &Action) -> Option<&str> {
    match action {
        Action::Reload(unit) | Action::Restart(unit) => Some(unit),
        Action::DaemonReload | Action::Drain | Action::Reboot | Action::RebootUndrained => None,
    }
}

/// Whether the message of a failure holds words or numbers of the policy, such as how
/// much memory it asked for. The others only name the limit that was reached.
fn may_quote(kind: FailureKind) -> bool {
    use FailureKind::{Deadline, NoRoom, OutOfFuel, Stack};
    !matches!(kind, Deadline | NoRoom | OutOfFuel | Stack)
}
