//! What whoever plans from a laptop may do: to look.

use super::{Grant, READ, Scope, cluster, enforcing, rules};
use tread_kube::api::words::OPERATORS_DAEMON;

/// What the service alone looks at. Whoever sees the webhook's configuration sees the path at which
/// the API server asks, which nobody else has to know.
const FOR_THE_SERVICE: &[&str] =
    &["clusteroperators", "machines", "validatingwebhookconfigurations"];

/// What commands on a laptop look at besides where tread rolls out.
const FOR_LAPTOPS: &[&str] = &["customresourcedefinitions", "nodeupdates", "rollouts"];

/// What commands on a laptop look at, which plan and list by the service's own parts. Only the verbs
/// count that change nothing.
pub(in crate::manifests) fn for_laptops(enforces: bool) -> Vec<Grant> {
    let is_looked_at =
        |it: &Grant| it.scope == Scope::Cluster && !FOR_THE_SERVICE.contains(&it.resource);
    let mut all: Vec<Grant> = rules().into_iter().filter(is_looked_at).collect();
    if enforces {
        all.extend(enforcing().into_iter().filter(|it| FOR_LAPTOPS.contains(&it.resource)));
        all.push(Grant {
            names: &[OPERATORS_DAEMON],
            ..cluster("apps", "daemonsets", READ, "whether OpenShift's operator rolls out")
        });
    }
    all
}
