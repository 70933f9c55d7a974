//! Nodes that booted into one pool and count in another.

use super::configs::Configs;
use super::members::{Member, Members};
use super::node::Node;
use super::owner::owner;
use super::place::{Place, pool_of};
use super::pool::{MASTER, Pool, Pools, WORKER};
use crate::labels::Labels;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A node that booted into one pool and counts in another, which is about to give it
/// its own config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stray {
    /// The node.
    pub node: String,
    /// Its UID, by which it is told from others of its name.
    pub uid: String,
    /// The config that it has.
    pub has: String,
    /// The pool that it booted into.
    pub booted: String,
    /// That is a guess by the name of a config that is gone.
    pub guessed: bool,
    /// The pool that it counts in.
    pub counts: String,
    /// What gives it the labels of the pool that it booted into, as arguments of
    /// `kubectl label`; None: no labels are sure to.
    pub labels: Option<Vec<String>>,
}

impl Stray {
    /// Of a node that is known to have booted into a pool, and to count in another.
    pub fn of(
        (name, node): (&str, &Node),
        has: &str,
        (booted, counts): (&Pool, &str),
        pools: &Pools,
    ) -> Stray {
        Stray {
            node: name.to_owned(),
            uid: node.uid.clone(),
            has: has.to_owned(),
            booted: booted.name.clone(),
            guessed: false,
            counts: counts.to_owned(),
            labels: joins(&node.labels, booted, pools),
        }
    }

    /// The command that ends it, or what to do where there is none.
    pub fn ends(&self) -> String {
        let Stray { node, booted, .. } = self;
        match &self.labels {
            Some(labels) => {
                let labels: Vec<String> = labels.iter().map(|it| quoted(it)).collect();
                format!("kubectl label node {node} --overwrite {}", labels.join(" "))
            }
            None => format!(
                "no labels are sure to: give node {node} those that spec.nodeSelector of pool \
                 {booted} selects, and none that another pool of its own name selects"
            ),
        }
    }

    /// What happens, in a sentence.
    pub fn says(&self) -> String {
        let Stray { node, has, booted, counts, .. } = self;
        let guess =
            if self.guessed { ", to judge by the name of a config that is gone" } else { "" };
        format!(
            "Node {node} booted into pool {booted} (it has {has}{guess}) and counts in pool \
             {counts}, which is about to give it its own config"
        )
    }
}

/// A shell takes it as one word.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=".contains(c);
    match word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// What gives something with these labels those of a pool, so that it belongs there, as
/// arguments of `kubectl label`; None: nothing is sure to.
pub fn joins(labels: &Labels, pool: &Pool, pools: &Pools) -> Option<Vec<String>> {
    let then = joined(labels, pool, pools);
    let new = then.iter().filter(|(key, value)| labels.get(*key) != Some(*value));
    let new = new.map(|(key, value)| format!("{key}={value}"));
    let gone = labels.keys().filter(|key| !then.contains_key(*key)).map(|key| format!("{key}-"));
    let arguments: Vec<String> = new.chain(gone).collect();
    (belongs(&then, pool, pools) && !arguments.is_empty()).then_some(arguments)
}

fn belongs(labels: &Labels, pool: &Pool, pools: &Pools) -> bool {
    pool_of(labels, pools) == Place::Pool(pool.name.clone())
}

/// The labels with which something is to belong to a pool that has these now.
pub(crate) fn joined(labels: &Labels, pool: &Pool, pools: &Pools) -> Labels {
    let mut then = pool.with_labels(labels);
    if !belongs(&then, pool, pools) {
        // Those of other pools of their own names go, and no more than that: those of `master`
        // and `worker` are from the kubelet.
        let is_common = |it: &Pool| [MASTER, WORKER].contains(&&*it.name);
        let others = pools.values().filter(|other| {
            !is_common(other) && other.name != pool.name && other.nodes.matches(&then)
        });
        let theirs: BTreeSet<&String> = others.flat_map(|other| other.labels.keys()).collect();
        let common = pools.values().filter(|it| is_common(it)).flat_map(|it| it.labels.keys());
        let stay: BTreeSet<&String> = common.chain(pool.labels.keys()).collect();
        then.retain(|key, _| !theirs.contains(key) || stay.contains(key));
    }
    then
}

