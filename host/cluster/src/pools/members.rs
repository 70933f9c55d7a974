//! Which nodes are in which pool, and which config they have: kept up to date
//! node by node, since there are thousands.

use super::node::Node;
use super::place::{Place, place_of};
use super::pool::Pools;
use super::selector::Selects;
use super::taints::LastingTaints;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// In seconds: a node that registered at most this long before nodes were watched counts as new.
const NEW: i64 = 60 * 60;

/// The nodes of all pools, those with the same config together.
#[derive(Debug, Clone, Default)]
pub struct Members {
    nodes: BTreeMap<String, Arc<Member>>,
    groups: BTreeMap<String, BTreeMap<Option<String>, BTreeSet<String>>>,
    single_replica: BTreeMap<String, usize>,
    /// How many nodes have the same taints.
    taints: BTreeMap<LastingTaints, usize>,
    /// Nodes whose pods no other node takes.
    alone: BTreeSet<String>,
    /// Nodes that somebody else has, by marks on the node.
    held: BTreeSet<String>,
    /// Since when nodes are watched, in seconds.
    since: i64,
    /// Nodes that somebody saw since they registered, by UID: none once all nodes are listed.
    witnessed: BTreeSet<String>,
    /// Whether all nodes were listed once.
    is_listed: bool,
}

/// A node, and what was seen of it since it registered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Member {
    /// What it says.
    pub node: Node,
    /// Where it belongs.
    pub place: Place,
    /// The pools that it was seen to count in.
    pub(super) counted: BTreeSet<String>,
    /// Whether it was seen since it registered.
    pub(super) is_new: bool,
    /// Whether it has another config than it had first.
    pub(super) has_moved: bool,
}

impl Member {
    /// The next state of a node, which may be another one of its name.
    fn after(node: Node, place: Place, before: Option<&Member>, is_new: bool) -> Member {
        let before = before.filter(|before| before.node.uid == node.uid);
        let is_new = before.map_or(is_new, |before| before.is_new);
        let has_moved = before.is_some_and(|before| {
            before.has_moved || before.node.current.is_some() && before.node.current != node.current
        });
        let mut counted = before.map(|before| before.counted.clone()).unwrap_or_default();
        if let Some(pool) = place.pool()
            && !counted.contains(pool)
        {
            counted.insert(pool.to_owned());
        }
        Member { node, place, counted, is_new, has_moved }
    }
}

impl Members {
    /// No nodes yet, watched since then, in seconds.
    pub fn since(since: i64) -> Members {
        Members { since, ..Members::default() }
    }

    /// Notes a node that is new or says something else. The pools whose nodes
    /// differ now, if any do.
    pub fn put(&mut self, name: &str, node: Node, pools: &Pools) -> BTreeSet<String> {
        let before = self.nodes.get(name).cloned();
        let place = match before.as_deref() {
            Some(before) if before.node == node => return BTreeSet::new(),
            // Selectors see nothing but labels.
            Some(before)
                if before.node.labels == node.labels && before.node.joins == node.joins =>
            {
                before.place.clone()
            }
            _ => place_of(&node, pools),
        };
        let is_new = node.created >= self.since - NEW || self.witnessed.remove(&node.uid);
        let had = before.as_deref().map(|before| &before.node.taints);
        let others = had != Some(&node.taints) && self.count_taints(had, Some(&node.taints));
        let now = Member::after(node, place, before.as_deref(), is_new);
        let mut touched = self.take_out(name);
        self.put_in(name, now, &mut touched);
        if others {
            touched.extend(self.look_who_is_alone());
        }
        touched
    }

    /// Notes that somebody saw the node of this UID since it registered: tread, before it was
    /// started again.
    pub fn witness(&mut self, name: &str, uid: &str) {
        match self.nodes.get_mut(name).filter(|member| member.node.uid == uid) {
            Some(member) => Arc::make_mut(member).is_new = true,
            None if self.is_listed => {}
            None => drop(self.witnessed.insert(uid.to_owned())),
        }
    }

    /// Whether that would be news. Once all nodes are listed, one that is not there is gone, or
    /// registers later and is new by itself.
    pub fn awaits_witness(&self, name: &str, uid: &str) -> bool {
        match self.nodes.get(name).filter(|member| member.node.uid == uid) {
            Some(member) => !member.is_new,
            None => !self.is_listed && !self.witnessed.contains(uid),
        }
    }

    /// Notes that all nodes were listed.
    pub fn listed(&mut self) {
        self.is_listed = true;
        self.witnessed.clear();
    }

    /// Forgets a node.
    pub fn remove(&mut self, name: &str) -> BTreeSet<String> {
        let Some(gone) = self.nodes.get(name).cloned() else { return BTreeSet::new() };
        let others = self.count_taints(Some(&gone.node.taints), None);
        let mut touched = self.take_out(name);
        if others {
            touched.extend(self.look_who_is_alone());
        }
        touched
    }

    /// Moves a node from the taints `gone` to the taints `new`. Returns whether that may change
    /// which nodes are alone: only a node whose taints no other node has can be alone.
    fn count_taints(&mut self, gone: Option<&LastingTaints>, new: Option<&LastingTaints>) -> bool {
        let mut others = false;
        if let Some(gone) = gone
            && let Some(count) = self.taints.get_mut(gone)
        {
            *count -= 1;
            others |= *count <= 1;
            if *count == 0 {
                self.taints.remove(gone);
            }
        }
        if let Some(new) = new {
            let count = self.taints.entry(new.clone()).or_default();
            *count += 1;
            others |= *count <= 2;
        }
        others
    }

