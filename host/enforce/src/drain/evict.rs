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
use tread_kube::asking::{Call, CallOutcome, Failed, PATIENCE, ask_before, ask_uncounted, is_busy};
use tread_kube::clean::clean;
use tread_model::text::listed;

/// How many budgets are named.
const NAMED: usize = 3;
/// The longest that is repeated of what others say.
const LONGEST: usize = 300;
/// So answers begin that an admission webhook gave.
const WEBHOOKS: &str = "admission webhook ";
/// The API server evicts no pod that several budgets hold, and answers with this.
const SEVERAL: u16 = 500;

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
    /// It came to the node although that is cordoned, as it would again: nobody waits for it.
    Stays,
    /// The same, but it could not be evicted now, for this reason: the node does not boot yet.
    CameBack(Box<Evicted>),
    /// It was to be deleted, which tread may not do here, and is not evicted for this reason.
    NotDeleted(Box<Evicted>),
    /// It did not work, in words that are fit to be repeated; it may later.
    Failed(String),
}

impl Evicted {
    /// That it did not work: the words may be those of somebody's webhook.
    pub(super) fn failed(failed: &Failed) -> Evicted {
        Evicted::Failed(clean(&failed.why).chars().take(LONGEST).collect())
    }

    /// Whether it stays so until somebody changes a budget, a pod or the Rollout.
    pub fn is_for_good(&self) -> bool {
        matches!(self, Evicted::Never(_) | Evicted::Full { .. } | Evicted::Refused(_))
    }

    /// The budgets that it is about.
    pub fn budgets(&self) -> &[String] {
        match self {
            Evicted::Blocked(budgets) | Evicted::Never(budgets) => budgets,
            Evicted::Full { budget, .. } => std::slice::from_ref(budget),
            Evicted::NotDeleted(evicted) | Evicted::CameBack(evicted) => evicted.budgets(),
            Evicted::Refused(_) | Evicted::WaitedFor | Evicted::Stays | Evicted::Failed(_) => &[],
        }
    }
}

impl fmt::Display for Evicted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Evicted::Blocked(budgets) => {
                let named = listed(budgets, NAMED);
                write!(f, "the PodDisruptionBudget {named} allows no disruption now")
            }
            Evicted::Never(budgets) => write!(
                f,
                "several PodDisruptionBudgets select it ({}), and the API server evicts no such pod: \
                 leave one of them",
                listed(budgets, NAMED)
            ),
            Evicted::Full { budget, why } => write!(
                f,
                "the PodDisruptionBudget {budget} never allows a disruption: {why}; give it more \
                 pods, or let one of them be down"
            ),
            Evicted::Refused(why) => why.fmt(f),
            Evicted::WaitedFor => f.write_str("it is waited for until it ends (drain.waitFor)"),
            Evicted::Stays => f.write_str(
                "it came to the node although that is cordoned, as it would again: it stays, and \
                 nobody waits for it",
            ),
            Evicted::CameBack(evicted) => write!(
                f,
                "it came to the node although that is cordoned, and stays once it could be evicted: \
                 {evicted}"
            ),
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

/// Asks for a pod to go: this one, and no other of its name. An eviction that is answered with
/// [`SEVERAL`] is not counted as an error yet: whether it is one is known by the pod's budgets.
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
            let asked = ask_uncounted(deadline, call, asked).await.map(drop);
            asked.map_err(|failed| match failed.code {
                SEVERAL => failed,
                _ => failed.counted_unless_answer(&settings.metrics),
            })
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

/// Whether budgets may be why.
pub(super) fn is_budgets(failed: &Failed) -> bool {
    failed.is_by_budget() || failed.code == SEVERAL
}

/// Whether the API server has too much to do, so that other pods are better not asked for now
/// either. A webhook that says so means its own pods.
pub(super) fn has_too_much_to_do(failed: &Failed) -> bool {
    is_busy(failed) && !failed.is_by_budget() && !failed.why.starts_with(WEBHOOKS)
}

