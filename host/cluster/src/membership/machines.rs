//! What is reported of MachineSets whose machines will stray: on each of them, and on the pool
//! that they boot into.

use super::foretold::{Foretold, Scene, foretell};
use super::strays::{News, POOL};
use super::ways::ways;
use crate::boot_images::facts::Facts;
use crate::boot_images::machine::Key;
use crate::plans::{Previewer, about};
use crate::previews::Cluster;
use k8s_openapi::api::core::v1::ObjectReference;
use std::collections::BTreeMap;
use tread_kube::api::machines::MACHINE_SET;
use tread_kube::events::{Note, Reason};

/// How many are reported at once.
const MOST: usize = 100;

/// All of whose machines there is something to report.
pub(super) fn all(cluster: &Cluster, facts: &Facts) -> BTreeMap<Key, Foretold> {
    let scene = scene(cluster, facts);
    let all = facts.machines.iter();
    all.filter_map(|(key, machine)| Some((key.clone(), foretell(key, machine, &scene)?))).collect()
}

/// What is known, as it takes to tell.
pub(super) fn scene<'s>(cluster: &'s Cluster, facts: &Facts) -> Scene<'s> {
    Scene {
        pools: &cluster.pools,
        members: &cluster.members,
        configs: &cluster.configs,
        running: facts.running().and_then(|it| it.release),
        by_tread: cluster.by_tread,
    }
}

/// Those that were not reported before, as many as are reported at once.
pub(super) fn unreported<'n>(
    now: &'n BTreeMap<Key, Foretold>,
    reported: &BTreeMap<Key, Foretold>,
) -> Vec<(&'n Key, &'n Foretold)> {
    now.iter().filter(|(key, it)| reported.get(*key) != Some(*it)).take(MOST).collect()
}

/// What is to be reported of these.
pub(super) async fn news(
    previewer: &Previewer,
    facts: &Facts,
    unreported: &[(&Key, &Foretold)],
) -> Vec<News> {
    let pools = previewer.snapshot().pools;
    let mut news = Vec::new();
    for &(key, foretold) in unreported {
        let costs = match ways(previewer, foretold).await {
            costs if costs.is_empty() => costs,
            costs => format!(": {costs}"),
        };
        let resource = format!("{}/{}", key.namespace, key.name);
        let text = format!(
            "{}{costs}. What prevents it: {}",
            foretold.says(&resource),
            foretold.prevents(key)
        );
        let uid = facts.machines.get(key).map(|it| it.uid.clone()).unwrap_or_default();
        // Another sentence is another thing to report.
        let of = format!("{uid}/{:?}/{:?}", foretold.counts, foretold.gap);
        let set = ObjectReference {
            api_version: Some(format!("{}/{}", MACHINE_SET.group, MACHINE_SET.version)),
            kind: Some(MACHINE_SET.kind.to_owned()),
            namespace: Some(key.namespace.clone()),
            name: Some(key.name.clone()),
            uid: Some(uid),
            ..ObjectReference::default()
        };
        let pool = pools.get(&foretold.boots).map(|pool| about(POOL, &pool.name, &pool.uid));
        for about in [Some(set), pool].into_iter().flatten() {
            let note = Note { reason: Reason::MachinesWillStray, warns: true, text: text.clone() };
            news.push(News { about, note, of: of.clone() });
        }
    }
    news
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pools::Place;

    #[test]
    fn however_many_there_are_each_is_told_of_once() {
        let foretold = Foretold {
            boots: "infra".to_owned(),
            gets: None,
            counts: Place::Nowhere,
            gap: None,
            patch: None,
        };
        let key = |number: usize| Key {
            kind: MACHINE_SET.name,
            namespace: "machines".to_owned(),
            name: format!("{number}"),
        };
        let now: BTreeMap<Key, Foretold> =
            (0..250).map(|number| (key(number), foretold.clone())).collect();
        let mut reported: BTreeMap<Key, Foretold> = BTreeMap::new();
        for expected in [MOST, MOST, 50, 0] {
            let unreported = unreported(&now, &reported);
            assert_eq!(unreported.len(), expected);
            reported.extend(unreported.into_iter().map(|(key, it)| (key.clone(), it.clone())));
        }
    }
}
