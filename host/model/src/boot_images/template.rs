//! What an infrastructure template of Cluster API boots.

use super::document::{field_at, shown};
use super::provider::{Boots, Image, Platform, azure_id, text};
use serde_json::Value;

/// Reads the `spec.template.spec` of a template of this kind. The error says
/// what is wrong, cleaned.
pub fn read(kind: &str, spec: &Value) -> Result<Boots, String> {
    if !spec.is_object() {
        return Err(format!("its {} has no spec.template.spec", shown(kind)));
    }
    let (platform, image) = match kind {
        "AWSMachineTemplate" => (Platform::Aws, aws(spec)?),
        "AzureMachineTemplate" => (Platform::Azure, azure(spec)?),
        "GCPMachineTemplate" => (Platform::Gcp, text(spec, "image").map_err(|_| nothing("image"))?),
        "VSphereMachineTemplate" => {
            (Platform::VSphere, text(spec, "template").map_err(|_| nothing("template"))?)
        }
        "Metal3MachineTemplate" => (Platform::BareMetal, metal(spec)?),
        other => return Err(format!("it refers to a {}, which tread does not know", shown(other))),
    };
    let region = field_at(spec, "/region").as_str().map(str::to_owned);
    Ok(Boots { platform, images: vec![image], region, user_data: None })
}

/// The kinds that are read, with their plurals.
pub const KINDS: [(&str, &str); 5] = [
    ("AWSMachineTemplate", "awsmachinetemplates"),
    ("AzureMachineTemplate", "azuremachinetemplates"),
    ("GCPMachineTemplate", "gcpmachinetemplates"),
    ("VSphereMachineTemplate", "vspheremachinetemplates"),
    ("Metal3MachineTemplate", "metal3machinetemplates"),
];

fn nothing(field: &str) -> String {
    format!("its infrastructure template names no image: expected one in {field}")
}

fn image(id: &str, field: &str, value: &Value) -> Image {
    Image { id: id.to_owned(), field: field.to_owned(), value: value.clone() }
}

fn named(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

fn aws(spec: &Value) -> Result<Image, String> {
    let id = named(field_at(spec, "/ami/id")).ok_or_else(|| nothing("ami.id"))?;
    Ok(image(id, "/ami", field_at(spec, "/ami")))
}

fn metal(spec: &Value) -> Result<Image, String> {
    let url = named(field_at(spec, "/image/url")).ok_or_else(|| nothing("image.url"))?;
    Ok(image(url, "/image", field_at(spec, "/image")))
}

fn azure(spec: &Value) -> Result<Image, String> {
    let image_of = field_at(spec, "/image");
    let gallery = |key: &str| {
        let found = field_at(image_of, &format!("/{key}"));
        let parts: Option<Vec<&str>> = ["gallery", "name", "version"]
            .iter()
            .map(|part| named(field_at(found, &format!("/{part}"))))
            .collect();
        parts.map(|parts| parts.join("/"))
    };
    let id = named(field_at(image_of, "/id"))
        .map(str::to_owned)
        .or_else(|| azure_id(field_at(image_of, "/marketplace")))
        .or_else(|| gallery("computeGallery"))
        .or_else(|| gallery("sharedGallery"))
        .ok_or_else(|| nothing("image"))?;
    Ok(image(&id, "/image", image_of))
}
