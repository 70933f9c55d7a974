//! An order and a report as a NodeUpdate has them, read as the protocol has them.

use crate::api::NodeUpdate;
use crate::api::node_update::{
    NodeUpdateStatus, UpdateDisrupts, UpdateOrder, UpdatePhase, UpdateStage,
};
use crate::dated::time;
use crate::node_lease::{operation_text, parse_operation};
use tread_model::digest::Digest;
use tread_model::protocol::{Config, Disrupts, Operation, Order, Phase, Report, Stage, Stamp};

/// On a NodeUpdate: the stamp of the cordon under which its node was seen drained, as long as that is
/// ordered to go on. No field of the order has it: a definition that is older than tread drops
/// fields, and the node would be prepared again for ever.
pub const DRAINED_UNDER_ANNOTATION: &str = "tread.dev/drained-under";

/// The order of a NodeUpdate, with the cordon that it is for.
pub fn of(update: &NodeUpdate) -> Result<Option<Order>, String> {
    let Some(order) = &update.spec.order else { return Ok(None) };
    let annotations = update.metadata.annotations.as_ref();
    let stamp = annotations.and_then(|all| all.get(DRAINED_UNDER_ANNOTATION));
    // What nobody can read is no stamp: the node is prepared again.
    let cordon = stamp.and_then(|text| parse_operation(text)).map(|stamp| Stamp(stamp.0));
    Ok(Some(Order { cordon, ..read(order)? }))
}

/// Says in a NodeUpdate which cordon its order is for.
pub fn set_cordon(update: &mut NodeUpdate, cordon: Option<Stamp>) {
    let annotations = update.metadata.annotations.get_or_insert_default();
    let name = DRAINED_UNDER_ANNOTATION.to_owned();
    match cordon {
        Some(stamp) => annotations.insert(name, operation_text(Operation(stamp.0))),
        None => annotations.remove(&name),
    };
}

/// What an order in a NodeUpdate says, but for its cordon: what an agent has to know of it.
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
        cordon: None,
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_order_is_for_the_cordon_that_its_node_update_names_and_for_none_where_nobody_can_read_it()
    {
        let config = json!({"name": "rendered-1", "digest": Digest([1; 32]).to_string()});
        let order = json!({"operation": operation_text(Operation(7)), "config": config,
            "disrupts": "Reboot", "token": 1, "stage": "Go"});
        let update = json!({"apiVersion": "tread.dev/v1alpha1", "kind": "NodeUpdate",
            "metadata": {"name": "a"}, "spec": {"pool": "worker", "order": order}});
        let mut update: NodeUpdate = serde_json::from_value(update).unwrap();
        let cordon = |update: &NodeUpdate| of(update).unwrap().unwrap().cordon;
        assert_eq!(cordon(&update), None, "the version before wrote it");
        set_cordon(&mut update, Some(Stamp(u128::MAX)));
        assert_eq!(cordon(&update), Some(Stamp(u128::MAX)));
        set_cordon(&mut update, None);
        assert_eq!(cordon(&update), None);
        let odd = [(DRAINED_UNDER_ANNOTATION.to_owned(), "odd".to_owned())];
        update.metadata.annotations = Some(odd.into());
        assert_eq!(cordon(&update), None);
        update.spec.order = None;
        assert_eq!(of(&update), Ok(None));
    }
}
