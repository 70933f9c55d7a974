//! The slots of all pools: a ConfigMap in tread's namespace. All that waits to be changed in it is
//! written at once, onto the version that is read right before.

use crate::settings::Settings;
use crate::turn::{self, Change, Waiting};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::PostParams;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tread_kube::api::words::{NAME as TREAD, PART_OF_LABEL};
use tread_kube::asking::{Call, CallOutcome, Failed, ask};
use tread_kube::node_lease::{operation_text, parse_operation};
use tread_model::protocol::{Slot, Slots, Taken, Version};

/// What the ConfigMap is called.
pub const NAME: &str = "tread-slots";
/// Its only key.
const KEY: &str = "slots.json";
const KIND: &str = "configmaps";

/// A slot, as it is written.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Written {
    pool: String,
    operation: String,
    unavailable: bool,
}

/// The slots, as they were read.
#[derive(Debug, Clone)]
pub struct SlotsObject {
    /// Who has one: by the node's name.
    pub slots: Slots<String, String>,
    /// The version that was read.
    pub version: Version,
    object: ConfigMap,
}

/// Reads the slots. Where nobody made the object yet, it is made: without a slot.
pub(crate) async fn read(settings: &Settings) -> Result<SlotsObject, Failed> {
    let api: Api<ConfigMap> = Api::namespaced(settings.client.clone(), &settings.namespace);
    let call = |verb| Call::new(verb, KIND).within(&settings.namespace);
    let object = match ask(&settings.metrics, call("get"), api.get(NAME)).await {
        Err(failed) if failed.outcome == CallOutcome::Gone => {
            let empty = object(&Slots::default());
            let params = PostParams::default();
            match ask(&settings.metrics, call("create"), api.create(&params, &empty)).await {
                // Another replica made it.
                Err(failed) if failed.outcome == CallOutcome::Conflict => {
                    ask(&settings.metrics, call("get"), api.get(NAME)).await?
                }
                made => made?,
            }
        }
        read => read?,
    };
    let slots = parse(&object).map_err(|why| call("get").refused(why))?;
    let version = object.metadata.resource_version.clone().unwrap_or_default();
    Ok(SlotsObject { slots, version: Version(version.into()), object })
}

/// Changes a node's slot, in one write with all others of this replica that wait for it. After a
/// conflict everything is read again: what was read is old, or whoever wrote was interrupted.
pub(crate) async fn change(settings: &Settings, change: Change) -> Result<(), Failed> {
    let mut answer = settings.at_slots.wait(change);
    let overtaken = |_| overtaken(settings, "whoever wrote the slots was interrupted");
    tokio::select! {
        biased;
        written = &mut answer => written.map_err(overtaken)?,
        _turn = settings.at_slots.taken() => {
            write_all(settings, settings.at_slots.all()).await;
            // Now it was written, also where somebody else had begun to before.
            answer.await.map_err(overtaken)?
        }
    }
}

/// Writes all of these onto the slots as they are now, and answers each with what came of it.
async fn write_all(settings: &Settings, all: Vec<Waiting>) {
    if all.is_empty() {
        return;
    }
    let answer_all = |all: Vec<Waiting>, came: Result<(), Failed>| {
        for (_, answer) in all {
            // Who waits no more needs not know.
            drop(answer.send(came.clone()));
        }
    };
    let onto = match read(settings).await {
        Ok(onto) => onto,
        Err(failed) => return answer_all(all, Err(failed)),
    };
    let (slots, within, others) = turn::onto(&onto.slots, all);
    answer_all(others, Err(overtaken(settings, "others changed the slots since they were read")));
    if !within.is_empty() {
        answer_all(within, write(settings, &onto, &slots).await);
    }
}

/// That the slots were not written, since somebody else was faster.
pub(crate) fn overtaken(settings: &Settings, why: &str) -> Failed {
    Call::new("update", KIND).within(&settings.namespace).overtaken(why.to_owned())
}

