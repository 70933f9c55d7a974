//! What goes over the wire. The node's own side is played.

use crate::cluster::{Cluster, config, disk, operation, order, reload, within};
use futures::FutureExt as _;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tread_agent::{Wire, start};
use tread_kube::agents::{FORM, Instructions};
use tread_kube::api::node_update::{NodeUpdateStatus, UpdateDisrupts, UpdatePhase, UpdateStage};
use tread_model::joining::GAVE_UP;
use tread_model::plan::Step;
use tread_node::agent::{Orders as _, Permits as _};
use tread_node::applied::Applied;
use tread_node::clock::since_boot;
use tread_node::documents::{Document, Documents};
use tread_node::journal::STATE;
use tread_node::orders::{Does, Given};
use tread_node::permits::{Act, NoPermit};
use tread_node::prepare::Wanted;
use tread_node::progress::{Phase, Progress, Reporter as _, StepState};
use tread_node::tree::Tree;
use tread_test_bed::eventually;

async fn agent(cluster: &Cluster) -> (Wire, Tree) {
    let at = cluster.path("disk");
    disk(&at);
    let tree = Tree::open(&at).unwrap();
    (start(&tree, cluster.settings(), cluster.client().await).unwrap(), tree)
}

async fn next(wire: &Wire) -> Given {
    within("an order", wire.next()).await.unwrap()
}

/// That nothing is given, as far as what stands at the service by now goes.
async fn nothing_comes(wire: &Wire, cluster: &Cluster) {
    tokio::select! {
        given = wire.next() => panic!("{given:?}"),
        () = within("that it heard of it", cluster.knows.is_heard()) => {}
    }
    let given = wire.next().now_or_never();
    assert!(given.is_none(), "{given:?}");
}

fn progress(id: &str, phase: Phase) -> Progress {
    let mut progress = Progress::new(id, tread_model::digest::Digest([2; 32]), &reload());
    progress.phase = phase;
    progress
}

fn go(number: u32) -> Instructions {
    order(number, UpdateStage::Go, ("one", "two"), &reload(), UpdateDisrupts::Softly)
}

fn unit() -> Act {
    Act::Unit { unit: "a.service".to_owned() }
}

#[tokio::test]
async fn an_order_is_taken_once_permitted_step_by_step_and_told_in_few_writes() {
    let cluster = Cluster::with_a_node().await;
    let _served = cluster.serves().await;
    let (wire, _) = agent(&cluster).await;
    let writes_of_it = cluster.counts_writes().await;
    cluster.knows.instruct(go(1));
    let given = next(&wire).await;
    let id = operation(1);
    assert_eq!(given.id, id);
    let Does::Apply { plan, drained: false, .. } = &given.order else { panic!("{given:?}") };
    assert_eq!(plan.as_ref().unwrap().steps, reload());
    let phase = async |phase: UpdatePhase| {
        cluster
            .says(&format!("{phase:?}"), |it| (it.phase == Some(phase)).then(|| it.clone()))
            .await
    };
    let status = phase(UpdatePhase::Waiting).await;
    assert_eq!(status.operation.as_ref(), Some(&id));
    assert_eq!(status.boot_id.as_deref(), Some("0f6bd1a4-8b0a-4e4c-9f4c-2d8f5a1b3c7e"));

    // Refused at first: it is asked again until it is permitted, and says why it waits.
    cluster.knows.permits(Err("somebody else has the node"));
    let asks = wire.ask(&id, &Act::Write);
    tokio::pin!(asks);
    let why = cluster.says("why it waits", |it| it.message.clone());
    tokio::select! {
        permit = &mut asks => panic!("{permit:?}"),
        said = why => assert_eq!(said, "waits for a permit: somebody else has the node"),
    }
    cluster.knows.permits(Ok(60_000));
    let permit = within("a permit", asks).await.unwrap();
    let left = permit.ends().unwrap() - since_boot();
    assert!(left <= Duration::from_secs(60), "counted from the question on: {left:?}");
    assert!(permit.holds());
    let status = phase(UpdatePhase::Begun).await;
    assert_eq!(status.message, None, "{status:?}");

    let mut writes = progress(&id, Phase::Acting);
    for step in 0..20 {
        writes.begins(1);
        writes.message = format!("step {step}");
        wire.report(&writes);
        tokio::task::yield_now().await;
    }
    within("a permit", wire.ask(&id, &unit())).await.unwrap();
    writes.phase = Phase::Done;
    writes.message.clear();
    writes.ends(1, StepState::Done, "");
    wire.report(&writes);
    wire.ended(&id, Some(&writes)).await.unwrap();
    let status = phase(UpdatePhase::Done).await;
    assert_eq!(status.current, Some(config("two").name));
    assert_eq!((status.ended.len(), &status.ended[0].operation), (1, &id));
    assert_eq!(status.conditions, [], "the service says whether that is the newest one");
    let asked: Vec<u64> =
        cluster.knows.asked.lock().unwrap().iter().map(|ask| ask.number).collect();
    assert!(asked.is_sorted_by(|a, b| a < b), "no number comes twice: {asked:?}");

    eventually("its writes are counted", async || {
        (writes_of_it.load(Ordering::SeqCst) >= 3).then_some(())
    })
    .await;
    let count = writes_of_it.load(Ordering::SeqCst);
    assert!(count <= 10, "{count} writes for an operation");

    // It is not taken again: not when it is told again, nor by an agent that begins anew.
    cluster.knows.instruct(Instructions { generation: Some(2), ..go(1) });
    assert!(wire.next().now_or_never().is_none());
    let mut later = go(1);
    later.generation = Some(3);
    cluster.knows.instruct(later);
    let (again, _) = agent(&cluster).await;
    for wire in [&wire, &again] {
        let waits = tokio::time::timeout(Duration::from_secs(2), wire.next()).await;
        assert!(waits.is_err(), "{waits:?}");
    }
    let first = cluster.knows.asked.lock().unwrap()[0].number;
    cluster.knows.instruct(go(4));
    assert_eq!(next(&again).await.id, operation(4));
    within("a permit", again.ask(&operation(4), &Act::Write)).await.unwrap();
    let last = cluster.knows.asked.lock().unwrap().last().unwrap().number;
    assert!(last > first + (1 << 20), "numbers of another start are others");
}

