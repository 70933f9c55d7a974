//! Noting what machines said at their first boot, and reporting it: by whichever replica heard it, in
//! the status of BootImages. What is heard at the same time is written together.

use super::first_boots::{note, with};
use super::settings::{Known, Settings};
use futures::future::{BoxFuture, FutureExt as _};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::{Api, Resource as _};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tread_kube::api::BootImages;
use tread_kube::api::boot_images::{BOOT_IMAGES, FirstBoot};
use tread_kube::asking::{Backoff, Call, CallOutcome, Failed, ask};
use tread_kube::clean::cleaned;

/// More than these do not wait: the machine reports again.
const ROOM: usize = 64;
/// How often it is tried to write what was heard.
const TRIES: usize = 5;
/// How long is waited after a failure, at first and at most.
const WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(15));
/// How long a newer object may take to come, where somebody else wrote it.
const COMES: Duration = Duration::from_secs(10);

/// Where what machines say is taken. Clones share it.
#[derive(Debug, Clone)]
pub struct FirstBoots(mpsc::Sender<FirstBoot>);

impl FirstBoots {
    /// Takes what a machine said; whether there is room for it.
    pub fn take(&self, it: FirstBoot) -> bool {
        self.0.try_send(it).is_ok()
    }
}

/// Where it is taken, and what writes it for as long as it is polled.
pub fn start(settings: Settings, known: Known) -> (FirstBoots, BoxFuture<'static, ()>) {
    let (heard, queue) = mpsc::channel(ROOM);
    (FirstBoots(heard), write(settings, known, queue).boxed())
}

async fn write(settings: Settings, known: Known, mut queue: mpsc::Receiver<FirstBoot>) {
    let mut new = Vec::with_capacity(ROOM);
    while queue.recv_many(&mut new, ROOM).await > 0 {
        for it in &new {
            let FirstBoot { machine, address, pool, image, reason, stopped, .. } = it;
            tracing::warn!(
                machine,
                address,
                pool,
                image,
                reason,
                stopped,
                "a machine's image is too old"
            );
        }
        if let Err(why) = noted(&settings, &known, &new).await {
            tracing::warn!("what machines said at their first boot is not noted: {why}");
        }
        new.clear();
    }
    std::future::pending().await
}

async fn noted(settings: &Settings, known: &Known, new: &[FirstBoot]) -> Result<(), String> {
    let mut backoff = Backoff::new(WAITS);
    let mut seen = String::new();
    let mut why = "BootImages cluster is not there".to_owned();
    for _ in 0..TRIES {
        let Some(object) = newer(known, &seen).await else { continue };
        seen = object.metadata.resource_version.clone().unwrap_or_default();
        match patched(settings, &object, new).await {
            Ok(()) => {
                for it in new {
                    let of = format!("{}/{} {}", it.pool, it.machine, it.image);
                    let about = object.object_ref(&());
                    // What cannot be written is in the log, and in the status.
                    drop(settings.events.report_each(&about, &note(it), &of).await);
                }
                return Ok(());
            }
            Err(failed) => {
                if failed.outcome != CallOutcome::Conflict {
                    // The same version is good enough next time.
                    seen.clear();
                    backoff.wait().await;
                }
                why = failed.to_string();
            }
        }
    }
    Err(why)
}

/// The object, in another version than this one; none: it does not come.
async fn newer(known: &Known, seen: &str) -> Option<Arc<BootImages>> {
    let mut moments = known.moments();
    let is_newer = |object: &BootImages| object.metadata.resource_version.as_deref() != Some(seen);
    let comes = moments
        .wait_for(|now| now.as_ref().and_then(|now| now.0.object.as_deref()).is_some_and(is_newer));
    let now = timeout(COMES, comes).await.ok()?.ok()?;
    now.as_ref()?.0.object.clone()
}

async fn patched(
    settings: &Settings,
    object: &BootImages,
    new: &[FirstBoot],
) -> Result<(), Failed> {
    let before = object.status.as_ref().map_or(&[][..], |status| &status.first_boots);
    let after = cleaned(with(before, new, Timestamp::now()));
    let patch = Patch::Merge(json!({
        "metadata": {"resourceVersion": object.metadata.resource_version},
        "status": {"firstBoots": after},
    }));
    let api: Api<BootImages> = Api::all(settings.client.clone());
    let call = Call::new("patch", "bootimages").of_status();
    let params = PatchParams::default();
    ask(&settings.metrics, call, api.patch_status(BOOT_IMAGES, &params, &patch)).await.map(drop)
}
