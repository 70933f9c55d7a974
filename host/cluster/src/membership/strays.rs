//! What is told of nodes that stray: on each of them once, and on both pools.

use crate::plans::about;
use crate::pools::{Pools, Stray, Strays};
use k8s_openapi::api::core::v1::ObjectReference;
use std::collections::{BTreeMap, BTreeSet};
use tread_kube::api::POOL_KIND;
use tread_kube::events::{Note, Reason};
use tread_model::text::and_more;

/// How many nodes are told of at once, each by itself; all of them are on the pools.
const MOST_NODES: usize = 50;
/// How many nodes are named on a pool.
const NAMED: usize = 3;

pub(super) const POOL: (&str, &str) = ("machineconfiguration.openshift.io/v1", POOL_KIND);

/// What was told, by node, its UID and the config that it has.
#[derive(Debug, Default)]
pub(super) struct Told(BTreeSet<(String, String, String)>);

fn key(stray: &Stray) -> (String, String, String) {
    (stray.node.clone(), stray.uid.clone(), stray.has.clone())
}

/// Something to tell, on whom, and of what: nothing is told twice of the same.
pub(super) struct News {
    pub(super) about: ObjectReference,
    pub(super) note: Note,
    pub(super) of: String,
}

impl Told {
    /// Whoever leads next tells again.
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }

    /// What is to be told now, on whom.
    pub(super) fn news(&mut self, strays: &Strays, pools: &Pools) -> Vec<News> {
        let now: BTreeSet<_> = strays.values().map(|it| key(it)).collect();
        let all = strays.values().map(|it| &**it);
        let new: Vec<&Stray> = all.filter(|it| !self.0.contains(&key(it))).collect();
        self.0 = now;
        let says = |it: &Stray| format!("{}. What ends it: {}", it.says(), it.ends());
        let note = |text: String| Note { reason: Reason::NodeStrays, warns: true, text };
        let mut notes = Vec::new();
        for stray in new.iter().take(MOST_NODES) {
            // Where kubectl looks for what is told of a node.
            let node = about(("v1", "Node"), &stray.node, &stray.node);
            let of = format!("{}/{}", stray.uid, stray.has);
            notes.push(News { about: node, note: note(says(stray)), of });
        }
        let mut by_pool: BTreeMap<&str, Vec<&Stray>> = BTreeMap::new();
        for stray in &new {
            for pool in [&stray.booted, &stray.counts] {
                by_pool.entry(pool).or_default().push(stray);
            }
        }
        for (pool, strays) in by_pool {
            let Some(pool) = pools.get(pool) else { continue };
            let said: Vec<String> = strays.iter().take(NAMED).map(|it| says(it)).collect();
            let text = format!("{}{}", said.join("; "), and_more(strays.len(), NAMED));
            let of: Vec<String> =
                strays.iter().map(|it| format!("{}/{}", it.uid, it.has)).collect();
            let about = about(POOL, &pool.name, &pool.uid);
            notes.push(News { about, note: note(text), of: of.join(" ") });
        }
        notes
    }
}
