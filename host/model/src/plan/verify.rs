//! A plan as whoever carries it out has it, and what can be checked of it without
//! running any policy.

use super::decider::Decider;
use super::digest::plan_digest;
use super::schema::{Plan, PlanOutcome, SCHEMA};
use super::steps::{CA_TRUST_UNIT, Step, needs_daemon_reload};
use crate::claim::Kind;
use crate::digest::Digest;
use crate::effect::Effect;
use crate::text::one_line_within;
use crate::touch::{Touch, touch};
use crate::verdict::Layer;
use serde::{Deserialize, Serialize};

/// What the digest of a plan covers, and the digest. That says which plan it is, and not
/// who made it: anybody can compute it, of deciders that never were, too. It is read from the JSON of a
/// [`Plan`], too; what that has besides explains it, and nobody can verify it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VerifiablePlan {
    /// Whether there is anything to do, and whether it may be done.
    pub outcome: PlanOutcome,
    /// The digest of the config that the node has.
    pub from: Digest,
    /// The digest of the config that it is to get.
    pub to: Digest,
    /// The policies that decided, by layer and name.
    pub deciders: Vec<Decider>,
    /// What is done, in order.
    pub steps: Vec<Step>,
    /// Covers all of the above.
    pub digest: Digest,
}

/// The version that reads plans here.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Why a plan is not carried out. Each says what to do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanFault {
    /// It is no plan that this version of tread reads.
    #[error("this is no plan: {0}; make one by `tread plan OLD NEW -o json`")]
    NoPlan(String),
    /// It says that it is of this schema, and this version does not read it.
    #[error(
        "the plan has the schema `{SCHEMA}`, and tread {VERSION} does not read all that it says ({0}): another version made it, or it was changed; make it again with tread {VERSION}, by `tread plan OLD NEW -o json`"
    )]
    Unread(String),
    /// It is of another schema.
    #[error(
        "the plan has the schema `{0}`, and tread {VERSION} carries out `{SCHEMA}`: another version made it; make it again with tread {VERSION}, by `tread plan OLD NEW -o json`"
    )]
    Schema(String),
    /// The digest is another plan's.
    #[error(
        "the plan says that its digest is {stated}, and what it says has {computed}: it was changed after it was made; make it again"
    )]
    Digest {
        /// What it says.
        stated: Digest,
        /// What it should say.
        computed: Digest,
    },
    /// A summary of the steps does not agree with them.
    #[error(
        "the plan says `{field}` that its steps do not have: it was changed after it was made; make it again"
    )]
    Disagrees {
        /// The field.
        field: &'static str,
    },
    /// No plan has such steps.
    #[error("no plan has these steps: {0}; make it again")]
    Steps(String),
    /// The deciders are not as the digest needs them.
    #[error(
        "the policies that decided are not sorted by layer and name, each once; make the plan again"
    )]
    Deciders,
    /// It must not be applied.
    #[error("the plan refuses the change, so nothing is applied; correct what it names")]
    Refused,
    /// It is for another config than the one that the node has.
    #[error(
        "the plan begins at the config {planned}, and the node has {there}; make a plan from what the node has"
    )]
    From {
        /// What the plan says.
        planned: Digest,
        /// What there is.
        there: Digest,
    },
    /// It leads to another config than the one at hand.
    #[error(
        "the plan leads to the config {planned}, and the one at hand is {given}; make a plan for this config"
    )]
    To {
        /// What the plan says.
        planned: Digest,
        /// What there is.
        given: Digest,
    },
    /// It says that nothing differs where something does.
    #[error("the plan says that there is nothing to do, and {0} differs; make it again")]
    NotNothing(String),
    /// It would be too gentle.
    #[error("the plan has no {needed}, and {change} needs one; make it again")]
    TooGentle {
        /// The change.
        change: String,
        /// What is missing.
        needed: &'static str,
    },
}

