//! Which config a machine of a pool boots with.

use super::super::facts::Facts;
use std::collections::BTreeMap;
use std::sync::Arc;
use tread_cluster::pools::{ConfigMeta, Configs, Configuration, Pool};
use tread_cluster::previews::Cluster;
use tread_kube::api::NodeUpdate;
use tread_kube::api::node_update::UpdatePhase;

/// Nodes by name.
type Nodes = BTreeMap<String, Arc<Facts>>;
/// NodeUpdates by name.
type Updates = BTreeMap<String, Arc<NodeUpdate>>;

/// The config that machines of a pool boot with.
pub(super) fn chosen(
    pool: &Pool,
    cluster: &Cluster,
    nodes: &Nodes,
    updates: &Updates,
) -> Option<String> {
    let members = cluster.members.all();
    let members = members.filter(|(_, it)| it.place.pool() == Some(pool.name.as_str()));
    let members: Vec<&str> = members.map(|(node, _)| node).collect();
    let is_empty = members.is_empty();
    let had = had(members.into_iter(), nodes, updates);
    let name = |it: &Option<Configuration>| it.as_ref().map(|it| it.name.clone());
    let (target, settled) = (name(&pool.target), name(&pool.settled));
    let made = of_pool(pool, &cluster.configs);
    let known =
        Known { target: target.as_deref(), settled: settled.as_deref(), is_empty, had, made };
    choose(&known).map(str::to_owned)
}

/// The configs that these nodes have, each with how many are well with it, and how many are not:
/// one that is not Ready runs nothing well.
fn had<'a>(
    members: impl Iterator<Item = &'a str>,
    nodes: &Nodes,
    updates: &'a Updates,
) -> BTreeMap<&'a str, (usize, usize)> {
    let mut had: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for node in members {
        let status = updates.get(node).and_then(|update| update.status.as_ref());
        let Some(current) = status.and_then(|status| status.current.as_ref()) else { continue };
        let ends_badly = status.is_some_and(|status| {
            matches!(status.phase, Some(UpdatePhase::Degraded | UpdatePhase::NeedsBoot))
        });
        let is_ready = nodes.get(node).is_some_and(|facts| facts.is_ready);
        let (well, ill) = had.entry(&current.name).or_default();
        *(if is_ready && !ends_badly { well } else { ill }) += 1;
    }
    had
}

/// The configs that were rendered for a pool, and when.
fn of_pool<'c>(pool: &Pool, configs: &'c Configs) -> BTreeMap<&'c str, i64> {
    let own = configs.iter().filter(|(name, config)| is_its(pool, name, config));
    own.map(|(name, config)| (&**name, config.created)).collect()
}

/// Whether a config is there that was rendered for a pool.
pub(super) fn is_of(pool: &Pool, config: &str, configs: &Configs) -> bool {
    configs.get(config).is_some_and(|it| is_its(pool, config, it))
}

/// Whether it was rendered for a pool: an agent may say of any other that its node has it, and what
/// that says is not this pool's to know.
fn is_its(pool: &Pool, name: &str, config: &ConfigMeta) -> bool {
    let mut named = [&pool.target, &pool.settled].into_iter().flatten();
    let owner = config.owner.as_ref();
    named.any(|it| it.name == name)
        || owner.is_some_and(|it| it.name == pool.name && it.uid == pool.uid)
}

/// What is known of a pool's configs.
#[derive(Debug, Clone, Default)]
struct Known<'a> {
    /// The one that its nodes are to have.
    target: Option<&'a str>,
    /// The one that all of them had last.
    settled: Option<&'a str>,
    /// It has no nodes.
    is_empty: bool,
    /// Those that its nodes have, as far as they say so, each with how many are well with it, and how
    /// many are not.
    had: BTreeMap<&'a str, (usize, usize)>,
    /// When each was made.
    made: BTreeMap<&'a str, i64>,
}

