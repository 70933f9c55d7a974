#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use super::*;
use std::sync::Arc;
use tread_kube::agents::GivenConfig;
use tread_model::digest::Digest;
use tread_model::protocol::Operation;

const ONE: &str = "00000000000000000000000000000001";
const FROM: Digest = Digest([7; 32]);

fn text(word: &str) -> String {
    format!(
        r#"{{"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
            "metadata": {{"name": "rendered-worker-1",
                          "labels": {{"machineconfiguration.openshift.io/role": "worker"}}}},
            "spec": {{"config": {{"ignition": {{"version": "3.4.0"}}, "storage": {{"files": [
                {{"path": "/etc/a.conf", "contents": {{"source": "data:,{word}"}}}}]}}}}}}}}"#
    )
}

fn config_of(text: String) -> GivenConfig {
    let documents = Documents(vec![Document { name: "a".to_owned(), text: text.clone() }]);
    let digest = digest(&documents.config().unwrap()).unwrap().to_string();
    GivenConfig { name: ConfigName { name: "rendered-worker-1".to_owned(), digest }, text }
}

fn plan(steps: &[Step], config: &GivenConfig) -> VerifiablePlan {
    let to = Digest::parse(&config.name.digest).unwrap();
    let mut plan = VerifiablePlan::always_allowed(FROM, to);
    plan.steps = steps.to_vec();
    plan.digest = plan.computed_digest();
    plan
}

fn reload() -> Step {
    Step::Reload { unit: "a.service".to_owned() }
}

/// An order in a stage, with a plan of these steps, that may disrupt the node so much.
fn instructed(stage: UpdateStage, steps: &[Step], disrupts: UpdateDisrupts) -> Instructions {
    let config = config_of(text("one"));
    let order = UpdateOrder {
        operation: ONE.to_owned(),
        config: config.name.clone(),
        disrupts,
        token: 5,
        stage,
        given: true,
        unwell: false,
        hands_on: None,
        retries: None,
        failed_at: None,
        tried: 0,
        escalated: None,
        go_since: None,
        withdrawn: false,
        drain_since: None,
        leaves_pods: None,
        plan: Some(serde_json::to_value(plan(steps, &config)).unwrap()),
    };
    let config = Some(Arc::new(config));
    Instructions {
        order: Some(order),
        config,
        node: "worker-1".to_owned(),
        ..Instructions::default()
    }
}

fn go() -> Instructions {
    instructed(UpdateStage::Go, &[Step::Write, reload()], UpdateDisrupts::Softly)
}

fn is_in(phase: Phase) -> Local {
    Local { operation: Some((Operation(1), phase)), token: 5 }
}

fn in_word(todo: &Todo) -> &'static str {
    match todo {
        Todo::Nothing => "nothing",
        Todo::Adopt(..) => "adopt",
        Todo::TurnBack(_) => "turn back",
        Todo::Carry(..) => "carry",
        Todo::Waits(_) => "wait",
    }
}

#[test]
fn an_order_is_carried_out_once_and_only_in_its_stage() {
    let new = Local::default();
    let newer = Local { operation: Some((Operation(2), Phase::Done)), token: 6 };
    let older = Local { operation: Some((Operation(2), Phase::Done)), token: 4 };
    let busy = Local { operation: Some((Operation(2), Phase::Begun)), token: 4 };
    for (local, stage, is) in [
        (new, UpdateStage::Prepare, "nothing"),
        (new, UpdateStage::Go, "carry"),
        (new, UpdateStage::Withdrawn, "turn back"),
        (new, UpdateStage::Closed, "nothing"),
        (older, UpdateStage::Go, "carry"),
        (newer, UpdateStage::Go, "nothing"),
        (newer, UpdateStage::Withdrawn, "nothing"),
        (busy, UpdateStage::Go, "nothing"),
        (busy, UpdateStage::Withdrawn, "nothing"),
        // An agent that died before it handed the order over takes it again.
        (is_in(Phase::Waiting), UpdateStage::Go, "carry"),
        (is_in(Phase::Waiting), UpdateStage::Prepare, "nothing"),
        (is_in(Phase::Waiting), UpdateStage::Withdrawn, "turn back"),
        (is_in(Phase::Begun), UpdateStage::Go, "nothing"),
        (is_in(Phase::Begun), UpdateStage::Withdrawn, "nothing"),
        (is_in(Phase::NeedsBoot), UpdateStage::Go, "nothing"),
        (is_in(Phase::Done), UpdateStage::Go, "nothing"),
        (is_in(Phase::TurnedBack), UpdateStage::Go, "nothing"),
        (is_in(Phase::TurnedBack), UpdateStage::Withdrawn, "nothing"),
        (is_in(Phase::WentBack), UpdateStage::Go, "nothing"),
        (is_in(Phase::Degraded), UpdateStage::Go, "nothing"),
    ] {
        let instructions =
            Instructions { order: go().order.map(|order| UpdateOrder { stage, ..order }), ..go() };
        assert_eq!(in_word(&todo(local, &instructions)), is, "{local:?} {stage:?}");
    }
}

