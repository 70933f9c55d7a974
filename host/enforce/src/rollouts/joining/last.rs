//! In which pool each node was last that joined by a claim, and since when which of them are gone: noted
//! by the leader, since a Node that is deleted takes all that it said with it.

use super::super::settings::Settings;
use super::bound::Stands;
use super::kept;
use super::room::{NEARLY, ROOM};
use super::run::maybe;
use super::serving::Joining;
use futures::{StreamExt as _, stream};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;
use tread_kube::asking::{Backoff, CallOutcome, Failed};
use tread_model::joining::Mark;

/// What happens at the same time is noted together.
const TOGETHER: Duration = Duration::from_secs(1);
/// That nodes are gone, or back, is noted so often.
const RARELY: Duration = Duration::from_secs(3600);
/// How long is waited after a failure, at first and at most.
const WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// What was done before.
#[derive(Debug, Default)]
struct Before {
    /// When everything was noted last.
    all: Option<Instant>,
    /// Whether it was said that there is hardly any room.
    is_nearly_full: bool,
}

/// Notes it, as the leader, for as long as it is polled.
pub(super) async fn run(joining: Joining) {
    joining.settings.previewer.ready().await;
    let mut changes = stream::select_all([
        joining.known.nodes().moments().map(drop).boxed(),
        joining.record.moments().map(drop).boxed(),
    ]);
    let mut pools = joining.settings.previewer.changes();
    let mut leads = joining.settings.leads.watch();
    let mut backoff = Backoff::new(WAITS);
    let mut before = Before::default();
    let mut due = Some(Instant::now());
    loop {
        let soon = |due: Option<Instant>| {
            let soon = Instant::now() + TOGETHER;
            Some(due.map_or(soon, |due| due.min(soon)))
        };
        tokio::select! {
            Some(()) = changes.next() => due = soon(due),
            Ok(()) = pools.changed() => due = soon(due),
            Ok(()) = leads.changed() => due = soon(due),
            () = maybe(due) => match look(&joining, &mut before).await {
                Ok(next) => {
                    backoff.reset();
                    due = next;
                }
                Err(failed) => {
                    tracing::warn!(error = %failed, "in which pool nodes are cannot be noted");
                    due = Some(Instant::now() + backoff.next_wait());
                }
            }
        }
    }
}

/// Notes what is to be noted; when to look again though nothing happens.
async fn look(joining: &Joining, before: &mut Before) -> Result<Option<Instant>, Failed> {
    let settings = &joining.settings;
    if !settings.leads.now() {
        *before = Before::default();
        settings.acts.metrics.claims_room.set(0);
        return Ok(None);
    }
    let (Some(record), Some(nodes)) = (joining.record().flatten(), joining.known.nodes().now())
    else {
        return Ok(None);
    };
    let cluster = settings.previewer.snapshot();
    let marks: BTreeMap<&str, Mark> =
        cluster.pools.values().map(|it| (it.name.as_str(), Mark::of_pool(&it.uid))).collect();
    let places: BTreeMap<&str, Mark> = cluster
        .members
        .all()
        .filter_map(|(name, it)| Some((name, *marks.get(it.place.pool()?)?)))
        .collect();
    let stands = |name: &str| match nodes.get(name) {
        None => Stands::Gone,
        // Whatever its labels say: it is in none before it has joined.
        Some(facts) if facts.joins.is_some() => Stands::Outside,
        Some(_) => places.get(name).map_or(Stands::Outside, |pool| Stands::In(*pool)),
    };
    let times = (joining.seconds(), settings.joining.lasts.as_secs());
    let taken = record.room(&BTreeMap::new(), |name| nodes.contains_key(name), times).taken;
    report_room(settings, taken, before);
    let [moved, all] = record.notes(stands, times.0);
    let is_due = before.all.is_none_or(|at| at.elapsed() >= RARELY);
    let data = if is_due { all.clone() } else { moved };
    if !data.is_empty() {
        match kept::note(&settings.acts, &record, data).await {
            // Somebody else wrote it: the watch brings it.
            Err(failed) if failed.outcome != CallOutcome::Conflict => return Err(failed),
            _ => {}
        }
    }
    if is_due {
        before.all = Some(Instant::now());
        return Ok(None);
    }
    Ok(before.all.filter(|_| !all.is_empty()).map(|at| at + RARELY))
}

/// Says how much room is taken, and once where there is hardly any left.
fn report_room(settings: &Settings, taken: usize, before: &mut Before) {
    let percent = taken * 100 / ROOM;
    settings.acts.metrics.claims_room.set(i64::try_from(percent).unwrap_or(i64::MAX));
    let is_nearly_full = taken > NEARLY;
    if is_nearly_full && !before.is_nearly_full {
        tracing::warn!(
            percent,
            "claims of nodes take nearly all the room of their record: once it is full no node joins by a new \
             one. Remove Nodes that are gone for good"
        );
    }
    before.is_nearly_full = is_nearly_full;
}
