//! Plans merge the MachineConfigs of a pool in the order in which they are rendered.

use crate::laws::{inputs, rendered};
use tread_model::config_digest::digests;
use tread_model::digest::Digest;
use tread_model::read::{Side, diagnosed, fast_only};

/// What MachineConfigs may say of their role.
const LABELS: [&str; 7] = [
    "",
    r#","labels":{}"#,
    r#","labels":{"my/pool":"x"}"#,
    r#","labels":{"machineconfiguration.openshift.io/role":""}"#,
    r#","labels":{"machineconfiguration.openshift.io/role":"worker"}"#,
    r#","labels":{"machineconfiguration.openshift.io/role":"master"}"#,
    r#","labels":{"machineconfiguration.openshift.io/role":"infra"}"#,
];

/// Arguments tell in which order configs are merged; so does a file that all of them have,
/// which the fast reader leaves to the other one.
const FILES: [&str; 2] = ["", "file"];

fn machine_config(name: &str, labels: &str, files: &str) -> String {
    let storage = match files {
        "" => String::new(),
        _ => format!(
            r#","storage":{{"files":[{{"path":"/etc/a","contents":{{"source":"data:,{name}"}}}}]}}"#
        ),
    };
    format!(
        r#"{{"apiVersion":"machineconfiguration.openshift.io/v1","kind":"MachineConfig",
        "metadata":{{"name":"{name}"{labels}}},"spec":{{"kernelArguments":["{name}"],
        "config":{{"ignition":{{"version":"3.4.0"}}{storage}}}}}}}"#
    )
}

/// All sets of three, not in the order of their names.
fn sets() -> Vec<Vec<String>> {
    let mut sets = Vec::new();
    for files in FILES {
        for first in LABELS {
            for second in LABELS {
                for third in LABELS {
                    let named = [("50-b", second), ("99-c", third), ("00-a", first)];
                    let set = named.map(|(name, labels)| machine_config(name, labels, files));
                    sets.push(set.to_vec());
                }
            }
        }
    }
    sets
}

fn digest((side, _): &(Side<'_>, Side<'_>)) -> Digest {
    digests(&side.config).unwrap().config
}

#[test]
fn plans_merge_configs_of_any_roles_in_the_order_in_which_they_are_rendered() {
    let (mut slow_ones, mut fast_ones) = (0, 0);
    for set in sets() {
        let inputs = inputs(&set);
        let wanted = rendered(&set, &[]).unwrap().digest;
        match diagnosed(&inputs, &inputs) {
            Ok(sides) => assert_eq!(digest(&sides), wanted, "{set:#?}"),
            Err(problems) => {
                assert!(problems.to_string().contains("are for several pools"), "{problems}");
                assert_eq!(fast_only(&inputs, &inputs), None, "{set:#?}");
                continue;
            }
        }
        slow_ones += 1;
        if let Some(sides) = fast_only(&inputs, &inputs) {
            assert_eq!(digest(&sides), wanted, "{set:#?}");
            fast_ones += 1;
        }
    }
    // 216 of each kind are without the role master, 7 of it and another one.
    assert_eq!((slow_ones, fast_ones), (2 * 223, 223));
}
