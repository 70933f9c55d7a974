//! Making plans: what is compared is brought together and counted, and planned beside the
//! threads that serve.

use super::budget::{Cost, Room, keys, too_much};
use super::previewer::{NotKnown, Previewer};
use crate::policies::current::Current;
use crate::previews::{Asked, Bodies, Cluster, Preview, Work, compute, work};
use futures::stream::FuturesOrdered;
use futures::{FutureExt as _, StreamExt as _};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;
use tread_engine::planner::Answers;
use tread_kube::metrics::{Decided, Failed, OfPolicy};
use tread_model::operator;
use tread_model::plan::ChangeOutcome;

/// How many plans one thread makes one after the other: handing one over takes as long as
/// making one that others share.
const IN_A_ROW: usize = 5;

/// What becomes of a preview as soon as it is made.
pub(super) type Take<T> = Arc<dyn Fn(Preview) -> T + Send + Sync>;

/// Plans that are made together.
pub(super) struct Together<'t> {
    pub(super) cluster: &'t Cluster,
    pub(super) current: &'t Arc<Current>,
    pub(super) answers: &'t Arc<Answers>,
    pub(super) rules: &'t Arc<operator::Policies>,
    /// As [`Asked::hides_secrets`].
    pub(super) hides_secrets: bool,
}

/// Plans that one thread makes one after the other.
struct Row {
    works: Vec<Work>,
    /// What is compared for them, where all of it is; and what they take.
    at_hand: Option<(Bodies, Cost)>,
}

