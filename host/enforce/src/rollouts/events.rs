//! What is reported of rollouts beside their status: Events and metrics.

mod counts;
mod news;
mod phases;
mod waves;

use super::facts::Facts;
use super::known::Moment;
use super::marks::is_of;
use super::scene::{OfPool, SOFT_LIMIT, Scene};
use super::taken::Taken;
use counts::{Downtime, Gauges};
use k8s_openapi::api::core::v1::ObjectReference;
use phases::{Far, Passed, is_same, passed};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tread_cluster::previews::Cluster;
use tread_kube::api::POOL_KIND;
use tread_kube::api::node_update::UpdateDisrupts;
use tread_kube::api::words::MACHINE_CONFIG_GROUP;
use tread_kube::events::{Events, Reason};
use tread_kube::metrics::Metrics;
use tread_model::rollout::{Node, State};
use tread_model::text::{and_more, one_line_within};

pub(crate) use news::{News, about};

/// How many Events wait to be written; what comes while so many wait is left out.
const MOST: usize = 512;
/// How many nodes of a wave are named.
const NAMED: usize = 5;
/// The longest that is repeated of what an agent says.
const LONGEST: usize = 300;

/// Reports what has changed since it reported last.
pub(crate) struct EventReporter {
    before: BTreeMap<String, Far>,
    pools: BTreeMap<String, PoolReported>,
    downtime: Downtime,
    gauges: Gauges,
    taken: Taken,
    news: mpsc::Sender<News>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct PoolReported {
    target: String,
    is_updated: bool,
    not_made: Option<String>,
    /// The UID of its Rollout, where that is paused since it was made anew.
    anew: Option<String>,
    /// In how many waves its nodes were begun that are not drained for the target.
    waves: usize,
}

impl EventReporter {
    /// One, and what it reports.
    pub(crate) fn new() -> (EventReporter, mpsc::Receiver<News>) {
        let (news, queue) = mpsc::channel(MOST);
        let reporter = EventReporter {
            before: BTreeMap::new(),
            pools: BTreeMap::new(),
            downtime: Downtime::new(Instant::now()),
            gauges: Gauges::default(),
            taken: Taken::default(),
            news,
        };
        (reporter, queue)
    }

    /// Reports what is another way than before. Whoever begins to lead has seen nothing before, and
    /// reports no ends.
    pub(crate) fn report(
        &mut self,
        metrics: &Metrics,
        (cluster, moment, scene): (&Cluster, &Moment, &Scene),
        now: Instant,
    ) {
        let mut down = 0;
        let mut there = BTreeSet::new();
        for (name, of_pool) in &scene.pools {
            let Some(pool) = cluster.pools.get(name) else { continue };
            let pool = about(POOL_KIND, &format!("{MACHINE_CONFIG_GROUP}/v1"), name, &pool.uid);
            let target = of_pool.target.as_ref().map_or("", |target| target.name.as_str());
            let (mut begun, mut softly) = (Vec::new(), 0);
            for node in &of_pool.nodes {
                let facts = moment.nodes.get(&node.name).map(|facts| &**facts);
                let update = moment.updates.get(&node.name);
                let update = update.filter(|it| facts.is_some_and(|facts| is_of(it, &facts.uid)));
                let far = Far { state: node.state, update: update.cloned() };
                down += usize::from(is_down(node, facts));
                there.insert(node.name.as_str());
                let before = self.before.insert(node.name.clone(), far.clone());
                let gets_softly = far.gets_softly(target);
                softly += usize::from(gets_softly);
                let Some(before) = before else { continue };
                if gets_softly && !is_same(&before, &far) {
                    begun.push(node.name.as_str());
                }
                if let Some(disrupts) = phases::brought(&before, &far) {
                    counts::brought(metrics, name, disrupts);
                }
                let passed = passed(&before, &far);
                if passed.is_empty() {
                    continue;
                }
                let uid = facts.map_or("", |facts| facts.uid.as_str());
                let about = about("Node", "v1", &node.name, uid);
                let left = update.and_then(|update| update.spec.order.as_ref()?.leaves_pods);
                let stays =
                    left.unwrap_or_else(|| scene.is_alone(&node.name)) || of_pool.drain.skip;
                for it in passed {
                    if it == Passed::Booted {
                        counts::booted(metrics, name);
                    }
                    for news in news_of(it, node, (&far, target, stays), (&about, &pool)) {
                        self.send(news);
                    }
                }
            }
            let limit = moment.rollouts.get(name).and_then(|rollout| rollout.spec.soft_limit);
            let limit = limit.and_then(|it| usize::try_from(it).ok()).unwrap_or(SOFT_LIMIT);
            let old = waves::waves(softly.saturating_sub(begun.len()), limit);
            let waves = (old, waves::waves(softly, limit));
            let rollout = moment.rollouts.get(name).filter(|_| of_pool.anew.is_some());
            let anew = rollout.map(|rollout| rollout.metadata.uid.clone().unwrap_or_default());
            self.pool((name, of_pool, target), (&begun, softly, waves), anew, &pool);
            let states = of_pool.nodes.iter().map(|node| state(node, of_pool, scene));
            let waits = of_pool.turns.waits.iter().map(|(_, why)| why);
            self.gauges.set(metrics, name, states, waits);
        }
        for (name, why) in self.taken.news(scene) {
            let uid = moment.nodes.get(&name).map_or("", |facts| facts.uid.as_str());
            let about = about("Node", "v1", &name, uid);
            let text = format!("tread has a change for it, and leaves it alone meanwhile: {why}");
            self.send(News::new(&about, Reason::NodeTaken, true, text, why));
        }
        self.before.retain(|name, _| there.contains(name.as_str()));
        self.pools.retain(|name, _| scene.pools.contains_key(name));
        self.gauges.keep(metrics, |name| scene.pools.contains_key(name));
        self.downtime.passes(metrics, now, down);
    }

