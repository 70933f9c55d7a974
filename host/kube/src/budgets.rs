//! PodDisruptionBudgets: which pods they hold, which of them never let one go, and which hold the
//! same pods: those are never evicted.

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use std::collections::BTreeMap;

/// Whether a budget holds a pod of its namespace with these labels.
pub fn holds(budget: &PodDisruptionBudget, labels: &BTreeMap<String, String>) -> bool {
    let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    selector.is_some_and(|selector| selects(selector, labels))
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

/// What can be told of the pods of two budgets of a namespace by what these say alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Both {
    /// No pod is under both.
    No,
    /// Some pod may be under both.
    Perhaps,
    /// Some pod is: all pods of one of them are under the other, too.
    Surely,
}

/// Whether some pod is under both of these budgets of a namespace.
pub fn both(one: &PodDisruptionBudget, other: &PodDisruptionBudget) -> Both {
    let (Some(a), Some(b)) = (selector(one), selector(other)) else { return Both::No };
    let has_pods = |it: &PodDisruptionBudget| {
        it.status.as_ref().is_some_and(|status| status.expected_pods > 0)
    };
    let within = |narrow: &LabelSelector, wide: &LabelSelector| {
        let mut labels = wide.match_labels.iter().flatten();
        let mut expressions = wide.match_expressions.iter().flatten();
        let has = |it| narrow.match_expressions.iter().flatten().any(|other| other == it);
        labels.all(|(key, value)| label(narrow, key) == Some(value)) && expressions.all(has)
    };
    let excludes =
        |(key, value): (&String, &String)| label(b, key).is_some_and(|other| other != value);
    match () {
        () if a.match_labels.iter().flatten().any(excludes) => Both::No,
        () if has_pods(one) && within(a, b) || has_pods(other) && within(b, a) => Both::Surely,
        () => Both::Perhaps,
    }
}

fn selector(budget: &PodDisruptionBudget) -> Option<&LabelSelector> {
    budget.spec.as_ref()?.selector.as_ref()
}

fn label<'s>(selector: &'s LabelSelector, key: &str) -> Option<&'s String> {
    selector.match_labels.as_ref()?.get(key)
}

/// Why a budget allows no disruption however healthy its pods are; nothing if it may at any
/// time. A budget that only blocks just now is none of these.
pub fn never(budget: &PodDisruptionBudget) -> Option<String> {
    let status = budget.status.as_ref()?;
    let is_seen = status.observed_generation == budget.metadata.generation;
    let (wants, of) = (status.desired_healthy, status.expected_pods);
    let is_full = is_seen && of > 0 && status.disruptions_allowed <= 0 && wants >= of;
    is_full.then(|| format!("it wants {wants} healthy pods, and there are to be {of}"))
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
        let holding = |budgets: &[PodDisruptionBudget], labels: &BTreeMap<String, String>| {
            let held = budgets.iter().filter(|budget| holds(budget, labels));
            held.filter_map(|budget| budget.metadata.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(holding(&budgets, &labels), ["labels", "in", "exists", "all"]);
        assert_eq!(holding(&budgets, &BTreeMap::new()), ["not-in", "not-there", "all"]);
        assert!(holding(&[PodDisruptionBudget::default()], &labels).is_empty());
    }

    #[test]
    fn two_budgets_hold_the_same_pods_surely_perhaps_or_never() {
        let budget = |labels: Value, expressions: Value, pods: i32| -> PodDisruptionBudget {
            let selector = json!({"matchLabels": labels, "matchExpressions": expressions});
            serde_json::from_value(json!({"spec": {"selector": selector},
                "status": {"expectedPods": pods, "desiredHealthy": 0, "currentHealthy": 0,
                    "disruptionsAllowed": 0}}))
            .unwrap()
        };
        let exists = json!([{"key": "app", "operator": "Exists"}]);
        let (db, web) = (json!({"app": "db"}), json!({"app": "web"}));
        let first = json!({"app": "db", "role": "first"});
        let tier = json!({"tier": "back"});
        for (one, other, expected) in [
            (budget(db.clone(), json!([]), 1), budget(web, json!([]), 1), Both::No),
            (budget(db.clone(), json!([]), 1), budget(db.clone(), json!([]), 1), Both::Surely),
            (budget(db.clone(), json!([]), 0), budget(db.clone(), json!([]), 0), Both::Perhaps),
            (budget(db.clone(), json!([]), 3), budget(first.clone(), json!([]), 1), Both::Surely),
            // Those of the narrower one are not there yet.
            (budget(db.clone(), json!([]), 3), budget(first, json!([]), 0), Both::Perhaps),
            (budget(db.clone(), json!([]), 1), budget(tier, json!([]), 1), Both::Perhaps),
            (budget(json!({}), json!([]), 9), budget(db.clone(), json!([]), 1), Both::Surely),
            (budget(json!({}), exists.clone(), 9), budget(db, json!([]), 1), Both::Perhaps),
            (budget(json!({}), exists.clone(), 1), budget(json!({}), exists, 1), Both::Surely),
            (PodDisruptionBudget::default(), budget(json!({}), json!([]), 1), Both::No),
        ] {
            assert_eq!(both(&one, &other), expected, "{one:?} and {other:?}");
            assert_eq!(both(&other, &one), expected, "{other:?} and {one:?}");
        }
    }

    #[test]
    fn a_budget_that_only_blocks_now_is_told_from_one_that_never_allows_it() {
        // What it wants, how many pods there are to be, how many may go, and what it has seen.
        for (wants, of, allowed, seen, is) in [
            (3, 3, 0, 1, true),
            (1, 1, 0, 1, true),
            // More than there are: minAvailable is above the replicas.
            (5, 3, 0, 1, true),
            // One is being started elsewhere.
            (2, 3, 0, 1, false),
            (2, 3, 1, 1, false),
            // It was changed, and nobody has counted since.
            (3, 3, 0, 0, false),
            // It has no pods, or was made just now.
            (0, 0, 0, 1, false),
            (1, 0, 0, 1, false),
        ] {
            let budget = serde_json::from_value(json!({
                "metadata": {"generation": 1},
                "status": {"desiredHealthy": wants, "expectedPods": of, "currentHealthy": of,
                    "disruptionsAllowed": allowed, "observedGeneration": seen},
            }));
            let why = never(&budget.unwrap());
            assert_eq!(why.is_some(), is, "{wants} of {of}, {allowed} allowed, {seen}: {why:?}");
        }
        assert_eq!(never(&PodDisruptionBudget::default()), None);
    }
}
