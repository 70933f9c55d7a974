//! What is told of nodes that stray: on each of them once, and on both pools.

use crate::plans::about;
use crate::pools::{Pools, Stray, Strays};
use k8s_openapi::api::core::v1::ObjectReference;
use std::collections::{BTreeMap, BTreeSet};
use tread_kube::api::POOL_KIND;
use tread_kube::events::{Note, Reason};
use tread_model::read::MACHINE_CONFIG_API;
use tread_model::text::and_more;

/// How many nodes are told of at once, each by itself; all of them are on the pools.
const MOST_NODES: usize = 50;
/// How many nodes are named on a pool.
const NAMED: usize = 3;

pub(super) const POOL: (&str, &str) = (MACHINE_CONFIG_API, POOL_KIND);

/// What was told, by node, its UID and the pool that it booted into: not by the config that it
/// says it has, which it can say anew at any time.
#[derive(Debug, Default)]
pub(super) struct Told(BTreeSet<(String, String, String)>);

fn key(stray: &Stray) -> (String, String, String) {
    (stray.node.clone(), stray.uid.clone(), stray.booted.clone())
}

/// Something to tell, on whom, and of what: nothing is told twice of the same.
#[derive(Debug)]
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
            let of = format!("{}/{}", stray.uid, stray.booted);
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
                strays.iter().map(|it| format!("{}/{}", it.uid, it.booted)).collect();
            let about = about(POOL, &pool.name, &pool.uid);
            notes.push(News { about, note: note(text), of: of.join(" ") });
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pools::{Configs, Members, Node, Pool};
    use serde_json::json;
    use std::sync::Arc;

    fn pools() -> Pools {
        let pool = |name: &str| {
            let object = json!({"metadata": {"name": name, "uid": name},
                "spec": {"nodeSelector": {"matchLabels": {name: ""}}}});
            (name.to_owned(), Arc::new(Pool::of(&serde_json::from_value(object).unwrap())))
        };
        ["infra", "worker"].map(pool).into_iter().collect()
    }

    /// A node that says that it booted with this one of the configs of `infra`, all of them gone.
    fn strays(number: usize) -> Strays {
        let has = Some(format!("rendered-infra-{number:032x}"));
        let labels = [("worker".to_owned(), String::new())].into();
        let node = Node {
            uid: "1".to_owned(),
            labels,
            current: has.clone(),
            first_pivot: has,
            ..Node::default()
        };
        let (pools, mut members, mut strays) = (pools(), Members::default(), Strays::default());
        members.put("a", node, &pools);
        strays.look_at_all(&members, (&Configs::default(), &pools));
        assert_eq!(strays.len(), 1);
        strays
    }

    #[test]
    fn a_node_that_says_now_this_and_now_that_is_told_of_once() {
        let mut told = Told::default();
        assert_eq!(told.news(&strays(1), &pools()).len(), 3, "the node and both pools");
        assert_eq!(told.news(&strays(2), &pools()).len(), 0);
        // It strays again: what is told is the same, and no Event is made twice.
        assert_eq!(told.news(&Strays::default(), &pools()).len(), 0);
        let of = |number: usize| {
            let news = Told::default().news(&strays(number), &pools());
            news.into_iter().map(|it| it.of).collect::<Vec<_>>()
        };
        assert_eq!(of(3), of(4));
    }
}
