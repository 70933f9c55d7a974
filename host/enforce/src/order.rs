//! An order and a report as the protocol has them, and as a NodeUpdate has them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use serde_json::Value;
use tread_kube::api::node_update::{
    ConfigName, NodeUpdateStatus, UpdateDisrupts, UpdateOrder, UpdatePhase, UpdateStage,
};
use tread_kube::dated::{time, timestamp};
use tread_kube::node_lease::{operation_text, parse_operation};
use tread_model::digest::Digest;
use tread_model::protocol::{Config, Disrupts, Order, Phase, Report, Stage};

/// A config that nodes are to get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The MachineConfig that was rendered.
    pub name: String,
    /// What it says of a node.
    pub digest: Digest,
    /// The plan for a node, as its digest covers it.
    pub plan: Option<Value>,
}

/// What an order in a NodeUpdate says.
pub(crate) fn read(order: &UpdateOrder) -> Result<Order, String> {
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

/// The order as it is written. `before` is the one that stands: an operation keeps its plan.
pub(crate) fn written(order: &Order, before: Option<&UpdateOrder>, target: &Target) -> UpdateOrder {
    let operation = operation_text(order.operation);
    let same = before.filter(|before| {
        before.operation == operation
            && Digest::parse(&before.config.digest) == Some(order.config.0)
    });
    let (config, plan) = match same {
        Some(before) => (before.config.clone(), before.plan.clone()),
        None => (
            ConfigName { name: target.name.clone(), digest: order.config.0.to_string() },
            target.plan.clone(),
        ),
    };
    UpdateOrder {
        operation,
        config,
        disrupts: match order.disrupts {
            Disrupts::Nothing => UpdateDisrupts::Nothing,
            Disrupts::Softly => UpdateDisrupts::Softly,
            Disrupts::Drain => UpdateDisrupts::Drain,
            Disrupts::Reboot => UpdateDisrupts::Reboot,
        },
        token: order.token,
        stage: match order.stage {
            Stage::Prepare => UpdateStage::Prepare,
            Stage::Go => UpdateStage::Go,
            Stage::Withdrawn => UpdateStage::Withdrawn,
            Stage::Closed => UpdateStage::Closed,
        },
        given: order.given,
        unwell: order.unwell,
        hands_on: order.hands_on.map(|at| MicroTime(timestamp(at))),
        plan,
    }
}

/// What an agent says in a NodeUpdate's status; nothing if it says nothing of an operation.
pub fn report(status: &NodeUpdateStatus) -> Option<Report> {
    let operation = parse_operation(status.operation.as_deref()?)?;
    let phase = match status.phase? {
        UpdatePhase::Waiting => Phase::Waiting,
        UpdatePhase::Begun => Phase::Begun,
        UpdatePhase::NeedsBoot => Phase::NeedsBoot,
        UpdatePhase::Done => Phase::Done,
        UpdatePhase::TurnedBack => Phase::TurnedBack,
        UpdatePhase::WentBack => Phase::WentBack,
        UpdatePhase::Degraded => Phase::Degraded,
    };
    Some(Report { operation, phase })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tread_model::protocol::{Operation, Time};

    #[test]
    fn an_order_is_read_as_it_was_written_and_keeps_its_plan() {
        let target = Target {
            name: "rendered-worker-1".to_owned(),
            digest: Digest([1; 32]),
            plan: Some(serde_json::json!({"steps": []})),
        };
        let other = Target { name: "rendered-worker-2".to_owned(), plan: None, ..target.clone() };
        for disrupts in [Disrupts::Nothing, Disrupts::Softly, Disrupts::Drain, Disrupts::Reboot] {
            for stage in [Stage::Prepare, Stage::Go, Stage::Withdrawn, Stage::Closed] {
                let order = Order {
                    operation: Operation(u128::MAX - 1),
                    config: Config(target.digest),
                    disrupts,
                    token: u32::MAX,
                    stage,
                    given: true,
                    unwell: false,
                    hands_on: Some(Time(Duration::from_micros(1_700_000_000_000_001))),
                };
                let first = written(&order, None, &target);
                assert_eq!(read(&first), Ok(order));
                let later = written(&Order { stage: Stage::Closed, ..order }, Some(&first), &other);
                assert_eq!((&later.config, &later.plan), (&first.config, &first.plan));
                let next = Order { operation: Operation(1), ..order };
                assert_eq!(written(&next, Some(&first), &other).plan, None);
            }
        }
    }
}
