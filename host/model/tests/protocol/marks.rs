//! What is decided from what was read of one node, case by case: who else has it, whose Lease it
//! is, and how many nodes may be down.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tread_model::digest::Digest;
use tread_model::protocol::{
    Act, Config, Cordon, Disrupts, HeldBy, Holder, Lease, Limits, NotNow, Operation, Order, Phase,
    Question, Report, Seen, Slot, Slots, Stage, Stamp, Terms, Time, Version, Versions, Waits,
    Wanted, What, lease_to_join, next, permit, wanted,
};

const NEW: Config = Config(Digest([1; 32]));
const NOW: Time = Time(Duration::from_secs(1_000_000));
const ONE: Operation = Operation(1);
const STAMP: Stamp = Stamp(7);
const ALL: [HeldBy; 5] =
    [HeldBy::Cordon, HeldBy::Drain, HeldBy::Maintenance, HeldBy::Autoscaler, HeldBy::Deletion];

fn minutes(count: u64) -> Duration {
    Duration::from_secs(count * 60)
}

fn seen(disrupts: Disrupts) -> Seen {
    let version = || Version(Arc::from("1"));
    Seen {
        now: NOW,
        fresh: true,
        versions: Versions { slots: version(), lease: None, update: version() },
        slot: None,
        soft_room: true,
        room: true,
        lease: None,
        order: None,
        report: None,
        cordon: Cordon::No,
        drained: false,
        proved: true,
        held: None,
        wanted: Some(Wanted { config: NEW, disrupts }),
        newest: NEW,
        turns_back: false,
        id: Operation(2),
    }
}

fn lease(holder: Holder, renewed: Time, lasts: Duration) -> Lease {
    Lease { holder, transitions: 3, renewed: Some(renewed), lasts: Some(lasts) }
}

/// A node whose agent has the order, under a Lease that was just renewed.
fn under_way(disrupts: Disrupts, phase: Phase) -> Seen {
    let (token, hands_on) = (3, None);
    let cordon = disrupts.drains().then_some(STAMP);
    let (stage, given, unwell) = (Stage::Go, true, false);
    let (operation, config) = (ONE, NEW);
    let order =
        Order { operation, config, disrupts, token, stage, given, unwell, hands_on, cordon };
    Seen {
        slot: Some(Slot { operation: ONE, unavailable: disrupts.drains() }),
        lease: Some(lease(Holder::Us(Some(ONE)), NOW, minutes(75))),
        order: Some(order),
        report: Some(Report { operation: ONE, phase, token: 0 }),
        cordon: if disrupts.drains() { Cordon::Ours(ONE, cordon) } else { Cordon::No },
        drained: true,
        ..seen(disrupts)
    }
}

#[test]
fn a_node_that_somebody_else_has_is_left_alone_by_every_plan() {
    for disrupts in [Disrupts::Nothing, Disrupts::Softly, Disrupts::Drain, Disrupts::Reboot] {
        let first = next(&seen(disrupts), &Terms::default());
        assert!(matches!(first, Act::TakeSlot { .. } | Act::WriteOrder { .. }), "{first:?}");
        for held in ALL {
            let seen = Seen { held: Some(held), ..seen(disrupts) };
            assert_eq!(next(&seen, &Terms::default()), Act::Wait(Waits::Held(held)));
        }
        let seen = Seen { cordon: Cordon::Anothers, ..seen(disrupts) };
        assert_eq!(next(&seen, &Terms::default()), Act::Wait(Waits::Held(HeldBy::Cordon)));
    }
}

#[test]
fn marks_of_others_stop_a_node_before_its_next_step() {
    for held in ALL {
        let (phase, terms) = (Phase::Begun, Terms::default());
        let seen = Seen { held: Some(held), ..under_way(Disrupts::Reboot, phase) };
        let question = Question { operation: ONE, what: What::Boot, number: 7 };
        assert_eq!(permit(&seen, &question, &terms), Err(NotNow::Held(held)));
        let order = seen.order.map(|it| Order { stage: Stage::Prepare, given: false, ..it });
        let seen = Seen { order, report: None, ..seen };
        let Act::WriteOrder { order, .. } = next(&seen, &terms) else { panic!("{held:?}") };
        assert_eq!(order.stage, Stage::Closed);
    }
}

