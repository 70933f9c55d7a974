//! A review with an object that is nested deeper than anything that is read here:
//! only its outline is read, which is enough to say so.

use kube::core::DynamicObject;
use kube::core::admission::{AdmissionResponse, AdmissionReview};
use serde::Deserialize;
use tread_model::read::document::JSON_DEPTH;

/// A review without the objects in it, of which nothing is kept.
#[derive(Deserialize)]
struct Review {
    request: Request,
}

#[derive(Deserialize)]
struct Request {
    uid: String,
    kind: Kind,
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct Kind {
    kind: String,
}

/// The answer to a review that is one, though it cannot be read as a whole.
pub(super) fn answer(body: &[u8]) -> Option<AdmissionReview<DynamicObject>> {
    let Review { request } = serde_json::from_slice(body).ok()?;
    let mut response = AdmissionResponse::invalid("");
    response.uid = request.uid;
    response.allowed = true;
    response.result = kube::core::Status::default();
    response.warnings =
        Some(vec![super::handler::one_line(&warning(&request.kind.kind, &request.name))]);
    Some(response.into_review())
}

fn warning(kind: &str, name: &str) -> String {
    format!(
        "tread: {kind} {name}, or what it replaces, is nested more than {JSON_DEPTH} deep and cannot \
         be read: what it does to nodes is not known, count on drain + reboot. Look for a list or \
         object that was copied into itself."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_nested_too_deep_is_allowed_with_a_warning_that_says_so() {
        let deep = |levels: usize| {
            let object = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
            format!(
                r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{
                    "uid":"7","kind":{{"group":"g","version":"v1","kind":"MachineConfig"}},
                    "name":"99-a","operation":"CREATE","userInfo":{{}},
                    "object":{{"spec":{object}}}}}}}"#
            )
        };
        let answered = answer(deep(900).as_bytes()).unwrap().response.unwrap();
        assert!(answered.allowed);
        assert_eq!(answered.uid, "7");
        let [warning] = answered.warnings.unwrap().try_into().unwrap();
        assert!(warning.starts_with("tread: MachineConfig 99-a, or what it replaces"), "{warning}");
        assert!(warning.contains("nested more than 127 deep"), "{warning}");
        assert!(serde_json::from_str::<serde_json::Value>(&deep(120)).is_ok());
        assert!(answer(b"{}").is_none());
    }
}
