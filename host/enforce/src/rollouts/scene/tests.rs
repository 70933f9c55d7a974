use super::*;
use crate::rollouts::known::Moment;
use crate::rollouts::may_act::MayAct;
use crate::rollouts::plans::Plans;
use crate::rollouts::progress::sentence;
use crate::rollouts::render::{Made, NotMade, ToHave};
use crate::rollouts::sightings::Sightings;
use crate::rollouts::stuck::AllStuck;
use k8s_openapi::api::core::v1 as core;
use serde_json::{Value, json};
use std::time::Duration;
use tread_cluster::pools::{ConfigMeta, Configs, Members, Node as Member, Pool, Pools};
use tread_cluster::previews::Cluster;
use tread_kube::api::{MachineConfigPool, NodeUpdate, Rollout, RolloutSpec};
use tread_model::joining::TAINT;
use tread_model::protocol::{Operation, Slot, Slots, Terms, Time};
use tread_model::rollout::Node;

const ORDERED: Digest = Digest([7; 32]);
const OPERATION: Operation = Operation(7);

/// What is known at one moment, as far as a test says it.
#[derive(Default)]
struct World {
    pools: Pools,
    nodes: BTreeMap<String, core::Node>,
    updates: BTreeMap<String, Arc<NodeUpdate>>,
    slots: Slots<String, String>,
    /// What pools are to have.
    made: BTreeMap<String, Made>,
    /// Why that could not be written.
    not_written: BTreeMap<String, String>,
    /// The API server's time.
    now: Time,
    /// The Rollout of each pool, where a test does not say another one.
    rollouts: BTreeMap<String, Option<Rollout>>,
    stuck: AllStuck,
}

impl World {
    /// With a pool that selects nodes by the label of its name.
    fn pool(mut self, name: &str, max_unavailable: usize) -> World {
        let selector = json!({"matchLabels": {name: ""}});
        self.put(name, json!({"nodeSelector": selector, "maxUnavailable": max_unavailable}));
        self
    }

    /// With a pool whose selector nobody can read.
    fn unreadable(mut self, name: &str) -> World {
        let wrong = json!([{"key": "a", "operator": "Likes", "values": ["b"]}]);
        self.put(name, json!({"nodeSelector": {"matchExpressions": wrong}}));
        self
    }

    /// With a pool whose config is made, and delivered.
    fn made(mut self, name: &str, config: &str) -> World {
        let selector = json!({"matchLabels": {name: ""}});
        let configuration = json!({"name": config});
        self.put(name, json!({"nodeSelector": selector, "configuration": configuration}));
        self.made.insert(name.to_owned(), Ok(Arc::new(ToHave::named(config))));
        self
    }

    /// Where a node has an order for the config that is made, which was given, and its agent is so
    /// far with it.
    fn ordered(mut self, name: &str, pool: &str, disrupts: &str, phase: &str) -> World {
        let made = self.made[pool].clone().unwrap();
        let config = json!({"name": made.name, "digest": made.digest.to_string()});
        let operation = format!("{:032x}", OPERATION.0);
        let order = json!({"operation": operation, "disrupts": disrupts, "config": config,
            "token": 1, "stage": "Go", "given": true});
        let update = json!({"apiVersion": "tread.dev/v1alpha1", "kind": "NodeUpdate",
            "metadata": {"name": name, "ownerReferences": [
                {"apiVersion": "v1", "kind": "Node", "name": name, "uid": name}]},
            "spec": {"pool": pool, "order": order},
            "status": {"operation": operation, "phase": phase}});
        let update = Arc::new(serde_json::from_value(update).unwrap());
        self.updates.insert(name.to_owned(), update);
        let slot = Slot { operation: OPERATION, unavailable: disrupts == "Reboot" };
        self.slots = self.slots.with(name.to_owned(), pool.to_owned(), slot);
        self
    }

    fn put(&mut self, name: &str, spec: Value) {
        let object = json!({"apiVersion": "machineconfiguration.openshift.io/v1",
            "kind": "MachineConfigPool", "metadata": {"name": name, "uid": name}, "spec": spec});
        let object: MachineConfigPool = serde_json::from_value(object).unwrap();
        self.pools.insert(name.to_owned(), Arc::new(Pool::of(&object)));
    }

