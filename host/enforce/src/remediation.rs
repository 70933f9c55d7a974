//! Keeping others from replacing the Machine of a node that is being disrupted: by Cluster API's
//! own mark, where the node has a Machine of Cluster API.

use crate::settings::Settings;
use kube::api::{Patch, PatchParams};
use kube::core::DynamicObject;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tread_kube::api::machines::CAPI_MACHINE;
use tread_kube::asking::{Call, CallOutcome, Failed, ask};
use tread_kube::watching::served::served;

/// On a Machine that no MachineHealthCheck remedies.
pub const SKIPS_REMEDIATION: &str = "cluster.x-k8s.io/skip-remediation";
/// On one that tread marked so: by which installation.
pub const SKIPPED_BY: &str = "tread.dev/skips-remediation-by";
/// So often is tried again what somebody else wrote meanwhile.
const TRIES: usize = 3;

/// A Machine of Cluster API.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Machine {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Whether tread marked a Machine, and not somebody else.
pub(crate) fn is_marked(machine: &DynamicObject, holder: &str) -> bool {
    machine.annotations().get(SKIPPED_BY).is_some_and(|by| by == holder)
}

/// Marks a Machine, or takes the mark away, if it is tread's own. One that is not there needs none.
pub(crate) async fn mark(
    settings: &Settings,
    machine: &Machine,
    skips: bool,
) -> Result<(), Failed> {
    let resource = served(&settings.client, &settings.metrics, &CAPI_MACHINE).await?;
    let Machine { namespace, name } = machine;
    let api: Api<DynamicObject> =
        Api::namespaced_with(settings.client.clone(), namespace, &resource);
    let mut tries = 0;
    loop {
        let call = Call::new("get", CAPI_MACHINE.plural).within(namespace);
        let object = match ask(&settings.metrics, call, api.get(name)).await {
            Err(failed) if failed.outcome == CallOutcome::Gone => return Ok(()),
            object => object?,
        };
        let Some(annotations) = change(object.annotations(), &settings.holder, skips) else {
            return Ok(());
        };
        let patch = Patch::Merge(json!({"metadata": {
            "uid": object.metadata.uid,
            "resourceVersion": object.metadata.resource_version,
            "annotations": annotations,
        }}));
        let call = Call::new("patch", CAPI_MACHINE.plural).within(namespace);
        let params = PatchParams::default();
        tries += 1;
        match ask(&settings.metrics, call, api.patch(name, &params, &patch)).await {
            Err(failed) if failed.outcome == CallOutcome::Conflict && tries < TRIES => {}
            patched => return patched.map(drop),
        }
    }
}

/// What has to be written; nothing where it is so already, or is somebody else's.
fn change(known: &BTreeMap<String, String>, holder: &str, skips: bool) -> Option<Value> {
    let is_skipped = known.contains_key(SKIPS_REMEDIATION);
    let by = known.get(SKIPPED_BY).map(String::as_str);
    match (skips, is_skipped, by) {
        (true, false, None) => Some(json!({SKIPS_REMEDIATION: "", SKIPPED_BY: holder})),
        // Somebody took it away meanwhile.
        (true, false, Some(by)) if by == holder => Some(json!({SKIPS_REMEDIATION: ""})),
        (false, _, Some(by)) if by == holder => {
            Some(json!({SKIPS_REMEDIATION: Value::Null, SKIPPED_BY: Value::Null}))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_treads_own_mark_is_taken_from_a_machine() {
        let on = |skips: bool, by: Option<&str>| {
            let mut all = BTreeMap::new();
            if skips {
                all.insert(SKIPS_REMEDIATION.to_owned(), String::new());
            }
            all.extend(by.map(|by| (SKIPPED_BY.to_owned(), by.to_owned())));
            all
        };
        let (set, gone) = (
            json!({SKIPS_REMEDIATION: "", SKIPPED_BY: "tread/1"}),
            json!({SKIPS_REMEDIATION: null, SKIPPED_BY: null}),
        );
        for (known, skips, is) in [
            (on(false, None), true, Some(set)),
            (on(true, None), true, None),
            (on(true, Some("tread/1")), true, None),
            (on(false, Some("tread/1")), true, Some(json!({SKIPS_REMEDIATION: ""}))),
            (on(true, Some("tread/2")), true, None),
            (on(true, Some("tread/1")), false, Some(gone)),
            (on(true, None), false, None),
            (on(true, Some("tread/2")), false, None),
            (on(false, None), false, None),
        ] {
            assert_eq!(change(&known, "tread/1", skips), is, "{known:?} {skips}");
        }
    }
}
