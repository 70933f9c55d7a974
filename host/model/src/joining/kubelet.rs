//! The lines in a kubelet's configuration with which its node registers as joining.

use super::{EFFECT, TAINT};
use crate::read::{Input, document_values};
use serde_json::{Value, json};

/// Where the kubelet finds its configuration, unless an admin says otherwise.
pub const KUBELET: &str = "/etc/kubernetes/kubelet.conf";

pub(super) const FIELD: &str = "registerWithTaints";
const KIND: &str = "KubeletConfiguration";

const COMMENT: &str = "# A machine that joins registers with its claim. tread wrote this.\n";
/// The same behind a text whose last line has no end.
const COMMENT_AT_ONCE: &str = "\n# A machine that joins registers with its claim. tread wrote this and the line break before.\n";

/// Why a claim cannot be written into a kubelet's configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoRoom {
    /// It is none.
    #[error("it is no KubeletConfiguration that can be read")]
    Other,
    /// It registers nodes with taints of its own.
    #[error(
        "it has registerWithTaints: take that out, and write these taints into spec.nodeTaints of the \
         pool's Rollout, from where a node gets them when it joins"
    )]
    Taints,
    /// Something would be lost.
    #[error("no line can be added to it without changing others; write it as a plain mapping")]
    Written,
}

/// Whether what is laid over a kubelet's configuration says with which taints nodes register. What
/// cannot be read may say so.
pub(super) fn says_of_taints(text: &str) -> bool {
    read(text).map_or_else(|| text.contains(FIELD), |over| over.get(FIELD).is_some())
}

/// The configuration with a claim in it.
pub fn with_claim(text: &str, claim: &str) -> Result<String, NoRoom> {
    let before = read(text).ok_or(NoRoom::Other)?;
    if before.get("kind").is_none_or(|kind| kind != KIND) {
        return Err(NoRoom::Other);
    }
    if before.get(FIELD).is_some() {
        return Err(NoRoom::Taints);
    }
    let (at, lines) = lines(text, claim);
    let (first, rest) = text.split_at_checked(at).ok_or(NoRoom::Written)?;
    let written = format!("{first}{lines}{rest}");
    let taints = json!([{"key": TAINT, "value": claim, "effect": EFFECT}]);
    let mut expected = before;
    expected.as_object_mut().and_then(|fields| fields.insert(FIELD.to_owned(), taints));
    match read(&written) {
        Some(after) if after == expected => Ok(written),
        _ => Err(NoRoom::Written),
    }
}

/// The configuration as it was before a claim was written into it; none: it has no claim in it.
pub fn without_claim(text: &str) -> Option<String> {
    parted(text).map(|(before, _)| before)
}

/// The claim that was written into a configuration.
pub fn claim_in(text: &str) -> Option<&str> {
    parted(text).map(|(_, claim)| claim)
}

/// A configuration as it was before, and the claim that was written into it.
fn parted(text: &str) -> Option<(String, &str)> {
    let claim = text.split_once(TAINT)?.1.split(|c: char| !is_of_claims(c)).find(|part| {
        // Behind the words of the lines.
        !matches!(*part, "" | "value" | "effect")
    })?;
    let possible = [lines("{", claim), lines("\n", claim), lines("", claim)];
    possible.iter().find_map(|(_, lines)| {
        let (first, rest) = text.split_once(lines.as_str())?;
        let before = format!("{first}{rest}");
        (with_claim(&before, claim).ok()? == text).then_some((before, claim))
    })
}

fn is_of_claims(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// Where the lines stand in a text, and what they are.
fn lines(text: &str, claim: &str) -> (usize, String) {
    let begin = text.len() - text.trim_start().len();
    if text.trim_start().starts_with('{') {
        let taint = json!({"key": TAINT, "value": claim, "effect": EFFECT});
        return (begin + 1, format!("\"{FIELD}\":[{taint}],"));
    }
    let comment = if text.ends_with('\n') { COMMENT } else { COMMENT_AT_ONCE };
    // What a claim may be made of could also be a number.
    let lines =
        format!("{comment}{FIELD}:\n- key: {TAINT}\n  value: \"{claim}\"\n  effect: {EFFECT}\n");
    (text.len(), lines)
}

fn read(text: &str) -> Option<Value> {
    let documents = document_values(&Input { name: "", bytes: text.as_bytes() }).ok()?;
    match <[_; 1]>::try_from(documents) {
        Ok([document]) if document.value.is_object() => Some(document.value),
        _ => None,
    }
}
