//! What a providerSpec of OpenShift's machine API boots, on each platform.

use super::document::{field_at, shown};
use super::version::{ImageVersion, in_name};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Where machines are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Platform {
    /// Amazon.
    Aws,
    /// Microsoft.
    Azure,
    /// Google.
    Gcp,
    /// VMware.
    VSphere,
    /// Machines of one's own.
    BareMetal,
    /// OpenStack.
    OpenStack,
    /// Nutanix.
    Nutanix,
    /// IBM Power.
    PowerVs,
    /// IBM Cloud.
    IbmCloud,
}

impl Platform {
    /// As people write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Platform::Aws => "AWS",
            Platform::Azure => "Azure",
            Platform::Gcp => "GCP",
            Platform::VSphere => "vSphere",
            Platform::BareMetal => "bare metal",
            Platform::OpenStack => "OpenStack",
            Platform::Nutanix => "Nutanix",
            Platform::PowerVs => "PowerVS",
            Platform::IbmCloud => "IBM Cloud",
        }
    }
}

/// What a resource boots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boots {
    /// The platform that it boots on.
    pub platform: Platform,
    /// The images, as the platform names them; several where a machine may boot
    /// several disks.
    pub images: Vec<Image>,
    /// Where images have a name for each region.
    pub region: Option<String>,
    /// The Secret with the stub of Ignition.
    pub user_data: Option<String>,
}

/// One image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// What identifies it on its platform.
    pub id: String,
    /// The field that names it, from the providerSpec on: `/disks/0/image`.
    pub field: String,
    /// What stands in that field now.
    pub value: Value,
}

impl Boots {
    /// The images for people: one line, cleaned.
    pub fn in_words(&self) -> String {
        let names: Vec<String> = self.images.iter().map(|image| shown(&image.id)).collect();
        shown(&names.join(", "))
    }

    /// The versions in the names of the images. None unless each has one: the
    /// others could be older.
    pub fn versions(&self) -> Vec<ImageVersion> {
        let found: Option<Vec<_>> = self.images.iter().map(|image| in_name(&image.id)).collect();
        found.unwrap_or_default()
    }
}

/// Reads a providerSpec's value. The error says what is wrong, cleaned.
pub fn read(spec: &Value) -> Result<Boots, String> {
    if !spec.is_object() {
        return Err("has no providerSpec.value: nothing says what its machines boot".to_owned());
    }
    let kind = field_at(spec, "/kind").as_str().unwrap_or_default();
    let (platform, images) = match kind {
        "AWSMachineProviderConfig" => (Platform::Aws, aws(spec)?),
        "AzureMachineProviderSpec" => (Platform::Azure, vec![azure(spec)?]),
        "GCPMachineProviderSpec" => (Platform::Gcp, gcp(spec)?),
        "VSphereMachineProviderSpec" => (Platform::VSphere, vec![text(spec, "template")?]),
        "BareMetalMachineProviderSpec" => (Platform::BareMetal, vec![bare_metal(spec)?]),
        "OpenstackProviderSpec" => (Platform::OpenStack, vec![open_stack(spec)?]),
        "NutanixMachineProviderConfig" => {
            (Platform::Nutanix, vec![reference(spec, &["name", "uuid"])?])
        }
        "PowerVSMachineProviderConfig" => {
            (Platform::PowerVs, vec![reference(spec, &["name", "id"])?])
        }
        "IBMCloudMachineProviderSpec" => (Platform::IbmCloud, vec![text(spec, "image")?]),
        "" => return Err("its providerSpec has no kind, so its platform is not known".to_owned()),
        other => {
            return Err(format!(
                "its providerSpec is a {}, which tread does not know",
                shown(other)
            ));
        }
    };
    let user_data = match platform {
        Platform::BareMetal => field_at(spec, "/userData/name"),
        _ => field_at(spec, "/userDataSecret/name"),
    };
    let named = |value: &Value| value.as_str().filter(|it| !it.is_empty()).map(str::to_owned);
    let user_data = named(user_data).or_else(|| named(field_at(spec, "/userDataSecret")));
    Ok(Boots { platform, images, region: named(field_at(spec, "/placement/region")), user_data })
}

fn image(id: &str, field: &str, value: &Value) -> Image {
    Image { id: id.to_owned(), field: field.to_owned(), value: value.clone() }
}

