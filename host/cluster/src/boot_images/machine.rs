//! A machine resource, as far as it says what its machines boot.

use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;
use kube::core::{DynamicObject, ObjectMeta};
use serde_json::Value;
use std::collections::BTreeMap;
use tread_kube::api::machines::{
    CAPI_MACHINE_DEPLOYMENT, CAPI_MACHINE_SET, CONTROL_PLANE_MACHINE_SET, Kind, MACHINE_SET,
};
use tread_kube::api::words::{BOOT_IMAGE_ANNOTATION, STREAM_LABEL};
use tread_kube::watching::parsed::Parsed;
use tread_model::boot_images::provider::{self, Boots};
use tread_model::boot_images::{shown, template};

/// An object of the machine APIs: its kind's name, namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// `machinesets.machine.openshift.io`.
    pub kind: &'static str,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Key {
    /// The key of an object of this kind.
    pub fn of(kind: &Kind, object: &DynamicObject) -> Key {
        Key::of_metadata(kind, &object.metadata)
    }

    /// The key of an object of which only the metadata can be read.
    pub fn of_metadata(kind: &Kind, metadata: &ObjectMeta) -> Key {
        let made_up = || metadata.generate_name.clone().unwrap_or_default();
        Key {
            kind: kind.name,
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_else(made_up),
        }
    }
}

/// An object that cannot be read, whoever wrote it.
#[derive(Debug, Clone)]
pub struct Unread {
    /// Its name, namespace and UID: all that is known of it.
    pub metadata: Box<ObjectMeta>,
    /// Why it cannot.
    pub why: String,
}

/// An object as a watch brings it.
pub type Brought = Result<DynamicObject, Unread>;

/// What a watch brings of an object that it read by itself.
pub(crate) fn brought(seen: Parsed<DynamicObject>) -> Brought {
    match seen {
        Parsed::Read(object) => Ok(object),
        Parsed::Unreadable(metadata, why) => Err(Unread { metadata, why }),
    }
}

/// Where it is written what machines boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Image {
    /// In the resource, or why it is not.
    Here(Result<Boots, String>),
    /// In an infrastructure template: kind and name.
    Template(String, String),
}

/// A machine resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// `MachineSet.machine.openshift.io`.
    pub kind: String,
    /// As in the machine API's own plural.
    pub plural: &'static str,
    /// Its UID.
    pub uid: String,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// The version that an admin vouches for.
    pub annotation: Option<String>,
    /// The stream that it names.
    pub stream: Option<String>,
    /// Its labels, by which OpenShift's updater selects.
    pub labels: BTreeMap<String, String>,
    /// The architecture of its machines, if it says so.
    pub arch: Option<&'static str>,
    /// Who makes it, as `Kind/name`.
    pub owner: Option<String>,
    /// What its machines boot.
    pub image: Image,
    /// The Secret with the user data of its machines, where it is a MachineSet of OpenShift's.
    pub user_data: Option<String>,
    /// The labels that it gives the nodes of its machines.
    pub node_labels: BTreeMap<String, String>,
    /// The labels of its machines.
    pub selector: BTreeMap<String, String>,
    /// How many machines it is to have, and how many have a node that is ready.
    pub replicas: (i64, i64),
    /// Where its providerSpec is.
    pub path: &'static str,
    /// Why it is not judged.
    pub left_out: Option<String>,
    /// Another resource stands for it.
    pub stood_for: bool,
    /// Which API is authoritative, where both know it.
    pub authority: Option<String>,
}

/// Where the template of machines is in an object, and the providerSpec in it.
fn places(kind: &Kind) -> (&'static str, &'static str) {
    match kind.name {
        name if name == CONTROL_PLANE_MACHINE_SET.name => (
            "/spec/template/machines_v1beta1_machine_openshift_io",
            "/spec/template/machines_v1beta1_machine_openshift_io/spec/providerSpec/value",
        ),
        name if name == MACHINE_SET.name => {
            ("/spec/template", "/spec/template/spec/providerSpec/value")
        }
        _ => ("/spec/template", ""),
    }
}

/// Whether objects of this kind make machines.
pub fn makes_machines(kind: &Kind) -> bool {
    [MACHINE_SET, CONTROL_PLANE_MACHINE_SET, CAPI_MACHINE_SET, CAPI_MACHINE_DEPLOYMENT]
        .contains(kind)
}

