//! What a policy says of itself.

use crate::effect::Effect;
use serde::{Deserialize, Serialize};

/// What a policy is: in WIT `description`, and as JSON the component's custom
/// section [`SECTION`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Description {
    /// Lower-case letters, digits and `-`, 63 characters at most.
    pub name: String,
    /// A semantic version.
    pub version: String,
    /// One line.
    pub summary: String,
    /// What it wants to see.
    pub claims: Vec<Claim>,
    /// The settings that it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<SettingsDescription>,
}

/// The component's custom section that holds the description.
pub const SECTION: &str = "tread:policy";

/// What a policy says beforehand on secrets: in WIT `declared`, since 1.1.0, and
/// as JSON the component's custom section [`DECLARATIONS`]. One that is built
/// against 1.0.0 declares nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Declarations {
    /// Whether it can say nothing of a secret without reading it.
    pub needs_secrets: bool,
    /// Sentences that hold no contents, word by word as its verdicts say them.
    pub reasons: Vec<String>,
}

/// The component's custom section that holds the declarations.
pub const DECLARATIONS: &str = "tread:declarations";

/// Changes that a policy wants to see, and the range of its answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Claim {
    /// `KIND` or `KIND:GLOB`.
    pub changes: String,
    /// The least disruptive answer…
    pub least: Effect,
    /// … and the most disruptive.
    pub most: Effect,
    /// Offer it also when it did not change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_unchanged: bool,
}

/// The settings that a policy takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SettingsDescription {
    /// One JSON object: every setting with its default.
    pub defaults: String,
    /// A JSON Schema of it.
    pub schema: String,
}
