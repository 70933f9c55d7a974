//! Asking the service whether something may begin, until it may.

use super::{Inner, Wire, is_of_another_node};
use crate::listening::Heard;
use crate::service::Unheard;
use crate::status::becomes;
use futures::future::LocalBoxFuture;
use std::time::Duration;
use tokio::time::sleep;
use tread_kube::agents::{Answer, Ask, Asked, PERMIT};
use tread_kube::api::node_update::{EndedOperation, UpdatePhase, UpdateStage};
use tread_kube::asking::Backoff;
use tread_kube::node_lease::parse_operation;
use tread_model::protocol::{self, Operation, Question, What};
use tread_node::agent::Permits;
use tread_node::clock::since_boot;
use tread_node::permits::{Act, NoPermit, Permit};

/// How long the service may take to answer.
const WITHIN: Duration = Duration::from_secs(40);
/// Before it is asked again that said no.
const LEAST: Duration = Duration::from_secs(1);
const MOST: Duration = Duration::from_secs(30);

impl Permits for Wire {
    fn ask<'p>(
        &'p self,
        operation: &'p str,
        act: &'p Act,
    ) -> LocalBoxFuture<'p, Result<Permit, NoPermit>> {
        Box::pin(self.0.ask(operation, act))
    }
}

/// What to do with a question, by the instructions that were heard last.
#[derive(Debug, PartialEq, Eq)]
enum Now {
    Asks,
    /// The service would say no: something else has to be heard first.
    Waits,
    /// It is not to be begun any more.
    Turns(&'static str),
    /// Nobody permits the rest any more, and why not.
    Ends(&'static str),
}

/// That something is asked for, until this is dropped.
struct Asking<'a>(&'a Inner);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.asks.set(None);
        self.0.says("");
        self.0.report_status_or_log();
    }
}

const MADE_ANEW: &str = "the node was deleted and made anew under its name";
const OVER: &str = "its order was reported as done, and closed,";
const LET_IN: &str = "somebody let the machine into its pool";

/// What is left to the node's next order, in words.
fn left(why: &str, act: &Act) -> String {
    let before = match act {
        Act::Write => "anything was written".to_owned(),
        Act::Unit { unit } => format!("{unit} was told of its new files"),
        Act::Boot { .. } => "the boot that was due".to_owned(),
    };
    format!(
        "{why} before {before}: files on its disk have changed, what runs may not have read them, and nothing more \
         is done by what changed them; the rest comes with the node's next order, which drains and boots it, or once \
         somebody drains and boots it by hand"
    )
}

impl Inner {
    async fn ask(&self, text: &str, act: &Act) -> Result<Permit, NoPermit> {
        let Some(operation) = parse_operation(text) else {
            let why = "no order of the cluster has this operation: it is for whoever gave it";
            if *act != Act::Write {
                // What has begun stays until that one comes.
                tracing::warn!(operation = text, why, "no permit is asked for");
                std::future::pending::<()>().await;
            }
            return Err(NoPermit::NotNow(why.to_owned()));
        };
        let what = match act {
            Act::Write => What::Write,
            Act::Unit { .. } => What::Unit,
            Act::Boot { .. } => What::Boot,
        };
        let _asking = self.begins_to_ask(text, act);
        let mut heard = self.heard.clone();
        let mut backoff = Backoff::new((LEAST, MOST));
        loop {
            let is = heard.borrow_and_update().clone();
            if let Heard::Instructions(instructions) = &is {
                self.says_again_what_is_lost(instructions);
            }
            let again = match self.now(&is, text, what) {
                Now::Turns(why) => return Err(NoPermit::NotNow(why.to_owned())),
                Now::Ends(why) => {
                    self.keeps_gone(text);
                    return Err(NoPermit::Never(left(why, act)));
                }
                Now::Waits => None,
                Now::Asks => match self.permitted(operation, text, what).await {
                    Ok(Ok(permit)) => return Ok(permit),
                    Ok(Err(why)) => {
                        self.says(&format!("waits for a permit: {why}"));
                        self.report_status_or_log();
                        Some(backoff.next_wait())
                    }
                    Err(error) => {
                        tracing::warn!(%error, "nobody could be asked for a permit; it is tried again");
                        Some(backoff.next_wait())
                    }
                },
            };
            let changed = heard.changed();
            match again {
                None => drop(changed.await),
                Some(again) => tokio::select! {
                    _ = changed => backoff.reset(),
                    () = sleep(again) => {}
                },
            }
        }
    }

    /// The rest is for the node's next order that boots.
    fn keeps_gone(&self, operation: &str) {
        let gone = (Some(operation.to_owned()), self.says.borrow().boot.clone());
        if let Err(error) = self.keeps.change(|kept| (kept.gone, kept.gone_in) = gone) {
            tracing::error!(%error, operation, "that it is unfinished could not be kept: no later order completes it by itself");
        }
    }

