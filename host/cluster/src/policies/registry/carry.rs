//! Carries out what has to be written, as long as this replica leads. What fails
//! is written at a later look, as far as it still has to be.

use super::Settings;
use super::jobs::PATIENCE;
use super::write::{NewStatus, Write};
use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference};
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions,
};
use kube::{Api, ResourceExt as _};
use serde::Deserialize as _;
use tokio::time::timeout;
use tread_kube::api::{DisruptionPolicy, DisruptionPolicyStatus};
use tread_kube::events::{Events, Note, Told};
use tread_kube::leadership::Leading;
use tread_kube::metrics::Metrics;
use tread_kube::told::told;
use tread_kube::watching::Watches;

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
    pub(super) why: Option<String>,
    /// The statuses that were written, by UID, and what the API server kept.
    pub(super) kept: Vec<(String, DisruptionPolicyStatus, DisruptionPolicyStatus)>,
    /// The namespaces of which was told what, with the ConfigMap, by UID.
    pub(super) told: Vec<((String, &'static str), String)>,
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
        copies: Api::namespaced(client, &namespace),
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
            Write::Tell { namespace, about, note } => {
                match writer.events.tell_once(&about, &note).await {
                    Told::Answered => {
                        log(&name, &note);
                        let key = (namespace, note.reason.word());
                        written.told.push((key, about.uid.unwrap_or_default()));
                        How::Done
                    }
                    Told::NoAnswer => How::Unreachable("Events: no answer".to_owned()),
                }
            }
        };
        match how {
            How::Done => written.done.push(name),
            How::Refused(why) => {
                written.why = Some(format!("{name}: {why}"));
                written.refused.push(name);
            }
            // The others would fare no better.
            How::Unreachable(why) => {
                written.why = Some(format!("{name}: {why}"));
                written.unreachable = true;
                break;
            }
        }
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

/// How a write ended.
enum How {
    /// It is there, or need not be.
    Done,
    /// The API server does not want it, and says why.
    Refused(String),
    /// The API server does not answer, or has too much to do.
    Unreachable(String),
}

struct Writer {
    policies: Api<DisruptionPolicy>,
    /// The same objects, as they stand there.
    as_kept: Api<DynamicObject>,
    watches: Watches,
    copies: Api<ConfigMap>,
    metrics: Metrics,
    events: Events,
    leads: Leading,
}

impl Writer {
    async fn create(&self, object: &DisruptionPolicy) -> How {
        let name = object.name_any();
        let made = timeout(PATIENCE, self.policies.create(&PostParams::default(), object)).await;
        match made {
            Ok(Ok(_)) => {
                tracing::info!(policy = name, "registered");
                How::Done
            }
            // The watch has not seen it yet; if it never does, there is no hurry.
            Ok(Err(kube::Error::Api(status))) if status.is_already_exists() => {
                How::Refused(status.message.clone())
            }
            failed => self.failed("create", "disruptionpolicies", &name, failed),
        }
    }

    async fn delete(
        &self,
        name: &str,
        as_seen: Preconditions,
        note: Option<(ObjectReference, Note)>,
    ) -> How {
        let preconditions = Some(as_seen);
        let params = DeleteParams { preconditions, ..DeleteParams::default() };
        match timeout(PATIENCE, self.policies.delete(name, &params)).await {
            Ok(Ok(_)) => {
                tracing::info!(policy = name, "withdrawn");
                if let Some((about, note)) = note {
                    self.events.tell(&about, &note).await;
                }
                How::Done
            }
            Ok(Err(kube::Error::Api(status))) if status.is_not_found() => How::Done,
            failed => self.failed("delete", "disruptionpolicies", name, failed),
        }
    }

    async fn status(&self, it: NewStatus, written: &mut Written) -> How {
        let NewStatus { name, uid, patch, wanted, unnamed, notes } = it;
        let params = PatchParams::default();
        let patch = Patch::Merge(&patch);
        // Also of an object whose spec cannot be read.
        match timeout(PATIENCE, self.as_kept.patch_status(&name, &params, &patch)).await {
            Ok(Ok(object)) => {
                let kept = object.data.get("status").cloned().unwrap_or_default();
                let whole = serde_json::to_value(&wanted).unwrap_or_default();
                self.watches.kept("disruptionpolicies", &whole, &kept);
                if let Ok(kept) = DisruptionPolicyStatus::deserialize(kept) {
                    written.kept.push((uid, wanted, kept));
                }
            }
            // The watch says so, too. Where somebody wrote it since it was seen, or
            // another one of its name is there, it brings that, and this is tried again.
            Ok(Err(kube::Error::Api(status))) if status.is_not_found() => return How::Done,
            failed => return self.failed("patch", "disruptionpolicies", &name, failed),
        }
        if let Some(place) = unnamed.filter(|_| self.leads.now()) {
            // What cannot be removed now is swept away later.
            self.remove(&place, DeleteParams::default()).await;
        }
        // The same for the policy and for its ConfigMap.
        if let Some((_, note)) = notes.first() {
            log(&name, note);
        }
        for (about, note) in notes {
            self.events.tell(&about, &note).await;
        }
        How::Done
    }

    async fn sweep(&self, place: &str, as_seen: Preconditions) -> How {
        let params = DeleteParams { preconditions: Some(as_seen), ..DeleteParams::default() };
        let how = self.remove(place, params).await;
        if matches!(how, How::Done) {
            tracing::info!(place, "removed a copy that no policy names");
        }
        how
    }

    async fn remove(&self, place: &str, params: DeleteParams) -> How {
        match timeout(PATIENCE, self.copies.delete(place, &params)).await {
            Ok(Err(kube::Error::Api(status))) if status.is_not_found() => How::Done,
            done => self.failed("delete", "configmaps", place, done),
        }
    }

    fn failed<T, E>(
        &self,
        verb: &'static str,
        kind: &'static str,
        name: &str,
        how: Result<Result<T, kube::Error>, E>,
    ) -> How {
        let (why, how) = match how {
            Ok(Ok(_)) => return How::Done,
            Ok(Err(error)) => {
                self.metrics.api_error(verb, kind, &error);
                let why = told(&error);
                let how = match &error {
                    kube::Error::Api(it) if (400..500).contains(&it.code) && it.code != 429 => {
                        How::Refused(why.clone())
                    }
                    _ => How::Unreachable(why.clone()),
                };
                (why, how)
            }
            Err(_) => {
                let why = "the API server does not answer".to_owned();
                (why.clone(), How::Unreachable(why))
            }
        };
        tracing::warn!(kind, name, verb, "not written, and tried again: {why}");
        how
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::load::{AllShipped, Shipped};
    use crate::policies::snapshot::Room;
    use kube::Client;
    use tread_engine::sandbox::{Options, Sandbox};
    use tread_kube::watching::Watches;
    use tread_model::digest::Sha256;

    #[tokio::test]
    async fn who_leads_no_longer_or_was_stopped_for_too_long_writes_nothing() {
        let asked = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", asked.local_addr().unwrap());
        let client = Client::try_from(kube::Config::new(url.parse().unwrap())).unwrap();
        let rules = Shipped { name: "rules", component: b"", digest: Sha256::of(b"") };
        let settings = |leads| Settings {
            events: Events::new(client.clone(), "test", "Load"),
            client: client.clone(),
            namespace: "tread".to_owned(),
            replica: "test".to_owned(),
            sandbox: Sandbox::new(Options { cache_dir: None, ..Options::default() }).unwrap(),
            shipped: AllShipped { builtins: Vec::new(), rules },
            room: Room::default(),
            leads,
            watches: Watches::default(),
            metrics: Metrics::new(),
        };
        let told = |leads, at_most| Leading::told(tokio::sync::watch::channel(leads).1, at_most);
        // It still believes that it leads, and its time is over.
        let stopped = told(true, Some(std::time::Duration::ZERO));
        for leads in [told(false, None), stopped] {
            let as_seen = Preconditions { uid: Some("1".to_owned()), resource_version: None };
            let writes = vec![
                Write::Create(Box::new(DisruptionPolicy::new("a", Default::default()))),
                Write::Delete { name: "b".to_owned(), as_seen, note: None },
            ];
            let written = carry_out(settings(leads), writes).await;
            assert!(written.done.is_empty() && written.refused.is_empty() && !written.unreachable);
        }
    }
}