impl VerifiablePlan {
    /// Reads a plan, and checks all that can be checked of it alone.
    pub fn read(json: &[u8]) -> Result<VerifiablePlan, PlanFault> {
        #[derive(Deserialize)]
        struct Head {
            schema: Option<String>,
        }
        #[derive(Deserialize)]
        struct Stated {
            effect: Option<Effect>,
            drain: Option<bool>,
            reboot: Option<bool>,
            #[serde(flatten)]
            plan: VerifiablePlan,
        }
        let no_plan = |error: serde_json::Error| PlanFault::NoPlan(error.to_string());
        // First, since a plan of another version may have any form.
        let Head { schema } = serde_json::from_slice(json).map_err(no_plan)?;
        let is_stated = schema.is_some();
        if let Some(schema) = schema.filter(|schema| schema != SCHEMA) {
            return Err(PlanFault::Schema(one_line_within(&schema, 100).0));
        }
        let unread = |error: serde_json::Error| match is_stated {
            true => PlanFault::Unread(one_line_within(&error.to_string(), 200).0),
            false => no_plan(error),
        };
        let stated: Stated = serde_json::from_slice(json).map_err(unread)?;
        let plan = stated.plan;
        plan.verify()?;
        plan.is_written_so(json)?;
        let disagrees = |field| Err(PlanFault::Disagrees { field });
        if stated.effect.is_some_and(|effect| effect != plan.effect()) {
            return disagrees("effect");
        }
        if stated.drain.is_some_and(|drain| drain != plan.steps.contains(&Step::Drain)) {
            return disagrees("drain");
        }
        if stated.reboot.is_some_and(|reboot| reboot != plan.steps.contains(&Step::Reboot)) {
            return disagrees("reboot");
        }
        Ok(plan)
    }

    /// Whether the steps stand in the text as a plan has them, so that whoever else reads
    /// it finds the same.
    fn is_written_so(&self, json: &[u8]) -> Result<(), PlanFault> {
        #[derive(Deserialize)]
        struct Written {
            steps: serde_json::Value,
        }
        let no_plan = |error: serde_json::Error| PlanFault::NoPlan(error.to_string());
        let written: Written = serde_json::from_slice(json).map_err(no_plan)?;
        if written.steps != serde_json::to_value(&self.steps).map_err(no_plan)? {
            return Err(PlanFault::Steps("they say more than a step does".to_owned()));
        }
        Ok(())
    }

    /// The plan that is always allowed between two configs: the node is drained and
    /// boots. Nobody decided it.
    pub fn always_allowed(from: Digest, to: Digest) -> VerifiablePlan {
        let steps = vec![Step::Drain, Step::Write, Step::Reboot, Step::Uncordon];
        let outcome = PlanOutcome::Apply;
        let digest = plan_digest(outcome, &from, &to, &[], &steps);
        VerifiablePlan { outcome, from, to, deciders: Vec::new(), steps, digest }
    }

    /// The digest of what the plan says, whatever it says that its digest is.
    pub fn computed_digest(&self) -> Digest {
        plan_digest(self.outcome, &self.from, &self.to, &self.deciders, &self.steps)
    }

    /// The most disruptive thing that its steps do.
    pub fn effect(&self) -> Effect {
        match self.outcome {
            PlanOutcome::Refuse => Effect::Refuse,
            _ => self.steps.iter().map(Step::effect).max().unwrap_or(Effect::None),
        }
    }

    /// Whether an admin had a part in it.
    pub fn has_an_admin_decided(&self) -> bool {
        self.deciders.iter().any(|decider| decider.layer == Layer::Admin)
    }

    /// Whether its digest is that of what it says, and whether a plan can have such
    /// steps at all.
    pub fn verify(&self) -> Result<(), PlanFault> {
        let (stated, computed) = (self.digest, self.computed_digest());
        if stated != computed {
            return Err(PlanFault::Digest { stated, computed });
        }
        let key = |decider: &Decider| (decider.layer, decider.policy.clone());
        if !self.deciders.is_sorted_by(|a, b| key(a) < key(b)) {
            return Err(PlanFault::Deciders);
        }
        match (self.outcome, self.steps.as_slice()) {
            (PlanOutcome::Apply, steps) => self.check_steps(steps),
            (PlanOutcome::Nothing | PlanOutcome::Refuse, []) => Ok(()),
            (PlanOutcome::Nothing | PlanOutcome::Refuse, _) => {
                Err(PlanFault::Steps("a plan that applies nothing has none".to_owned()))
            }
        }
    }

