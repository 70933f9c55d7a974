//! What the API server asks: an AdmissionReview, of which no more is read than has
//! to be known.

use crate::whole::Whole;
use kube::core::admission::Operation;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// What somebody is about to do.
#[derive(Debug, Clone)]
pub struct Asked {
    /// What the answer has to name.
    pub uid: String,
    /// Create, update or delete.
    pub operation: Operation,
    /// The kind of the object.
    pub kind: String,
    /// Its name, as far as it is known.
    pub name: String,
    /// The object as it will be; of one that goes, as it is.
    pub object: Option<Whole>,
}

#[derive(Deserialize)]
struct Review<'b> {
    #[serde(borrow)]
    request: Option<Request<'b>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request<'b> {
    uid: String,
    kind: Kind,
    #[serde(default)]
    name: String,
    operation: Operation,
    #[serde(borrow, default)]
    object: Option<&'b RawValue>,
    #[serde(borrow, default)]
    old_object: Option<&'b RawValue>,
}

#[derive(Deserialize)]
struct Kind {
    kind: String,
}

impl Asked {
    /// Reads an AdmissionReview; or says what is wrong with it.
    pub fn read(review: &[u8]) -> Result<Asked, String> {
        let review: Review<'_> =
            serde_json::from_slice(review).map_err(|error| error.to_string())?;
        let request = review.request.ok_or("it has no request")?;
        let object = match request.operation {
            Operation::Delete => request.old_object,
            _ => request.object,
        };
        let object = object.map(|text| Whole::read(text.get())).transpose();
        Ok(Asked {
            uid: request.uid,
            operation: request.operation,
            kind: request.kind.kind,
            name: request.name,
            object: object.map_err(|error| format!("its object: {error}"))?,
        })
    }

    /// The review that allows it, with these warnings.
    pub(super) fn allowed(uid: &str, warnings: &[String]) -> Value {
        let response = match warnings {
            [] => json!({"uid": uid, "allowed": true}),
            _ => json!({"uid": uid, "allowed": true, "warnings": warnings}),
        };
        json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response,
        })
    }
}
