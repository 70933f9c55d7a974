//! What the API server asks tread about.

use super::words::named;
use crate::names::{self, NAME, PATH, WEBHOOK};
use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, RuleWithOperations, ServiceReference, ValidatingWebhook,
    ValidatingWebhookConfiguration, WebhookClientConfig,
};
use tread_kube::api::words::{CONFIG_GROUP, MACHINE_CONFIG_GROUP, MACHINE_GROUP, OPERATOR_GROUP};

/// Where the API server finds tread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reached {
    /// By its Service in this namespace.
    InNamespace(String),
    /// Outside of the cluster, at `https://HOST:PORT`.
    At(String),
}

/// The resources of which a change is previewed, by group and version.
const ASKED: [(&str, &str, &[&str]); 3] = [
    (MACHINE_CONFIG_GROUP, "v1", &["machineconfigs"]),
    (CONFIG_GROUP, "v1", &["imagedigestmirrorsets", "imagetagmirrorsets"]),
    (OPERATOR_GROUP, "v1alpha1", &["imagecontentsourcepolicies"]),
];

const CLUSTER_API: &[&str] =
    &["machinedeployments", "machinedeployments/scale", "machinesets", "machinesets/scale"];

/// The resources whose machines may boot an image that is too old.
const MACHINES: [(&str, &str, &[&str]); 4] = [
    (MACHINE_GROUP, "v1beta1", &["machinesets", "machinesets/scale"]),
    (MACHINE_GROUP, "v1", &["controlplanemachinesets", "controlplanemachinesets/scale"]),
    ("cluster.x-k8s.io", "v1beta1", CLUSTER_API),
    ("cluster.x-k8s.io", "v1beta2", CLUSTER_API),
];

fn asked(
    (group, version, resources): (&str, &str, &[&str]),
    operations: &[&str],
    scope: &str,
) -> RuleWithOperations {
    let owned = |words: &[&str]| Some(words.iter().map(|&word| word.to_owned()).collect());
    RuleWithOperations {
        api_groups: owned(&[group]),
        api_versions: owned(&[version]),
        operations: owned(operations),
        resources: owned(resources),
        scope: Some(scope.to_owned()),
    }
}

/// A webhook that only warns: an API server that cannot reach it goes on.
pub fn configuration(namespace: &str, reached: &Reached) -> ValidatingWebhookConfiguration {
    let (service, url) = match reached {
        Reached::InNamespace(namespace) => {
            let service = ServiceReference {
                name: NAME.to_owned(),
                namespace: namespace.clone(),
                // Filled in by tread, like whom to trust.
                path: None,
                port: Some(443),
            };
            (Some(service), None)
        }
        Reached::At(url) => (None, Some(format!("{}{PATH}", url.trim_end_matches('/')))),
    };
    let mut rules = ASKED.map(|it| asked(it, &["CREATE", "UPDATE", "DELETE"], "Cluster")).to_vec();
    rules.extend(MACHINES.map(|it| asked(it, &["CREATE", "UPDATE"], "Namespaced")));
    let releases: &[&str] = &["clusterversions"];
    rules.push(asked((CONFIG_GROUP, "v1", releases), &["UPDATE"], "Cluster"));
    let webhook = ValidatingWebhook {
        admission_review_versions: vec!["v1".to_owned()],
        // Whom to trust is filled in by tread.
        client_config: WebhookClientConfig { ca_bundle: None, service, url },
        failure_policy: Some("Ignore".to_owned()),
        match_conditions: Some(vec![MatchCondition {
            name: "is-not-rendered".to_owned(),
            expression:
                "!(request.kind.kind == 'MachineConfig' && request.name.startsWith('rendered-'))"
                    .to_owned(),
        }]),
        match_policy: Some("Equivalent".to_owned()),
        name: WEBHOOK.to_owned(),
        rules: Some(rules),
        side_effects: "None".to_owned(),
        timeout_seconds: Some(2),
        ..ValidatingWebhook::default()
    };
    let metadata = named(&names::configuration(namespace), None);
    ValidatingWebhookConfiguration { metadata, webhooks: Some(vec![webhook]) }
}
