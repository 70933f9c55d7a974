//! What is told of rollouts beside their status: Events and metrics.

use super::known::Moment;
use super::scene::{OfPool, Scene};
use super::settings::Settings;
use super::taken::Taken;
use k8s_openapi::api::core::v1::ObjectReference;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tread_cluster::previews::Cluster;
use tread_kube::api::POOL_KIND;
use tread_kube::api::words::MACHINE_CONFIG_GROUP;
use tread_kube::events::{Events, Note, Reason};
use tread_kube::metrics::{NodesOf, UpdatesBy};
use tread_model::protocol::Disrupts;
use tread_model::rollout::{Node, State};

/// How many Events wait to be written; what comes while so many wait is left out.
const MOST: usize = 512;
/// How many nodes of a wave are named.
const NAMED: usize = 5;

/// Something to tell of.
pub(crate) struct News {
    about: ObjectReference,
    note: Note,
    /// What it is told for once.
    of: String,
}

/// Tells what has changed since it was told last.
pub(crate) struct Teller {
    before: BTreeMap<String, State>,
    pools: BTreeMap<String, PoolTold>,
    counted: Instant,
    taken: Taken,
    news: mpsc::Sender<News>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct PoolTold {
    is_updated: bool,
    not_made: Option<String>,
    softly: usize,
}

impl Teller {
    /// One, and what it tells.
    pub(crate) fn new() -> (Teller, mpsc::Receiver<News>) {
        let (news, told) = mpsc::channel(MOST);
        let (before, pools) = (BTreeMap::new(), BTreeMap::new());
        let (counted, taken) = (Instant::now(), Taken::default());
        (Teller { before, pools, counted, taken, news }, told)
    }

    /// Tells what is another way than before. Whoever begins to lead has seen nothing before, and
    /// tells of no ends.
    pub(crate) fn tell(
        &mut self,
        settings: &Settings,
        cluster: &Cluster,
        moment: &Moment,
        scene: &Scene,
    ) {
        let since = std::mem::replace(&mut self.counted, Instant::now());
        let mut down = 0;
        for (name, of_pool) in &scene.pools {
            let Some(pool) = cluster.pools.get(name) else { continue };
            let pool = about(POOL_KIND, &format!("{MACHINE_CONFIG_GROUP}/v1"), name, &pool.uid);
            let target = of_pool.target.as_ref().map_or("", |target| target.name.as_str());
            for node in &of_pool.nodes {
                let before = self.before.insert(node.name.clone(), node.state);
                down += u64::from(matches!(node.state, State::UnderWay(it) if it.drains()));
                let Some(before) = before.filter(|before| *before != node.state) else { continue };
                count(settings, name, before, node.state);
                let uid = moment.nodes.get(&node.name).map_or("", |facts| facts.uid.as_str());
                let about = about("Node", "v1", &node.name, uid);
                let of = of(moment, &node.name, target);
                for news in changed(node, before, (target, &of), &about, &pool) {
                    self.send(news);
                }
            }
            self.pool(name, of_pool, target, &pool);
            gauges(settings, name, of_pool, scene);
        }
        for (name, why) in self.taken.news(scene) {
            let uid = moment.nodes.get(&name).map_or("", |facts| facts.uid.as_str());
            let about = about("Node", "v1", &name, uid);
            let text = format!("tread has a change for it, and leaves it alone meanwhile: {why}");
            self.send(News {
                about,
                note: Note { reason: Reason::NodeTaken, warns: true, text },
                of: why,
            });
        }
        self.before.retain(|name, _| scene.nodes.contains_key(name));
        self.pools.retain(|name, _| scene.pools.contains_key(name));
        let seconds = since.elapsed().as_secs();
        if seconds > 0 {
            settings.acts.metrics.unavailable.inc_by(seconds.saturating_mul(down));
        } else {
            // Less than a second is counted with the next one.
            self.counted = since;
        }
    }

    /// That this replica does not lead: what comes next is news to it.
    pub(crate) fn forget(&mut self) {
        self.before.clear();
        self.pools.clear();
        self.taken.forget();
        self.counted = Instant::now();
    }

    fn pool(&mut self, name: &str, of_pool: &OfPool, target: &str, pool: &ObjectReference) {
        let soft =
            |node: &&Node| matches!(node.state, State::UnderWay(disrupts) if !disrupts.drains());
        let softly: Vec<&str> =
            of_pool.nodes.iter().filter(soft).map(|node| node.name.as_str()).collect();
        let all_have = |node: &Node| node.state == State::Updated;
        let now = PoolTold {
            is_updated: !of_pool.nodes.is_empty() && of_pool.nodes.iter().all(all_have),
            not_made: of_pool.not_made.as_ref().map(|(_, why)| why.clone()),
            softly: softly.len(),
        };
        let Some(before) = self.pools.insert(name.to_owned(), now.clone()) else { return };
        let news = |reason, warns, text: String, of: String| News {
            about: pool.clone(),
            note: Note { reason, warns, text },
            of,
        };
        if now.softly > before.softly {
            let named: Vec<&str> = softly.iter().copied().take(NAMED).collect();
            let more = tread_model::text::and_more(softly.len(), NAMED);
            let text = format!(
                "{} nodes get {target}, and are neither drained nor booted: {}{more}",
                softly.len(),
                named.join(", ")
            );
            self.send(news(Reason::SoftWave, false, text, format!("{target}/{}", softly.len())));
        }
        if now.is_updated && !before.is_updated {
            let text = format!("all {} nodes have {target}", of_pool.nodes.len());
            self.send(news(Reason::PoolUpdated, false, text, target.to_owned()));
        }
        if let Some(why) = now.not_made.filter(|why| before.not_made.as_ref() != Some(why)) {
            self.send(news(Reason::PoolNotRendered, true, why.clone(), why));
        }
    }

