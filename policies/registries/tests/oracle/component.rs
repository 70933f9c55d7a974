//! The same pair, planned by the binary with the committed component.

use crate::node::{Judged, Node, Pair};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use tread_guest_sdk::Effect;

/// What the plan says otherwise than the policy's own code, if anything.
pub(crate) fn differs(tread: &Path, pair: &Pair, verdicts: &[Judged]) -> Option<String> {
    let dir = std::env::temp_dir().join(format!("tread-oracle-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let mut command = Command::new(tread);
    command.arg("plan");
    for (side, node) in [("--old", &pair.before), ("--new", &pair.after)] {
        let path = dir.join(side);
        std::fs::write(&path, machine_config(node).to_string()).unwrap();
        command.arg(side).arg(path);
    }
    let longest = format!("registries.longest-name={}", pair.settings.longest_name);
    let short_names = json!(pair.settings.short_names);
    let short_names = format!("registries.short-names={}", short_names.as_str().unwrap());
    command.args(["--set", &longest, "--set", &short_names]);
    let output = command.args(["-o", "json"]).output().unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    let plan: Value = match serde_json::from_slice(&output.stdout) {
        Ok(plan) => plan,
        Err(_) => return Some(String::from_utf8_lossy(&output.stderr).into_owned()),
    };
    let changes = plan["changes"].as_array().cloned().unwrap_or_default();
    verdicts.iter().find_map(|judged| {
        let change = changes.iter().find(|change| change["id"] == judged.id.as_str());
        let outcome = match judged.verdict.effect() {
            Some(Effect::Refuse) => "refused",
            // Of a name that is not claimed, such as one in a directory below.
            None => return None,
            Some(_) => "decided",
        };
        let same = change.is_some_and(|change| {
            change["outcome"] == outcome && change["reason"] == judged.verdict.reason()
        });
        (!same).then(|| format!("the component answers otherwise: {change:?}"))
    })
}

fn machine_config(node: &Node) -> Value {
    let file = |(path, text): (&String, &String)| {
        let source = format!("data:,{}", escaped(text));
        json!({ "path": path, "mode": 0o644, "overwrite": true, "contents": { "source": source } })
    };
    let files: Vec<Value> = node.files.iter().map(file).collect();
    json!({
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": { "name": "rendered" },
        "spec": { "config": { "ignition": { "version": "3.4.0" }, "storage": { "files": files } } },
    })
}

fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte {
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}
