//! Which config a machine of a pool boots with.

use std::collections::BTreeMap;
use tread_cluster::pools::{Configs, Pool};

/// The configs that were rendered for a pool, and when: an agent may say of any other that its
/// node has it, and what that says is not this pool's to know.
pub(super) fn of_pool<'c>(pool: &Pool, configs: &'c Configs) -> BTreeMap<&'c str, i64> {
    let is_named = |name: &str| {
        let named = [&pool.target, &pool.settled].into_iter().flatten();
        named.into_iter().any(|it| it.name == name)
    };
    let own = configs.iter().filter(|(name, config)| {
        let owner = config.owner.as_ref();
        is_named(name) || owner.is_some_and(|it| it.name == pool.name && it.uid == pool.uid)
    });
    own.map(|(name, config)| (name.as_str(), config.created)).collect()
}

/// What is known of a pool's configs.
#[derive(Debug, Clone, Default)]
pub(super) struct Known<'a> {
    /// The one that its nodes are to have.
    pub(super) target: Option<&'a str>,
    /// The one that all of them had last.
    pub(super) settled: Option<&'a str>,
    /// Those that its nodes have, each with how many are well with it, and how many are not.
    pub(super) had: BTreeMap<&'a str, (usize, usize)>,
    /// When each was made.
    pub(super) made: BTreeMap<&'a str, i64>,
}

/// The newest that a node runs well; else the last good one; of a pool without nodes the newest.
/// `None`: there is none yet.
pub(super) fn choose<'a>(known: &Known<'a>) -> Option<&'a str> {
    let is_there = |config: &&str| known.made.contains_key(*config);
    let target = known.target.filter(is_there);
    if known.had.is_empty() {
        return target;
    }
    let well = known.had.iter().filter(|(_, (well, _))| *well > 0).map(|(config, _)| *config);
    let newest = well
        .filter(is_there)
        // What nodes are to have counts as newer than what was made in the same second.
        .max_by_key(|config| (known.made.get(config), known.target == Some(config), *config));
    newest.or_else(|| known.settled.filter(is_there)).or(target)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tread_cluster::pools::{ConfigMeta, Configuration, Owned};

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
    }

    #[test]
    fn a_machine_boots_with_the_newest_config_that_is_known_to_be_good() {
        let made = BTreeMap::from([("old", 1), ("last", 2), ("new", 3), ("same", 3)]);
        for (what, target, settled, had, expected) in [
            ("nothing is known", None, None, vec![], None),
            ("an empty pool", Some("new"), Some("old"), vec![], Some("new")),
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
            let had = had.into_iter().map(|(name, well, ill)| (name, (well, ill))).collect();
            let known = Known { target, settled, had, made: made.clone() };
            assert_eq!(choose(&known), expected, "{what}");
        }
    }
}
