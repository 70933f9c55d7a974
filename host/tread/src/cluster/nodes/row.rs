//! One node, as it is listed.

use crate::cluster::rollouts::{Known, holder, is_treads, lease_of, open_order, phase_word};
use k8s_openapi::api::coordination::v1::Lease;
#[cfg(test)]
use serde::Deserialize;
use serde::Serialize;
use tread_kube::api::{NodeUpdate, Rollout};
use tread_kube::dated::{shown, time};
use tread_kube::node_lease;
use tread_model::protocol::Time;

/// The heads of the table.
pub(super) const HEADS: [&str; 9] =
    ["NODE", "POOL", "PHASE", "STEP", "CONFIG", "WANTED", "SINCE", "HOLDER", "MESSAGE"];

/// How far a node is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(Deserialize))]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    pub(super) node: String,
    pool: String,
    phase: Option<String>,
    step: Option<String>,
    config: Option<String>,
    wanted: Option<String>,
    since: Option<String>,
    holder: Option<String>,
    until: Option<String>,
    message: Option<String>,
    waits: Option<String>,
    operation: Option<String>,
    /// Whether something may still come of its order.
    is_under_way: bool,
}

/// By pool, then by name.
pub(super) fn rows(known: &Known, now: Time, pool: Option<&str>) -> Vec<Row> {
    let asked = known.updates.iter();
    let asked = asked.filter(|(_, it)| pool.is_none_or(|pool| it.spec.pool == pool));
    let mut rows: Vec<Row> = asked
        .map(|(node, update)| {
            let rollout = known.rollouts.get(&update.spec.pool);
            row(node, update, rollout, lease_of(known, node), now)
        })
        .collect();
    rows.sort_by(|a, b| (&a.pool, &a.node).cmp(&(&b.pool, &b.node)));
    rows
}

fn row(
    node: &str,
    update: &NodeUpdate,
    rollout: Option<&Rollout>,
    lease: Option<&Lease>,
    now: Time,
) -> Row {
    let status = update.status.clone().unwrap_or_default();
    let of_pool = rollout.and_then(|rollout| rollout.status.as_ref());
    let order = open_order(update);
    let target = of_pool.and_then(|of_pool| of_pool.target.as_ref());
    let waits = of_pool.and_then(|of_pool| of_pool.waiting.iter().find(|it| it.node == node));
    // What an agent said of an operation before is not said of this one.
    let is_said = order.is_none_or(|order| status.operation.as_ref() == Some(&order.operation));
    let of_this = |text: Option<String>| text.filter(|text| is_said && !text.is_empty());
    let since = status.since.filter(|_| is_said).and_then(|since| time(since.0));
    let ends = lease.and_then(|lease| node_lease::read(lease, "").ends());
    let holder = lease.and_then(holder);
    Row {
        node: node.to_owned(),
        pool: update.spec.pool.clone(),
        phase: phase_word(update),
        step: of_this(status.step),
        config: status.current.map(|current| current.name),
        wanted: target.or(order.map(|order| &order.config)).map(|config| config.name.clone()),
        since: since.map(shown),
        holder: holder.map(|holder| match ends.is_some_and(|ends| ends < now) {
            true => format!("{holder} (ended)"),
            false => holder.to_owned(),
        }),
        until: holder.and(ends).map(shown),
        message: of_this(status.message),
        waits: waits.map(|waits| waits.why.clone()),
        operation: order.map(|order| order.operation.clone()),
        is_under_way: order.is_some(),
    }
}

impl Row {
    pub(super) fn cells(&self) -> Vec<String> {
        let or_none = |text: Option<&str>| text.unwrap_or("-").to_owned();
        // Which installation of tread it is says nothing to a person.
        let holder = self.holder.as_deref().map(|it| if is_treads(it) { "tread" } else { it });
        let message = match (&self.message, &self.waits) {
            (Some(message), _) => Some(message.clone()),
            (None, Some(why)) => Some(format!("waits: {why}")),
            (None, None) => None,
        };
        vec![
            self.node.clone(),
            self.pool.clone(),
            or_none(self.phase.as_deref()),
            or_none(self.step.as_deref()),
            or_none(self.config.as_deref()),
            or_none(self.wanted.as_deref()),
            or_none(self.since.as_deref()),
            or_none(holder),
            or_none(message.as_deref()),
        ]
    }

