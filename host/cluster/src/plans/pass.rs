//! A pass over some pools: what their nodes will go through, and what has to be
//! written and reported for it.

mod again;
mod plan;
mod prepare;
mod publish;
mod report;
mod write;
mod writer;

pub(super) use writer::Desk;

use super::blockers::Recent;
use super::flagged;
use super::previewer::Previewer;
use super::settings::Settings;
use super::standing::Standing;
use super::undrained;
use plan::{Planned, Remembered, plan};
use prepare::prepare;
use publish::publish;
use std::collections::{BTreeMap, BTreeSet};
use tokio::time::Instant;
use writer::Findings;

/// What a pass is over.
#[derive(Debug)]
pub(super) struct Pass {
    pub(super) pools: BTreeSet<String>,
    /// The plans of these pools that stand in the cluster.
    pub(super) standing: BTreeMap<String, Standing>,
    /// Since when it is known what pools have that nobody renders.
    pub(super) known_since: i64,
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct PassOutcome {
    /// Pools to look at again, after a pause.
    pub(super) again: BTreeSet<String>,
    /// Pools whose nodes have what they are to have.
    pub(super) rolled_out: BTreeSet<String>,
    /// All pools in whose plans a policy failed for a moment, and when the first of them is planned again.
    pub(super) momentary: BTreeSet<String>,
    pub(super) momentary_at: Option<Instant>,
}

/// Plans for pools, one pass after the other, and remembers what each found.
pub(super) struct Planning {
    settings: Settings,
    previewer: Previewer,
    /// What was planned for each pool, so that what did not change is not planned
    /// again.
    planned: BTreeMap<String, Remembered>,
    /// Where what is found is left to be written and reported.
    desk: Desk,
    blockers: Recent,
}

impl Planning {
    pub(super) fn new(settings: Settings, previewer: Previewer, desk: Desk) -> Planning {
        let (planned, blockers) = (BTreeMap::new(), Recent::default());
        Planning { settings, previewer, planned, desk, blockers }
    }

    /// Plans for some pools.
    pub(super) async fn run(&mut self, pass: Pass) -> PassOutcome {
        let Planning { settings, previewer, planned, desk, blockers } = self;
        let current = settings.policies.borrow().clone();
        let prepared = prepare(previewer, &pass.pools).await;
        let Planned { mut wanted, failed } = plan(previewer, &current, &prepared, planned).await;
        let (cluster, known) = (prepared.cluster, prepared.known);
        blockers.note_in(previewer, &cluster, &mut wanted).await;
        flagged::note_in_all(&cluster, &mut wanted);
        undrained::note_in_all(&cluster, &mut wanted);
        publish(settings, previewer, &cluster, &wanted, &failed);
        let mut outcome = PassOutcome::default();
        // What could not be planned just now comes back by itself, and not before that.
        let was_in_vain = |name: &String| {
            pass.pools.contains(name) && (failed.contains_key(name) || !known.contains(name))
        };
        let again = planned.iter().filter(|(name, _)| !was_in_vain(name));
        for (name, again) in again.filter_map(|(name, it)| Some((name, it.again.as_ref()?))) {
            outcome.momentary.insert(name.clone());
            outcome.momentary_at =
                Some(outcome.momentary_at.map_or(again.at, |at| at.min(again.at)));
        }
        let is_empty = |(name, plans): (&String, &Vec<_>)| plans.is_empty().then(|| name.clone());
        outcome.rolled_out.extend(wanted.iter().filter_map(is_empty));
        outcome.again.extend(failed.into_keys());
        desk.leave(Findings {
            pools: pass.pools,
            cluster,
            current,
            wanted,
            stale: outcome.again.clone(),
            standing: pass.standing,
            known_since: pass.known_since,
            decisions: sum(planned.values().map(|it| &it.decisions)),
        });
        outcome
    }
}

/// How often each policy decides, of several counts.
fn sum<'c>(counts: impl Iterator<Item = &'c BTreeMap<String, i64>>) -> BTreeMap<String, i64> {
    let mut all = BTreeMap::new();
    for (policy, count) in counts.flatten() {
        *all.entry(policy.clone()).or_default() += count;
    }
    all
}
