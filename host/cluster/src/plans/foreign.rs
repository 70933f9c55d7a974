//! DisruptionPlans under a name that tread uses, and not made by tread.

use super::settings::Settings;
use super::standing::{PLANS, Standing};
use crate::pools::Pool;
use crate::previews::Described;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{DeleteParams, ListParams, Preconditions};
use kube::{Api, Resource as _};
use tread_kube::api::DisruptionPlan;
use tread_kube::asking::{Call, Failed, ask};
use tread_kube::events::{Note, Reason};
use tread_kube::watching::parsed::{Parsed, each_by_itself};

/// Whether a plan is the one that tread makes: for the same, and owned by the
/// pool, with which it goes.
pub(super) fn is_ours(there: &Standing, pool: &Pool, wanted: &Described) -> bool {
    there.pool == pool.name && there.cause == wanted.cause && there.owners.contains(&pool.uid)
}

/// Deletes somebody else's object that has the name of a plan, and reports it: only tread writes
/// plans, and others find a plan by its name alone. If the object is tread's own, and the watch has
/// not shown it yet, that is a conflict.
pub(super) async fn remove(
    settings: &Settings,
    api: &Api<DisruptionPlan>,
    pool: &Pool,
    wanted: &Described,
) -> Result<(), Failed> {
    let name = &wanted.name;
    let params = ListParams::default().fields(&format!("metadata.name={name}"));
    let api_of_each = each_by_itself(api.clone());
    let list = Call::new("list", PLANS);
    let there = ask(&settings.metrics, list.clone(), api_of_each.list(&params)).await?.items.pop();
    if !settings.leads.now() {
        // The list may have taken its time, and the next leader knows better.
        return Err(list.overtaken("another replica leads now".to_owned()));
    }
    let (uid, version, what) = match there {
        None => return Ok(()),
        Some(Parsed::Unreadable(metadata, why)) => {
            (metadata.uid, metadata.resource_version, format!("which cannot be read ({why})"))
        }
        Some(Parsed::Read(object)) => {
            let finalizers = object.metadata.finalizers.clone().unwrap_or_default();
            if object.metadata.deletion_timestamp.is_some() {
                let why = format!(
                    "another plan of this name is deleted, and stays until its finalizers are gone: {}",
                    finalizers.join(", ")
                );
                return Err(list.refused(why));
            }
            let (uid, version) =
                (object.metadata.uid.clone(), object.metadata.resource_version.clone());
            let there = Standing::of(object);
            if is_ours(&there, pool, wanted) {
                // The watch brings it.
                return Err(list.overtaken("it is there already".to_owned()));
            }
            let owned =
                if there.owners.contains(&pool.uid) { "" } else { ", and owned by no such pool" };
            (uid, version, format!("for pool {} and {}{owned}", there.pool, there.cause))
        }
    };
    let preconditions = Some(Preconditions { uid: uid.clone(), resource_version: version });
    let params = DeleteParams { preconditions, ..DeleteParams::default() };
    ask(&settings.metrics, Call::new("delete", PLANS), api.delete(name, &params)).await?;
    let text = format!(
        "Somebody else had made a DisruptionPlan of this name, {what}. It kept tread's own plan, for \
         pool {} and {}, away, and was deleted: only tread writes these.",
        pool.name, wanted.cause
    );
    tracing::warn!(plan = name, "{text}");
    let about = ObjectReference {
        api_version: Some(DisruptionPlan::api_version(&()).into_owned()),
        kind: Some("DisruptionPlan".to_owned()),
        name: Some(name.clone()),
        uid,
        ..ObjectReference::default()
    };
    let note = Note { reason: Reason::PlanReplaced, warns: true, text };
    settings.events.report(&about, &note).await;
    Ok(())
}
