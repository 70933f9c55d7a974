//! The controller: takes in what the watches say, and looks at what it touches.

use super::blockers::drains;
use super::pass::{Desk, Pass, PassOutcome, Planning};
use super::previewer::Previewer;
use super::settings::Settings;
use super::standing::{PAGE, PLANS};
use super::state::{Input, State, Touched};
use futures::StreamExt as _;
use futures::stream::{BoxStream, select_all};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::jiff::Timestamp;
use kube::core::{ApiResource, DynamicObject};
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Resource};
use std::collections::BTreeSet;
use std::sync::PoisonError;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tread_kube::api::mirrors::{ImageContentSourcePolicy, ImageDigestMirrorSet, ImageTagMirrorSet};
use tread_kube::api::{DisruptionPlan, NodeUpdate};
use tread_kube::asking::Backoff;
use tread_kube::watching::follow;

/// One command often changes several objects: they are looked at together.
const TOGETHER: Duration = Duration::from_millis(100);
/// How long is waited after a failure, at first and at most.
const WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// How many nodes and NodeUpdates are listed at a time, and how many MachineConfigs without what
/// they hold.
const NODES: u32 = 250;
const CONFIGS: u32 = 100;
/// How often is looked whether Leases of nodes have ended, where there are any.
const LEASES: Duration = Duration::from_secs(60);
/// How often is looked who would block drains, where drains are pending.
const BLOCKERS: Duration = Duration::from_secs(5 * 60);
/// How often plans are looked through for those that are too old.
const TIDY: Duration = Duration::from_secs(60 * 60);

/// Runs for as long as it is polled.
pub(super) async fn run(settings: Settings, previewer: Previewer) {
    let mut inputs = inputs(&settings);
    let mut policies = settings.policies.clone();
    let mut leads = settings.leads.watch();
    let mut controller = Controller {
        state: State::new(settings.metrics.clone(), settings.by_tread),
        known_since: Timestamp::now().as_second(),
        news: Due::default(),
        again: Due::default(),
        momentary: Due::default(),
        passes: Passes::start(&settings, &previewer),
        backoff: Backoff::new(WAITS),
        write_backoff: Backoff::new(WAITS),
        settings,
        previewer,
    };
    let mut tidy = Instant::now() + TIDY;
    let mut leases = Instant::now() + LEASES;
    let mut blockers = Instant::now() + BLOCKERS;
    loop {
        let due = controller.due();
        tokio::select! {
            Some(input) = inputs.next() => controller.take(input),
            Ok(()) = policies.changed() => controller.touch(Touched::everything()),
            Ok(()) = leads.changed() => controller.touch(Touched::everything()),
            () = sleep_until(tidy) => {
                tidy = Instant::now() + TIDY;
                controller.touch(Touched::everything());
            }
            () = sleep_until(leases) => {
                leases = Instant::now() + LEASES;
                controller.look_at_leases();
            }
            () = sleep_until(blockers) => {
                blockers = Instant::now() + BLOCKERS;
                controller.look_at_blockers();
            }
            () = maybe(due) => controller.start(),
            news = controller.passes.next() => controller.came(news),
        }
    }
}

struct Controller {
    settings: Settings,
    previewer: Previewer,
    state: State,
    known_since: i64,
    /// What has to be looked at because of what the watches say.
    news: Due,
    /// What has to be looked at because it failed.
    again: Due,
    /// What has to be planned again because a policy failed for a moment.
    momentary: Due,
    passes: Passes,
    /// How long to wait after a failure.
    backoff: Backoff,
    /// The same where something was not written.
    write_backoff: Backoff,
}

/// The task that plans for pools, one pass after the other, and the one that writes what came of it:
/// what they remember stays there.
struct Passes {
    ask: mpsc::Sender<Pass>,
    answers: mpsc::Receiver<PassOutcome>,
    /// The pools of which not all was written.
    unwritten: mpsc::Receiver<BTreeSet<String>>,
    _tasks: JoinSet<()>,
    /// Whether it looks.
    is_busy: bool,
}

impl Passes {
    fn start(settings: &Settings, previewer: &Previewer) -> Passes {
        let (ask, mut asked) = mpsc::channel(1);
        let (answer, answers) = mpsc::channel(1);
        let (say, unwritten) = mpsc::channel(1);
        let desk = Desk::default();
        let mut planning = Planning::new(settings.clone(), previewer.clone(), desk.clone());
        let mut tasks = JoinSet::new();
        tasks.spawn(desk.write(settings.clone(), previewer.clone(), say));
        tasks.spawn(async move {
            while let Some(pass) = asked.recv().await {
                if answer.send(planning.run(pass).await).await.is_err() {
                    return;
                }
            }
        });
        Passes { ask, answers, unwritten, _tasks: tasks, is_busy: false }
    }