#[tokio::test]
async fn an_order_that_is_withdrawn_turns_back_before_a_write_and_never_after_it() {
    let cluster = Cluster::with_a_node().await;
    let _served = cluster.serves().await;
    let (wire, _) = agent(&cluster).await;
    let in_stage =
        |number, stage| order(number, stage, ("one", "two"), &reload(), UpdateDisrupts::Softly);
    // One that no agent had.
    cluster.knows.instruct(in_stage(1, UpdateStage::Withdrawn));
    nothing_comes(&wire, &cluster).await;
    cluster
        .says("it turned back", |it| (it.phase == Some(UpdatePhase::TurnedBack)).then_some(()))
        .await;
    cluster.knows.instruct(Instructions { generation: Some(2), ..in_stage(1, UpdateStage::Go) });
    assert!(tokio::time::timeout(Duration::from_secs(2), wire.next()).await.is_err());

    // One that waits for its first write.
    cluster.knows.instruct(go(3));
    let id = next(&wire).await.id;
    cluster.knows.permits(Err("not yet"));
    let asks = wire.ask(&id, &Act::Write);
    tokio::pin!(asks);
    assert!(tokio::time::timeout(Duration::from_millis(100), &mut asks).await.is_err());
    // What an older order says does not count.
    cluster.knows.instruct(in_stage(2, UpdateStage::Closed));
    assert!(tokio::time::timeout(Duration::from_secs(2), &mut asks).await.is_err());
    cluster.knows.instruct(in_stage(3, UpdateStage::Withdrawn));
    let refused = within("its end", asks).await.unwrap_err().to_string();
    assert!(refused.contains("withdrawn"), "{refused}");
    let refused = Progress::refused(&id, &refused);
    wire.report(&refused);
    wire.ended(&id, Some(&refused)).await.unwrap();
    let status = cluster
        .says("it turned back", |it| {
            let is_it =
                it.phase == Some(UpdatePhase::TurnedBack) && it.operation == Some(operation(3));
            is_it.then(|| it.clone())
        })
        .await;
    assert_eq!(status.ended.len(), 2);
    assert!(status.message.unwrap().contains("withdrawn"));

    // One that has begun.
    cluster.knows.instruct(go(4));
    let id = next(&wire).await.id;
    cluster.knows.permits(Ok(60_000));
    within("a permit", wire.ask(&id, &Act::Write)).await.unwrap();
    cluster.knows.instruct(in_stage(4, UpdateStage::Withdrawn));
    let act = unit();
    let asks = wire.ask(&id, &act);
    tokio::pin!(asks);
    let waits = tokio::time::timeout(Duration::from_secs(2), &mut asks).await;
    assert!(waits.is_err() || waits.unwrap().is_ok());
    cluster.knows.instruct(Instructions { generation: Some(9), ..go(4) });
    cluster.says("Begun", |it| (it.phase == Some(UpdatePhase::Begun)).then_some(())).await;
}