/// The config to serve: the target, once a node runs it well; else the newest config that a node
/// runs well; else the last good one, even if no node has said yet what it has; for a pool without
/// nodes, or without a good config so far, the target. `None`: there is none yet.
fn choose<'a>(known: &Known<'a>) -> Option<&'a str> {
    let is_there = |config: &&str| known.made.contains_key(*config);
    let target = known.target.filter(is_there);
    if known.is_empty {
        return target;
    }
    let well = known.had.iter().filter(|(_, (well, _))| *well > 0).map(|(config, _)| *config);
    let newest = well
        .filter(is_there)
        // One that is wanted again keeps the date at which it was made first.
        .max_by_key(|config| (known.target == Some(config), known.made.get(config), *config));
    newest.or_else(|| known.settled.filter(is_there)).or(target)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tread_cluster::pools::Owned;

    #[test]
    fn a_node_runs_a_config_well_that_is_ready_and_did_not_fail() {
        let all = [
            ("well", "new", true, "Done"),
            ("also", "new", true, "Begun"),
            ("down", "new", false, "Done"),
            ("failed", "new", true, "Degraded"),
            ("waits", "old", true, "NeedsBoot"),
            ("another's", "old", true, "Done"),
        ];
        let nodes: Nodes = all
            .iter()
            .map(|(name, _, is_ready, _)| {
                let facts = Facts { is_ready: *is_ready, ..Facts::default() };
                ((*name).to_owned(), Arc::new(facts))
            })
            .collect();
        let update = |config: &str, phase: &str| {
            let update = json!({"apiVersion": "tread.dev/v1alpha1", "kind": "NodeUpdate",
                "metadata": {"name": "n"}, "spec": {"pool": "infra"},
                "status": {"phase": phase, "current": {"name": config, "digest": ""}}});
            Arc::new(serde_json::from_value::<NodeUpdate>(update).unwrap())
        };
        let mut updates: Updates = all
            .iter()
            .map(|(name, config, _, phase)| ((*name).to_owned(), update(config, phase)))
            .collect();
        // Nobody knows whether a node is well that is gone.
        updates.insert("gone".to_owned(), update("new", "Done"));
        let members = ["well", "also", "down", "failed", "waits", "gone", "silent"];
        let had = had(members.into_iter(), &nodes, &updates);
        assert_eq!(had, BTreeMap::from([("new", (2, 3)), ("old", (0, 1))]));
    }

    #[test]
    fn no_machine_boots_with_what_was_rendered_for_another_pool() {
        let owned = |name: &str, uid: &str| Some(Owned { name: name.into(), uid: uid.into() });
        let all = [
            ("its", owned("worker", "1"), 1),
            ("another's", owned("master", "2"), 2),
            ("an-earlier-pool's", owned("worker", "0"), 3),
            ("nobody's", None, 4),
            ("named", None, 5),
        ];
        let configs = all.map(|(name, owner, created)| {
            (name.to_owned(), Arc::new(ConfigMeta { owner, created, ..ConfigMeta::default() }))
        });
        let named = Configuration { name: "named".to_owned(), ..Configuration::default() };
        let pool = Pool {
            name: "worker".to_owned(),
            uid: "1".to_owned(),
            settled: Some(named),
            ..Pool::default()
        };
        let configs: Configs = configs.into_iter().collect();
        assert_eq!(of_pool(&pool, &configs), BTreeMap::from([("its", 1), ("named", 5)]));
        let own = |name: &&str| is_of(&pool, name, &configs);
        let names = ["its", "another's", "an-earlier-pool's", "nobody's", "named", "gone"];
        assert_eq!(names.iter().filter(|it| own(it)).collect::<Vec<_>>(), [&"its", &"named"]);
    }

    #[test]
    fn a_machine_boots_with_the_newest_config_that_is_known_to_be_good() {
        let made = BTreeMap::from([("old", 1), ("last", 2), ("new", 3), ("same", 3)]);
        for (what, target, settled, had, expected) in [
            ("nothing is known", None, None, vec![], None),
            ("an empty pool", Some("new"), Some("old"), vec![], Some("new")),
            ("no node has said what it has", Some("new"), Some("old"), vec![], Some("old")),
            ("nor was any good", Some("new"), None, vec![], Some("new")),
            (
                "one has the new",
                Some("new"),
                Some("last"),
                vec![("new", 1, 0), ("last", 9, 0)],
                Some("new"),
            ),
            ("none has it yet", Some("new"), Some("last"), vec![("last", 9, 0)], Some("last")),
            (
                "it made one fail",
                Some("new"),
                Some("last"),
                vec![("new", 0, 1), ("last", 9, 0)],
                Some("last"),
            ),
            (
                "one of two failed",
                Some("new"),
                Some("last"),
                vec![("new", 1, 1), ("last", 8, 0)],
                Some("new"),
            ),
            (
                "it is brought back to an older one",
                Some("old"),
                Some("new"),
                vec![("old", 1, 0), ("new", 8, 0)],
                Some("old"),
            ),
            (
                "none was brought back yet",
                Some("old"),
                Some("new"),
                vec![("new", 9, 0)],
                Some("new"),
            ),
            (
                "the older one is not good any more",
                Some("old"),
                Some("last"),
                vec![("old", 0, 1), ("new", 8, 0)],
                Some("new"),
            ),
            ("none is well", Some("new"), Some("last"), vec![("old", 0, 3)], Some("last")),
            ("nor was any", Some("new"), None, vec![("old", 0, 3)], Some("new")),
            ("what they have is gone", Some("new"), None, vec![("gone", 3, 0)], Some("new")),
            (
                "the same second",
                Some("new"),
                None,
                vec![("new", 1, 0), ("same", 1, 0)],
                Some("new"),
            ),
        ] {
            let is_empty = what == "an empty pool";
            let had = had.into_iter().map(|(name, well, ill)| (name, (well, ill))).collect();
            let known = Known { target, settled, is_empty, had, made: made.clone() };
            assert_eq!(choose(&known), expected, "{what}");
        }
    }
}
