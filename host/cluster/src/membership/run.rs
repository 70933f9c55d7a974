//! The controller: counts nodes that stray, and tells of them as the leader.

use super::settings::Settings;
use super::strays::{News, Told};
use futures::future::join_all;
use tread_kube::asking::Failed;
use tread_kube::events::{Events, Once};

/// Runs for as long as it is polled.
pub(super) async fn run(settings: Settings) {
    let Settings { previewer, leads, metrics, events } = &settings;
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
        let news = told.news(&now, &pools);
        // What could not be written is logged.
        drop(join_all(news.iter().map(|it| tell(events, it))).await);
    }
}

async fn tell(events: &Events, news: &News) -> Result<Once, Failed> {
    let News { about, note, of } = news;
    let name = about.name.as_deref().unwrap_or_default();
    tracing::warn!(name, reason = note.reason.word(), "{}", note.text);
    events.tell_each(about, note, of).await
}
