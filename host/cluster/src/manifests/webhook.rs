//! What the API server asks tread about.

use super::words::named;
use crate::admission::{self, PATH, WEBHOOK};
use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, RuleWithOperations, ServiceReference, ValidatingWebhook,
    ValidatingWebhookConfiguration, WebhookClientConfig,
};

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
    ("machineconfiguration.openshift.io", "v1", &["machineconfigs"]),
    ("config.openshift.io", "v1", &["imagedigestmirrorsets", "imagetagmirrorsets"]),
    ("operator.openshift.io", "v1alpha1", &["imagecontentsourcepolicies"]),
];

/// A webhook that only warns: an API server that cannot reach it goes on.
pub fn configuration(namespace: &str, reached: &Reached) -> ValidatingWebhookConfiguration {
    let (service, url) = match reached {
        Reached::InNamespace(namespace) => {
            let service = ServiceReference {
                name: super::NAME.to_owned(),
                namespace: namespace.clone(),
                // Filled in by tread, like whom to trust.
                path: None,
                port: Some(443),
            };
            (Some(service), None)
        }
        Reached::At(url) => (None, Some(format!("{}{PATH}", url.trim_end_matches('/')))),
    };
    let rules = ASKED.map(|(group, version, resources)| RuleWithOperations {
        api_groups: Some(vec![group.to_owned()]),
        api_versions: Some(vec![version.to_owned()]),
        operations: Some(["CREATE", "UPDATE", "DELETE"].map(str::to_owned).to_vec()),
        resources: Some(resources.iter().map(|&resource| resource.to_owned()).collect()),
        scope: Some("Cluster".to_owned()),
    });
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
        rules: Some(rules.to_vec()),
        side_effects: "None".to_owned(),
        timeout_seconds: Some(2),
        ..ValidatingWebhook::default()
    };
    let metadata = named(&admission::configuration(namespace), None);
    ValidatingWebhookConfiguration { metadata, webhooks: Some(vec![webhook]) }
}
