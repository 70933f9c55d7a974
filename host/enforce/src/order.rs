//! An order and a report as the protocol has them, and as a NodeUpdate has them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use serde_json::Value;
use std::sync::Arc;
use tread_kube::api::NodeUpdate;
use tread_kube::api::node_update::{ConfigName, UpdateDisrupts, UpdateOrder, UpdateStage};
use tread_kube::dated::timestamp;
use tread_kube::node_lease::operation_text;
pub(crate) use tread_kube::order::{of, set_cordon};
pub use tread_kube::order::{read, report};
use tread_model::digest::Digest;
use tread_model::protocol::{Disrupts, Order, Phase, Report, Stage, Time};

/// A config that nodes are to get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The MachineConfig that was rendered.
    pub name: String,
    /// What it says of a node.
    pub digest: Digest,
    /// The plan for a node, as its digest covers it.
    pub plan: Option<Arc<Value>>,
}

/// The order as it is written. `before` is the order that is there: an operation keeps its plan,
/// what it retries and since when it drains. `retries` is the operation that an admin asked to try
/// again.
pub(crate) fn written(
    order: &Order,
    before: Option<&UpdateOrder>,
    target: &Target,
    retries: Option<&str>,
    now: Time,
) -> UpdateOrder {
    let operation = operation_text(order.operation);
    let of_this = before.filter(|before| before.operation == operation);
    let retries = match of_this {
        Some(before) => before.retries.clone(),
        None => retries.filter(|_| order.unwell).map(str::to_owned),
    };
    let is_same =
        |before: &UpdateOrder| Digest::parse(&before.config.digest) == Some(order.config.0);
    let has_config = |before: &UpdateOrder| match order.config.0 == target.digest {
        true => is_for(&before.config, &target.name, target.digest),
        false => is_same(before),
    };
    let tried = match (of_this, before, &retries) {
        (Some(before), ..) => before.tried,
        // What no agent was given was not tried.
        (None, Some(before), Some(_)) if has_config(before) => {
            before.tried.saturating_add(u32::from(before.given))
        }
        _ => 0,
    };
    // A failed step counts for the config, whichever operation brings the node there.
    let escalated = before.filter(|before| has_config(before)).and_then(|before| {
        let boots = order.disrupts == Disrupts::Reboot;
        let since = match before.operation == operation {
            true => (boots && before.disrupts != UpdateDisrupts::Reboot).then_some(None),
            false if order.unwell => failed_without_boot(before).then(|| before.go_since.clone()),
            false => None,
        };
        let since = since.map(|since| since.unwrap_or_else(|| MicroTime(timestamp(now))));
        before.escalated.clone().or(since)
    });
    let same = of_this.filter(|before| is_same(before));
    let (config, plan) = match same {
        Some(before) => (before.config.clone(), before.plan.clone()),
        None => (
            ConfigName { name: target.name.clone(), digest: order.config.0.to_string() },
            // An order that is closed before any agent had it needs no plan.
            target.plan.as_deref().filter(|_| order.stage != Stage::Closed).cloned(),
        ),
    };
    let was_withdrawn =
        |before: &UpdateOrder| before.withdrawn || before.stage == UpdateStage::Withdrawn;
    let withdrawn = order.stage == Stage::Closed && of_this.is_some_and(was_withdrawn);
    let begun = (order.stage == Stage::Prepare).then_some(order.hands_on).flatten();
    // One that is prepared again drains again.
    let known = same.filter(|before| before.stage == UpdateStage::Prepare);
    let known = known.and_then(|before| before.drain_since.clone());
    let drain_since = begun.map(|_| known.unwrap_or_else(|| MicroTime(timestamp(now))));
    // One that is prepared again is given again.
    let gone_on = same.filter(|before| before.stage != UpdateStage::Prepare);
    let gone_on = gone_on.and_then(|before| before.go_since.clone());
    let go_since = match order.stage {
        // Of an order that is withdrawn nobody knows whether its agent carries it out.
        Stage::Go | Stage::Withdrawn => Some(gone_on.unwrap_or_else(|| MicroTime(timestamp(now)))),
        Stage::Closed => gone_on,
        Stage::Prepare => None,
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
        retries,
        failed_at: of_this.and_then(|before| before.failed_at.clone()),
        tried,
        escalated,
        withdrawn,
        go_since,
        drain_since,
        leaves_pods: None,
        plan,
    }
}

/// Whether what was ordered is the config of this name and digest. Its name is made of all that it
/// says; its digest by the tread that ordered it, and another version may make it in another way.
pub(crate) fn is_for(ordered: &ConfigName, name: &str, digest: Digest) -> bool {
    ordered.name == name || Digest::parse(&ordered.digest) == Some(digest)
}