/// Why a pod was not evicted that these budgets hold; nothing where they are not known.
pub(super) fn why(budgets: Option<Vec<Held>>, failed: &Failed) -> Evicted {
    match budgets.as_deref() {
        Some([one]) if failed.is_by_budget() => match &one.never {
            Some(why) => Evicted::Full { budget: one.name.clone(), why: why.clone() },
            None => Evicted::Blocked(vec![one.name.clone()]),
        },
        Some(several @ [_, _, ..]) if is_budgets(failed) => {
            Evicted::Never(several.iter().map(|held| held.name.clone()).collect())
        }
        _ => Evicted::failed(failed),
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

#[cfg(test)]
mod tests {
    use super::*;
    use tread_test_bed::refusal;

    fn failed(code: u16, message: &str, cause: Option<&str>) -> Failed {
        let causes = cause.map(|reason| json!({"causes": [{"reason": reason}]}));
        let answer = refusal(json!({"code": code, "message": message, "details": causes}));
        Call::new("create", "evictions").failed(&answer)
    }

    #[test]
    fn a_refusal_is_a_budgets_only_where_the_api_server_says_so() {
        let budget = Some("DisruptionBudget");
        let held = |names: &[&str], never: Option<&str>| -> Vec<Held> {
            let never = never.map(str::to_owned);
            names
                .iter()
                .map(|it| Held { name: (*it).to_owned(), never: never.clone(), allowed: 0 })
                .collect()
        };
        let violates = "Cannot evict pod as it would violate the pod's disruption budget.";
        let several = "This pod has more than one PodDisruptionBudget";
        let busy = "Too many requests, please try again later.";
        let denied = "admission webhook \"drains.example.com\" denied the request: not now";
        let blocked = |name: &str| Evicted::Blocked(vec![name.to_owned()]);
        let never = || Evicted::Never(vec!["a".to_owned(), "b".to_owned()]);
        let full = || Evicted::Full { budget: "a".to_owned(), why: "it wants 1".to_owned() };
        let says = |why: &str| Evicted::Failed(why.to_owned());
        // What the API server answers, which budgets hold the pod, what that comes to, and
        // whether the API server has too much to do.
        for (failed, budgets, expected, is_too_much) in [
            (failed(429, violates, budget), held(&["a"], None), blocked("a"), false),
            (failed(429, violates, budget), held(&["a"], Some("it wants 1")), full(), false),
            (failed(429, violates, budget), held(&["a", "b"], None), never(), false),
            (failed(429, violates, budget), held(&[], None), says(violates), false),
            (failed(500, several, None), held(&["a", "b"], None), never(), false),
            (failed(500, "etcd", None), held(&["a"], None), says("etcd"), false),
            (failed(429, busy, None), held(&["a"], None), says(busy), true),
            (failed(429, busy, None), held(&["a"], Some("it wants 1")), says(busy), true),
            (failed(429, busy, None), held(&["a", "b"], None), says(busy), true),
            (failed(503, busy, None), held(&["a", "b"], None), says(busy), true),
            (failed(429, denied, None), held(&["a"], None), says(denied), false),
            (failed(403, "negative", None), held(&["a"], None), says("negative"), false),
        ] {
            assert_eq!(has_too_much_to_do(&failed), is_too_much, "{failed:?}");
            assert_eq!(why(Some(budgets), &failed), expected, "{failed:?}");
            assert!(matches!(why(None, &failed), Evicted::Failed(_)), "{failed:?}");
        }
    }

    #[test]
    fn what_others_say_drives_no_terminal_and_is_not_endless() {
        let odd = format!("\u{1b}[2Jno\n{}", "x".repeat(5000));
        let Evicted::Failed(why) = why(Some(Vec::new()), &failed(400, &odd, None)) else {
            panic!("it is a budget's")
        };
        assert!(why.starts_with("[2Jno; xxx") && why.len() == LONGEST, "{why:?}");
    }
}
