//! An order and a report as a NodeUpdate has them, read as the protocol has them.

use crate::api::node_update::{
    NodeUpdateStatus, UpdateDisrupts, UpdateOrder, UpdatePhase, UpdateStage,
};
use crate::dated::time;
use crate::node_lease::parse_operation;
use tread_model::digest::Digest;
use tread_model::protocol::{Config, Disrupts, Order, Phase, Report, Stage};

/// What an order in a NodeUpdate says.
pub fn read(order: &UpdateOrder) -> Result<Order, String> {
    let operation = parse_operation(&order.operation)
        .ok_or_else(|| format!("the operation {:?} is none", order.operation))?;
    let digest = Digest::parse(&order.config.digest)
        .ok_or_else(|| format!("the digest {:?} is none", order.config.digest))?;
    Ok(Order {
        operation,
        config: Config(digest),
        disrupts: match order.disrupts {
            UpdateDisrupts::Nothing => Disrupts::Nothing,
            UpdateDisrupts::Softly => Disrupts::Softly,
            UpdateDisrupts::Drain => Disrupts::Drain,
            UpdateDisrupts::Reboot => Disrupts::Reboot,
        },
        token: order.token,
        stage: match order.stage {
            UpdateStage::Prepare => Stage::Prepare,
            UpdateStage::Go => Stage::Go,
            UpdateStage::Withdrawn => Stage::Withdrawn,
            UpdateStage::Closed => Stage::Closed,
        },
        given: order.given,
        unwell: order.unwell,
        hands_on: order.hands_on.as_ref().and_then(|at| time(at.0)),
    })
}

/// What an agent says in a NodeUpdate's status; nothing if it says nothing of an operation.
pub fn report(status: &NodeUpdateStatus) -> Option<Report> {
    let operation = parse_operation(status.operation.as_deref()?)?;
    let token = status.token.unwrap_or_default();
    Some(Report { operation, phase: status.phase?.into(), token })
}

impl From<UpdatePhase> for Phase {
    fn from(phase: UpdatePhase) -> Phase {
        match phase {
            UpdatePhase::Waiting => Phase::Waiting,
            UpdatePhase::Begun => Phase::Begun,
            UpdatePhase::NeedsBoot => Phase::NeedsBoot,
            UpdatePhase::Done => Phase::Done,
            UpdatePhase::TurnedBack => Phase::TurnedBack,
            UpdatePhase::WentBack => Phase::WentBack,
            UpdatePhase::Degraded => Phase::Degraded,
        }
    }
}

impl From<Phase> for UpdatePhase {
    fn from(phase: Phase) -> UpdatePhase {
        match phase {
            Phase::Waiting => UpdatePhase::Waiting,
            Phase::Begun => UpdatePhase::Begun,
            Phase::NeedsBoot => UpdatePhase::NeedsBoot,
            Phase::Done => UpdatePhase::Done,
            Phase::TurnedBack => UpdatePhase::TurnedBack,
            Phase::WentBack => UpdatePhase::WentBack,
            Phase::Degraded => UpdatePhase::Degraded,
        }
    }
}
