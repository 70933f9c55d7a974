//! Writes and reports beside the planning, so that an API server that is slow to take what is written
//! keeps no plan waiting that others ask for. What comes meanwhile is put together, and nothing queues.

use super::super::previewer::Previewer;
use super::super::settings::Settings;
use super::super::standing::Standing;
use super::report::{Reporting, Said, report};
use super::write::{Writing, Written, write};
use crate::policies::current::Current;
use crate::previews::{Cluster, Described};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Notify, mpsc};

/// What one pass found, or several that came one after another.
#[derive(Debug)]
pub(super) struct Findings {
    /// The pools that were looked at.
    pub(super) pools: BTreeSet<String>,
    pub(super) cluster: Cluster,
    pub(super) current: Arc<Current>,
    /// The plans that there have to be, by pool.
    pub(super) wanted: BTreeMap<String, Vec<Arc<Described>>>,
    /// The pools whose plans may not be true any more.
    pub(super) stale: BTreeSet<String>,
    /// The plans of all of these pools that stand in the cluster.
    pub(super) standing: BTreeMap<String, Standing>,
    pub(super) known_since: i64,
    /// How often each policy decides in all pools.
    pub(super) decisions: BTreeMap<String, i64>,
}

impl Findings {
    /// Puts those of a later pass in the place of those of the same pools.
    fn merge(&mut self, later: Findings) {
        let Findings { pools, cluster, current, wanted, stale, standing, known_since, decisions } =
            later;
        self.wanted.retain(|pool, _| !pools.contains(pool));
        self.stale.retain(|pool| !pools.contains(pool));
        self.standing.retain(|_, it| !pools.contains(&it.pool));
        self.pools.extend(pools);
        self.wanted.extend(wanted);
        self.stale.extend(stale);
        self.standing.extend(standing);
        (self.cluster, self.current, self.decisions) = (cluster, current, decisions);
        self.known_since = known_since;
    }
}

/// Where a pass leaves what it found. Clones share it.
#[derive(Debug, Clone, Default)]
pub(in crate::plans) struct Desk(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    findings: Mutex<Option<Findings>>,
    news: Notify,
}

impl Desk {
    pub(super) fn leave(&self, later: Findings) {
        let mut findings = self.0.findings.lock().unwrap_or_else(PoisonError::into_inner);
        match findings.as_mut() {
            Some(findings) => findings.merge(later),
            None => *findings = Some(later),
        }
        drop(findings);
        self.0.news.notify_one();
    }

    fn take(&self) -> Option<Findings> {
        self.0.findings.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Writes and reports what is left there, and says of which pools not all was written. It ends when
    /// nobody wants to know that.
    pub(in crate::plans) async fn write(
        self,
        settings: Settings,
        previewer: Previewer,
        unwritten: mpsc::Sender<BTreeSet<String>>,
    ) {
        let (mut written, mut said) = (Written::default(), Said::default());
        loop {
            self.0.news.notified().await;
            let Some(findings) = self.take() else { continue };
            let again = write_and_report(&settings, &previewer, &findings, &mut written, &mut said);
            if unwritten.send(again.await).await.is_err() {
                return;
            }
        }
    }
}

async fn write_and_report(
    settings: &Settings,
    previewer: &Previewer,
    findings: &Findings,
    written: &mut Written,
    said: &mut Said,
) -> BTreeSet<String> {
    let Findings { pools, cluster, current, wanted, stale, standing, known_since, decisions } =
        findings;
    let writing = Writing { cluster, wanted, stale, standing, known_since: *known_since };
    let mut again = write(settings, &writing, written).await;
    let described = previewer.plans();
    let reporting =
        Reporting { cluster, current, wanted, described: &described, standing, decisions };
    if report(settings, &reporting, said).await {
        // Reports are tried again in a pass over any pool.
        again.extend(pools.first().cloned());
    }
    again
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::jiff::Timestamp;
    use tread_engine::policy::PolicySet;
    use tread_kube::api::{DisruptionPlan, DisruptionPlanSpec};

    fn standing(pool: &str, version: &str) -> Standing {
        let spec = DisruptionPlanSpec { pool: pool.to_owned(), ..DisruptionPlanSpec::default() };
        let mut plan = DisruptionPlan::new("a", spec);
        plan.metadata.resource_version = Some(version.to_owned());
        Standing::of(plan)
    }

    fn findings(wanted: &[&str], stale: &[&str], standing: &[(&str, Standing)]) -> Findings {
        let name = |name: &&str| (*name).to_owned();
        Findings {
            pools: wanted.iter().chain(stale).map(name).collect(),
            cluster: Cluster::default(),
            current: Arc::new(Current::new(PolicySet::of(Vec::new()).unwrap(), None, true)),
            wanted: wanted.iter().map(|pool| (name(pool), Vec::new())).collect(),
            stale: stale.iter().map(name).collect(),
            standing: standing.iter().map(|(plan, it)| (name(plan), it.clone())).collect(),
            known_since: Timestamp::UNIX_EPOCH.as_second(),
            decisions: BTreeMap::new(),
        }
    }

    #[test]
    fn what_comes_while_something_is_written_takes_the_place_of_what_it_is_newer_than() {
        let desk = Desk::default();
        let before = [("a-1", standing("a", "1")), ("b-1", standing("b", "2"))];
        desk.leave(findings(&["a", "b"], &["c"], &before));
        desk.leave(findings(&["c"], &["a"], &[("a-2", standing("a", "3"))]));
        let together = desk.take().unwrap();
        let wanted: Vec<&String> = together.wanted.keys().collect();
        assert_eq!(wanted, ["b", "c"]);
        assert_eq!(together.stale, ["a".to_owned()].into());
        let standing: Vec<&String> = together.standing.keys().collect();
        assert_eq!(standing, ["a-2", "b-1"], "a plan that is gone is not written onto");
        assert!(desk.take().is_none());
    }
}
