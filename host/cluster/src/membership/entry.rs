//! Whether a node that is held can be let into a pool by hand, and which labels it is given for
//! that: a pure function.

use crate::labels::Labels;
use crate::pools::{Place, Pool, Pools, Selects, WORKER, pool_of, says_unplaced};
use std::collections::BTreeSet;

const OS: &str = "kubernetes.io/os";

/// The labels that a node with these is given so that it counts in this pool: none where it would
/// without any. Otherwise why it would not, and what to do first.
pub fn entry(node: &str, labels: &Labels, pool: &str, pools: &Pools) -> Result<Labels, String> {
    let Some(pool) = pools.get(pool) else {
        return Err(format!(
            "there is no MachineConfigPool {pool}: `kubectl get machineconfigpools` lists them"
        ));
    };
    let (given, unsure) = match pool.gives() {
        Ok(gives) => (gives.given(labels), None),
        Err(why) => (Labels::new(), Some(why)),
    };
    let mut then = labels.clone();
    then.extend(given.clone());
    let place = pool_of(&then, pools);
    if place.pool() == Some(&*pool.name) {
        return Ok(given);
    }
    match (place, unsure) {
        (Place::Unplaced(all), _) => {
            let why = all.iter().filter_map(|name| match &pools.get(name)?.nodes {
                Selects::Unreadable(why) => Some(format!("; pool {name}: {why}")),
                Selects::Nothing | Selects::Labels(_) => None,
            });
            let why: String = why.collect();
            Err(format!("no node is let in: {}{why}", says_unplaced(&all)))
        }
        (_, Some(why)) if !pool.nodes.matches(&then) => Err(format!(
            "nobody can say which labels a node of pool {0} gets: {why}. Give the node labels that this \
             selects, and let it in then: kubectl label node {node} KEY=VALUE; or write a selector that \
             says it",
            pool.name
        )),
        (place, _) => Err(elsewhere(node, &then, &place, pool, pools)),
    }
}

/// Where a node would be with the labels of a pool, what of them is in the way, and what to do.
fn elsewhere(node: &str, then: &Labels, place: &Place, pool: &Pool, pools: &Pools) -> String {
    let would = match place {
        Place::Several(all) => {
            format!("in the pools {}, so that it counts in none", all.join(", "))
        }
        place => match place.pool() {
            Some(other) => format!("in pool {other}"),
            None => "in no pool".to_owned(),
        },
    };
    let name = &pool.name;
    let would = format!("with the labels of pool {name} node {node} would be {would}");
    let in_the_way = in_the_way(then, pool, pools);
    let mut without = then.clone();
    without.retain(|key, _| !in_the_way.contains(key.as_str()));
    if pool_of(&without, pools).pool() != Some(name) {
        return format!(
            "{would}: mend spec.nodeSelector of these pools, so that pool {name} alone selects it"
        );
    }
    let keys: Vec<&str> = in_the_way.into_iter().collect();
    let (noun, them) = if keys.len() == 1 { ("label", "it") } else { ("labels", "them") };
    let taken: Vec<String> = keys.iter().map(|key| format!("{key}-")).collect();
    format!(
        "{would}, because of the {noun} {}. Take {them} away, and let the node in then: kubectl label \
         node {node} {}",
        keys.join(", "),
        taken.join(" ")
    )
}

