//! Listing budgets so that they take little, however many there are and whatever stands in them:
//! anybody who may write them in a namespace may write a megabyte into each.

use k8s_openapi::api::policy::v1::{
    PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ListMeta, ObjectMeta};
use kube::api::ListParams;
use kube::core::Request;
use kube::{Client, Resource as _};
use serde::Deserialize;
use serde_json::value::RawValue;
use tread_kube::asking::{Call, Failed, PATIENCE, ask_again, is_busy};
use tread_kube::budgets::never;
use tread_kube::metrics::Metrics;

/// So many budgets are asked for in one answer: each has 1.5 MB at most.
const PAGE: u32 = 50;
/// How many budgets are looked at in all.
const MOST: usize = 5_000;
/// The longest selector that is kept, in bytes. As values it takes ten times that.
const LONGEST_SELECTOR: usize = 4 << 10;

/// A budget, without what nobody reads here, and why it never allows a disruption, if it does not.
pub(super) type Budget = (PodDisruptionBudget, Option<String>);

/// The budgets that are kept, and how many are not.
#[derive(Debug, Default)]
pub(super) struct Budgets {
    pub(super) all: Vec<Budget>,
    pub(super) left_out: usize,
}

/// What has to be known of all budgets.
pub(super) async fn budgets(client: &Client, metrics: &Metrics) -> Result<Budgets, Failed> {
    let mut budgets = Budgets::default();
    let mut next = ListParams::default().limit(PAGE);
    loop {
        let request = || async {
            let request = Request::new(PodDisruptionBudget::url_path(&(), None)).list(&next);
            client.request::<Page>(request.map_err(kube::Error::BuildRequest)?).await
        };
        let call = Call::new("list", "poddisruptionbudgets");
        let page = ask_again(PATIENCE, metrics, call, request, is_busy).await?;
        match budgets.take(page) {
            Some(token) => next = ListParams::default().limit(PAGE).continue_token(&token),
            None => return Ok(budgets),
        }
    }
}

impl Budgets {
    /// Takes in a page; where the next one begins, if there is room for it.
    fn take(&mut self, page: Page) -> Option<String> {
        for listed in page.items {
            match self.looked_at() < MOST {
                true => match listed.read() {
                    Some(budget) => self.all.push(budget),
                    None => self.left_out += 1,
                },
                false => self.left_out += 1,
            }
        }
        let next = page.metadata.continue_.filter(|token| !token.is_empty())?;
        if self.looked_at() < MOST {
            return Some(next);
        }
        let rest = page.metadata.remaining_item_count.unwrap_or_default();
        self.left_out += usize::try_from(rest).unwrap_or_default().max(1);
        None
    }

    fn looked_at(&self) -> usize {
        self.all.len().saturating_add(self.left_out)
    }
}

/// A part of a list.
#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: ListMeta,
    items: Vec<Listed>,
}

/// A budget, as far as it is read.
#[derive(Deserialize)]
struct Listed {
    metadata: Metadata,
    spec: Option<Spec>,
    status: Option<Status>,
}

#[derive(Deserialize)]
struct Metadata {
    name: Option<String>,
    namespace: Option<String>,
    generation: Option<i64>,
}

#[derive(Deserialize)]
struct Spec {
    selector: Option<Box<RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    desired_healthy: i32,
    disruptions_allowed: i32,
    expected_pods: i32,
    observed_generation: Option<i64>,
}

impl Listed {
    /// None: its selector is too long to be kept, or is none.
    fn read(self) -> Option<Budget> {
        let Listed { metadata: Metadata { name, namespace, generation }, spec, status } = self;
        let selector = match spec.and_then(|spec| spec.selector) {
            Some(text) if text.get().len() > LONGEST_SELECTOR => return None,
            Some(text) => serde_json::from_str::<Option<LabelSelector>>(text.get()).ok()?,
            None => None,
        };
        let status = status.map(|it| PodDisruptionBudgetStatus {
            desired_healthy: it.desired_healthy,
            disruptions_allowed: it.disruptions_allowed,
            expected_pods: it.expected_pods,
            observed_generation: it.observed_generation,
            ..PodDisruptionBudgetStatus::default()
        });
        let budget = PodDisruptionBudget {
            metadata: ObjectMeta { name, namespace, generation, ..ObjectMeta::default() },
            spec: Some(PodDisruptionBudgetSpec { selector, ..PodDisruptionBudgetSpec::default() }),
            status,
        };
        let why = never(&budget);
        Some((budget, why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::ResourceExt as _;
    use serde_json::{Value, json};

    fn budget(name: &str, value: &str) -> Value {
        json!({"metadata": {"name": name, "namespace": "a", "generation": 1, "annotations": {"x": "y"}},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": value}}},
            "status": {"desiredHealthy": 1, "currentHealthy": 1, "expectedPods": 1,
                "disruptionsAllowed": 0, "observedGeneration": 1}})
    }

    fn page(items: &[Value], next: &str, rest: usize) -> Page {
        let metadata = json!({"continue": next, "remainingItemCount": rest});
        let list = json!({"kind": "PodDisruptionBudgetList", "apiVersion": "policy/v1",
            "metadata": metadata, "items": items});
        serde_json::from_str(&list.to_string()).unwrap()
    }

    #[test]
    fn of_very_many_or_very_large_budgets_no_more_is_kept_than_there_is_room_for() {
        let mut budgets = Budgets::default();
        let large = budget("large", &"x".repeat(LONGEST_SELECTOR));
        let odd = json!({"metadata": {"name": "odd", "namespace": "a"}, "spec": {"selector": 5}});
        let none =
            json!({"metadata": {"name": "none", "namespace": "a"}, "spec": {"selector": null}});
        let first = page(&[budget("fine", "db"), large, odd, none], "more", 6_000);
        assert_eq!(budgets.take(first).as_deref(), Some("more"));
        let names: Vec<String> = budgets.all.iter().map(|(it, _)| it.name_any()).collect();
        assert_eq!(names, ["fine", "none"]);
        assert_eq!(budgets.left_out, 2);
        let (fine, why) = &budgets.all[0];
        assert_eq!(why.as_deref(), Some("it wants 1 healthy pods, and there are to be 1"));
        assert_eq!(fine.metadata.annotations, None);
        let selector = fine.spec.as_ref().unwrap().selector.as_ref().unwrap();
        assert_eq!(selector.match_labels.as_ref().unwrap()["app"], "db");

        let many: Vec<Value> = (0..MOST).map(|n| budget(&n.to_string(), "db")).collect();
        assert_eq!(budgets.take(page(&many, "more", 1_000)), None);
        assert_eq!((budgets.all.len(), budgets.left_out), (MOST - 2, 2 + 4 + 1_000));
        // Of the last page nobody says that there is more.
        let mut budgets = Budgets::default();
        assert_eq!(budgets.take(page(&many[..3], "", 0)), None);
        assert_eq!((budgets.all.len(), budgets.left_out), (3, 0));
    }
}
