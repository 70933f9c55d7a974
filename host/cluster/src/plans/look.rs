//! A look at some pools: what their nodes will go through, and what has to be
//! written and told for it.

mod plan;
mod prepare;
mod publish;
mod tell;
mod write;

use super::previewer::Previewer;
use super::settings::Settings;
use super::standing::Standing;
use plan::{Planned, Remembered, plan};
use prepare::prepare;
use publish::publish;
use std::collections::{BTreeMap, BTreeSet};
use tell::{Said, Telling, tell};
use write::{Writing, Written, write};

/// What a look is at.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) pools: BTreeSet<String>,
    /// The plans of these pools that stand in the cluster.
    pub(super) standing: BTreeMap<String, Standing>,
    /// Since when it is known what pools have that nobody renders.
    pub(super) known_since: i64,
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Looked {
    /// Pools to look at again, after a pause.
    pub(super) again: BTreeSet<String>,
    /// Pools whose nodes have what they are to have.
    pub(super) rolled_out: BTreeSet<String>,
}

/// Looks at pools, one look after the other, and remembers what each found.
pub(super) struct Looker {
    settings: Settings,
    previewer: Previewer,
    /// What was planned for each pool, so that what did not change is not planned
    /// again.
    planned: BTreeMap<String, Remembered>,
    written: Written,
    said: Said,
}

impl Looker {
    pub(super) fn new(settings: Settings, previewer: Previewer) -> Looker {
        let (planned, written, said) = (BTreeMap::new(), Written::default(), Said::default());
        Looker { settings, previewer, planned, written, said }
    }

    /// Looks at some pools.
    pub(super) async fn look(&mut self, look: Look) -> Looked {
        let Looker { settings, previewer, planned, written, said } = self;
        let current = settings.policies.borrow().clone();
        let prepared = prepare(previewer, &look.pools).await;
        let Planned { wanted, failed } = plan(previewer, &current, &prepared, planned).await;
        let cluster = &prepared.cluster;
        publish(settings, previewer, cluster, &wanted);
        let mut looked = Looked::default();
        let is_empty = |(name, plans): (&String, &Vec<_>)| plans.is_empty().then(|| name.clone());
        looked.rolled_out.extend(wanted.iter().filter_map(is_empty));
        looked.again.extend(failed.into_keys());
        let writing = Writing {
            cluster,
            wanted: &wanted,
            stale: &looked.again,
            standing: &look.standing,
            known_since: look.known_since,
        };
        let not_written = write(settings, &writing, written).await;
        let telling = Telling {
            cluster,
            current: &current,
            wanted: &wanted,
            described: &previewer.plans(),
            standing: &look.standing,
            decisions: planned.values().map(|it| &it.decisions).collect(),
        };
        let is_untold = tell(settings, &telling, said).await;
        looked.again.extend(not_written);
        // With whichever pool.
        looked.again.extend(look.pools.first().filter(|_| is_untold).cloned());
        looked
    }
}