impl Previewer {
    /// Plans what has to be compared, for one pool.
    pub(super) async fn compute<T: Send + 'static>(
        &self,
        work: Work,
        together: &Together<'_>,
        take: &Take<T>,
    ) -> Result<T, NotKnown> {
        let row = self.row(vec![work]);
        let made = self.made(row, together, take).await?;
        made.into_iter().next().ok_or_else(interrupted)
    }

    /// Plans what has to be compared, and after that for other pools, in their order: the
    /// first ones while the next ones are brought together.
    pub(super) async fn compute_all<T: Send + 'static>(
        &self,
        mut works: Vec<Work>,
        others: impl IntoIterator<Item = String>,
        together: &Together<'_>,
        take: &Take<T>,
    ) -> Result<Vec<T>, NotKnown> {
        let (mut others, mut all) = (others.into_iter(), Vec::new());
        let mut begun = FuturesOrdered::new();
        loop {
            while works.len() < IN_A_ROW
                && let Some(pool) = others.next()
            {
                works.extend(work(together.cluster, &pool));
            }
            if works.is_empty() {
                break;
            }
            for row in self.rows(std::mem::take(&mut works)) {
                begun.push_back(self.made(row, together, take));
            }
            while let Some(Some(made)) = begun.next().now_or_never() {
                all.extend(made?);
            }
        }
        while let Some(made) = begun.next().await {
            all.extend(made?);
        }
        Ok(all)
    }

    /// Plans in a row, where all of it is at hand and small together; else each of them by
    /// itself.
    fn rows(&self, works: Vec<Work>) -> Vec<Row> {
        let row = self.row(works);
        match &row.at_hand {
            Some((_, cost)) if cost.is_usual() => vec![row],
            _ => row.works.into_iter().map(|work| self.row(vec![work])).collect(),
        }
    }

    fn row(&self, works: Vec<Work>) -> Row {
        let bodies = self.bodies.at_hand(works.iter().flat_map(keys));
        let at_hand = bodies.map(|bodies| {
            let cost = Cost::of(&works, &bodies, &self.parsed);
            (bodies, cost)
        });
        Row { works, at_hand }
    }

    async fn made<T: Send + 'static>(
        &self,
        row: Row,
        together: &Together<'_>,
        take: &Take<T>,
    ) -> Result<Vec<T>, NotKnown> {
        let begun = Instant::now();
        let Row { works, at_hand } = row;
        let unplanned = |works: Vec<Work>, why: &str| {
            works.into_iter().map(|work| take(Preview::too_much(work, why))).collect()
        };
        let (bodies, cost, fetched) = match at_hand {
            Some((bodies, cost)) => (bodies, cost, None),
            None => {
                let room = self.budget.to_fetch().await;
                let keys: BTreeSet<_> = works.iter().flat_map(keys).cloned().collect();
                match self.bodies.get(&self.client, &self.metrics, keys).await? {
                    Some(bodies) => {
                        let cost = Cost::of(&works, &bodies, &self.parsed);
                        (bodies, cost, Some(room))
                    }
                    None => return Ok(unplanned(works, &too_much())),
                }
            }
        };
        let room = match self.budget.room(cost).await {
            Ok(room) => room,
            Err(why) => return Ok(unplanned(works, &why)),
        };
        drop(fetched);
        let making = Making {
            previewer: self.clone(),
            bodies,
            rules: Arc::clone(together.rules),
            current: Arc::clone(together.current),
            answers: Arc::clone(together.answers),
            hides_secrets: together.hides_secrets,
            begun,
            _room: room,
        };
        let take = Arc::clone(take);
        let planning = self.planners.run(move || {
            works.into_iter().map(|work| take(making.preview(work))).collect::<Vec<T>>()
        });
        planning.await.ok_or_else(interrupted)
    }

    fn measure(&self, preview: &Preview) {
        for call in &preview.calls {
            self.metrics.measures(&call.policy);
            let labels = OfPolicy { policy: call.policy.clone() };
            match call.used {
                Some(used) => {
                    let time = used.call.as_secs_f64();
                    self.metrics.sandbox_time.get_or_create(&labels).observe(time);
                    #[expect(clippy::cast_precision_loss, reason = "a histogram counts in floats")]
                    self.metrics.fuel.get_or_create(&labels).observe(used.fuel as f64);
                }
                None => drop(self.metrics.calls_with_secrets.get_or_create(&labels).inc()),
            }
            if let Some(failure) = call.failure {
                let (policy, failure) = (call.policy.clone(), failure.name().to_owned());
                self.metrics.failures.get_or_create(&Failed { policy, failure }).inc();
            }
        }
        let ways = preview.ways.iter().filter_map(|way| way.plan.as_ref().ok());
        for change in ways.flat_map(|way| &way.plan.changes) {
            let policy = change.decided_by.as_ref().map(|it| it.policy.clone());
            let policy = policy.unwrap_or_default();
            self.metrics.measures(&policy);
            let outcome = match change.outcome {
                ChangeOutcome::Decided => "decided",
                ChangeOutcome::Fallback => "fallback",
                ChangeOutcome::Failed => "failed",
                ChangeOutcome::Refused => "refused",
            };
            self.metrics.decisions.get_or_create(&Decided { policy, outcome }).inc();
        }
    }
}

fn interrupted() -> NotKnown {
    "planning was interrupted".to_owned().into()
}

/// All that plans in a row are made of.
struct Making {
    previewer: Previewer,
    bodies: Bodies,
    rules: Arc<operator::Policies>,
    current: Arc<Current>,
    answers: Arc<Answers>,
    hides_secrets: bool,
    begun: Instant,
    _room: Room,
}

impl Making {
    fn preview(&self, work: Work) -> Preview {
        let Previewer { sandbox, parsed, metrics, .. } = &self.previewer;
        let asked = Asked {
            bodies: &self.bodies,
            current: &self.current,
            operator: &self.rules,
            sandbox,
            answers: &self.answers,
            parsed,
            hides_secrets: self.hides_secrets,
        };
        let preview = compute(work, &asked);
        match preview.offered_secrets {
            true => drop(metrics.untimed_previews.inc()),
            false => metrics.preview_time.observe(self.begun.elapsed().as_secs_f64()),
        }
        self.previewer.measure(&preview);
        preview
    }
}
