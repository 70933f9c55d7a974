//! The controller: counts nodes that stray and machines that will, and tells of them as the
//! leader.

use super::kept::Kept;
use super::machines;
use super::settings::Settings;
use super::strays::Told;
use super::telling::Telling;
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
    let (mut told, mut telling, mut due) = (Told::default(), Telling::default(), None);
    strays.mark_changed();
    loop {
        tokio::select! {
            Ok(()) = strays.changed() => {}
            Ok(()) = leading.changed() => {}
            () = until(due) => {}
            () = until(telling.due()) => {}
        }
        due = None;
        let now = strays.borrow_and_update().clone();
        metrics.strays.set(i64::try_from(now.len()).unwrap_or(i64::MAX));
        if !leads.now() {
            told.forget();
            telling.forget();
            continue;
        }
        let pools = previewer.snapshot().pools;
        telling.tell(events, told.news(&now, &pools)).await;
        if told.is_behind() {
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
    let (mut kept, mut told, mut telling) = (Kept::default(), BTreeMap::new(), Telling::default());
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
            () = until(telling.due()) => {}
        }
        due = None;
        let Some(known) = facts.borrow_and_update().clone() else { continue };
        kept.update(&previewer.snapshot(), &known.0);
        let now = kept.foretold();
        metrics.straying_machines.set(i64::try_from(now.len()).unwrap_or(i64::MAX));
        if !leads.now() {
            told.clear();
            telling.forget();
            continue;
        }
        let untold = machines::untold(&now, &told);
        telling.tell(events, machines::news(previewer, &known.0, &untold).await).await;
        let untold: BTreeMap<_, _> =
            untold.into_iter().map(|(key, it)| (key.clone(), it.clone())).collect();
        told.retain(|key, it| now.get(key) == Some(&*it));
        told.extend(untold);
        if told.len() < now.len() {
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