/// Whether an order whose drain has begun leaves the node's pods on it. It was decided when the drain
/// began: other nodes that go away or get a taint meanwhile make no boot without a drain of it.
pub(crate) fn leaves_pods(
    order: &UpdateOrder,
    before: Option<&UpdateOrder>,
    is_alone: bool,
) -> Option<bool> {
    let before = before.filter(|before| before.operation == order.operation);
    let known = before.and_then(|before| before.leaves_pods);
    let Some(since) = &order.drain_since else { return known };
    match before.is_some_and(|before| before.drain_since.as_ref() == Some(since)) {
        // Whoever wrote it did not know of this: nobody can say whether the node was alone.
        true => Some(known.unwrap_or(false)),
        false => Some(is_alone),
    }
}

/// When an order became one that boots since a step failed, if only its agent still knows that: the
/// NodeUpdate was removed meanwhile, and made anew without the order.
pub(crate) fn escalated_by(report: Option<Report>, order: &Order, now: Time) -> Option<MicroTime> {
    let of_this = report.filter(|report| report.operation == order.operation)?;
    let needs_boot = of_this.phase == Phase::NeedsBoot && order.disrupts == Disrupts::Reboot;
    needs_boot.then(|| MicroTime(timestamp(now)))
}

/// When what an order retries failed: this update says so last, before the order is written.
pub(crate) fn failed_at(update: &NodeUpdate, order: &UpdateOrder, now: Time) -> Option<MicroTime> {
    let known = order.failed_at.clone();
    let since = order.retries.as_ref().and_then(|_| update.failed_at(now)).map(MicroTime);
    known.or(since)
}

