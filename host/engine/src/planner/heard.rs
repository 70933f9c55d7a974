//! What came of asking a policy, held to what the configs say of units.

use crate::failure::failure;
use crate::policy::Policy;
use crate::sandbox::Speaker;
use std::collections::BTreeMap;
use tread_model::change::Change;
use tread_model::diff::Comparison;
use tread_model::plan::{Said, Statement};
use tread_model::touch::{OwnUnits, ROOM};
use tread_model::verdict::{Action, Answer, Failure, FailureKind, Layer, Verdict};

/// What came of asking a policy.
#[derive(Debug, Clone)]
pub(super) enum Heard {
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
    /// About how many bytes it takes to remember it.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Heard::Verdicts(verdicts) => {
                let said = verdicts.iter().flatten().map(said_in);
                said.sum::<usize>().saturating_add(verdicts.len().saturating_mul(128))
            }
            Heard::Failure { failure, .. } => failure.message.len(),
        }
    }

    /// The same answer, or a failure if it touches a unit that these configs do not
    /// let be touched gently. That is checked here, and not remembered with the
    /// answer, because an answer is remembered for many configs.
    pub(super) fn held_to<'u>(
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
    pub(super) fn is_reproducible(&self) -> bool {
        !matches!(self, Heard::Failure { reproducible: false, .. })
    }
}

/// How many bytes a verdict takes besides itself.
fn said_in(verdict: &Verdict) -> usize {
    let actions = match &verdict.answer {
        Answer::Act(actions) => actions.as_slice(),
        _ => &[],
    };
    let actions = actions.iter().map(|action| {
        let unit = match action {
            Action::Reload(unit) | Action::Restart(unit) => unit.len(),
            _ => 0,
        };
        size_of::<Action>() + unit
    });
    actions.sum::<usize>().saturating_add(verdict.reason.len())
}

/// Warnings about units that an admin's rules touch although the configs say that this is not
/// gentle: what an admin says is done all the same.
pub(super) fn warnings_of_rules<'u>(
    comparison: &Comparison<'_>,
    statements: &[Vec<Statement<'_>>],
    units: impl FnOnce() -> &'u OwnUnits<'u>,
) -> Vec<String> {
    // Each unit once, with who touches it for what.
    let mut touched: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
    for (change, said) in comparison.changes.iter().zip(statements) {
        for Statement { policy, said, .. } in
            said.iter().filter(|it| it.policy.layer == Layer::Admin)
        {
            let Said::Verdict(Verdict { answer: Answer::Act(actions), .. }) = said else {
                continue;
            };
            for action in actions {
                if let Action::Reload(unit) | Action::Restart(unit) = action {
                    touched.entry(unit).or_insert((&policy.policy, &change.id));
                }
            }
        }
    }
    if touched.is_empty() {
        return Vec::new();
    }
    let (units, mut room) = (units(), ROOM);
    let doubtful = touched.into_iter().filter_map(|(unit, (policy, id))| {
        let why = units.why_not_gentle(unit, &mut room)?;
        Some(format!("{policy} touches {unit} for {id}, which {why}: count on the worst"))
    });
    doubtful.collect()
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
            let message =
                format!("for {id} it names {unit:?}, which {why}; a rule of an admin may touch it");
            return Err(failure(FailureKind::InvalidUnit, message));
        }
    }
    Ok(())
}
