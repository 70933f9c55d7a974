//! What is reported of nodes that stray: on each of them once, and on both pools.

use crate::plans::about;
use crate::pools::{Pools, Stray, Strays};
use k8s_openapi::api::core::v1::ObjectReference;
use std::collections::{BTreeMap, BTreeSet};
use tread_kube::api::POOL_KIND;
use tread_kube::events::{Note, Reason};
use tread_model::read::MACHINE_CONFIG_API;
use tread_model::text::and_more;

/// How many nodes are reported at once, each by itself; all of them are on the pools.
const MOST_NODES: usize = 50;
/// How many nodes are named on a pool.
const NAMED: usize = 3;

pub(super) const POOL: (&str, &str) = (MACHINE_CONFIG_API, POOL_KIND);

/// A node, its UID and the pool that it booted into: not the config that it says it has, which it
/// can say anew at any time.
type Key = (String, String, String);

/// What was reported.
#[derive(Debug, Default)]
pub(super) struct Reported {
    /// On pools.
    on_pools: BTreeSet<Key>,
    /// On the nodes themselves.
    on_nodes: BTreeSet<Key>,
}

fn key(stray: &Stray) -> Key {
    (stray.node.clone(), stray.uid.clone(), stray.booted.clone())
}

/// Something to report, on whom, and of what: nothing is reported twice of the same.
#[derive(Debug)]
pub(super) struct News {
    pub(super) about: ObjectReference,
    pub(super) note: Note,
    pub(super) of: String,
}

impl Reported {
    /// Whoever leads next reports again.
    pub(super) fn forget(&mut self) {
        *self = Reported::default();
    }

    /// Whether there are nodes on which nothing is reported yet: there were too many at once.
    pub(super) fn is_behind(&self) -> bool {
        self.on_nodes.len() < self.on_pools.len()
    }

    /// What is to be reported now, on whom.
    pub(super) fn news(&mut self, strays: &Strays, pools: &Pools) -> Vec<News> {
        let now: BTreeSet<_> = strays.values().map(|it| key(it)).collect();
        let not_in = |reported: &BTreeSet<Key>| -> Vec<&Stray> {
            let all = strays.values().map(|it| &**it);
            all.filter(|it| !reported.contains(&key(it))).collect()
        };
        let (new, on_nodes) = (not_in(&self.on_pools), not_in(&self.on_nodes));
        self.on_nodes.retain(|it| now.contains(it));
        self.on_pools = now;
        let says = |it: &Stray| format!("{}. What ends it: {}", it.says(), it.ends());
        let note = |text: String| Note { reason: Reason::NodeStrays, warns: true, text };
        let mut notes = Vec::new();
        for stray in on_nodes.into_iter().take(MOST_NODES) {
            self.on_nodes.insert(key(stray));
            // Where kubectl looks for the Events about a node.
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
        strays_called(&["a".to_owned()], number)
    }

    fn strays_called(names: &[String], number: usize) -> Strays {
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
        for name in names {
            members.put(name, node.clone(), &pools);
        }
        strays.look_at_all(&members, (&Configs::default(), &pools));
        assert_eq!(strays.len(), names.len());
        strays
    }

    #[test]
    fn a_node_that_says_now_this_and_now_that_is_told_of_once() {
        let mut reported = Reported::default();
        assert_eq!(reported.news(&strays(1), &pools()).len(), 3, "the node and both pools");
        assert_eq!(reported.news(&strays(2), &pools()).len(), 0);
        // It strays again: what is reported is the same, and no Event is made twice.
        assert_eq!(reported.news(&Strays::default(), &pools()).len(), 0);
        let of = |number: usize| {
            let news = Reported::default().news(&strays(number), &pools());
            news.into_iter().map(|it| it.of).collect::<Vec<_>>()
        };
        assert_eq!(of(3), of(4));
    }

    #[test]
    fn however_many_stray_at_once_each_of_them_is_told_of_by_itself() {
        let names: Vec<String> = (0..120).map(|number| format!("node-{number}")).collect();
        let (many, pools) = (strays_called(&names, 1), pools());
        let (mut reported, mut named) = (Reported::default(), BTreeSet::new());
        for (nodes, on_pools) in [(MOST_NODES, 2), (MOST_NODES, 0), (20, 0), (0, 0)] {
            let news = reported.news(&many, &pools);
            let on_nodes = news.iter().filter(|it| it.about.kind.as_deref() == Some("Node"));
            let on_nodes: Vec<_> = on_nodes.filter_map(|it| it.about.name.clone()).collect();
            assert_eq!((on_nodes.len(), news.len() - on_nodes.len()), (nodes, on_pools));
            named.extend(on_nodes);
            assert_eq!(reported.is_behind(), named.len() < names.len());
        }
        assert_eq!(named.len(), names.len());
        reported.news(&Strays::default(), &pools);
        assert!(!reported.is_behind(), "those that stray no more are told of no more");
    }
}
