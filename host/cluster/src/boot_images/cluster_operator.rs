//! ClusterOperator `tread`: where an admin asks for it, images that are too old
//! hold back minor and major updates of OpenShift. Where nobody does, none is
//! left there.

use super::facts::Facts;
use super::kinds::CLUSTER_OPERATOR;
use super::report::Report;
use super::settings::Settings;
use super::status::upgradeable;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::jiff::Timestamp;
use kube::api::{
    DeleteParams, ListParams, PartialObjectMeta, Patch, PatchParams, PostParams, Preconditions,
};
use kube::core::DynamicObject;
use kube::{Api, ResourceExt as _};
use serde::Deserialize as _;
use serde_json::{Value, json};
use tread_kube::api::boot_images::SkewMode;
use tread_kube::api::conditions::{Finding, set};
use tread_kube::api::words::{MADE_BY_LABEL, MANAGER, NAME, PART_OF_LABEL};
use tread_kube::asking::{Call, CallOutcome, Failed, ask};
use tread_kube::clean::cleaned;
use tread_kube::watching::Unwritten;

const OPERATORS: &str = "clusteroperators";

/// What is to be done about it.
#[derive(Debug, Clone, PartialEq)]
pub enum Due {
    /// All is as it has to be.
    Nothing,
    /// It is made.
    Create,
    /// It says this from now on.
    Say(Vec<Condition>),
    /// It is removed.
    Delete,
    /// Somebody else has the name.
    Foreign,
}

/// What is to be done about it. `asked`: an admin wants updates to be held back.
pub fn due(asked: bool, facts: &Facts, report: &Report, now: Timestamp) -> Due {
    let wanted = asked && report.mode != SkewMode::None;
    let standing = match facts.cluster_operator.as_deref() {
        // Nobody reads it where there is no OpenShift.
        None if wanted && facts.versions.is_some() => return Due::Create,
        None => return Due::Nothing,
        Some(standing) => standing,
    };
    match (standing.is_ours, wanted) {
        (false, true) => Due::Foreign,
        (false, false) => Due::Nothing,
        (true, false) => Due::Delete,
        (true, true) => {
            let wanted = conditions(report, &standing.conditions, now);
            if wanted == standing.conditions { Due::Nothing } else { Due::Say(wanted) }
        }
    }
}

fn conditions(report: &Report, before: &[Condition], now: Timestamp) -> Vec<Condition> {
    let mut conditions = before.to_vec();
    let available = Finding {
        type_: "Available",
        status: Some(true),
        reason: "AsExpected".to_owned(),
        message: "tread judges boot images: see BootImages cluster".to_owned(),
    };
    set(&mut conditions, available, 0, now);
    upgradeable(&mut conditions, report, 0, now);
    // Those of OpenShift have no such field.
    conditions.iter_mut().for_each(|it| it.observed_generation = None);
    cleaned(conditions)
}

/// Does it. The error says what could not be done, and why.
pub(super) async fn write(
    settings: &Settings,
    facts: &Facts,
    report: &Report,
) -> Result<(), Unwritten> {
    let due = due(settings.block_upgrades, facts, report, Timestamp::now());
    let standing = facts.cluster_operator.as_deref();
    if due == Due::Nothing || !settings.leads.now() {
        return Ok(());
    }
    let api: Api<DynamicObject> =
        Api::all_with(settings.client.clone(), &CLUSTER_OPERATOR.resource());
    let call = |verb| Call::new(verb, OPERATORS);
    let done = match (due, standing) {
        (Due::Create, _) => create(settings, &api).await,
        (Due::Delete, Some(standing)) => {
            let preconditions =
                Preconditions { uid: Some(standing.uid.clone()), resource_version: None };
            let params = DeleteParams::default().preconditions(preconditions);
            ask(&settings.metrics, call("delete"), api.delete(NAME, &params)).await.map(drop)
        }
        (Due::Say(conditions), Some(standing)) => {
            let patch = Patch::Merge(json!({
                "metadata": {"resourceVersion": standing.version},
                "status": {
                    "conditions": conditions,
                    "versions": [{"name": "operator", "version": env!("CARGO_PKG_VERSION")}],
                },
            }));
            let params = PatchParams::default();
            let patched = api.patch_status(NAME, &params, &patch);
            ask(&settings.metrics, call("patch").of_status(), patched).await.map(drop)
        }
        (Due::Foreign, _) => {
            return Err(format!(
                "ClusterOperator {NAME} is there, and not tread's: nothing holds updates back; \
                 remove it, and tread makes its own"
            )
            .into());
        }
        _ => return Ok(()),
    };
    match done {
        Ok(()) => Ok(()),
        // The watch brings what is there now.
        Err(failed) if matches!(failed.outcome, CallOutcome::Gone | CallOutcome::Conflict) => {
            Ok(())
        }
        Err(failed) => Err(settings.unwritten(&format!("ClusterOperator {NAME}"), &failed).await),
    }
}

/// It goes with tread's namespace, however that is removed.
async fn create(settings: &Settings, api: &Api<DynamicObject>) -> Result<(), Failed> {
    let namespaces: Api<PartialObjectMeta<Namespace>> = Api::all(settings.client.clone());
    let named = ListParams::default().fields(&format!("metadata.name={}", settings.namespace));
    let listed = namespaces.list_metadata(&named);
    let found = ask(&settings.metrics, Call::new("list", "namespaces"), listed).await?;
    let owners: Vec<Value> = found
        .items
        .iter()
        .map(|it| {
            json!({"apiVersion": "v1", "kind": "Namespace", "name": it.name_any(),
                "uid": it.uid().unwrap_or_default()})
        })
        .collect();
    let object = json!({
        "apiVersion": CLUSTER_OPERATOR.resource().api_version,
        "kind": CLUSTER_OPERATOR.kind,
        "metadata": {
            "name": NAME,
            "labels": {MADE_BY_LABEL: MANAGER, PART_OF_LABEL: NAME},
            "ownerReferences": owners,
        },
        "spec": {},
    });
    let call = Call::new("create", OPERATORS);
    if !settings.leads.now() {
        // The list may have taken its time.
        return Err(call.overtaken("another replica leads now".to_owned()));
    }
    let object = DynamicObject::deserialize(object);
    let object = object.map_err(|error| call.clone().refused(error.to_string()))?;
    let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
    ask(&settings.metrics, call, api.create(&params, &object)).await.map(drop)
}