#[tokio::test]
async fn a_boot_that_was_not_planned_is_told_and_waits_for_its_turn() {
    let cluster = Cluster::with_a_node().await;
    let _served = cluster.serves().await;
    let (wire, _) = agent(&cluster).await;
    cluster.knows.instruct(go(1));
    let id = next(&wire).await.id;
    cluster.knows.permits(Ok(60_000));
    within("a permit", wire.ask(&id, &Act::Write)).await.unwrap();
    cluster.knows.permits(Err("the order has no boot"));
    let mut failed = progress(&id, Phase::Waiting);
    failed.ends(0, StepState::Done, "");
    failed.ends(1, StepState::Failed, "it did not reload");
    wire.report(&failed);
    let act = Act::Boot { because: "a.service did not reload".to_owned() };
    let asks = wire.ask(&id, &act);
    tokio::pin!(asks);
    let needs = cluster
        .says("NeedsBoot", |it| (it.phase == Some(UpdatePhase::NeedsBoot)).then(|| it.clone()));
    tokio::select! {
        permit = &mut asks => panic!("{permit:?}"),
        _ = needs => {}
    }
    // While the node is prepared for it nobody is asked.
    let always = order(1, UpdateStage::Prepare, ("one", "two"), &reload(), UpdateDisrupts::Reboot);
    cluster.knows.instruct(always.clone());
    assert!(tokio::time::timeout(Duration::from_secs(2), &mut asks).await.is_err());
    cluster.knows.permits(Ok(60_000));
    let mut go = always;
    go.order.as_mut().unwrap().stage = UpdateStage::Go;
    cluster.knows.instruct(go);
    within("a permit", asks).await.unwrap();
    failed.phase = Phase::WentBack;
    failed.message = "it went back".to_owned();
    wire.report(&failed);
    wire.ended(&id, Some(&failed)).await.unwrap();
    let status = cluster
        .says("WentBack", |it| (it.phase == Some(UpdatePhase::WentBack)).then(|| it.clone()))
        .await;
    assert_eq!((status.current, status.message.as_deref()), (None, Some("it went back")));
}

#[tokio::test]
async fn an_agent_that_waits_for_a_permit_says_again_what_was_lost() {
    let cluster = Cluster::with_a_node().await;
    let _served = cluster.serves().await;
    let (wire, _) = agent(&cluster).await;
    cluster.knows.instruct(go(1));
    let id = next(&wire).await.id;
    cluster.knows.permits(Ok(60_000));
    within("a permit", wire.ask(&id, &Act::Write)).await.unwrap();
    cluster.knows.permits(Err("the order has no boot"));
    wire.report(&progress(&id, Phase::Waiting));
    let act = Act::Boot { because: "a.service did not reload".to_owned() };
    let asks = wire.ask(&id, &act);
    tokio::pin!(asks);
    let needs_boot = async || {
        let needs = |it: &NodeUpdateStatus| {
            let is_it = it.operation.as_ref() == Some(&id);
            (is_it && it.phase == Some(UpdatePhase::NeedsBoot)).then_some(())
        };
        cluster.says("that it needs a boot", needs).await
    };
    tokio::select! {
        permit = &mut asks => panic!("{permit:?}"),
        () = needs_boot() => {}
    }
    // Somebody removed its NodeUpdate: the service asks it to turn back, or to say how far it is.
    let removed = ["delete", "nodeupdate", &cluster.node];
    cluster.plane.kubectl(&removed).and_then(|ran| ran.success()).unwrap();
    cluster.make_update().await;
    let stage = UpdateStage::Withdrawn;
    let asked = order(1, stage, ("one", "two"), &reload(), UpdateDisrupts::Softly);
    cluster.knows.instruct(Instructions { adopt: true, generation: Some(2), ..asked });
    tokio::select! {
        permit = &mut asks => panic!("{permit:?}"),
        () = needs_boot() => {}
    }
}

#[tokio::test]
async fn a_boot_that_is_needed_after_an_operation_was_reported_as_done_is_left_to_the_next_order() {
    let cluster = Cluster::with_a_node().await;
    let _served = cluster.serves().await;
    let (wire, _) = agent(&cluster).await;
    cluster.knows.permits(Ok(60_000));
    cluster.knows.instruct(go(1));
    let id = next(&wire).await.id;
    within("a permit", wire.ask(&id, &Act::Write)).await.unwrap();
    // It waits for a boot, which counts as done.
    wire.ended(&id, Some(&progress(&id, Phase::WaitsForBoot))).await.unwrap();
    cluster.says("Done", |it| (it.phase == Some(UpdatePhase::Done)).then_some(())).await;
    let closed = order(1, UpdateStage::Closed, ("one", "two"), &reload(), UpdateDisrupts::Softly);
    cluster.knows.instruct(closed.clone());
    nothing_comes(&wire, &cluster).await;
    let act = Act::Boot { because: "a.service did not start".to_owned() };
    let why = within("its end", wire.ask(&id, &act)).await.unwrap_err();
    let NoPermit::Never(why) = why else { panic!("{why:?}") };
    assert!(why.contains("reported as done") && why.contains("next order"), "{why}");

    // It has a part of the config from then on, so that it gets an order that boots.
    let is_part = |it: &NodeUpdateStatus| {
        it.current.as_ref().is_some_and(|it| it.digest.is_empty()).then_some(())
    };
    tokio::select! {
        given = wire.next() => panic!("{given:?}"),
        () = cluster.says("a part", is_part) => {}
    }
    let mut boots = order(2, UpdateStage::Go, ("one", "two"), &[], UpdateDisrupts::Reboot);
    boots.order.as_mut().unwrap().plan = None;
    cluster.knows.instruct(boots);
    let given = next(&wire).await;
    assert_eq!((given.id, given.gives_up), (operation(2), Some(id)));
}

