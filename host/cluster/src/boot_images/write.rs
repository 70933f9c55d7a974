//! What the leader writes: the object, its status, and the stream metadata that
//! the cluster would forget.

use super::cluster_operator;
use super::facts::Facts;
use super::first_boots::next_end;
use super::kinds::{KEPT, MOST_KEPT};
use super::report::{Report, current};
use super::settings::Settings;
use super::status::{news, status};
use super::stuck::{self, Found, machines_join};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::ObjectMeta;
use kube::{Api, Resource as _};
use serde_json::{Map, Value, json};
use std::time::Duration;
use tokio::time::Instant;
use tread_kube::api::boot_images::BOOT_IMAGES;
use tread_kube::api::conditions::set;
use tread_kube::api::words::MANAGER;
use tread_kube::api::{BootImages, BootImagesSpec, BootImagesStatus};
use tread_kube::asking::{Call, CallOutcome, ask};
use tread_kube::clean::cleaned;
use tread_kube::watching::Unwritten;
use tread_model::boot_images::Release;

const IMAGES: &str = "bootimages";

/// After this time fields that the API server dropped are written again: its definition of the kind
/// may have been upgraded by then.
const KEPT_AGAIN: Duration = Duration::from_secs(1800);

/// What was written as a status, what the API server kept of it, and when: one
/// whose definition is older drops what it does not know.
struct Kept {
    wanted: Value,
    kept: Value,
    at: Instant,
}

/// Writes as the leader.
#[derive(Default)]
pub(super) struct Writer {
    kept: Option<Kept>,
    machines: stuck::Watcher,
    /// When something stands no more that a machine said.
    ends: Option<Instant>,
}

impl Writer {
    /// Writes what is not there yet; what fails holds up nothing else. The error
    /// says what was not written, and why.
    pub(super) async fn write(
        &mut self,
        settings: &Settings,
        facts: &Facts,
        report: &Report,
    ) -> Result<(), Unwritten> {
        let (found, unlisted) = self.machines.look(settings, facts, report).await;
        let object = match facts.object.as_deref() {
            Some(object) => self.status(settings, object, report, &found).await,
            None => create(settings).await,
        };
        let done = [
            object,
            unlisted.map_err(Unwritten::from),
            cluster_operator::write(settings, facts, report).await,
            keep(settings, facts).await,
        ];
        let unwritten = done.into_iter().filter_map(Result::err).collect();
        Unwritten::together(unwritten).map_or(Ok(()), Err)
    }

    async fn status(
        &mut self,
        settings: &Settings,
        object: &BootImages,
        report: &Report,
        found: &Found,
    ) -> Result<(), Unwritten> {
        let before = object.status.clone().unwrap_or_default();
        let generation = object.metadata.generation.unwrap_or_default();
        let now = Timestamp::now();
        let mut after = status(report, &before, generation, now);
        self.ends = next_end(&after.first_boots, now).map(|left| Instant::now() + left);
        set(&mut after.conditions, machines_join(&found.stuck, &found.unknown), generation, now);
        let after = cleaned(after);
        if !settings.leads.now() {
            return Ok(());
        }
        if after == before || self.stands(&after, &before) {
            // Where the status says so already, an Event may still be missing.
            self.machines.report(settings, &found.stuck).await;
            return Ok(());
        }
        let patch = Patch::Merge(patch(object, &before, &after));
        let api: Api<BootImages> = Api::all(settings.client.clone());
        let params = PatchParams::default();
        let patched = api.patch_status(BOOT_IMAGES, &params, &patch);
        let call = Call::new("patch", IMAGES).of_status();
        match ask(&settings.metrics, call, patched).await {
            Ok(there) => self.note(settings, &after, &there.status.unwrap_or_default()),
            // Somebody wrote in between: the watch brings what, and it is looked at again.
            Err(failed) if failed.outcome == CallOutcome::Conflict => return Ok(()),
            Err(failed) => {
                let what = format!("the status of BootImages {BOOT_IMAGES}");
                return Err(settings.unwritten(&what, &failed).await);
            }
        }
        if let Some(note) = news(&before, &after) {
            settings.events.report(&object.object_ref(&()), &note).await;
        }
        self.machines.report(settings, &found.stuck).await;
        Ok(())
    }

    /// When it is to be looked again, without news.
    pub(super) fn again(&self) -> Option<Instant> {
        [self.machines.again(), self.ends].into_iter().flatten().min()
    }

