//! An object as it came: what has to be known of it, and its text. What it holds is
//! not read here, so that it costs no more than its bytes, however it is nested.

use crate::api::POOL_KIND;
use kube::core::DynamicObject;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An object as it came.
#[derive(Debug, Clone, Default)]
pub struct Whole {
    /// Its name; empty if the API server is to make one up.
    pub name: String,
    /// What such a name begins with.
    pub generate_name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Whether a MachineConfigPool owns it.
    pub is_of_pool: bool,
    /// Its `resourceVersion`.
    pub version: Option<String>,
    /// All of it, without `managedFields`: as much again as the rest, and nobody's
    /// business here.
    pub body: Arc<[u8]>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    name: Option<String>,
    generate_name: Option<String>,
    labels: Option<BTreeMap<String, String>>,
    owner_references: Option<Vec<Owner>>,
    resource_version: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Owner {
    kind: String,
}

type Parts<'t> = BTreeMap<String, &'t RawValue>;

impl Whole {
    /// Reads the text of an object.
    pub fn read(text: &str) -> serde_json::Result<Whole> {
        let parts: Parts<'_> = serde_json::from_str(text)?;
        let known = parts.get("metadata").map(|it| it.get());
        let metadata: Metadata = known.map(serde_json::from_str).transpose()?.unwrap_or_default();
        let mut body = Vec::with_capacity(text.len());
        write(&mut body, &parts, |body, name, value| {
            if name != "metadata" {
                return Ok(false);
            }
            let mut fields: Parts<'_> = serde_json::from_str(value)?;
            fields.remove("managedFields");
            write(body, &fields, |_, _, _| Ok(false))?;
            Ok(true)
        })?;
        let owners = metadata.owner_references.unwrap_or_default();
        Ok(Whole {
            name: metadata.name.unwrap_or_default(),
            generate_name: metadata.generate_name.unwrap_or_default(),
            labels: metadata.labels.unwrap_or_default(),
            is_of_pool: owners.iter().any(|owner| owner.kind == POOL_KIND),
            version: metadata.resource_version,
            body: body.into(),
        })
    }

    /// An object that was read as another type before.
    pub fn of(object: &DynamicObject) -> serde_json::Result<Whole> {
        Whole::read(&serde_json::to_string(object)?)
    }
}

/// Writes an object; a field in another way where `other` does so.
fn write(
    body: &mut Vec<u8>,
    parts: &Parts<'_>,
    other: impl Fn(&mut Vec<u8>, &str, &str) -> serde_json::Result<bool>,
) -> serde_json::Result<()> {
    let mut next = b'{';
    for (name, value) in parts {
        body.push(next);
        next = b',';
        serde_json::to_writer(&mut *body, name)?;
        body.push(b':');
        if !other(body, name, value.get())? {
            body.extend_from_slice(value.get().as_bytes());
        }
    }
    if parts.is_empty() {
        body.push(next);
    }
    body.push(b'}');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn all_of_an_object_stays_but_who_wrote_it() {
        let mut object = json!({
            "kind": "MachineConfig", "spec": {"a \"b\"": [1, 2.5, null, "\u{e4}"]}, "x": {},
            "metadata": {"name": "a", "labels": {"l": "m"}, "resourceVersion": "7",
                "managedFields": [{"manager": "kubectl"}],
                "ownerReferences": [{"kind": "MachineConfigPool", "name": "worker"}]},
        });
        let whole = Whole::read(&object.to_string()).unwrap();
        object["metadata"].as_object_mut().unwrap().remove("managedFields");
        assert_eq!(serde_json::from_slice::<Value>(&whole.body).unwrap(), object);
        assert_eq!((whole.name.as_str(), whole.version.as_deref()), ("a", Some("7")));
        assert!(whole.is_of_pool && whole.labels["l"] == "m");
        let bare = Whole::read("{}").unwrap();
        assert_eq!((&bare.body[..], bare.name.as_str()), (&b"{}"[..], ""));
    }

    #[test]
    fn what_is_no_object_is_none_and_what_is_nested_without_end_is_one() {
        for bad in ["5", "[]", "null", "{\"metadata\": 5}", "{\"a\": }", ""] {
            assert!(Whole::read(bad).is_err(), "{bad}");
        }
        let deep = format!("{}{}", "[".repeat(500_000), "]".repeat(500_000));
        let nested = |place: &str| format!("{{\"metadata\": {{{place}}}, \"spec\": {deep}}}");
        let whole = Whole::read(&nested(&format!("\"managedFields\": {deep}"))).unwrap();
        assert_eq!(whole.body.len(), nested("").len() - 3);
    }
}
