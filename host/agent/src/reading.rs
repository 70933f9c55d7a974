//! What an agent makes of its instructions.

use crate::kept::{Kept, Taken};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use tread_kube::agents::Instructions;
use tread_kube::api::node_update::{
    ConfigName, EndedOperation, UpdateDisrupts, UpdateOrder, UpdatePhase, UpdateStage,
};
use tread_kube::order;
use tread_model::plan::{Step, VerifiablePlan};
use tread_model::protocol::{Local, Order, Phase, Stage};
use tread_model::text::one_line_within;
use tread_node::change::Adopt;
use tread_node::documents::{Document, Documents, digest};
use tread_node::orders::{Does, Given};
use tread_node::terms::{Asked, Terms};

/// What is to be done.
#[derive(Debug, PartialEq)]
pub(crate) enum Todo {
    /// Nothing, or nothing more.
    Nothing,
    /// The node is to say that it has this config.
    Adopt(Documents, ConfigName),
    /// An order that was withdrawn before it was begun.
    TurnBack(Taken),
    /// An order.
    Carry(Taken, Box<Given>),
    /// Nothing of it is done, and this is said.
    Waits(String),
}

/// What is to be done by one who knows this.
pub(crate) fn todo(local: Local, instructions: &Instructions) -> Todo {
    let Some(given) = &instructions.order else { return adoption(instructions) };
    let order = match order::read(given) {
        Ok(order) => order,
        Err(why) => return Todo::Waits(format!("the order cannot be read: {why}")),
    };
    let now = local.hears(&order);
    let of_this = now.operation.filter(|(operation, _)| *operation == order.operation);
    match of_this.map(|(_, phase)| phase) {
        Some(Phase::TurnedBack) if now != local => {
            Todo::TurnBack(taken(given, UpdatePhase::TurnedBack, false))
        }
        Some(Phase::Waiting) if order.stage == Stage::Go => {
            carry(instructions, given, &order).unwrap_or_else(Todo::Waits)
        }
        _ if order.stage == Stage::Closed => adoption(instructions),
        _ => Todo::Nothing,
    }
}

fn adoption(instructions: &Instructions) -> Todo {
    if !instructions.adopt {
        return Todo::Nothing;
    }
    match config(instructions, None) {
        Ok((documents, name)) => Todo::Adopt(documents, name),
        Err(why) => Todo::Waits(why),
    }
}

fn carry(instructions: &Instructions, given: &UpdateOrder, order: &Order) -> Result<Todo, String> {
    let (config, _) = config(instructions, Some(&given.config))?;
    let plan = match &given.plan {
        Some(plan) => {
            let text = serde_json::to_vec(plan).map_err(|error| error.to_string())?;
            let plan = VerifiablePlan::read(&text);
            Some(plan.map_err(|why| {
                one_line_within(&format!("the plan is not carried out: {why}"), 1024).0
            })?)
        }
        None => None,
    };
    let steps = plan.as_ref().map(|plan| plan.steps.as_slice());
    fits(steps.filter(|_| !instructions.overwrite), given.disrupts)?;
    if let Some(plan) = plan.as_ref().filter(|plan| plan.to != order.config.0) {
        return Err(format!("the plan leads to {}, and the order to {}", plan.to, order.config.0));
    }
    let drained = order.disrupts.drains();
    let boots = steps.is_none_or(|steps| steps.contains(&Step::Reboot)) || instructions.overwrite;
    let does = match instructions.overwrite {
        true => Does::Adopt { config, differs: Adopt::Overwrite, drained, give_up: false },
        false => Does::Apply { config, plan: plan.map(Box::new), accept: Vec::new(), drained },
    };
    let terms = Terms { permits: Asked::Agent, ..Terms::default() };
    let does = Given { terms, ..Given::new(&given.operation, does) };
    Ok(Todo::Carry(taken(given, UpdatePhase::Waiting, boots), Box::new(does)))
}

