//! Kinds that the API server does not know: waited for, without asking again
//! and again.

use super::parsed::{Parsed, each_by_itself};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, PartialObjectMeta};
use kube::runtime::wait::{self, await_condition};
use kube::runtime::watcher::Error;
use kube::{Api, Client};

/// The definition of a kind. That it is there is all that is read of it.
pub(super) struct Definition {
    api: Api<Parsed<PartialObjectMeta<CustomResourceDefinition>>>,
    name: String,
}

impl Definition {
    pub(super) fn of(kind: &ApiResource, client: Client) -> Definition {
        let api: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(client);
        Definition { api: each_by_itself(api), name: format!("{}.{}", kind.plural, kind.group) }
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