#[tokio::test]
async fn what_was_written_for_a_machine_that_somebody_lets_in_ends_and_the_rest_is_ordered() {
    let cluster = Cluster::with_a_node().await;
    let _served = cluster.serves().await;
    let (wire, _) = agent(&cluster).await;
    let joining = |joins| Instructions {
        form: 1,
        adopt: true,
        joins,
        uid: Some("one".to_owned()),
        config: Some(Arc::new(config("two"))),
        ..Instructions::default()
    };
    cluster.knows.instruct(joining(true));
    let id = next(&wire).await.id;
    cluster.knows.permits(Ok(60_000));
    within("a permit", wire.ask(&id, &Act::Write)).await.unwrap();
    cluster.knows.permits(Err("not yet"));
    let act = Act::Boot { because: String::new() };
    let asks = wire.ask(&id, &act);
    tokio::pin!(asks);
    assert!(tokio::time::timeout(Duration::from_millis(100), &mut asks).await.is_err());
    cluster.knows.instruct(joining(false));
    let why = within("its end", asks).await.unwrap_err();
    let NoPermit::Never(why) = why else { panic!("{why:?}") };
    assert!(why.contains("let the machine into its pool before the boot"), "{why}");
    wire.ended(&id, Some(&progress(&id, Phase::Degraded))).await.unwrap();

    // It has a part of the config from then on, so that it gets an order that boots.
    let part = |it: &NodeUpdateStatus| it.current.clone().filter(|it| it.digest.is_empty());
    let part = tokio::select! {
        given = wire.next() => panic!("{given:?}"),
        part = cluster.says("a part", part) => part,
    };
    assert_eq!(part.name, format!("part-of-{}", config("two").name.digest));
    // So has the node that is made anew under its name, and says what it waits for.
    let anew = Instructions { uid: Some("another".to_owned()), ..joining(false) };
    cluster.knows.instruct(anew.clone());
    let said = |it: &NodeUpdateStatus| {
        it.message.clone().filter(|it| it.contains("drained and booted")).zip(it.current.clone())
    };
    let (_, current) = tokio::select! {
        given = wire.next() => panic!("{given:?}"),
        said = cluster.says("what it waits for", said) => said,
    };
    assert_eq!(current, part);
    let mut boots = order(2, UpdateStage::Go, ("one", "two"), &[], UpdateDisrupts::Reboot);
    boots.order.as_mut().unwrap().plan = None;
    cluster.knows.instruct(Instructions { uid: anew.uid, ..boots });
    let given = next(&wire).await;
    assert_eq!((given.id, given.gives_up), (operation(2), Some(id.clone())));
}

#[tokio::test]
async fn a_node_says_what_it_has_or_what_differs_and_again_where_that_was_lost() {
    let cluster = Cluster::with_a_node().await;
    let _served = cluster.serves().await;
    let (wire, _) = agent(&cluster).await;
    let adopt = || Instructions {
        form: 1,
        adopt: true,
        config: Some(Arc::new(config("one"))),
        ..Instructions::default()
    };
    cluster.knows.instruct(adopt());
    let given = next(&wire).await;
    assert!(matches!(given.order, Does::Adopt { drained: false, .. }), "{given:?}");
    let differs = "the node does not have this config: /etc/a.conf (its contents)";
    wire.ended(&given.id, Some(&Progress::refused(&given.id, differs))).await.unwrap();
    let waits = wire.next();
    tokio::pin!(waits);
    tokio::select! {
        given = &mut waits => panic!("{given:?}"),
        said = cluster.says("what differs", |it| it.message.clone()) => assert_eq!(said, differs),
    }
    // Told anew, it looks again.
    cluster.knows.instruct(adopt());
    let given = within("an order", waits).await.unwrap();
    wire.ended(&given.id, Some(&progress(&given.id, Phase::Done))).await.unwrap();
    let current = cluster.says("what it has", |it| it.current.clone()).await;
    assert_eq!(current, config("one").name);
    assert!(tokio::time::timeout(Duration::from_secs(1), wire.next()).await.is_err());
    // Somebody removed its NodeUpdate.
    let delete = ["delete", "nodeupdate", &cluster.node];
    cluster.plane.kubectl(&delete).and_then(|ran| ran.success()).unwrap();
    cluster.make_update().await;
    cluster.knows.instruct(adopt());
    let given = next(&wire).await;
    wire.ended(&given.id, Some(&progress(&given.id, Phase::Done))).await.unwrap();
    assert_eq!(cluster.says("what it has", |it| it.current.clone()).await, config("one").name);
}

