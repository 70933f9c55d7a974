//! Which PodDisruptionBudgets a pod is under.

use super::listed::{LISTS, PAGE};
use crate::settings::Settings;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{ListParams, ObjectMeta};
use kube::{Api, ResourceExt as _};
use std::collections::BTreeMap;
use tread_kube::asking::{Call, Failed};
use tread_kube::budgets::{holds, never};
use tread_kube::paging::in_pages;
use tread_kube::watching::parsed::{Parsed, each_by_itself};

/// The budgets of the namespaces that were asked for: each is listed once.
#[derive(Default)]
pub(super) struct Budgets {
    of: BTreeMap<String, Option<Listed>>,
}

/// The budgets of a namespace.
struct Listed {
    /// Those that can be read.
    read: Vec<PodDisruptionBudget>,
    /// Whether there are others: nobody knows which pods these hold.
    has_others: bool,
}

/// A budget that a pod is under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) name: String,
    /// Why it allows no disruption until it or its pods change; nothing if it may at any time.
    pub(super) never: Option<String>,
    /// How many pods may be disrupted now.
    pub(super) allowed: i32,
}

impl Budgets {
    /// Those that hold for a pod; nothing where they cannot be listed, or where only one may that cannot
    /// be read.
    pub(super) async fn of(&mut self, settings: &Settings, pod: &Pod) -> Option<Vec<Held>> {
        let namespace = pod.namespace().unwrap_or_default();
        if !self.of.contains_key(&namespace) {
            let listed = list(settings, &namespace).await.ok();
            self.of.insert(namespace.clone(), listed);
        }
        let Listed { read, has_others } = self.of.get(&namespace)?.as_ref()?;
        let holding = holding(read, pod.labels());
        (!holding.is_empty() || !has_others).then_some(holding)
    }
}

async fn list(settings: &Settings, namespace: &str) -> Result<Listed, Failed> {
    let api: Api<PodDisruptionBudget> = Api::namespaced(settings.client.clone(), namespace);
    let api = each_by_itself(api);
    let list = |params: ListParams| {
        let api = api.clone();
        async move { api.list(&params).await }
    };
    let keep = |budget: Parsed<PodDisruptionBudget>| {
        Some(budget.read().map(|budget| {
            let ObjectMeta { name, generation, .. } = budget.metadata;
            let metadata = ObjectMeta { name, generation, ..ObjectMeta::default() };
            PodDisruptionBudget { metadata, ..budget }
        }))
    };
    let call = Call::new("list", "poddisruptionbudgets").within(namespace);
    let _turn = LISTS.acquire().await;
    let listed = in_pages(PAGE, &settings.metrics, call, ListParams::default(), list, keep).await?;
    let has_others = listed.iter().any(Option::is_none);
    Ok(Listed { read: listed.into_iter().flatten().collect(), has_others })
}

/// Those that hold for a pod with these labels.
fn holding(budgets: &[PodDisruptionBudget], labels: &BTreeMap<String, String>) -> Vec<Held> {
    let held = |budget: &PodDisruptionBudget| {
        let allowed = budget.status.as_ref().map_or(0, |status| status.disruptions_allowed);
        Some(Held { name: budget.metadata.name.clone()?, never: never(budget), allowed })
    };
    budgets.iter().filter(|budget| holds(budget, labels)).filter_map(held).collect()
}