#[test]
fn what_is_carried_out_asks_the_agent_and_is_drained_where_the_order_is() {
    for (steps, disrupts, is_drained, boots) in [
        (vec![Step::Write], UpdateDisrupts::Nothing, false, false),
        (vec![Step::Write, reload()], UpdateDisrupts::Softly, false, false),
        (
            vec![Step::Drain, Step::Write, reload(), Step::Uncordon],
            UpdateDisrupts::Drain,
            true,
            false,
        ),
        (
            vec![Step::Drain, Step::Write, Step::Reboot, Step::Uncordon],
            UpdateDisrupts::Reboot,
            true,
            true,
        ),
    ] {
        let instructions = instructed(UpdateStage::Go, &steps, disrupts);
        let Todo::Carry(taken, given) = todo(Local::default(), &instructions) else {
            panic!("{steps:?}")
        };
        assert_eq!((taken.boots, taken.token, taken.phase), (boots, 5, UpdatePhase::Waiting));
        assert_eq!((given.id.as_str(), given.terms.permits), (ONE, Asked::Agent));
        let Does::Apply { plan, drained, accept, .. } = given.order else { panic!("{steps:?}") };
        assert_eq!((plan.unwrap().steps, drained), (steps, is_drained));
        assert!(accept.is_empty());
    }
}

#[test]
fn what_cannot_be_verified_is_told_and_nothing_of_it_is_done() {
    let with = |change: &dyn Fn(&mut Instructions, &mut UpdateOrder)| {
        let mut instructions = go();
        let mut order = instructions.order.take().unwrap();
        change(&mut instructions, &mut order);
        instructions.order = Some(order);
        instructions
    };
    let other = Arc::new(config_of(text("two")));
    let always = [Step::Drain, Step::Write, Step::Reboot, Step::Uncordon];
    let steps =
        |steps: &[Step]| Some(serde_json::to_value(plan(steps, &config_of(text("one")))).unwrap());
    for (what, instructions, says) in [
        ("no operation", with(&|_, it| it.operation = "x".to_owned()), "the order cannot be read"),
        ("no digest", with(&|_, it| it.config.digest = "x".to_owned()), "the order cannot be read"),
        ("no config", with(&|instructions, _| instructions.config = None), "gives no config"),
        (
            "another config",
            with(&|instructions, _| instructions.config = Some(other.clone())),
            "and the order is about rendered-worker-1",
        ),
        (
            "another config of that name",
            with(&|instructions, it| {
                let text = other.text.clone();
                instructions.config = Some(Arc::new(GivenConfig { name: it.config.clone(), text }));
            }),
            "has the digest",
        ),
        (
            "a config with another name",
            with(&|_, it| it.config.name = "rendered-worker-2".to_owned()),
            "and the order is about rendered-worker-2",
        ),
        (
            "no config at all",
            with(&|instructions, it| {
                let text = "{SECRET".to_owned();
                instructions.config = Some(Arc::new(GivenConfig { name: it.config.clone(), text }));
            }),
            "cannot be read by this agent",
        ),
        ("no plan", with(&|_, it| it.plan = Some("none".into())), "the plan is not carried out"),
        (
            "a plan that was altered",
            with(&|_, it| {
                it.plan.as_mut().unwrap()["steps"] = serde_json::json!([{"step": "write"}])
            }),
            "the plan is not carried out",
        ),
        (
            "a plan that leads elsewhere",
            with(&|_, it| {
                it.plan = Some(serde_json::to_value(plan(&[Step::Write], &other)).unwrap())
            }),
            "the plan leads to",
        ),
        ("a boot that is not permitted", with(&|_, it| it.plan = steps(&always)), "less (Softly)"),
        (
            "a drain that is not permitted",
            with(&|_, it| it.plan = steps(&[Step::Drain, Step::Write, reload(), Step::Uncordon])),
            "less (Softly)",
        ),
        (
            "a unit that is not permitted",
            with(&|_, it| it.disrupts = UpdateDisrupts::Nothing),
            "less (Nothing)",
        ),
        ("no plan, and no boot", with(&|_, it| it.plan = None), "less (Softly)"),
        (
            "to overwrite without a boot",
            with(&|instructions, _| instructions.overwrite = true),
            "less (Softly)",
        ),
    ] {
        let Todo::Waits(why) = todo(Local::default(), &instructions) else { panic!("{what}") };
        assert!(why.contains(says) && !why.contains("SECRET"), "{what}: {why}");
    }
}

