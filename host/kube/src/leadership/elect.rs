//! Waiting for the Lease, holding it, and giving it up.

use super::leading::{State, lock};
use super::record::{Observed, Timings, held, holder, released};
use crate::api::words::MANAGER;
use crate::asking::{Call, CallOutcome, Failed, ask_before, jittered};
use crate::metrics::Metrics;
use futures::StreamExt as _;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::PostParams;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::watch_object;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

/// What is asked for.
const LEASES: &str = "leases";
/// How long it is before the Lease is read where it cannot be watched.
const READ_AGAIN: Duration = Duration::from_secs(2);
/// How often giving up the Lease is tried.
const RELEASE_TRIES: usize = 3;

pub(super) struct Candidate {
    pub(super) api: Api<Lease>,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) identity: String,
    pub(super) timings: Timings,
    pub(super) metrics: Metrics,
    pub(super) may_lead: watch::Receiver<bool>,
    pub(super) leads: watch::Sender<bool>,
    pub(super) state: Arc<Mutex<State>>,
}

/// A Lease that is this candidate's.
struct Held {
    lease: Lease,
    /// Counted from before the request that made it so.
    until: Instant,
}

/// Why nobody waits or leads any more.
enum End {
    Lost,
    /// This candidate may not lead any more. Others may take over when the Lease has ended: what it
    /// writes at this moment has ended by then.
    Denied,
    Stopped,
}

/// Why a request came to nothing.
enum Failure {
    /// Somebody else was faster, or the Lease is gone: it has to be read again.
    Outdated,
    Other,
}

impl Candidate {
    pub(super) async fn run(self, stop: impl Future<Output = ()>) {
        let mut stop = pin!(stop);
        let mut led = false;
        loop {
            let Some(held) = self.wait(stop.as_mut(), led).await else { return };
            let end = self.lead(held, stop.as_mut()).await;
            self.step_down();
            led = true;
            if matches!(end, End::Stopped) {
                self.release().await;
                return;
            }
        }
    }

    /// Waits until the Lease can be taken, and takes it. `led` says whether this candidate led before.
    async fn wait<F: Future<Output = ()>>(&self, mut stop: Pin<&mut F>, led: bool) -> Option<Held> {
        let mut changes = pin!(watch_object(self.api.clone(), &self.name).default_backoff());
        let mut may_lead = self.may_lead.clone();
        let mut seen: Option<Observed> = None;
        let mut not_before = Instant::now();
        // A watch that failed is begun again later each time. Meanwhile the Lease is read.
        let mut read_at = None;
        loop {
            let may = *may_lead.borrow_and_update();
            let free = seen
                .as_ref()
                .filter(|_| may)
                .map(|seen| seen.free_at(&self.identity, &self.timings).max(not_before));
            tokio::select! {
                () = stop.as_mut() => return None,
                change = changes.next() => match change {
                    Some(Ok(lease)) => {
                        self.solved();
                        read_at = None;
                        seen = Some(self.note(seen, lease, led));
                    }
                    Some(Err(error)) => {
                        let failed = Failed::watch(&error, LEASES).counted(&self.metrics);
                        self.problem(&format!("cannot be watched: {failed}"));
                        read_at = read_at.or_else(|| Some(Instant::now() + jittered(READ_AGAIN)));
                    }
                    // The stream does not end; if it did, this would not spin.
                    None => sleep(self.timings.retry).await,
                },
                () = until(read_at) => {
                    match self.read().await {
                        Some(lease) => {
                            read_at = None;
                            seen = Some(self.note(seen, lease, led));
                        }
                        None => read_at = Some(Instant::now() + jittered(READ_AGAIN)),
                    }
                }
                Ok(()) = may_lead.changed() => {}
                () = until(free) => {
                    let lease = seen.as_ref().and_then(|seen| seen.lease.as_ref());
                    match self.take(lease).await {
                        Ok(held) => return Some(held),
                        // What was seen is old: the watch may be cut.
                        Err(Failure::Outdated) => {
                            if let Some(lease) = self.read().await {
                                seen = Some(self.note(seen, lease, led));
                            }
                            not_before = Instant::now() + jittered(self.timings.retry);
                        }
                        Err(Failure::Other) => not_before = Instant::now() + jittered(self.timings.retry),
                    }
                }
            }
        }
    }

    /// Renews the Lease for as long as that is possible.
    async fn lead<F: Future<Output = ()>>(&self, held: Held, mut stop: Pin<&mut F>) -> End {
        let Held { mut lease, until } = held;
        let mut until = until;
        lock(&self.state).until = Some(until);
        self.metrics.leads.set(1);
        self.leads.send_replace(true);
        tracing::info!(lease = %self.name, identity = %self.identity, "leads");
        let mut next = Instant::now() + self.timings.renew;
        let mut may_lead = self.may_lead.clone();
        loop {
            tokio::select! {
                biased;
                () = stop.as_mut() => return End::Stopped,
                () = denied(&mut may_lead) => {
                    tracing::warn!(lease = %self.name, "may not lead any more");
                    return End::Denied;
                }
                () = sleep_until(until) => {
                    tracing::warn!(lease = %self.name, "could not renew in time, and leads no longer");
                    return End::Lost;
                }
                () = sleep_until(next) => {}
            }
            match self.write(Some(&lease), Some(until)).await {
                Ok(held) => {
                    lease = held.lease;
                    until = held.until;
                    lock(&self.state).until = Some(until);
                    next = Instant::now() + self.timings.renew;
                }
                Err(Failure::Outdated) => match self.read_before(until).await {
                    // An earlier renewal came through, and its answer did not.
                    Some(Some(now)) if holder(&now) == Some(self.identity.as_str()) => {
                        lease = now;
                        next = Instant::now() + jittered(self.timings.retry);
                    }
                    Some(now) => {
                        let by = now.as_ref().and_then(holder).unwrap_or("nobody");
                        tracing::warn!(lease = %self.name, "was taken away, and is held by {by}");
                        return End::Lost;
                    }
                    None => next = Instant::now() + jittered(self.timings.retry),
                },
                Err(Failure::Other) => next = Instant::now() + jittered(self.timings.retry),
            }
        }
    }