/// A field that names the image by a text.
pub(super) fn text(spec: &Value, field: &str) -> Result<Image, String> {
    match field_at(spec, &format!("/{field}")).as_str() {
        Some(id) if !id.is_empty() => {
            Ok(image(id, &format!("/{field}"), field_at(spec, &format!("/{field}"))))
        }
        _ => Err(format!("its providerSpec names no image: expected one in {field}")),
    }
}

/// An image that is named in one of several ways.
pub(super) fn reference(spec: &Value, keys: &[&str]) -> Result<Image, String> {
    let found = keys.iter().find_map(|key| {
        field_at(spec, &format!("/image/{key}")).as_str().filter(|id| !id.is_empty())
    });
    match found {
        Some(id) => Ok(image(id, "/image", field_at(spec, "/image"))),
        None => Err(format!(
            "its providerSpec names no image: expected image.{}",
            keys.join(" or image.")
        )),
    }
}

fn aws(spec: &Value) -> Result<Vec<Image>, String> {
    match field_at(spec, "/ami/id").as_str() {
        Some(id) if !id.is_empty() => Ok(vec![image(id, "/ami", field_at(spec, "/ami"))]),
        _ if field_at(spec, "/ami").is_object() => {
            Err("its AMI is found by an ARN or by filters, so that nobody knows which one a new \
             machine gets: name it in ami.id"
                .to_owned())
        }
        _ => Err("its providerSpec names no image: expected ami.id".to_owned()),
    }
}

/// As Azure identifies an image: by its resource, or by publisher, offer, SKU and version.
pub(super) fn azure_id(image: &Value) -> Option<String> {
    let text =
        |key: &str| field_at(image, &format!("/{key}")).as_str().filter(|text| !text.is_empty());
    if let Some(resource) = text("resourceID") {
        return Some(resource.to_owned());
    }
    let sku = text("sku").or_else(|| text("SKU"));
    let parts = [text("publisher"), text("offer"), sku, text("version")];
    let parts: Option<Vec<&str>> = parts.into_iter().collect();
    parts.map(|parts| parts.join(":"))
}

fn azure(spec: &Value) -> Result<Image, String> {
    let id = azure_id(field_at(spec, "/image")).ok_or(
        "its providerSpec names no image: expected image.resourceID, or publisher, offer, sku and \
         version",
    )?;
    Ok(image(&id, "/image", field_at(spec, "/image")))
}

fn gcp(spec: &Value) -> Result<Vec<Image>, String> {
    let disks = field_at(spec, "/disks").as_array().map(Vec::as_slice).unwrap_or_default();
    let boots = disks.iter().enumerate().filter(|(_, disk)| field_at(disk, "/boot") == true);
    let images: Vec<Image> = boots
        .filter_map(|(at, disk)| {
            let id = field_at(disk, "/image").as_str().filter(|id| !id.is_empty())?;
            Some(image(id, &format!("/disks/{at}/image"), field_at(disk, "/image")))
        })
        .collect();
    if images.is_empty() {
        return Err("its providerSpec names no image: expected one on a disk that boots".to_owned());
    }
    Ok(images)
}

fn bare_metal(spec: &Value) -> Result<Image, String> {
    match field_at(spec, "/image/url").as_str() {
        Some(url) if !url.is_empty() => Ok(image(url, "/image", field_at(spec, "/image"))),
        _ if field_at(spec, "/customDeploy/method").is_string() => Err(
            "its machines are installed by a deploy method of their own, not from an image that \
             tread can see"
                .to_owned(),
        ),
        _ => Err("its providerSpec names no image: expected image.url".to_owned()),
    }
}

fn open_stack(spec: &Value) -> Result<Image, String> {
    let volume = field_at(spec, "/rootVolume/sourceUUID");
    match volume.as_str().filter(|id| !id.is_empty()) {
        Some(id) => Ok(image(id, "/rootVolume/sourceUUID", volume)),
        None => text(spec, "image"),
    }
}

/// The architecture in the annotation that the cluster autoscaler reads.
pub fn architecture(annotations: &BTreeMap<String, String>) -> Option<&'static str> {
    let labels = annotations.get("capacity.cluster-autoscaler.kubernetes.io/labels")?;
    let named =
        labels.split(',').find_map(|label| label.trim().strip_prefix("kubernetes.io/arch="))?;
    match named {
        "amd64" => Some("x86_64"),
        "arm64" => Some("aarch64"),
        "ppc64le" => Some("ppc64le"),
        "s390x" => Some("s390x"),
        _ => None,
    }
}
