//! Taking a node out of external load balancers while it is cordoned.

use crate::settings::Settings;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use std::time::Duration;
use tread_kube::asking::{Call, Failed, ask};
use tread_kube::dated::{time, timestamp};
use tread_kube::held::cordon;
use tread_kube::node_lease::{operation_text, parse_operation};
use tread_model::protocol::{Cordon, Operation, Time};

/// Cloud controllers leave nodes with it out of the load balancers of services.
pub const EXCLUDED_LABEL: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
/// On a node that tread took out: the operation that it did so for, and when.
pub const EXCLUDED_ANNOTATION: &str = "tread.dev/excluded-for";

/// Marks of a node, as a patch has them.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Marks {
    pub(crate) labels: Option<Value>,
    pub(crate) annotation: Option<Value>,
}

/// What takes a node out; nothing where somebody else did.
pub(crate) fn leaves(node: &Node, operation: Operation, now: Time) -> Marks {
    let is_out = is_out(node);
    if is_out && mark(node).is_none() {
        return Marks::default();
    }
    let mark = format!("{} {}", operation_text(operation), timestamp(now));
    Marks { labels: Some(json!({EXCLUDED_LABEL: ""})), annotation: Some(mark.into()) }
}

/// What brings it back; nothing where it was not tread who took it out.
pub(crate) fn comes_back(node: &Node) -> Marks {
    match mark(node) {
        Some(_) => Marks {
            labels: Some(json!({EXCLUDED_LABEL: Value::Null})),
            annotation: Some(Value::Null),
        },
        None => Marks::default(),
    }
}

/// Whether the node has been out of the load balancers for `wait`, so that they know by now. If
/// tread did not take it out for this operation, nothing is waited for.
pub(crate) fn has_left(node: &Node, operation: Operation, now: Time, wait: Duration) -> bool {
    let since = mark(node).and_then(|mark| {
        let (of, at) = mark.split_once(' ')?;
        let at: Timestamp = at.parse().ok()?;
        (parse_operation(of) == Some(operation)).then_some(time(at)?)
    });
    since.is_none_or(|since| !is_out(node) || now.since(since) >= wait)
}

/// Takes away what is left of an operation whose cordon somebody else undid; says whether
/// anything was.
pub(crate) async fn tidy(settings: &Settings, node: &Node) -> Result<bool, Failed> {
    if mark(node).is_none() || matches!(cordon(node), Cordon::Ours(..)) {
        return Ok(false);
    }
    let Marks { labels, annotation } = comes_back(node);
    let patch = Patch::Merge(json!({"metadata": {
        "uid": node.metadata.uid,
        "resourceVersion": node.metadata.resource_version,
        "labels": labels,
        "annotations": {EXCLUDED_ANNOTATION: annotation},
    }}));
    let api: Api<Node> = Api::all(settings.client.clone());
    let name = node.metadata.name.clone().unwrap_or_default();
    let params = PatchParams::default();
    let call = Call::new("patch", "nodes");
    ask(&settings.metrics, call, api.patch(&name, &params, &patch)).await?;
    Ok(true)
}

fn is_out(node: &Node) -> bool {
    let labels = node.metadata.labels.as_ref();
    labels.is_some_and(|labels| labels.contains_key(EXCLUDED_LABEL))
}

fn mark(node: &Node) -> Option<&String> {
    node.metadata.annotations.as_ref()?.get(EXCLUDED_ANNOTATION)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(label: bool, mark: Option<&str>) -> Node {
        let labels = if label { json!({EXCLUDED_LABEL: ""}) } else { json!({}) };
        let annotations = mark.map_or(json!({}), |mark| json!({EXCLUDED_ANNOTATION: mark}));
        let metadata = json!({"labels": labels, "annotations": annotations});
        serde_json::from_value(json!({"metadata": metadata})).unwrap()
    }

    #[test]
    fn only_what_tread_took_out_of_load_balancers_comes_back() {
        let now = Time(Duration::from_secs(100));
        let mark = "00000000000000000000000000000007 1970-01-01T00:01:40Z";
        let out =
            Marks { labels: Some(json!({EXCLUDED_LABEL: ""})), annotation: Some(mark.into()) };
        let older = "00000000000000000000000000000001 1970-01-01T00:00:00Z";
        for (what, node, leaves_by, comes) in [
            ("as it is", node(false, None), true, false),
            ("somebody else's", node(true, None), false, false),
            ("an earlier operation's", node(true, Some(older)), true, true),
            ("whose label somebody took away", node(false, Some(mark)), true, true),
        ] {
            let expected = if leaves_by { &out } else { &Marks::default() };
            assert_eq!(leaves(&node, Operation(7), now), *expected, "{what}");
            assert_eq!(comes_back(&node) != Marks::default(), comes, "{what}");
        }
    }

    #[test]
    fn load_balancers_are_waited_for_by_the_time_of_the_mark() {
        let at = |second: u64| Time(Duration::from_secs(second));
        let mark = "00000000000000000000000000000007 1970-01-01T00:01:40Z";
        let left = |node: &Node, of: u128, second: u64| {
            has_left(node, Operation(of), at(second), Duration::from_secs(30))
        };
        let own = node(true, Some(mark));
        assert!(!left(&own, 7, 100) && !left(&own, 7, 129) && left(&own, 7, 130));
        for (what, node) in [
            ("never out", node(false, None)),
            ("out by somebody else", node(true, None)),
            ("not out any more", node(false, Some(mark))),
            ("nonsense", node(true, Some("7 soon"))),
        ] {
            assert!(left(&node, 7, 100), "{what}");
        }
        assert!(left(&own, 8, 100), "of another operation");
    }
}