    /// With a node that has these labels.
    fn node(mut self, name: &str, labels: &[&str]) -> World {
        let labels: BTreeMap<&str, &str> = labels.iter().map(|label| (*label, "")).collect();
        let node = json!({"metadata": {"name": name, "uid": name, "labels": labels},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        self.nodes.insert(name.to_owned(), serde_json::from_value(node).unwrap());
        self
    }

    /// Where a pool has this Rollout, or none.
    fn rollout(mut self, pool: &str, rollout: Option<Value>) -> World {
        let rollout = rollout.map(|rollout| serde_json::from_value(rollout).unwrap());
        self.rollouts.insert(pool.to_owned(), rollout);
        self
    }

    /// Where somebody else is about to remove a node.
    fn disrupted(mut self, name: &str) -> World {
        let taint = json!([{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]);
        let spec = serde_json::from_value(json!({ "taints": taint })).unwrap();
        self.nodes.get_mut(name).unwrap().spec = Some(spec);
        self
    }

    /// Where nothing is heard of a node's kubelet, since this time.
    fn unheard(mut self, name: &str, since: &str) -> World {
        let ready = json!({"conditions": [{"type": "Ready", "status": "Unknown",
            "lastTransitionTime": since}]});
        self.nodes.get_mut(name).unwrap().status = Some(serde_json::from_value(ready).unwrap());
        self
    }

    /// With one that registered as joining.
    fn joins(mut self, name: &str) -> World {
        let taints = json!([{"key": TAINT, "value": "a", "effect": "NoSchedule"}]);
        let node = json!({"metadata": {"name": name, "uid": name}, "spec": {"taints": taints}});
        self.nodes.insert(name.to_owned(), serde_json::from_value(node).unwrap());
        self
    }

    /// Where a node is under way in this pool, by an order of this stage.
    fn under_way(mut self, name: &str, pool: &str, stage: &str, unwell: bool) -> World {
        let order = json!({"operation": format!("{:032x}", OPERATION.0), "disrupts": "Reboot",
            "config": {"name": "rendered-old", "digest": ORDERED.to_string()},
            "token": 1, "stage": stage, "given": true, "unwell": unwell});
        let update = json!({"apiVersion": "tread.dev/v1alpha1", "kind": "NodeUpdate",
            "metadata": {"name": name, "ownerReferences": [
                {"apiVersion": "v1", "kind": "Node", "name": name, "uid": name}]},
            "spec": {"pool": pool, "order": order}});
        let update = Arc::new(serde_json::from_value(update).unwrap());
        self.updates.insert(name.to_owned(), update);
        let slot = Slot { operation: OPERATION, unavailable: true };
        self.slots = self.slots.with(name.to_owned(), pool.to_owned(), slot);
        self
    }

    fn seen(&self) -> Scene {
        let mut members = Members::since(0);
        for (name, node) in &self.nodes {
            members.put(name, Member::that_may_join(&mut node.clone()), &self.pools);
        }
        let mut configs = Configs::default();
        for made in self.made.values().flatten() {
            configs.insert(made.name.clone(), Arc::new(ConfigMeta::default()));
        }
        let cluster = Cluster {
            by_tread: true,
            pools: self.pools.clone(),
            configs,
            members: Arc::new(members),
            ..Cluster::default()
        };
        let facts =
            |(name, node): (&String, &core::Node)| (name.clone(), Arc::new(Facts::of(node)));
        let rollouts = self.pools.keys().filter_map(|pool| {
            let made = || Some(Rollout::new(pool, RolloutSpec::default()));
            let rollout = self.rollouts.get(pool).cloned().unwrap_or_else(made)?;
            Some((pool.clone(), Arc::new(rollout)))
        });
        let moment = Moment {
            rollouts: Arc::new(rollouts.collect()),
            nodes: Arc::new(self.nodes.iter().map(facts).collect()),
            updates: Arc::new(self.updates.clone()),
            slots: Ok(Arc::new(self.slots.clone())),
            ..Moment::empty()
        };
        let terms = Terms::default();
        let mut may_act = MayAct::default();
        may_act.look(&moment, true, ("tread/1", &terms), Time::default());
        Scene::of(By {
            cluster: &cluster,
            moment: &moment,
            made: &self.made,
            not_written: &self.not_written,
            plans: &Plans::default(),
            terms: &terms,
            us: "tread/1",
            own_node: None,
            stuck: &self.stuck,
            sightings: &Sightings::default(),
            may_act: &may_act,
            now: self.now,
            lost_after: Duration::from_secs(3600),
            form: 1,
        })
    }
}

/// A scene with this node, of which nothing is left to be done unless it is its turn.
pub(crate) fn with_turn(name: &str, turn: Option<Disrupts>) -> Scene {
    let mut scene = World::default().pool("worker", 1).node(name, &["worker"]).seen();
    let node = scene.nodes.get_mut(name).unwrap();
    (node.turn, node.is_quiet) = (turn, true);
    scene
}

#[test]
fn a_node_that_left_every_pool_while_it_was_under_way_is_brought_to_its_end() {
    let world = || World::default().pool("worker", 1).pool("a", 1).pool("b", 1);
    for (world, why) in [
        (world().node("n", &["worker", "a", "b"]), "since a and b select it"),
        (world().node("n", &[]), "it is in no pool any more; what was begun on it ends first"),
        (world().node("n", &["worker"]).unreadable("c"), "mends spec.nodeSelector of c"),
    ] {
        let scene = world.under_way("n", "worker", "Go", false).node("m", &["worker"]).seen();
        let node = &scene.nodes["n"];
        assert!(node.is_busy(), "{why}");
        let (aim, room) = scene.aim("n").unwrap();
        assert_eq!((aim.pool.as_str(), aim.target.name.as_str()), ("worker", "rendered-old"));
        assert_eq!((aim.target.digest, aim.turn), (ORDERED, None));
        assert!(aim.turns_back, "where it has written nothing");
        assert_eq!((room.limits.pool, room.limits.all), (1, 1));
        let said = sentence(&scene.pools["worker"]);
        assert!(said.contains("(n: ") && said.contains(why), "{said}");
        // It is none of the pool's nodes: nobody asks it to have what the pool has.
        assert!(scene.pool_of("n").is_none());
        assert!(scene.pools["worker"].nodes.iter().all(|node| node.name != "n"));
    }
}

#[test]
fn a_node_that_left_every_pool_is_brought_to_its_end_though_its_pool_is_gone() {
    let world = World::default().pool("worker", 3).node("n", &[]);
    let scene = world.under_way("n", "gone", "Go", false).seen();
    let (aim, room) = scene.aim("n").unwrap();
    assert_eq!((aim.pool.as_str(), aim.turns_back), ("gone", true));
    assert_eq!((room.limits.pool, room.limits.all, room.limits.soft), (1, 1, 1));
}

#[test]
fn a_pool_that_waits_for_a_node_of_a_pool_that_is_gone_names_that_node() {
    let update = json!({"apiVersion": "tread.dev/v1alpha1", "kind": "NodeUpdate",
        "metadata": {"name": "a", "ownerReferences": [
            {"apiVersion": "v1", "kind": "Node", "name": "a", "uid": "a"}]},
        "spec": {"pool": "worker"}, "status": {"message": "/etc/a differs"}});
    let rollout = json!({"apiVersion": "tread.dev/v1alpha1", "kind": "Rollout",
        "metadata": {"name": "worker"}, "spec": {"newNodes": "Overwrite"}});
    let world = World::default().pool("idle", 1).pool("worker", 1).made("worker", "new");
    let world = world.node("a", &["worker"]).node("n", &[]).under_way("n", "gone", "Closed", true);
    let mut world = world.rollout("worker", Some(rollout));
    world.updates.insert("a".to_owned(), Arc::new(serde_json::from_value(update).unwrap()));
    let scene = world.seen();
    let said = sentence(&scene.pools["worker"]);
    assert!(said.contains("n: it is in no pool any more; it failed before that"), "{said}");
    assert!(scene.pools["idle"].failing.is_empty(), "none of its nodes waits");
}

#[test]
fn a_node_that_failed_and_left_every_pool_keeps_its_slot_and_is_told_of() {
    let world = World::default().pool("worker", 1).node("n", &[]);
    let scene = world.under_way("n", "worker", "Closed", true).seen();
    assert!(scene.nodes["n"].is_busy());
    let said = sentence(&scene.pools["worker"]);
    assert!(said.contains("it failed before that, and keeps its slot here"), "{said}");
}

#[test]
fn nothing_is_done_for_nodes_outside_of_pools_that_have_nothing_of_tread_or_join() {
    let mut world = World::default().pool("worker", 1).node("quiet", &[]).joins("joins");
    world = world.under_way("quiet", "worker", "Closed", false);
    world = world.under_way("joins", "worker", "Go", false);
    world.slots.taken.remove("quiet");
    let scene = world.seen();
    assert!(scene.nodes.is_empty(), "{:?}", scene.nodes.keys());
}

#[test]
fn whoever_takes_a_node_that_is_under_way_is_named_where_it_is_told_how_far_its_pool_is() {
    let mut world = World::default().node("n", &["worker"]).node("m", &["worker"]);
    let selector = json!({"matchLabels": {"worker": ""}});
    let configuration = json!({"name": "rendered-old"});
    world.put("worker", json!({"nodeSelector": selector, "configuration": configuration}));
    let mut to_have = ToHave::named("rendered-old");
    to_have.digest = ORDERED;
    world.made.insert("worker".to_owned(), Ok(Arc::new(to_have)));
    let world = world.under_way("n", "worker", "Go", false);
    let said = |world: &World| sentence(&world.seen().pools["worker"]);
    assert!(!said(&world).contains("(n: "), "{}", said(&world));
    let said = said(&world.disrupted("n"));
    let words = "1 under way (n: an autoscaler is about to remove it: by the taint \
        karpenter.sh/disrupted)";
    assert!(said.contains(words), "{said}");
}

#[test]
fn a_node_at_which_looks_come_to_nothing_is_named_where_it_is_told_how_far_its_pool_is() {
    let world = World::default().made("worker", "new").node("n", &["worker"]);
    let mut world = world.ordered("n", "worker", "Reboot", "Waiting");
    for _ in 0..9 {
        world.stuck.looks_in_vain("n", "the API server does not answer");
    }
    let said = sentence(&world.seen().pools["worker"]);
    let words = "1 under way (n: looks at it come to nothing, and go on: the API server does not";
    assert!(said.contains(words), "{said}");
    // It is brought to its end outside of all pools, too.
    world.nodes.get_mut("n").unwrap().metadata.labels = None;
    let said = sentence(&world.seen().pools["worker"]);
    assert!(said.contains("; looks at it come to nothing"), "{said}");
}

#[test]
fn no_node_is_begun_before_the_rollout_of_its_pool_is_there() {
    let world = World::default().pool("worker", 1).node("n", &["worker"]);
    assert_eq!(world.seen().pools["worker"].halted, None);
    let pool = &world.rollout("worker", None).seen().pools["worker"];
    assert!(sentence(pool).starts_with("its Rollout is not there yet"), "{}", sentence(pool));
    assert!(pool.turns.next.is_empty());
}

#[test]
fn no_node_boots_for_a_step_that_failed_before_the_rollout_of_its_pool_is_there() {
    let world = World::default().pool("worker", 1).node("n", &["worker"]).made("worker", "new");
    let world = world.ordered("n", "worker", "Softly", "NeedsBoot");
    assert!(world.seen().aim("n").unwrap().1.limits.pool > 0);
    let scene = world.rollout("worker", None).seen();
    assert_eq!(scene.aim("n").unwrap().1.limits.pool, 0);
    let waits = &scene.pools["worker"].turns.waits;
    assert!(waits[0].1.to_string().contains("its Rollout is not there yet"), "{waits:?}");
}

#[test]
fn one_that_failed_is_waited_for_in_all_pools_as_long_as_it_has_its_slot() {
    let rollout = json!({"apiVersion": "tread.dev/v1alpha1", "kind": "Rollout",
        "metadata": {"name": "worker"}, "spec": {"retryFailedBefore": "2030-01-01T00:00:00Z"}});
    let world = World::default().pool("worker", 1).pool("infra", 1);
    let world = world.node("a", &["worker"]).node("b", &["worker"]).node("c", &["infra"]);
    let mut world = world.made("worker", "new").made("infra", "new");
    world.now = tread_kube::dated::time("2031-01-01T00:00:00Z".parse().unwrap()).unwrap();
    // Somebody mends it, and an admin has asked to try it again.
    let world = world.ordered("a", "worker", "Reboot", "Degraded").disrupted("a");
    let scene = world.rollout("worker", Some(rollout)).seen();
    let down: Vec<bool> = scene.pools["worker"].nodes.iter().map(Node::is_down).collect();
    assert_eq!(down, [true, false]);
    for pool in ["worker", "infra"] {
        assert_eq!(scene.pools[pool].turns.next, Vec::<String>::new(), "{pool}");
    }
}

#[test]
fn what_is_to_be_retried_by_a_time_that_is_yet_to_come_is_not_and_says_so() {
    let at = |time: &str| tread_kube::dated::time(time.parse().unwrap()).unwrap();
    let rollout = json!({"apiVersion": "tread.dev/v1alpha1", "kind": "Rollout",
        "metadata": {"name": "worker"}, "spec": {"retryFailedBefore": "2030-01-01T00:00:00Z"}});
    let of = |now: &str| {
        let world = World::default().pool("worker", 1).node("a", &["worker"]);
        let mut world = world.made("worker", "new").ordered("a", "worker", "Reboot", "Degraded");
        let update = Arc::make_mut(world.updates.get_mut("a").unwrap());
        let failed = json!("2029-12-31T22:00:00.000000Z");
        update.status.as_mut().unwrap().since = Some(serde_json::from_value(failed).unwrap());
        world.now = at(now);
        let scene = world.rollout("worker", Some(rollout.clone())).seen();
        (scene.pools["worker"].nodes[0].state, sentence(&scene.pools["worker"]))
    };
    let (state, said) = of("2029-12-31T23:00:00Z");
    assert_eq!(state, State::Failed);
    assert!(said.contains("yet to come"), "{said}");
    assert!(said.contains("tread rollout retry worker"), "{said}");
    // The clock of whoever wrote it may be a little ahead.
    for now in ["2029-12-31T23:59:30Z", "2030-01-01T00:00:01Z"] {
        let (state, said) = of(now);
        assert_eq!(state, State::Due(Disrupts::Reboot), "{now}: {said}");
    }
}

#[test]
fn a_node_that_is_lost_is_so_without_a_config_and_without_a_pool() {
    let of = |world: World| {
        let mut world = world;
        let update = Arc::make_mut(world.updates.get_mut("n").unwrap());
        let order = update.spec.order.as_mut().unwrap();
        order.go_since =
            Some(serde_json::from_value(json!("2020-01-01T00:00:00.000000Z")).unwrap());
        world.now = tread_kube::dated::time("2026-01-01T00:00:00Z".parse().unwrap()).unwrap();
        world
    };
    let world = World::default().pool("worker", 1).node("n", &["worker"]).made("worker", "new");
    let mut world = of(world.ordered("n", "worker", "Reboot", "Begun"));
    assert!(world.seen().aim("n").unwrap().0.is_lost);
    let why = NotMade { word: "Conflict", why: "it cannot be made".to_owned() };
    world.made.insert("worker".to_owned(), Err(why));
    let scene = world.seen();
    assert!(scene.aim("n").unwrap().0.is_lost);
    let said = sentence(&scene.pools["worker"]);
    assert!(said.starts_with("it cannot be made; n: its agent was to carry"), "{said}");
    let world = World::default().pool("worker", 1).node("n", &[]).made("worker", "new");
    let world = of(world.ordered("n", "worker", "Reboot", "Begun"));
    assert!(world.seen().aim("n").unwrap().0.is_lost, "it is in no pool any more");
}

#[test]
fn a_pool_whose_rollout_was_removed_says_that_it_is_paused_for_that_and_the_way_out() {
    let anew = |paused: bool, status: Value| {
        let rollout = json!({"apiVersion": "tread.dev/v1alpha1", "kind": "Rollout",
            "metadata": {"name": "worker", "annotations": {"tread.dev/made-anew": "true"}},
            "spec": {"paused": paused}, "status": status});
        let world = World::default().pool("worker", 1).node("n", &["worker"]);
        sentence(&world.rollout("worker", Some(rollout)).seen().pools["worker"])
    };
    for status in [Value::Null, json!({"madeAnew": true})] {
        let said = anew(true, status);
        assert!(said.contains("its Rollout was removed, and tread made it anew"), "{said}");
        assert!(said.ends_with("tread rollout resume worker"), "{said}");
    }
    for (paused, made_anew) in [(false, true), (true, false)] {
        let said = anew(paused, json!({ "madeAnew": made_anew }));
        assert!(!said.contains("removed"), "somebody resumed it since: {said}");
    }
}

#[test]
fn slots_hold_the_control_plane_to_one_node_at_a_time_whatever_its_pool_says() {
    let mut world = World::default().pool("master", 3).pool("worker", 3);
    for name in ["m1", "m2", "m3"] {
        world = world.node(name, &["master"]);
    }
    for at in 0..30 {
        world = world.node(&format!("w{at}"), &["worker"]);
    }
    let scene = world.seen();
    let limits = |pool: &str| scene.pools[pool].limits.unwrap();
    assert_eq!(limits("master"), Limits { pool: 1, all: 3, soft: 1, one_by_one: true });
    assert_eq!((limits("worker").pool, limits("worker").one_by_one), (3, false));
    // What a replica thinks whose turn it is may be old: what it reads of slots is not.
    let slot = |unavailable| Slot { operation: OPERATION, unavailable };
    for (taken, softly) in [(true, true), (true, false), (false, true), (false, false)] {
        let slots = Slots::default().with("m1".to_owned(), "master".to_owned(), slot(taken));
        let (node, pool) = ("m2".to_owned(), "master".to_owned());
        let has_room = slots.has_room(&node, &pool, softly, limits("master"), &BTreeMap::new());
        assert!(!has_room, "taken: {taken}, softly: {softly}");
    }
}

#[test]
fn who_has_written_nothing_of_a_wave_turns_back_once_another_one_of_it_failed() {
    let wave = || {
        let world =
            World::default().made("worker", "rendered-worker-1").made("gpu", "rendered-gpu-1");
        ["a", "b", "c"]
            .into_iter()
            .fold(world, |world, name| world.node(name, &["worker"]))
            .node("other", &["gpu"])
            .ordered("b", "worker", "Softly", "Waiting")
            .ordered("c", "worker", "Reboot", "Waiting")
            .ordered("other", "gpu", "Softly", "Waiting")
    };
    let turn_back = |world: World| -> Vec<String> {
        let scene = world.seen();
        let turns_back = |name: &&String| {
            let (aim, _) = scene.aim(name).unwrap();
            assert_eq!(aim.turns_back, scene.turns_back(name), "for a permit as for a look");
            aim.turns_back
        };
        scene.nodes.keys().filter(turns_back).cloned().collect()
    };
    for (phase, expected) in
        [("Waiting", vec![]), ("Begun", vec![]), ("NeedsBoot", vec!["b"]), ("Degraded", vec!["b"])]
    {
        let world = wave().ordered("a", "worker", "Softly", phase);
        assert_eq!(turn_back(world), expected, "{phase}");
    }
}

#[test]
fn a_node_that_died_while_it_was_drained_is_told_of_with_the_way_out() {
    let since = "2026-01-01T00:00:00Z";
    let seen = |stage: &str, hours: u64| {
        let mut world = World::default().made("worker", "rendered-new").node("n", &["worker"]);
        world = world.under_way("n", "worker", stage, false).unheard("n", since);
        world.now = tread_kube::dated::time(since.parse().unwrap()).unwrap();
        world.now = world.now.after(Duration::from_secs(hours * 3600));
        world.seen().pools["worker"].failing.clone()
    };
    assert_eq!(seen("Prepare", 1), []);
    assert_eq!(seen("Go", 2), [], "it boots");
    let failing = seen("Prepare", 2);
    assert!(failing[0].1.contains("its kubelet since 2026-01-01T00:00:00Z"), "{failing:?}");
    assert!(failing[0].1.contains("delete its Node"), "{failing:?}");
}

#[test]
fn a_config_that_cannot_be_written_is_told_of_and_not_taken_for_what_all_nodes_have() {
    let mut world = World::default().made("worker", "rendered-old").node("n", &["worker"]);
    let made = Ok(Arc::new(ToHave::named("rendered-new")));
    world.made.insert("worker".to_owned(), made);
    assert_eq!(world.seen().pools["worker"].not_made, None, "it is on its way");
    world.not_written.insert("worker".to_owned(), "nobody wants it".to_owned());
    let of_pool = world.seen().pools["worker"].clone();
    assert_eq!(of_pool.not_made, Some(("NotWritten", "nobody wants it".to_owned())));
    assert_eq!(sentence(&of_pool), "nobody wants it");
    // It is there by now.
    let world = world.made("worker", "rendered-new");
    assert_eq!(world.seen().pools["worker"].not_made, None);
}

#[test]
fn a_plan_that_is_too_large_is_told_of_with_its_size() {
    let too_large = vec![("n1".to_owned(), 300 * 1024), ("n2".to_owned(), 300 * 1024)];
    let said = sentence(&OfPool { too_large, ..OfPool::default() });
    assert!(said.contains("n1 and 1 more, since the plan takes 300 KiB"), "{said}");
    assert!(said.contains("a NodeUpdate holds 256 KiB of one"), "{said}");
}

#[test]
fn a_turn_is_one_for_this_config_and_so_much_and_ends_with_a_pause() {
    let mut scene = World::default().pool("gpu", 1).node("n", &["gpu"]).seen();
    scene.pools.get_mut("gpu").unwrap().digest = Some(ORDERED);
    let boots = Some(Disrupts::Reboot);
    assert!(!scene.is_turn_of("n", boots, ORDERED), "it is paused");
    scene.nodes.get_mut("n").unwrap().turn = boots;
    assert!(scene.is_turn_of("n", boots, ORDERED));
    assert!(!scene.is_turn_of("n", Some(Disrupts::Softly), ORDERED));
    assert!(!scene.is_turn_of("n", boots, Digest([8; 32])));
    assert!(!scene.is_turn_of("gone", boots, ORDERED));
}

#[test]
fn a_cordon_of_an_operation_that_nobody_knows_is_told_of_with_the_way_out() {
    let mut world = World::default().pool("gpu", 1);
    let of = |operation: &str| -> core::Node {
        let mark = json!({"tread.dev/cordoned-for": operation});
        let metadata = json!({"name": "n", "uid": "n", "labels": {"gpu": ""}, "annotations": mark});
        serde_json::from_value(json!({"metadata": metadata, "spec": {"unschedulable": true},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]}}))
        .unwrap()
    };
    world.nodes.insert("n".to_owned(), of(&format!("{:032x}", 9)));
    let scene = world.seen();
    let node = &scene.pools["gpu"].nodes[0];
    assert!(node.held.as_ref().unwrap().contains("kubectl uncordon n"), "{node:?}");
    assert!(!node.ready, "it takes the place of another one");
    assert!(
        scene.unavailable.contains_key("n"),
        "also where a step that failed has another one boot"
    );
    let said = sentence(&scene.pools["gpu"]);
    assert!(said.contains("1 waiting (n: it is cordoned for the operation"), "{said}");
    // One whose order is known is given back by it.
    let mut world = world.under_way("n", "gpu", "Closed", false);
    world.nodes.insert("n".to_owned(), of(&format!("{:032x}", OPERATION.0)));
    world.slots.taken.remove("n");
    let scene = world.seen();
    let node = &scene.pools["gpu"].nodes[0];
    assert!(
        node.ready && !node.held.as_ref().is_some_and(|it| it.contains("uncordon")),
        "{node:?}"
    );
}

#[test]
fn no_node_is_alone_beside_one_that_joins() {
    let world = World::default().pool("worker", 1).node("n", &["worker"]);
    assert!(world.seen().is_alone("n"), "there is no other one");
    let world = world.joins("m");
    assert!(!world.seen().is_alone("n"), "its pods wait until that one is in");
    assert_eq!(world.seen().joining_for("n"), ["m"], "which is told");
    let scene = world.node("other", &["worker"]).seen();
    assert_eq!(scene.joining_for("n"), [""; 0], "they go to the other one");
    assert_eq!(scene.joining_for("gone"), [""; 0]);
}

/// A Rollout that brings nodes to their config that have another disk.
fn overwrites(pool: &str) -> Option<Value> {
    Some(json!({"apiVersion": "tread.dev/v1alpha1", "kind": "Rollout",
        "metadata": {"name": pool}, "spec": {"newNodes": "Overwrite"}}))
}

/// A NodeUpdate of a node that is due for a reboot where its Rollout says so.
fn differs(name: &str, pool: &str) -> Arc<NodeUpdate> {
    let update = json!({"apiVersion": "tread.dev/v1alpha1", "kind": "NodeUpdate",
        "metadata": {"name": name, "ownerReferences": [
            {"apiVersion": "v1", "kind": "Node", "name": name, "uid": name}]},
        "spec": {"pool": pool}, "status": {"message": "/etc/a differs"}});
    Arc::new(serde_json::from_value(update).unwrap())
}

#[test]
fn a_pool_whose_slot_a_node_took_along_into_another_pool_names_that_node() {
    for (phase, remedy) in [("Degraded", "retry"), ("Begun", "status")] {
        let world = World::default().made("quarantine", "new").made("worker", "new");
        let mut world = world.node("m", &["worker"]).node("n", &["quarantine"]);
        world = world.ordered("n", "worker", "Reboot", phase);
        world.updates.insert("m".to_owned(), differs("m", "worker"));
        let scene = world.rollout("worker", overwrites("worker")).seen();
        let worker = &scene.pools["worker"];
        assert_eq!(worker.turns.next, Vec::<String>::new(), "{phase}: it would find no room");
        let said = sentence(worker);
        assert!(said.contains("m: it waits for n: one node of its pool may be down"), "{said}");
        assert!(said.contains("(n: it is in pool quarantine by now, and keeps its slot"), "{said}");
        assert!(said.contains(&format!("tread rollout {remedy} quarantine")), "{said}");
        let own = sentence(&scene.pools["quarantine"]);
        assert!(!own.contains("keeps its slot here"), "{own}");
    }
}

#[test]
fn a_pool_whose_slot_a_node_has_that_registered_anew_names_that_node() {
    let world = World::default().made("worker", "new").node("m", &["worker"]);
    let mut world = world.ordered("n", "worker", "Reboot", "Begun").joins("n");
    world.updates.insert("m".to_owned(), differs("m", "worker"));
    let scene = world.rollout("worker", overwrites("worker")).seen();
    assert_eq!(scene.pools["worker"].turns.next, Vec::<String>::new());
    let said = sentence(&scene.pools["worker"]);
    assert!(said.contains("m: it waits for n: one node of its pool may be down"), "{said}");
    assert!(said.contains("(n: it registered anew, and the slot of the one before"), "{said}");
}

#[test]
fn a_node_that_took_its_slot_along_counts_once_in_what_all_pools_may_have_down() {
    let world = World::default().made("infra", "new").made("worker", "new");
    // A tenth of them may be down: two.
    let mut world = (0..19).fold(world, |world, at| world.node(&format!("w{at:02}"), &["worker"]));
    world.put(
        "worker",
        json!({"nodeSelector": {"matchLabels": {"worker": ""}}, "maxUnavailable": 3,
            "configuration": {"name": "new"}}),
    );
    world = world.node("n", &["infra"]).ordered("n", "worker", "Reboot", "Degraded");
    for name in ["w00", "w01"] {
        world.updates.insert(name.to_owned(), differs(name, "worker"));
    }
    let scene = world.rollout("worker", overwrites("worker")).seen();
    let turns = &scene.pools["worker"].turns;
    assert_eq!(turns.next, ["w00"]);
    let why = turns.waits.iter().find(|(name, _)| name == "w01").unwrap().1.to_string();
    assert_eq!(why, "it waits: 2 nodes of all pools are down, and 2 may be");
}
