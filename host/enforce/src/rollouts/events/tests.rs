use super::*;
use serde_json::{Value, json};
use std::sync::Arc;
use tread_cluster::pools::Pool;
use tread_kube::api::node_update::ConfigName;
use tread_model::protocol::{Cordon, Disrupts, Operation, Time};

const BOOTS: State = State::UnderWay(Disrupts::Reboot);

/// Looks at one pool, one after the other, by a clock that is set.
struct Looks {
    reporter: EventReporter,
    news: mpsc::Receiver<News>,
    metrics: Metrics,
    now: Instant,
    /// The UID of the pool's Rollout, and what it says where it was made anew.
    rollout: (&'static str, Option<&'static str>),
}

/// A node, as it is at one look.
struct Seen {
    name: &'static str,
    state: State,
    cordon: Cordon,
    ready: bool,
    update: Value,
}

impl Seen {
    fn new(name: &'static str, state: State) -> Seen {
        let update = json!({"spec": {"pool": "worker"}});
        Seen { name, state, cordon: Cordon::No, ready: true, update }
    }

    fn cordoned(self) -> Seen {
        Seen { cordon: Cordon::Ours(Operation(7), None), ..self }
    }

    fn ordered(self, (disrupts, stage, phase): (&str, &str, &str)) -> Seen {
        let operation = format!("{:032x}", 7);
        let update = json!({
            "spec": {"pool": "worker", "order": {"operation": operation, "token": 1,
                "config": {"name": "r-1", "digest": "d"}, "disrupts": disrupts, "stage": stage,
                "given": stage != "Prepare"}},
            "status": {"operation": operation, "phase": phase, "message": "\u{1b}[2Jit says"},
        });
        Seen { update, ..self }
    }
}

impl Looks {
    fn new() -> Looks {
        let (reporter, news) = EventReporter::new();
        let (metrics, now) = (Metrics::new(), Instant::now());
        Looks { reporter, news, metrics, now, rollout: ("1", None) }
    }

    /// What is reported after so long: of whom, why, and in which words.
    fn after(&mut self, wait: Duration, nodes: &[Seen]) -> Vec<(String, &'static str, String)> {
        self.now += wait;
        let object = json!({"metadata": {"name": "worker", "uid": "pool"}, "spec": {}});
        let pool = Pool::of(&serde_json::from_value(object).unwrap());
        let mut cluster = Cluster::default();
        cluster.pools.insert("worker".to_owned(), Arc::new(pool));
        let mut of_pool = OfPool::default();
        of_pool.target = Some(ConfigName { name: "r-1".to_owned(), digest: "d".to_owned() });
        of_pool.nodes = nodes.iter().map(node).collect();
        of_pool.anew = self.rollout.1.map(str::to_owned);
        let mut scene = Scene::default();
        scene.pools.insert("worker".to_owned(), of_pool);
        let mut moment = moment(nodes);
        let rollout = json!({"apiVersion": "tread.dev/v1alpha1", "kind": "Rollout",
            "metadata": {"name": "worker", "uid": self.rollout.0}, "spec": {}});
        let rollout = Arc::new(serde_json::from_value(rollout).unwrap());
        moment.rollouts = Arc::new([("worker".to_owned(), rollout)].into());
        self.reporter.report(&self.metrics, (&cluster, &moment, &scene), self.now);
        let mut all = Vec::new();
        while let Ok(News { about, note, .. }) = self.news.try_recv() {
            all.push((about.name.unwrap(), note.reason.word(), note.text));
        }
        all
    }

    fn soon(&mut self, nodes: &[Seen]) -> Vec<(String, &'static str)> {
        let reports = self.after(Duration::from_secs(1), nodes);
        reports.into_iter().map(|(about, reason, _)| (about, reason)).collect()
    }
}

