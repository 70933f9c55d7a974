//! Which rendered MachineConfigs may go.

use super::object::Pool;
use std::collections::{BTreeMap, BTreeSet};

/// How many of a pool stay, the newest ones, though nobody names them: what its nodes get
/// now; what they had before, for whoever takes a change back; and one for a replica that
/// saw less than the others, and for a machine that booted with it and is no node yet.
pub const KEPT: usize = 3;

/// A MachineConfig that is there.
#[derive(Debug, Clone, Copy)]
pub struct Existing<'a> {
    /// `metadata.name`
    pub name: &'a str,
    /// What its annotation [`super::RENDERED_BY`] says.
    pub rendered_by: Option<&'a str>,
    /// The MachineConfigPool that owns it as its controller.
    pub owner: Option<Pool<'a>>,
    /// `metadata.creationTimestamp`, in seconds.
    pub created: i64,
}

impl Existing<'_> {
    /// Whether tread rendered it: both its annotation and its owner say so.
    fn pool(&self) -> Option<Pool<'_>> {
        self.owner.filter(|_| self.rendered_by.is_some_and(|by| by.starts_with("tread ")))
    }
}

/// The names of those that nobody needs, in order. `named` is whatever nodes, plans, pools
/// and NodeUpdates name: all of them have to be in it.
pub fn unneeded<'a>(there: &[Existing<'a>], named: &BTreeSet<&str>) -> Vec<&'a str> {
    let mut pools: BTreeMap<Pool<'_>, Vec<&Existing<'a>>> = BTreeMap::new();
    for existing in there {
        if let Some(pool) = existing.pool() {
            pools.entry(pool).or_default().push(existing);
        }
    }
    let mut unneeded = Vec::new();
    for mut of_pool in pools.into_values() {
        of_pool.sort_by_key(|existing| std::cmp::Reverse(existing.created));
        // Which of those that were made in the same second is newer cannot be told.
        let Some(oldest_kept) = of_pool.get(KEPT - 1).map(|existing| existing.created) else {
            continue;
        };
        let old = of_pool.iter().filter(|existing| existing.created < oldest_kept);
        unneeded.extend(old.map(|it| it.name).filter(|name| !named.contains(name)));
    }
    unneeded.sort_unstable();
    unneeded
}
