//! Asking the API server to evict one pod.

use super::budgets::Held;
use super::filter::Refusal;
use crate::settings::Settings;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use std::fmt;
use std::time::Duration;
use tokio::time::Instant;
use tread_kube::asking::{Call, CallOutcome, Failed, PATIENCE, ask_before};

/// Why a pod was not evicted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Evicted {
    /// Budgets do not allow it now: by name.
    Blocked(Vec<String>),
    /// Budgets never allow it: the API server evicts no pod that several hold.
    Never(Vec<String>),
    /// A budget never allows it, however healthy its pods are.
    Full {
        /// Its name.
        budget: String,
        /// What it wants.
        why: String,
    },
    /// The Rollout refuses such pods.
    Refused(Refusal),
    /// It is waited for until it ends by itself.
    WaitedFor,
    /// It was to be deleted, which tread may not do here, and is not evicted for this reason.
    NotDeleted(Box<Evicted>),
    /// It did not work, in words; it may later.
    Failed(String),
}

impl Evicted {
    /// Whether it stays so until somebody changes a budget, a pod or the Rollout.
    pub fn is_for_good(&self) -> bool {
        matches!(self, Evicted::Never(_) | Evicted::Full { .. } | Evicted::Refused(_))
    }

    /// The budgets that it is about.
    pub fn budgets(&self) -> &[String] {
        match self {
            Evicted::Blocked(budgets) | Evicted::Never(budgets) => budgets,
            Evicted::Full { budget, .. } => std::slice::from_ref(budget),
            Evicted::NotDeleted(evicted) => evicted.budgets(),
            Evicted::Refused(_) | Evicted::WaitedFor | Evicted::Failed(_) => &[],
        }
    }
}

impl fmt::Display for Evicted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Evicted::Blocked(budgets) => {
                write!(f, "the PodDisruptionBudget {} allows no disruption now", budgets.join(", "))
            }
            Evicted::Never(budgets) => write!(
                f,
                "several PodDisruptionBudgets select it ({}), and the API server evicts no such pod: \
                 leave one of them",
                budgets.join(", ")
            ),
            Evicted::Full { budget, why } => write!(
                f,
                "the PodDisruptionBudget {budget} never allows a disruption: {why}; give it more \
                 pods, or let one of them be down"
            ),
            Evicted::Refused(why) => why.fmt(f),
            Evicted::WaitedFor => f.write_str("it is waited for until it ends (drain.waitFor)"),
            Evicted::NotDeleted(evicted) => write!(
                f,
                "{evicted}; drain.afterTimeout says to delete it, and tread may not: install it with \
                 tread manifests --delete-pods"
            ),
            Evicted::Failed(why) => f.write_str(why),
        }
    }
}

/// How a pod is asked to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// As its budgets allow.
    Evict,
    /// The same, and nothing comes of it.
    DryRun,
    /// Whatever they allow.
    Delete,
}

/// Asks for a pod to go: this one, and no other of its name.
pub(super) async fn evict(
    settings: &Settings,
    pod: &Pod,
    how: How,
    grace: Option<Duration>,
    deadline: Instant,
) -> Result<(), Failed> {
    let (name, namespace) = (pod.name_any(), pod.namespace().unwrap_or_default());
    let api: Api<Pod> = Api::namespaced(settings.client.clone(), &namespace);
    let deadline = deadline.min(Instant::now() + PATIENCE);
    let asked = match how {
        How::Delete => {
            let params = DeleteParams {
                grace_period_seconds: grace
                    .map(|grace| u32::try_from(grace.as_secs()).unwrap_or(u32::MAX)),
                preconditions: Some(Preconditions {
                    uid: pod.metadata.uid.clone(),
                    resource_version: None,
                }),
                ..DeleteParams::default()
            };
            let call = Call::new("delete", "pods").within(&namespace);
            let asked = api.delete(&name, &params);
            ask_before(deadline, &settings.metrics, call, asked).await.map(drop)
        }
        How::Evict | How::DryRun => {
            let params = PostParams { dry_run: how == How::DryRun, ..PostParams::default() };
            let body = body(pod, how, grace);
            let call = Call::new("create", "evictions").within(&namespace);
            let asked = api.create_subresource::<Value, Value>("eviction", &name, &params, &body);
            ask_before(deadline, &settings.metrics, call, asked).await.map(drop)
        }
    };
    match asked {
        // It is gone, or another one has its name.
        Err(failed) if matches!(failed.outcome, CallOutcome::Gone | CallOutcome::Conflict) => {
            Ok(())
        }
        asked => asked,
    }
}

/// Whether budgets may be why: the API server says so alike of itself, when it has too much to do.
pub(super) fn is_budgets(failed: &Failed) -> bool {
    matches!(failed.code, 429 | 500)
}

/// Why a pod was not evicted that these budgets hold; nothing where they are not known.
pub(super) fn why(budgets: Option<Vec<Held>>, failed: Failed) -> Evicted {
    match budgets.as_deref() {
        Some([one]) if failed.code == 429 => match &one.never {
            Some(why) => Evicted::Full { budget: one.name.clone(), why: why.clone() },
            None => Evicted::Blocked(vec![one.name.clone()]),
        },
        Some(several @ [_, _, ..]) => {
            Evicted::Never(several.iter().map(|held| held.name.clone()).collect())
        }
        _ => Evicted::Failed(failed.why),
    }
}

/// With the pod's UID: kube's own body does not hold it.
fn body(pod: &Pod, how: How, grace: Option<Duration>) -> Value {
    let mut options = json!({"preconditions": {"uid": pod.metadata.uid}});
    if let Some(fields) = options.as_object_mut() {
        if let Some(grace) = grace {
            fields.insert("gracePeriodSeconds".to_owned(), grace.as_secs().into());
        }
        if how == How::DryRun {
            fields.insert("dryRun".to_owned(), json!(["All"]));
        }
    }
    json!({
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.metadata.name, "namespace": pod.metadata.namespace},
        "deleteOptions": options,
    })
}
