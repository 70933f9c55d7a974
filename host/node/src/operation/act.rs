//! The steps between writing and the end, one after another.

use super::going::Going;
use super::node::{ENDED, Node, OperationError};
use crate::journal::Note;
use crate::permits::Act;
use crate::progress::StepState;
use crate::systemd::{Ask, InConfig, Outcome, Problem, UnitFacts, What, cannot, says_reload};
use std::collections::BTreeMap;
use std::time::Duration;
use tread_model::canonical;
use tread_model::config::{NodeConfig, Unit};
use tread_model::plan::{Step, VerifiablePlan};

/// For a step that has no deadline of its own.
const LIMIT: Duration = Duration::from_secs(120);

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
            || self.manager.ca_trust(|path| self.is_there(path)).await?.is_some();
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
        seen.is_ok_and(|seen| seen != crate::tree::Seen::Absent)
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
        masks: *mask,
        changes: true,
        can_reload: texts().any(says_reload),
    }
}

impl Going<'_> {
    /// Carries out the steps that were not yet; why one failed, if one did.
    pub(super) async fn act(&mut self) -> Result<Result<(), String>, OperationError> {
        let steps = self.kept.plan.steps.clone();
        for (index, step) in steps.iter().enumerate() {
            let ended = self.standing.notes.iter().find_map(|note| match note {
                Note::Ended { step, well, message } if *step == index => Some((*well, message)),
                _ => None,
            });
            match (step, ended) {
                (Step::Reboot | Step::Uncordon, _) => break,
                (_, Some((true, message))) => {
                    self.telling.tell(|it| it.ends(index, StepState::Done, message));
                    continue;
                }
                (_, Some((false, message))) => return Ok(Err(message.clone())),
                (Step::Drain, None) => {
                    self.telling.tell(|it| it.ends(index, StepState::Left, ""));
                    continue;
                }
                (Step::Write, None) => {
                    self.telling.tell(|it| it.ends(index, StepState::Done, ""));
                    continue;
                }
                _ => {}
            }
            if let Some(unit) = step.unit() {
                let act = Act::Unit { unit: unit.to_owned() };
                if !self.node.permit(&self.telling, act).await?.holds() {
                    return Err(OperationError::Forbidden(ENDED.to_owned()));
                }
            }
            let boot = self.boot.clone();
            self.journal.note(&Note::Begun { step: index, boot })?;
            self.telling.tell(|it| it.begins(index));
            let (well, message) = match self.step(step).await {
                Ok(message) => (true, message),
                Err(problem) => (false, problem.to_string()),
            };
            let note = Note::Ended { step: index, well, message: message.clone() };
            self.journal.note(&note)?;
            let state = if well { StepState::Done } else { StepState::Failed };
            self.telling.tell(|it| it.ends(index, state, &message));
            if !well {
                return Ok(Err(message));
            }
        }
        Ok(Ok(()))
    }

    /// Tells each unit of the plan again what is there; why one is not well, if one is not.
    pub(super) async fn units_again(&self) -> Result<(), Problem> {
        for step in &self.kept.plan.steps {
            match self.step(step).await {
                // It came with the config that is gone.
                Err(Problem { what: What::Missing, .. }) => {}
                done => drop(done?),
            }
        }
        Ok(())
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
