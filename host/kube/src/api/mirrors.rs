//! OpenShift's objects that redirect image pulls to mirrors, as far as they
//! have to be told apart and kept; what they mean is in `tread_model::mirrors`.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Mirrors for pulls by digest, the older way of saying it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "operator.openshift.io",
    version = "v1alpha1",
    kind = "ImageContentSourcePolicy",
    plural = "imagecontentsourcepolicies",
    derive = "PartialEq",
    derive = "Default",
    doc = "Mirrors for pulls by digest."
)]
#[serde(rename_all = "camelCase")]
pub struct ImageContentSourcePolicySpec {
    /// From where to where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository_digest_mirrors: Option<Vec<RepositoryMirrors>>,
}

/// Mirrors for pulls by digest.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "config.openshift.io",
    version = "v1",
    kind = "ImageDigestMirrorSet",
    plural = "imagedigestmirrorsets",
    shortname = "idms",
    derive = "PartialEq",
    derive = "Default",
    doc = "Mirrors for pulls by digest."
)]
#[serde(rename_all = "camelCase")]
pub struct ImageDigestMirrorSetSpec {
    /// From where to where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_digest_mirrors: Option<Vec<RepositoryMirrors>>,
}

/// Mirrors for pulls by tag.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "config.openshift.io",
    version = "v1",
    kind = "ImageTagMirrorSet",
    plural = "imagetagmirrorsets",
    shortname = "itms",
    derive = "PartialEq",
    derive = "Default",
    doc = "Mirrors for pulls by tag."
)]
#[serde(rename_all = "camelCase")]
pub struct ImageTagMirrorSetSpec {
    /// From where to where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_tag_mirrors: Option<Vec<RepositoryMirrors>>,
}

/// Where images of a repository are pulled from instead.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RepositoryMirrors {
    /// The repository that users name.
    pub source: String,
    /// Where its images are, too, in the order in which they are tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mirrors: Option<Vec<String>>,
    /// NeverContactSource, or AllowContactingSource, which is the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mirror_source_policy: Option<String>,
}
