//! Which boot images are in use, and whether they are too old.

use super::schemas::{ConditionShape, TimeShape};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::core::Rule as Cel;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The one BootImages that tread reads.
pub const BOOT_IMAGES: &str = "cluster";

/// How many machine resources the status lists.
pub const LISTED: usize = 200;

/// How many machines the status lists that told of their first boot.
pub const FIRST_BOOTS: usize = 20;

/// How many minutes a machine may be there without a node.
pub const STUCK_AFTER: i64 = 20;

/// How boot images are judged. tread makes the object once, and never writes
/// here again. `mode` and `manual` have the words and formats of
/// bootImageSkewEnforcement in OpenShift's MachineConfiguration.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, CustomResource, KubeSchema,
)]
#[kube(
    group = "tread.dev",
    version = "v1alpha1",
    kind = "BootImages",
    plural = "bootimages",
    shortname = "bimg",
    category = "tread",
    status = "BootImagesStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "Whether the images that new nodes boot from are too old for the cluster.",
    validation = Cel::new("self.metadata.name == 'cluster'")
        .message("there is only one, and its name is cluster"),
    printcolumn(name = "Mode", type_ = "string", json_path = ".status.mode"),
    printcolumn(
        name = "Oldest",
        type_ = "string",
        json_path = ".status.oldest",
        description = "The oldest version that a machine resource boots"
    ),
    printcolumn(
        name = "Limit",
        type_ = "string",
        json_path = ".status.limit",
        description = "What an image has to be at least"
    ),
    printcolumn(
        name = "Upgradeable",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Upgradeable\")].status",
        description = "False: the images are too old for an update to the next minor version"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Cel::new("!has(self.mode) || self.mode != 'Manual' || has(self.manual)")
    .message("is missing: with the mode Manual, say here which boot image in use is the oldest")
    .reason(kube::core::Reason::FieldValueRequired).field_path(".manual"))]
#[x_kube(validation = Cel::new("!has(self.manual) || (has(self.mode) && self.mode == 'Manual')")
    .message("only the mode Manual reads this: leave it out, or write mode: Manual")
    .field_path(".manual"))]
pub struct BootImagesSpec {
    /// Automatic: tread finds out what each machine resource boots. Manual: an
    /// admin records the oldest boot image in use. None: nothing is held back,
    /// and an admin takes the risk.
    #[serde(default)]
    pub mode: SkewMode,
    /// The oldest boot image in use, in the mode Manual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manual: Option<RecordedImage>,
    /// The least versions that an admin asks for, by stream. They only tighten
    /// what OpenShift asks for; without OpenShift they are all that is asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub limits: Vec<StreamLimit>,
    /// For how many minutes a machine may be there without a node before it is
    /// told of, if its image may be why. Left out: 20.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1440))]
    pub stuck_after_minutes: Option<i64>,
}

/// How boot images are judged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SkewMode {
    /// By what each machine resource boots.
    #[default]
    Automatic,
    /// By what an admin recorded.
    Manual,
    /// Not at all.
    None,
}

impl SkewMode {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            SkewMode::Automatic => "Automatic",
            SkewMode::Manual => "Manual",
            SkewMode::None => "None",
        }
    }
}

/// The oldest boot image in use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Cel::new("self.mode != 'OCPVersion' || has(self.ocpVersion)")
    .message("is missing: with the mode OCPVersion, write the release that the image came with")
    .reason(kube::core::Reason::FieldValueRequired).field_path(".ocpVersion"))]
#[x_kube(validation = Cel::new("self.mode == 'OCPVersion' || !has(self.ocpVersion)")
    .message("only the mode OCPVersion reads this: leave it out").field_path(".ocpVersion"))]
#[x_kube(validation = Cel::new("self.mode != 'RHCOSVersion' || has(self.rhcosVersion)")
    .message("is missing: with the mode RHCOSVersion, write the version of the image")
    .reason(kube::core::Reason::FieldValueRequired).field_path(".rhcosVersion"))]
#[x_kube(validation = Cel::new("self.mode == 'RHCOSVersion' || !has(self.rhcosVersion)")
    .message("only the mode RHCOSVersion reads this: leave it out").field_path(".rhcosVersion"))]