/// All acts from here on, while nobody else does anything: an agent that may turn back does.
fn ways(mut seen: Seen) -> Vec<Act> {
    let (terms, mut acts) = (Terms::default(), Vec::new());
    for _ in 0..12 {
        let act = next(&seen, &terms);
        acts.push(act.clone());
        match act {
            Act::WriteOrder { order, .. } => {
                seen.order = Some(order);
                let operation = order.operation;
                if order.stage == Stage::Withdrawn {
                    let report = Report { operation, phase: Phase::TurnedBack, token: 0 };
                    seen.report = Some(report);
                }
            }
            Act::HandOver { .. } => seen.cordon = Cordon::Anothers,
            Act::ReleaseLease { .. } => seen.lease = None,
            Act::ReleaseSlot { .. } => seen.slot = None,
            _ => return acts,
        }
    }
    panic!("it does not end: {acts:?}")
}

#[test]
fn a_node_that_somebody_takes_meanwhile_keeps_its_cordon_and_is_given_back_without_treads_mark() {
    for held in ALL {
        for disrupts in [Disrupts::Drain, Disrupts::Reboot] {
            let in_prepare = |seen: Seen| {
                let order =
                    seen.order.map(|it| Order { stage: Stage::Prepare, given: false, ..it });
                Seen { order, report: None, drained: false, ..seen }
            };
            let closed = |seen: Seen| {
                let order = seen.order.map(|it| Order { stage: Stage::Closed, ..it });
                Seen { order, ..seen }
            };
            for (what, seen) in [
                ("while it is drained", in_prepare(under_way(disrupts, Phase::Waiting))),
                ("before its agent begins", under_way(disrupts, Phase::Waiting)),
                ("once it is done", under_way(disrupts, Phase::Done)),
                ("once it went back", under_way(disrupts, Phase::WentBack)),
                ("once its order is closed", closed(under_way(disrupts, Phase::Done))),
                (
                    "when its Lease is gone too",
                    Seen { lease: None, ..closed(under_way(disrupts, Phase::Done)) },
                ),
            ] {
                let acts = ways(Seen { held: Some(held), ..seen });
                let hands_over = |act: &Act| matches!(act, Act::HandOver { of: Some(ONE), .. });
                assert!(acts.iter().any(hands_over), "{what}, {held:?}: {acts:?}");
                let takes = |act: &Act| {
                    matches!(act, Act::Uncordon { .. } | Act::MakeLease(_) | Act::WriteLease { .. })
                };
                assert!(!acts.iter().any(takes), "{what}, {held:?}: {acts:?}");
                let ends = &acts[acts.len() - 2..];
                let ends_so = matches!(ends[0], Act::ReleaseSlot { .. })
                    && matches!(ends[1], Act::Wait(Waits::Held(_) | Waits::Nothing));
                assert!(ends_so, "{what}, {held:?}: {acts:?}");
            }
        }
    }
}

#[test]
fn a_node_is_uncordoned_where_nobody_else_has_it() {
    let done = under_way(Disrupts::Reboot, Phase::Done);
    let order = done.order.map(|it| Order { stage: Stage::Closed, ..it });
    let act = next(&Seen { order, ..done }, &Terms::default());
    assert!(matches!(act, Act::Uncordon { of: Some(ONE), .. }), "{act:?}");
}

#[test]
fn an_order_that_was_given_is_withdrawn_from_a_node_that_somebody_takes_before_it_begins() {
    for disrupts in [Disrupts::Nothing, Disrupts::Softly, Disrupts::Drain, Disrupts::Reboot] {
        for held in ALL {
            let waits = Seen { held: Some(held), ..under_way(disrupts, Phase::Waiting) };
            let Act::WriteOrder { order, .. } = next(&waits, &Terms::default()) else { panic!() };
            assert_eq!(order.stage, Stage::Withdrawn, "{disrupts:?} {held:?}");
        }
    }
}

