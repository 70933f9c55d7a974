//! The steps between writing and the end, one after another.

use super::going::Going;
use super::node::{ENDED, Node, OperationError, Stopped};
use crate::journal::{Journal, Note};
use crate::permits::Act;
use crate::progress::StepState;
use crate::systemd::{
    Ask, InConfig, Outcome, Problem, UnitFacts, What, ca_trust, cannot, says_reload,
};
use std::collections::BTreeMap;
use std::time::Duration;
use tread_model::canonical;
use tread_model::config::{NodeConfig, Unit};
use tread_model::plan::{Step, VerifiablePlan};

/// For a step that has no deadline of its own.
const LIMIT: Duration = Duration::from_secs(120);

/// How often a step is begun in one boot: fewer than systemd starts a process anew that died.
const MOST_BEGINNINGS: usize = 5;

impl Node<'_> {
    /// Whether each step can be carried out, by what systemd and the new config say.
    pub(super) async fn is_able(
        &self,
        plan: &VerifiablePlan,
        config: &NodeConfig<'_>,
    ) -> Result<(), OperationError> {
        let mut facts: BTreeMap<&str, UnitFacts> = BTreeMap::new();
        for unit in plan.steps.iter().filter_map(Step::unit) {
            facts.insert(unit, self.manager.facts(unit).await?);
        }
        let ca_trust = !plan.steps.contains(&Step::UpdateCaTrust)
            || ca_trust(|path| self.is_there(path)).is_some();
        let now = |unit: &str| facts.get(unit).cloned().unwrap_or_default();
        let unable = cannot(&plan.steps, now, |unit| in_config(config, unit), ca_trust);
        match unable.is_empty() {
            true => Ok(()),
            false => Err(OperationError::Unable(unable)),
        }
    }

    /// Whether the host has a file.
    pub(super) fn is_there(&self, path: &str) -> bool {
        let seen = crate::drift::see(&self.tree, path);
        seen.is_ok_and(|seen| seen != crate::tree::Found::Absent)
    }
}

/// What a config says of a unit.
fn in_config(config: &NodeConfig<'_>, name: &str) -> InConfig {
    let Some(unit) = config.units.iter().find(|unit| unit.name == name) else {
        return InConfig::default();
    };
    let texts = || {
        let dropins = unit.dropins.iter().map(|dropin| &dropin.contents);
        std::iter::once(&unit.contents).chain(dropins).filter_map(canonical::text)
    };
    let Unit { mask, contents, .. } = unit;
    InConfig {
        defines: canonical::text(contents).is_some(),
        masks: *mask == Some(true),
        changes: true,
        can_reload: texts().any(says_reload),
    }
}

/// How many processes died in the middle of this step, in this boot and since the operation last
/// changed its direction. A process that was told to end is not counted.
fn died(notes: &[Note], index: usize, this_boot: &str) -> usize {
    let back_at = notes.iter().rposition(|note| matches!(note, Note::Back { .. }));
    let (mut died, mut is_begun) = (0, false);
    for note in notes.iter().skip(back_at.unwrap_or_default()) {
        match note {
            Note::Begun { step, boot } if *step == index && boot == this_boot => {
                died += 1;
                is_begun = true;
            }
            Note::LeftOff { step } if *step == index && is_begun => {
                died -= 1;
                is_begun = false;
            }
            _ => {}
        }
    }
    died
}

/// A step that is being carried out. If this is dropped before the step is over, the process was
/// told to end.
struct Within<'w> {
    journal: &'w Journal,
    step: usize,
    goes_on: bool,
}

impl Within<'_> {
    fn ends(mut self) {
        self.goes_on = false;
    }
}

impl Drop for Within<'_> {
    fn drop(&mut self) {
        // A panic is a crash.
        if self.goes_on && !std::thread::panicking() {
            // If there is no room for the note, it counts as a crash.
            let _ = self.journal.note(&Note::LeftOff { step: self.step });
        }
    }
}

impl<'g> Going<'g> {
    /// Carries out the steps that were not yet; why it stopped, if it did.
    pub(super) async fn act(&mut self) -> Result<Result<(), Stopped>, OperationError> {
        let steps = self.kept.plan.steps.clone();
        for (index, step) in steps.iter().enumerate() {
            let ended = self.standing.notes.iter().find_map(|note| match note {
                Note::Ended { step, well, message } if *step == index => Some((*well, message)),
                _ => None,
            });
            match (step, ended) {
                (Step::Reboot | Step::Uncordon, _) => break,
                (_, Some((true, message))) => {
                    self.reporting.update(|it| it.ends(index, StepState::Done, message));
                    continue;
                }
                (_, Some((false, message))) => return Ok(Err(Stopped::Failed(message.clone()))),
                (Step::Drain, None) => {
                    self.reporting.update(|it| it.ends(index, StepState::Left, ""));
                    continue;
                }
                (Step::Write, None) => {
                    self.reporting.update(|it| it.ends(index, StepState::Done, ""));
                    continue;
                }
                _ => {}
            }
            if let Some(unit) = step.unit() {
                let act = Act::Unit { unit: unit.to_owned() };
                match self.permit_unless_cut_off(act).await? {
                    Ok(permit) if permit.holds() => {}
                    Ok(_) => return Err(OperationError::Forbidden(ENDED.to_owned())),
                    Err(why) => return Ok(Err(Stopped::CutOff(why))),
                }
            }
            let begins = self.begins(index)?;
            self.reporting.update(|it| it.begins(index));
            let (well, message) = match begins {
                Ok(within) => {
                    let done = self.step(step).await;
                    within.ends();
                    match done {
                        Ok(message) => (true, message),
                        Err(problem) => (false, problem.to_string()),
                    }
                }
                Err(why) => (false, why),
            };
            let note = Note::Ended { step: index, well, message: message.clone() };
            self.journal.note(&note)?;
            let state = if well { StepState::Done } else { StepState::Failed };
            self.reporting.update(|it| it.ends(index, state, &message));
            if !well {
                return Ok(Err(Stopped::Failed(message)));
            }
        }
        Ok(Ok(()))
    }

