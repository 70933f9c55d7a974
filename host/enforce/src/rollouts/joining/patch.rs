//! The one write by which a node joins.

use k8s_openapi::api::core::v1::Taint;
use serde_json::{Value, json};
use tread_kube::api::rollout::{NodeTaint, TaintEffect};
use tread_model::joining::Labels;

/// What a node gets.
#[derive(Debug, Clone, Copy)]
pub struct Patch<'a> {
    /// Which one of its name.
    pub uid: &'a str,
    /// The version that all of this is based on.
    pub version: &'a str,
    /// Its taints, without that of joining.
    pub taints: &'a [Taint],
    /// The labels of its pool.
    pub labels: &'a Labels,
    /// The taints of its pool.
    pub pool_taints: &'a [NodeTaint],
}

/// The labels of its pool, the taints of its pool, and the joining taint gone: in one merge
/// patch onto the version that is known, so that it is held or a node of the pool, and nothing
/// between.
pub fn patch(of: Patch<'_>) -> Value {
    let own = |taint: &&Taint| {
        !of.pool_taints.iter().any(|it| it.key == taint.key && word(it.effect) == taint.effect)
    };
    let pool = of.pool_taints.iter().map(|it| Taint {
        key: it.key.clone(),
        value: Some(it.value.clone()).filter(|value| !value.is_empty()),
        effect: word(it.effect).to_owned(),
        time_added: None,
    });
    let taints: Vec<Taint> = of.taints.iter().filter(own).cloned().chain(pool).collect();
    json!({
        "metadata": {"uid": of.uid, "resourceVersion": of.version, "labels": of.labels},
        "spec": {"taints": taints},
    })
}

fn word(effect: TaintEffect) -> &'static str {
    match effect {
        TaintEffect::NoSchedule => "NoSchedule",
        TaintEffect::PreferNoSchedule => "PreferNoSchedule",
        TaintEffect::NoExecute => "NoExecute",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_gets_the_labels_and_taints_of_its_pool_and_keeps_its_own() {
        let taints: Vec<Taint> = serde_json::from_value(json!([
            {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
            {"key": "dedicated", "value": "other", "effect": "NoSchedule"},
            {"key": "dedicated", "effect": "NoExecute"},
        ]))
        .unwrap();
        let pool_taints: Vec<NodeTaint> = serde_json::from_value(json!([
            {"key": "dedicated", "value": "infra", "effect": "NoSchedule"},
        ]))
        .unwrap();
        let labels = Labels::from([("role".to_owned(), String::new())]);
        let patch = patch(Patch {
            uid: "u",
            version: "7",
            taints: &taints,
            labels: &labels,
            pool_taints: &pool_taints,
        });
        assert_eq!(
            patch,
            json!({
                "metadata": {"uid": "u", "resourceVersion": "7", "labels": {"role": ""}},
                "spec": {"taints": [
                    {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
                    {"key": "dedicated", "effect": "NoExecute"},
                    {"key": "dedicated", "value": "infra", "effect": "NoSchedule"},
                ]},
            })
        );
    }
}