    fn step_down(&self) {
        let mut state = lock(&self.state);
        state.until = None;
        state.holder = None;
        drop(state);
        self.metrics.leads.set(0);
        self.leads.send_replace(false);
    }

    /// Gives the Lease up, so that nobody has to wait until it ends by itself.
    async fn release(&self) {
        for _ in 0..RELEASE_TRIES {
            match self.read().await {
                Some(Some(lease)) if holder(&lease) == Some(self.identity.as_str()) => {
                    let lease = released(lease);
                    let deadline = Instant::now() + self.timings.request;
                    if self.replace(&lease, deadline).await.is_ok() {
                        tracing::info!(lease = %self.name, "gave the Lease up");
                        return;
                    }
                }
                Some(_) => return,
                None => {}
            }
            sleep(jittered(self.timings.retry)).await;
        }
        tracing::warn!(lease = %self.name, "could not be given up: others wait until it ends");
    }

    async fn take(&self, lease: Option<&Lease>) -> Result<Held, Failure> {
        let held = self.write(lease, None).await?;
        self.note(None, Some(held.lease.clone()), false);
        Ok(held)
    }

    /// Takes or renews the Lease as it was seen; the answer has to be here before
    /// the time that is left is over.
    async fn write(&self, lease: Option<&Lease>, left: Option<Instant>) -> Result<Held, Failure> {
        let begun = Instant::now();
        let name = (self.namespace.as_str(), self.name.as_str());
        let wanted = held(lease, name, &self.identity, self.timings.lease, Timestamp::now());
        let answer_by = begun + self.timings.request;
        let answer_by = left.map_or(answer_by, |left| left.min(answer_by));
        let lease = if lease.is_some() {
            self.replace(&wanted, answer_by).await?
        } else {
            let params = params();
            self.ask("create", answer_by, self.api.create(&params, &wanted)).await?
        };
        self.solved();
        Ok(Held { lease, until: begun + self.timings.deadline })
    }

    async fn replace(&self, lease: &Lease, answer_by: Instant) -> Result<Lease, Failure> {
        self.ask("update", answer_by, self.api.replace(&self.name, &params(), lease)).await
    }

    /// The Lease as it is now; None: that is not known.
    async fn read(&self) -> Option<Option<Lease>> {
        self.read_before(Instant::now() + self.timings.request).await
    }

    async fn read_before(&self, left: Instant) -> Option<Option<Lease>> {
        let answer_by = left.min(Instant::now() + self.timings.request);
        self.ask("get", answer_by, self.api.get_opt(&self.name)).await.ok()
    }

    async fn ask<T>(
        &self,
        verb: &'static str,
        answer_by: Instant,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, Failure> {
        let call = Call::new(verb, LEASES).within(&self.namespace);
        let failed = match ask_before(answer_by, &self.metrics, call, request).await {
            Ok(answer) => return Ok(answer),
            Err(failed) => failed,
        };
        match failed.outcome {
            // A namespace that does not exist is never there when a Lease is created.
            CallOutcome::Gone if verb == "create" => {
                self.problem(&format!("cannot be created: {failed}"));
                Err(Failure::Outdated)
            }
            CallOutcome::Gone | CallOutcome::Conflict => Err(Failure::Outdated),
            CallOutcome::Forbidden
            | CallOutcome::Unauthenticated
            | CallOutcome::Refused
            | CallOutcome::Unanswered
            | CallOutcome::Unreadable => {
                self.problem(&format!("cannot be read or written ({verb}): {failed}"));
                Err(Failure::Other)
            }
        }
    }

    fn note(&self, earlier: Option<Observed>, lease: Option<Lease>, led: bool) -> Observed {
        let seen = Observed::note(earlier, lease, led, Instant::now());
        lock(&self.state).holder = seen.holder().map(str::to_owned);
        seen
    }

    /// Says what is wrong, once.
    fn problem(&self, problem: &str) {
        let mut state = lock(&self.state);
        if state.problem.as_deref() != Some(problem) {
            tracing::warn!(lease = %format_args!("{}/{}", self.namespace, self.name), "{problem}");
            state.problem = Some(problem.to_owned());
        }
    }

    fn solved(&self) {
        lock(&self.state).problem = None;
    }
}

fn params() -> PostParams {
    PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() }
}

/// Waits until this candidate may not lead.
async fn denied(may_lead: &mut watch::Receiver<bool>) {
    if may_lead.wait_for(|may| !may).await.is_err() {
        // Nobody says anything else any more.
        std::future::pending().await
    }
}

/// Waits for a time that may not be known yet.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}
