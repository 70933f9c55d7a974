//! Stream metadata: which images a release came with.

use super::document::{field_at, shown};
use super::provider::{Boots, Platform, azure_id};
use super::version::{ImageVersion, Release, Rhel, in_name, parse_rhcos};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// More bytes of stream metadata than any release has.
const LARGEST: usize = 1024 * 1024;

/// The images of one release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalogue {
    /// The release that it is of.
    pub release: Release,
    architectures: BTreeSet<String>,
    /// By the id that the platform knows it by.
    images: BTreeMap<(Platform, String), ImageVersion>,
    /// What to write into a resource, by architecture and where it is to be used:
    /// a region, or for Azure what kind of image.
    offered: BTreeMap<(Platform, String, String), Offered>,
}

/// What to write into a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    /// The value of the field.
    pub value: Value,
    /// Its version, as the catalogue says it.
    pub version: String,
    /// Its RHEL, if the version says it.
    pub rhel: Option<Rhel>,
}

impl Catalogue {
    /// Reads stream metadata as `openshift-install coreos print-stream-json`
    /// prints it. The error says what is wrong, cleaned.
    pub fn parse(text: &str, release: Release) -> Result<Catalogue, String> {
        if text.len() > LARGEST {
            return Err(format!("is larger than {LARGEST} bytes: no stream metadata is"));
        }
        let stream: Value = serde_json::from_str(text)
            .map_err(|error| format!("is no JSON: {}", shown(&error.to_string())))?;
        let architectures = field_at(&stream, "/architectures").as_object().ok_or(
            "has no architectures: expected what openshift-install coreos print-stream-json prints",
        )?;
        let mut catalogue = Catalogue {
            release,
            architectures: architectures.keys().cloned().collect(),
            images: BTreeMap::new(),
            offered: BTreeMap::new(),
        };
        for (name, architecture) in architectures {
            catalogue.take_aws(name, field_at(architecture, "/images/aws/regions"));
            catalogue.take_gcp(name, field_at(architecture, "/images/gcp"));
            let extensions = field_at(architecture, "/rhel-coreos-extensions");
            catalogue.take_azure(name, field_at(extensions, "/marketplace/azure"));
            let disk = field_at(extensions, "/azure-disk");
            if let Some(url) = field_at(disk, "/url").as_str() {
                catalogue.know(Platform::Azure, url, field_at(disk, "/release").as_str());
            }
            if let Some(artifacts) = field_at(architecture, "/artifacts").as_object() {
                artifacts.values().for_each(|artifact| catalogue.take_artifact(artifact));
            }
        }
        Ok(catalogue)
    }

    fn version(&self, text: &str) -> ImageVersion {
        let of_release = ImageVersion::of_release(self.release);
        match parse_rhcos(text).or_else(|| in_name(text)) {
            Some(version) => ImageVersion { text: shown(text), ..version.older_of(of_release) },
            None => of_release,
        }
    }

    fn know(&mut self, platform: Platform, id: &str, version: Option<&str>) {
        let version = self.version(version.unwrap_or_default());
        let key = (platform, id.to_owned());
        let version = match self.images.remove(&key) {
            Some(other) => other.older_of(version),
            None => version,
        };
        self.images.insert(key, version);
    }

    fn offer(&mut self, platform: Platform, arch: &str, place: &str, value: Value, version: &str) {
        let rhel = parse_rhcos(version).or_else(|| in_name(version)).and_then(|it| it.rhel);
        let offered = Offered { value, version: shown(version), rhel };
        self.offered.insert((platform, arch.to_owned(), place.to_owned()), offered);
    }

    fn take_aws(&mut self, arch: &str, regions: &Value) {
        for (region, image) in regions.as_object().into_iter().flatten() {
            let Some(id) = field_at(image, "/image").as_str() else { continue };
            let release = field_at(image, "/release").as_str().unwrap_or_default();
            self.know(Platform::Aws, id, Some(release));
            self.offer(Platform::Aws, arch, region, json!({ "id": id }), release);
        }
    }

    fn take_gcp(&mut self, arch: &str, image: &Value) {
        let (Some(project), Some(name)) =
            (field_at(image, "/project").as_str(), field_at(image, "/name").as_str())
        else {
            return;
        };
        let id = format!("projects/{project}/global/images/{name}");
        let release = field_at(image, "/release").as_str().unwrap_or_default();
        self.know(Platform::Gcp, &id, Some(release));
        self.offer(Platform::Gcp, arch, "", json!(id), release);
    }

    fn take_azure(&mut self, arch: &str, plans: &Value) {
        for (plan, generations) in plans.as_object().into_iter().flatten() {
            for (generation, image) in generations.as_object().into_iter().flatten() {
                let Some(id) = azure_id(image) else { continue };
                let version = field_at(image, "/version").as_str().unwrap_or_default();
                self.know(Platform::Azure, &id, Some(version));
                let paid = plan != "no-purchase-plan";
                let value = json!({
                    "offer": field_at(image, "/offer"),
                    "publisher": field_at(image, "/publisher"),
                    "resourceID": "",
                    "sku": field_at(image, "/sku"),
                    "type": if paid { "MarketplaceWithPlan" } else { "MarketplaceNoPlan" },
                    "version": version,
                });
                let seller = field_at(image, "/publisher").as_str().unwrap_or_default();
                let offer = field_at(image, "/offer").as_str().unwrap_or_default();
                let place = azure_place(seller, offer, generation == "hyperVGen2");
                self.offer(Platform::Azure, arch, &place, value, version);
            }
        }
    }

