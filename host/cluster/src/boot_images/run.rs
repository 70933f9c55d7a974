//! The controller: folds what the watches say, judges, publishes, and writes as
//! the leader.

use super::facts::Facts;
use super::gathered::{Gathered, inputs};
use super::report::{Report, report};
use super::settings::{Known, Settings};
use super::status::holds_back;
use super::write::Writer;
use futures::StreamExt as _;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use tread_kube::api::boot_images::SkewMode;
use tread_kube::asking::Backoff;
use tread_kube::metrics::WithVerdict;
use tread_model::boot_images::Outcome;

/// One command often changes several objects: they are judged together.
const TOGETHER: Duration = Duration::from_millis(100);
/// How long is waited after a failure, at first and at most.
const WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// All outcomes that are counted.
const OUTCOMES: [Outcome; 4] = [Outcome::Passes, Outcome::Warns, Outcome::Waits, Outcome::Blocks];

/// Runs for as long as it is polled.
pub(super) async fn run(settings: Settings, known: Known) {
    let Settings { client, namespace, index, watches, metrics, .. } = &settings;
    let mut inputs = inputs(client, namespace, index, watches, metrics);
    let mut leads = settings.leads.watch();
    let mut booted = known.booted();
    let mut gathered = Gathered::default();
    let mut writer = Writer::default();
    let mut backoff = Backoff::new(WAITS);
    // When it is judged for what was heard, when it is tried again what failed, and
    // when machines are looked at.
    let mut heard = Some(Instant::now() + TOGETHER);
    let (mut again, mut look) = (None, None);
    loop {
        let due = [heard, again.or(look)].into_iter().flatten().min();
        tokio::select! {
            Some(input) = inputs.next() => {
                gathered.take(input);
                heard.get_or_insert_with(|| Instant::now() + TOGETHER);
                continue;
            }
            Ok(()) = booted.changed() => {
                gathered.facts.booted = booted.borrow_and_update().clone();
                heard.get_or_insert_with(|| Instant::now() + TOGETHER);
                continue;
            }
            Ok(()) = leads.changed() => again = None,
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
        }
        heard = None;
        gathered.facts.limits_known = gathered.knows_limits();
        let waits = waits(&settings, &gathered);
        let made = report(&gathered.facts, &waits);
        measure(&settings, &gathered.facts, &made);
        let judged = known.publish(&gathered.facts, made);
        // Before everything was listed nothing is written: what seems to be missing may exist.
        if !gathered.unlisted().is_empty() || !settings.leads.now() {
            (again, look) = (None, None);
            continue;
        }
        if again.is_some_and(|at| at > Instant::now()) {
            continue;
        }
        let written = writer.write(&settings, &judged.0, &judged.1).await;
        settings.watches.unwritten("boot images", written.as_ref().err().cloned());
        again = match written {
            Ok(()) => {
                backoff.reset();
                None
            }
            Err(problem) => {
                tracing::warn!("not written: {}", problem.why);
                Some(Instant::now() + backoff.next_wait())
            }
        };
        look = writer.again();
    }
}

/// What was not listed yet, with what the API server says of it.
fn waits(settings: &Settings, gathered: &Gathered) -> Vec<String> {
    let unlisted = gathered.unlisted();
    let said = settings.watches.waiting();
    let of = |name: &str| said.iter().find(|line| line.starts_with(&format!("{name}:"))).cloned();
    unlisted
        .into_iter()
        .map(|name| of(name).unwrap_or_else(|| format!("{name}: not listed yet")))
        .collect()
}

fn measure(settings: &Settings, facts: &Facts, report: &Report) {
    for outcome in OUTCOMES {
        let count = report.resources.iter().filter(|it| it.verdict.outcome == outcome).count();
        let gauge =
            settings.metrics.boot_images.get_or_create(&WithVerdict { verdict: outcome.as_str() });
        gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
    }
    let before = facts.object.as_deref().and_then(|object| object.status.as_ref());
    settings.metrics.boot_images_block.set(i64::from(holds_back(report, before)));
    settings.metrics.boot_images_none.set(i64::from(report.mode == SkewMode::None));
}