#[tokio::test]
async fn an_adoption_of_which_nobody_knows_how_it_ended_is_given_again() {
    let cluster = Cluster::with_a_node().await;
    let _served = cluster.serves().await;
    let (wire, _) = agent(&cluster).await;
    let config = Some(Arc::new(config("one")));
    cluster.knows.instruct(Instructions {
        form: 1,
        adopt: true,
        config,
        ..Instructions::default()
    });
    let first = next(&wire).await;
    // The host did not answer.
    let again = next(&wire).await;
    assert!(matches!(again.order, Does::Adopt { .. }), "{again:?}");
    assert_ne!(again.id, first.id);
    // It is not given once more where it is known.
    wire.ended(&again.id, Some(&progress(&again.id, Phase::Done))).await.unwrap();
    nothing_comes(&wire, &cluster).await;
}

#[tokio::test]
async fn an_agent_says_the_highest_token_that_it_took_and_again_where_orders_are_older() {
    let cluster = Cluster::with_a_node().await;
    let _served = cluster.serves().await;
    let (wire, _) = agent(&cluster).await;
    cluster.knows.instruct(go(5));
    let id = next(&wire).await.id;
    wire.ended(&id, Some(&progress(&id, Phase::Done))).await.unwrap();
    let says_five = async || {
        let of_five = |it: &NodeUpdateStatus| {
            (it.phase == Some(UpdatePhase::Done) && it.operation == Some(operation(5)))
                .then_some(it.token)
        };
        assert_eq!(cluster.says("its end", of_five).await, Some(5));
    };
    says_five().await;
    // Somebody removed its NodeUpdate: the first token comes once more.
    let removed = ["delete", "nodeupdate", &cluster.node];
    cluster.plane.kubectl(&removed).and_then(|ran| ran.success()).unwrap();
    cluster.make_update().await;
    cluster.knows.instruct(go(1));
    tokio::select! {
        given = wire.next() => panic!("{given:?}"),
        () = says_five() => {}
    }
    // What the API server knows is older than it was.
    let name = cluster.node.as_str();
    let older = json!({"status": {"operation": operation(2), "token": 2}}).to_string();
    let restores = ["patch", "nodeupdate", name, "--subresource=status", "--type=merge", "-p"];
    let restores = [&restores[..], &[older.as_str()]].concat();
    cluster.plane.kubectl(&restores).and_then(|ran| ran.success()).unwrap();
    cluster.knows.instruct(go(2));
    tokio::select! {
        given = wire.next() => panic!("{given:?}"),
        () = says_five() => {}
    }
    // It knows the order, and not how that ended.
    let begun = json!({"status": {"phase": "Begun"}}).to_string();
    let restores = ["patch", "nodeupdate", name, "--subresource=status", "--type=merge", "-p"];
    let restores = [&restores[..], &[begun.as_str()]].concat();
    cluster.plane.kubectl(&restores).and_then(|ran| ran.success()).unwrap();
    cluster.knows.instruct(go(5));
    tokio::select! {
        given = wire.next() => panic!("{given:?}"),
        () = says_five() => {}
    }
    cluster.knows.instruct(go(6));
    assert_eq!(next(&wire).await.id, operation(6));
}

#[tokio::test]
async fn what_cannot_be_carried_out_is_told_and_costs_nothing() {
    let cluster = Cluster::with_a_node().await;
    let _served = cluster.serves().await;
    let (wire, _) = agent(&cluster).await;
    let newer = Instructions { form: FORM + 1, ..go(1) };
    let always = [Step::Drain, Step::Write, Step::Reboot, Step::Uncordon];
    let harsher = order(2, UpdateStage::Go, ("one", "two"), &always, UpdateDisrupts::Softly);
    for (instructions, says) in [
        (Instructions { config: None, ..go(1) }, "gives no config"),
        (harsher, "less (Softly)"),
        (newer, "waits until the agent is upgraded"),
    ] {
        cluster.knows.instruct(instructions);
        let said = cluster.says(says, |it| it.message.clone().filter(|it| it.contains(says)));
        tokio::select! {
            given = wire.next() => panic!("{given:?}"),
            _ = said => {}
        }
    }
    assert_eq!(cluster.update().await.status.unwrap().operation, None);
    cluster.knows.instruct(go(5));
    assert_eq!(next(&wire).await.id, operation(5));
}