    fn send(&self, news: News) {
        if self.news.try_send(news).is_err() {
            tracing::debug!("an Event is left out: too many wait");
        }
    }
}

/// Writes what comes, for as long as it is polled.
pub(crate) async fn write(events: Events, mut news: mpsc::Receiver<News>) {
    while let Some(News { about, note, of }) = news.recv().await {
        // What cannot be written is in the log and in the metrics.
        drop(events.tell_each(&about, &note, &of).await);
    }
    std::future::pending().await
}

pub(crate) fn about(kind: &str, version: &str, name: &str, uid: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some(version.to_owned()),
        kind: Some(kind.to_owned()),
        name: Some(name.to_owned()),
        uid: Some(uid.to_owned()),
        ..ObjectReference::default()
    }
}

/// What something is told for once: each operation by itself.
fn of(moment: &Moment, node: &str, target: &str) -> String {
    let order = moment.updates.get(node).and_then(|update| update.spec.order.as_ref());
    format!("{node}/{target}/{}", order.map_or("", |order| order.operation.as_str()))
}

/// What is told of a node that stands in another way than before.
fn changed(
    node: &Node,
    before: State,
    (target, of): (&str, &str),
    about: &ObjectReference,
    pool: &ObjectReference,
) -> Vec<News> {
    let news = |about: &ObjectReference, reason, warns, text: String| News {
        about: about.clone(),
        note: Note { reason, warns, text },
        of: of.to_owned(),
    };
    let drained = |state| matches!(state, State::UnderWay(it) if it.drains());
    match node.state {
        State::UnderWay(disrupts) if disrupts.drains() && !drained(before) => {
            let boots = if disrupts == Disrupts::Reboot { ", and boots it" } else { "" };
            let text = format!("tread drains it{boots}, to bring it to {target}");
            vec![news(about, Reason::NodeUpdateBegun, false, text)]
        }
        State::Updated if drained(before) => {
            let text = format!("it has {target}, and its pods may come back");
            vec![news(about, Reason::NodeUpdateEnded, false, text)]
        }
        State::Failed => {
            let name = &node.name;
            let text = |it: &str| {
                format!(
                    "{it} failed on its way to {target}, or went back; after as many as its Rollout \
                     says no other node of its pool is begun: see kubectl get nodeupdate {name} -o \
                     yaml, and tread rollout retry"
                )
            };
            vec![
                news(about, Reason::NodeUpdateFailed, true, text("this node")),
                news(pool, Reason::NodeUpdateFailed, true, text(name)),
            ]
        }
        _ => Vec::new(),
    }
}

/// Counts what was done to a node.
fn count(settings: &Settings, pool: &str, before: State, now: State) {
    let State::UnderWay(disrupts) = before else { return };
    if matches!(now, State::UnderWay(_) | State::NeedsBoot | State::Due(_)) {
        return;
    }
    let by = UpdatesBy { pool: pool.to_owned(), disrupts: word(disrupts) };
    settings.acts.metrics.updates.get_or_create(&by).inc();
}

fn word(disrupts: Disrupts) -> &'static str {
    match disrupts {
        Disrupts::Nothing => "nothing",
        Disrupts::Softly => "softly",
        Disrupts::Drain => "drain",
        Disrupts::Reboot => "reboot",
    }
}

const STATES: [&str; 8] =
    ["updated", "waiting", "held", "needs-agent", "preparing", "updating", "needs-boot", "failed"];

fn gauges(settings: &Settings, pool: &str, of_pool: &OfPool, scene: &Scene) {
    let needs_agent =
        |node: &Node| scene.nodes.get(&node.name).is_some_and(|node| node.needs_agent);
    let of = |node: &Node| match node.state {
        State::Updated => "updated",
        State::Due(_) if needs_agent(node) => "needs-agent",
        State::Due(_) if node.held.is_some() => "held",
        State::Due(_) => "waiting",
        State::UnderWay(_) if of_pool.preparing.contains(&node.name) => "preparing",
        State::UnderWay(_) => "updating",
        State::NeedsBoot => "needs-boot",
        State::Failed => "failed",
    };
    for state in STATES {
        let count = of_pool.nodes.iter().filter(|node| of(node) == state).count();
        let labels = NodesOf { pool: pool.to_owned(), state };
        let gauge = settings.acts.metrics.rollout_nodes.get_or_create(&labels);
        gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
    }
}

/// Between two looks that only count.
pub(crate) const COUNTS: Duration = Duration::from_secs(30);
