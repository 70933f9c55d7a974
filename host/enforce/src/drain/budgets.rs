//! Which PodDisruptionBudgets a pod is under.

use crate::settings::Settings;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::Api;
use kube::api::ListParams;
use std::collections::BTreeMap;
use tread_kube::asking::{Call, Failed, ask};

/// The budgets of a namespace.
pub(super) async fn of_namespace(
    settings: &Settings,
    namespace: &str,
) -> Result<Vec<PodDisruptionBudget>, Failed> {
    let api: Api<PodDisruptionBudget> = Api::namespaced(settings.client.clone(), namespace);
    let call = Call::new("list", "poddisruptionbudgets").within(namespace);
    Ok(ask(&settings.metrics, call, api.list(&ListParams::default())).await?.items)
}

/// The names of those that hold for a pod with these labels.
pub(super) fn holding(
    budgets: &[PodDisruptionBudget],
    labels: &BTreeMap<String, String>,
) -> Vec<String> {
    let holds = |budget: &&PodDisruptionBudget| {
        let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        selector.is_some_and(|selector| selects(selector, labels))
    };
    let names = budgets.iter().filter(holds).filter_map(|budget| budget.metadata.name.clone());
    names.collect()
}

fn selects(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let equal = selector.match_labels.iter().flatten();
    let mut expressions = selector.match_expressions.iter().flatten();
    equal.into_iter().all(|(key, value)| labels.get(key) == Some(value))
        && expressions.all(|it| {
            let value = labels.get(&it.key);
            let among =
                value.is_some_and(|value| it.values.iter().flatten().any(|one| one == value));
            match it.operator.as_str() {
                "In" => among,
                "NotIn" => !among,
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                _ => false,
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn the_budgets_of_a_pod_are_those_that_select_it() {
        let budget = |name: &str, selector: Value| -> PodDisruptionBudget {
            let metadata = json!({"name": name});
            serde_json::from_value(json!({"metadata": metadata, "spec": {"selector": selector}}))
                .unwrap()
        };
        let expression = |operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": "app", "operator": operator, "values": values}]});
        let budgets = [
            budget("labels", json!({"matchLabels": {"app": "web"}})),
            budget("others", json!({"matchLabels": {"app": "db"}})),
            budget("in", expression("In", &["web", "db"])),
            budget("not-in", expression("NotIn", &["web"])),
            budget("exists", expression("Exists", &[])),
            budget("not-there", expression("DoesNotExist", &[])),
            budget("all", json!({})),
            budget("unknown", expression("Like", &["w*"])),
        ];
        let labels = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
        assert_eq!(holding(&budgets, &labels), ["labels", "in", "exists", "all"]);
        assert_eq!(holding(&budgets, &BTreeMap::new()), ["not-in", "not-there", "all"]);
        assert!(holding(&[PodDisruptionBudget::default()], &labels).is_empty());
    }
}
