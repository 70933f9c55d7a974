//! Who holds which node, as a list.

use k8s_openapi::api::coordination::v1::Lease as Object;
use serde_json::{Value, json};
use tread_console::print::line;
use tread_kube::dated::{shown, time};
use tread_kube::node_lease::{OPERATION_ANNOTATION, REASON_ANNOTATION, read};
use tread_model::protocol::{Terms, Time};

/// One Lease.
pub(super) struct Row {
    node: String,
    holder: String,
    state: &'static str,
    since: Option<Time>,
    until: Option<Time>,
    reason: String,
    operation: Option<String>,
}

/// Whoever has no such name is somebody else.
const NOBODY: &str = "\0";

pub(super) fn rows(leases: &[Object], now: Time, terms: &Terms) -> Vec<Row> {
    let mut rows: Vec<Row> = leases.iter().map(|lease| row(lease, now, terms)).collect();
    rows.sort_by(|a, b| a.node.cmp(&b.node));
    rows
}

fn row(object: &Object, now: Time, terms: &Terms) -> Row {
    let lease = read(object, NOBODY);
    let spec = object.spec.as_ref();
    let text = |key: &str| object.metadata.annotations.as_ref().and_then(|all| all.get(key));
    let has_ended = lease.ends().is_some_and(|ends| ends < now);
    let owners = object.metadata.owner_references.iter().flatten();
    let owner = owners.into_iter().find(|owner| owner.kind == "Node").map(|it| it.name.clone());
    let name = object.metadata.name.as_deref().unwrap_or_default();
    Row {
        node: owner.unwrap_or_else(|| name.strip_prefix("node-").unwrap_or(name).to_owned()),
        holder: spec.and_then(|spec| spec.holder_identity.clone()).unwrap_or_default(),
        state: match lease.is_anothers(now, terms) {
            true if has_ended => "Ended",
            true => "Held",
            false => "Free",
        },
        since: spec.and_then(|spec| spec.acquire_time.as_ref()).and_then(|at| time(at.0)),
        until: lease.ends(),
        reason: text(REASON_ANNOTATION).cloned().unwrap_or_default(),
        operation: text(OPERATION_ANNOTATION).cloned(),
    }
}

pub(super) fn items(rows: &[Row]) -> Value {
    let item = |row: &Row| {
        json!({
            "node": row.node,
            "holder": row.holder,
            "state": row.state,
            "since": row.since.map(shown),
            "until": row.until.map(shown),
            "reason": row.reason,
            "operation": row.operation,
        })
    };
    json!({"items": rows.iter().map(item).collect::<Vec<_>>()})
}

impl Row {
    pub(super) fn cells(&self) -> Vec<String> {
        let or_none = |text: String| if text.is_empty() { "-".to_owned() } else { line(&text) };
        let at = |at: Option<Time>| at.map_or_else(|| "-".to_owned(), shown);
        vec![
            or_none(self.node.clone()),
            or_none(self.holder.clone()),
            self.state.to_owned(),
            at(self.since),
            at(self.until),
            or_none(self.reason.clone()),
        ]
    }
}