#[test]
fn a_node_is_adopted_where_no_order_is_open_and_overwritten_by_an_order_with_a_boot() {
    let adopt = |stage, steps: &[Step], disrupts| Instructions {
        adopt: true,
        ..instructed(stage, steps, disrupts)
    };
    let without =
        Instructions { order: None, ..adopt(UpdateStage::Closed, &[], UpdateDisrupts::Nothing) };
    let Todo::Adopt(documents, name) = todo(Local::default(), &without) else { panic!() };
    assert_eq!(digest(&documents.config().unwrap()).unwrap().to_string(), name.digest);
    let closed = adopt(UpdateStage::Closed, &[Step::Write], UpdateDisrupts::Nothing);
    assert_eq!(in_word(&todo(is_in(Phase::Done), &closed)), "adopt");
    let not = Instructions { adopt: false, ..without.clone() };
    assert_eq!(todo(Local::default(), &not), Todo::Nothing);
    let nothing = Instructions { config: None, ..without };
    assert_eq!(in_word(&todo(Local::default(), &nothing)), "wait");
    // An order is not taken for an adoption.
    let order = adopt(UpdateStage::Go, &[Step::Write], UpdateDisrupts::Nothing);
    assert_eq!(in_word(&todo(Local::default(), &order)), "carry");

    let over = Instructions {
        overwrite: true,
        ..instructed(UpdateStage::Go, &[Step::Write], UpdateDisrupts::Reboot)
    };
    let Todo::Carry(taken, given) = todo(Local::default(), &over) else { panic!() };
    assert!(taken.boots && given.terms.permits == Asked::Agent);
    let Does::Adopt { differs: Adopt::Overwrite, drained: true, give_up: false, .. } = given.order
    else {
        panic!()
    };
}

#[test]
fn what_stands_is_given_up_only_where_this_agent_told_of_it_and_an_admin_asked_again() {
    let operation = |number: u32| format!("{number:032}");
    let ended = |number: u32, phase| EndedOperation {
        operation: operation(number),
        config: "rendered-worker-1".to_owned(),
        phase,
        at: MicroTime(Timestamp::now()),
        message: None,
    };
    let degraded = |number| ended(number, UpdatePhase::Degraded);
    let asked = |retries: Option<u32>, disrupts| {
        let order = instructed(UpdateStage::Go, &[Step::Write], disrupts).order.unwrap();
        UpdateOrder { operation: operation(9), retries: retries.map(operation), ..order }
    };
    let boots = UpdateDisrupts::Reboot;
    let turned_back = ended(2, UpdatePhase::TurnedBack);
    for (what, known, order, stands, gives_up) in [
        ("asked again", vec![degraded(1)], asked(Some(1), boots), Some(1), true),
        ("not asked", vec![degraded(1)], asked(None, boots), Some(1), false),
        ("asked of another one", vec![degraded(1)], asked(Some(3), boots), Some(1), false),
        (
            "without a boot",
            vec![degraded(1)],
            asked(Some(1), UpdateDisrupts::Drain),
            Some(1),
            false,
        ),
        ("nothing stands", vec![degraded(1)], asked(Some(1), boots), None, true),
        ("an admin's on the node", vec![degraded(1)], asked(Some(1), boots), Some(5), false),
        (
            "what stood in the way of the last one",
            vec![degraded(2), degraded(1)],
            asked(Some(2), boots),
            Some(1),
            true,
        ),
        (
            "the last one was withdrawn",
            vec![turned_back.clone(), degraded(1)],
            asked(Some(2), boots),
            Some(1),
            true,
        ),
        ("not degraded", vec![turned_back], asked(Some(2), boots), Some(2), false),
        ("asked too early", vec![degraded(2), degraded(1)], asked(Some(1), boots), Some(2), false),
        ("nothing is known", vec![], asked(Some(1), boots), Some(1), false),
        ("of itself", vec![degraded(9)], asked(Some(9), boots), Some(9), false),
    ] {
        let kept = Kept { ended: known, ..Kept::default() };
        let is = super::gives_up(&kept, &order, stands.map(operation));
        assert_eq!(is, gives_up.then(|| operation(stands.unwrap_or(1))), "{what}");
    }
}

#[test]
fn an_order_that_is_open_though_it_ended_here_is_told_of_again() {
    let kept = |phase| {
        let given = instructed(UpdateStage::Go, &[reload()], UpdateDisrupts::Softly);
        let order = given.order.unwrap();
        Kept { taken: Some(taken(&order, phase, false)), ..Kept::default() }
    };
    let given = |stage| instructed(stage, &[reload()], UpdateDisrupts::Softly);
    let mut another = given(UpdateStage::Go);
    another.order.as_mut().unwrap().operation = ONE.replace('1', "2");
    for (instructions, phase, expected) in [
        (given(UpdateStage::Go), UpdatePhase::Done, true),
        (given(UpdateStage::Go), UpdatePhase::WentBack, true),
        (given(UpdateStage::Go), UpdatePhase::Begun, false),
        (given(UpdateStage::Closed), UpdatePhase::Done, false),
        (another, UpdatePhase::Done, false),
        (Instructions { order: None, ..given(UpdateStage::Go) }, UpdatePhase::Done, false),
    ] {
        let is = is_given_after_its_end(&instructions, &kept(phase));
        assert_eq!(is, expected, "{phase:?} {:?}", instructions.order);
    }
}