#[tokio::test]
async fn the_service_may_go_and_come_and_its_authority_and_the_token_be_exchanged() {
    let mut cluster = Cluster::with_a_node().await;
    let (wire, _) = agent(&cluster).await;
    assert!(
        tokio::time::timeout(Duration::from_secs(1), wire.next()).await.is_err(),
        "nobody serves"
    );
    let served = cluster.serves().await;
    cluster.knows.instruct(go(1));
    let id = next(&wire).await.id;
    let end = progress(&id, Phase::Done);
    wire.ended(&id, Some(&end)).await.unwrap();
    served.ends().await;
    // Another one that nobody vouches for is not believed.
    let trusted = cluster.authority();
    cluster.exchanges_its_authority();
    let served = cluster.serves().await;
    cluster.knows.instruct(go(2));
    let waits = tokio::time::timeout(Duration::from_secs(5), wire.next()).await;
    assert!(waits.is_err(), "{waits:?}");
    assert!(cluster.knows.asked.lock().unwrap().is_empty());
    // Both are believed while one takes the other's place.
    cluster.put("ca", &format!("{trusted}{}", cluster.authority()));
    assert_eq!(next(&wire).await.id, operation(2));
    served.ends().await;
    // A token that is not good any more, and then one that is.
    cluster.put("token", "a.b.c");
    let _served = cluster.serves().await;
    wire.ended(&operation(2), Some(&progress(&operation(2), Phase::Done))).await.unwrap();
    cluster.knows.instruct(go(3));
    assert!(tokio::time::timeout(Duration::from_secs(5), wire.next()).await.is_err());
    cluster.put("token", &cluster.token());
    assert_eq!(next(&wire).await.id, operation(3));
}

#[tokio::test]
async fn an_agent_that_is_gone_asks_and_says_nothing_any_more() {
    let cluster = Cluster::with_a_node().await;
    let _served = cluster.serves().await;
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let (wire, _) = agent(&cluster).await;
    cluster.knows.permits(Ok(60_000));
    cluster.knows.instruct(go(1));
    let given = next(&wire).await;
    // It is not time yet to write of the second step: that write is still to come.
    for phase in [Phase::Writing, Phase::Acting] {
        wire.report(&progress(&given.id, phase));
    }
    assert!(tasks() > before);
    drop(wire);
    eventually("all that it did to end", async || (tasks() <= before).then_some(())).await;
}

#[tokio::test]
async fn a_node_that_registers_anew_under_its_name_begins_anew() {
    let cluster = Cluster::with_a_node().await;
    let _served = cluster.serves().await;
    let (wire, _) = agent(&cluster).await;
    cluster.knows.instruct(go(7));
    let id = next(&wire).await.id;
    wire.ended(&id, Some(&progress(&id, Phase::Done))).await.unwrap();
    // Older by its token, so it is late: unless the node is another one.
    cluster.knows.instruct(Instructions { generation: Some(8), ..go(2) });
    assert!(tokio::time::timeout(Duration::from_secs(3), wire.next()).await.is_err());
    cluster.knows.instruct(Instructions { uid: Some("another".to_owned()), ..go(2) });
    assert_eq!(next(&wire).await.id, operation(2));
    let status = cluster
        .says("the new one", |it| (it.operation == Some(operation(2))).then(|| it.clone()))
        .await;
    assert_eq!((status.current, status.ended.len()), (None, 0));
    // What waits for its first write turns back when the node is another one.
    cluster.knows.permits(Err("not yet"));
    let id = operation(2);
    let asks = wire.ask(&id, &Act::Write);
    tokio::pin!(asks);
    assert!(tokio::time::timeout(Duration::from_millis(100), &mut asks).await.is_err());
    cluster.knows.instruct(Instructions { uid: Some("a third".to_owned()), ..go(2) });
    let refused = within("its end", asks).await.unwrap_err().to_string();
    assert!(refused.contains("another one by now"), "{refused}");
}