    fn begin(&mut self, pass: Pass) {
        self.is_busy = true;
        // If the task has ended, `outcome` gets no answer either.
        drop(self.ask.try_send(pass));
    }

    /// What comes of the pass, or of writing; None: one of them was interrupted.
    async fn next(&mut self) -> Option<Came> {
        tokio::select! {
            outcome = self.answers.recv(), if self.is_busy => outcome.map(Came::Pass),
            unwritten = self.unwritten.recv() => unwritten.map(Came::Unwritten),
        }
    }
}

/// What comes of the tasks.
enum Came {
    /// A pass ended.
    Pass(PassOutcome),
    /// A round of writing ended, and of these pools not all was written.
    Unwritten(BTreeSet<String>),
}

/// Pools to look at, and when.
#[derive(Debug, Default)]
struct Due {
    pools: BTreeSet<String>,
    at: Option<Instant>,
}

impl Due {
    fn add(&mut self, pools: impl IntoIterator<Item = String>, wait: Duration) {
        self.pools.extend(pools);
        if !self.pools.is_empty() && self.at.is_none() {
            self.at = Some(Instant::now() + wait);
        }
    }

    /// The pools, if it is time for them.
    fn take(&mut self) -> BTreeSet<String> {
        match self.at.take_if(|at| *at <= Instant::now()) {
            Some(_) => std::mem::take(&mut self.pools),
            None => BTreeSet::new(),
        }
    }
}

impl Controller {
    fn take(&mut self, input: Input) {
        let concerns_pools = matches!(input, Input::Pools(_) | Input::Config(_));
        let mut cluster = self.previewer.cluster.write().unwrap_or_else(PoisonError::into_inner);
        let touched = self.state.take(input, &mut cluster);
        if self.state.is_complete() {
            self.previewer.set_strays(&cluster.strays);
        }
        drop(cluster);
        if concerns_pools {
            self.previewer.note_change();
        }
        if touched.sources {
            self.previewer.note_sources();
        }
        self.touch(touched);
    }

    /// Looks again at the Leases: some may have ended by time alone.
    fn look_at_leases(&mut self) {
        let mut cluster = self.previewer.cluster.write().unwrap_or_else(PoisonError::into_inner);
        if cluster.flags.has_leases() {
            let touched = self.state.flags(&mut cluster);
            drop(cluster);
            self.touch(touched);
        }
    }

    /// Looks again at the pools that have drains before them: budgets are not watched.
    fn look_at_blockers(&mut self) {
        let plans = self.previewer.plans();
        let drained = plans.iter().filter(|plan| drains(plan)).map(|plan| plan.pool.clone());
        self.touch(Touched::pools(drained.collect()));
    }

    fn touch(&mut self, touched: Touched) {
        if touched.all {
            self.news.add(self.all_pools(), TOGETHER);
        }
        self.news.add(touched.pools, TOGETHER);
        if self.news.pools.is_empty() && !self.passes.is_busy && self.knows() {
            self.previewer.set_ready();
        }
    }

    /// Those that there are, and those that plans are still there for.
    fn all_pools(&self) -> BTreeSet<String> {
        let cluster = self.previewer.cluster.read().unwrap_or_else(PoisonError::into_inner);
        let planned = self.state.plans.values().map(|plan| &plan.pool);
        cluster.pools.keys().chain(planned).cloned().collect()
    }

    /// When to look, if there is anything to look at, and all is known that is
    /// needed for it.
    fn due(&self) -> Option<Instant> {
        let due = [self.news.at, self.again.at, self.momentary.at].into_iter().flatten().min();
        due.filter(|_| self.knows() && !self.passes.is_busy)
    }

    fn knows(&self) -> bool {
        self.state.is_complete() && self.settings.policies.borrow().settled
    }

    fn start(&mut self) {
        let mut pools = self.news.take();
        pools.append(&mut self.again.take());
        pools.append(&mut self.momentary.take());
        let standing = self.state.plans.iter().filter(|(_, plan)| pools.contains(&plan.pool));
        let standing = standing.map(|(name, plan)| (name.clone(), plan.clone())).collect();
        self.passes.begin(Pass { standing, pools, known_since: self.known_since });
    }

    fn came(&mut self, news: Option<Came>) {
        match news {
            None => {
                tracing::error!("a pass over the pools was interrupted: all are looked at again");
                self.passes = Passes::start(&self.settings, &self.previewer);
                self.later(self.all_pools());
            }
            Some(Came::Pass(outcome)) => self.ended(outcome),
            Some(Came::Unwritten(pools)) if pools.is_empty() => self.write_backoff.reset(),
            Some(Came::Unwritten(pools)) => {
                self.again.add(pools, self.write_backoff.next_wait());
            }
        }
    }

