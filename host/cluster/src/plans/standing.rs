//! The DisruptionPlans that stand in the cluster: what has to be known of each, and
//! all of them for whoever has not made them.

use crate::previews::{self, Described};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::ListParams;
use kube::{Api, Client};
use tread_kube::api::disruption_plan::Cause;
use tread_kube::api::{DisruptionPlan, DisruptionPlanStatus, POOL_KIND};
use tread_kube::asking::{Call, Failed};
use tread_kube::metrics::Metrics;
use tread_kube::paging::in_pages;
use tread_kube::watching::parsed::{Parsed, each_by_itself};
use tread_model::digest::Digest;

/// The plural by which the API server knows them.
pub(super) const PLANS: &str = "disruptionplans";

/// So many are listed at a time: they are large.
pub(super) const PAGE: u32 = 20;

/// What has to be known of a DisruptionPlan that stands in the cluster.
#[derive(Debug, Clone)]
pub(super) struct Standing {
    pub(super) uid: String,
    pub(super) version: String,
    pub(super) pool: String,
    pub(super) cause: Cause,
    /// The UIDs of the pools that own it.
    pub(super) owners: Vec<String>,
    pub(super) created: i64,
    /// Of what its status says, times aside.
    pub(super) says: Digest,
    pub(super) stale: bool,
    pub(super) conditions: Vec<Condition>,
}

impl Standing {
    /// What has to be known of this one.
    pub(super) fn of(object: DisruptionPlan) -> Standing {
        let status = object.status.unwrap_or_default();
        let owners = object.metadata.owner_references.unwrap_or_default().into_iter();
        let owners = owners.filter(|owner| owner.kind == POOL_KIND).map(|owner| owner.uid);
        Standing {
            cause: object.spec.cause,
            owners: owners.collect(),
            uid: object.metadata.uid.unwrap_or_default(),
            version: object.metadata.resource_version.unwrap_or_default(),
            pool: object.spec.pool,
            created: object.metadata.creation_timestamp.map_or(0, |time| time.0.as_second()),
            says: says(&status),
            stale: status.stale,
            conditions: status.conditions,
        }
    }
}

/// What a status says, times aside: two that say the same are not written twice.
pub(super) fn says(status: &DisruptionPlanStatus) -> Digest {
    let mut value = serde_json::to_value(status).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.remove("plannedAt");
    }
    tread_kube::watching::says(value)
}

/// Those that are not known to be over.
pub(super) async fn plans(client: &Client, metrics: &Metrics) -> Result<Vec<Described>, Failed> {
    let api = each_by_itself(Api::<DisruptionPlan>::all(client.clone()));
    let (call, list) = (Call::new("list", PLANS), async |params| api.list(&params).await);
    let keep = |it: Parsed<DisruptionPlan>| it.read().and_then(previews::standing);
    in_pages(PAGE, metrics, call, ListParams::default(), list, keep).await
}

/// The nodes of which a plan says that they stray, with their UIDs.
pub(crate) fn strays(object: &DisruptionPlan) -> Vec<(String, String)> {
    let ways = object.status.iter().flat_map(|status| &status.transitions);
    let strays = ways.flat_map(|way| &way.nodes.strays);
    strays.map(|it| (it.node.clone(), it.uid.clone())).collect()
}
