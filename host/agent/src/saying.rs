//! Writing what a NodeUpdate's status says: seldom, the newest alone, and again until it is there.

use crate::kept::Keeps;
use crate::status::{digest, patch, patch_in_boot};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::Value;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tread_kube::api::NodeUpdate;
use tread_kube::api::node_update::{NodeUpdateStatus, UpdatePhase};
use tread_kube::asking::{Backoff, Call, CallOutcome, ask};
use tread_kube::metrics::Metrics;

/// The least time between two writes that change the step or the message, but not the phase.
const BETWEEN: Duration = Duration::from_secs(15);
/// How many such writes an operation may take: with those of new phases, ten at most.
const MOST_STEPS: usize = 4;
/// The least time between two after that: the newest text is there in the end.
const SELDOM: Duration = Duration::from_secs(600);
const LEAST: Duration = Duration::from_secs(1);
const MOST: Duration = Duration::from_secs(120);

/// How often it is written.
#[derive(Debug, Default)]
struct Budget {
    of: Option<String>,
    phase: Option<UpdatePhase>,
    steps: usize,
    last: Option<Instant>,
}

/// What is known of the NodeUpdate by what was written into it.
#[derive(Debug, Default)]
struct Written {
    budget: Budget,
    /// The boot that it says, by this process's word.
    boot: Option<String>,
}

/// When a status may be written.
#[derive(Debug, PartialEq, Eq)]
enum When {
    Now,
    At(Instant),
}

impl Budget {
    fn when(&self, status: &NodeUpdateStatus) -> When {
        if self.of != status.operation || self.phase != status.phase {
            return When::Now;
        }
        let is_seldom = self.steps >= MOST_STEPS && !self.is_at_rest();
        let between = if is_seldom { SELDOM } else { BETWEEN };
        self.last.map_or(When::Now, |last| When::At(last + between))
    }

    /// Between operations nothing is counted.
    fn is_at_rest(&self) -> bool {
        self.phase.is_none_or(|phase| tread_model::protocol::Phase::from(phase).is_end())
    }

    fn written(&mut self, status: &NodeUpdateStatus, now: Instant) {
        if self.of != status.operation {
            self.steps = 0;
        } else if self.phase == status.phase {
            self.steps += 1;
        }
        (self.of, self.phase) = (status.operation.clone(), status.phase);
        self.last = Some(now);
    }
}

/// Writes for ever what is said.
pub(crate) async fn say(
    client: Client,
    keeps: Arc<Keeps>,
    mut said: watch::Receiver<Option<NodeUpdateStatus>>,
) -> Infallible {
    // Nobody collects what is counted on a node: failures are logged.
    let (updates, metrics): (Api<NodeUpdate>, _) = (Api::all(client), Metrics::new());
    let (mut before, mut backoff) = (Written::default(), Backoff::new((LEAST, MOST)));
    loop {
        let status = said.borrow_and_update().clone();
        let again = match status {
            None => None,
            Some(status) => match write((&updates, &metrics), &keeps, &mut before, &status).await {
                Ok(again) => {
                    backoff.reset();
                    again
                }
                Err(error) => {
                    tracing::warn!(
                        error,
                        "the node's NodeUpdate is not written; it is tried again"
                    );
                    Some(Instant::now() + backoff.next_wait())
                }
            },
        };
        let changed = async {
            if said.changed().await.is_err() {
                // Nobody says anything any more.
                std::future::pending::<()>().await;
            }
        };
        match again {
            None => changed.await,
            Some(again) => tokio::select! {
                () = changed => {}
                () = sleep_until(again) => {}
            },
        }
    }
}

/// Writes it, unless that was done, or it is not time: when it is, then.
async fn write(
    (updates, metrics): (&Api<NodeUpdate>, &Metrics),
    keeps: &Keeps,
    before: &mut Written,
    status: &NodeUpdateStatus,
) -> Result<Option<Instant>, String> {
    let text = |error: io::Error| error.to_string();
    let (digest, kept) = (digest(status).map_err(text)?, keeps.get());
    if kept.written.as_ref() == Some(&digest) || kept.node.is_empty() {
        return Ok(None);
    }
    match before.budget.when(status) {
        // What is lost is said again at once.
        When::At(at) if at > Instant::now() && kept.written.is_some() => return Ok(Some(at)),
        When::At(_) | When::Now => {}
    }
    let boot = status.boot_id.as_deref().filter(|boot| before.boot.as_deref() == Some(boot));
    let write: Patch<Value> = match boot {
        Some(boot) => {
            let steps = patch_in_boot(status, boot).map_err(text)?;
            Patch::Json(serde_json::from_value(steps).map_err(|error| error.to_string())?)
        }
        None => Patch::Merge(patch(status).map_err(text)?),
    };
    let params = PatchParams::default();
    let call = Call::new("patch", "nodeupdates").of_status();
    let written = ask(metrics, call, updates.patch_status(&kept.node, &params, &write)).await;
    if let Err(failed) = written {
        // The NodeUpdate may have been made anew, without a boot id: the next write sets it.
        before.boot = None;
        return match failed.outcome {
            CallOutcome::Refused if boot.is_some() => Ok(Some(Instant::now())),
            _ => Err(failed.to_string()),
        };
    }
    before.boot.clone_from(&status.boot_id);
    before.budget.written(status, Instant::now());
    keeps.change(|kept| kept.written = Some(digest)).map_err(text)?;
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(operation: &str, phase: UpdatePhase, step: &str) -> NodeUpdateStatus {
        NodeUpdateStatus {
            operation: Some(operation.to_owned()),
            phase: Some(phase),
            step: Some(step.to_owned()),
            ..NodeUpdateStatus::default()
        }
    }

    fn budget_after_all_steps(now: Instant) -> Budget {
        let mut budget = Budget::default();
        for step in 0..=MOST_STEPS {
            budget.written(&status("one", UpdatePhase::Begun, &step.to_string()), now);
        }
        budget
    }

    #[test]
    fn an_operation_is_written_ten_times_at_most_and_each_phase_at_once() {
        let (mut budget, mut now, mut writes) = (Budget::default(), Instant::now(), 0);
        let phases = [
            UpdatePhase::Waiting,
            UpdatePhase::Begun,
            UpdatePhase::NeedsBoot,
            UpdatePhase::Begun,
            UpdatePhase::Done,
        ];
        for phase in phases {
            assert_eq!(budget.when(&status("one", phase, "")), When::Now, "{phase:?}");
            for step in 0..100 {
                now += Duration::from_secs(1);
                let status = status("one", phase, &step.to_string());
                let is_due = match budget.when(&status) {
                    When::Now => true,
                    When::At(at) => at <= now && phase != UpdatePhase::Done,
                };
                if is_due {
                    budget.written(&status, now);
                    writes += 1;
                }
            }
        }
        assert!(writes <= 10, "{writes}");
        // The newest text is there in the end.
        let waits = budget_after_all_steps(now);
        let newest = status("one", UpdatePhase::Begun, "it goes no further");
        assert_eq!(waits.when(&newest), When::At(now + SELDOM));
        assert_eq!(budget.when(&status("two", UpdatePhase::Waiting, "")), When::Now);
    }
}
