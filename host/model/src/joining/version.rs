//! An Ignition config in another version 3.X than it was rendered in.

use crate::ignition::{CONFIG, Field, Shape};
use crate::text::and_more;
use serde_json::{Map, Value};

/// Special bits of a mode.
const SPECIAL: u64 = 0o7000;
/// From this version on Ignition sets them; before it left them out.
const SETS_SPECIAL: u8 = 4;
/// As many fields are named.
const NAMED: usize = 3;

/// What a config says that the version has no word for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "Ignition 3.{minor} does not know {}{}: boot the machine from a newer image, or take that out of \
     the pool's MachineConfigs",
    fields.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", "),
    and_more(fields.len(), NAMED)
)]
pub struct Lacks {
    minor: u8,
    /// Each with its place, and since when it is known.
    pub fields: Vec<String>,
}

/// Makes a config one of version 3.`minor`: what it says stays the same, or it is an error.
/// `minor` none: in the version that it has.
pub fn in_version(config: &mut Value, minor: Option<u8>) -> Result<u8, Lacks> {
    let had = version(config);
    let minor = minor.unwrap_or(had);
    let mut walk = Walk { had, minor, fields: Vec::new() };
    if let Value::Object(map) = &*config {
        walk.object(map, CONFIG, "");
    }
    walk.modes(config);
    if !walk.fields.is_empty() {
        return Err(Lacks { minor, fields: walk.fields });
    }
    if let Some(version) = config.pointer_mut("/ignition/version") {
        *version = Value::String(format!("3.{minor}.0"));
    }
    Ok(minor)
}

/// The number in the middle of its version.
fn version(config: &Value) -> u8 {
    let text = config.pointer("/ignition/version").and_then(Value::as_str).unwrap_or_default();
    let minor = text.strip_prefix("3.").and_then(|rest| rest.strip_suffix(".0"));
    minor.and_then(|minor| minor.parse().ok()).unwrap_or_default()
}

struct Walk {
    had: u8,
    minor: u8,
    fields: Vec<String>,
}

impl Walk {
    fn object(&mut self, map: &Map<String, Value>, fields: &[Field], path: &str) {
        for field in fields {
            let Some(value) = map.get(field.name).filter(|value| !value.is_null()) else {
                continue;
            };
            let path = match path {
                "" => field.name.to_owned(),
                path => format!("{path}.{}", field.name),
            };
            if field.since > self.minor {
                self.fields.push(format!("{path} (since 3.{})", field.since));
                continue;
            }
            match (field.shape, value) {
                (Shape::Object(fields), Value::Object(map)) => self.object(map, fields, &path),
                (Shape::List(of), Value::Array(items)) if !of.fields.is_empty() => {
                    for (index, item) in items.iter().enumerate() {
                        if let Value::Object(map) = item {
                            self.object(map, of.fields, &format!("{path}[{index}]"));
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// The special bits of modes: without meaning before 3.4, and set from then on.
    fn modes(&mut self, config: &mut Value) {
        for kind in ["directories", "files"] {
            let list = config.pointer_mut("/storage").and_then(|it| it.get_mut(kind));
            let items = list.and_then(Value::as_array_mut).into_iter().flatten();
            for (index, item) in items.enumerate() {
                let Some(mode) = item.get_mut("mode") else { continue };
                let Some(bits) = mode.as_u64().filter(|bits| bits & SPECIAL != 0) else { continue };
                match (self.had >= SETS_SPECIAL, self.minor >= SETS_SPECIAL) {
                    (true, false) => {
                        self.fields
                            .push(format!("storage.{kind}[{index}].mode 0{bits:o} (since 3.4)"));
                    }
                    (false, true) => *mode = Value::from(bits & !SPECIAL),
                    _ => {}
                }
            }
        }
    }
}
