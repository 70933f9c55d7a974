//! Labels, annotations and names that users and controllers agree on.

/// The group of tread's own objects.
pub const GROUP: &str = "tread.dev";
/// Their version.
pub const VERSION: &str = "v1alpha1";
/// Who tread is for the API server: field manager, and reporter of Events.
pub const MANAGER: &str = "tread";

/// On all that belongs to one program: its name.
pub const NAME_LABEL: &str = "app.kubernetes.io/name";
/// On all that belongs to tread, with the value [`NAME`].
pub const PART_OF_LABEL: &str = "app.kubernetes.io/part-of";

/// On a ConfigMap, with the value [`IS_POLICY`]: it holds a policy.
pub const POLICY_LABEL: &str = "tread.dev/policy";
/// The one value of [`POLICY_LABEL`] that means something.
pub const IS_POLICY: &str = "true";
/// What finds the ConfigMaps that hold policies.
pub const POLICY_SELECTOR: &str = "tread.dev/policy=true";
/// On a ConfigMap that holds a policy: the key of its module, where it holds more.
pub const KEY_ANNOTATION: &str = "tread.dev/policy-key";

/// On a namespace, with the value [`ALLOWED`]: its ConfigMaps may be policies.
pub const POLICIES_LABEL: &str = "tread.dev/policies";
/// The one value of [`POLICIES_LABEL`] that means something.
pub const ALLOWED: &str = "allowed";
/// What finds the namespaces whose ConfigMaps may be policies.
pub const ALLOWED_SELECTOR: &str = "tread.dev/policies=allowed";
/// On such a namespace: the claims that its policies may make, one a line.
pub const CLAIMS_ANNOTATION: &str = "tread.dev/claims";

/// On a DisruptionPolicy: the UID of the ConfigMap that registered itself.
pub const REGISTERED_BY_LABEL: &str = "tread.dev/registered-by";
/// On a DisruptionPolicy: what an admin had said in the one before it of the same
/// name, which went with its ConfigMap.
pub const LOST_ANNOTATION: &str = "tread.dev/lost";
/// On a ConfigMap in tread's own namespace: the DisruptionPolicy whose last good
/// version it keeps, by UID.
pub const LAST_GOOD_LABEL: &str = "tread.dev/last-good-of";

/// What everything is called.
pub const NAME: &str = "tread";
