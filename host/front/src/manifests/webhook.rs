//! What the API server asks tread about.

use super::words::named;
use crate::names::{self, NAME, PATH, WEBHOOK, WEBHOOK_OF_NODES};
use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, RuleWithOperations, ServiceReference, ValidatingWebhook,
    ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use tread_kube::api::words::{
    CONFIG_GROUP, GROUP, MACHINE_CONFIG_GROUP, MACHINE_GROUP, OPERATOR_GROUP, VERSION,
};
use tread_kube::held::NODE_MAINTENANCE;

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
/// `leases` is the namespace of the nodes' Leases, `by_tread` whether tread rolls out.
pub fn configuration(
    namespace: &str,
    leases: &str,
    reached: &Reached,
    by_tread: bool,
) -> ValidatingWebhookConfiguration {
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
    let pools: &[&str] = &["machineconfigpools"];
    rules.push(asked((MACHINE_CONFIG_GROUP, "v1", pools), &["UPDATE"], "Cluster"));
    if by_tread {
        let rollouts: &[&str] = &["rollouts"];
        rules.push(asked((GROUP, VERSION, rollouts), &["UPDATE"], "Cluster"));
    }
    // Whom to trust is filled in by tread.
    let client_config = WebhookClientConfig { ca_bundle: None, service, url };
    let paused = if by_tread { GOES_ON_BY_TREAD } else { GOES_ON };
    let changes = webhook(WEBHOOK, &client_config, rules, &[IS_NOT_RENDERED, paused]);
    let mut takes = webhook(WEBHOOK_OF_NODES, &client_config, takes(), &TAKES);
    // Of Leases those of nodes alone: it is no matter for what is in no namespace.
    let of_leases = ("kubernetes.io/metadata.name".to_owned(), leases.to_owned());
    takes.namespace_selector =
        Some(LabelSelector { match_labels: Some([of_leases].into()), ..LabelSelector::default() });
    let metadata = named(&names::configuration(namespace), None);
    ValidatingWebhookConfiguration { metadata, webhooks: Some(vec![changes, takes]) }
}

/// What takes a node: a cordon, a Lease, a NodeMaintenance.
fn takes() -> Vec<RuleWithOperations> {
    let maintenances: &[&str] = &[NODE_MAINTENANCE.plural];
    let of_maintenance = (NODE_MAINTENANCE.group, NODE_MAINTENANCE.version, maintenances);
    vec![
        asked(("", "v1", &["nodes"]), &["UPDATE"], "Cluster"),
        asked(("coordination.k8s.io", "v1", &["leases"]), &["CREATE", "UPDATE"], "Namespaced"),
        asked(of_maintenance, &["CREATE"], "Cluster"),
    ]
}

/// Which of these requests tread is asked about: a name and an expression each.
type Condition = (&'static str, &'static str);
type Conditions = [Condition; 2];

const IS_NOT_RENDERED: Condition = (
    "is-not-rendered",
    "!(request.kind.kind == 'MachineConfig' && request.name.startsWith('rendered-'))",
);
const GOES_ON: Condition = (
    "is-no-pool-or-goes-on",
    "request.resource.resource != 'machineconfigpools' || \
     has(oldObject.spec.paused) && oldObject.spec.paused && \
     !(has(object.spec.paused) && object.spec.paused)",
);
/// Where tread rolls out, an admin pauses Rollouts too.
const GOES_ON_BY_TREAD: Condition = (
    "is-no-pool-or-goes-on",
    "!(request.resource.resource in ['machineconfigpools', 'rollouts']) || \
     has(oldObject.spec.paused) && oldObject.spec.paused && \
     !(has(object.spec.paused) && object.spec.paused)",
);

/// A Node is written all the time, and so is a Lease that is renewed. Nor is tread asked about
/// what it does itself.
const TAKES: Conditions = [
    (
        "is-no-node-or-is-cordoned",
        "request.resource.resource != 'nodes' || \
         has(object.spec.unschedulable) && object.spec.unschedulable && \
         !(has(oldObject.spec.unschedulable) && oldObject.spec.unschedulable) && \
         !(has(object.metadata.annotations) && \
         'tread.dev/cordoned-for' in object.metadata.annotations)",
    ),
    (
        "is-no-lease-or-has-another-holder",
        "request.resource.resource != 'leases' || \
         has(object.spec.holderIdentity) && !object.spec.holderIdentity.startsWith('tread/') && \
         (request.operation == 'CREATE' || !has(oldObject.spec.holderIdentity) || \
         oldObject.spec.holderIdentity != object.spec.holderIdentity)",
    ),
];

fn webhook(
    name: &str,
    client_config: &WebhookClientConfig,
    rules: Vec<RuleWithOperations>,
    conditions: &Conditions,
) -> ValidatingWebhook {
    let conditions = conditions.map(|(name, expression)| MatchCondition {
        name: name.to_owned(),
        expression: expression.to_owned(),
    });
    ValidatingWebhook {
        admission_review_versions: vec!["v1".to_owned()],
        client_config: client_config.clone(),
        failure_policy: Some("Ignore".to_owned()),
        match_conditions: Some(conditions.to_vec()),
        match_policy: Some("Equivalent".to_owned()),
        name: name.to_owned(),
        rules: Some(rules),
        side_effects: "None".to_owned(),
        timeout_seconds: Some(2),
        ..ValidatingWebhook::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tread_kube::held::{CORDON_ANNOTATION, is_treads};

    #[test]
    fn what_tread_takes_itself_is_told_apart_as_elsewhere() {
        let [(_, nodes), (_, leases)] = TAKES;
        assert!(nodes.contains(&format!("'{CORDON_ANNOTATION}' in object.metadata.annotations")));
        assert!(leases.contains("startsWith('tread/')") && is_treads("tread/0"));
    }
}