#[test]
fn a_lease_that_somebody_else_may_wait_for_is_not_renewed_while_they_have_the_node() {
    let terms = Terms::default();
    for disrupts in [Disrupts::Softly, Disrupts::Drain, Disrupts::Reboot] {
        let begun = Seen { now: NOW.after(minutes(60)), ..under_way(disrupts, Phase::Begun) };
        assert!(matches!(next(&begun, &terms), Act::WriteLease { .. }), "{disrupts:?}");
        let held = Seen { held: Some(HeldBy::Maintenance), ..begun.clone() };
        assert_eq!(next(&held, &terms), Act::Wait(Waits::Agent), "{disrupts:?}");
        // Once it is free again it is taken anew, and what was prepared does not count any more.
        let long_after = Seen { now: NOW.after(minutes(300)), lease: None, ..begun };
        assert!(matches!(next(&long_after, &terms), Act::MakeLease(_)), "{disrupts:?}");
    }
}

#[test]
fn when_a_window_ends_what_was_not_begun_turns_back_and_the_rest_finishes() {
    let terms = Terms::default();
    let ended = |phase| Seen { turns_back: true, ..under_way(Disrupts::Reboot, phase) };
    let Act::WriteOrder { order, .. } = next(&ended(Phase::Waiting), &terms) else { panic!() };
    assert_eq!(order.stage, Stage::Withdrawn);
    let prepared = ended(Phase::Waiting);
    let order = prepared.order.map(|it| Order { stage: Stage::Prepare, given: false, ..it });
    let prepared = Seen { order, report: None, ..prepared };
    let Act::WriteOrder { order, .. } = next(&prepared, &terms) else { panic!() };
    assert_eq!(order.stage, Stage::Closed);
    assert_eq!(next(&ended(Phase::Begun), &terms), Act::Wait(Waits::Agent));
}

#[test]
fn a_permit_ends_before_the_lease_with_all_that_it_lets_begin() {
    let terms = Terms::default();
    let allowed = |seen: &Seen, what| {
        permit(seen, &Question { operation: ONE, what, number: 7 }, &terms).map(|it| it.lasts)
    };
    let reboot = under_way(Disrupts::Reboot, Phase::Begun);
    // 75 minutes of Lease, less 45 for the boot, 11 for other clocks and 1 for the node's own.
    assert_eq!(allowed(&reboot, What::Boot), Ok(minutes(18)));
    assert_eq!(allowed(&reboot, What::Unit), Ok(minutes(57)));
    let late = Seen { now: NOW.after(minutes(18)), ..reboot.clone() };
    assert_eq!(allowed(&late, What::Boot), Err(NotNow::TooShort));
    let cached = Seen { fresh: false, ..reboot.clone() };
    assert_eq!(allowed(&cached, What::Boot), Err(NotNow::ReadAfresh));
    let older = Seen { newest: Config(Digest([2; 32])), ..reboot };
    assert_eq!(allowed(&older, What::Write), Err(NotNow::NewerConfig));
    assert_eq!(allowed(&older, What::Boot), Ok(minutes(18)));
    let ended = Seen { turns_back: true, newest: NEW, ..older };
    assert_eq!(allowed(&ended, What::Write), Err(NotNow::TurnsBack));
    assert_eq!(allowed(&ended, What::Boot), Ok(minutes(18)));
    let soft = under_way(Disrupts::Softly, Phase::NeedsBoot);
    assert_eq!(allowed(&soft, What::Boot), Err(NotNow::NotOrdered));
    assert!(terms.are_possible());
}