/// The operation that this order gives up. If an admin asked to retry what this agent reported
/// last: the operation that stands, if the agent took it and reported it as degraded; or, if none
/// stands, the one reported last, so that the order boots all the same. For the next order
/// that boots: the operation that ended unfinished.
pub(crate) fn gives_up(kept: &Kept, order: &UpdateOrder, stands: Option<String>) -> Option<String> {
    let boots = order.disrupts == UpdateDisrupts::Reboot;
    let left = kept.gone.as_ref().filter(|gone| boots && **gone != order.operation);
    if let Some(gone) = left.filter(|gone| stands.is_none() || stands.as_ref() == Some(gone)) {
        return Some(gone.clone());
    }
    let last = kept.ended.first()?;
    if order.retries.as_ref() != Some(&last.operation) || !boots {
        return None;
    }
    let is_degraded = |it: &EndedOperation, operation: &String| {
        it.operation == *operation && it.phase == UpdatePhase::Degraded
    };
    let named = match stands {
        None => Some(last.operation.clone()),
        Some(stands) => {
            let is_reported = kept.ended.iter().any(|it| is_degraded(it, &stands));
            is_reported.then_some(stands)
        }
    };
    named.filter(|named| *named != order.operation)
}

/// Whether the order that ended here last is given as if it had not: the API server was restored
/// from a backup, or has yet to hear of the end.
pub(crate) fn is_given_after_its_end(instructions: &Instructions, kept: &Kept) -> bool {
    let ended = kept.taken.as_ref().filter(|taken| Phase::from(taken.phase).is_end());
    let open = instructions.order.as_ref().filter(|it| it.stage != UpdateStage::Closed);
    ended.zip(open).is_some_and(|(taken, order)| taken.operation == order.operation)
}

/// Whether what is permitted by an order is all that its plan does. Without a plan it is the one
/// that is always allowed.
fn fits(steps: Option<&[Step]>, disrupts: UpdateDisrupts) -> Result<(), String> {
    let does = |step: &Step| match step {
        Step::Reboot => 3,
        Step::Drain | Step::Uncordon => 2,
        Step::Reload { .. } | Step::Restart { .. } | Step::DaemonReload | Step::UpdateCaTrust => 1,
        Step::Write => 0,
    };
    let most = steps.map_or(3, |steps| steps.iter().map(does).max().unwrap_or_default());
    let permitted = match disrupts {
        UpdateDisrupts::Nothing => 0,
        UpdateDisrupts::Softly => 1,
        UpdateDisrupts::Drain => 2,
        UpdateDisrupts::Reboot => 3,
    };
    match most <= permitted {
        true => Ok(()),
        false => Err(format!(
            "the order disrupts the node less ({disrupts:?}) than its plan does: nothing is done of it"
        )),
    }
}

/// The config that was given, which has to be this one.
fn config(
    instructions: &Instructions,
    wanted: Option<&ConfigName>,
) -> Result<(Documents, ConfigName), String> {
    let Some(given) = &instructions.config else {
        return Err("the service gives no config with the order; see its log".to_owned());
    };
    let name = &given.name;
    if let Some(wanted) = wanted.filter(|wanted| *wanted != name) {
        let in_words = |config: &ConfigName| format!("{} ({})", config.name, config.digest);
        return Err(format!(
            "the service gives the config {}, and the order is about {}; see its log",
            in_words(name),
            in_words(wanted)
        ));
    }
    let document = Document { name: format!("{}.json", name.name), text: given.text.clone() };
    let documents = Documents(vec![document]);
    // What a problem says may be of the contents.
    let unread = |count: usize| {
        format!(
            "the config {} cannot be read by this agent ({count} problems); tread plan names them",
            name.name
        )
    };
    let is = documents.config().and_then(|config| digest(&config));
    let is = is.map_err(|problems| unread(problems.0.len()))?;
    match is.to_string() == name.digest {
        true => Ok((documents, name.clone())),
        false => Err(format!(
            "the config {} has the digest {is}, and is to have {}: another version of tread made it, or it was \
             changed; it waits",
            name.name, name.digest
        )),
    }
}

fn taken(given: &UpdateOrder, phase: UpdatePhase, boots: bool) -> Taken {
    Taken {
        operation: given.operation.clone(),
        config: given.config.clone(),
        token: given.token,
        boots,
        phase,
        since: MicroTime(Timestamp::now()),
        message: String::new(),
    }
}

#[cfg(test)]
mod tests;