/// Writes the slots onto the version that was read.
pub(crate) async fn write(
    settings: &Settings,
    onto: &SlotsObject,
    slots: &Slots<String, String>,
) -> Result<(), Failed> {
    let api: Api<ConfigMap> = Api::namespaced(settings.client.clone(), &settings.namespace);
    let call = Call::new("update", KIND).within(&settings.namespace);
    let ConfigMap { data, binary_data, .. } = object(slots);
    let metadata = ObjectMeta { managed_fields: None, ..onto.object.metadata.clone() };
    let next = ConfigMap { metadata, data, binary_data, ..ConfigMap::default() };
    let params = PostParams::default();
    ask(&settings.metrics, call, api.replace(NAME, &params, &next)).await?;
    Ok(())
}

fn object(slots: &Slots<String, String>) -> ConfigMap {
    let written = |taken: &Taken<String>| Written {
        pool: taken.pool.clone(),
        operation: operation_text(taken.slot.operation),
        unavailable: taken.slot.unavailable,
    };
    let all: BTreeMap<&String, Written> =
        slots.taken.iter().map(|(node, taken)| (node, written(taken))).collect();
    let text = serde_json::to_string(&all).unwrap_or_default();
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(NAME.to_owned()),
            labels: Some(BTreeMap::from([(PART_OF_LABEL.to_owned(), TREAD.to_owned())])),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([(KEY.to_owned(), text)])),
        ..ConfigMap::default()
    }
}

/// What cannot be read stops everything: a slot that is overlooked is a node too many that is down.
pub(crate) fn parse(object: &ConfigMap) -> Result<Slots<String, String>, String> {
    let unreadable = |why: String| {
        format!(
            "the slots in the ConfigMap {NAME} cannot be read, so no node is begun: {why}; \
             mend its key {KEY}, or remove the ConfigMap: nodes that are under way take their \
             slots again"
        )
    };
    let text = object.data.as_ref().and_then(|data| data.get(KEY));
    let text = text.ok_or_else(|| unreadable("it has no such key".to_owned()))?;
    let all: BTreeMap<String, Written> =
        serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))?;
    let mut slots = Slots::default();
    for (node, Written { pool, operation, unavailable }) in all {
        let operation = parse_operation(&operation)
            .ok_or_else(|| unreadable(format!("the operation of {node} is none")))?;
        slots = slots.with(node, pool, Slot { operation, unavailable });
    }
    Ok(slots)
}

/// The nodes that have a slot, with their pools, for whoever only looks.
pub fn pools_of_slots(object: &ConfigMap) -> Result<BTreeMap<String, String>, String> {
    let slots = parse(object)?;
    Ok(slots.taken.into_iter().map(|(node, taken)| (node, taken.pool)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tread_model::protocol::Operation;

    #[test]
    fn slots_are_read_as_they_were_written() {
        let slot = |unavailable| Slot { operation: Operation(5), unavailable };
        let slots = Slots::default().with("a".to_owned(), "worker".to_owned(), slot(true)).with(
            "b".to_owned(),
            "infra".to_owned(),
            slot(false),
        );
        assert_eq!(parse(&object(&slots)), Ok(slots));
        assert_eq!(parse(&object(&Slots::default())), Ok(Slots::default()));
    }

    #[test]
    fn slots_that_cannot_be_read_are_not_taken_for_none() {
        let with = |text: &str| {
            let data = Some(BTreeMap::from([(KEY.to_owned(), text.to_owned())]));
            parse(&ConfigMap { data, ..ConfigMap::default() })
        };
        for bad in [
            "",
            "[]",
            r#"{"a": {}}"#,
            r#"{"a": {"pool": "p", "operation": "1", "unavailable": true}}"#,
        ] {
            assert!(with(bad).unwrap_err().contains("no node is begun"), "{bad}");
        }
        assert!(parse(&ConfigMap::default()).is_err());
    }
}
