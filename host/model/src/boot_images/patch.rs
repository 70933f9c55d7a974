//! What an admin does about a resource whose image is too old: one command where
//! the catalogue has the image, else the steps.

use super::catalogue::{Catalogue, Offered};
use super::document::shown;
use super::limits::Stream;
use super::provider::{Boots, Platform};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A resource, as a command names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// `machineset.machine.openshift.io`.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Where its providerSpec is; empty where there is none to patch.
    pub path: String,
    /// Who makes it, as `Kind/name`: a change would be undone.
    pub owner: Option<String>,
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Remedy {
    /// What an admin runs, where there is one.
    pub command: Option<String>,
    /// The patch in it, as JSON.
    pub patch: Option<Value>,
    /// What to do by hand, in order, before it or in its place.
    pub steps: Vec<String>,
}

/// What to do about a resource. `catalogues` are those of the running release,
/// one for each stream, or why there is none.
pub fn remedy(
    resource: &Resource,
    boots: Result<&Boots, &str>,
    arch: Option<&str>,
    catalogues: Result<&[Catalogue], &str>,
    stream: &Stream,
) -> Remedy {
    if let Some(owner) = &resource.owner {
        let step = format!(
            "{} is made by {}: change the image there, a change of {} itself would be undone",
            resource.name,
            shown(owner),
            resource.name
        );
        return by_hand(vec![step]);
    }
    let boots = match boots {
        Ok(boots) => boots,
        Err(problem) => {
            let name = &resource.name;
            return by_hand(vec![
                format!("{name}: {problem}"),
                vouch(resource, "if you know which version its machines boot"),
            ]);
        }
    };
    let arch = arch.unwrap_or("x86_64");
    let offered = match catalogues {
        _ if resource.path.is_empty() => {
            Err("infrastructure templates cannot be changed: they are replaced".to_owned())
        }
        Ok(catalogues) => of_stream(catalogues, boots, arch, stream),
        Err(why) => Err(why.to_owned()),
    };
    match offered {
        Err(why) => steps(resource, boots, &why),
        Ok(offered) => {
            let at = |field: &str| format!("{}{field}", resource.path);
            let patch: Vec<Value> = boots
                .images
                .iter()
                .flat_map(|image| {
                    [
                        json!({"op": "test", "path": at(&image.field), "value": image.value}),
                        json!({"op": "replace", "path": at(&image.field), "value": offered.value}),
                    ]
                })
                .collect();
            let patch = Value::Array(patch);
            let command = format!(
                "kubectl patch {} {} -n {} --type json -p {}",
                quoted(&resource.kind),
                quoted(&resource.name),
                quoted(&resource.namespace),
                quoted(&patch.to_string())
            );
            Remedy { command: Some(command), patch: Some(patch), steps: Vec::new() }
        }
    }
}

/// The image of the resource's own stream. A cluster takes the images that its
/// release came with also where they are of an older RHEL than its stream is now.
fn of_stream(
    catalogues: &[Catalogue],
    boots: &Boots,
    arch: &str,
    stream: &Stream,
) -> Result<Offered, String> {
    let mut why = None;
    let mut best: Option<(Option<u32>, Offered)> = None;
    for catalogue in catalogues {
        let offered = match catalogue.replacement(boots, arch) {
            Ok(offered) => offered,
            Err(none) => {
                why.get_or_insert(none);
                continue;
            }
        };
        let major = offered.rhel.map(|rhel| rhel.major);
        let fits = match (stream.major(), major) {
            (Some(wanted), Some(major)) => major == wanted || stream.own && major < wanted,
            (None, _) => stream.own,
            (Some(_), None) => stream.own && catalogues.len() == 1,
        };
        if !fits {
            why = Some(format!(
                "the stream metadata has an image, {}, and none of the stream {}",
                offered.version,
                shown(&stream.name)
            ));
        } else if best.as_ref().is_none_or(|(other, _)| major > *other) {
            best = Some((major, offered));
        }
    }
    let none = || why.unwrap_or_else(|| "there is no stream metadata".to_owned());
    best.map(|(_, offered)| offered).ok_or_else(none)
}

fn by_hand(steps: Vec<String>) -> Remedy {
    Remedy { command: None, patch: None, steps }
}

fn steps(resource: &Resource, boots: &Boots, why: &str) -> Remedy {
    let bring = match boots.platform {
        Platform::Aws => "copy the AMI of a newer release into the region, and name it in ami.id",
        Platform::Azure | Platform::Gcp => "name the image of a newer release",
        Platform::VSphere => {
            "import the OVA of a newer release as a template, from `openshift-install coreos \
             print-stream-json` under artifacts.vmware, and name it in template"
        }
        Platform::BareMetal => {
            "put the image of a newer release where the provisioning hosts find it, from \
             `openshift-install coreos print-stream-json` under artifacts, and name it in image.url \
             with its checksum"
        }
        Platform::OpenStack | Platform::Nutanix | Platform::PowerVs | Platform::IbmCloud => {
            "upload the image of a newer release, from `openshift-install coreos \
             print-stream-json`, and name it in the providerSpec"
        }
    };
    let change = if resource.path.is_empty() {
        format!(
            "{bring}: make a new infrastructure template with it, and refer to that one in \
             {}",
            resource.name
        )
    } else {
        bring.to_owned()
    };
    by_hand(vec![
        format!("there is no patch for {}: {why}", resource.name),
        change,
        vouch(resource, "if its name holds no version"),
    ])
}

fn vouch(resource: &Resource, when: &str) -> String {
    format!(
        "{when}, say it: kubectl annotate {} {} -n {} --overwrite tread.dev/boot-image=VERSION, \
         with a version like 9.6.20250523-0",
        quoted(&resource.kind),
        quoted(&resource.name),
        quoted(&resource.namespace)
    )
}

/// As a shell takes it: one word, whatever is in it, and fit for a terminal.
/// Characters that a terminal would obey stand as JSON writes them.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._/".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    let escaped: String = text
        .chars()
        .map(|c| match c {
            '\'' => r"'\''".to_owned(),
            c if crate::text::is_unfit(c) => {
                c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
            }
            c => c.to_string(),
        })
        .collect();
    format!("'{escaped}'")
}