    fn begins_to_ask(&self, operation: &str, act: &Act) -> Asking<'_> {
        let taken = self.keeps.get().taken.filter(|taken| taken.operation == operation);
        let mut needs_boot = false;
        if let Act::Boot { because } = act {
            needs_boot = taken.is_some_and(|taken| !taken.boots);
            self.says(because);
        }
        self.asks.set(Some(needs_boot));
        self.report_status_or_log();
        Asking(self)
    }

    /// An operation turns back only if it has written nothing. It ends unfinished only if its node
    /// was deleted, if its order was closed as done, since nobody orders that again, or if it was to
    /// bring a machine to its config before the machine joined, and somebody let the machine in.
    /// Otherwise it waits: instructions that cannot be understood now may be later.
    fn now(&self, heard: &Heard, operation: &str, what: What) -> Now {
        let Heard::Instructions(instructions) = heard else { return Now::Waits };
        let kept = self.keeps.get();
        // One that waited for a boot was reported as done, and may turn out to need another one.
        let is_done =
            |it: &EndedOperation| it.operation == operation && it.phase == UpdatePhase::Done;
        let is_over = kept.ended.iter().any(is_done);
        let waits = || if is_over { Now::Ends(OVER) } else { Now::Waits };
        let turns = |why| if what == What::Write { Now::Turns(why) } else { waits() };
        let brings = kept.brings.as_ref().is_some_and(|(brings, _)| brings == operation);
        if kept.gone.as_deref() == Some(operation) {
            return Now::Ends(match (is_over, brings) {
                (true, _) => OVER,
                (false, true) => LET_IN,
                (false, false) => MADE_ANEW,
            });
        }
        // A machine that joins is permitted a boot as it is now: it needs no order.
        let goes_on = brings && instructions.joins && what != What::Write;
        if is_of_another_node(instructions, &kept) && !goes_on {
            return match what {
                What::Write => turns("the node is another one by now, with this name"),
                What::Unit | What::Boot => Now::Ends(MADE_ANEW),
            };
        }
        if brings {
            return match (instructions.joins, what) {
                (true, _) => Now::Asks,
                (false, What::Write) => Now::Turns("the node has joined by now"),
                (false, What::Unit | What::Boot) => Now::Ends(LET_IN),
            };
        }
        let Some(order) = &instructions.order else {
            return if what == What::Write { Now::Waits } else { waits() };
        };
        if order.operation != operation {
            // An older order comes from a replica of the service that lags behind.
            let is_newer = kept.taken.as_ref().is_some_and(|taken| order.token > taken.token);
            let has_taken_another = kept.taken.is_some_and(|taken| taken.operation != operation);
            return match is_newer {
                true => turns("the node's order is another one by now"),
                false if has_taken_another && what != What::Write => waits(),
                false => Now::Waits,
            };
        }
        match order.stage {
            UpdateStage::Go => Now::Asks,
            UpdateStage::Prepare => Now::Waits,
            UpdateStage::Withdrawn => turns("the order was withdrawn before anything was written"),
            UpdateStage::Closed => turns("the order was given up before anything was written"),
        }
    }

    /// One question; its permit ends by the node's own clock, counted from the question on.
    async fn permitted(
        &self,
        operation: Operation,
        text: &str,
        what: What,
    ) -> Result<Result<Permit, String>, Unheard> {
        let number = self.number();
        let question = Question { operation, what, number };
        let asked = match what {
            What::Write => Asked::Write,
            What::Unit => Asked::Unit,
            What::Boot => Asked::Boot,
        };
        let ask = Ask { operation: text.to_owned(), what: asked, number };
        let begun = since_boot();
        let answer = self.service.ask(PERMIT, &ask, WITHIN).await?;
        let came = since_boot();
        let (number, lasts) = match serde_json::from_slice(&answer) {
            Ok(Answer::Permitted { number, lasts }) => (number, Duration::from_millis(lasts)),
            Ok(Answer::Refused { why }) => return Ok(Err(why)),
            Err(_) => return Ok(Err("the service's answer cannot be read".to_owned())),
        };
        let ends = protocol::Permit { operation, number, lasts }.ends(&question, begun, came);
        let Some(ends) = ends.filter(|ends| *ends > came) else {
            return Ok(Err("the permit came too late".to_owned()));
        };
        if what == What::Write
            && let Err(error) = self.keeps.change(|kept| {
                if kept.taken.as_ref().is_some_and(|taken| taken.operation == text) {
                    becomes(kept, UpdatePhase::Begun, "");
                }
            })
        {
            return Ok(Err(format!("the agent cannot keep that it begins: {error}")));
        }
        Ok(Ok(Permit::until(ends)))
    }
}