#[test]
fn nothing_begins_on_a_node_that_somebody_cordoned_or_uncordoned_meanwhile() {
    let terms = Terms::default();
    let asked = |seen: &Seen, what| {
        let question = Question { operation: ONE, what, number: 7 };
        permit(seen, &question, &terms).map(drop)
    };
    for disrupts in [Disrupts::Nothing, Disrupts::Softly] {
        let soft = under_way(disrupts, Phase::Waiting);
        assert_eq!(asked(&soft, What::Write), Ok(()), "{disrupts:?}");
        let cordoned = Seen { cordon: Cordon::Anothers, ..soft };
        let held = Err(NotNow::Held(HeldBy::Cordon));
        assert_eq!(asked(&cordoned, What::Write), held, "{disrupts:?}");
    }
    for phase in [Phase::Waiting, Phase::Begun] {
        let drained = under_way(Disrupts::Reboot, phase);
        assert_eq!(asked(&drained, What::Boot), Ok(()), "{phase:?}");
        // Its pods may be back: it is cordoned and drained again before anything begins.
        let uncordoned = Seen { cordon: Cordon::No, ..drained.clone() };
        assert_eq!(asked(&uncordoned, What::Boot), Err(NotNow::NotCordoned), "{phase:?}");
        let Act::WriteOrder { order, .. } = next(&uncordoned, &terms) else { panic!() };
        assert_eq!((order.operation, order.stage), (ONE, Stage::Prepare), "{phase:?}");
        let by_another = Seen { cordon: Cordon::Ours(Operation(9), Some(STAMP)), ..drained };
        assert_eq!(asked(&by_another, What::Boot), Err(NotNow::NotCordoned), "{phase:?}");
    }
    let done = under_way(Disrupts::Reboot, Phase::Done);
    let Act::WriteOrder { order, .. } = next(&Seen { cordon: Cordon::No, ..done }, &terms) else {
        panic!()
    };
    assert_eq!(order.stage, Stage::Closed, "what is done is not done again");
}

/// The acts from a node whose cordon is another one than its order says, until its agent is waited
/// for: nothing is permitted meanwhile.
fn prepared_again(mut seen: Seen) -> Vec<Act> {
    let (terms, mut acts) = (Terms::default(), Vec::new());
    for count in 0..8 {
        seen.id = Operation(100 + count);
        let asked = Question { operation: ONE, what: What::Boot, number: 7 };
        let act = next(&seen, &terms);
        acts.push(act.clone());
        if act == Act::Wait(Waits::Agent) {
            assert!(permit(&seen, &asked, &terms).is_ok(), "{seen:?}");
            return acts;
        }
        assert!(permit(&seen, &asked, &terms).is_err(), "{seen:?}");
        match act {
            Act::WriteOrder { order, .. } => seen.order = Some(order),
            Act::Cordon { operation, stamp, .. } => {
                assert_eq!(stamp, Stamp(seen.id.0), "each cordon has a stamp of its own");
                seen.cordon = Cordon::Ours(operation, Some(stamp));
            }
            Act::Evict { .. } => seen.drained = true,
            act => panic!("{act:?}"),
        }
    }
    panic!("it does not end: {acts:?}")
}

#[test]
fn a_node_that_was_cordoned_again_is_drained_again_before_anything_begins() {
    for phase in [Phase::Waiting, Phase::Begun] {
        let drained = under_way(Disrupts::Reboot, phase);
        let cordon = Cordon::Ours(ONE, Some(Stamp(8)));
        let acts = prepared_again(Seen { cordon, drained: false, ..drained });
        let prepares = |act: &Act| matches!(act, Act::WriteOrder { order, .. } if order.cordon.is_none() && order.stage == Stage::Prepare);
        assert!(prepares(&acts[0]), "{acts:?}");
        assert!(acts.iter().any(|act| matches!(act, Act::Evict { .. })), "{acts:?}");
        assert!(!acts.iter().any(|act| matches!(act, Act::Cordon { .. })), "{acts:?}");
        let goes = |act: &Act| matches!(act, Act::WriteOrder { order, .. } if order.cordon == Some(Stamp(8)) && order.stage == Stage::Go);
        assert!(acts.iter().any(goes), "{acts:?}");
    }
}

#[test]
fn what_a_version_without_stamps_wrote_is_prepared_again_once_and_then_goes_on() {
    for phase in [Phase::Waiting, Phase::Begun] {
        let drained = under_way(Disrupts::Reboot, phase);
        let order = drained.order.map(|it| Order { cordon: None, ..it });
        for (cordon, order) in [
            // By that version: the order and the mark, the order alone, the mark alone.
            (Cordon::Ours(ONE, None), order),
            (Cordon::Ours(ONE, Some(STAMP)), order),
            (Cordon::Ours(ONE, None), drained.order),
        ] {
            let acts = prepared_again(Seen { cordon, order, ..drained.clone() });
            let cordons = acts.iter().filter(|act| matches!(act, Act::Cordon { .. })).count();
            let is_stamped = matches!(cordon, Cordon::Ours(_, Some(_)));
            assert_eq!(cordons, usize::from(!is_stamped), "{acts:?}");
        }
    }
}

