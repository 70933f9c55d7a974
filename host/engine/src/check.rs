//! Whether an answer keeps the contract.

use crate::convert;
use crate::failure::failure;
use crate::limits::Limits;
use crate::v1;
use tread_model::change::Change;
use tread_model::claim::Router;
use tread_model::description::Claim;
use tread_model::effect::Effect;
use tread_model::plan::effect_of;
use tread_model::text::one_line_within;
use tread_model::touch::{touch, touch_gently};
use tread_model::verdict::{Action, Answer, Failure, FailureKind, Layer, Verdict};

/// The range of answers that claims allow.
#[derive(Debug)]
pub(crate) struct Ranges {
    claims: Vec<Claim>,
    router: Router,
}

impl Ranges {
    pub(crate) fn new(claims: &[Claim]) -> Result<Ranges, String> {
        Ok(Ranges { router: Router::new([(0, claims)])?, claims: claims.to_vec() })
    }

    pub(crate) fn are_of(&self, claims: &[Claim]) -> bool {
        self.claims == claims
    }

    /// The first claim that matches a change.
    fn claim(&self, id: &str) -> Option<&str> {
        let mut claims = self.router.claimants(id);
        claims.find_map(|(_, claim)| self.claims.get(claim)).map(|claim| claim.changes.as_str())
    }

    /// The least and the most disruptive answer that all claims matching a change
    /// allow together.
    fn range(&self, id: &str) -> Option<(Effect, Effect)> {
        let claims = self.router.claimants(id);
        claims.filter_map(|(_, claim)| self.claims.get(claim)).fold(None, |range, claim| {
            let (least, most) = range.unwrap_or((claim.least, claim.most));
            Some((least.min(claim.least), most.max(claim.most)))
        })
    }
}

/// Whose words an answer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// A policy's own.
    Policy,
    /// An admin's, who wrote rules: they may name more units.
    AdminsRules,
}

/// Who answers, and what was offered.
#[derive(Debug)]
pub(crate) struct Offer<'o, 'a> {
    pub(crate) changes: &'o [&'o Change<'a>],
    pub(crate) ranges: &'o Ranges,
    pub(crate) layer: Layer,
    pub(crate) speaker: Speaker,
    pub(crate) limits: &'o Limits,
}

impl Offer<'_, '_> {
    /// One verdict for each change, or the first rule that is broken.
    pub(crate) fn check(
        &self,
        verdicts: Vec<v1::Verdict>,
    ) -> Result<Vec<Option<Verdict>>, Failure> {
        let mut checked: Vec<Option<Verdict>> = self.changes.iter().map(|_| None).collect();
        for (number, v1::Verdict { change: index, answer, reason }) in
            verdicts.into_iter().enumerate()
        {
            let at = index as usize;
            let (Some(change), Some(place)) = (self.changes.get(at), checked.get_mut(at)) else {
                return Err(failure(FailureKind::UnknownChange, self.unknown(number, index)));
            };
            if place.is_some() {
                return Err(failure(
                    FailureKind::BadOutput,
                    format!(
                        "two verdicts for {}: verdict {number} has the same `change`, {index}",
                        change.id
                    ),
                ));
            }
            let answer = self.answer(&change.id, answer)?;
            let reason = one_line_within(&reason, self.limits.reason_bytes).0;
            *place = Some(Verdict { answer, reason });
        }
        Ok(checked)
    }

    /// The message for a change that was not offered. It names the offered one with
    /// the nearest index, and why that one was offered.
    fn unknown(&self, number: usize, index: u32) -> String {
        let count = self.changes.len();
        let mut message = format!(
            "verdict {number} answers for change {index}, and the policy was offered {count}"
        );
        if let Some(nearest) = self.changes.last() {
            message.push_str(&format!(
                ", from 0 on: the nearest is {}, {}",
                count.saturating_sub(1),
                nearest.id
            ));
            if let Some(claim) = self.ranges.claim(&nearest.id) {
                message.push_str(&format!(", which its claim on {claim} matches"));
            }
        }
        message
    }

    fn answer(&self, id: &str, answer: v1::Answer) -> Result<Answer, Failure> {
        let (answer, effect) = match answer {
            v1::Answer::Abstain => return Ok(Answer::Abstain),
            v1::Answer::Act(actions) => {
                let actions = self.actions(id, actions)?;
                let effect = effect_of(&actions);
                (Answer::Act(actions), effect)
            }
            v1::Answer::Refuse => (Answer::Refuse, Effect::Refuse),
        };
        let beyond = |why: String| Err(failure(FailureKind::BeyondClaim, why));
        match self.ranges.range(id) {
            None => beyond(format!("it answers {effect} for {id}, which it does not claim")),
            Some((least, most)) if effect < least || effect > most => beyond(format!(
                "it answers {effect} for {id}, and its claims go from {least} to {most}"
            )),
            Some(_) => Ok(answer),
        }
    }

    fn actions(&self, id: &str, actions: Vec<v1::Action>) -> Result<Vec<Action>, Failure> {
        if actions.len() > self.limits.actions {
            return Err(failure(
                FailureKind::BadOutput,
                format!(
                    "{} actions in `act` for {id}, and {} are allowed",
                    actions.len(),
                    self.limits.actions
                ),
            ));
        }
        let actions: Vec<Action> = actions.into_iter().map(convert::action).collect();
        for (number, action) in actions.iter().enumerate() {
            match action {
                Action::Reload(unit) | Action::Restart(unit) => {
                    self.may_touch(unit).map_err(|why| {
                        failure(
                            FailureKind::InvalidUnit,
                            format!(
                                "for {id} action {number} of `act` names {:?}, which {why}",
                                one_line_within(unit, 128).0
                            ),
                        )
                    })?;
                }
                Action::RebootUndrained if self.layer != Layer::Admin => {
                    return Err(failure(
                        FailureKind::BeyondClaim,
                        format!(
                            "for {id} it asks for a reboot without a drain, which only the admin \
                             layer may"
                        ),
                    ));
                }
                _ => {}
            }
        }
        Ok(actions)
    }

    fn may_touch(&self, unit: &str) -> Result<(), &'static str> {
        match self.speaker {
            Speaker::Policy => touch_gently(unit),
            Speaker::AdminsRules => touch(unit).map(|_| ()),
        }
    }
}

#[cfg(test)]
mod tests;
