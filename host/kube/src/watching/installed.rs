//! Kinds that the API server does not know: waited for, without asking again
//! and again.

use super::parsed::{Parsed, each_by_itself};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, PartialObjectMeta};
use kube::runtime::wait::{self, await_condition};
use kube::runtime::watcher::Error;
use kube::{Api, Client};

/// Whether the kinds of a group come with Kubernetes: `apps`, `coordination.k8s.io`. Definitions are of
/// groups like `cluster.x-k8s.io` and `gateway.networking.k8s.io`.
fn is_of_kubernetes(group: &str) -> bool {
    !group.strip_suffix(".k8s.io").unwrap_or(group).contains('.')
}

/// The definition of a kind. That it is there is all that is read of it.
pub(super) struct Definition {
    api: Api<Parsed<PartialObjectMeta<CustomResourceDefinition>>>,
    name: String,
    /// Whether a cluster may be without it: not without what comes with Kubernetes.
    pub(super) may_be_absent: bool,
}

impl Definition {
    pub(super) fn of(kind: &ApiResource, client: Client) -> Definition {
        let api: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(client);
        Definition {
            api: each_by_itself(api),
            name: format!("{}.{}", kind.plural, kind.group),
            may_be_absent: !is_of_kubernetes(&kind.group),
        }
    }

    /// Waits until it is there. The API server may know the kind a moment later
    /// only.
    pub(super) async fn is_there(&self) -> Result<(), Error> {
        let there = |found: Option<&Parsed<_>>| found.is_some();
        match await_condition(self.api.clone(), &self.name, there).await {
            Ok(_) => Ok(()),
            Err(wait::Error::ProbeFailed(error)) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_with_kubernetes_is_told_by_its_group() {
        for (group, is) in [
            ("", true),
            ("policy", true),
            ("coordination.k8s.io", true),
            ("cluster.x-k8s.io", false),
            ("gateway.networking.k8s.io", false),
            ("nodemaintenance.medik8s.io", false),
            ("tread.dev", false),
        ] {
            assert_eq!(is_of_kubernetes(group), is, "{group}");
        }
    }
}
