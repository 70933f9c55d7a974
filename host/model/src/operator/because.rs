//! Why the operator does what it does.

use crate::effect::Effect;
use serde::Serialize;

/// What one difference costs by the operator's rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Because {
    /// `file:/etc/chrony.conf`, `kernel-arguments`, `passwd`, …
    pub id: String,
    /// What it does for it.
    pub effect: Effect,
    /// By which rule.
    pub rule: String,
}