fn node(seen: &Seen) -> Node {
    Node {
        name: seen.name.to_owned(),
        zone: String::new(),
        since: Time::default(),
        ready: seen.ready,
        leads: false,
        paused: false,
        canary: false,
        last: false,
        held: None,
        step_failed: false,
        went_back: false,
        lost: false,
        unwell: false,
        is_well: false,
        has_slot: false,
        state: seen.state,
    }
}

fn moment(nodes: &[Seen]) -> Moment {
    let facts = nodes.iter().map(|seen| {
        let facts = Facts {
            uid: seen.name.to_owned(),
            is_ready: seen.ready,
            cordon: Some(seen.cordon),
            ..Facts::default()
        };
        (seen.name.to_owned(), Arc::new(facts))
    });
    let updates = nodes.iter().map(|seen| {
        let mut update = seen.update.clone();
        let owner =
            json!({"apiVersion": "v1", "kind": "Node", "name": seen.name, "uid": seen.name});
        update["metadata"] = json!({"name": seen.name, "ownerReferences": [owner]});
        (seen.name.to_owned(), Arc::new(serde_json::from_value(update).unwrap()))
    });
    Moment {
        nodes: Arc::new(facts.collect()),
        updates: Arc::new(updates.collect()),
        rollouts: Arc::default(),
        leases: Arc::default(),
        slots: Ok(Arc::default()),
        maintained: BTreeMap::new(),
        marks: BTreeMap::new(),
        machines: BTreeMap::new(),
        budgets: Arc::default(),
        has_operators_daemon: false,
    }
}

const DUE: State = State::Due(Disrupts::Reboot);
const SOFTLY: (&str, &str, &str) = ("Softly", "Closed", "Done");

#[test]
fn a_node_counts_as_down_from_its_drain_until_it_is_uncordoned_also_where_it_failed() {
    let mut looks = Looks::new();
    let second = Duration::from_millis(1500);
    let due = || Seen::new("a", DUE);
    let fails = || Seen::new("a", State::Failed);
    for (seen, down) in [
        (due(), 0.0),
        (Seen::new("a", BOOTS), 0.0),
        (Seen::new("a", BOOTS).cordoned(), 1.5),
        (fails().cordoned(), 3.0),
        (fails().cordoned(), 4.5),
        (Seen { ready: false, ..fails() }, 6.0),
        // It went back, and takes pods again.
        (fails(), 7.5),
        (Seen::new("a", BOOTS), 7.5),
        (Seen::new("a", State::Updated).cordoned(), 9.0),
        (Seen::new("a", State::Updated), 10.5),
        (due(), 10.5),
    ] {
        looks.after(second, &[seen]);
        let counted = looks.metrics.unavailable.get();
        assert!((counted - down).abs() < 0.001, "{counted}, and not {down}");
    }
    // Another replica leads for an hour, and counts.
    looks.after(second, &[Seen::new("a", BOOTS)]);
    looks.now += Duration::from_secs(3600);
    looks.reporter.forget(&looks.metrics, looks.now);
    looks.after(second, &[Seen::new("a", BOOTS)]);
    assert!((looks.metrics.unavailable.get() - 10.5).abs() < 0.001);
}