#[test]
fn a_lease_of_another_one_counts_until_it_has_ended_by_every_clock() {
    let terms = Terms::default();
    for (what, renewed, lasts, counts) in [
        ("just renewed", NOW, minutes(5), true),
        ("ended a minute ago, by this clock", NOW.before(minutes(6)), minutes(5), true),
        ("ended 12 minutes ago", NOW.before(minutes(17)), minutes(5), false),
        ("renewed in the future, as it seems", NOW.after(minutes(10)), minutes(5), true),
    ] {
        let lease = lease(Holder::Other, renewed, lasts);
        assert_eq!(lease.is_anothers(NOW, &terms), counts, "{what}");
        let seen = Seen { lease: Some(lease), ..seen(Disrupts::Nothing) };
        let waits = next(&seen, &terms) == Act::Wait(Waits::Lease);
        assert_eq!(waits, counts, "{what}");
    }
    let never = Lease { renewed: None, ..lease(Holder::Other, NOW, minutes(5)) };
    assert!(!never.is_anothers(NOW, &terms));
    let long_ago = NOW.before(minutes(60));
    let endless = Lease { lasts: None, ..lease(Holder::Other, long_ago, minutes(5)) };
    assert!(endless.is_anothers(NOW, &terms), "it does not say for how long");
}

#[test]
fn nodes_that_are_down_for_any_reason_count_once() {
    let slot = |unavailable| Slot { operation: ONE, unavailable };
    let slots = Slots::default().with("a1", "a", slot(true)).with("b1", "b", slot(false));
    let room = |node, pool, softly, limits, down: &[(&'static str, &'static str)]| {
        let down: BTreeMap<&str, &str> = down.iter().copied().collect();
        slots.has_room(&node, &pool, softly, limits, &down)
    };
    let limits = |pool, all| Limits { pool, all, soft: 1, one_by_one: false };
    for (what, has, node, pool, softly, limits, down) in [
        ("the pool is full", false, "a2", "a", false, limits(1, 9), &[][..]),
        ("another pool is not", true, "b2", "b", false, limits(1, 9), &[]),
        ("all pools are full", false, "b2", "b", false, limits(1, 1), &[]),
        ("a node that is down counts", false, "b2", "b", false, limits(1, 9), &[("b9", "b")]),
        ("once", true, "a2", "a", false, limits(2, 2), &[("a1", "a")]),
        ("its own does not", true, "b2", "b", false, limits(1, 2), &[("b2", "b")]),
        ("softly, by itself", false, "b2", "b", true, limits(9, 9), &[]),
        ("softly, in another pool", true, "a2", "a", true, limits(1, 1), &[]),
    ] {
        assert_eq!(room(node, pool, softly, limits, down), has, "{what}");
    }
    let left = slots.clone().without(&"a1", Operation(9));
    assert_eq!(left, slots, "the slot of another operation stays");
    assert_eq!(left.without(&"a1", ONE).of(&"a1"), None);
}

#[test]
fn where_nodes_go_one_by_one_slots_of_both_kinds_count_and_nodes_that_are_down() {
    let slot = |unavailable| Slot { operation: ONE, unavailable };
    let limits = Limits { pool: 1, all: 9, soft: 1, one_by_one: true };
    for taken in [false, true] {
        let slots = Slots::default().with("m1", "master", slot(taken)).with("w1", "w", slot(taken));
        let room = |node, softly, down: &[(&'static str, &'static str)]| {
            let down: BTreeMap<&str, &str> = down.iter().copied().collect();
            slots.has_room(&node, &"master", softly, limits, &down)
        };
        for softly in [false, true] {
            assert!(!room("m2", softly, &[]), "{taken} {softly}");
            assert!(room("m1", softly, &[("m1", "master"), ("w2", "w")]), "its own slot");
            let none = Slots::default().with("w1", "w", slot(taken));
            let room = |down: &[(&'static str, &'static str)]| {
                let down: BTreeMap<&str, &str> = down.iter().copied().collect();
                none.has_room(&"m2", &"master", softly, limits, &down)
            };
            assert!(room(&[]) && room(&[("m2", "master"), ("w2", "w")]), "{taken} {softly}");
            assert!(!room(&[("m3", "master")]), "another one is not Ready");
        }
        // A step of it failed: it boots after others that are down, and others wait for it.
        assert!(!room("m1", false, &[("m3", "master")]));
        assert!(room("m1", true, &[("m3", "master")]));
    }
}