    /// Looks again which nodes are alone; the pools of those that were not before, or are not now.
    fn look_who_is_alone(&mut self) -> BTreeSet<String> {
        let is_taken = |taints: &LastingTaints| {
            self.taints.keys().any(|other| other != taints && other.takes_pods_of(taints))
        };
        let single = self.taints.iter().filter(|(taints, count)| **count == 1 && !is_taken(taints));
        let single: BTreeSet<&LastingTaints> = single.map(|(taints, _)| taints).collect();
        let mut alone = BTreeSet::new();
        if !single.is_empty() {
            let own = self.nodes.iter().filter(|(_, it)| single.contains(&it.node.taints));
            alone.extend(own.map(|(name, _)| name.clone()));
        }
        let others = alone.symmetric_difference(&self.alone);
        let pool = |name: &String| self.nodes.get(name)?.place.pool().map(str::to_owned);
        let touched = others.filter_map(pool).collect();
        self.alone = alone;
        touched
    }

    /// Whether no other node takes the pods of this one: known where tread rolls out.
    pub fn is_alone(&self, name: &str) -> bool {
        self.alone.contains(name)
    }

    /// Looks again where nodes belong: these selectors are new, or are not there any more.
    /// The pools whose nodes differ now.
    pub fn sort_again(&mut self, pools: &Pools, changed: &[Selects]) -> BTreeSet<String> {
        let all = changed.iter().any(|it| matches!(it, Selects::Unreadable(_)));
        let concerned = self
            .nodes
            .iter()
            .filter(|(_, member)| all || changed.iter().any(|it| it.matches(&member.node.labels)));
        let moved: Vec<(String, Place)> = concerned
            .map(|(name, member)| (name, place_of(&member.node, pools), &member.place))
            .filter(|(_, now, before)| now != *before)
            .map(|(name, now, _)| (name.clone(), now))
            .collect();
        let mut touched = BTreeSet::new();
        for (name, place) in moved {
            if let Some(before) = self.nodes.get(&name).cloned() {
                let now = Member::after(before.node.clone(), place, Some(&before), before.is_new);
                touched.extend(self.take_out(&name));
                self.put_in(&name, now, &mut touched);
            }
        }
        touched
    }

    /// A node.
    pub fn get(&self, name: &str) -> Option<&Member> {
        self.nodes.get(name).map(|member| &**member)
    }

    /// All nodes.
    pub fn all(&self) -> impl Iterator<Item = (&str, &Member)> {
        self.nodes.iter().map(|(name, member)| (name.as_str(), &**member))
    }

    /// The names of all nodes.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.nodes.keys().map(String::as_str)
    }

    /// The nodes of all pools that have a config, or that say no more than that they booted
    /// with it.
    pub fn with_config(&self, config: &str) -> Vec<String> {
        let has = Some(config.to_owned());
        let having = self.groups.values().filter_map(|groups| groups.get(&has)).flatten();
        let silent = self.groups.values().filter_map(|groups| groups.get(&None)).flatten();
        let booted = |name: &&String| {
            self.nodes.get(*name).is_some_and(|member| member.node.first_pivot == has)
        };
        having.chain(silent.filter(booted)).cloned().collect()
    }

    /// The nodes of a pool by the config that they have; None: they do not say.
    pub fn of_pool(
        &self,
        pool: &str,
    ) -> impl Iterator<Item = (Option<&str>, &BTreeSet<String>)> + '_ {
        self.groups.get(pool).into_iter().flatten().map(|(from, nodes)| (from.as_deref(), nodes))
    }

    /// The pools with nodes that have a config.
    pub fn pools_with<'m>(&'m self, config: &str) -> impl Iterator<Item = &'m str> + use<'m> {
        let config = Some(config.to_owned());
        let having = self.groups.iter().filter(move |(_, groups)| groups.contains_key(&config));
        having.map(|(pool, _)| pool.as_str())
    }

    /// How many nodes a pool has.
    pub fn count(&self, pool: &str) -> usize {
        self.of_pool(pool).map(|(_, nodes)| nodes.len()).sum()
    }

    /// Whether the pods of a pool's nodes cannot go elsewhere.
    pub fn are_single_replica(&self, pool: &str) -> bool {
        self.single_replica.get(pool).is_some_and(|count| *count > 0)
    }

    /// Nodes that somebody else has, by marks on the node: a few of many.
    pub fn held(&self) -> impl Iterator<Item = &str> {
        self.held.iter().map(String::as_str)
    }

    fn take_out(&mut self, name: &str) -> BTreeSet<String> {
        let Some(member) = self.nodes.remove(name) else { return BTreeSet::new() };
        if member.node.held.is_some() {
            self.held.remove(name);
        }
        let Some(pool) = member.place.pool() else { return BTreeSet::new() };
        if let Some(groups) = self.groups.get_mut(pool) {
            if let Some(group) = groups.get_mut(&member.node.current) {
                group.remove(name);
                if group.is_empty() {
                    groups.remove(&member.node.current);
                }
            }
            if groups.is_empty() {
                self.groups.remove(pool);
            }
        }
        if let (true, Some(count)) = (member.node.single_replica, self.single_replica.get_mut(pool))
        {
            *count = count.saturating_sub(1);
        }
        BTreeSet::from([pool.to_owned()])
    }

    fn put_in(&mut self, name: &str, member: Member, touched: &mut BTreeSet<String>) {
        if let Some(pool) = member.place.pool() {
            let groups = self.groups.entry(pool.to_owned()).or_default();
            groups.entry(member.node.current.clone()).or_default().insert(name.to_owned());
            if member.node.single_replica {
                *self.single_replica.entry(pool.to_owned()).or_default() += 1;
            }
            touched.insert(pool.to_owned());
        }
        if member.node.held.is_some() {
            self.held.insert(name.to_owned());
        }
        self.nodes.insert(name.to_owned(), Arc::new(member));
    }
}

#[cfg(test)]
mod tests;
