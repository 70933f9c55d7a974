//! The controller: counts nodes that stray and machines that will, and tells of them as the
//! leader.

use super::machines;
use super::settings::Settings;
use super::strays::{News, Told};
use futures::future::{join, join_all};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use tread_kube::asking::Failed;
use tread_kube::events::{Events, Once};

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
    let mut told = Told::default();
    strays.mark_changed();
    loop {
        tokio::select! {
            Ok(()) = strays.changed() => {}
            Ok(()) = leading.changed() => {}
        }
        let now = strays.borrow_and_update().clone();
        metrics.strays.set(i64::try_from(now.len()).unwrap_or(i64::MAX));
        if !leads.now() {
            told.forget();
            continue;
        }
        let pools = previewer.snapshot().pools;
        tell(events, &told.news(&now, &pools)).await;
    }
}

/// Machines that will.
async fn foretold(settings: &Settings) {
    let Settings { previewer, boot_images, leads, metrics, events } = settings;
    previewer.ready().await;
    let mut facts = boot_images.moments();
    let mut changes = previewer.changes();
    let mut leading = leads.watch();
    let mut told = BTreeMap::new();
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
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
        }
        due = None;
        let Some(known) = facts.borrow_and_update().clone() else { continue };
        let now = machines::all(&previewer.snapshot(), &known.0);
        metrics.straying_machines.set(i64::try_from(now.len()).unwrap_or(i64::MAX));
        if !leads.now() {
            told.clear();
            continue;
        }
        let untold = machines::untold(&now, &told);
        tell(events, &machines::news(previewer, &known.0, &untold).await).await;
        let untold: BTreeMap<_, _> =
            untold.into_iter().map(|(key, it)| (key.clone(), it.clone())).collect();
        told.retain(|key, it| now.get(key) == Some(&*it));
        told.extend(untold);
        if told.len() < now.len() {
            due = Some(Instant::now() + TOGETHER);
        }
    }
}

/// What cannot be written is logged.
async fn tell(events: &Events, news: &[News]) {
    drop(join_all(news.iter().map(|it| tell_one(events, it))).await);
}

async fn tell_one(events: &Events, news: &News) -> Result<Once, Failed> {
    let News { about, note, of } = news;
    let name = about.name.as_deref().unwrap_or_default();
    let told = events.tell_each(about, note, of).await;
    // A node that says now this and now that fills no log.
    if !matches!(told, Ok(Once::Before)) {
        tracing::warn!(name, reason = note.reason.word(), "{}", note.text);
    }
    told
}