#[tokio::test]
async fn what_was_written_for_a_node_that_is_gone_ends_and_the_new_one_is_ordered_the_rest() {
    let cluster = Cluster::with_a_node().await;
    let _served = cluster.serves().await;
    let (wire, tree) = agent(&cluster).await;
    drop(tree.private_folder(STATE).unwrap());
    cluster.knows.instruct(go(7));
    let id = next(&wire).await.id;
    cluster.knows.permits(Ok(60_000));
    within("a permit", wire.ask(&id, &Act::Write)).await.unwrap();
    cluster.knows.permits(Err("not yet"));
    let act = unit();
    let asks = wire.ask(&id, &act);
    tokio::pin!(asks);
    assert!(tokio::time::timeout(Duration::from_millis(100), &mut asks).await.is_err());
    let anew = |instructions: Instructions| Instructions {
        uid: Some("another".to_owned()),
        ..instructions
    };
    let adopt = Instructions {
        adopt: true,
        config: Some(Arc::new(config("two"))),
        ..Instructions::default()
    };
    cluster.knows.instruct(anew(Instructions { form: 1, ..adopt }));
    let why = within("its end", asks).await.unwrap_err().to_string();
    assert!(why.contains("made anew") && why.contains("a.service was told"), "{why}");
    let mut degraded = progress(&id, Phase::Degraded);
    degraded.message.clone_from(&why);
    degraded.write(&tree).unwrap();
    wire.report(&degraded);
    wire.ended(&id, Some(&degraded)).await.unwrap();

    // The new node's NodeUpdate says so, and claims no config: its disk may look like one.
    let status = cluster.says("Degraded", |it| {
        let is_part = it.current.as_ref().is_some_and(|it| it.digest.is_empty());
        (it.phase == Some(UpdatePhase::Degraded) && is_part).then(|| it.clone())
    });
    let status = tokio::select! {
        given = wire.next() => panic!("{given:?}"),
        status = status => status,
    };
    assert_eq!(status.operation, Some(id.clone()));
    assert_eq!(status.current.unwrap().name, "part-of-rendered-worker-two");
    assert_eq!((status.message, status.token, status.ended.len()), (Some(why.clone()), None, 1));
    // Not permitted later either, also to an agent that begins anew.
    let (again, _) = self::agent(&cluster).await;
    let refused = within("its end", again.ask(&id, &act)).await.unwrap_err();
    assert_eq!(refused, NoPermit::Never(why));

    // An order that boots gives it up, however low its token is.
    let of_the_new = |number, disrupts| {
        let mut instructions = order(number, UpdateStage::Go, ("one", "two"), &[], disrupts);
        instructions.order.as_mut().unwrap().plan = None;
        anew(instructions)
    };
    cluster.knows.instruct(of_the_new(1, UpdateDisrupts::Reboot));
    let given = next(&again).await;
    assert_eq!((given.id.as_str(), given.gives_up.as_ref()), (operation(1).as_str(), Some(&id)));
    // It goes back before it boots: what runs is what ran before.
    let back = progress(&given.id, Phase::WentBack);
    back.write(&tree).unwrap();
    again.ended(&given.id, Some(&back)).await.unwrap();
    cluster.knows.instruct(of_the_new(2, UpdateDisrupts::Reboot));
    let given = next(&again).await;
    assert_eq!((given.id.as_str(), given.gives_up.as_ref()), (operation(2).as_str(), Some(&id)));
    let done = progress(&given.id, Phase::Done);
    done.write(&tree).unwrap();
    again.ended(&given.id, Some(&done)).await.unwrap();
    let has = |it: &NodeUpdateStatus| it.current.clone().filter(|it| !it.digest.is_empty());
    assert_eq!(cluster.says("what it has", has).await, config("two").name);
    cluster.knows.instruct(of_the_new(3, UpdateDisrupts::Reboot));
    let given = next(&again).await;
    assert_eq!((given.id, given.gives_up), (operation(3), None));
}

