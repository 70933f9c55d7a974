//! The controller: counts nodes that stray and machines that will, and reports them as the
//! leader.

use super::kept::Kept;
use super::machines;
use super::retries::Retries;
use super::settings::Settings;
use super::strays::Reported;
use futures::future::join;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// One command often changes several objects: MachineSets are looked at together.
const TOGETHER: Duration = Duration::from_millis(200);

/// Runs for as long as it is polled.
pub(super) async fn run(settings: Settings) {
    join(strays(&settings), foretold(&settings)).await;
}

/// Nodes that stray.
async fn strays(settings: &Settings) {
    let Settings { previewer, leads, metrics, events, .. } = settings;
    let mut strays = previewer.strays();
    let mut leading = leads.watch();
    let (mut reported, mut retries, mut due) = (Reported::default(), Retries::default(), None);
    strays.mark_changed();
    loop {
        tokio::select! {
            Ok(()) = strays.changed() => {}
            Ok(()) = leading.changed() => {}
            () = until(due) => {}
            () = until(retries.due()) => {}
        }
        due = None;
        let now = strays.borrow_and_update().clone();
        metrics.strays.set(i64::try_from(now.len()).unwrap_or(i64::MAX));
        if !leads.now() {
            reported.forget();
            retries.forget();
            continue;
        }
        let pools = previewer.snapshot().pools;
        retries.report(events, reported.news(&now, &pools)).await;
        if reported.is_behind() {
            due = Some(Instant::now() + TOGETHER);
        }
    }
}

/// Machines that will.
async fn foretold(settings: &Settings) {
    let Settings { previewer, boot_images, leads, metrics, events } = settings;
    previewer.ready().await;
    let mut facts = boot_images.moments();
    let mut changes = previewer.changes();
    let mut leading = leads.watch();
    let (mut kept, mut reported, mut retries) =
        (Kept::default(), BTreeMap::new(), Retries::default());
    let mut due = Some(Instant::now());
    loop {
        tokio::select! {
            Ok(()) = facts.changed() => {
                due.get_or_insert_with(|| Instant::now() + TOGETHER);
                continue;
            }
            Ok(()) = changes.changed() => {
                due.get_or_insert_with(|| Instant::now() + TOGETHER);
                continue;
            }
            Ok(()) = leading.changed() => {}
            () = until(due) => {}
            () = until(retries.due()) => {}
        }
        due = None;
        let Some(known) = facts.borrow_and_update().clone() else { continue };
        kept.update(&previewer.snapshot(), &known.0);
        let now = kept.foretold();
        metrics.straying_machines.set(i64::try_from(now.len()).unwrap_or(i64::MAX));
        if !leads.now() {
            reported.clear();
            retries.forget();
            continue;
        }
        let unreported = machines::unreported(&now, &reported);
        retries.report(events, machines::news(previewer, &known.0, &unreported).await).await;
        let unreported: BTreeMap<_, _> =
            unreported.into_iter().map(|(key, it)| (key.clone(), it.clone())).collect();
        reported.retain(|key, it| now.get(key) == Some(&*it));
        reported.extend(unreported);
        if reported.len() < now.len() {
            due = Some(Instant::now() + TOGETHER);
        }
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}
