//! The last good version of a policy, kept in a ConfigMap of tread's own
//! namespace: without the label, so that it is no policy by itself, and owned by
//! the DisruptionPolicy, so that it goes with it.

use super::material::{Material, SETTINGS};
use crate::api::DisruptionPolicy;
use crate::api::words::LAST_GOOD_LABEL;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Resource as _;
use kube::core::ObjectMeta;
use serde_json::Value;

/// Where `tread policy pack` puts a module.
const KEY: &str = "policy.wasm";

/// The name of the ConfigMap that keeps the last good version of a policy.
pub fn place(uid: &str) -> String {
    format!("tread-last-good-{uid}")
}

/// The ConfigMap that keeps it, with the complete settings that it had.
pub fn config_map(
    object: &DisruptionPolicy,
    namespace: &str,
    component: Vec<u8>,
    settings: &str,
) -> ConfigMap {
    let uid = object.metadata.uid.clone().unwrap_or_default();
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(place(&uid)),
            namespace: Some(namespace.to_owned()),
            labels: Some([(LAST_GOOD_LABEL.to_owned(), uid)].into()),
            owner_references: object.owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        binary_data: Some([(KEY.to_owned(), ByteString(component))].into()),
        data: Some([(SETTINGS.to_owned(), settings.to_owned())].into()),
        ..ConfigMap::default()
    }
}

/// What a ConfigMap keeps; None if it is not one of these any more.
pub fn read(map: &ConfigMap) -> Option<Material> {
    let component = map.binary_data.as_ref()?.get(KEY)?.0.clone();
    let text = map.data.as_ref()?.get(SETTINGS)?;
    match serde_json::from_str(text).ok()? {
        Value::Object(settings) => Some(Material { component, settings }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::words::POLICY_LABEL;

    #[test]
    fn a_copy_gives_back_what_it_keeps_and_is_no_policy_by_itself() {
        let mut object = DisruptionPolicy::default();
        object.metadata.name = Some("apps.chrony".to_owned());
        object.metadata.uid = Some("7".to_owned());
        let map = config_map(&object, "tread", b"\0asm".to_vec(), "{\"a\":1}");
        let kept = read(&map).unwrap();
        assert_eq!(kept.component, b"\0asm");
        assert_eq!(Value::Object(kept.settings), serde_json::json!({"a": 1}));
        let labels = map.metadata.labels.as_ref().unwrap();
        assert_eq!(labels.get(POLICY_LABEL), None);
        assert_eq!(map.metadata.owner_references.as_ref().unwrap()[0].uid, "7");
        for broken in ["[]", "{", ""] {
            let map = config_map(&object, "tread", Vec::new(), broken);
            assert_eq!(read(&map), None, "{broken}");
        }
        assert_eq!(read(&ConfigMap::default()), None);
    }
}
