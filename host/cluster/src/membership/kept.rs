//! What is foretold of all MachineSets, kept up to date: a change has only those judged anew
//! that it concerns, since there may be hundreds, of hundreds of pools.

use super::foretold::{
    Foretold, Scene, foretell, most_unavailable, pool_of_user_data, registered, served,
};
use super::machines::scene;
use crate::boot_images::facts::Facts;
use crate::boot_images::machine::{Key, Machine};
use crate::labels::Labels;
use crate::pools::{MASTER, Pool, Pools, Selects, WORKER, joined, pool_of};
use crate::previews::Cluster;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tread_model::boot_images::Release;

/// What is foretold of all MachineSets, and by what.
#[derive(Debug, Default)]
pub(super) struct Kept {
    judged: BTreeMap<Key, Judged>,
    pools: Pools,
    running: Option<Release>,
}

#[derive(Debug)]
struct Judged {
    machine: Arc<Machine>,
    basis: Option<Basis>,
    foretold: Option<Foretold>,
}

/// What is asked of pools, nodes and configs to foretell what becomes of machines. None:
/// nothing is.
#[derive(Debug)]
struct Basis {
    /// The pools that are looked at whole: where machines boot into, and where they count.
    pools: BTreeSet<String>,
    /// The labels by which all pools are asked.
    labels: Vec<Labels>,
    /// The config that they get, and whether it is there.
    gets: Option<(String, bool)>,
    /// The pool that they count in, and how many of its nodes may be out of service.
    most: Option<(String, i64)>,
}

/// What differs of pools.
struct Changes<'c> {
    /// Those that are new, gone, or say something else.
    pools: BTreeSet<&'c str>,
    /// What they selected or select, where that differs.
    selectors: Vec<&'c Selects>,
    /// It concerns everything.
    all: bool,
}

impl Kept {
    /// Takes in what is known now. How many MachineSets were judged for it.
    pub(super) fn update(&mut self, cluster: &Cluster, facts: &Facts) -> usize {
        let scene = scene(cluster, facts);
        let mut changes = Changes::between(&self.pools, scene.pools);
        changes.all |= self.running != scene.running;
        self.judged.retain(|key, _| facts.machines.contains_key(key));
        let is_known = |key: &Key, machine: &Arc<Machine>| {
            self.judged.get(key).is_some_and(|it| {
                let is_concerned = |basis: &Basis| basis.is_concerned(&changes, &scene);
                is_alike(&it.machine, machine) && !it.basis.as_ref().is_some_and(is_concerned)
            })
        };
        let concerned: Vec<_> =
            facts.machines.iter().filter(|(key, machine)| !is_known(key, machine)).collect();
        let count = concerned.len();
        for (key, machine) in concerned {
            let foretold = foretell(key, machine, &scene);
            let (machine, basis) = (Arc::clone(machine), Basis::of(machine, &scene));
            self.judged.insert(key.clone(), Judged { machine, basis, foretold });
        }
        self.pools = scene.pools.clone();
        self.running = scene.running;
        count
    }

    /// All of whose machines there is something to report.
    pub(super) fn foretold(&self) -> BTreeMap<Key, Foretold> {
        let all = self.judged.iter();
        all.filter_map(|(key, it)| Some((key.clone(), it.foretold.clone()?))).collect()
    }
}

/// Whether nothing differs of what their nodes will be.
fn is_alike(before: &Arc<Machine>, now: &Arc<Machine>) -> bool {
    let of = |machine: &Machine| machine.left_out.is_some();
    Arc::ptr_eq(before, now)
        || (of(before), &before.user_data, &before.node_labels)
            == (of(now), &now.user_data, &now.node_labels)
}

impl<'c> Changes<'c> {
    fn between(before: &'c Pools, now: &'c Pools) -> Changes<'c> {
        let mut changes = Changes { pools: BTreeSet::new(), selectors: Vec::new(), all: false };
        for name in before.keys().chain(now.keys()) {
            match (before.get(name), now.get(name)) {
                (Some(before), Some(now)) if Arc::ptr_eq(before, now) => {}
                (before, now) => changes.add(name, before, now),
            }
        }
        changes
    }

    fn add(&mut self, name: &'c str, before: Option<&'c Arc<Pool>>, now: Option<&'c Arc<Pool>>) {
        if !self.pools.insert(name) {
            return;
        }
        let of = |pool: Option<&'c Arc<Pool>>| pool.map(|it| (&it.nodes, &it.labels));
        if of(before) == of(now) {
            return;
        }
        let selectors = [before, now].into_iter().flatten().map(|it| &it.nodes);
        // While a selector cannot be read no node is placed in any pool, and `master` and `worker`
        // matter for every node.
        self.all |= [MASTER, WORKER].contains(&name)
            || selectors.clone().any(|it| matches!(it, Selects::Unreadable(_)));
        self.selectors.extend(selectors);
    }
}

impl Basis {
    fn of(machine: &Machine, scene: &Scene<'_>) -> Option<Basis> {
        let booted = pool_of_user_data(machine.user_data.as_deref()?)?;
        let registered = registered(booted, &machine.node_labels);
        let counts = pool_of(&registered, scene.pools).pool().map(str::to_owned);
        let mut pools = BTreeSet::from([booted.to_owned()]);
        pools.extend(counts.clone());
        let mut labels = Vec::new();
        let pool = scene.pools.get(booted);
        if let Some(pool) = pool {
            labels.push(joined(&registered, pool, scene.pools));
            labels.push(pool.with_labels(&registered));
            let mut then = registered.clone();
            then.extend(pool.labels.clone());
            labels.push(then);
        }
        labels.push(registered);
        let gets = pool.and_then(|pool| served(pool));
        Some(Basis {
            pools,
            labels,
            gets: gets.map(|it| (it.to_owned(), scene.configs.contains_key(it))),
            most: counts.and_then(|name| Some((most(&name, scene)?, name))).map(|(n, it)| (it, n)),
        })
    }

    fn is_concerned(&self, changes: &Changes<'_>, scene: &Scene<'_>) -> bool {
        let is_asked = |it: &&Selects| self.labels.iter().any(|labels| it.matches(labels));
        changes.all
            || self.pools.iter().any(|it| changes.pools.contains(it.as_str()))
            || changes.selectors.iter().any(is_asked)
            || self.gets.as_ref().is_some_and(|(it, is)| scene.configs.contains_key(it) != *is)
            || self.most.as_ref().is_some_and(|(pool, was)| most(pool, scene) != Some(*was))
    }
}

fn most(pool: &str, scene: &Scene<'_>) -> Option<i64> {
    Some(most_unavailable(scene.pools.get(pool)?, scene.members))
}

#[cfg(test)]
mod tests;
