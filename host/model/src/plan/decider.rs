//! Who decided, as the digest of a plan covers it.

use crate::digest::Sha256;
use crate::verdict::Layer;
use serde::{Deserialize, Serialize};

/// A policy that had a part in the decision, as the digest of a plan covers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decider {
    /// Its name.
    pub policy: String,
    /// Who speaks.
    pub layer: Layer,
    /// The digest of its component.
    pub digest: Sha256,
    /// The digest of its settings.
    pub settings_digest: Sha256,
}