#[test]
fn a_node_that_failed_is_tried_again_without_giving_its_slot_back() {
    let failed = under_way(Disrupts::Reboot, Phase::Degraded);
    let Act::TakeSlot { slot, .. } = next(&failed, &Terms::default()) else { panic!() };
    assert_eq!(slot, Slot { operation: failed.id, unavailable: true });
    let left = Seen { wanted: None, ..failed };
    assert!(matches!(next(&left, &Terms::default()), Act::ReleaseLease { .. }));
    let left = Seen { lease: None, ..left };
    assert_eq!(next(&left, &Terms::default()), Act::Degrade);
}

#[test]
fn what_a_node_says_that_it_has_is_wanted_again_only_where_an_operation_left_it_unwell() {
    let boots = Some(Disrupts::Reboot);
    for (stage, phase, unwell, expected) in [
        (Stage::Go, Phase::Degraded, false, true),
        (Stage::Closed, Phase::TurnedBack, true, true),
        (Stage::Go, Phase::Done, true, false),
        (Stage::Go, Phase::WentBack, true, false),
        (Stage::Closed, Phase::Done, false, false),
    ] {
        let seen = under_way(Disrupts::Reboot, phase);
        let order = Order { stage, unwell, ..seen.order.unwrap() };
        let of_order = (Some(&order), seen.report);
        let wants = |turn, has_it| wanted(turn, NEW, has_it, of_order);
        assert_eq!(wants(boots, true).is_some(), expected, "{stage:?} {phase:?}");
        assert_eq!(wants(boots, false), Some(Wanted { config: NEW, disrupts: Disrupts::Reboot }));
        assert_eq!((wants(None, true), wants(None, false)), (None, None), "it is not its turn");
    }
    assert_eq!(wanted(boots, NEW, true, (None, None)), None);
}

#[test]
fn a_node_that_failed_without_being_drained_is_tried_again_where_one_more_may_be_down() {
    let terms = Terms::default();
    let soft = Some(Slot { operation: ONE, unavailable: false });
    let failed = Seen { slot: soft, ..under_way(Disrupts::Softly, Phase::Degraded) };
    let boots = Some(Wanted { config: failed.newest, disrupts: Disrupts::Reboot });
    let failed = Seen { wanted: boots, room: true, ..failed };
    let Act::TakeSlot { slot, .. } = next(&failed, &terms) else { panic!() };
    assert_eq!(slot, Slot { operation: failed.id, unavailable: true });
    let full = Seen { room: false, ..failed };
    assert!(matches!(next(&full, &terms), Act::ReleaseLease { .. }), "somebody may mend it");
    let full = Seen { lease: None, ..full };
    assert_eq!(next(&full, &terms), Act::Wait(Waits::Room));
    // One that was drained has such a slot.
    let drained = Some(Slot { operation: ONE, unavailable: true });
    let drained = Seen { slot: drained, ..full };
    assert!(matches!(next(&drained, &terms), Act::TakeSlot { .. }));
}

#[test]
fn a_node_that_failed_is_not_tried_again_while_somebody_else_has_it() {
    let failed = under_way(Disrupts::Reboot, Phase::Degraded);
    for held in ALL {
        let seen = Seen { held: Some(held), ..failed.clone() };
        assert!(matches!(next(&seen, &Terms::default()), Act::ReleaseLease { .. }), "{held:?}");
        let seen = Seen { lease: None, ..seen };
        assert_eq!(next(&seen, &Terms::default()), Act::Degrade, "{held:?}");
    }
    let theirs = Some(lease(Holder::Other, NOW, minutes(60)));
    let seen = Seen { lease: theirs, ..failed };
    assert_eq!(next(&seen, &Terms::default()), Act::Degrade);
}

