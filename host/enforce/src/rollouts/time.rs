//! Asking the API server what time it is, where nothing else is asked that says so.

use super::settings::Settings;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tread_kube::asking::{Backoff, Call};
use tread_kube::dated;

/// How old an answer may be that something goes by: clocks that only count go wrong by less than a
/// second meanwhile, unless the machine sleeps.
const OLD: Duration = Duration::from_secs(600);
/// How long is waited after there was no answer, at first and at most.
const WAITS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));
/// What is cheap to read.
const PATH: &str = "/apis/tread.dev/v1alpha1/rollouts?limit=1";

/// Who asks, one task at a time.
#[derive(Default)]
pub(crate) struct Asking(JoinSet<()>);

impl Asking {
    /// Asks until there is an answer, where there is none yet or an old one.
    pub(crate) fn ask_if_old(&mut self, settings: &Settings) {
        if settings.acts.clock.age().is_some_and(|age| age < OLD) || !self.0.is_empty() {
            return;
        }
        let acts = settings.acts.clone();
        self.0.spawn(async move {
            let mut backoff = Backoff::new(WAITS);
            loop {
                let asked = Instant::now();
                let call = Call::new("list", "rollouts");
                match dated::read::<serde_json::Value>(&acts.client, &acts.metrics, call, PATH)
                    .await
                {
                    Ok(answer) => return acts.clock.hears(answer.at, asked),
                    Err(failed) => {
                        tracing::warn!(error = %failed, "what time it is is not known");
                        sleep(backoff.next_wait()).await;
                    }
                }
            }
        });
    }

    /// When there is an answer.
    pub(crate) async fn ended(&mut self) {
        if self.0.join_next().await.is_none() {
            std::future::pending().await
        }
    }
}
