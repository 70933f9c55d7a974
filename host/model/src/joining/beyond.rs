//! What a config has that Ignition cannot bring.

use serde_json::Value;

/// Whether a machine that booted with a config, by its spec, may lack some of it: an image, a
/// kernel, its arguments or extensions.
pub fn needs_agent(spec: &Value) -> bool {
    let field = |name: &str| spec.get(name).unwrap_or(&Value::Null);
    let says = |name: &str| field(name).as_str().is_some_and(|it| !it.is_empty());
    let lists = |name: &str| field(name).as_array().is_some_and(|it| !it.is_empty());
    let kernel = says("kernelType") && field("kernelType") != "default";
    says("osImageURL") || kernel || lists("kernelArguments") || lists("extensions")
}
