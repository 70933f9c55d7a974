//! Pieces of schemas that no Rust type gives.

use schemars::{Schema, SchemaGenerator, json_schema};

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
