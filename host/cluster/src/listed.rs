//! Policies and plans as they are listed for people and scripts: an object that
//! cannot be read hides no other, and says itself what is wrong with it.

use crate::policies::read;
use k8s_openapi::jiff::Timestamp;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::core::ObjectMeta;
use kube::{Api, Client, Resource};
use serde::Deserialize as _;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tread_kube::api::conditions::{self, Finding};
use tread_kube::api::disruption_plan::Cause;
use tread_kube::api::disruption_policy::State;
use tread_kube::api::{DisruptionPlan, DisruptionPlanSpec, DisruptionPlanStatus, DisruptionPolicy};
use tread_kube::asking::{Call, Failed, ask};
use tread_kube::metrics::Metrics;
use tread_kube::watching::parsed::{Parsed, each_by_itself};
use tread_model::verdict::FailureKind;

/// An object as it is listed.
#[derive(Debug, Clone)]
pub struct Listed<K> {
    /// What can be read of it.
    pub object: K,
    /// The whole, as it stands in the cluster.
    pub value: Value,
    /// Why it cannot be read as a whole: the field, and what is wrong with it.
    pub unreadable: Option<String>,
}

/// The DisruptionPolicies of a cluster. One that cannot be read, and of which
/// nothing newer is known, is in the state Invalid.
pub async fn policies(client: Client) -> Result<Vec<Listed<DisruptionPolicy>>, Failed> {
    let call = Call::new("list", "disruptionpolicies");
    let seen = list::<DisruptionPolicy>(client, call, &ListParams::default()).await?;
    Ok(seen.into_iter().map(policy).collect())
}

/// The DisruptionPlans of a cluster.
pub async fn plans(
    client: Client,
    params: &ListParams,
) -> Result<Vec<Listed<DisruptionPlan>>, Failed> {
    let call = Call::new("list", "disruptionplans");
    let seen = list::<DisruptionPlan>(client, call, params).await?;
    Ok(seen.into_iter().map(plan).collect())
}

fn api<K: Resource<DynamicType = ()>>(client: Client) -> Api<DynamicObject> {
    Api::all_with(client, &ApiResource::erase::<K>(&()))
}

async fn list<K: Resource<DynamicType = ()>>(
    client: Client,
    call: Call,
    params: &ListParams,
) -> Result<Vec<Parsed<DynamicObject>>, Failed> {
    let api = each_by_itself(api::<K>(client));
    // Of the command line nobody reads metrics.
    Ok(ask(&Metrics::new(), call, api.list(params)).await?.items)
}

/// The object as it stands there, and why there is no more of it.
fn opened<K: Resource<DynamicType = ()>>(
    seen: Parsed<DynamicObject>,
) -> (DynamicObject, Option<String>) {
    let (mut object, why) = match seen {
        Parsed::Read(object) => (object, None),
        Parsed::Unreadable(metadata, why) => {
            let metadata = ObjectMeta { name: metadata.name, ..ObjectMeta::default() };
            let object = DynamicObject { types: None, metadata, data: Value::Object(Map::new()) };
            (object, Some(why))
        }
    };
    object.metadata.managed_fields = None;
    object.types = Some(kube::core::TypeMeta::resource::<K>());
    (object, why)
}

/// A DisruptionPolicy, as it is listed.
pub fn policy(seen: Parsed<DynamicObject>) -> Listed<DisruptionPolicy> {
    let (whole, deep) = opened::<DisruptionPolicy>(seen);
    let mut value = serde_json::to_value(&whole).unwrap_or_default();
    let status = problem::<tread_kube::api::DisruptionPolicyStatus>(&whole.data, "status");
    let raw_status = whole.data.get("status").cloned();
    let read::Policy { object, unreadable, .. } = read::policy(whole);
    let mut object = std::sync::Arc::unwrap_or_clone(object);
    let spec = match deep {
        // What is nested too deep has no part that could be read.
        Some(why) => Some(why),
        None => unreadable.map(|failure| failure.message),
    };
    if object.status.is_none() {
        object.status = raw_status.as_ref().map(what_can_be_read);
    }
    if let Some(why) = &spec {
        invalid(&mut object, why);
        if let (Value::Object(fields), Some(status)) = (&mut value, &object.status) {
            let shown = json!({"state": status.state, "conditions": status.conditions});
            merge(fields.entry("status").or_insert_with(|| json!({})), shown);
        }
    }
    Listed { object, value, unreadable: spec.or(status) }
}

/// Says that a policy is Invalid, unless its status says so, or was written by
/// somebody who could read it as it is now.
fn invalid(object: &mut DisruptionPolicy, why: &str) {
    let generation = object.metadata.generation;
    let status = object.status.get_or_insert_default();
    let is_known = status.state.is_some() && status.observed_generation == generation;
    if is_known && generation.is_some() {
        return;
    }
    status.state = Some(State::Invalid);
    let finding = Finding {
        type_: "Loaded",
        status: Some(false),
        reason: FailureKind::InvalidSettings.name().to_owned(),
        message: format!("{why}."),
    };
    let generation = generation.unwrap_or_default();
    conditions::set(&mut status.conditions, finding, generation, Timestamp::now());
}

fn plan(seen: Parsed<DynamicObject>) -> Listed<DisruptionPlan> {
    let (whole, deep) = opened::<DisruptionPlan>(seen);
    let value = serde_json::to_value(&whole).unwrap_or_default();
    let DynamicObject { metadata, data, .. } = whole;
    let unreadable = deep
        .or_else(|| problem::<DisruptionPlanSpec>(&data, "spec"))
        .or_else(|| problem::<DisruptionPlanStatus>(&data, "status"));
    let spec = data.get("spec").unwrap_or(&Value::Null);
    let spec = DisruptionPlanSpec::deserialize(spec).unwrap_or_else(|_| DisruptionPlanSpec {
        pool: spec.get("pool").and_then(Value::as_str).unwrap_or_default().to_owned(),
        cause: spec.get("cause").and_then(|it| Cause::deserialize(it).ok()).unwrap_or_default(),
    });
    let status = data.get("status").map(what_can_be_read);
    Listed { object: DisruptionPlan { metadata, spec, status }, value, unreadable }
}