impl Machine {
    /// Reads what is needed of an object, whatever else is in it.
    pub fn read(kind: &Kind, object: &DynamicObject) -> Machine {
        let (template, path) = places(kind);
        let at = |path: &str| object.data.pointer(path).unwrap_or(&Value::Null);
        let label_of_template = |name: &str| {
            let labels = at(&format!("{template}/metadata/labels"));
            labels.get(name).and_then(Value::as_str).map(str::to_owned)
        };
        let image = if path.is_empty() {
            let reference = at(&format!("{template}/spec/infrastructureRef"));
            let text = |name: &str| reference.get(name).and_then(Value::as_str).map(str::to_owned);
            match (text("kind"), text("name")) {
                (Some(kind), Some(name)) => Image::Template(kind, name),
                _ => Image::Here(Err("it refers to no infrastructure template".to_owned())),
            }
        } else {
            Image::Here(provider::read(at(path)))
        };
        let labels = at("/spec/selector/matchLabels").as_object();
        // One that is no text stays, so that no more machines are selected than by all.
        let label = |(name, value): (&String, &Value)| {
            (name.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        };
        let selector = labels.into_iter().flatten().map(label).collect();
        let is_set = kind.name == MACHINE_SET.name;
        let user_data = at(&format!("{path}/userDataSecret/name")).as_str().filter(|_| is_set);
        let given = at("/spec/template/spec/metadata/labels").as_object().filter(|_| is_set);
        let node_labels = given.into_iter().flatten();
        let node_labels =
            node_labels.filter_map(|(key, it)| Some((key.clone(), it.as_str()?.to_owned())));
        let owner = object.owner_references().first();
        let by_deployment = kind.name == CAPI_MACHINE_SET.name
            && owner.is_some_and(|owner| owner.kind == CAPI_MACHINE_DEPLOYMENT.kind);
        let stream = object.labels().get(STREAM_LABEL).cloned();
        let windows = label_of_template("machine.openshift.io/os-id").as_deref() == Some("Windows");
        let authority = at("/status/authoritativeAPI").as_str().map(str::to_owned);
        let left_out = if windows {
            Some("its machines run Windows")
        } else if kind.group == MACHINE_SET.group && authority.as_deref() == Some("ClusterAPI") {
            Some("Cluster API is authoritative for it")
        } else if kind.name == CONTROL_PLANE_MACHINE_SET.name && at("/spec/state") == "Inactive" {
            Some("it is Inactive, and makes no machines")
        } else {
            None
        };
        Machine {
            kind: format!("{}.{}", kind.kind, kind.group),
            plural: kind.plural,
            uid: object.uid().unwrap_or_default(),
            created: object.creation_timestamp().map(|time| time.0),
            annotation: object.annotations().get(BOOT_IMAGE_ANNOTATION).cloned(),
            stream: stream.or_else(|| label_of_template(STREAM_LABEL)),
            labels: object.labels().clone(),
            arch: provider::architecture(object.annotations()),
            owner: owner.map(|owner| shown(&format!("{}/{}", owner.kind, owner.name))),
            image,
            user_data: user_data.map(str::to_owned),
            node_labels: node_labels.collect(),
            selector,
            replicas: (
                at("/spec/replicas").as_i64().unwrap_or(1),
                at("/status/readyReplicas").as_i64().unwrap_or(0),
            ),
            path,
            left_out: left_out.map(str::to_owned),
            stood_for: by_deployment,
            authority,
        }
    }

    /// Of one that cannot be read: nobody knows what its machines boot.
    pub fn unread(kind: &Kind, metadata: &ObjectMeta, why: String) -> Machine {
        let metadata = ObjectMeta { name: None, ..metadata.clone() };
        let bare = DynamicObject { types: None, metadata, data: Value::Null };
        Machine { image: Image::Here(Err(why)), ..Machine::read(kind, &bare) }
    }
}

/// What an infrastructure template boots.
pub fn read_template(kind: &Kind, object: &DynamicObject) -> Result<Boots, String> {
    let spec = object.data.pointer("/spec/template/spec").unwrap_or(&Value::Null);
    template::read(kind.kind, spec)
}
