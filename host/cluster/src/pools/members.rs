//! Which nodes are in which pool, and which config they have: kept up to date
//! node by node, since there are thousands.

use super::node::Node;
use super::pool::{Pools, pool_of};
use std::collections::{BTreeMap, BTreeSet};

/// The nodes of all pools, those with the same config together.
#[derive(Debug, Clone, Default)]
pub struct Members {
    nodes: BTreeMap<String, (Node, Place)>,
    groups: BTreeMap<String, BTreeMap<Option<String>, BTreeSet<String>>>,
    single_replica: BTreeMap<String, usize>,
}

/// Where a node belongs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Nowhere,
    Pool(String),
    /// No one can say to which of these.
    Several(Vec<String>),
}

impl Members {
    /// Notes a node that is new or says something else. The pools whose nodes
    /// differ now, if any do.
    pub fn put(&mut self, name: &str, node: Node, pools: &Pools) -> BTreeSet<String> {
        if self.nodes.get(name).is_some_and(|(before, _)| *before == node) {
            return BTreeSet::new();
        }
        let place = place(&node, pools);
        let mut touched = self.take_out(name);
        self.put_in(name, node, place, &mut touched);
        touched
    }

    /// Forgets a node.
    pub fn remove(&mut self, name: &str) -> BTreeSet<String> {
        self.take_out(name)
    }

    /// Looks again where each node belongs: a pool is new, gone, or selects others.
    pub fn sort_again(&mut self, pools: &Pools) -> BTreeSet<String> {
        let mut touched = BTreeSet::new();
        let moved: Vec<(String, Place)> = self
            .nodes
            .iter()
            .map(|(name, (node, before))| (name, place(node, pools), before))
            .filter(|(_, now, before)| now != *before)
            .map(|(name, now, _)| (name.clone(), now))
            .collect();
        for (name, place) in moved {
            if let Some((node, _)) = self.nodes.get(&name) {
                let node = node.clone();
                touched.extend(self.take_out(&name));
                self.put_in(&name, node, place, &mut touched);
            }
        }
        touched
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

    /// Nodes that are in several pools, with these.
    pub fn in_doubt(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.nodes.iter().filter_map(|(name, (_, place))| match place {
            Place::Several(pools) => Some((name.as_str(), pools.as_slice())),
            _ => None,
        })
    }

    fn take_out(&mut self, name: &str) -> BTreeSet<String> {
        let Some((node, place)) = self.nodes.remove(name) else { return BTreeSet::new() };
        let Place::Pool(pool) = place else { return BTreeSet::new() };
        if let Some(groups) = self.groups.get_mut(&pool) {
            if let Some(group) = groups.get_mut(&node.current) {
                group.remove(name);
                if group.is_empty() {
                    groups.remove(&node.current);
                }
            }
            if groups.is_empty() {
                self.groups.remove(&pool);
            }
        }
        if let (true, Some(count)) = (node.single_replica, self.single_replica.get_mut(&pool)) {
            *count = count.saturating_sub(1);
        }
        BTreeSet::from([pool])
    }

    fn put_in(&mut self, name: &str, node: Node, place: Place, touched: &mut BTreeSet<String>) {
        if let Place::Pool(pool) = &place {
            let groups = self.groups.entry(pool.clone()).or_default();
            groups.entry(node.current.clone()).or_default().insert(name.to_owned());
            if node.single_replica {
                *self.single_replica.entry(pool.clone()).or_default() += 1;
            }
            touched.insert(pool.clone());
        }
        self.nodes.insert(name.to_owned(), (node, place));
    }
}

fn place(node: &Node, pools: &Pools) -> Place {
    match pool_of(node, pools) {
        Ok(None) => Place::Nowhere,
        Ok(Some(pool)) => Place::Pool(pool.to_owned()),
        Err(several) => Place::Several(several.into_iter().map(str::to_owned).collect()),
    }
}

#[cfg(test)]
mod tests;