    fn check_steps(&self, steps: &[Step]) -> Result<(), PlanFault> {
        let wrong = |what: &str| Err(PlanFault::Steps(what.to_owned()));
        for unit in steps.iter().filter_map(Step::unit) {
            let named = || crate::text::one_line(unit);
            match touch(unit) {
                Err(why) => return Err(PlanFault::Steps(format!("`{}` {why}", named()))),
                Ok(Touch::Wide) if !self.has_an_admin_decided() => {
                    return Err(PlanFault::Steps(format!(
                        "only an admin can have `{}` touched",
                        named()
                    )));
                }
                Ok(_) => {}
            }
        }
        if steps.iter().any(|step| step.unit() == Some(CA_TRUST_UNIT)) {
            return Err(PlanFault::Steps(format!("{CA_TRUST_UNIT} is `update-ca-trust`")));
        }
        if !steps.is_sorted_by(|a, b| a.rank() < b.rank()) {
            return wrong("they are not in their order, each once");
        }
        let has = |step: &Step| steps.contains(step);
        if !has(&Step::Write) {
            return wrong("nothing is written");
        }
        if has(&Step::Drain) != has(&Step::Uncordon) {
            return wrong("`drain` and `uncordon` belong together");
        }
        if !has(&Step::Reboot) {
            return Ok(());
        }
        let absorbed = |step: &Step| {
            !matches!(step, Step::Drain | Step::Write | Step::Reboot | Step::Uncordon)
        };
        if steps.iter().any(absorbed) {
            return wrong("a reboot absorbs what comes before it");
        }
        if !has(&Step::Drain) && !self.has_an_admin_decided() {
            return wrong("only an admin can say that a reboot needs no drain");
        }
        Ok(())
    }

    /// Whether it may be carried out from one config to the other (law 6): `changes`
    /// are the ids of all that differs between them.
    pub fn check<'c>(
        &self,
        (from, to): (Digest, Digest),
        changes: impl IntoIterator<Item = &'c str>,
    ) -> Result<(), PlanFault> {
        self.verify()?;
        if self.from != from {
            return Err(PlanFault::From { planned: self.from, there: from });
        }
        if self.to != to {
            return Err(PlanFault::To { planned: self.to, given: to });
        }
        let mut changes = changes.into_iter();
        match self.outcome {
            PlanOutcome::Refuse => Err(PlanFault::Refused),
            PlanOutcome::Nothing => match changes.next() {
                Some(change) => Err(PlanFault::NotNothing(change.to_owned())),
                None => Ok(()),
            },
            PlanOutcome::Apply => changes.try_for_each(|change| self.check_change(change)),
        }
    }

    fn check_change(&self, change: &str) -> Result<(), PlanFault> {
        let has = |step: Step| self.steps.contains(&step);
        let too_gentle = |needed| Err(PlanFault::TooGentle { change: change.to_owned(), needed });
        if has(Step::Reboot) {
            return Ok(());
        }
        if Kind::is_applied_by_boot(change) && !self.has_an_admin_decided() {
            return too_gentle("reboot");
        }
        if needs_daemon_reload(change) && !has(Step::DaemonReload) {
            return too_gentle("daemon-reload");
        }
        Ok(())
    }
}

impl From<&Plan> for VerifiablePlan {
    fn from(plan: &Plan) -> VerifiablePlan {
        VerifiablePlan {
            outcome: plan.outcome,
            from: plan.from,
            to: plan.to,
            deciders: plan.deciders.clone(),
            steps: plan.steps.clone(),
            digest: plan.digest,
        }
    }
}

#[cfg(test)]
mod tests;
