//! What to say of a field that stands in an object twice.

use super::machine_config::SPEC;
use crate::ignition::{CONFIG, Field, Shape};

/// Fields of any object, and those of a MachineConfig around its spec.
const OBJECT: [&str; 9] =
    ["annotations", "apiVersion", "items", "kind", "labels", "metadata", "name", "spec", "status"];

/// Only a name that configs have is told: below a password's hash, or contents, any other
/// may be a part of the secret. The place of the field is told besides.
pub(super) fn twice(name: &str) -> String {
    let is_ours = OBJECT.contains(&name) || SPEC.contains(&name) || is_among(CONFIG, name);
    match is_ours {
        true => format!("the field {name:?} stands there twice"),
        false => "a field stands there twice".to_owned(),
    }
}

/// Whether one of these fields, or one inside of them, has this name.
fn is_among(fields: &[Field], name: &str) -> bool {
    fields.iter().any(|field| {
        let inside = match field.shape {
            Shape::Leaf => &[],
            Shape::Object(fields) => fields,
            Shape::List(items) => items.fields,
        };
        field.name == name || is_among(inside, name)
    })
}