#[test]
fn a_wave_that_is_over_before_anybody_looks_is_told_of_and_counted() {
    let mut looks = Looks::new();
    let due = |name| Seen::new(name, State::Due(Disrupts::Softly));
    let done = |name| Seen::new(name, State::Updated).ordered(SOFTLY);
    assert_eq!(looks.soon(&[due("a"), due("b"), due("c")]), []);
    let wave = ("worker".to_owned(), "SoftWave");
    assert_eq!(looks.soon(&[done("a"), due("b"), due("c")]), [wave]);
    assert_eq!(looks.soon(&[done("a"), due("b"), due("c")]), []);
    let reports = looks.after(Duration::from_secs(1), &[done("a"), done("b"), due("c")]);
    assert_eq!(reports.len(), 1);
    let text = "2 of 3 nodes have r-1 or get it, and are neither drained nor booted, now b";
    assert_eq!(reports[0].2, text);
    // The third one is of the same wave.
    let all = [done("a"), done("b"), done("c")];
    assert_eq!(looks.soon(&all), [("worker".to_owned(), "PoolUpdated")]);
    assert_eq!(looks.soon(&all), []);
    let text = looks.metrics.text().unwrap();
    for line in [
        "tread_node_updates_total{pool=\"worker\",disrupts=\"softly\"} 3",
        "tread_node_reboots_avoided_total{pool=\"worker\"} 3",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn a_failed_step_is_told_of_on_its_node_and_its_pool_and_is_no_update() {
    let mut looks = Looks::new();
    let needs = ("Softly", "Go", "NeedsBoot");
    looks.soon(&[Seen::new("a", State::Due(Disrupts::Softly))]);
    let reports =
        looks.after(Duration::from_secs(1), &[Seen::new("a", State::NeedsBoot).ordered(needs)]);
    let about: Vec<(&str, &str)> = reports.iter().map(|(about, it, _)| (&**about, *it)).collect();
    assert_eq!(
        about,
        [("a", "NodeNeedsBoot"), ("worker", "NodeNeedsBoot"), ("worker", "SoftWave")]
    );
    assert!(reports[0].2.starts_with("this node needs a boot to get to r-1"), "{}", reports[0].2);
    assert!(reports[1].2.starts_with("a needs a boot"), "{}", reports[1].2);
    assert!(reports[0].2.contains("([2Jit says)"), "{:?}", reports[0].2);
    let boots = ("Reboot", "Closed", "Degraded");
    let reports = looks.soon(&[Seen::new("a", State::Failed).ordered(boots).cordoned()]);
    let reports: Vec<&str> = reports.iter().map(|(_, reason)| *reason).collect();
    let failed = "NodeUpdateFailed";
    assert_eq!(reports, ["NodeUpdateBegun", "NodeDrained", failed, failed]);
    assert!(!looks.metrics.text().unwrap().contains("tread_node_updates_total{"));
}

#[test]
fn a_rollout_that_was_made_anew_is_told_of_once_each_time_that_it_was_removed() {
    let mut looks = Looks::new();
    assert_eq!(looks.soon(&[]), []);
    let anew = [("worker".to_owned(), "RolloutMadeAnew")];
    for uid in ["2", "3"] {
        looks.rollout = (uid, Some("its Rollout was removed"));
        let reports = looks.after(Duration::from_secs(1), &[]);
        assert_eq!(reports[0].2, "its Rollout was removed");
        assert_eq!(reports.into_iter().map(|(about, it, _)| (about, it)).collect::<Vec<_>>(), anew);
        assert_eq!(looks.soon(&[]), []);
    }
    looks.rollout = ("3", None);
    assert_eq!(looks.soon(&[]), [], "it goes on");
}

#[test]
fn whoever_begins_to_lead_tells_of_what_comes_and_not_of_what_was() {
    let mut looks = Looks::new();
    let reboot = |state, stage, phase| Seen::new("a", state).ordered(("Reboot", stage, phase));
    assert_eq!(looks.soon(&[reboot(State::Failed, "Closed", "Degraded")]), []);
    looks.reporter.forget(&looks.metrics, looks.now);
    assert!(!looks.metrics.text().unwrap().contains("tread_rollout_nodes{"), "another one says it");
    assert_eq!(looks.soon(&[reboot(BOOTS, "Go", "Begun").cordoned()]), []);
    let reports = looks.soon(&[reboot(State::Updated, "Closed", "Done")]);
    let reports: Vec<&str> = reports.iter().map(|(_, reason)| *reason).collect();
    assert_eq!(reports, ["NodeUpdateEnded", "PoolUpdated"]);
    let counted = "tread_node_updates_total{pool=\"worker\",disrupts=\"reboot\"} 1";
    assert!(looks.metrics.text().unwrap().contains(counted));
}
