//! What the API server asks: an AdmissionReview, of which no more is read than has
//! to be known.

use crate::api::words::MACHINE_CONFIG_GROUP;
use crate::whole::Whole;
use kube::core::admission::Operation;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Of their group they alone are small.
const POOLS: &str = "machineconfigpools";

/// What somebody is about to do.
#[derive(Debug, Clone)]
pub struct Asked {
    /// What the answer has to name.
    pub uid: String,
    /// Create, update or delete.
    pub operation: Operation,
    /// The kind of the object.
    pub kind: String,
    /// The group of the API.
    pub group: String,
    /// What such objects are called in its paths.
    pub resource: String,
    /// A part of the object that is asked for by itself, such as `scale`.
    pub subresource: Option<String>,
    /// The namespace of the object; empty if it is in none.
    pub namespace: String,
    /// Its name, as far as it is known.
    pub name: String,
    /// The object as it will be; of one that goes, as it is.
    pub object: Option<Whole>,
    /// What it replaces; not read of configs of nodes, which are large.
    pub before: Option<Whole>,
}

/// What a request will do.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Warned {
    /// One for each warning.
    pub lines: Vec<String>,
    /// Whether a policy was offered a secret: nobody is told how long it took.
    pub offered_secrets: bool,
}

impl From<Vec<String>> for Warned {
    fn from(lines: Vec<String>) -> Warned {
        Warned { lines, offered_secrets: false }
    }
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
    resource: Resource,
    #[serde(default)]
    sub_resource: Option<String>,
    #[serde(default)]
    namespace: String,
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

#[derive(Default, Deserialize)]
#[serde(default)]
struct Resource {
    group: String,
    resource: String,
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
        let before = match request.operation {
            Operation::Update
                if request.resource.group != MACHINE_CONFIG_GROUP
                    || request.resource.resource == POOLS =>
            {
                request.old_object
            }
            _ => None,
        };
        let read = |object: Option<&RawValue>| {
            let object = object.map(|text| Whole::read(text.get())).transpose();
            object.map_err(|error| format!("its object: {error}"))
        };
        Ok(Asked {
            object: read(object)?,
            before: read(before)?,
            uid: request.uid,
            operation: request.operation,
            kind: request.kind.kind,
            group: request.resource.group,
            resource: request.resource.resource,
            subresource: request.sub_resource,
            namespace: request.namespace,
            name: request.name,
        })
    }

    /// The review that allows it, with these warnings.
    pub fn allowed(uid: &str, warnings: &[String]) -> Value {
        let response = match warnings {
            [] => json!({"uid": uid, "allowed": true}),
            _ => json!({"uid": uid, "allowed": true, "warnings": warnings}),
        };
        json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response,
        })
    }
}