#[test]
fn once_an_order_is_closed_no_report_begins_anything() {
    let terms = Terms::default();
    let done = under_way(Disrupts::Reboot, Phase::Done);
    let Act::WriteOrder { order, .. } = next(&done, &terms) else { panic!() };
    assert_eq!(order.stage, Stage::Closed);
    let closed = Seen { order: Some(order), slot: None, lease: None, ..done };
    let closed = Seen { cordon: Cordon::No, wanted: None, ..closed };
    let phases = [Phase::Waiting, Phase::Begun, Phase::NeedsBoot, Phase::Done, Phase::Degraded];
    for phase in phases.into_iter().map(Some).chain([None]) {
        let report = phase.map(|phase| Report { operation: ONE, phase, token: 0 });
        let seen = Seen { report, ..closed.clone() };
        assert_eq!(next(&seen, &terms), Act::Wait(Waits::Nothing), "{phase:?}");
        let asked = Question { operation: ONE, what: What::Boot, number: 7 };
        assert!(permit(&seen, &asked, &terms).is_err(), "{phase:?}");
    }
}

/// The order that a node gets which has a slot, and the acts before it.
fn ordered(mut seen: Seen) -> Order {
    for _ in 0..4 {
        match next(&seen, &Terms::default()) {
            Act::MakeLease(lease) | Act::WriteLease { lease, .. } => seen.lease = Some(lease),
            Act::WriteOrder { order, .. } => return order,
            act => panic!("{act:?}"),
        }
    }
    panic!("no order comes: {seen:?}")
}

#[test]
fn an_order_has_a_higher_token_than_the_agent_ever_took_where_the_last_order_is_lost() {
    let done = |token| Some(Report { operation: Operation(9), phase: Phase::Done, token });
    for disrupts in [Disrupts::Nothing, Disrupts::Softly, Disrupts::Drain, Disrupts::Reboot] {
        let slot = Some(Slot { operation: ONE, unavailable: disrupts.drains() });
        let made_anew = |report| ordered(Seen { slot, report, ..seen(disrupts) }).token;
        assert_eq!(made_anew(done(7)), 8, "{disrupts:?}");
        assert_eq!(made_anew(done(0)), 1, "an older agent says none: {disrupts:?}");
        assert_eq!(made_anew(None), 1, "{disrupts:?}");
        assert_eq!(made_anew(done(u32::MAX)), 1, "no order had that: {disrupts:?}");
    }
}

#[test]
fn an_order_that_is_older_than_what_the_agent_took_is_given_up_and_the_next_one_is_newer() {
    for disrupts in [Disrupts::Nothing, Disrupts::Softly, Disrupts::Drain, Disrupts::Reboot] {
        for stage in [Stage::Prepare, Stage::Go, Stage::Withdrawn] {
            let of_token = |operation, token| {
                let order = under_way(disrupts, Phase::Waiting).order;
                let report = Some(Report { operation, phase: Phase::Begun, token });
                let order = order.map(|it| Order { stage, ..it });
                Seen { order, report, ..under_way(disrupts, Phase::Waiting) }
            };
            let is_closed = |seen: &Seen| {
                matches!(next(seen, &Terms::default()),
                    Act::WriteOrder { order, .. } if order.stage == Stage::Closed)
            };
            for token in [3, 9] {
                assert!(
                    is_closed(&of_token(Operation(9), token)),
                    "{disrupts:?} {stage:?} {token}"
                );
            }
            assert!(!is_closed(&of_token(Operation(9), 2)), "{disrupts:?} {stage:?}");
            assert!(!is_closed(&of_token(Operation(9), 0)), "{disrupts:?} {stage:?}");
            assert!(!is_closed(&of_token(ONE, 3)), "{disrupts:?} {stage:?}");
        }
    }
}

