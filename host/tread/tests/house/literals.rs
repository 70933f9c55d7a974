//! What stands once: a text that objects, labels and namespaces are known by is one constant, and
//! everybody else names that.

use super::tree;
use super::writes::sources;
use std::collections::BTreeMap;
use std::path::Path;

/// Each text, and the file that has it.
const ONCE: [(&str, &str); 5] = [
    ("machineconfiguration.openshift.io/v1", "model/src/read/machine_config.rs"),
    (
        "machineconfiguration.openshift.io/generated-by-controller-version",
        "model/src/read/machine_config.rs",
    ),
    ("tread.dev/v1alpha1", "model/src/rules/inline.rs"),
    ("tread.dev/policy", "model/src/description.rs"),
    ("openshift-machine-config-operator", "kube/src/api/words.rs"),
];

/// Where rollouts are written as JSON they stand in it, beside the other fields.
const IN_JSON: &str = "enforce/src/rollouts";

#[test]
fn what_objects_are_known_by_stands_at_one_place() {
    let mut files = BTreeMap::new();
    for folder in std::fs::read_dir(tree().join("host")).unwrap() {
        sources(&folder.unwrap().path().join("src"), &mut files);
    }
    for (text, place) in ONCE {
        let quoted = format!("\"{text}\"");
        let found: Vec<&Path> = files
            .iter()
            .filter(|(file, code)| !file.starts_with(IN_JSON) && code.contains(&quoted))
            .map(|(file, _)| file.as_path())
            .collect();
        assert_eq!(found, [Path::new(place)], "{text}: name the constant of {place} elsewhere");
    }
}
