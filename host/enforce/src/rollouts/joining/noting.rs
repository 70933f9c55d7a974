//! When many machines boot with the same config at once, one of them has it noted for all.

use super::kept::Until;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tread_kube::asking::Failed;

/// So long what was noted here counts before the watch brings it.
const FRESH: Duration = Duration::from_secs(10);

/// What is noted, one after the other.
#[derive(Debug, Default)]
pub(super) struct Noting(Mutex<Now>);

#[derive(Debug, Default)]
struct Now {
    /// By config, what was noted last, and when.
    noted: BTreeMap<String, (Until, Instant)>,
    /// Why the last try failed, and when.
    failed: Option<(String, Instant)>,
}

impl Noting {
    /// Has a config noted by `write`, unless `is_noted` says that it is noted already, or it just
    /// was. Callers that waited while a try failed get the same error.
    pub(super) async fn once(
        &self,
        config: &str,
        until: Until,
        is_noted: impl Fn() -> bool,
        write: impl AsyncFnOnce() -> Result<(), Failed>,
    ) -> Result<(), String> {
        if is_noted() {
            return Ok(());
        }
        let begun = Instant::now();
        let mut now = self.0.lock().await;
        now.noted.retain(|_, (_, at)| at.elapsed() < FRESH);
        let just = now.noted.get(config).map(|(just, _)| *just);
        if is_noted() || just.is_some_and(|just| just.needs_agent == until.needs_agent) {
            return Ok(());
        }
        if let Some((why, _)) = now.failed.as_ref().filter(|(_, at)| *at >= begun) {
            return Err(why.clone());
        }
        match write().await {
            Ok(()) => {
                now.noted.insert(config.to_owned(), (until, Instant::now()));
                now.failed = None;
                Ok(())
            }
            Err(failed) => {
                now.failed = Some((failed.to_string(), Instant::now()));
                Err(failed.to_string())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::future::join_all;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tread_kube::asking::Call;

    const UNTIL: Until = Until { at: 10, needs_agent: false };

    #[tokio::test]
    async fn of_many_at_once_one_writes_and_all_wait_for_it() {
        let (noting, writes) = (Noting::default(), AtomicUsize::new(0));
        let note = |config: &'static str, until, is_well: bool| {
            let writes = &writes;
            noting.once(
                config,
                until,
                || false,
                async move || {
                    tokio::task::yield_now().await;
                    writes.fetch_add(1, Ordering::SeqCst);
                    let failed = || Call::new("patch", "configmaps").refused("no".to_owned());
                    if is_well { Ok(()) } else { Err(failed()) }
                },
            )
        };
        let many = async |config, until, is_well| {
            let all = join_all((0..200).map(|_| note(config, until, is_well))).await;
            (all.iter().filter(|it| it.is_ok()).count(), writes.swap(0, Ordering::SeqCst))
        };
        assert_eq!(many("a", UNTIL, true).await, (200, 1));
        assert_eq!(many("a", UNTIL, true).await, (200, 0), "it just was");
        assert_eq!(many("a", Until { needs_agent: true, ..UNTIL }, true).await, (200, 1));
        assert_eq!(many("b", UNTIL, false).await, (0, 1), "all are told");
        assert_eq!(many("b", UNTIL, true).await, (200, 1), "the next ones try it again");
        noting.0.lock().await.noted.values_mut().for_each(|(_, at)| *at -= FRESH);
        assert_eq!(many("a", UNTIL, true).await, (200, 1), "the watch says otherwise");
    }
}