/// Why a part of an object cannot be read, if it is there.
fn problem<T: DeserializeOwned>(data: &Value, part: &str) -> Option<String> {
    let error = serde_path_to_error::deserialize::<_, T>(data.get(part)?).err()?;
    let path = match error.path().to_string().as_str() {
        "." => part.to_owned(),
        path => format!("{part}.{path}"),
    };
    Some(format!("{path} cannot be read: {}", error.into_inner()))
}

/// The fields that can be read, of something in which none has to be there.
fn what_can_be_read<T: DeserializeOwned + Default>(value: &Value) -> T {
    if let Ok(all) = T::deserialize(value) {
        return all;
    }
    let mut fields = value.as_object().cloned().unwrap_or_default();
    fields.retain(|field, it| T::deserialize(json!({ field.as_str(): &*it })).is_ok());
    T::deserialize(Value::Object(fields)).unwrap_or_default()
}

fn merge(into: &mut Value, from: Value) {
    if !into.is_object() {
        *into = json!({});
    }
    if let (Value::Object(into), Value::Object(from)) = (into, from) {
        into.extend(from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(object: &Value) -> Parsed<DynamicObject> {
        Parsed::deserialize(object).unwrap()
    }

    #[test]
    fn a_policy_that_cannot_be_read_is_invalid_and_keeps_what_can_be_read_of_it() {
        let of = |status: Value| {
            let spec = json!({"mode": "Sometimes", "rules": [{"match": ["file:/a"]}]});
            policy(seen(
                &json!({"metadata": {"name": "a", "generation": 2}, "spec": spec, "status": status}),
            ))
        };
        for status in
            [json!({}), json!({"state": "Loaded", "observedGeneration": 1, "version": "7"})]
        {
            let found = of(status.clone());
            let why = found.unreadable.as_ref().unwrap();
            assert!(
                why.starts_with("spec.mode cannot be read: unknown variant `Sometimes`"),
                "{why}"
            );
            let read = found.object.status.unwrap();
            assert_eq!(
                (read.state, read.version.as_deref()),
                (Some(State::Invalid), status["version"].as_str())
            );
            assert!(read.conditions[0].message.contains("spec.mode"), "{read:?}");
            assert_eq!(found.value["status"]["state"], "Invalid");
            assert_eq!(found.value["status"]["version"], status["version"]);
            assert_eq!(found.value["spec"]["mode"], "Sometimes");
        }
        // Whoever wrote this could read it: this program is older.
        let newer = of(json!({"state": "Loaded", "observedGeneration": 2}));
        assert!(newer.unreadable.is_some());
        assert_eq!(newer.object.status.unwrap().state, Some(State::Loaded));
        assert_eq!(newer.value["status"]["state"], "Loaded");
    }

    #[test]
    fn a_policy_whose_status_cannot_be_read_keeps_its_other_fields() {
        let object = json!({"metadata": {"name": "a"}, "spec": {"source": {"builtin": "b"}},
            "status": {"state": "Enlightened", "version": "7"}});
        let found = policy(seen(&object));
        let why = found.unreadable.unwrap();
        assert!(why.starts_with("status.state cannot be read: unknown variant"), "{why}");
        assert_eq!(found.object.status.unwrap().version.as_deref(), Some("7"));
        assert_eq!(found.value["status"], object["status"]);
    }

    #[test]
    fn a_policy_that_is_nested_without_end_is_listed_by_its_name() {
        let deep = (0..200).fold(json!(1), |inside, _| json!({"a": inside}));
        let object = json!({"metadata": {"name": "a"}, "spec": {"settings": deep}});
        let found = policy(seen(&object));
        assert_eq!(found.object.metadata.name.as_deref(), Some("a"));
        assert_eq!(found.object.status.unwrap().state, Some(State::Invalid));
        assert!(found.unreadable.unwrap().contains("nested more than 100 deep"));
    }

    #[test]
    fn a_plan_that_cannot_be_read_keeps_what_can_be_read_of_it() {
        let cause = json!({"kind": "MachineConfig", "name": "50-a", "event": "Exploded"});
        let object = json!({"metadata": {"name": "a"}, "spec": {"pool": "worker", "cause": cause},
            "status": {"effect": "drain + reboot", "nodes": "many"}});
        let found = plan(seen(&object));
        let why = found.unreadable.unwrap();
        assert!(why.starts_with("spec.cause.event cannot be read: unknown variant"), "{why}");
        assert_eq!(found.object.spec.pool, "worker");
        assert_eq!(found.object.status.unwrap().effect.as_deref(), Some("drain + reboot"));
        let object = json!({"metadata": {"name": "a"}, "status": {"transitions": [{"nodes": 5}]}});
        let why = plan(seen(&object)).unreadable.unwrap();
        assert!(why.starts_with("status.transitions[0].nodes cannot be read"), "{why}");
    }

    #[test]
    fn what_can_be_read_is_listed_as_it_stands_there() {
        let object = json!({"apiVersion": "tread.dev/v1alpha1", "kind": "DisruptionPolicy",
            "metadata": {"name": "a"}, "spec": {"mode": "Enforce", "rules": []},
            "status": {"state": "Loaded"}});
        let found = policy(seen(&object));
        assert_eq!((found.unreadable, found.value), (None, object));
    }
}