/// Whether an order that left its node unwell, or was not ended, had no boot: its steps failed, and
/// would fail elsewhere too.
pub(crate) fn failed_without_boot(order: &UpdateOrder) -> bool {
    let is_unwell = order.stage != UpdateStage::Closed || order.unwell;
    order.given && is_unwell && order.disrupts != UpdateDisrupts::Reboot
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tread_model::protocol::{Config, Operation};

    /// An order for this that its agent may carry out, without a drain.
    fn softly(target: &Target) -> Order {
        Order {
            operation: Operation(7),
            config: Config(target.digest),
            disrupts: Disrupts::Softly,
            token: 1,
            stage: Stage::Go,
            given: true,
            unwell: false,
            hands_on: None,
            cordon: None,
        }
    }

    #[test]
    fn an_order_is_read_as_it_was_written_and_keeps_its_plan() {
        let target = Target {
            name: "rendered-worker-1".to_owned(),
            digest: Digest([1; 32]),
            plan: Some(Arc::new(serde_json::json!({"steps": []}))),
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
                    cordon: None,
                };
                let at = Time::default();
                let first = written(&order, None, &target, None, at);
                assert_eq!(read(&first), Ok(order));
                let closed = Order { stage: Stage::Closed, ..order };
                let later = written(&closed, Some(&first), &other, Some("7"), at);
                assert_eq!(later.retries, None);
                assert_eq!((&later.config, &later.plan), (&first.config, &first.plan));
                let next = Order { operation: Operation(1), ..order };
                assert_eq!(written(&next, Some(&first), &other, None, at).plan, None);
            }
        }
    }

    #[test]
    fn only_the_first_order_of_an_operation_for_an_unwell_node_names_what_it_tries_again() {
        let target = Target { name: "a".to_owned(), digest: Digest([1; 32]), plan: None };
        let at = Time::default();
        let unwell = Order {
            operation: Operation(2),
            config: Config(target.digest),
            disrupts: Disrupts::Reboot,
            token: 1,
            stage: Stage::Prepare,
            given: false,
            unwell: true,
            hands_on: None,
            cordon: None,
        };
        let first = written(&unwell, None, &target, Some("1"), at);
        assert_eq!(first.retries.as_deref(), Some("1"));
        // What was asked for then holds for this operation, and for no other one.
        let goes = Order { stage: Stage::Go, given: true, ..unwell };
        assert_eq!(written(&goes, Some(&first), &target, None, at).retries.as_deref(), Some("1"));
        assert_eq!(
            written(&goes, Some(&first), &target, Some("9"), at).retries.as_deref(),
            Some("1")
        );
        let next = Order { operation: Operation(3), ..unwell };
        assert_eq!(written(&next, Some(&first), &target, None, at).retries, None);
        // Whoever leads next counts on, for one config.
        let given = written(&goes, Some(&first), &target, None, at);
        let again = written(&next, Some(&given), &target, Some("2"), at);
        assert_eq!((given.tried, again.tried), (0, 1));
        let goes = Order { stage: Stage::Go, given: true, ..next };
        let goes = written(&goes, Some(&again), &target, None, at);
        assert_eq!(goes.tried, 1);
        let third = Order { operation: Operation(4), ..unwell };
        assert_eq!(written(&third, Some(&goes), &target, Some("3"), at).tried, 2);
        let other = Order { config: Config(Digest([9; 32])), ..third };
        assert_eq!(written(&other, Some(&goes), &target, Some("3"), at).tried, 0);
        // Its window ended in its drain: no agent was given it, and nothing was tried.
        let closed = Order { stage: Stage::Closed, ..next };
        let closed = written(&closed, Some(&again), &target, None, at);
        assert_eq!(written(&third, Some(&closed), &target, Some("2"), at).tried, 1);
        let well = Order { unwell: false, ..next };
        assert_eq!(written(&well, Some(&first), &target, Some("2"), at).retries, None);
    }

    #[test]
    fn what_was_tried_for_a_config_counts_on_where_a_newer_tread_makes_its_digest_in_another_way() {
        let (name, digest) = ("rendered-worker-1".to_owned(), Digest([1; 32]));
        let target = Target { name, digest, plan: None };
        let older = Target { digest: Digest([9; 32]), ..target.clone() };
        let at = |second: u64| Time(Duration::from_secs(second));
        let failed = written(&softly(&older), None, &older, None, at(10));
        let failed = UpdateOrder { tried: 1, ..failed };
        let again = Order {
            operation: Operation(8),
            disrupts: Disrupts::Reboot,
            stage: Stage::Prepare,
            unwell: true,
            ..softly(&target)
        };
        let retried = |order: &Order, target: &Target| {
            let retried = written(order, Some(&failed), target, Some("7"), at(40));
            assert_eq!(read(&retried).unwrap().config, order.config);
            (retried.tried, retried.escalated.map(|it| it.0.as_second()))
        };
        assert_eq!(retried(&again, &target), (2, Some(10)));
        let another = Target { name: "rendered-worker-2".to_owned(), ..target.clone() };
        assert_eq!(retried(&again, &another), (0, None));
        // The name is that of what is wanted, and says nothing of any other config.
        let of_another = Order { config: Config(Digest([3; 32])), ..again };
        assert_eq!(retried(&of_another, &target), (0, None));
        let of_older = Order { config: Config(older.digest), ..again };
        assert_eq!(retried(&of_older, &target), (2, Some(10)));
    }

    #[test]
    fn an_order_that_boots_since_a_step_failed_says_so_for_as_long_as_the_node_gets_that_config() {
        let target = Target { name: "r".to_owned(), digest: Digest([1; 32]), plan: None };
        let at = |second: u64| Time(Duration::from_secs(second));
        let softly = softly(&target);
        let since = |order: &UpdateOrder| order.escalated.clone().map(|it| it.0.as_second());
        let first = written(&softly, None, &target, None, at(10));
        assert_eq!(since(&first), None);
        let boots = Order { disrupts: Disrupts::Reboot, stage: Stage::Prepare, ..softly };
        let second = written(&boots, Some(&first), &target, None, at(20));
        assert_eq!(since(&second), Some(20));
        let closed = Order { stage: Stage::Closed, ..boots };
        let third = written(&closed, Some(&second), &target, None, at(30));
        assert_eq!(since(&third), Some(20), "after it is done, too");
        // It failed, and is begun again for the same.
        let again = Order { operation: Operation(8), ..boots };
        assert_eq!(since(&written(&again, Some(&third), &target, None, at(40))), Some(20));
        let other = Order { config: Config(Digest([9; 32])), ..again };
        assert_eq!(since(&written(&other, Some(&third), &target, None, at(40))), None);
        // One that boots from the beginning did not fail before.
        assert_eq!(since(&written(&again, Some(&first), &target, None, at(40))), None);
    }

    #[test]
    fn whether_pods_are_left_is_decided_when_a_drain_begins_and_stays_so() {
        let target = Target { name: "r".to_owned(), digest: Digest([1; 32]), plan: None };
        let at = |second: u64| Time(Duration::from_secs(second));
        let drains = |operation, hands_on: Option<u64>| Order {
            operation: Operation(operation),
            disrupts: Disrupts::Reboot,
            stage: Stage::Prepare,
            given: false,
            hands_on: hands_on.map(at),
            ..softly(&target)
        };
        let next = |order: &Order, before: Option<&UpdateOrder>, (second, is_alone)| {
            let mut order = written(order, before, &target, None, at(second));
            order.leaves_pods = leaves_pods(&order, before, is_alone);
            order
        };
        let waits = next(&drains(7, None), None, (10, true));
        assert_eq!(waits.leaves_pods, None, "its drain has not begun");
        for alone in [false, true] {
            let begun = next(&drains(7, Some(60)), Some(&waits), (20, alone));
            assert_eq!(begun.leaves_pods, Some(alone));
            let later = next(&drains(7, Some(90)), Some(&begun), (30, !alone));
            assert_eq!(later.leaves_pods, Some(alone), "the other nodes got a taint, or lost it");
            let go = Order { stage: Stage::Go, given: true, hands_on: None, ..drains(7, None) };
            let go = next(&go, Some(&later), (40, alone));
            assert_eq!(go.leaves_pods, Some(alone), "whoever tells of it knows");
            let again = next(&drains(7, Some(120)), Some(&go), (50, !alone));
            assert_eq!(again.leaves_pods, Some(!alone), "it is drained anew");
            let by_an_older = UpdateOrder { leaves_pods: None, ..begun };
            let later = next(&drains(7, Some(90)), Some(&by_an_older), (30, alone));
            assert_eq!(later.leaves_pods, Some(false));
            let another = next(&drains(8, Some(120)), Some(&later), (30, !alone));
            assert_eq!(another.leaves_pods, Some(!alone));
        }
    }

    #[test]
    fn an_agent_that_needs_a_boot_says_so_where_its_order_was_lost() {
        let target = Target { name: "r".to_owned(), digest: Digest([1; 32]), plan: None };
        let boots = Order { disrupts: Disrupts::Reboot, ..softly(&target) };
        let at = Time(Duration::from_secs(20));
        let by = |operation, phase, order: &Order| {
            let report = Report { operation: Operation(operation), phase, token: 1 };
            escalated_by(Some(report), order, at).map(|it| it.0.as_second())
        };
        assert_eq!(by(7, Phase::NeedsBoot, &boots), Some(20));
        assert_eq!(by(7, Phase::Begun, &boots), None);
        assert_eq!(by(8, Phase::NeedsBoot, &boots), None);
        assert_eq!(by(7, Phase::NeedsBoot, &softly(&target)), None, "it boots in its turn");
        assert_eq!(escalated_by(None, &boots, at), None);
    }

    #[test]
    fn what_boots_after_an_order_without_a_boot_failed_says_when_that_one_began() {
        let target = Target { name: "r".to_owned(), digest: Digest([1; 32]), plan: None };
        let at = |second: u64| Time(Duration::from_secs(second));
        let softly = softly(&target);
        let since = |order: &UpdateOrder| order.escalated.clone().map(|it| it.0.as_second());
        let failed = written(&softly, None, &target, None, at(10));
        assert_eq!(since(&failed), None);
        let again = Order {
            operation: Operation(8),
            disrupts: Disrupts::Reboot,
            stage: Stage::Prepare,
            unwell: true,
            ..softly
        };
        let retried = written(&again, Some(&failed), &target, Some("7"), at(40));
        assert_eq!(since(&retried), Some(10));
        let third = Order { operation: Operation(9), ..again };
        assert_eq!(since(&written(&third, Some(&retried), &target, None, at(60))), Some(10));
        // Also where its retry is given up before it is begun.
        let none =
            Order { disrupts: Disrupts::Nothing, stage: Stage::Closed, given: false, ..again };
        assert_eq!(since(&written(&none, Some(&failed), &target, None, at(40))), Some(10));
        let other = Order { config: Config(Digest([9; 32])), ..again };
        assert_eq!(since(&written(&other, Some(&failed), &target, None, at(40))), None);
        let well = Order { unwell: false, ..again };
        assert_eq!(since(&written(&well, Some(&failed), &target, None, at(40))), None);
        // One that booted, or that nobody was given, failed another way.
        let booted = Order { operation: Operation(7), stage: Stage::Go, given: true, ..again };
        let booted = written(&Order { unwell: false, ..booted }, None, &target, None, at(10));
        assert_eq!(since(&written(&again, Some(&booted), &target, None, at(40))), None);
        let nobodys = Order { stage: Stage::Closed, given: false, unwell: true, ..softly };
        let nobodys = written(&nobodys, None, &target, None, at(10));
        assert_eq!(since(&written(&again, Some(&nobodys), &target, None, at(40))), None);
    }

    #[test]
    fn an_order_that_is_closed_says_whether_it_was_withdrawn_before() {
        let target = Target { name: "r".to_owned(), digest: Digest([1; 32]), plan: None };
        let go = softly(&target);
        let next = |order: &Order, before: Option<&UpdateOrder>| {
            written(order, before, &target, None, Time::default())
        };
        let in_stage = |stage: Stage| Order { stage, ..go };
        let given = next(&go, None);
        let refused = next(&in_stage(Stage::Closed), Some(&given));
        assert!(!refused.withdrawn);
        let withdrawn = next(&in_stage(Stage::Withdrawn), Some(&given));
        assert!(!withdrawn.withdrawn, "its stage says so");
        let closed = next(&in_stage(Stage::Closed), Some(&withdrawn));
        assert!(closed.withdrawn);
        assert!(next(&in_stage(Stage::Closed), Some(&closed)).withdrawn, "written once more");
        // Its agent had begun, and finishes.
        assert!(!next(&go, Some(&withdrawn)).withdrawn);
        let another = Order { operation: Operation(8), ..in_stage(Stage::Closed) };
        assert!(!next(&another, Some(&closed)).withdrawn);
    }

    #[test]
    fn an_order_says_since_when_its_agent_may_carry_it_out() {
        let target = Target { name: "r".to_owned(), digest: Digest([1; 32]), plan: None };
        let at = |second: u64| Time(Duration::from_secs(second));
        let go = softly(&target);
        let since = |order: &UpdateOrder| order.go_since.clone().map(|it| it.0.as_second());
        let first = written(&go, None, &target, None, at(10));
        assert_eq!(since(&first), Some(10));
        let renewed = written(&Order { token: 2, ..go }, Some(&first), &target, None, at(20));
        assert_eq!(since(&renewed), Some(10));
        let drains = Order { disrupts: Disrupts::Reboot, stage: Stage::Prepare, ..go };
        let prepared = written(&drains, Some(&renewed), &target, None, at(30));
        assert_eq!(since(&prepared), None);
        let boots = Order { stage: Stage::Go, ..drains };
        assert_eq!(since(&written(&boots, Some(&prepared), &target, None, at(40))), Some(40));
        let other = Order { operation: Operation(8), ..go };
        assert_eq!(since(&written(&other, Some(&renewed), &target, None, at(50))), Some(50));
        // It stays, for whoever asks when it failed.
        let closed = Order { stage: Stage::Closed, ..go };
        let over = written(&closed, Some(&renewed), &target, None, at(60));
        assert_eq!(since(&over), Some(10));
        assert_eq!(since(&written(&closed, Some(&over), &target, None, at(70))), Some(10));
        assert_eq!(since(&written(&closed, Some(&prepared), &target, None, at(70))), None);
        // While it is withdrawn its agent is waited for as before.
        let withdrawn = Order { stage: Stage::Withdrawn, ..go };
        let waits = written(&withdrawn, Some(&renewed), &target, None, at(80));
        assert_eq!(since(&waits), Some(10));
        assert_eq!(since(&written(&withdrawn, Some(&waits), &target, None, at(90))), Some(10));
        assert_eq!(since(&written(&drains, Some(&waits), &target, None, at(90))), None);
        // Nobody knows any more since when, where its NodeUpdate was removed.
        assert_eq!(since(&written(&withdrawn, None, &target, None, at(90))), Some(90));
    }

    #[test]
    fn an_order_says_since_when_its_node_is_drained_and_keeps_it_for_whoever_goes_on() {
        let target = Target { name: "r".to_owned(), digest: Digest([1; 32]), plan: None };
        let at = |second: u64| Time(Duration::from_secs(second));
        let order = Order {
            operation: Operation(7),
            config: Config(target.digest),
            disrupts: Disrupts::Reboot,
            token: 1,
            stage: Stage::Prepare,
            given: false,
            unwell: false,
            hands_on: None,
            cordon: None,
        };
        let first = written(&order, None, &target, None, at(10));
        assert_eq!(first.drain_since, None, "nobody may cordon it yet");
        let drains = |until: u64| Order { hands_on: Some(at(until)), ..order };
        let since = |order: &UpdateOrder| order.drain_since.clone().map(|it| it.0.as_second());
        let second = written(&drains(30), Some(&first), &target, None, at(20));
        assert_eq!(since(&second), Some(20));
        let third = written(&drains(60), Some(&second), &target, None, at(50));
        assert_eq!(since(&third), Some(20));
        let go = Order { stage: Stage::Go, ..drains(60) };
        let go = written(&go, Some(&third), &target, None, at(70));
        assert_eq!(since(&go), None);
        // Somebody else had the node: it is prepared again.
        assert_eq!(since(&written(&drains(90), Some(&go), &target, None, at(80))), Some(80));
    }
}