/// The node's own record says that this config was applied last, as its agent gave it.
fn applied(cluster: &Cluster, word: &str) {
    let given = config(word);
    let document = Document { name: format!("{}.json", given.name.name), text: given.text };
    let applied = Applied::new(Documents(vec![document]), BTreeMap::new(), BTreeMap::new());
    let target = applied.target();
    let Wanted::File { bytes, .. } = &target.wanted else { panic!("it is a file") };
    let path = cluster.path("disk").join(target.path.trim_start_matches('/'));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

/// As if an older tread had made the digest of this config, in what an agent keeps that does not run now.
/// Where that is.
fn has_older_digest(cluster: &Cluster, word: &str) -> PathBuf {
    let (kept, digest) = (cluster.path("disk/var/lib/tread/agent/kept"), config(word).name.digest);
    let text = std::fs::read_to_string(&kept).unwrap();
    assert!(text.contains(&digest), "{text}");
    std::fs::write(&kept, text.replace(&digest, "blake3:of-an-older-tread")).unwrap();
    kept
}

#[tokio::test]
async fn an_order_that_somebody_settled_is_done_also_where_an_older_tread_made_its_digest() {
    let cluster = Cluster::with_a_node().await;
    let _served = cluster.serves().await;
    let (wire, tree) = agent(&cluster).await;
    drop(tree.private_folder(STATE).unwrap());
    cluster.knows.instruct(go(1));
    let id = next(&wire).await.id;
    cluster.knows.permits(Ok(60_000));
    within("a permit", wire.ask(&id, &Act::Write)).await.unwrap();
    let is = |phase| move |it: &NodeUpdateStatus| (it.phase == Some(phase)).then_some(());
    cluster.says("that it has begun", is(UpdatePhase::Begun)).await;
    drop(wire);

    applied(&cluster, "two");
    has_older_digest(&cluster, "two");
    let (wire, _) = agent(&cluster).await;
    tokio::select! {
        given = wire.next() => panic!("{given:?}"),
        () = cluster.says("its end", is(UpdatePhase::Done)) => {}
    }
}

#[tokio::test]
async fn what_a_machine_could_not_be_brought_to_is_not_tried_again_after_an_upgrade() {
    let cluster = Cluster::with_a_node().await;
    let _served = cluster.serves().await;
    let (wire, tree) = agent(&cluster).await;
    drop(tree.private_folder(STATE).unwrap());
    let of_two = Some(Arc::new(config("two")));
    let joins = Instructions {
        form: 1,
        adopt: true,
        joins: true,
        config: of_two,
        ..Instructions::default()
    };
    cluster.knows.instruct(joins);
    let id = next(&wire).await.id;
    let mut back = progress(&id, Phase::WentBack);
    back.message = "the image cannot be read".to_owned();
    back.write(&tree).unwrap();
    wire.ended(&id, Some(&back)).await.unwrap();
    drop(wire);

    has_older_digest(&cluster, "two");
    let (wire, _) = agent(&cluster).await;
    let gave_up = |it: &NodeUpdateStatus| it.message.clone().filter(|it| it.starts_with(GAVE_UP));
    let said = tokio::select! {
        given = wire.next() => panic!("{given:?}"),
        said = cluster.says("that it gave up", gave_up) => said,
    };
    assert!(said.ends_with("the image cannot be read"), "{said}");
}

#[tokio::test]
async fn a_node_that_said_its_config_by_a_digest_of_an_older_tread_says_it_by_the_new_one() {
    let cluster = Cluster::with_a_node().await;
    let _served = cluster.serves().await;
    let (wire, tree) = agent(&cluster).await;
    drop(tree.private_folder(STATE).unwrap());
    let of_one = Some(Arc::new(config("one")));
    let adopt = Instructions { form: 1, adopt: true, config: of_one, ..Instructions::default() };
    cluster.knows.instruct(adopt);
    let given = next(&wire).await;
    wire.ended(&given.id, Some(&progress(&given.id, Phase::Done))).await.unwrap();
    let is = config("one").name;
    assert_eq!(cluster.says("what it has", |it| it.current.clone()).await, is);
    drop(wire);

    applied(&cluster, "one");
    let kept = has_older_digest(&cluster, "one");
    cluster.knows.instruct(Instructions { form: 1, ..Instructions::default() });
    let (wire, _) = agent(&cluster).await;
    let says_it = eventually("it says the new one", async || {
        let text = std::fs::read_to_string(&kept).unwrap_or_default();
        text.contains(&is.digest).then_some(())
    });
    tokio::select! {
        given = wire.next() => panic!("{given:?}"),
        () = says_it => {}
    }
    cluster.says("the new one", |it| it.current.clone().filter(|said| *said == is)).await;
}

#[tokio::test]
async fn a_node_that_went_back_in_a_later_boot_says_of_no_config_that_it_has_it() {
    let cluster = Cluster::with_a_node().await;
    let _served = cluster.serves().await;
    let (wire, tree) = agent(&cluster).await;
    drop(tree.private_folder(STATE).unwrap());
    cluster.knows.instruct(go(1));
    let given = next(&wire).await;
    cluster.knows.permits(Ok(60_000));
    within("a permit", wire.ask(&given.id, &Act::Write)).await.unwrap();
    // Done but for a boot, which somebody else causes later.
    let done = progress(&given.id, Phase::Done);
    done.write(&tree).unwrap();
    wire.ended(&given.id, Some(&done)).await.unwrap();
    let has = |it: &NodeUpdateStatus| it.current.clone();
    assert_eq!(cluster.says("what it has", has).await, config("two").name);
    drop(wire);

    let closed = order(1, UpdateStage::Closed, ("one", "two"), &reload(), UpdateDisrupts::Softly);
    cluster.knows.instruct(closed);
    // In that boot it went back, and its agent begins anew.
    applied(&cluster, "one");
    let (wire, _) = agent(&cluster).await;
    tokio::select! {
        given = wire.next() => panic!("{given:?}"),
        () = cluster.says("that it has none", |it| it.current.is_none().then_some(())) => {}
    }
}
