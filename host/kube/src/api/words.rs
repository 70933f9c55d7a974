//! Labels, annotations and names that users and controllers agree on.

/// The group of tread's own objects.
pub const GROUP: &str = "tread.dev";
/// Their version.
pub const VERSION: &str = "v1alpha1";
/// Who tread is for the API server: field manager, and reporter of Events.
pub const MANAGER: &str = "tread";

/// OpenShift's groups: of nodes' configs and their pools,
pub const MACHINE_CONFIG_GROUP: &str = "machineconfiguration.openshift.io";
/// of settings of the cluster,
pub const CONFIG_GROUP: &str = "config.openshift.io";
/// of settings of its operators,
pub const OPERATOR_GROUP: &str = "operator.openshift.io";
/// and of machines.
pub const MACHINE_GROUP: &str = "machine.openshift.io";

/// Where OpenShift's operator of nodes' configs runs, with its daemons.
pub const OPERATORS_NAMESPACE: &str = "openshift-machine-config-operator";
/// The DaemonSet that brings what that operator renders to nodes.
pub const OPERATORS_DAEMON: &str = "machine-config-daemon";

/// On all that belongs to one program: its name.
pub const NAME_LABEL: &str = "app.kubernetes.io/name";
/// On all that belongs to tread, with the value [`NAME`].
pub const PART_OF_LABEL: &str = "app.kubernetes.io/part-of";

/// On what tread made by itself, with the value [`MANAGER`].
pub const MADE_BY_LABEL: &str = "app.kubernetes.io/managed-by";

/// On a ConfigMap, with the value [`IS_POLICY`]: it holds a policy.
pub use tread_model::description::POLICY_LABEL;
/// The one value of [`POLICY_LABEL`] that means something.
pub const IS_POLICY: &str = "true";
/// What finds the ConfigMaps that hold policies.
pub const POLICY_SELECTOR: &str = "tread.dev/policy=true";
/// On a ConfigMap that holds a policy: the key of its module, where it holds more.
pub use tread_model::packed::KEY_ANNOTATION;

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
/// On such a ConfigMap: the resourceVersion that the DisruptionPolicy had when it was written. One that
/// is written anew is then another one for whoever is still about to remove it.
pub const KEPT_AT_ANNOTATION: &str = "tread.dev/kept-at";

/// On a ConfigMap in tread's own namespace: it holds stream metadata of an older release.
pub const STREAM_METADATA_LABEL: &str = "tread.dev/boot-images";
/// On a machine resource: the version of its image, which an admin vouches for.
pub const BOOT_IMAGE_ANNOTATION: &str = "tread.dev/boot-image";
/// On a machine resource or a pool: its stream.
pub const STREAM_LABEL: &str = "machineconfiguration.openshift.io/osstream";

/// What everything is called.
pub const NAME: &str = "tread";