pub struct RecordedImage {
    /// Which of both is given.
    pub mode: RecordedBy,
    /// The release of OpenShift that the image came with: 4.16.3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 5, max = 10))]
    #[x_kube(validation = Cel::new("self.matches('^[0-9]+\\\\.[0-9]+\\\\.[0-9]+$')")
        .message("is no release: expected three numbers with dots, as in 4.16.3"))]
    pub ocp_version: Option<String>,
    /// The version of RHCOS in the image: 9.4.20240115-0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 14, max = 21))]
    #[x_kube(validation = Cel::new("self.matches('^[0-9]+\\\\.[0-9]+\\\\.([0-9]{8}|[0-9]{12})-[0-9]+$')")
        .message("is no version of RHCOS: expected one as in 9.4.20240115-0 or 414.92.202402051952-0"))]
    pub rhcos_version: Option<String>,
}

/// What is given of an image.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RecordedBy {
    /// The release of OpenShift.
    #[default]
    #[serde(rename = "OCPVersion")]
    Openshift,
    /// The version of RHCOS.
    #[serde(rename = "RHCOSVersion")]
    Rhcos,
}

/// The least versions that an admin asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Cel::new("has(self.ocpVersion) || has(self.rhelVersion)")
    .message("asks for nothing: expected ocpVersion, rhelVersion or both"))]
pub struct StreamLimit {
    /// The stream: rhel-10. Left out: the cluster's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 70))]
    pub stream: Option<String>,
    /// The least release of OpenShift that an image came with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 5, max = 10))]
    #[x_kube(validation = Cel::new("self.matches('^[0-9]+\\\\.[0-9]+\\\\.[0-9]+$')")
        .message("is no release: expected three numbers with dots, as in 4.16.0"))]
    pub ocp_version: Option<String>,
    /// The least version of RHEL in an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 3, max = 10))]
    #[x_kube(validation = Cel::new("self.matches('^[0-9]+\\\\.[0-9]+$')")
        .message("is no version of RHEL: expected two numbers with a dot, as in \\\"9.4\\\""))]
    pub rhel_version: Option<String>,
}

/// How it stands with the boot images.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BootImagesStatus {
    /// The generation of the spec that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How boot images are judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<SkewMode>,
    /// The oldest version that a machine resource of the cluster's own stream boots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest: Option<String>,
    /// What an image has to be at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// What machine resources boot, the oldest first. Not all of them, where there
    /// are many: the service answers with all at /v1/bootimages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<BootImage>,
    /// How many machine resources there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<i64>,
    /// Which resources are not judged, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// What OpenShift's own check does, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub openshift: Option<OpenshiftCheck>,
    /// Machines that booted from an image that is too old, as they said at their first boot
    /// within the last day: the newest 20, and the newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub first_boots: Vec<FirstBoot>,
    /// SkewWithinLimit, Upgradeable, Degraded, OtherStreamsWithinLimit, MachinesJoin
    /// and FirstBootsWithinLimit, with the remedy in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<ConditionShape>")]
    pub conditions: Vec<Condition>,
}

/// What a machine resource boots.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BootImage {
    /// Its kind and group: MachineSet.machine.openshift.io.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The image, as its platform names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The version of the image, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Who knows it: Annotation, Catalogue, Name, Updater, Aleph, Install (assumed)
    /// or Unknown.
    pub known_by: String,
    /// Its stream.
    pub stream: String,
    /// Passes, Warns, Waits or Blocks.
    pub verdict: String,
    /// Why, as a stable word.
    pub reason: String,
    /// Why, in words.
    pub message: String,
    /// Who makes it, as Kind/name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

/// A machine that booted from an image that is too old, by its own word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FirstBoot {
    /// What it calls itself.
    pub machine: String,
    /// From where it said so.
    pub address: String,
    /// The pool whose config it asked for.
    pub pool: String,
    /// What it booted from.
    pub image: String,
    /// What is wrong with that, as a stable word.
    pub reason: String,
    /// Whether its kubelet does not start.
    pub stopped: bool,
    /// When it said so.
    #[schemars(with = "TimeShape")]
    pub at: Time,
}

/// What OpenShift's own check does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenshiftCheck {
    /// Its mode; empty: it has not set one.
    pub mode: String,
    /// The version that it compares.
    pub version: String,
    /// Whether it holds updates back.
    pub blocks: bool,
    /// Why, and where it lets pass what tread does not.
    pub message: String,
}
