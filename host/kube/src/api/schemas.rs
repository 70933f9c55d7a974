//! Pieces of schemas that no Rust type gives. Of Kubernetes' own types those that
//! stand in tread's objects: k8s-openapi could bring the schemas of all its types,
//! which is most of what it takes to build.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::Value;
use std::borrow::Cow;

/// Any JSON object; the API server keeps all of it.
pub(super) fn free_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// A whole number or a percentage.
pub(super) fn int_or_string(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": true,
    })
}

/// Conditions of an object that others than tread's controllers may write too: no more and no
/// longer than the API's own.
pub(super) fn few_conditions(generator: &mut SchemaGenerator) -> Schema {
    let mut condition = ConditionShape::json_schema(generator);
    for (field, most) in [("type", 316), ("status", 7), ("reason", 1024), ("message", 32_768)] {
        let text = condition.pointer_mut(&format!("/properties/{field}"));
        if let Some(text) = text.and_then(Value::as_object_mut) {
            text.insert("maxLength".to_owned(), Value::from(most));
        }
    }
    json_schema!({"type": "array", "maxItems": 8, "items": condition})
}

/// A length of time: 30s, 5m, 1h 30m.
pub(super) fn span(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "minLength": 2,
        "maxLength": 24,
        "pattern": "^([0-9]{1,4}h)?( ?[0-9]{1,5}m)?( ?[0-9]{1,6}s)?$",
    })
}

macro_rules! shapes {
    ($($(#[$doc:meta])* $name:ident: $schema:tt)*) => {
        $(
            $(#[$doc])*
            pub(super) struct $name;

            impl JsonSchema for $name {
                fn schema_name() -> Cow<'static, str> {
                    stringify!($name).into()
                }

                fn json_schema(_: &mut SchemaGenerator) -> Schema {
                    json_schema!($schema)
                }
            }
        )*
    };
}

shapes! {
    /// Of a `Time`.
    TimeShape: {"type": "string", "format": "date-time"}

    /// The same where anybody may write it: what the API server takes beyond this, tread does not read.
    WrittenTimeShape: {
        "type": "string",
        "format": "date-time",
        "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9:]{8}(\.[0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-5][0-9])$",
    }

    /// Of a `Condition`.
    ConditionShape: {
        "type": "object",
        "description": "One thing to know of the object.",
        "properties": {
            "type": {"type": "string", "description": "What it is about."},
            "status": {"type": "string", "description": "True, False or Unknown."},
            "reason": {"type": "string", "description": "Why, in a word for programs."},
            "message": {"type": "string", "description": "Why, in a sentence for people."},
            "lastTransitionTime": {
                "type": "string", "format": "date-time",
                "description": "When the status became what it is.",
            },
            "observedGeneration": {
                "type": "integer", "format": "int64",
                "description": "The generation of the object that it was said of.",
            },
        },
        "required": ["lastTransitionTime", "message", "reason", "status", "type"],
    }

    /// Of a `LabelSelector`.
    SelectorShape: {
        "type": "object",
        "properties": {
            "matchExpressions": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "key": {"type": "string"},
                        "operator": {"type": "string"},
                        "values": {"type": "array", "items": {"type": "string"}},
                    },
                    "required": ["key", "operator"],
                },
            },
            "matchLabels": {"type": "object", "additionalProperties": {"type": "string"}},
        },
    }

    /// Of a `LabelSelector` whose mistakes the API server refuses.
    ExactSelectorShape: {
        "type": "object",
        "minProperties": 1,
        "properties": {
            "matchExpressions": {
                "type": "array",
                "maxItems": 16,
                "items": {
                    "type": "object",
                    "properties": {
                        "key": {"type": "string", "description": "The label.", "maxLength": 317},
                        "operator": {
                            "type": "string",
                            "description": "How: In, NotIn, Exists or DoesNotExist.",
                            "enum": ["In", "NotIn", "Exists", "DoesNotExist"],
                        },
                        "values": {
                            "type": "array",
                            "description": "For In and NotIn.",
                            "maxItems": 64,
                            "items": {"type": "string", "maxLength": 63},
                        },
                    },
                    "required": ["key", "operator"],
                    "x-kubernetes-validations": [{
                        "rule": "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
                        "message": "In and NotIn need values, Exists and DoesNotExist take none",
                    }],
                },
                "description": "What has to hold of labels.",
            },
            "matchLabels": {
                "type": "object",
                "description": "Labels that are to be there.",
                "additionalProperties": {"type": "string"},
            },
        },
    }

    /// Of an `ObjectReference`.
    ReferenceShape: {
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "fieldPath": {"type": "string"},
            "kind": {"type": "string"},
            "name": {"type": "string"},
            "namespace": {"type": "string"},
            "resourceVersion": {"type": "string"},
            "uid": {"type": "string"},
        },
    }
}
