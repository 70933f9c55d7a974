//! Puts the registries.conf in which mirrors were rendered into a config.

use super::unrendered::Unrendered;
use crate::config::{NodeConfig, Source};
use crate::mirrors::REGISTRIES_CONF;
use crate::problem::{Problem, Problems};
use serde_json::{Map, Value, json};

/// The contents of the file in a config.
pub(super) fn of<'a>(config: &NodeConfig<'a>) -> Option<Source<'a>> {
    let file = config.files.iter().find(|file| file.path == REGISTRIES_CONF);
    file.map(|file| file.contents.clone())
}

/// Writes the contents `after` in place of what a spec has there, where they are others
/// than those `before`.
pub(super) fn put(
    spec: &mut Value,
    before: &Option<Source<'_>>,
    after: &Option<Source<'_>>,
) -> Result<(), Unrendered> {
    let changed = after.as_ref().filter(|_| before != after);
    let Some(url) = changed.and_then(|contents| contents.url.as_deref()) else { return Ok(()) };
    if let Some(kind) = ["directories", "links"].into_iter().find(|kind| has(spec, kind)) {
        let problem = Problem {
            file: REGISTRIES_CONF.to_owned(),
            path: format!("spec.config.storage.{kind}"),
            message: "no mirrors can be rendered where something else stands than a file: remove \
                      it, or the objects that redirect image pulls"
                .to_owned(),
            ..Problem::default()
        };
        return Err(Unrendered::Unreadable(Problems(vec![problem])));
    }
    let Some(files) = files(spec) else { return Ok(()) };
    let contents = json!({"source": url});
    let mut there = files.iter_mut().filter_map(Value::as_object_mut);
    match there.find(|file| file.get("path").is_some_and(|path| path == REGISTRIES_CONF)) {
        Some(file) => {
            file.insert("contents".to_owned(), contents);
            file.insert("overwrite".to_owned(), Value::Bool(true));
        }
        None => files.push(json!({
            "path": REGISTRIES_CONF, "mode": 0o644, "overwrite": true, "contents": contents,
        })),
    }
    Ok(())
}

/// Whether such a list has an entry at the path.
fn has(spec: &Value, kind: &str) -> bool {
    let list = spec.pointer("/config/storage").and_then(|storage| storage.get(kind)?.as_array());
    list.into_iter().flatten().any(|it| it.get("path").is_some_and(|it| it == REGISTRIES_CONF))
}

fn files(spec: &mut Value) -> Option<&mut Vec<Value>> {
    let config = spec.get_mut("config")?.as_object_mut()?;
    let storage = config.entry("storage").or_insert_with(|| Value::Object(Map::new()));
    let files = storage.as_object_mut()?.entry("files");
    files.or_insert_with(|| Value::Array(Vec::new())).as_array_mut()
}
