//! What was chosen for a policy.

use crate::policies::choose::{Attempt, Choice, Deciding, Version};
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
    }
}