    /// Files that a machine is installed from: found by their address.
    fn take_artifact(&mut self, artifact: &Value) {
        let release = field_at(artifact, "/release").as_str();
        for format in
            field_at(artifact, "/formats").as_object().into_iter().flat_map(|it| it.values())
        {
            if let Some(url) = field_at(format, "/disk/location").as_str() {
                for platform in [Platform::BareMetal, Platform::OpenStack, Platform::VSphere] {
                    self.know(platform, url, release);
                }
            }
        }
    }

    /// The version of what a resource boots, if all of it is in here.
    pub fn find(&self, boots: &Boots) -> Option<ImageVersion> {
        let found = boots.images.iter().map(|image| {
            let id = image.id.clone();
            let short = short_of(boots.platform, &image.id);
            self.images
                .get(&(boots.platform, id))
                .or_else(|| self.images.get(&(boots.platform, short?)))
        });
        let found: Option<Vec<&ImageVersion>> = found.collect();
        found?.into_iter().cloned().reduce(ImageVersion::older_of)
    }

    /// What to write in place of each image. The error says why there is nothing.
    pub fn replacement(&self, boots: &Boots, arch: &str) -> Result<Offered, String> {
        if !self.architectures.contains(arch) {
            return Err(format!("the stream metadata has no images for {}", shown(arch)));
        }
        let place = match boots.platform {
            Platform::Aws => boots.region.clone().ok_or("it names no region")?,
            Platform::Gcp => String::new(),
            Platform::Azure => azure_place_of(boots, arch),
            other => return Err(format!("images of {} are made, not named", other.as_str())),
        };
        let key = (boots.platform, arch.to_owned(), place.clone());
        self.offered.get(&key).cloned().ok_or_else(|| match boots.platform {
            Platform::Aws => format!(
                "the stream metadata has no image in the region {}: copy one there",
                shown(&place)
            ),
            other => {
                format!("the stream metadata has no such image for {} and {arch}", other.as_str())
            }
        })
    }

    /// How much it holds, in images.
    pub fn len(&self) -> usize {
        self.images.len()
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.images.is_empty()
    }
}

/// What tread reads of stream metadata, which is worth keeping: a fraction of it.
pub fn essence(text: &str) -> Option<Value> {
    let stream: Value = serde_json::from_str(text).ok()?;
    let mut kept = serde_json::Map::new();
    for (name, architecture) in field_at(&stream, "/architectures").as_object()? {
        let part = |path: &str| field_at(architecture, path).clone();
        let mut artifacts = serde_json::Map::new();
        for (platform, artifact) in
            field_at(architecture, "/artifacts").as_object().into_iter().flatten()
        {
            let formats = field_at(artifact, "/formats").as_object();
            let formats: serde_json::Map<String, Value> = formats
                .into_iter()
                .flatten()
                .map(|(name, format)| {
                    let url = field_at(format, "/disk/location");
                    (name.clone(), json!({"disk": {"location": url}}))
                })
                .collect();
            let release = field_at(artifact, "/release");
            artifacts.insert(platform.clone(), json!({"release": release, "formats": formats}));
        }
        let architecture = json!({
            "artifacts": artifacts,
            "images": {"aws": part("/images/aws"), "gcp": part("/images/gcp")},
            "rhel-coreos-extensions": part("/rhel-coreos-extensions"),
        });
        kept.insert(name.clone(), architecture);
    }
    Some(json!({ "architectures": kept }))
}

/// GCP takes names with the address of its API in front.
fn short_of(platform: Platform, id: &str) -> Option<String> {
    if platform != Platform::Gcp {
        return None;
    }
    id.find("projects/").filter(|at| *at > 0).and_then(|at| id.get(at..)).map(str::to_owned)
}

fn azure_place(publisher: &str, offer: &str, second: bool) -> String {
    format!("{publisher}:{offer}:{}", if second { "2" } else { "1" })
}

/// Which image of Azure's stands in for this one: an uploaded one becomes one
/// without a purchase plan, as OpenShift's own updater has it.
fn azure_place_of(boots: &Boots, arch: &str) -> String {
    let id = boots.images.first().map_or("", |image| image.id.as_str());
    let mut parts = id.split(':');
    match (parts.next(), parts.next(), parts.next()) {
        (Some("azureopenshift"), Some(offer), Some(sku)) => {
            azure_place("azureopenshift", offer, sku.contains("v2") || arch == "aarch64")
        }
        (Some(publisher), Some(offer), Some(sku)) => {
            azure_place(publisher, offer, !sku.contains("gen1"))
        }
        _ => azure_place("azureopenshift", "aro4", id.contains("gen2")),
    }
}
