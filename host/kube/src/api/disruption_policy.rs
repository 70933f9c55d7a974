//! A policy, and what tread makes of it.

use super::rules::PolicyRule;
use super::schemas::{ConditionShape, TimeShape, free_object};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::core::Rule as Cel;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tread_model::effect::Effect;

/// What an admin says of a policy. Of a policy that registered itself, or that
/// comes with tread, tread makes the object once, and never writes here again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "tread.dev",
    version = "v1alpha1",
    kind = "DisruptionPolicy",
    plural = "disruptionpolicies",
    shortname = "dpol",
    category = "tread",
    status = "DisruptionPolicyStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "Decides how much a change of a node's configuration disturbs the node.",
    selectable = ".spec.mode",
    printcolumn(
        name = "Layer",
        type_ = "string",
        json_path = ".status.layer",
        description = "Who speaks: admin above template and builtin"
    ),
    printcolumn(name = "Source", type_ = "string", json_path = ".status.source"),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.version"),
    printcolumn(name = "State", type_ = "string", json_path = ".status.state"),
    printcolumn(name = "Mode", type_ = "string", json_path = ".spec.mode"),
    printcolumn(
        name = "Claims",
        type_ = "string",
        json_path = ".status.claimsSummary",
        description = "What it wants to decide on"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Effects",
        type_ = "string",
        json_path = ".status.effects",
        description = "From the least to the most disruptive answer that it may give"
    ),
    printcolumn(name = "Digest", type_ = "string", json_path = ".status.digest", priority = "1"),
    printcolumn(
        name = "Decisions",
        type_ = "integer",
        json_path = ".status.decisions",
        priority = "1",
        description = "Changes that it decided on"
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Cel::new("has(self.source) || has(self.rules)")
    .message("says nothing: expected rules, or a source that names a module")
    .reason(kube::core::Reason::FieldValueRequired))]
#[x_kube(validation = Cel::new("!has(self.source) || !has(self.rules)")
    .message("has rules and a source: a policy is made of one of them"))]
#[x_kube(validation = Cel::new("!has(self.rules) || !has(self.settings)")
    .message("settings mean nothing for inline rules: leave them out").field_path(".settings"))]
#[x_kube(validation = Cel::new("!has(self.rules) || !has(self.digest)")
    .message("a digest means nothing for inline rules: leave it out").field_path(".digest"))]
#[x_kube(validation = Cel::new("!has(self.rules) || !has(self.limits)")
    .message("limits mean nothing for inline rules: leave them out").field_path(".limits"))]
#[x_kube(validation = Cel::new(
    "!has(self.layer) || self.layer != 'builtin' || (has(self.source) && has(self.source.builtin))"
).message("only tread itself speaks as builtin: write admin or template").field_path(".layer"))]
#[x_kube(validation = Cel::new(
    "!has(self.layer) || self.layer == 'builtin' || !has(self.source) || !has(self.source.builtin)"
).message("what comes with tread speaks as builtin: leave the layer out").field_path(".layer"))]
#[x_kube(validation = Cel::new(
    "!has(self.layer) || self.layer == 'admin' || !has(self.source) || !has(self.source.machineConfiguration)"
).message("the cluster's own rules are an admin's: leave the layer out").field_path(".layer"))]
#[x_kube(validation = Cel::new(
    "!has(self.source) || !has(self.source.configMap) || has(self.layer)"
).message("is missing: write template for the policy of a template's owner, or admin").field_path(".layer")
    .reason(kube::core::Reason::FieldValueRequired))]
#[x_kube(validation = Cel::new(
    "!has(self.rules) || !has(self.layer) || self.layer == 'admin' || self.rules.all(r, !has(r.drain) || r.drain)"
).message("only a policy in the admin layer can reboot without a drain").field_path(".rules"))]
pub struct DisruptionPolicySpec {
    /// Who speaks: admin above template and builtin. Rules without it are an
    /// admin's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<Layer>,
    /// Where the module is. Either this or rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// A policy that needs no module. Either this or source.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1000))]
    pub rules: Option<Vec<PolicyRule>>,
    /// Whether it decides: Enforce, or Shadow (asked, but what it says changes
    /// nothing), or Disabled.
    #[serde(default)]
    pub mode: Mode,
    /// Settings of the policy, in place of those in its ConfigMap, key by key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "free_object")]
    pub settings: Option<Map<String, Value>>,
    /// The module has to have this sha256 digest, or it never decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    #[x_kube(validation = Cel::new("self.matches('^sha256:[0-9a-f]{64}$')")
        .message("is no digest: expected sha256: and 64 hexadecimal digits in lower case"))]
    pub digest: Option<String>,
    /// What the module may use, where that is not what every module may.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<PolicyLimits>,
    /// An admin has seen what it claims, although its namespace may not, or
    /// although the claim is wide.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approved: bool,
    /// A policy in the template layer may say less than a built-in policy does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_relax: bool,
    /// A policy in the template layer may read files that are secret on the node.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_secrets: bool,
}

/// Where a module is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Cel::new(
    "[has(self.builtin), has(self.configMap), has(self.machineConfiguration)].filter(given, given).size() == 1"
).message("expected exactly one of builtin, configMap and machineConfiguration"))]
pub struct Source {
    /// A policy that comes with tread, by its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub builtin: Option<String>,
    /// A ConfigMap with a module in its binaryData.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_map: Option<ConfigMapSource>,
    /// The nodeDisruptionPolicy of OpenShift's MachineConfiguration of this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub machine_configuration: Option<String>,
}

/// A ConfigMap with a module in its binaryData.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMapSource {
    /// Its namespace.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The key of the module, where binaryData has more than one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub key: Option<String>,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// A cluster admin.
    Admin,
    /// The owner of the template that wrote a file.
    Template,
    /// tread itself.
    Builtin,
}