    /// Whether what stands there is all that the API server keeps of this status.
    fn stands(&self, wanted: &BootImagesStatus, standing: &BootImagesStatus) -> bool {
        self.kept.as_ref().is_some_and(|it| {
            it.at.elapsed() < KEPT_AGAIN && it.wanted == says(wanted) && it.kept == says(standing)
        })
    }

    fn note(&mut self, settings: &Settings, wanted: &BootImagesStatus, kept: &BootImagesStatus) {
        if wanted == kept && self.kept.is_none() {
            return;
        }
        let (wanted, kept) = (says(wanted), says(kept));
        settings.watches.kept("bootimages", &wanted, &kept);
        let dropped = wanted != kept;
        self.kept = dropped.then(|| Kept { wanted, kept, at: Instant::now() });
    }
}

/// What a status says, times aside.
fn says(status: &BootImagesStatus) -> Value {
    let mut value = serde_json::to_value(status).unwrap_or_default();
    let conditions = value.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
        condition.remove("lastTransitionTime");
    }
    value
}

/// The merge patch from one status to the other, based on what was seen.
fn patch(object: &BootImages, before: &BootImagesStatus, after: &BootImagesStatus) -> Value {
    let mut patch = json!({
        "metadata": {"resourceVersion": object.metadata.resource_version},
        "status": after,
    });
    // A merge patch keeps what it does not name. What is long is not copied for its name.
    let named = BootImagesStatus {
        observed_generation: before.observed_generation,
        mode: before.mode,
        oldest: before.oldest.clone(),
        limit: before.limit.clone(),
        resources: before.resources.first().cloned().into_iter().collect(),
        count: before.count,
        left_out: before.left_out.first().cloned().into_iter().collect(),
        openshift: before.openshift.clone(),
        first_boots: before.first_boots.first().cloned().into_iter().collect(),
        conditions: before.conditions.first().cloned().into_iter().collect(),
    };
    if let (Some(fields), Ok(Value::Object(old))) =
        (patch.pointer_mut("/status").and_then(Value::as_object_mut), serde_json::to_value(named))
    {
        for (name, _) in old {
            fields.entry(name).or_insert(Value::Null);
        }
    }
    patch
}

async fn create(settings: &Settings) -> Result<(), Unwritten> {
    if !settings.leads.now() {
        return Ok(());
    }
    let api: Api<BootImages> = Api::all(settings.client.clone());
    let object = BootImages::new(BOOT_IMAGES, BootImagesSpec::default());
    let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
    let call = Call::new("create", IMAGES);
    match ask(&settings.metrics, call, api.create(&params, &object)).await {
        Ok(_) => Ok(()),
        Err(failed) if failed.outcome == CallOutcome::Conflict => Ok(()),
        Err(failed) => Err(settings.unwritten(&format!("BootImages {BOOT_IMAGES}"), &failed).await),
    }
}

/// The patch that keeps the stream metadata of the running release, and lets go
/// of the oldest; none: it is kept already.
pub fn to_keep(facts: &Facts) -> Option<Value> {
    let (catalogues, _) = current(facts);
    let stamped = facts.current.as_ref().filter(|_| !catalogues.is_empty())?;
    let release = stamped.release.clone()?;
    if facts.kept.get(&release).is_some_and(|kept| kept.len() == catalogues.len()) {
        return None;
    }
    let mut data = Map::new();
    data.insert(release.clone(), json!(stamped.essence));
    let mut kept: Vec<&String> = facts.kept.keys().filter(|it| **it != release).collect();
    kept.sort_by_key(|text| Release::parse(text));
    let too_many = (kept.len() + 1).saturating_sub(MOST_KEPT);
    for oldest in kept.into_iter().take(too_many) {
        data.insert(oldest.clone(), Value::Null);
    }
    Some(json!({ "data": data }))
}

