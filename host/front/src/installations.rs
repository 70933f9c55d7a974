//! More than one tread in a cluster: policies and plans belong to no namespace, so
//! the one that came first writes them, and any other waits until it is alone.

use crate::names::{AGENT, NAME, agents_namespace};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ListParams, PartialObjectMeta, PostParams};
use kube::{Api, Client, ResourceExt as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tread_kube::api::words::{GROUP, NAME_LABEL, PART_OF_LABEL};
use tread_kube::asking::{
    Backoff, Call, CallOutcome, Failed, SHORT_PATIENCE, ask_before, jittered,
};
use tread_kube::metrics::Metrics;

/// Before it is asked again whether the other one is gone.
const AGAIN: Duration = Duration::from_secs(10);
/// Before it is asked again whether another one came that is older: its namespace may have been there
/// before tread was installed into it.
pub const STILL_ALONE: Duration = Duration::from_secs(2 * 60);
/// How long to wait where no answer came, at first and at most.
const UNANSWERED: (Duration, Duration) = (Duration::from_secs(1), AGAIN);

/// Of so many namespaces it is asked what is there, the oldest first.
const MOST_ASKED: usize = 20;

/// Whom this tread met. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Met(Arc<Mutex<Whom>>);

/// Whom it met, as far as it knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Whom {
    #[default]
    Nobody,
    /// Another one was there first.
    Another(String),
    /// The API server does not say.
    Unknown(String),
}

impl Met {
    /// Why this one does not write: another one was there first, or it is not known whether one was.
    pub fn why_not(&self) -> Option<String> {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Whom::Nobody => None,
            Whom::Another(why) | Whom::Unknown(why) => Some(why.clone()),
        }
    }

    fn is_another(&self) -> bool {
        matches!(*self.0.lock().unwrap_or_else(PoisonError::into_inner), Whom::Another(_))
    }

    /// One that was met is not forgotten for an answer that does not come.
    fn is_unsure(&self, why: String) {
        if !self.is_another() {
            self.set(Whom::Unknown(why));
        }
    }

    fn set(&self, whom: Whom) {
        let mut before = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match (&*before, &whom) {
            (before, whom) if before == whom => {}
            (_, Whom::Another(why) | Whom::Unknown(why)) => tracing::warn!("{why}"),
            (Whom::Another(_), Whom::Nobody) => {
                tracing::info!("the other tread is gone: this one goes on");
            }
            (_, Whom::Nobody) => tracing::info!("nothing keeps this tread any more: it goes on"),
        }
        *before = whom;
    }
}

/// A namespace that tread was installed into, and since when it is there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Installed {
    since: i64,
    namespace: String,
}

/// Whom this tread found.
#[derive(Debug, Default)]
struct There {
    /// Those that were there before it, and may write.
    others: Vec<Installed>,
    /// The namespaces of agents: those have them that roll out.
    agents: Vec<String>,
}

/// Says in `may_lead` whether no other tread was there before this one, and goes on asking, each time
/// after `still_alone` at least: one that comes later may be older. A tread that may not see namespaces
/// goes on without knowing. Where nothing is known yet, it is asked again soon; a tread that leads goes on
/// while there is no answer.
pub async fn look_out(
    client: Client,
    namespace: &str,
    metrics: &Metrics,
    met: &Met,
    may_lead: &watch::Sender<bool>,
    still_alone: Duration,
) {
    let mut unanswered = Backoff::new(UNANSWERED);
    loop {
        let wait = match before(&client, namespace, metrics).await {
            Ok(there) if there.others.is_empty() => {
                met.set(Whom::Nobody);
                may_lead.send_replace(true);
                jittered(still_alone)
            }
            Ok(there) => {
                met.set(Whom::Another(said(namespace, &there)));
                may_lead.send_replace(false);
                unanswered.reset();
                jittered(AGAIN)
            }
            Err(failed) if *may_lead.borrow() => {
                tracing::debug!("whether another tread was installed is not known: {failed}");
                jittered(still_alone)
            }
            Err(failed) if cannot_know(&failed) && !met.is_another() => {
                tracing::debug!("whether another tread is installed is not known: {failed}");
                met.set(Whom::Nobody);
                may_lead.send_replace(true);
                jittered(still_alone)
            }
            Err(failed) => {
                met.is_unsure(not_known(&failed));
                unanswered.next_wait()
            }
        };
        sleep(wait).await;
    }
}

