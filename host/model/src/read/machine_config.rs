//! A MachineConfig object.

use super::fields::Fields;
use super::layer::Layer;
use super::normal::{ODD, is_odd};
use super::report::Report;
use super::{ignition, makeup, normal};
use std::borrow::Cow;

/// The apiVersion of MachineConfigs.
pub const MACHINE_CONFIG_API: &str = "machineconfiguration.openshift.io/v1";

/// The label that says which pool a MachineConfig is for.
pub const ROLE_LABEL: &str = "machineconfiguration.openshift.io/role";

/// The annotation of a MachineConfig that OpenShift's operator made.
pub const GENERATED_BY: &str = "machineconfiguration.openshift.io/generated-by-controller-version";

/// The fields of its spec.
pub(super) const SPEC: [&str; 7] = [
    "baseOSExtensionsContainerImage",
    "config",
    "extensions",
    "fips",
    "kernelArguments",
    "kernelType",
    "osImageURL",
];

/// Reads a MachineConfig; `document` is its number on its side.
pub(super) fn read(object: &Fields<'_>, document: u32, report: &mut Report) -> Layer {
    let mut layer = Layer::default();
    object.only(&["apiVersion", "kind", "metadata", "spec", "status"], report);
    layer.name = name(object, report);
    let mut owner = None;
    if let Some(metadata) = object.child("metadata", &mut Report::new("", "")) {
        if let Some(labels) = metadata.child("labels", report) {
            layer.role = labels.string(ROLE_LABEL, report).map(str::to_owned);
            if layer.role.as_deref().is_some_and(is_odd) {
                report.problem(labels.at(ROLE_LABEL), ODD);
                layer.role = None;
            }
        }
        owner = owning_pool(&metadata);
        layer.is_generated = is_generated(&metadata);
    }
    layer.makeup = makeup::of_config(&layer.name, owner.as_deref(), layer.role.as_deref());
    let Some(spec) = object.child("spec", report) else { return layer };
    spec.only(&SPEC, report);
    spec.string("baseOSExtensionsContainerImage", report);
    layer.os_image = spec.string("osImageURL", report).map(str::to_owned);
    layer.os_image = layer.os_image.filter(|image| !image.is_empty());
    layer.fips = spec.boolean("fips", report).unwrap_or_default();
    for (_, name) in spec.strings("extensions", report) {
        layer.extensions.push(Cow::Owned(name.to_owned()));
    }
    for (index, text) in spec.strings("kernelArguments", report) {
        let mut tokens = Vec::new();
        if normal::kernel_arguments(text, &mut tokens).is_none() {
            let at = format!("{}[{index}]", spec.at("kernelArguments"));
            report.problem(at, "expected a closing quote: the number of '\"' is odd");
        }
        let tokens = tokens.into_iter().map(|token| Cow::Owned(token.into_owned()));
        layer.kernel_arguments.extend(tokens);
    }
    if let Some(text) = spec.string("kernelType", report).filter(|text| !text.is_empty()) {
        layer.kernel_type = normal::kernel_type(text);
        if layer.kernel_type.is_none() {
            let message = format!("expected default, realtime or 64k-pages, found {text:?}");
            report.problem(spec.at("kernelType"), message);
        }
    }
    if let Some(config) = spec.child("config", report) {
        ignition::read(&config, document, &mut layer, report);
    }
    layer
}

/// The name of any Kubernetes object.
pub(super) fn name(object: &Fields<'_>, report: &mut Report) -> String {
    let Some(metadata) = object.child("metadata", report) else {
        if object.get("metadata").is_none() {
            report.problem("metadata.name", "is missing: expected a string");
        }
        return String::new();
    };
    let name = metadata.required_string("name", report).unwrap_or_default();
    if is_odd(name) {
        report.problem(metadata.at("name"), ODD);
        return String::new();
    }
    name.to_owned()
}

/// Whether OpenShift's operator made it.
fn is_generated(metadata: &Fields<'_>) -> bool {
    let mut ignored = Report::new("", "");
    let annotations = metadata.child("annotations", &mut ignored);
    let version =
        annotations.and_then(|it| it.string(GENERATED_BY, &mut ignored).map(str::to_owned));
    version.is_some_and(|version| !version.is_empty())
}

/// The pool that owns an object. Whatever else stands in its metadata is
/// Kubernetes' affair.
fn owning_pool(metadata: &Fields<'_>) -> Option<String> {
    let mut ignored = Report::new("", "");
    let owners = metadata.objects("ownerReferences", &mut ignored);
    owners.into_iter().find_map(|(_, owner)| {
        let is_pool = owner.string("kind", &mut ignored) == Some(makeup::POOL_KIND);
        let name = is_pool.then(|| owner.string("name", &mut ignored)).flatten();
        name.filter(|name| !is_odd(name)).map(str::to_owned)
    })
}