#[test]
fn a_lease_is_written_once_and_then_the_order_wherever_tokens_have_come_to() {
    const MOST: u32 = 1 << 30;
    let terms = Terms::default();
    let ended = lease(Holder::Other, NOW.before(minutes(60)), minutes(5));
    for transitions in [0, MOST - 2, MOST - 1, MOST, MOST + 1, i32::MAX.cast_unsigned()] {
        for said in [0, MOST - 1, MOST, MOST + 1, u32::MAX] {
            for ordered_before in [3, MOST - 1, MOST, MOST + 1, MOST + 2] {
                let report =
                    Some(Report { operation: Operation(9), phase: Phase::Done, token: said });
                let under_way = under_way(Disrupts::Softly, Phase::Done);
                let order = under_way.order.map(|it| Order {
                    stage: Stage::Closed,
                    token: ordered_before,
                    ..it
                });
                let slot = Some(Slot { operation: Operation(2), unavailable: false });
                let lease = Some(Lease { transitions, ..ended });
                let mut seen = Seen { lease, slot, order, report, ..under_way };
                let Act::WriteLease { lease, .. } = next(&seen, &terms) else { panic!("{seen:?}") };
                seen.lease = Some(lease);
                let token = ordered(seen).token;
                assert_eq!(token, lease.transitions);
                assert!(token > ordered_before, "{transitions} {said} {ordered_before}");
            }
        }
    }
}

#[test]
fn no_token_is_taken_from_a_lease_that_says_what_no_lease_comes_to() {
    let terms = Terms::default();
    let ended = lease(Holder::Other, NOW.before(minutes(60)), minutes(5));
    for (transitions, token) in [(2, 4), (9, 10), (i32::MAX.cast_unsigned(), 4), (u32::MAX, 4)] {
        let lease = Some(Lease { transitions, ..ended });
        let under_way = under_way(Disrupts::Softly, Phase::Done);
        let before = under_way.order.map(|it| Order { stage: Stage::Closed, ..it });
        let slot = Some(Slot { operation: Operation(2), unavailable: false });
        let seen = Seen { lease, slot, order: before, ..under_way };
        assert_eq!(ordered(seen).token, token, "{transitions}");
    }
    // Somebody writes it into one that tread holds.
    let mut held = under_way(Disrupts::Softly, Phase::Begun);
    held.lease = held.lease.map(|it| Lease { transitions: i32::MAX.cast_unsigned(), ..it });
    let Act::WriteLease { lease, .. } = next(&held, &terms) else { panic!() };
    assert_eq!(lease.transitions, 4);
    held.lease = Some(lease);
    assert_eq!(ordered(held).token, 4);
}

#[test]
fn a_node_that_joins_is_disrupted_under_its_lease_too() {
    let terms = Terms::default();
    let whole = terms.lease + terms.boot;
    let of = |operation| Holder::Us(operation);
    let since = |holder, transitions, ago| {
        let at = NOW.before(ago);
        let lasts = whole.saturating_add(terms.skew);
        Lease { holder, transitions, renewed: Some(at.before(terms.skew)), lasts: Some(lasts) }
    };
    let now = minutes(0);
    let long_ago = whole + terms.skew + minutes(1);
    for (lease, expected) in [
        (None, Ok(Some(since(of(None), 0, now)))),
        (Some(since(of(None), 0, now)), Ok(Some(since(of(Some(ONE)), 1, now)))),
        (Some(since(of(Some(ONE)), 4, now)), Ok(None)),
        // It is renewed well before it ends, and stays the same one.
        (Some(since(of(Some(ONE)), 4, terms.lease)), Ok(Some(since(of(Some(ONE)), 4, now)))),
        (Some(since(of(Some(Operation(9))), 4, now)), Ok(Some(since(of(Some(ONE)), 5, now)))),
        (Some(since(Holder::Other, 4, now)), Err(Waits::Lease)),
        (Some(since(Holder::Other, 4, long_ago)), Ok(Some(since(of(Some(ONE)), 5, now)))),
        (Some(since(Holder::Other, u32::MAX, long_ago)), Ok(Some(since(of(Some(ONE)), 1, now)))),
    ] {
        assert_eq!(lease_to_join(lease.as_ref(), ONE, NOW, &terms), expected, "{lease:?}");
    }
}
