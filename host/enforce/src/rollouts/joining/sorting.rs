//! What is to be done for each node that registered as joining: it joins, is held, or waits.

use super::super::anew::node_taints;
use super::super::facts::{Facts, Registered};
use super::super::known::Moment;
use super::super::marks::is_of;
use super::binding::{Binding, Wanted};
use super::bound::Bound;
use super::kept::Record;
use super::letting::Entry;
use super::patch::Patch;
use super::report::What;
use super::serving::{Joining, registered};
use std::cell::Cell;
use std::collections::BTreeMap;
use tread_cluster::pools::{Place, Pools, pool_of};
use tread_cluster::previews::Cluster;
use tread_kube::api::NodeUpdate;
use tread_kube::api::rollout::NodeTaint;
use tread_model::joining::{self, Id, Joins, Key, Known, Mark, PoolFacts, Settled, Shown, settle};

/// The word where nobody knows which taints a pool's nodes get, since its Rollout was removed.
const ROLLOUT_MADE_ANEW: &str = "RolloutMadeAnew";

/// A node that registered as joining.
#[derive(Clone, Copy)]
pub(super) struct Found<'f> {
    pub(super) name: &'f str,
    pub(super) facts: &'f Facts,
    pub(super) registered: &'f Registered,
}

/// By what it is decided.
pub(super) struct Sorting<'s> {
    pub(super) joining: &'s Joining,
    pub(super) moment: &'s Moment,
    pub(super) cluster: &'s Cluster,
    pub(super) keys: &'s [Key],
    pub(super) record: Option<&'s Record>,
    /// What is bound now: nothing else can be until that has ended.
    pub(super) binding: &'s Binding,
}

/// What is to be done.
#[derive(Default)]
pub(super) struct Sorted {
    /// What has to be bound first, and who joins or is told of then.
    pub(super) bind: Wanted,
    /// Who joins by what is bound already.
    pub(super) join: Vec<Entry>,
    /// Whether nodes wait for their agents.
    pub(super) prepares: bool,
}

