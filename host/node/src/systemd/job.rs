//! Systemd's jobs: asked for, waited for, and cancelled when their time is over.

use super::bus::Unanswered;
use super::facts::UnitFacts;
use super::job_result::JobResult;
use super::manager::Manager;
use futures::StreamExt;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};
use zbus::{Message, MessageStream, OwnedObjectPath};

/// How often it is looked whether a job is still there, should its end not be heard of: a
/// bus that is started anew forgets who listens.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// How long cancelling a job may take.
const CANCEL: Duration = Duration::from_secs(5);

/// Why nothing is known of how a job ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoJob {
    /// It could not be asked for.
    Unanswered(Unanswered),
    /// Its time was over, and it was cancelled, or not.
    Late { cancelled: bool },
}

impl Manager {
    /// Asks for a job of a unit and waits for its end.
    pub(crate) async fn run_job<B>(
        &self,
        (path, id): (&OwnedObjectPath, &str),
        method: &str,
        body: &B,
        deadline: Instant,
    ) -> Result<JobResult, NoJob>
    where
        B: serde::Serialize + zbus::DynamicType,
    {
        // Before the call: a job may end before its caller is told what it is called.
        let mut ends = self.ends_of_jobs(id, deadline).await.map_err(NoJob::Unanswered)?;
        let (job, heard) = match self.ask_for_job(method, body, &mut ends, deadline).await {
            Ok(asked) => asked,
            Err(Unanswered::Lost(_)) => return Ok(JobResult::Unheard),
            Err(Unanswered::Late) => return Err(self.give_up(path, None).await),
            Err(refused) => return Err(NoJob::Unanswered(refused)),
        };
        if let Some((_, result)) = heard.into_iter().find(|(ended, _)| *ended == job) {
            return Ok(result);
        }
        match timeout_at(deadline, self.end_of(&job, path, &mut ends)).await {
            Ok(result) => Ok(result),
            Err(_) => Err(self.give_up(path, Some(&job)).await),
        }
    }

    /// What the job is called, and the jobs that ended before that was known.
    async fn ask_for_job<B>(
        &self,
        method: &str,
        body: &B,
        ends: &mut MessageStream,
        deadline: Instant,
    ) -> Result<(OwnedObjectPath, Vec<Ended>), Unanswered>
    where
        B: serde::Serialize + zbus::DynamicType,
    {
        let mut heard = Vec::new();
        let call = self.call(method, body, deadline);
        tokio::pin!(call);
        loop {
            tokio::select! {
                // What ended before the answer is in the queue before the answer.
                biased;
                Some(message) = ends.next() => heard.extend(message.ok().as_ref().and_then(ended)),
                job = &mut call => return Ok((job?, heard)),
            }
        }
    }

    async fn end_of(
        &self,
        job: &OwnedObjectPath,
        path: &OwnedObjectPath,
        ends: &mut MessageStream,
    ) -> JobResult {
        let mut listening = true;
        loop {
            tokio::select! {
                biased;
                message = ends.next(), if listening => match message {
                    Some(message) => {
                        if let Some((_, result)) =
                            message.ok().as_ref().and_then(ended).filter(|it| it.0 == *job)
                        {
                            return result;
                        }
                    }
                    None => listening = false,
                },
                () = sleep(LOOK_AGAIN) => {
                    let facts = self.facts_at(path, self.soon()).await;
                    // What was said while it was looked is heard first.
                    let gone = facts.is_ok_and(|facts| !has_job(&facts, job));
                    if gone && futures::FutureExt::now_or_never(ends.next()).flatten().is_none() {
                        return JobResult::Unheard;
                    }
                }
            }
        }
    }

    /// Cancels a job whose time is over: without its name, what the unit is at.
    async fn give_up(&self, path: &OwnedObjectPath, job: Option<&OwnedObjectPath>) -> NoJob {
        let until = Instant::now() + CANCEL;
        let id = match job {
            Some(job) => number(job),
            None => self.facts_at(path, until).await.ok().and_then(|facts| facts.job),
        };
        let Some(id) = id else { return NoJob::Late { cancelled: false } };
        let cancelled = self.call::<_, ()>("CancelJob", &(id,), until).await.is_ok();
        NoJob::Late { cancelled }
    }
}

type Ended = (OwnedObjectPath, JobResult);

fn ended(message: &Message) -> Option<Ended> {
    let body = message.body();
    let (_, job, _, result): (u32, OwnedObjectPath, String, String) = body.deserialize().ok()?;
    Some((job, JobResult::of(&result)))
}

fn has_job(facts: &UnitFacts, job: &OwnedObjectPath) -> bool {
    facts.job.is_some() && facts.job == number(job)
}

/// The number of a job by its path: `/org/freedesktop/systemd1/job/42`.
fn number(job: &OwnedObjectPath) -> Option<u32> {
    job.as_str().rsplit_once('/')?.1.parse().ok()
}
