//! What several MachineConfigs say together, by the rules of OpenShift's operator.

use super::source::MachineConfig;
use super::unrendered::{Rejection, Unrendered};
use crate::ignition::{CONFIG, Shape, merge};
use crate::refuse::{EXTENSIONS_FIELD, KERNEL_DEVEL, why_not_beside};
use serde_json::{Map, Value, json};

/// The version of an Ignition config that none of the sources has.
const LEAST_VERSION: &str = "3.0.0";

const DEFAULT_KERNEL: &str = "default";

/// Merges the sources, which lose their Ignition configs.
pub(super) fn merged(sources: &mut [MachineConfig<'_>]) -> Result<Value, Unrendered> {
    let config = ignition(sources);
    let mut spec = Map::new();
    for (field, text) in [
        ("baseOSExtensionsContainerImage", image(sources, "baseOSExtensionsContainerImage")),
        ("osImageURL", image(sources, "osImageURL")),
    ] {
        if let Some(text) = text {
            spec.insert(field.to_owned(), json!(text));
        }
    }
    let kernel_type = kernel_type(sources);
    let extensions = texts(sources, "extensions");
    if let Some(reason) = why_not_beside(kernel_type, extensions.iter().copied()) {
        return Err(Unrendered::Rejected(vec![kernel_devel(sources, reason)]));
    }
    let fips = sources.iter().any(|source| source.spec.get("fips") == Some(&Value::Bool(true)));
    for (field, value) in [
        ("extensions", json!(extensions)),
        ("fips", json!(fips)),
        ("kernelArguments", json!(texts(sources, "kernelArguments"))),
        ("kernelType", json!(kernel_type)),
        ("config", config),
    ] {
        spec.insert(field.to_owned(), value);
    }
    Ok(Value::Object(spec))
}

/// All Ignition configs, merged, in the least version that knows all that they say.
fn ignition(sources: &mut [MachineConfig<'_>]) -> Value {
    let version = |source: &MachineConfig<'_>| {
        source.config.pointer("/ignition/version").and_then(Value::as_str).map(str::to_owned)
    };
    let version = sources.iter().filter_map(version).max();
    let configs = sources.iter_mut().map(|source| source.config.take());
    let mut config = merge(configs.collect(), Shape::Object(CONFIG));
    if config.is_null() {
        config = json!({});
    }
    if let Value::Object(fields) = &mut config {
        let ignition = fields.entry("ignition").or_insert_with(|| json!({}));
        if let Value::Object(ignition) = ignition {
            let version = version.unwrap_or_else(|| LEAST_VERSION.to_owned());
            ignition.insert("version".to_owned(), Value::String(version));
        }
    }
    files(&mut config).for_each(finish);
    tidy(&mut config);
    config
}

fn files(config: &mut Value) -> impl Iterator<Item = &mut Map<String, Value>> {
    let files = config.pointer_mut("/storage/files").and_then(Value::as_array_mut);
    files.into_iter().flatten().filter_map(Value::as_object_mut)
}

/// Running nodes write over whatever is there, and so does a machine that boots for the
/// first time. Ignition rejects that for a file without a source.
fn finish(file: &mut Map<String, Value>) {
    if let Some(Value::Object(contents)) = file.get_mut("contents") {
        if contents.get("compression").is_some_and(|it| it == "") {
            contents.remove("compression");
        }
        if contents.get("source").is_none_or(Value::is_null) {
            return;
        }
        let overwrite = file.entry("overwrite").or_insert(Value::Null);
        if overwrite.is_null() {
            *overwrite = Value::Bool(true);
        }
    }
}

/// Takes out of all objects what is null or holds nothing.
fn tidy(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(tidy);
            fields.retain(|_, value| match value {
                Value::Null => false,
                Value::Object(fields) => !fields.is_empty(),
                Value::Array(items) => !items.is_empty(),
                _ => true,
            });
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

/// The last image that an admin names; or else the last one of OpenShift's templates.
fn image<'s>(sources: &'s [MachineConfig<'_>], field: &str) -> Option<&'s str> {
    let of = |is_generated: bool| {
        let some = sources.iter().filter(move |source| source.is_generated == is_generated);
        let mut texts = some.filter_map(|source| source.spec.get(field)?.as_str());
        texts.rfind(|text| !text.is_empty())
    };
    of(false).or_else(|| of(true))
}

/// The last one that is not the default.
fn kernel_type<'s>(sources: &'s [MachineConfig<'_>]) -> &'s str {
    let mut types = sources.iter().filter_map(|source| source.spec.get("kernelType")?.as_str());
    types.rfind(|it| !["", DEFAULT_KERNEL].contains(it)).unwrap_or(DEFAULT_KERNEL)
}

/// A list of texts of all sources, one behind the other.
fn texts<'s>(sources: &'s [MachineConfig<'_>], field: &str) -> Vec<&'s str> {
    let lists = sources.iter().filter_map(|source| source.spec.get(field)?.as_array());
    lists.flatten().filter_map(Value::as_str).collect()
}

/// A rejection of the first source that has the extension.
fn kernel_devel(sources: &[MachineConfig<'_>], reason: String) -> Rejection {
    let has = |source: &&MachineConfig<'_>| {
        let list = source.spec.get("extensions").and_then(Value::as_array);
        list.into_iter().flatten().any(|it| it == KERNEL_DEVEL)
    };
    Rejection {
        object: sources.iter().find(has).map(|it| it.name.clone()).unwrap_or_default(),
        field: EXTENSIONS_FIELD.to_owned(),
        reason,
    }
}
