//! Looking again and again at what is known, and doing what follows of it.

use super::by::By;
use super::events::{COUNTS, EventReporter};
use super::joining::Joining;
use super::known::{Known, Moment};
use super::may_act::MayAct;
use super::plans::{FromTo, Made, Planned, Plans, plan};
use super::render::Rendering;
use super::scene::{OfNode, Scene};
use super::settings::Settings;
use super::sightings::Sightings;
use super::time::Asking;
use super::workers::Workers;
use super::writing::{Writer, Writes};
use futures::StreamExt as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tread_cluster::previews::Cluster;
use tread_kube::resting::Resting;
use tread_model::digest::Digest;
use tread_model::protocol::Time;

/// What happens at the same time is looked at together.
const TOGETHER: Duration = Duration::from_millis(50);
/// How often is looked whether a window has opened.
const WINDOWS: Duration = Duration::from_secs(15);
/// The most of a core that looks at all of it take, and the longest rest between two.
const RESTS: Resting = Resting { parts: 20, longest: Duration::from_secs(2) };
/// No sooner than that is looked whether a node that failed is to be begun again.
const AGAIN: Duration = Duration::from_secs(1);
/// So long after planning was interrupted, or something that it takes was not there, it is tried
/// again.
const PLAN_AGAIN: Duration = Duration::from_secs(1);

/// Runs for as long as it is polled.
pub(super) async fn run(
    settings: Settings,
    known: Known,
    publish: watch::Sender<Option<Arc<Scene>>>,
    reporter: EventReporter,
    joining: Joining,
) {
    settings.previewer.ready().await;
    let mut changes = known.changes();
    let mut pools = settings.previewer.changes();
    let mut sources = settings.previewer.sources();
    sources.mark_changed();
    let mut policies = settings.policies.clone();
    let mut leads = settings.leads.watch();
    let mut missing = joining.missing();
    let mut rolling = Rolling {
        rendering: Rendering::default(),
        plans: Plans::default(),
        planning: JoinSet::new(),
        workers: Workers::default(),
        sightings: Sightings::default(),
        may_act: MayAct::default(),
        look_at: Some(Instant::now()),
        rests_until: Instant::now(),
        seen: None,
        writer: Writer::default(),
        reporter,
        tidy_at: Instant::now() + settings.paces.tidy,
        tidies: false,
        settings,
        known,
        publish,
        joining,
        time: Asking::default(),
    };
    rolling.time.ask_if_old(&rolling.settings);
    loop {
        let (due, works) = (rolling.due(), rolling.workers.due());
        tokio::select! {
            Some(()) = changes.next() => rolling.look_soon(TOGETHER),
            Ok(()) = pools.changed() => rolling.look_soon(TOGETHER),
            Ok(()) = sources.changed() => {
                rolling.rendering.soon(Instant::now(), rolling.settings.paces.render_after);
                rolling.look_soon(TOGETHER);
            }
            Ok(()) = policies.changed() => rolling.look_soon(TOGETHER),
            Ok(()) = leads.changed() => rolling.look_soon(TOGETHER),
            Ok(()) = missing.changed() => rolling.look_soon(TOGETHER),
            Some(planned) = rolling.planning.join_next() => rolling.planned(planned),
            () = rolling.workers.ended() => {
                rolling.work();
                rolling.look_soon(TOGETHER);
            }
            () = rolling.time.ended() => rolling.look_soon(Duration::ZERO),
            () = rolling.rendering.ended() => rolling.look_soon(Duration::ZERO),
            Some(again) = rolling.writer.ended() => rolling.look_at(again),
            () = maybe(due) => rolling.look(),
            () = maybe(works) => rolling.work(),
        }
    }
}

struct Rolling {
    settings: Settings,
    known: Known,
    publish: watch::Sender<Option<Arc<Scene>>>,
    rendering: Rendering,
    plans: Plans,
    planning: JoinSet<(Digest, FromTo, Made)>,
    workers: Workers,
    sightings: Sightings,
    may_act: MayAct,
    /// When all of it is looked at again.
    look_at: Option<Instant>,
    /// Before this nothing is: the more nodes there are, the longer a look takes.
    rests_until: Instant,
    /// What was seen last.
    seen: Option<(Arc<Moment>, Arc<Scene>)>,
    writer: Writer,
    reporter: EventReporter,
    /// When what nobody names any more is looked for.
    tidy_at: Instant,
    tidies: bool,
    joining: Joining,
    time: Asking,
}

impl Rolling {
    fn due(&self) -> Option<Instant> {
        // A node that could not be drained is tried again when all is looked at.
        let stuck = self.workers.stuck().due(Instant::now());
        let writes = self.writer.due();
        let due = [self.look_at, self.rendering.due(), Some(self.tidy_at), stuck, writes];
        due.into_iter().flatten().min().map(|due| due.max(self.rests_until))
    }

    fn look_soon(&mut self, wait: Duration) {
        self.look_at(Instant::now() + wait);
    }

    fn look_at(&mut self, at: Instant) {
        self.look_at = Some(self.look_at.map_or(at, |known| known.min(at)));
    }