impl Sorting<'_> {
    /// What is to be done for all of these, the first ones first.
    pub(super) fn all(&self, found: Vec<Found<'_>>) -> Sorted {
        let mut sorted = Sorted::default();
        for node in found {
            self.one(node, &mut sorted);
        }
        sorted
    }

    fn one(&self, node: Found<'_>, sorted: &mut Sorted) {
        let (is_bound_now, is_new_anothers) = (Cell::new(false), Cell::new(false));
        let by = |id: Id| {
            is_bound_now.set(self.binding.has(id));
            let known = self.record.and_then(|record| record.bound_by(id));
            is_new_anothers.set(known.is_none() && sorted.bind.claims.contains_key(&id));
            let bound = known.or(sorted.bind.claims.get(&id))?;
            let (pool, config) = (bound.pool, bound.config());
            Some(Known { node: bound.node.clone(), pool, config })
        };
        let settled = self.settled(node, by);
        match settled {
            _ if is_bound_now.get() => {}
            Settled::Joins(joins) => match self.pool_taints(&joins.pool) {
                Ok(taints) => self.joins(node, &joins, taints, sorted),
                // tread is about to make the first one.
                Err((false, why)) => {
                    let (name, uid) = (node.name, node.facts.uid.clone());
                    self.joining.news.report(name, uid, What::Waits(ROLLOUT_MADE_ANEW, why));
                }
                Err((true, why)) => {
                    let Joins { claim, config, mark: pool, .. } = joins;
                    let shown = Some(Shown { claim, pool, config });
                    self.held(node, (What::Waits(ROLLOUT_MADE_ANEW, why), shown), false, sorted);
                }
            },
            Settled::Held(why, shown) => {
                let is_new_anothers = is_new_anothers.get();
                self.held(node, (What::Held(why), shown), is_new_anothers, sorted);
            }
        }
    }

    /// The taints of nodes of a pool. Otherwise whether it has or had a Rollout, and why nobody knows
    /// them.
    fn pool_taints(&self, pool: &str) -> Result<&[NodeTaint], (bool, String)> {
        let rollout = self.moment.rollouts.get(pool).map(|it| &**it);
        let has_had_one = self.cluster.pools.get(pool).is_some_and(|it| it.had_rollout);
        let had_one = rollout.is_some() || has_had_one;
        node_taints(pool, rollout).map_err(|why| (had_one, why))
    }

    fn joins(&self, node: Found<'_>, joins: &Joins, taints: &[NodeTaint], sorted: &mut Sorted) {
        let Found { name, facts, .. } = node;
        let is_new = self.record.and_then(|it| it.by(joins.claim)).is_none();
        let was_held = self.record.and_then(|it| it.held(joins.claim)).cloned();
        let has_to_be_bound = is_new || was_held.is_some();
        if has_to_be_bound && !self.binding.is_idle() {
            return;
        }
        if has_to_be_bound {
            let bound = Bound::new(name, &facts.uid, joins.config, joins.mark);
            sorted.bind.claims.insert(joins.claim, was_held.unwrap_or(bound).held(false));
        }
        let update = self.moment.updates.get(name).filter(|it| is_of(it, &facts.uid));
        // This counts only at the first registration: later the machine may have had other configs,
        // and once its agent is there it is asked to bring the config of its pool.
        let of_claim = self.record.filter(|it| is_new || it.is_first(joins.claim, &facts.uid));
        let lacks = of_claim.and_then(|it| it.needs_agent(joins.config));
        if lacks.is_some_and(|config| !has(update.map(|it| &**it), config)) {
            sorted.prepares = true;
            let what = What::Prepares(joins.pool.clone());
            self.joining.news.report(name, facts.uid.clone(), what);
        } else if has_to_be_bound {
            sorted.bind.entries.push(entry(node, joins, taints));
        } else {
            sorted.join.push(entry(node, joins, taints));
        }
    }

    fn held(
        &self,
        Found { name, facts, .. }: Found<'_>,
        (what, shown): (What, Option<Shown>),
        is_new_anothers: bool,
        sorted: &mut Sorted,
    ) {
        let is_known = |it: &Shown| self.record.is_some_and(|record| record.by(it.claim).is_some());
        let shown = shown.filter(|it| !is_known(it));
        if shown.is_none() && !is_new_anothers {
            self.joining.news.report(name, facts.uid.clone(), what);
            return;
        }
        if !self.binding.is_idle() {
            return;
        }
        if let Some(Shown { claim, config, pool }) = shown {
            let bound = Bound::new(name, &facts.uid, config, pool).held(true);
            sorted.bind.claims.entry(claim).or_insert(bound);
        }
        sorted.bind.held.push((name.to_owned(), facts.uid.clone(), what));
    }

    fn settled(&self, node: Found<'_>, by: impl FnOnce(Id) -> Option<Known>) -> Settled {
        let Found { name, facts, registered: with } = node;
        let says = joining::Facts {
            node: name,
            registered: registered(facts),
            claim: &with.claim,
            labels: &facts.labels,
        };
        let pools = &self.cluster.pools;
        let pool = |mark: Mark| {
            let pool = pools.values().find(|pool| Mark::of_pool(&pool.uid) == mark)?;
            Some(PoolFacts { name: pool.name.clone(), labels: pool.gives() })
        };
        let lasts = self.joining.settings.joining.lasts;
        settle(&says, self.keys, lasts, by, pool, |labels| place(labels, pools))
    }
}

fn entry(
    Found { name, facts, registered }: Found<'_>,
    joins: &Joins,
    pool_taints: &[NodeTaint],
) -> Entry {
    let of = Patch {
        uid: &facts.uid,
        version: &facts.version,
        taints: &registered.taints,
        labels: &joins.labels,
        pool_taints,
    };
    Entry::new(name, &joins.pool, of)
}

/// Whether a node's agent says that it has a config.
fn has(update: Option<&NodeUpdate>, config: &str) -> bool {
    let current = update.and_then(|it| it.status.as_ref()?.current.as_ref());
    current.is_some_and(|it| it.name == config)
}

/// The pools that a node with these labels is in; or those that cannot be read, for which no node
/// is in any.
fn place(labels: &BTreeMap<String, String>, pools: &Pools) -> Result<Vec<String>, Vec<String>> {
    match pool_of(labels, pools) {
        Place::Several(all) => Ok(all),
        Place::Unplaced(all) => Err(all),
        place => Ok(place.pool().map(str::to_owned).into_iter().collect()),
    }
}