/// The labels by which a node is in other pools than in this one.
fn in_the_way<'l>(then: &'l Labels, pool: &Pool, pools: &Pools) -> BTreeSet<&'l str> {
    let is_windows = |(key, value): &(&String, &String)| *key == OS && *value == "windows";
    // Whatever is in a pool of its own name may be selected by `worker` too.
    let others = pools.values().filter(|other| {
        other.name != pool.name && other.name != WORKER && other.nodes.matches(then)
    });
    let selects_by = |other: &Pool, key: &str| {
        let mut without = then.clone();
        without.remove(key);
        !other.nodes.matches(&without)
    };
    let theirs = others.flat_map(|other| then.keys().filter(|key| selects_by(other, key)));
    let theirs: BTreeSet<&String> = theirs.collect();
    let is_theirs = |key: &String| theirs.contains(key) && !pool.labels.contains_key(key);
    let all = then.iter().filter(|it| is_windows(it) || is_theirs(it.0));
    all.map(|(key, _)| key.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn pools(all: &[(&str, Value)]) -> Pools {
        let pool = |(name, selector): &(&str, Value)| {
            let object = json!({"metadata": {"name": name}, "spec": {"nodeSelector": selector}});
            let pool = Pool::of(&serde_json::from_value(object).unwrap());
            ((*name).to_owned(), Arc::new(pool))
        };
        all.iter().map(pool).collect()
    }

    fn by_label(key: &str) -> Value {
        json!({"matchLabels": {key: ""}})
    }

    fn usual() -> Pools {
        let values = json!(["north", "south"]);
        let one_of =
            json!({"matchExpressions": [{"key": "site", "operator": "In", "values": values}]});
        pools(&[
            ("master", by_label("master")),
            ("worker", by_label("worker")),
            ("infra", by_label("infra")),
            ("gpu", by_label("gpu")),
            ("edge", one_of),
            ("any", json!({"matchExpressions": [{"key": "rack", "operator": "Exists"}]})),
            ("empty", json!({})),
        ])
    }

    fn labels(all: &[(&str, &str)]) -> Labels {
        all.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_node_is_given_what_puts_it_into_its_pool_and_nothing_where_it_would_be_there_without() {
        let pools = usual();
        for (has, pool, expected) in [
            (labels(&[("worker", "")]), "infra", labels(&[("infra", "")])),
            (labels(&[]), "worker", labels(&[("worker", "")])),
            (labels(&[("infra", "")]), "infra", labels(&[("infra", "")])),
            // Nobody can say which, and it has one.
            (labels(&[("worker", ""), ("site", "north")]), "edge", labels(&[])),
            // Any value will do, and it has one.
            (labels(&[("worker", ""), ("rack", "r12")]), "any", labels(&[])),
            (labels(&[("worker", "")]), "any", labels(&[("rack", "")])),
            // `master` beats one pool of its own name.
            (labels(&[("gpu", "")]), "master", labels(&[("master", "")])),
        ] {
            assert_eq!(entry("n", &has, pool, &pools), Ok(expected), "{has:?} into {pool}");
        }
    }

    #[test]
    fn a_node_that_would_be_elsewhere_is_not_let_in_and_the_labels_in_the_way_are_named() {
        let pools = usual();
        for (has, pool, says) in [
            (
                labels(&[("gpu", ""), ("worker", "")]),
                "infra",
                "with the labels of pool infra node n would be in the pools gpu, infra, so that it counts \
                 in none, because of the label gpu. Take it away, and let the node in then: kubectl label \
                 node n gpu-",
            ),
            (
                labels(&[("gpu", ""), ("site", "north")]),
                "worker",
                "because of the labels gpu, site. Take them away, and let the node in then: kubectl label \
                 node n gpu- site-",
            ),
            (
                labels(&[("master", "")]),
                "infra",
                "would be in pool master, because of the label master.",
            ),
            (
                labels(&[(OS, "windows")]),
                "worker",
                "would be in no pool, because of the label kubernetes.io/os.",
            ),
            // Its labels are those of `edge`, which says more than one.
            (labels(&[("site", "south"), ("infra", "")]), "edge", "kubectl label node n infra-"),
            (
                labels(&[("site", "west")]),
                "edge",
                "nobody can say which labels a node of pool edge gets: spec.nodeSelector leaves open what a \
                 node has there: site In [\"north\", \"south\"]. Give the node labels that this selects, and \
                 let it in then: kubectl label node n KEY=VALUE",
            ),
            (labels(&[]), "empty", "spec.nodeSelector is empty. "),
            (labels(&[]), "none", "there is no MachineConfigPool none: "),
        ] {
            let why = entry("n", &has, pool, &pools).unwrap_err();
            assert!(why.contains(says), "{has:?} into {pool}: {why}");
        }
    }

    #[test]
    fn where_no_label_is_in_the_way_or_no_selector_can_be_read_the_pools_are_to_be_mended() {
        let two = pools(&[("infra", by_label("infra")), ("other", by_label("infra"))]);
        let why = entry("n", &Labels::new(), "infra", &two).unwrap_err();
        assert!(why.contains("in the pools infra, other") && why.contains("mend "), "{why}");
        let unreadable =
            json!({"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]});
        let one = pools(&[("infra", by_label("infra")), ("other", unreadable)]);
        let why = entry("n", &Labels::new(), "infra", &one).unwrap_err();
        assert!(why.contains("mends the pool other: it, or its spec.nodeSelector"), "{why}");
        assert!(why.ends_with("; pool other: \"Near\" is no operator"), "{why}");
        let metadata = serde_json::from_value(json!({"name": "other"})).unwrap();
        let unread = Arc::new(Pool::unread(&metadata, "spec.maxUnavailable: it is odd"));
        let one: Pools = one.into_iter().chain([("other".to_owned(), unread)]).collect();
        for pool in ["infra", "other"] {
            let why = entry("n", &Labels::new(), pool, &one).unwrap_err();
            assert!(why.ends_with("; pool other: spec.maxUnavailable: it is odd"), "{why}");
        }
    }
}