/// Whether a policy decides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Mode {
    /// It decides.
    #[default]
    Enforce,
    /// It is asked, decides nothing, and plans say what it would have changed.
    Shadow,
    /// It is not asked.
    Disabled,
}

/// What a module may use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyLimits {
    /// Fuel of a call, about one unit an instruction.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000_000_000_i64))]
    pub fuel: Option<i64>,
    /// Processor time of a call, the backstop behind fuel.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 60_000))]
    pub deadline_milliseconds: Option<i64>,
    /// Linear memory of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 65_536, max = 33_554_432))]
    pub memory_bytes: Option<i64>,
}

/// What tread made of a policy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DisruptionPolicyStatus {
    /// The generation of the spec that this is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Loaded, LastGood (a new version is bad or waits for approval, the one before
    /// decides), Failed (what it claims costs a reboot in the mode Enforce),
    /// NeedsApproval, Disabled, Invalid, or Loading (it never decided, and waits to be
    /// compiled).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// Who speaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<Layer>,
    /// Where it comes from, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// What it is called in plans: the name that its module gives itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The version that decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What it does, in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The sha256 digest of the module that decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The sha256 digest of the newest module that was tried, whether or not it
    /// decides: the condition Loaded says how it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest_digest: Option<String>,
    /// The sha256 digest of the settings with which it decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings_digest: Option<String>,
    /// The ConfigMap in tread's namespace that keeps the module that decides,
    /// for the day when a new one is bad.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_in: Option<String>,
    /// What it wants to decide on; kept when it cannot be loaded any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<ClaimStatus>,
    /// The claims, cut for a column.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claims_summary: Option<String>,
    /// From the least to the most disruptive answer, for a column.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effects: Option<String>,
    /// Changes that it decided on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decisions: Option<i64>,
    /// How the newest version failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureStatus>,
    /// When what decides changed for the last time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<TimeShape>")]
    pub last_change: Option<Time>,
    /// Which pending plans that change made gentler or harsher.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending_plans: Option<String>,
    /// Loaded, Approved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    #[schemars(with = "Vec<ConditionShape>")]
    pub conditions: Vec<Condition>,
}

/// How it stands with a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum State {
    /// The newest version decides.
    Loaded,
    /// The newest version is bad, or waits for approval; the one before decides.
    LastGood,
    /// It cannot decide: in the mode Enforce what it claims costs a reboot.
    Failed,
    /// It claims more than its namespace may: it decides nothing until an admin
    /// approves.
    NeedsApproval,
    /// An admin switched it off.
    Disabled,
    /// The object itself says nothing that could be followed.
    Invalid,
    /// It never decided, and waits for its turn to be fetched and compiled.
    Loading,
}

impl State {
    /// All of them, as they are written.
    pub const ALL: [(State, &'static str); 7] = [
        (State::Loaded, "Loaded"),
        (State::LastGood, "LastGood"),
        (State::Failed, "Failed"),
        (State::NeedsApproval, "NeedsApproval"),
        (State::Disabled, "Disabled"),
        (State::Invalid, "Invalid"),
        (State::Loading, "Loading"),
    ];
}

/// Changes that a policy wants to see, and the range of its answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimStatus {
    /// A pattern: KIND or KIND:GLOB.
    pub changes: String,
    /// The least disruptive answer that it may give.
    #[schemars(with = "EffectWord")]
    pub least: Effect,
    /// The most disruptive answer that it may give.
    #[schemars(with = "EffectWord")]
    pub most: Effect,
    /// It is asked also when this did not change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_unchanged: bool,
}

/// The words of [`Effect`], for the schema.
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "only its schema is used; the test below keeps it equal to Effect")]
pub(super) enum EffectWord {
    None,
    Reload,
    Restart,
    Drain,
    Reboot,
    Refuse,
}

/// How a version failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureStatus {
    /// Its stable name.
    pub name: String,
    /// What happened, for the author of the policy.
    pub message: String,
    /// The digest of the module that failed, where there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// When it was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<TimeShape>")]
    pub since: Option<Time>,
    /// How often these bytes failed to compile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tries: Option<i64>,
    /// When they are tried again: not before that, also after a restart. Other
    /// bytes are tried at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<TimeShape>")]
    pub retry_at: Option<Time>,
}

impl From<Layer> for tread_model::verdict::Layer {
    fn from(layer: Layer) -> tread_model::verdict::Layer {
        match layer {
            Layer::Admin => tread_model::verdict::Layer::Admin,
            Layer::Template => tread_model::verdict::Layer::Template,
            Layer::Builtin => tread_model::verdict::Layer::Builtin,
        }
    }
}

impl From<tread_model::verdict::Layer> for Layer {
    fn from(layer: tread_model::verdict::Layer) -> Layer {
        match layer {
            tread_model::verdict::Layer::Admin => Layer::Admin,
            tread_model::verdict::Layer::Template => Layer::Template,
            tread_model::verdict::Layer::Builtin => Layer::Builtin,
        }
    }
}

impl DisruptionPolicySpec {
    /// Who speaks, also where the object does not say.
    pub fn layer(&self) -> Layer {
        let builtin = self.source.as_ref().is_some_and(|source| source.builtin.is_some());
        self.layer.unwrap_or(if builtin { Layer::Builtin } else { Layer::Admin })
    }
}

impl From<&tread_model::description::Claim> for ClaimStatus {
    fn from(claim: &tread_model::description::Claim) -> ClaimStatus {
        ClaimStatus {
            changes: claim.changes.clone(),
            least: claim.least,
            most: claim.most,
            with_unchanged: claim.with_unchanged,
        }
    }
}