/// Whether a node strays. Whoever is root on it writes its annotations: it is a hint.
fn stray(name: &str, member: &Member, configs: &Configs, pools: &Pools) -> Option<Stray> {
    elsewhere(name, member, configs, pools).filter(|_| member.is_new)
}

/// A node that would be a stray, had anybody watched it since it registered. Since nobody has, it
/// may have counted in the pool that it booted into, and been moved on purpose.
pub fn unseen(name: &str, member: &Member, configs: &Configs, pools: &Pools) -> Option<Stray> {
    elsewhere(name, member, configs, pools).filter(|_| !member.is_new)
}

/// A node that booted into one pool, counts in another, and was not moved by what is known of it.
fn elsewhere(name: &str, member: &Member, configs: &Configs, pools: &Pools) -> Option<Stray> {
    let node = &member.node;
    let counts = member.place.pool()?;
    let has = node.current.as_deref().or(node.first_pivot.as_deref())?;
    let (booted, guessed) = owner(has, configs, pools)?;
    // What booted as a worker, and got other labels, was moved on purpose.
    if [counts, MASTER, WORKER].contains(&&*booted.name) || member.counted.contains(&booted.name) {
        return None;
    }
    let never_belonged = match &node.first_pivot {
        // Labels that the operator gave, and that somebody took away.
        Some(_) if node.is_labelled && booted.with_labels(&node.labels) != node.labels => false,
        Some(first) => first == has,
        None => !member.has_moved,
    };
    never_belonged.then(|| {
        let stray = Stray::of((name, node), has, (booted, counts), pools);
        Stray { guessed, ..stray }
    })
}

/// The nodes that stray, by name. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Strays(Arc<BTreeMap<String, Arc<Stray>>>);

impl std::ops::Deref for Strays {
    type Target = BTreeMap<String, Arc<Stray>>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Strays {
    /// Looks at a node again. The pools whose strays differ now.
    pub fn look(
        &mut self,
        node: &str,
        members: &Members,
        (configs, pools): (&Configs, &Pools),
    ) -> BTreeSet<String> {
        let now = members.get(node).and_then(|member| stray(node, member, configs, pools));
        let before = self.0.get(node);
        if before.map(|it| &**it) == now.as_ref() {
            return BTreeSet::new();
        }
        let touched = before.map(|it| it.counts.clone());
        let touched = touched.into_iter().chain(now.as_ref().map(|it| it.counts.clone())).collect();
        let all = Arc::make_mut(&mut self.0);
        match now {
            Some(now) => all.insert(node.to_owned(), Arc::new(now)),
            None => all.remove(node),
        };
        touched
    }

    /// Looks at all nodes again.
    pub fn look_at_all(
        &mut self,
        members: &Members,
        known: (&Configs, &Pools),
    ) -> BTreeSet<String> {
        let gone: Vec<String> =
            self.0.keys().filter(|name| members.get(name).is_none()).cloned().collect();
        let all = members.names().map(str::to_owned).chain(gone).collect::<Vec<_>>();
        all.iter().flat_map(|name| self.look(name, members, known)).collect()
    }

    /// Whether both are the same, without looking at each.
    pub fn is_same(&self, other: &Strays) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Those that count in a pool and have this config.
    pub fn on_the_way<'s>(
        &'s self,
        pool: &'s str,
        config: &'s str,
    ) -> impl Iterator<Item = &'s Stray> {
        self.0.values().map(|it| &**it).filter(move |it| it.counts == pool && it.has == config)
    }
}

#[cfg(test)]
mod tests;
