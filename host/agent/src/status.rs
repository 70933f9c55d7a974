//! What a NodeUpdate's status says.

use crate::kept::{Kept, Taken};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use std::io;
use tread_kube::agents::FORM;
use tread_kube::api::node_update::{EndedOperation, NodeUpdateStatus, UpdatePhase};
use tread_model::digest::Digest;
use tread_model::protocol::Phase;
use tread_model::text::one_line_within;

/// How many of the last operations are told.
const ENDED: usize = 10;
/// A message is no longer.
const MESSAGE: usize = 1024;

/// Nor is what is done now: the name of a unit has 255 bytes at most.
const STEP: usize = 300;

/// What is said beside what is kept.
#[derive(Debug, Clone, Default)]
pub(crate) struct Says {
    /// What is done now.
    pub(crate) step: String,
    /// What an admin has to know.
    pub(crate) message: String,
    /// Which boot this is.
    pub(crate) boot: Option<String>,
    /// From which image the node booted first.
    pub(crate) boot_image: Option<String>,
}

/// An operation is in another phase by now.
pub(crate) fn becomes(kept: &mut Kept, phase: UpdatePhase, message: &str) {
    let Some(taken) = &mut kept.taken else { return };
    let now = MicroTime(Timestamp::now());
    (taken.phase, taken.since) = (phase, now.clone());
    taken.message = one_line_within(message, MESSAGE).0;
    if !Phase::from(phase).is_end() {
        return;
    }
    let Taken { operation, config, message, .. } = taken.clone();
    if phase == UpdatePhase::Done {
        kept.current = Some(config.clone());
    }
    let message = Some(message).filter(|it| !it.is_empty());
    let ended = EndedOperation { operation, config: config.name, phase, at: now, message };
    kept.ended.retain(|it| it.operation != ended.operation);
    kept.ended.insert(0, ended);
    kept.ended.truncate(ENDED);
}

fn message(kept: &Kept, says: &Says) -> String {
    let ended = kept.taken.as_ref().map(|taken| taken.message.as_str()).unwrap_or_default();
    let said = if says.message.is_empty() { ended } else { &says.message };
    one_line_within(said, MESSAGE).0
}

/// The status, of what is kept and what is said.
pub(crate) fn status(kept: &Kept, says: &Says) -> NodeUpdateStatus {
    let some = |text: String| Some(text).filter(|text| !text.is_empty());
    let taken = kept.taken.as_ref();
    NodeUpdateStatus {
        operation: taken.map(|taken| taken.operation.clone()),
        phase: taken.map(|taken| taken.phase),
        step: some(one_line_within(&says.step, STEP).0),
        since: taken.map(|taken| taken.since.clone()),
        message: some(message(kept, says)),
        form: Some(FORM),
        token: Some(kept.token).filter(|token| *token > 0),
        current: kept.current.clone(),
        boot_id: says.boot.clone(),
        boot_image: says.boot_image.clone(),
        ended: kept.ended.clone(),
        // These are the service's, which knows what the node is to have: without any the patch
        // says nothing of them.
        conditions: Vec::new(),
        drain: None,
    }
}

/// The patch that writes it: what it does not say is taken away.
pub(crate) fn patch(status: &NodeUpdateStatus) -> Result<Value, io::Error> {
    let mut said = serde_json::to_value(status)?;
    if let Some(fields) = said.as_object_mut() {
        let gone = ["operation", "phase", "step", "since", "message", "token", "current", "ended"];
        for field in gone {
            fields.entry(field).or_insert(Value::Null);
        }
    }
    Ok(json!({ "status": said }))
}

/// The same patch, to be applied only if the NodeUpdate already names this boot. So a write that
/// was sent before the node went down, and arrives after the next boot, is refused.
pub(crate) fn patch_in_boot(status: &NodeUpdateStatus, boot: &str) -> Result<Value, io::Error> {
    let mut whole = patch(status)?;
    let fields = whole.get_mut("status").and_then(Value::as_object_mut).map(std::mem::take);
    let mut steps = vec![json!({"op": "test", "path": "/status/bootId", "value": boot})];
    for (field, value) in fields.unwrap_or_default() {
        let path = format!("/status/{field}");
        let is_gone = value.is_null();
        steps.push(json!({"op": "add", "path": path, "value": value}));
        if is_gone {
            // What is not there cannot be removed.
            steps.push(json!({"op": "remove", "path": path}));
        }
    }
    Ok(Value::Array(steps))
}

/// By what two statuses are told apart: for nothing else one is written.
pub(crate) fn digest(status: &NodeUpdateStatus) -> Result<String, io::Error> {
    Ok(Digest::of(&serde_json::to_vec(status)?).to_string())
}

#[cfg(test)]
mod tests;
