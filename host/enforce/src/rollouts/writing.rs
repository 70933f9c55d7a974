//! What is known of rollouts is written by one task at a time, so that an API server that answers
//! slowly keeps nobody from looking at nodes.

use super::joining::Missing;
use super::known::Moment;
use super::machines;
use super::objects;
use super::progress::waits_since;
use super::render::{Made, deliver};
use super::scene::Scene;
use super::settings::Settings;
use super::tidy::{kept, tidy};
use super::workers::Draining;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tread_cluster::previews::Cluster;
use tread_kube::asking::{Backoff, CallOutcome, Failed};
use tread_model::text::one_line_within;

/// The status of a pool is written so often at most.
const STATUS_EVERY: Duration = Duration::from_secs(1);
/// After so long a pool is looked at again that somebody wrote meanwhile.
const READ_AGAIN: Duration = Duration::from_millis(200);
/// How long is waited after a failure, at first and at most.
const WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// The longest wait after a failure that is about one object, and not about the whole API server:
/// whoever blocks one object delays the writing of all others by this.
const OF_ONE: Duration = Duration::from_secs(5);

/// A sentence is no longer.
const LONGEST_WHY: usize = 1024;

/// What is written.
pub(crate) struct Writes {
    pub(crate) cluster: Cluster,
    pub(crate) moment: Arc<Moment>,
    pub(crate) made: BTreeMap<String, Made>,
    pub(crate) scene: Arc<Scene>,
    pub(crate) draining: BTreeMap<String, Draining>,
    /// Machines that registered no node, by pool.
    pub(crate) missing: Missing,
    /// Rendered configs that nobody names are removed, but for these, which machines boot with.
    pub(crate) tidies: Option<Vec<String>>,
}

/// Who writes.
pub(crate) struct Writer {
    tasks: JoinSet<Written>,
    /// Whether something was to be written while something else was.
    was_busy: bool,
    /// When the status of each pool was written last.
    status_written: BTreeMap<String, Instant>,
    /// Why what a pool is to have could not be written, by pool.
    not_written: BTreeMap<String, String>,
    backoff: Backoff,
    /// Before this nothing is written again: something failed.
    not_before: Option<Instant>,
}

/// What writing came to.
struct Written {
    status_written: BTreeMap<String, Instant>,
    not_written: BTreeMap<String, String>,
    /// When there is more to write.
    again: Option<Instant>,
    failed: Option<Failed>,
}

impl Written {
    fn soon(&mut self, at: Instant) {
        self.again = Some(self.again.map_or(at, |again| again.min(at)));
    }
}

impl Default for Writer {
    fn default() -> Writer {
        Writer {
            tasks: JoinSet::new(),
            was_busy: false,
            status_written: BTreeMap::new(),
            not_written: BTreeMap::new(),
            backoff: Backoff::new(WAITS),
            not_before: None,
        }
    }
}

impl Writer {
    /// Whether it can begin; if not, it says later that there is more to write.
    pub(crate) fn is_free(&mut self) -> bool {
        self.was_busy |= !self.tasks.is_empty();
        self.tasks.is_empty() && self.not_before.is_none_or(|at| at <= Instant::now())
    }