/// Whether this tread may not see namespaces. An API server that has too much to do, or fails, says
/// nothing of that.
fn cannot_know(failed: &Failed) -> bool {
    failed.outcome == CallOutcome::Forbidden
}

/// The namespaces that `tread manifests` made, that are older than this one, and
/// whose tread may write.
async fn before(client: &Client, namespace: &str, metrics: &Metrics) -> Result<There, Failed> {
    let list = async |params: ListParams| {
        let namespaces: Api<PartialObjectMeta<Namespace>> = Api::all(client.clone());
        let call = Call::new("list", "namespaces");
        let listed = namespaces.list_metadata(&params);
        Ok::<_, Failed>(ask_before(answer_by(), metrics, call, listed).await?.items)
    };
    let named = |name: &str| {
        ListParams::default().labels(&format!("{NAME_LABEL}={name},{PART_OF_LABEL}={NAME}"))
    };
    let labelled = list(named(NAME)).await?;
    if labelled.iter().all(|it| it.name_any() == namespace) {
        return Ok(There::default());
    }
    let own = list(ListParams::default().fields(&format!("metadata.name={namespace}"))).await?;
    let installed = |it: &PartialObjectMeta<_>| Installed {
        since: it.creation_timestamp().map_or(i64::MAX, |time| time.0.as_second()),
        namespace: it.name_any(),
    };
    let there = |it: &&PartialObjectMeta<_>| it.metadata.deletion_timestamp.is_none();
    let labelled = labelled.iter().filter(there).map(installed).collect();
    let earlier = earlier(own.first().map(installed), labelled, namespace);
    let mut others = Vec::new();
    for it in earlier.into_iter().take(MOST_ASKED) {
        if may_write(client, &it.namespace, metrics).await? {
            others.push(it);
        }
    }
    let agents = match others.is_empty() {
        true => Vec::new(),
        // What is not seen now is seen the next time.
        false => list(named(AGENT)).await.unwrap_or_default(),
    };
    Ok(There { others, agents: agents.iter().map(|it| it.name_any()).collect() })
}

