//! What a version of a policy is made of, taken out of a ConfigMap.

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Map, Value};
use tread_kube::api::conditions::cut;
use tread_model::packed;
use tread_model::verdict::{Failure, FailureKind};

/// A module with its settings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Material {
    /// The component.
    pub component: Vec<u8>,
    /// Settings over the policy's defaults.
    pub settings: Map<String, Value>,
}

/// The module and the settings in a ConfigMap. `key` names the module where
/// there are several.
pub fn material(map: &ConfigMap, key: Option<&str>) -> Result<Material, Failure> {
    let missing = |message| Failure { kind: FailureKind::Missing, message: cut(message, 512) };
    let invalid =
        |message| Failure { kind: FailureKind::InvalidSettings, message: cut(message, 1024) };
    let data = map.binary_data.as_ref();
    let keys: Vec<&str> = data.into_iter().flatten().map(|(key, _)| key.as_str()).collect();
    let key = packed::module_key(key, &keys).map_err(missing)?;
    let component = data.and_then(|data| data.get(key)).map(|it| it.0.clone()).unwrap_or_default();
    let text = map.data.as_ref().and_then(|data| data.get(packed::SETTINGS));
    let settings = text.map_or_else(|| Ok(Map::new()), |text| packed::settings(text));
    Ok(Material { component, settings: settings.map_err(invalid)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::ByteString;

    fn map(modules: &[&str], settings: Option<&str>) -> ConfigMap {
        ConfigMap {
            binary_data: Some(
                modules
                    .iter()
                    .map(|key| ((*key).to_owned(), ByteString(key.as_bytes().to_vec())))
                    .collect(),
            ),
            data: settings.map(|text| [(packed::SETTINGS.to_owned(), text.to_owned())].into()),
            ..ConfigMap::default()
        }
    }

    #[test]
    fn a_module_comes_with_its_settings() {
        let read = |key, settings| material(&map(&["x", "y"], settings), key);
        let both = read(Some("y"), Some("drain: never")).unwrap();
        assert_eq!(both.component, b"y");
        assert_eq!(Value::Object(both.settings), serde_json::json!({"drain": "never"}));
        assert_eq!(read(Some("x"), None).unwrap().settings, Map::new());
    }

    #[test]
    fn what_cannot_be_read_says_which_part_it_is() {
        let kind = |map: &ConfigMap, key| material(map, key).unwrap_err().kind;
        assert_eq!(kind(&map(&["x", "y"], None), None), FailureKind::Missing);
        assert_eq!(kind(&ConfigMap::default(), Some("z")), FailureKind::Missing);
        assert_eq!(kind(&map(&["x"], Some("[1]")), None), FailureKind::InvalidSettings);
    }
}