    /// When it can begin again, where it waits after a failure.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.not_before.filter(|_| self.tasks.is_empty())
    }

    /// Why what a pool is to have could not be written when it was tried last, by pool.
    pub(crate) fn not_written(&self) -> &BTreeMap<String, String> {
        &self.not_written
    }

    /// Another replica writes: what could not be written is no matter of this one.
    pub(crate) fn rest(&mut self) {
        self.not_before = None;
        self.backoff.reset();
    }

    /// Begins to write.
    pub(crate) fn begin(&mut self, settings: &Settings, writes: Writes) {
        (self.was_busy, self.not_before) = (false, None);
        let (settings, status_written) = (settings.clone(), self.status_written.clone());
        let mut not_written = self.not_written.clone();
        not_written.retain(|pool, _| writes.scene.pools.contains_key(pool));
        self.tasks.spawn(async move {
            let mut written = Written { status_written, not_written, again: None, failed: None };
            written.status_written.retain(|pool, _| writes.scene.pools.contains_key(pool));
            written.failed = write(&settings, &writes, &mut written).await.err();
            written
        });
    }

    /// When there is more to write, once what is being written is written.
    pub(crate) async fn ended(&mut self) -> Option<Instant> {
        let Some(joined) = self.tasks.join_next().await else {
            return std::future::pending().await;
        };
        let now = self.was_busy.then(Instant::now);
        let Ok(Written { status_written, not_written, again, failed }) = joined else {
            tracing::error!("writing what is known of rollouts was interrupted; please report it");
            self.not_before = Some(Instant::now() + self.backoff.next_wait());
            return self.not_before;
        };
        (self.status_written, self.not_written) = (status_written, not_written);
        match failed {
            Some(failed) => {
                tracing::warn!(error = %failed, "what is known of rollouts cannot be written");
                let wait = self.backoff.next_wait();
                let is_of_all = failed.outcome == CallOutcome::Unanswered;
                let wait = if is_of_all { wait } else { wait.min(OF_ONE) };
                self.not_before = Some(Instant::now() + wait);
                self.not_before
            }
            None => {
                self.backoff.reset();
                self.not_before = None;
                [now, again].into_iter().flatten().min()
            }
        }
    }
}

/// Writes all of it, also where one thing cannot be written; says what could not first.
async fn write(settings: &Settings, writes: &Writes, written: &mut Written) -> Result<(), Failed> {
    let Writes { cluster, moment, made, scene, .. } = writes;
    let mut done = Ok(());
    if !moment.has_operators_daemon {
        for (name, pool) in &cluster.pools {
            let Some(Ok(made)) = made.get(name) else { continue };
            // Whoever leads by now may know more.
            if !settings.leads.now() {
                return done;
            }
            match deliver(settings, pool, cluster, made).await {
                // Somebody wrote the pool meanwhile: what it is to have is looked at again.
                Err(failed) if failed.outcome == CallOutcome::Conflict => {
                    written.soon(Instant::now() + READ_AGAIN);
                }
                // What is refused stays so until somebody changes something; all else passes.
                Err(failed) if failed.outcome != CallOutcome::Unanswered => {
                    let why = format!("{} is made, and cannot be written: {failed}", made.name);
                    written.not_written.insert(name.clone(), one_line_within(&why, LONGEST_WHY).0);
                    done = done.and(Err(failed));
                }
                delivered => {
                    if delivered.is_ok() {
                        written.not_written.remove(name);
                    }
                    done = done.and(delivered);
                }
            }
        }
        done = done.and(objects::make(settings, cluster, moment, scene).await);
        done = done.and(objects::write_node_conditions(settings, moment, scene).await);
        done = done.and(machines::tidy(settings, moment, scene).await);
        if let Some(served) = &writes.tidies {
            done = done.and(tidy(settings, cluster, moment, kept(served, made)).await);
        }
    }
    done.and(write_statuses(settings, writes, written).await)
}

/// Writes how far each pool is into its status, and not too often.
async fn write_statuses(
    settings: &Settings,
    writes: &Writes,
    written: &mut Written,
) -> Result<(), Failed> {
    let Writes { cluster, moment, scene, draining, .. } = writes;
    let mut done = Ok(());
    for (name, of_pool) in &scene.pools {
        let (Some(rollout), Some(pool)) = (moment.rollouts.get(name), cluster.pools.get(name))
        else {
            continue;
        };
        let next = written.status_written.get(name).map(|last| *last + STATUS_EVERY);
        if let Some(next) = next.filter(|at| *at > Instant::now()) {
            written.soon(next);
            continue;
        }
        let known = objects::known_of(settings, name);
        let missing = writes.missing.get(name).map(Vec::as_slice).unwrap_or_default();
        let with = (draining, missing);
        let since = waits_since(of_pool, cluster);
        let by_rollout =
            objects::write_rollout_status(settings, rollout, of_pool, with, since.as_ref()).await;
        let by_pool = objects::write_pool_status(settings, &known, pool, of_pool).await;
        if by_rollout.as_ref().is_ok_and(|was_written| *was_written)
            || by_pool.as_ref().is_ok_and(|was_written| *was_written)
        {
            written.status_written.insert(name.clone(), Instant::now());
        }
        done = done.and(by_rollout.map(drop)).and(by_pool.map(drop));
    }
    done
}