    /// Looks at all of it, and takes a part of a core for that, however many nodes there are and
    /// however much happens.
    fn look(&mut self) {
        let begun = Instant::now();
        self.look_all();
        self.rests_until = Instant::now() + RESTS.after(begun.elapsed());
    }

    /// Goes on with nodes by what was seen last: each of them is read afresh before anything is
    /// done.
    fn work(&mut self) {
        // Neither waits for the next look at all of it.
        let may = self.settings.leads.now() && !self.known.has_operators_daemon();
        match &self.seen {
            Some((moment, scene)) if may => {
                let newest = self.publish.subscribe();
                self.workers.begin(&self.settings, moment, scene, &newest);
            }
            _ => self.rest(),
        }
    }

    fn look_all(&mut self) {
        self.look_at = None;
        let cluster = self.settings.previewer.snapshot();
        self.rendering.begin_if_due(&self.settings, &cluster);
        if self.tidy_at <= Instant::now() {
            self.tidy_at = Instant::now() + self.settings.paces.tidy;
            self.tidies = true;
        }
        // What is not listed yet says when it is.
        let Some(moment) = self.known.now().map(Arc::new) else { return };
        // Its first answer leads to another look.
        let Some(now) = self.settings.acts.clock.now() else { return };
        self.sightings.look(&moment, now);
        let acts = &self.settings.acts;
        let leads = self.settings.leads.now();
        self.may_act.look(&moment, leads, (&acts.holder, &acts.terms), now);
        let scene = Arc::new(self.scene(&cluster, &moment, now));
        if scene.goes_by_time() {
            self.time.ask_if_old(&self.settings);
        }
        self.publish.send_replace(Some(Arc::clone(&scene)));
        self.plan(&scene);
        if scene.pools.values().any(|pool| pool.has_windows) {
            self.look_soon(WINDOWS);
        }
        let again = scene.pools.values().filter_map(|pool| pool.again.as_ref()).min();
        if let Some((at, _)) = again {
            self.look_soon(at.since(now).max(AGAIN));
        }
        if !self.settings.leads.now() {
            self.reporter.forget(&self.settings.acts.metrics, Instant::now());
            self.writer.rest();
            self.rest();
            return;
        }
        let metrics = &self.settings.acts.metrics;
        self.reporter.report(metrics, (&cluster, &moment, &scene), Instant::now());
        if scene.nodes.values().any(OfNode::is_busy) {
            self.look_soon(COUNTS);
        }
        match &scene.halted {
            Some(_) => self.rest(),
            None => {
                self.workers.see(&self.settings, &moment, &scene);
                self.seen = Some((Arc::clone(&moment), Arc::clone(&scene)));
                self.work();
            }
        }
        if self.writer.is_free() {
            let tidies = if self.tidies { self.joining.served() } else { None };
            self.tidies &= tidies.is_none();
            let writes = Writes {
                cluster,
                moment,
                made: self.rendering.made().clone(),
                scene,
                draining: self.workers.draining().clone(),
                missing: self.joining.missing().borrow().clone(),
                tidies,
            };
            self.writer.begin(&self.settings, writes);
        }
    }

    /// Begins nothing, and ends what is under way from here.
    fn rest(&mut self) {
        self.seen = None;
        self.workers.halt();
    }

    fn scene(&self, cluster: &Cluster, moment: &Moment, now: Time) -> Scene {
        Scene::of(By {
            cluster,
            moment,
            made: self.rendering.made(),
            not_written: self.writer.not_written(),
            plans: &self.plans,
            terms: &self.settings.acts.terms,
            us: &self.settings.acts.holder,
            own_node: self.settings.own_node.as_deref(),
            stuck: self.workers.stuck(),
            sightings: &self.sightings,
            may_act: &self.may_act,
            now,
            lost_after: self.settings.paces.lost_after,
            form: self.settings.form,
        })
    }

    /// Begins with the next plan that is missing: one at a time.
    fn plan(&mut self, scene: &Scene) {
        let policies = self.settings.policies.borrow().digest;
        self.plans.keep(policies, &scene.asked);
        if !self.planning.is_empty() || !self.settings.policies.borrow().settled {
            return;
        }
        if let Some(from_to) = self.plans.missing(&scene.asked, Instant::now()).cloned() {
            let previewer = self.settings.previewer.clone();
            self.planning.spawn(async move {
                let made = plan(&previewer, &from_to).await;
                (policies, from_to, made)
            });
        } else if let Some(due) = self.plans.due() {
            self.look_at(due);
        }
    }

    fn planned(&mut self, planned: Result<(Digest, FromTo, Made), tokio::task::JoinError>) {
        let wait = match planned {
            Ok((policies, from_to, made)) => {
                let is_told = made.planned != Planned::NotYet;
                self.plans.put(policies, from_to, made, Instant::now());
                if is_told { Duration::ZERO } else { PLAN_AGAIN }
            }
            Err(_) => PLAN_AGAIN,
        };
        self.look_soon(wait);
    }
}

async fn maybe(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}
