//! Threads that make plans, beside those that serve: always the same, since what
//! each of them allocates and frees is soon needed again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use tokio::sync::{Semaphore, oneshot};

/// How many plans are made at the same time: as many as there are processors to
/// make them.
const AT_ONCE: usize = 2;

type Job = Box<dyn FnOnce() + Send>;

/// Makes plans. Clones share the threads, which end with the last of them.
#[derive(Debug, Clone)]
pub(super) struct Planners {
    jobs: Sender<Job>,
    permits: Arc<Semaphore>,
}

impl Planners {
    pub(super) fn start() -> Planners {
        let (sender, receiver) = channel::<Job>();
        let jobs = Arc::new(Mutex::new(receiver));
        let mut threads = 0;
        for _ in 0..AT_ONCE {
            let jobs = Arc::clone(&jobs);
            let started = Builder::new().name("tread-plans".to_owned()).spawn(move || work(&jobs));
            match started {
                Ok(_) => threads += 1,
                Err(error) => tracing::error!("a thread that makes plans cannot start: {error}"),
            }
        }
        Planners { jobs: sender, permits: Arc::new(Semaphore::new(threads.max(1))) }
    }

    /// What this comes to; None if it panicked. It is not begun for somebody who
    /// does not wait for it any more.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        make: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok()?;
        let (done, made) = oneshot::channel();
        let job = move || {
            if !done.is_closed() {
                let _ = done.send(make());
            }
            drop(permit);
        };
        self.jobs.send(Box::new(job)).ok()?;
        made.await.ok()
    }
}

fn work(jobs: &Mutex<Receiver<Job>>) {
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        // Whoever waits learns of it, and the log has it already.
        let _ = catch_unwind(AssertUnwindSafe(job));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_that_panics_is_none_and_the_others_are_made() {
        let planners = Planners::start();
        for number in 0..2 * AT_ONCE {
            // Unwinds as a panic does, and prints nothing.
            let panics = planners.run(|| std::panic::resume_unwind(Box::new("on purpose")));
            let panics: Option<()> = panics.await;
            assert_eq!((panics, planners.run(move || number).await), (None, Some(number)));
        }
    }

    #[tokio::test]
    async fn as_many_are_made_at_a_time_as_there_are_threads_and_they_are_always_the_same() {
        let planners = Planners::start();
        let all = (0..20).map(|_| planners.run(|| std::thread::current().id()));
        let mut threads: Vec<_> = futures::future::join_all(all).await;
        threads.dedup();
        let mut different = Vec::new();
        for thread in threads.into_iter().flatten() {
            if !different.contains(&thread) {
                different.push(thread);
            }
        }
        assert!((1..=AT_ONCE).contains(&different.len()), "{different:?}");
    }
}