/// Whether what runs in a namespace may write plans. Anybody may label a namespace
/// of their own; this only an admin grants.
async fn may_write(client: &Client, namespace: &str, metrics: &Metrics) -> Result<bool, Failed> {
    let groups = ["system:serviceaccounts", "system:authenticated"].map(str::to_owned);
    let own = format!("system:serviceaccounts:{namespace}");
    let attributes = ResourceAttributes {
        group: Some(GROUP.to_owned()),
        resource: Some("disruptionplans".to_owned()),
        subresource: Some("status".to_owned()),
        verb: Some("update".to_owned()),
        ..ResourceAttributes::default()
    };
    let spec = SubjectAccessReviewSpec {
        user: Some(format!("system:serviceaccount:{namespace}:{NAME}")),
        groups: Some(groups.into_iter().chain([own]).collect()),
        resource_attributes: Some(attributes),
        ..SubjectAccessReviewSpec::default()
    };
    let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
    let reviews: Api<SubjectAccessReview> = Api::all(client.clone());
    let (call, params) = (Call::new("create", "subjectaccessreviews"), PostParams::default());
    let asked = reviews.create(&params, &review);
    let answer = ask_before(answer_by(), metrics, call, asked).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

/// Why nothing is written while the API server does not say who else is there.
fn not_known(failed: &Failed) -> String {
    format!(
        "this tread writes nothing until the API server says whether another one is installed: {failed}"
    )
}

fn answer_by() -> Instant {
    Instant::now() + SHORT_PATIENCE
}

fn earlier(own: Option<Installed>, mut all: Vec<Installed>, namespace: &str) -> Vec<Installed> {
    all.retain(|it| it.namespace != namespace && own.as_ref().is_none_or(|own| it < own));
    all.sort();
    all
}

fn said(namespace: &str, there: &There) -> String {
    let There { others, agents } = there;
    let names: Vec<&str> = others.iter().map(|it| it.namespace.as_str()).collect();
    let names = names.join(", ");
    let first = others.first().map_or("", |it| it.namespace.as_str());
    let rolls_out = |namespace: &str| agents.contains(&agents_namespace(namespace));
    let remove = |namespace: &str| {
        let mode = if rolls_out(namespace) { " --mode enforce" } else { "" };
        format!(
            "tread manifests --namespace {namespace}{mode} --without-definitions | kubectl delete \
             --ignore-not-found -f -"
        )
    };
    // This one leads no rollouts any more that could be stopped.
    let stop = match rolls_out(first) {
        true => format!("tread rollout stop --namespace {first} && "),
        false => String::new(),
    };
    format!(
        "another tread is installed in the namespace {names}, before this one in {namespace}: a \
         cluster has room for one, so this one writes nothing until that is removed. `{}` removes \
         this one, `{stop}{}` the other; without --without-definitions all policies and plans would \
         go too, since both have the same definitions. Where none runs there any more: `kubectl label \
         namespace {first} {PART_OF_LABEL}-`",
        remove(namespace),
        remove(first)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tread_test_bed::refusal;

    #[test]
    fn an_api_server_that_is_busy_is_asked_again_and_only_who_may_not_see_goes_on_unknowing() {
        let list = Call::new("list", "namespaces");
        for (code, cannot) in [
            (401, false),
            (403, true),
            (404, false),
            (409, false),
            (422, false),
            (429, false),
            (500, false),
            (503, false),
            (504, false),
        ] {
            let error = refusal(json!({"code": code, "message": "why", "reason": "Reason"}));
            assert_eq!(cannot_know(&list.clone().failed(&error)), cannot, "{code}");
        }
        let silent = kube::Error::ReadEvents(std::io::Error::other("connection refused"));
        assert!(!cannot_know(&list.failed(&silent)));
    }

    #[test]
    fn it_is_said_why_nothing_is_written_as_long_as_nothing_is() {
        let met = Met::default();
        assert_eq!(met.why_not(), None);
        let busy = refusal(json!({"code": 503, "message": "too busy", "reason": "Reason"}));
        let busy = Call::new("list", "namespaces").failed(&busy);
        met.is_unsure(not_known(&busy));
        let why = met.why_not().unwrap();
        assert!(why.contains("whether another one is installed") && why.ends_with("too busy"));
        met.set(Whom::Another("first".to_owned()));
        met.is_unsure(not_known(&busy));
        assert_eq!(met.why_not().as_deref(), Some("first"));
        met.set(Whom::Nobody);
        assert_eq!(met.why_not(), None);
    }

    #[test]
    fn of_two_the_one_that_came_first_goes_on() {
        let at = |since: i64, namespace: &str| Installed { since, namespace: namespace.to_owned() };
        let all = || vec![at(2, "b"), at(1, "a"), at(2, "c")];
        for (own, met) in [
            (at(1, "a"), &[][..]),
            (at(2, "b"), &["a"]),
            (at(2, "c"), &["a", "b"]),
            // Not installed by manifests, and so without the label.
            (at(9, "mine"), &["a", "b", "c"]),
            (at(0, "mine"), &[]),
        ] {
            let found = earlier(Some(own.clone()), all(), &own.namespace);
            let names: Vec<&str> = found.iter().map(|it| it.namespace.as_str()).collect();
            assert_eq!(names, met, "{own:?}");
        }
    }

    #[test]
    fn whoever_meets_another_one_is_told_how_each_is_removed_by_the_mode_that_it_is_in() {
        let first = Installed { since: 1, namespace: "a".to_owned() };
        let told = |agents: &[&str]| {
            let agents = agents.iter().map(|it| (*it).to_owned()).collect();
            said("b", &There { others: vec![first.clone()], agents })
        };
        let says = told(&[]);
        assert!(says.contains("in the namespace a, before this one in b"), "{says}");
        // The definitions belong to both.
        for namespace in ["a", "b"] {
            let removes =
                format!("`tread manifests --namespace {namespace} --without-definitions | kubectl");
            assert!(says.contains(&removes), "{says}");
        }
        let says = told(&["a-agents", "others-agents"]);
        let removes = "`tread rollout stop --namespace a && tread manifests --namespace a \
                       --mode enforce --without-definitions | kubectl";
        assert!(says.contains(removes), "{says}");
        assert!(says.contains("`tread manifests --namespace b --without-definitions |"), "{says}");
        let says = told(&["b-agents"]);
        let removes = "`tread manifests --namespace b --mode enforce --without-definitions |";
        assert!(says.contains(removes) && !says.contains("rollout stop"), "{says}");
    }
}
