//! What a version of a policy is made of, taken out of a ConfigMap.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use serde_json::{Map, Value};
use tread_kube::api::conditions::cut;
use tread_model::digest::Sha256;
use tread_model::packed::{self, DIGEST_ANNOTATION};
use tread_model::verdict::{Failure, FailureKind};

/// A module with its settings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Material {
    /// The component.
    pub component: Vec<u8>,
    /// Settings over the policy's defaults.
    pub settings: Map<String, Value>,
}

/// A ConfigMap of which no version can be made.
#[derive(Debug, Clone, PartialEq)]
pub struct Unusable {
    /// Why not.
    pub failure: Failure,
    /// The digest of its module, where it is known which one that is.
    pub digest: Option<Sha256>,
    /// Its module; all that stand in it, where it is not known which one that is.
    pub components: Vec<Vec<u8>>,
}

/// The module and the settings in a ConfigMap. `key` names the module where
/// there are several.
pub fn material(map: &ConfigMap, key: Option<&str>) -> Result<Material, Unusable> {
    let data = || map.binary_data.iter().flatten();
    let keys: Vec<&str> = data().map(|(key, _)| key.as_str()).collect();
    let key = packed::module_key(key, &keys).map_err(|message| Unusable {
        failure: Failure { kind: FailureKind::Missing, message: cut(message, 512) },
        digest: None,
        components: data().map(|(_, bytes)| bytes.0.clone()).collect(),
    })?;
    let component = data().find(|(it, _)| *it == key).map(|(_, bytes)| bytes.0.clone());
    let component = component.unwrap_or_default();
    let unusable = |kind, message, component: &[u8]| Unusable {
        failure: Failure { kind, message: cut(message, 1024) },
        digest: Some(Sha256::of(component)),
        components: vec![component.to_vec()],
    };
    let noted = map.annotations().get(DIGEST_ANNOTATION);
    let mismatch = noted.and_then(|it| packed::digest_mismatch(it, &Sha256::of(&component)));
    if let Some(why) = mismatch {
        return Err(unusable(FailureKind::DigestMismatch, why, &component));
    }
    let text = map.data.as_ref().and_then(|data| data.get(packed::SETTINGS));
    match text.map_or_else(|| Ok(Map::new()), |text| packed::settings(text)) {
        Ok(settings) => Ok(Material { component, settings }),
        Err(why) => Err(unusable(FailureKind::InvalidSettings, why, &component)),
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
    fn what_cannot_be_read_says_which_part_it_is_and_gives_the_modules_all_the_same() {
        let read = |map: &ConfigMap, key| {
            let unusable = material(map, key).unwrap_err();
            let names =
                unusable.components.iter().map(|it| String::from_utf8_lossy(it).into_owned());
            (unusable.failure.kind, unusable.digest, names.collect::<Vec<_>>())
        };
        let x = Some(Sha256::of(b"x"));
        let all = || vec!["x".to_owned(), "y".to_owned()];
        let two = map(&["x", "y"], Some("[1]"));
        assert_eq!(read(&two, None), (FailureKind::Missing, None, all()));
        assert_eq!(read(&two, Some("z")), (FailureKind::Missing, None, all()));
        let only_x = || vec!["x".to_owned()];
        assert_eq!(read(&two, Some("x")), (FailureKind::InvalidSettings, x, only_x()));
        let nothing = (FailureKind::Missing, None, Vec::new());
        assert_eq!(read(&ConfigMap::default(), Some("z")), nothing);
        let mut noted = map(&["x"], None);
        let mut note = |digest: String| {
            noted.annotations_mut().insert(DIGEST_ANNOTATION.to_owned(), digest);
            noted.clone()
        };
        let other = note(Sha256::of(b"y").to_string());
        assert_eq!(read(&other, None), (FailureKind::DigestMismatch, x, only_x()));
        assert_eq!(material(&note(Sha256::of(b"x").to_string()), None).unwrap().component, b"x");
    }
}