    /// Those first of whom somebody wants to know.
    pub(super) fn rank(&self) -> u8 {
        let has_it = self.wanted.is_none() || self.config == self.wanted;
        match (self.is_under_way, has_it) {
            (true, _) => 0,
            (false, false) => 1,
            (false, true) => 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn known(order: serde_json::Value, status: serde_json::Value) -> Known {
        let update = json!({"apiVersion": "tread.dev/v1alpha1", "kind": "NodeUpdate",
            "metadata": {"name": "a"}, "spec": {"pool": "worker", "order": order},
            "status": status});
        let rollout = json!({"apiVersion": "tread.dev/v1alpha1", "kind": "Rollout",
            "metadata": {"name": "worker"}, "spec": {},
            "status": {"target": {"name": "new", "digest": "x"},
                "waiting": [{"node": "a", "why": "alice holds it"}]}});
        Known {
            updates: [("a".to_owned(), serde_json::from_value(update).unwrap())].into(),
            rollouts: [("worker".to_owned(), serde_json::from_value(rollout).unwrap())].into(),
            ..Known::default()
        }
    }

    fn order(stage: &str) -> serde_json::Value {
        json!({"operation": "2", "config": {"name": "new", "digest": "x"}, "disrupts": "Reboot",
            "token": 1, "stage": stage})
    }

    #[test]
    fn what_an_agent_said_of_an_operation_before_is_not_said_of_this_one() {
        let before = json!({"operation": "1", "phase": "Degraded", "step": "reload crio.service",
            "message": "it failed", "current": {"name": "old", "digest": "y"}});
        let of = |stage| rows(&known(order(stage), before.clone()), Time::default(), None);
        let shown = of("Prepare")[0].cells();
        assert_eq!(
            shown,
            ["a", "worker", "Prepare", "-", "old", "new", "-", "-", "waits: alice holds it"]
        );
        let closed = of("Closed")[0].cells();
        assert_eq!((closed[2].as_str(), closed[8].as_str()), ("Degraded", "it failed"));
        assert_eq!((of("Prepare")[0].rank(), of("Closed")[0].rank()), (0, 1));
        let other = known(order("Go"), before.clone());
        assert!(rows(&other, Time::default(), Some("infra")).is_empty());
    }

    #[test]
    fn a_node_whose_agent_is_too_old_says_so_until_it_is_under_way() {
        let condition = json!({"type": "Updated", "status": "False", "reason": "NeedsAgent",
            "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let status = json!({"operation": "1", "phase": "Done", "conditions": [condition]});
        let phase = |order| {
            rows(&known(order, status.clone()), Time::default(), None)[0].cells()[2].clone()
        };
        assert_eq!(phase(json!(null)), "NeedsAgent");
        assert_eq!(phase(order("Closed")), "NeedsAgent");
        assert_eq!(phase(order("Prepare")), "Prepare");
    }

    #[test]
    fn a_lease_that_has_ended_says_so_and_treads_own_is_called_so() {
        let mut known = known(json!(null), json!({}));
        let mut held = |by: &str| {
            let lease = json!({"metadata": {"name": "node-a"}, "spec": {"holderIdentity": by,
                "renewTime": "2026-01-01T00:00:00.000000Z", "leaseDurationSeconds": 60}});
            known.leases.insert("node-a".to_owned(), serde_json::from_value(lease).unwrap());
            let at = |seconds: u64| Time(std::time::Duration::from_secs(1_767_225_600 + seconds));
            [30, 90].map(|seconds| rows(&known, at(seconds), None)[0].cells()[7].clone())
        };
        assert_eq!(held("alice"), ["alice", "alice (ended)"]);
        assert_eq!(held("tread/1234")[0], "tread");
        assert_eq!(held(""), ["-", "-"]);
    }
}