    /// That this replica does not lead: what comes next is news to it, and another one counts.
    pub(crate) fn forget(&mut self, metrics: &Metrics, now: Instant) {
        self.before.clear();
        self.pools.clear();
        self.taken.forget();
        self.gauges.keep(metrics, |_| false);
        self.downtime = Downtime::new(now);
    }

    fn pool(
        &mut self,
        (name, of_pool, target): (&str, &OfPool, &str),
        (begun, softly, (old, waves)): (&[&str], usize, (usize, usize)),
        anew: Option<String>,
        pool: &ObjectReference,
    ) {
        let all_have = |node: &Node| node.state == State::Updated;
        let now = PoolReported {
            target: target.to_owned(),
            is_updated: !of_pool.nodes.is_empty() && of_pool.nodes.iter().all(all_have),
            not_made: of_pool.not_made.as_ref().map(|(_, why)| why.clone()),
            anew,
            waves,
        };
        let nodes = of_pool.nodes.len();
        let Some(before) = self.pools.insert(name.to_owned(), now.clone()) else { return };
        // If this target was one before, the nodes that already have it are no news.
        let known = if before.target == target { before.waves } else { old };
        if waves > known {
            let named: Vec<&str> = begun.iter().copied().take(NAMED).collect();
            let named = match named.as_slice() {
                [] => String::new(),
                named => {
                    format!(", now {}{}", named.join(", "), and_more(begun.len(), NAMED))
                }
            };
            let text = format!(
                "{softly} of {nodes} nodes have {target} or get it, and are neither drained nor \
                 booted{named}"
            );
            self.send(News::new(pool, Reason::SoftWave, false, text, format!("{target}/{waves}")));
        }
        if now.is_updated && !before.is_updated {
            let text = format!("all {nodes} nodes have {target}");
            self.send(News::new(pool, Reason::PoolUpdated, false, text, target.to_owned()));
        }
        if let Some(why) = now.not_made.filter(|why| before.not_made.as_ref() != Some(why)) {
            self.send(News::new(pool, Reason::PoolNotRendered, true, why.clone(), why));
        }
        let anew = now.anew.filter(|anew| before.anew.as_ref() != Some(anew));
        if let Some((uid, said)) = anew.zip(of_pool.anew.clone()) {
            self.send(News::new(pool, Reason::RolloutMadeAnew, true, said, uid));
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
        drop(events.report_each(&about, &note, &of).await);
    }
    std::future::pending().await
}

/// Whether a node is drained or down for an update: one that failed, and one that is done and not
/// uncordoned yet, still is.
fn is_down(node: &Node, facts: Option<&Facts>) -> bool {
    let drains = matches!(node.state, State::UnderWay(disrupts) if disrupts.drains());
    let is_cordoned = facts.is_some_and(Facts::is_cordoned_by_tread);
    let failed = node.state == State::Failed && facts.is_some_and(|facts| !facts.is_ready);
    drains || is_cordoned || failed
}

/// What is reported of a node that went through this; where its pods stay, it is not drained.
fn news_of(
    it: Passed,
    node: &Node,
    (far, target, stays): (&Far, &str, bool),
    (about, pool): (&ObjectReference, &ObjectReference),
) -> Vec<News> {
    let name = &node.name;
    let order = far.order();
    // Of a node that failed for another one it is said which one.
    let config = order.map_or(target, |order| order.config.name.as_str());
    let operation = order.map_or("", |order| order.operation.as_str());
    let of = format!("{name}/{config}/{operation}");
    let says = far.says().map(|says| one_line_within(says, LONGEST).0).unwrap_or_default();
    let says = if says.is_empty() { says } else { format!(" ({says})") };
    let one = |reason, text: String| vec![News::new(about, reason, false, text, of.clone())];
    let both = |reason, text: &dyn Fn(&str) -> String| {
        vec![
            News::new(about, reason, true, text("this node"), of.clone()),
            News::new(pool, reason, true, text(name), of.clone()),
        ]
    };
    match it {
        Passed::Begun => {
            let boots = order.is_some_and(|order| order.disrupts == UpdateDisrupts::Reboot);
            let boots = if boots { ", and boots it" } else { "" };
            let drains = if stays { "cordons" } else { "drains" };
            let text = format!("tread {drains} it{boots}, to bring it to {config}");
            one(Reason::NodeUpdateBegun, text)
        }
        Passed::Drained => {
            let drained = match stays {
                true => "it is cordoned, and its pods stay on it",
                false => "it is drained",
            };
            one(Reason::NodeDrained, format!("{drained}; its agent brings it to {config}"))
        }
        Passed::Booted => {
            let text = format!("it booted for {config}, and has to prove that it is well");
            let of = format!("{of}/{}", far.boot().unwrap_or_default());
            vec![News::new(about, Reason::NodeBooted, false, text, of)]
        }
        Passed::Ended => {
            one(Reason::NodeUpdateEnded, format!("it has {config}, and its pods may come back"))
        }
        Passed::TurnedBack => {
            let text = format!("it does not get {config} now, and its pods may come back{says}");
            one(Reason::NodeUpdateTurnedBack, text)
        }
        Passed::NeedsBoot => both(Reason::NodeNeedsBoot, &|it: &str| {
            format!(
                "{it} needs a boot to get to {config}, since a step of a plan without one \
                 failed, or cannot be carried out there{says}; it waits for its turn to be drained, and changes without a boot \
                 wait for tread rollout retry"
            )
        }),
        Passed::Failed => both(Reason::NodeUpdateFailed, &|it: &str| {
            format!(
                "{it} failed on its way to {config}, or went back{says}; no other node of its pool is \
                 begun after one that went back, or as many as its Rollout says: see kubectl get \
                 nodeupdate {name} -o yaml, and tread rollout retry"
            )
        }),
    }
}

/// How a node stands, in a word.
fn state(node: &Node, of_pool: &OfPool, scene: &Scene) -> &'static str {
    let needs_agent = scene.nodes.get(&node.name).is_some_and(|node| node.needs_agent);
    match node.state {
        State::Updated => "updated",
        State::Due(_) if needs_agent => "needs-agent",
        State::Due(_) if node.held.is_some() => "held",
        State::Due(_) => "waiting",
        State::UnderWay(_) if of_pool.preparing.contains(&node.name) => "preparing",
        State::UnderWay(_) => "updating",
        State::NeedsBoot => "needs-boot",
        State::Failed => "failed",
    }
}

/// Between two looks that only count.
pub(crate) const COUNTS: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests;
