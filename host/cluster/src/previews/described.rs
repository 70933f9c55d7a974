//! A DisruptionPlan as it has to be.

use std::collections::BTreeSet;
use tread_kube::api::disruption_plan::{Cause, DisruptionPlanStatus};
use tread_model::effect::Effect;

/// A DisruptionPlan as it has to be.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Described {
    /// Its name.
    pub name: String,
    /// Of which pool.
    pub pool: String,
    /// What it is for.
    pub cause: Cause,
    /// The most disruptive thing that will happen.
    pub effect: Effect,
    /// Everything that is known of it: every way, with every change.
    pub status: DisruptionPlanStatus,
    /// The most disruptive thing that will happen on each way, by whoever rolls it
    /// out, and to how many nodes.
    #[serde(skip)]
    pub happens: Vec<(Effect, i64)>,
    /// Why it is not less, on each of these ways.
    #[serde(skip)]
    pub reasons: Vec<Option<String>>,
    /// The names of plans that there are too many of: this one says so.
    #[serde(skip)]
    pub left_out: BTreeSet<String>,
}
