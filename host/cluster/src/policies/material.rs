//! What a version of a policy is made of, taken out of a ConfigMap.

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Map, Value};
use tread_kube::api::conditions::cut;
use tread_model::read::{Input, document_values};
use tread_model::verdict::{Failure, FailureKind};

/// Where `tread policy pack` puts settings.
pub const SETTINGS: &str = "settings";

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
    let missing = |message: String| Failure { kind: FailureKind::Missing, message };
    let data = map.binary_data.as_ref();
    let keys: Vec<&str> = data.into_iter().flatten().map(|(key, _)| key.as_str()).collect();
    let key = match (key, keys.as_slice()) {
        (Some(key), _) => key,
        (None, [only]) => only,
        (None, []) => {
            return Err(missing(
                "the ConfigMap has no binaryData: write it with `tread policy pack`".to_owned(),
            ));
        }
        (None, several) => {
            return Err(missing(cut(
                format!(
                    "binaryData has the keys {}: name that of the module in the annotation {}",
                    several.join(", "),
                    tread_kube::api::words::KEY_ANNOTATION
                ),
                512,
            )));
        }
    };
    let component = data.and_then(|data| data.get(key)).ok_or_else(|| {
        missing(format!("binaryData has no key {key}; it has: {}", cut(keys.join(", "), 256)))
    })?;
    let text = map.data.as_ref().and_then(|data| data.get(SETTINGS));
    let settings = text.map_or_else(|| Ok(Map::new()), |text| settings(text))?;
    Ok(Material { component: component.0.clone(), settings })
}

fn settings(text: &str) -> Result<Map<String, Value>, Failure> {
    let invalid = |message: String| Failure { kind: FailureKind::InvalidSettings, message };
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    let documents = document_values(&Input { name: "data.settings", bytes: text.as_bytes() })
        .map_err(|problems| invalid(cut(problems.to_string(), 1024)))?;
    match <[_; 1]>::try_from(documents).map(|[document]| document.value) {
        Ok(Value::Object(settings)) => Ok(settings),
        _ => Err(invalid("data.settings: expected one object, such as `drain: never`".to_owned())),
    }
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
            data: settings.map(|text| [(SETTINGS.to_owned(), text.to_owned())].into()),
            ..ConfigMap::default()
        }
    }

    #[test]
    fn any_single_key_is_the_module_and_one_of_several_has_to_be_named() {
        let component = |map: &ConfigMap, key| material(map, key).map(|it| it.component);
        assert_eq!(component(&map(&["x"], None), None), Ok(b"x".to_vec()));
        assert_eq!(component(&map(&["x", "y"], None), Some("y")), Ok(b"y".to_vec()));
        for (map, key, words) in [
            (map(&["x", "y"], None), None, "the keys x, y: name that of the module"),
            (map(&["x"], None), Some("z"), "has no key z; it has: x"),
            (map(&[], None), None, "has no binaryData"),
            (ConfigMap::default(), Some("z"), "has no key z"),
        ] {
            let failure = component(&map, key).unwrap_err();
            assert_eq!(failure.kind, FailureKind::Missing);
            assert!(failure.message.contains(words), "{failure}");
        }
    }

    #[test]
    fn settings_are_one_object_in_yaml() {
        let settings = |text| material(&map(&["x"], Some(text)), None).map(|it| it.settings);
        assert_eq!(
            Value::Object(settings("drain: never\nn: 5").unwrap()),
            serde_json::json!({"drain": "never", "n": 5})
        );
        assert_eq!(settings("  \n"), Ok(Map::new()));
        for bad in ["[1]", "a", "a: [", "a: 1\n---\nb: 2"] {
            assert_eq!(settings(bad).unwrap_err().kind, FailureKind::InvalidSettings, "{bad}");
        }
    }
}