    fn ended(&mut self, outcome: PassOutcome) {
        self.passes.is_busy = false;
        self.previewer.set_ready();
        self.momentary = Due { pools: outcome.momentary, at: outcome.momentary_at };
        let mut cluster = self.previewer.cluster.write().unwrap_or_else(PoisonError::into_inner);
        for pool in &outcome.rolled_out {
            cluster.unpaused.remove(pool);
        }
        cluster.forget_mirrors();
        cluster.forget_lost();
        drop(cluster);
        if !outcome.again.is_empty() {
            self.later(outcome.again);
        } else if self.again.pools.is_empty() {
            self.backoff.reset();
        }
    }

    /// Looks again after a failure, a little later each time. What did not fail
    /// does not wait for it.
    fn later(&mut self, pools: BTreeSet<String>) {
        let wait = self.backoff.next_wait();
        self.again.add(pools, wait);
    }
}

async fn maybe(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// What the index knows, and what is watched for plans alone.
fn inputs(settings: &Settings) -> impl futures::Stream<Item = Input> + Send + Unpin + use<> {
    let index = &settings.index;
    let mut inputs = vec![
        index.pools.moments().map(Input::Pools).boxed(),
        index.machine_configuration.moments().map(Input::MachineConfiguration).boxed(),
        index.cluster_version.moments().map(Input::ClusterVersion).boxed(),
        watched(settings, "machineconfigs", CONFIGS, Input::Config),
        mirrors::<ImageContentSourcePolicy>(
            settings,
            "imagecontentsourcepolicies",
            "ImageContentSourcePolicy",
        ),
        mirrors::<ImageDigestMirrorSet>(settings, "imagedigestmirrorsets", "ImageDigestMirrorSet"),
        mirrors::<ImageTagMirrorSet>(settings, "imagetagmirrorsets", "ImageTagMirrorSet"),
        // They are large, and little is kept of them.
        watched::<DisruptionPlan>(settings, PLANS, PAGE, |event| Input::Plan(Box::new(event))),
        watched::<Node>(settings, "nodes", NODES, |event| Input::Node(Box::new(event))),
        index.node_leases.moments().map(Input::Leases).boxed(),
        index.maintenances.moments().map(Input::Maintenances).boxed(),
        index.rollouts.moments().map(Input::Rollouts).boxed(),
    ];
    if settings.by_tread {
        inputs.push(watched::<NodeUpdate>(settings, "nodeupdates", NODES, |event| {
            Input::Update(Box::new(event))
        }));
        let daemon = index.operators_daemon.moments();
        inputs.push(daemon.map(|all| Input::OperatorsDaemon(!all.is_empty())).boxed());
    }
    select_all(inputs)
}

/// Objects of a kind, so many in a list at a time.
fn watched<K>(
    settings: &Settings,
    name: &'static str,
    page: u32,
    input: fn(Event<K>) -> Input,
) -> BoxStream<'static, Input>
where
    K: Resource<DynamicType = ()>
        + Clone
        + serde::de::DeserializeOwned
        + std::fmt::Debug
        + Send
        + 'static,
{
    let api: Api<K> = Api::all(settings.client.clone());
    follow(api, Config::default().page_size(page), name, &settings.watches, &settings.metrics)
        .map(input)
        .boxed()
}

/// Objects that redirect image pulls, as they stand there, whatever fields they have.
fn mirrors<K: Resource<DynamicType = ()>>(
    settings: &Settings,
    name: &'static str,
    kind: &'static str,
) -> BoxStream<'static, Input> {
    let resource = ApiResource::erase::<K>(&());
    let api: Api<DynamicObject> = Api::all_with(settings.client.clone(), &resource);
    let config = Config::default().page_size(PAGE);
    follow(api, config, name, &settings.watches, &settings.metrics)
        .map(move |event| Input::Mirror(kind, event))
        .boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_waited_for_by_itself() {
        let pool = |name: &str| [name.to_owned()];
        let (mut news, mut again) = (Due::default(), Due::default());
        again.add(pool("failed"), Duration::from_secs(3600));
        news.add(pool("changed"), Duration::ZERO);
        assert!(news.at < again.at);
        assert_eq!(news.take(), pool("changed").into());
        assert_eq!((news.at, again.take()), (None, BTreeSet::new()));
        // What comes while one waits does not make it wait longer, nor shorter.
        let at = again.at;
        again.add(pool("another"), Duration::ZERO);
        assert_eq!((again.at, again.pools.len()), (at, 2));
    }
}
