//! Carries out what has to be written, as long as this replica leads. What fails
//! is written at a later look, as far as it still has to be.

use super::settings::Settings;
use super::write::{NewStatus, Write};
use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference};
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions,
};
use kube::{Api, Client, ResourceExt as _};
use serde::Deserialize as _;
use tread_kube::api::{DisruptionPolicy, DisruptionPolicyStatus};
use tread_kube::asking::{Call, CallOutcome, Failed, ask};
use tread_kube::events::{Events, Note};
use tread_kube::leadership::Leading;
use tread_kube::metrics::Metrics;
use tread_kube::watching::{Unwritten, Watches};

/// How a round of writing ended.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// The API server did not answer, or has too much to do.
    pub(super) unreachable: bool,
    /// What was written, by [`Write::name`].
    pub(super) done: Vec<String>,
    /// What was not, and would not be if it were tried again at once.
    pub(super) refused: Vec<String>,
    /// Why something was not written: the last reason.
    pub(super) why: Option<Unwritten>,
    /// The statuses that were written, by UID, and what the API server kept.
    pub(super) kept: Vec<(String, DisruptionPolicyStatus, DisruptionPolicyStatus)>,
    /// What was reported of which namespaces, with the ConfigMap, by UID.
    pub(super) reported: Vec<((String, &'static str), String)>,
}

/// Writes all of this, as long as this replica leads.
#[tracing::instrument(name = "write", skip_all)]
pub(super) async fn carry_out(settings: Settings, writes: Vec<Write>) -> Written {
    let Settings { client, namespace, metrics, events, leads, watches, .. } = settings;
    let kind = ApiResource::erase::<DisruptionPolicy>(&());
    let writer = Writer {
        policies: Api::all(client.clone()),
        as_kept: Api::all_with(client.clone(), &kind),
        watches,
        copies: Api::namespaced(client.clone(), &namespace),
        client,
        namespace,
        metrics,
        events,
        leads,
    };
    let mut written = Written::default();
    for write in writes {
        // The next leader may know better by now.
        if !writer.leads.now() {
            break;
        }
        let name = write.name();
        let how = match write {
            Write::Create(object) => writer.create(&object).await,
            Write::Delete { name, as_seen, note } => writer.delete(&name, as_seen, note).await,
            Write::Status(status) => writer.status(*status, &mut written).await,
            Write::Sweep { place, as_seen } => writer.sweep(&place, as_seen).await,
            Write::Report { namespace, about, note } => {
                writer.events.report_each(&about, &note, "").await.map(|_| {
                    log(&name, &note);
                    let key = (namespace, note.reason.word());
                    written.reported.push((key, about.uid.unwrap_or_default()));
                })
            }
        };
        let Err(failed) = how else {
            written.done.push(name);
            continue;
        };
        written.why = Some(Unwritten::of(&writer.client, &writer.metrics, &name, &failed).await);
        // The others would fare no better.
        if failed.outcome == CallOutcome::Unanswered {
            written.unreachable = true;
            break;
        }
        written.refused.push(name);
    }
    written
}

/// Whoever reads the log learns what whoever looks at the object does.
fn log(name: &str, note: &Note) {
    let Note { reason, warns, text } = note;
    let reason = reason.word();
    match warns {
        true => tracing::warn!(name, reason, "{text}"),
        false => tracing::info!(name, reason, "{text}"),
    }
}

const POLICIES: &str = "disruptionpolicies";

struct Writer {
    client: Client,
    policies: Api<DisruptionPolicy>,
    /// The DisruptionPolicies with all their fields, those that tread does not know among them.
    as_kept: Api<DynamicObject>,
    watches: Watches,
    copies: Api<ConfigMap>,
    namespace: String,
    metrics: Metrics,
    events: Events,
    leads: Leading,
}

impl Writer {
    async fn create(&self, object: &DisruptionPolicy) -> Result<(), Failed> {
        let name = object.name_any();
        let params = PostParams::default();
        // One that the watch has not seen yet is a conflict; if it never does, there is
        // no hurry.
        self.ask(Call::new("create", POLICIES), &name, self.policies.create(&params, object))
            .await?;
        tracing::info!(policy = name, "registered");
        Ok(())
    }

    async fn delete(
        &self,
        name: &str,
        as_seen: Preconditions,
        note: Option<(ObjectReference, Note)>,
    ) -> Result<(), Failed> {
        let preconditions = Some(as_seen);
        let params = DeleteParams { preconditions, ..DeleteParams::default() };
        let deleted = self.policies.delete(name, &params);
        if gone(self.ask(Call::new("delete", POLICIES), name, deleted).await)?.is_some() {
            tracing::info!(policy = name, "withdrawn");
            if let Some((about, note)) = note {
                self.events.report(&about, &note).await;
            }
        }
        Ok(())
    }

    async fn status(&self, it: NewStatus, written: &mut Written) -> Result<(), Failed> {
        let NewStatus { name, uid, patch, wanted, unnamed, notes } = it;
        let params = PatchParams::default();
        let patch = Patch::Merge(&patch);
        // Also of an object whose spec cannot be read.
        let patched = self.as_kept.patch_status(&name, &params, &patch);
        let call = Call::new("patch", POLICIES).of_status();
        // The watch says that it is gone, too. Where somebody wrote it since it was seen, or
        // another one of its name is there, it brings that, and this is tried again.
        let Some(object) = gone(self.ask(call, &name, patched).await)? else { return Ok(()) };
        let kept = object.data.get("status").cloned().unwrap_or_default();
        let whole = serde_json::to_value(&wanted).unwrap_or_default();
        self.watches.kept(POLICIES, &whole, &kept);
        if let Ok(kept) = DisruptionPolicyStatus::deserialize(kept) {
            written.kept.push((uid, wanted, kept));
        }
        // Another leader may need it again, and writes it anew then: what is removed is the one that
        // is there while this replica leads. What cannot be removed now is swept away later.
        if let Some(place) = unnamed
            && let Some(as_seen) = self.seen(&place).await
            && self.leads.now()
        {
            let params = DeleteParams { preconditions: Some(as_seen), ..DeleteParams::default() };
            let _ = self.remove(&place, params).await;
        }
        // The policy and its ConfigMap get the same note.
        if let Some((_, note)) = notes.first() {
            log(&name, note);
        }
        for (about, note) in notes {
            self.events.report(&about, &note).await;
        }
        Ok(())
    }

    async fn sweep(&self, place: &str, as_seen: Preconditions) -> Result<(), Failed> {
        let params = DeleteParams { preconditions: Some(as_seen), ..DeleteParams::default() };
        self.remove(place, params).await?;
        tracing::info!(place, "removed a copy that no policy names");
        Ok(())
    }

    /// A copy as it is now; None: it is gone, or there is no answer.
    async fn seen(&self, place: &str) -> Option<Preconditions> {
        let call = Call::new("get", "configmaps").within(&self.namespace);
        let found = gone(self.ask(call, place, self.copies.get_metadata(place)).await).ok()??;
        Some(Preconditions { uid: found.uid(), resource_version: found.resource_version() })
    }

    async fn remove(&self, place: &str, params: DeleteParams) -> Result<(), Failed> {
        let call = Call::new("delete", "configmaps").within(&self.namespace);
        gone(self.ask(call, place, self.copies.delete(place, &params)).await).map(drop)
    }

    async fn ask<T>(
        &self,
        call: Call,
        name: &str,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, Failed> {
        let answer = ask(&self.metrics, call, request).await;
        answer.inspect_err(|failed| match failed.outcome {
            CallOutcome::Gone => {}
            _ => {
                let verb = failed.verb();
                tracing::warn!(name, verb, "not written, and tried again: {failed}");
            }
        })
    }
}

/// What is gone needs nothing any more.
fn gone<T>(answer: Result<T, Failed>) -> Result<Option<T>, Failed> {
    match answer {
        Err(failed) if failed.outcome == CallOutcome::Gone => Ok(None),
        answer => answer.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_leads_no_longer_or_was_stopped_for_too_long_writes_nothing() {
        let asked = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", asked.local_addr().unwrap());
        let client = Client::try_from(kube::Config::new(url.parse().unwrap())).unwrap();
        let leading = |leads, at_most| {
            Leading::without_election(tokio::sync::watch::channel(leads).1, at_most)
        };
        // It still believes that it leads, and its time is over.
        let stopped = leading(true, Some(std::time::Duration::ZERO));
        for leads in [leading(false, None), stopped] {
            let as_seen = Preconditions { uid: Some("1".to_owned()), resource_version: None };
            let writes = vec![
                Write::Create(Box::new(DisruptionPolicy::new("a", Default::default()))),
                Write::Delete { name: "b".to_owned(), as_seen, note: None },
            ];
            let written = carry_out(Settings::of_test(&client, leads), writes).await;
            assert!(written.done.is_empty() && written.refused.is_empty() && !written.unreachable);
        }
    }
}
