//! What was chosen for a policy.

use crate::policies::choose::{Attempt, Choice, Deciding, Version, choose, has_to_wait};
use crate::policies::load::{Loaded, Retry};
use kube::ResourceExt as _;
use std::sync::Arc;
use tread_engine::policy::Policy;
use tread_kube::api::DisruptionPolicy;
use tread_kube::api::disruption_policy::{Mode, State};
use tread_model::verdict::{Failure, FailureKind};

/// A policy with what was chosen for it.
#[derive(Debug, Clone)]
pub(super) struct Chosen {
    pub(super) object: Arc<DisruptionPolicy>,
    /// The newest version.
    pub(super) attempt: Attempt,
    pub(super) choice: Choice,
    /// The version that decides, where one does.
    pub(super) decides: Option<Arc<Policy>>,
    /// What it is called in plans.
    pub(super) name: String,
    /// The version that is kept, and where.
    pub(super) kept: Option<(Version, String)>,
    /// Whether the status may say so already.
    pub(super) is_final: bool,
    /// When the newest version is tried again, where it failed to compile.
    pub(super) retry: Option<Retry>,
    /// Why the last good version cannot be loaded for the moment, where it would decide.
    pub(super) not_now: Option<Failure>,
}

impl Chosen {
    /// The same, unless the version that decides has to be approved by now. `listed` are the claims that
    /// its namespace lists.
    pub(super) fn if_approved(self, listed: Option<&str>) -> Chosen {
        match self.decider().cloned() {
            Some(version) if has_to_wait(&self.object, &version, listed) => {
                let choice = choose(&self.object, &Attempt::Good(version), None, listed);
                Chosen { choice, decides: None, ..self }
            }
            _ => self,
        }
    }

    /// The version that decides, where one does.
    pub(super) fn decider(&self) -> Option<&Version> {
        match (&self.choice.deciding, &self.attempt) {
            (Deciding::Newest, Attempt::Good(version)) => Some(version),
            (Deciding::LastGood, _) => self.kept.as_ref().map(|(version, _)| version),
            _ => None,
        }
    }
}

/// An object that stands for nothing, and stays.
pub(super) fn idle(object: &Arc<DisruptionPolicy>, why: &str) -> Chosen {
    let state = match object.spec.mode {
        Mode::Disabled => State::Disabled,
        Mode::Enforce | Mode::Shadow => State::Failed,
    };
    let failure = Failure { kind: FailureKind::Missing, message: why.to_owned() };
    Chosen {
        object: Arc::clone(object),
        attempt: Loaded::bad(failure).attempt,
        choice: Choice { state, deciding: Deciding::Nobody, needs_approval: None },
        decides: None,
        name: object.name_any(),
        kept: None,
        is_final: true,
        retry: None,
        not_now: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tread_model::description::Claim;
    use tread_model::digest::Sha256;
    use tread_model::effect::Effect;

    #[test]
    fn what_decides_while_its_copy_is_looked_for_needs_its_approval_all_the_same() {
        let version = Version {
            name: "wide".to_owned(),
            version: "1.0.0".to_owned(),
            summary: String::new(),
            claims: vec![Claim::on("file:/**", Effect::None, Effect::Restart)],
            digest: Sha256::of(b"good"),
            settings_digest: Sha256::of(b"{}"),
            warnings: Vec::new(),
        };
        let of = |spec: serde_json::Value| {
            let object = json!({"apiVersion": "tread.dev/v1alpha1", "kind": "DisruptionPolicy",
                "metadata": {"name": "wide"}, "spec": spec});
            let before = idle(&Arc::new(serde_json::from_value(object).unwrap()), "why");
            let choice = Choice {
                state: State::LastGood,
                deciding: Deciding::LastGood,
                needs_approval: None,
            };
            let kept = Some((version.clone(), "copy".to_owned()));
            Chosen { choice, kept, ..before }.if_approved(None).choice
        };
        let source = json!({"configMap": {"namespace": "apps", "name": "wide"}});
        let choice = of(json!({"source": source, "layer": "template"}));
        assert_eq!((choice.state, &choice.deciding), (State::NeedsApproval, &Deciding::Nobody));
        assert!(choice.needs_approval.is_some());
        for spec in [
            json!({"source": source, "layer": "template", "approved": true}),
            json!({"source": source, "layer": "admin"}),
        ] {
            assert_eq!(of(spec).deciding, Deciding::LastGood);
        }
    }
}