    /// Tells each unit that was told of what went back what is there again; why one is not well, if one
    /// is not. Where none was told of anything yet, there is nothing to tell.
    pub(super) async fn units_again(&mut self) -> Result<Result<(), String>, OperationError> {
        if self.is_unread() {
            return Ok(Ok(()));
        }
        // A boot tells all of them.
        let was_booted = self.was_booted();
        let was_told = |index: usize, notes: &[Note]| {
            notes.iter().any(|it| matches!(it, Note::Begun { step, .. } if *step == index))
        };
        let steps = self.kept.plan.steps.iter().enumerate();
        let notes = &self.standing.notes;
        let again = |(index, step): &(usize, &Step)| {
            was_booted || step.unit().is_none() || was_told(*index, notes)
        };
        let again: Vec<Step> = steps.filter(again).map(|(_, step)| step.clone()).collect();
        // After each crash all units are told again, so that the first step counts for all of them.
        let within = match self.begins(0)? {
            Ok(within) => within,
            Err(why) => return Ok(Err(why)),
        };
        let mut well = Ok(());
        for step in &again {
            match self.step(step).await {
                // It came with the config that is gone.
                Err(Problem { what: What::Missing, .. }) => {}
                Err(problem) => {
                    well = Err(problem.to_string());
                    break;
                }
                Ok(_) => {}
            }
        }
        within.ends();
        Ok(well)
    }

    /// Notes that a step begins; why it does not, where too many processes died in it already.
    fn begins(&mut self, index: usize) -> Result<Result<Within<'g>, String>, OperationError> {
        let died = died(&self.standing.notes, index, &self.boot);
        if died >= MOST_BEGINNINGS {
            return Ok(Err(format!(
                "whoever carries it out was ended {died} times in the middle of it"
            )));
        }
        let note = Note::Begun { step: index, boot: self.boot.clone() };
        self.journal.note(&note)?;
        self.standing.notes.push(note);
        Ok(Ok(Within { journal: self.journal, step: index, goes_on: true }))
    }

    async fn step(&self, step: &Step) -> Result<String, Problem> {
        let limit = step.deadline().unwrap_or(LIMIT);
        let manager = self.node.manager;
        let outcome = match step {
            Step::DaemonReload => {
                return manager.daemon_reload(limit).await.map(|()| String::new());
            }
            Step::UpdateCaTrust => {
                let there = |path: &str| self.node.is_there(path);
                manager.update_ca_trust(&self.standing.record.id, there, limit).await?
            }
            Step::Reload { unit } => manager.unit_step(Ask::Reload, unit, limit).await?,
            Step::Restart { unit } => manager.unit_step(Ask::Restart, unit, limit).await?,
            Step::Drain | Step::Write | Step::Reboot | Step::Uncordon => return Ok(String::new()),
        };
        Ok(match outcome {
            Outcome::Done { note, .. } => note.unwrap_or_default(),
            Outcome::Skipped { note } => format!("skipped: {note}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_were_told_to_end_did_not_die_in_a_step() {
        let begun = |step, boot: &str| Note::Begun { step, boot: boot.to_owned() };
        let back = || Note::Back { because: String::new(), by_units: true };
        let left = |step| Note::LeftOff { step };
        for (notes, expected) in [
            (vec![], 0),
            (vec![begun(1, "now"), begun(1, "now")], 2),
            (vec![begun(1, "now"), left(1), begun(1, "now"), left(1)], 0),
            (vec![begun(1, "now"), begun(1, "now"), left(1), begun(1, "now")], 2),
            // Of another step, of another boot, before it was decided to go back, and none at all.
            (vec![begun(1, "now"), begun(2, "now"), left(2)], 1),
            (vec![begun(1, "before"), left(1), begun(1, "now")], 1),
            (vec![begun(1, "now"), begun(1, "now"), back(), begun(1, "now")], 1),
            (vec![left(1), left(1), begun(1, "now"), left(1), left(1), begun(1, "now")], 1),
        ] {
            assert_eq!(died(&notes, 1, "now"), expected, "{notes:?}");
        }
    }
}
