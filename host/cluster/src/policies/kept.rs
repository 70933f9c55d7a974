//! The last good version of a policy, kept in a ConfigMap of tread's own
//! namespace: without the label, so that it is no policy by itself, and owned by
//! the DisruptionPolicy, so that it goes with it.

use super::choose::Version;
use super::load::Body;
use super::material::Material;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Resource as _;
use kube::core::ObjectMeta;
use serde_json::Value;
use tread_kube::api::DisruptionPolicy;
use tread_kube::api::words::{KEPT_AT_ANNOTATION, LAST_GOOD_LABEL};
use tread_model::digest::Fields;
use tread_model::packed::SETTINGS;

/// Where `tread policy pack` puts a module.
const KEY: &str = "policy.wasm";
/// Rules are kept as they stood in their object.
const RULES: &str = "rules";
const NODE_DISRUPTION_POLICY: &str = "nodeDisruptionPolicy";

/// The name of the ConfigMap that keeps a version of a policy. Each version has
/// its own, so that the one before is there until the status names the new one.
pub fn place(uid: &str, version: &Version) -> String {
    let mut fields = Fields::new("tread last good 1");
    fields.digest(&version.digest);
    fields.digest(&version.settings_digest);
    let digest = fields.finish().to_string();
    let (_, hex) = digest.split_once(':').unwrap_or_default();
    format!("{}{}", before_digest(uid), hex.get(..12).unwrap_or_default())
}

/// Whether this is the name of a copy of this policy, of whichever version.
pub fn is_of(place: &str, uid: &str) -> bool {
    place.starts_with(&before_digest(uid))
}

fn before_digest(uid: &str) -> String {
    format!("tread-last-good-{uid}-")
}

/// The ConfigMap that keeps a version, with the complete settings that it had.
/// None: what comes with tread is not kept.
pub fn config_map(
    object: &DisruptionPolicy,
    namespace: &str,
    version: &Version,
    body: Body,
    settings: &str,
) -> Option<ConfigMap> {
    let text = |key: &str, text: String| Some([(key.to_owned(), text)].into());
    let (data, binary_data) = match body {
        Body::Module(Material { component, .. }) => (
            text(SETTINGS, settings.to_owned()),
            Some([(KEY.to_owned(), ByteString(component))].into()),
        ),
        Body::Rules(rules) => (text(RULES, rules.to_string()), None),
        Body::NodeDisruptionPolicy(rules) => {
            (text(NODE_DISRUPTION_POLICY, rules.to_string()), None)
        }
        Body::Builtin(_) => return None,
    };
    let uid = object.metadata.uid.clone().unwrap_or_default();
    let at = object.metadata.resource_version.clone();
    Some(ConfigMap {
        metadata: ObjectMeta {
            name: Some(place(&uid, version)),
            namespace: Some(namespace.to_owned()),
            labels: Some([(LAST_GOOD_LABEL.to_owned(), uid)].into()),
            annotations: at.map(|at| [(KEPT_AT_ANNOTATION.to_owned(), at)].into()),
            owner_references: object.owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        binary_data,
        data,
        ..ConfigMap::default()
    })
}

/// What a ConfigMap keeps; None if it is not one of these any more.
pub fn read(map: &ConfigMap) -> Option<Body> {
    let data = map.data.as_ref()?;
    let json = |key: &str| serde_json::from_str::<Value>(data.get(key)?).ok();
    if let Some(rules) = json(RULES) {
        return Some(Body::Rules(rules));
    }
    if let Some(rules) = json(NODE_DISRUPTION_POLICY) {
        return Some(Body::NodeDisruptionPolicy(rules));
    }
    let component = map.binary_data.as_ref()?.get(KEY)?.0.clone();
    match json(SETTINGS)? {
        Value::Object(settings) => Some(Body::Module(Material { component, settings })),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tread_kube::api::words::POLICY_LABEL;
    use tread_model::digest::Sha256;

    fn version() -> Version {
        Version {
            name: "chrony".to_owned(),
            version: "1".to_owned(),
            summary: String::new(),
            claims: Vec::new(),
            digest: Sha256::of(b"1"),
            settings_digest: Sha256::of(b"{}"),
            warnings: Vec::new(),
        }
    }

    fn kept(body: Body, settings: &str) -> ConfigMap {
        let mut object = DisruptionPolicy::default();
        object.metadata.name = Some("apps.chrony".to_owned());
        object.metadata.uid = Some("7".to_owned());
        config_map(&object, "tread", &version(), body, settings).unwrap()
    }

    #[test]
    fn a_copy_gives_back_what_it_keeps_and_is_no_policy_by_itself() {
        let module = |settings: Value| {
            let Value::Object(settings) = settings else { panic!("{settings}") };
            Body::Module(Material { component: b"\0asm".to_vec(), settings })
        };
        for (body, settings) in [
            (module(json!({"a": 1})), "{\"a\":1}"),
            (Body::Rules(json!([{"match": ["file:/a"], "actions": []}])), "{}"),
            (Body::NodeDisruptionPolicy(json!({"files": []})), "{}"),
        ] {
            let map = kept(body.clone(), settings);
            assert_eq!(read(&map), Some(body));
            assert_eq!(map.metadata.labels.as_ref().unwrap().get(POLICY_LABEL), None);
            assert_eq!(map.metadata.owner_references.as_ref().unwrap()[0].uid, "7");
        }
        for broken in ["[]", "{", ""] {
            assert_eq!(read(&kept(module(json!({})), broken)), None, "{broken}");
        }
        assert_eq!(read(&ConfigMap::default()), None);
    }

    #[test]
    fn each_version_has_a_place_of_its_own() {
        let place = |change: fn(&mut Version)| {
            let mut version = version();
            change(&mut version);
            super::place("7", &version)
        };
        let first = place(|_| {});
        assert!(first.starts_with("tread-last-good-7-") && first.len() == 30, "{first}");
        assert!(is_of(&first, "7") && !is_of(&first, "77") && !is_of(&first, ""), "{first}");
        assert_eq!(first, place(|it| it.version = "2".to_owned()));
        assert_ne!(first, place(|it| it.digest = Sha256::of(b"2")));
        assert_ne!(first, place(|it| it.settings_digest = Sha256::of(b"2")));
    }
}