async fn keep(settings: &Settings, facts: &Facts) -> Result<(), Unwritten> {
    let Some(patch) = to_keep(facts).filter(|_| settings.leads.now()) else { return Ok(()) };
    let api: Api<ConfigMap> = Api::namespaced(settings.client.clone(), &settings.namespace);
    let call = |verb| Call::new(verb, "configmaps").within(&settings.namespace);
    let (params, merge) = (PatchParams::default(), Patch::Merge(&patch));
    let patched = api.patch(KEPT, &params, &merge);
    let mut written = ask(&settings.metrics, call("patch"), patched).await;
    if written.as_ref().is_err_and(|failed| failed.outcome == CallOutcome::Gone) {
        let metadata = ObjectMeta { name: Some(KEPT.to_owned()), ..ObjectMeta::default() };
        let map = ConfigMap { metadata, data: strings(&patch), ..ConfigMap::default() };
        let params = PostParams::default();
        written = ask(&settings.metrics, call("create"), api.create(&params, &map)).await;
    }
    match written {
        Ok(_) => Ok(()),
        Err(failed) if failed.outcome == CallOutcome::Conflict => Ok(()),
        Err(failed) => {
            let what = format!("ConfigMap {KEPT}, which keeps former stream metadata");
            Err(settings.unwritten(&what, &failed).await)
        }
    }
}

fn strings(patch: &Value) -> Option<std::collections::BTreeMap<String, String>> {
    let data = patch.get("data")?.as_object()?;
    Some(
        data.iter()
            .filter_map(|(key, text)| Some((key.clone(), text.as_str()?.to_owned())))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot_images::machine::Key;
    use crate::boot_images::report;
    use crate::boot_images::stuck::{Stuck, Waiting};
    use crate::index;
    use kube::{Client, Config};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::net::TcpListener;
    use tread_kube::api::machines::MACHINE_SET;
    use tread_kube::events::Events;
    use tread_kube::leadership::Leading;
    use tread_kube::metrics::Metrics;
    use tread_kube::watching::Watches;

    /// An API server that hangs up, and how often it was called.
    async fn deaf() -> (Client, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let calls: Arc<AtomicUsize> = Arc::default();
        let counted = Arc::clone(&calls);
        tokio::spawn(async move {
            while listener.accept().await.is_ok() {
                counted.fetch_add(1, Ordering::SeqCst);
            }
        });
        (tread_kube::client::client(Config::new(url.parse().unwrap())).unwrap(), calls)
    }

    #[tokio::test]
    async fn an_event_that_got_no_answer_is_written_later_although_the_status_says_it_already() {
        let (client, calls) = deaf().await;
        let (watches, metrics) = (Watches::default(), Metrics::new());
        let settings = |leads| Settings {
            client: client.clone(),
            index: index::start(&client, "default", &watches, &metrics).0,
            namespace: "tread".to_owned(),
            leads: Leading::without_election(tokio::sync::watch::channel(leads).1, None),
            block_upgrades: false,
            watches: watches.clone(),
            metrics: metrics.clone(),
            events: Events::new(client.clone(), "test", "Judge", &metrics),
        };
        let stuck = |name: &str| Stuck {
            resource: Key {
                kind: MACHINE_SET.name,
                namespace: "machines".to_owned(),
                name: "set".to_owned(),
            },
            resource_uid: "1".to_owned(),
            machine: Waiting {
                name: name.to_owned(),
                uid: name.to_owned(),
                since: Timestamp::UNIX_EPOCH,
            },
            image: "it is too old".to_owned(),
        };
        let found = Found { stuck: vec![stuck("a"), stuck("b")], unknown: Vec::new() };
        let made = report::report(&Facts::default(), &[]);
        // The status was written, and then the API server did not answer.
        let (mut object, now) =
            (BootImages::new(BOOT_IMAGES, BootImagesSpec::default()), Timestamp::now());
        let mut said = status(&made, &BootImagesStatus::default(), 0, now);
        set(&mut said.conditions, machines_join(&found.stuck, &found.unknown), 0, now);
        object.status = Some(cleaned(said));

        let mut writer = Writer::default();
        let follows = settings(false);
        writer.status(&follows, &object, &made, &found).await.unwrap();
        assert_eq!((calls.load(Ordering::SeqCst), writer.again()), (0, None), "it does not lead");
        let leads = settings(true);
        writer.status(&leads, &object, &made, &found).await.unwrap();
        let tried = calls.load(Ordering::SeqCst);
        assert!(tried > 0, "nothing was reported");
        assert!(writer.again().is_some(), "it is not tried again");
        writer.status(&leads, &object, &made, &found).await.unwrap();
        assert!(calls.load(Ordering::SeqCst) > tried);
        // Where a look does not come to that, as after a conflict, the next one is later all the same.
        writer.machines.report_again = Some(Instant::now());
        writer.machines.look(&leads, &Facts::default(), &made).await.1.unwrap();
        assert!(writer.again().unwrap() > Instant::now());
    }
}
