//! Pools as a table has them.

use super::gather::Gathered;
use crate::pools::{Place, Pool, Stray, unseen};
use serde::Serialize;
use tread_kube::api::DisruptionPlan;

/// A pool, as it is listed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Its name.
    pub name: String,
    /// How many nodes count in it.
    pub nodes: usize,
    /// How many of them have its newest config.
    pub updated: usize,
    /// How many nodes it selects, or claim to be its own, that count in no pool and get no config.
    pub held: usize,
    /// How many nodes booted into it and count in another pool.
    pub strayed: usize,
    /// How many of its nodes say that they failed.
    pub degraded: usize,
    /// The config that its nodes are to get, if it says so.
    pub config: Option<String>,
    /// Whether its nodes stay as they are.
    pub paused: bool,
    /// What is about to happen to its nodes, if tread says so.
    pub plan: Option<String>,
}

/// All pools, by name.
pub fn rows(gathered: &Gathered, strays: &[Stray]) -> Vec<Row> {
    let pools = gathered.cluster.pools.values();
    pools.map(|pool| row(gathered, strays, pool)).collect()
}

fn row(gathered: &Gathered, strays: &[Stray], pool: &Pool) -> Row {
    let config = pool.target.as_ref().map(|it| it.name.clone());
    let mut row = Row {
        name: pool.name.clone(),
        strayed: strays.iter().filter(|it| it.booted == pool.name).count(),
        paused: pool.paused,
        held: gathered.held.iter().filter(|it| it.claims.as_ref() == Some(&pool.name)).count(),
        plan: gathered.plans.iter().rev().find_map(|plan| pending(plan, &pool.name)),
        ..Row::default()
    };
    for (_, member) in gathered.cluster.members.all() {
        if member.place.pool() == Some(&*pool.name) {
            row.nodes += 1;
            row.updated += usize::from(config.is_some() && member.node.current == config);
            row.degraded += usize::from(member.node.is_degraded);
        } else if matches!(member.place, Place::Several(_) | Place::Unplaced(_))
            && pool.nodes.matches(&member.node.labels)
        {
            row.held += 1;
        }
    }
    row.config = config;
    row
}

/// What a plan that waits does to the nodes of a pool, all of whose changes it is of.
fn pending(plan: &DisruptionPlan, pool: &str) -> Option<String> {
    let status = plan.status.as_ref().filter(|_| plan.spec.pool == pool)?;
    let waits = status.conditions.iter().any(|it| it.type_ == "Pending" && it.status == "True");
    let effect = status.effect.as_ref().filter(|_| waits)?;
    let stale = if status.stale { " (stale)" } else { "" };
    Some(format!("{effect}{stale}"))
}

/// Why a node is where it is, in lines for a person.
pub fn explain(gathered: &Gathered, strays: &[Stray], node: &str) -> Option<Vec<String>> {
    let pools = &gathered.cluster.pools;
    let member = gathered.cluster.members.get(node)?;
    let mut lines = vec![match &member.place {
        Place::Pool(pool) => format!("Node {node} counts in pool {pool}."),
        Place::MasterBeside(pool) => format!(
            "Node {node} counts in pool master. Pool {pool} selects it too, and gives it nothing: a \
             master is in no pool of another name."
        ),
        Place::Nowhere => format!("Node {node} counts in no pool: nobody gives it a config."),
        Place::Several(all) => format!(
            "Node {node} counts in no pool: it is in the pools {}, and OpenShift leaves it alone \
             until one of these is left.",
            all.join(", ")
        ),
        Place::Unplaced(all) => format!("Node {node}: {}.", crate::pools::says_unplaced(all)),
        Place::Joining => format!("Node {node} counts in no pool: it registered as joining."),
    }];
    if let Some(held) = gathered.held.iter().find(|it| it.node == node) {
        lines.push(match &held.claims {
            Some(pool) => format!("It claims to be a node of pool {pool}."),
            None => "Its claim names no pool that is there.".to_owned(),
        });
        lines.push(format!("{}: {}", held.reason, held.message));
        return Some(lines);
    }
    let selecting: Vec<&str> = pools
        .values()
        .filter(|pool| pool.nodes.matches(&member.node.labels))
        .map(|pool| pool.name.as_str())
        .collect();
    lines.push(match selecting.as_slice() {
        [] => "No pool selects its labels.".to_owned(),
        several => format!(
            "Selected by: {} (a pool of its own name beats worker, and master beats one such pool).",
            several.join(", ")
        ),
    });
    let says = |what: &str, config: &Option<String>| {
        let config = config.as_ref()?;
        let of = match crate::pools::owner(config, &gathered.cluster.configs, pools) {
            Some((pool, false)) => format!("which was rendered for pool {}", pool.name),
            Some((pool, true)) => {
                format!("which is gone; by its name it was rendered for pool {}", pool.name)
            }
            None => "which is of no pool that is there".to_owned(),
        };
        Some(format!("{what} {config}, {of}."))
    };
    lines.extend(says("It has", &member.node.current));
    lines.extend(says("It booted first with", &member.node.first_pivot));
    if member.node.current.is_none() {
        lines.push("It does not say yet which config it has.".to_owned());
    }
    if let Some(stray) = strays.iter().find(|it| it.node == node) {
        lines.push(format!("It strays: {}.", stray.says()));
        lines.push(format!("What ends it: {}", stray.ends()));
    } else if let Some(stray) = unseen(node, member, &gathered.cluster.configs, pools) {
        let booted = &stray.booted;
        lines.push(format!(
            "It booted into pool {booted}, and nobody saw whether it counted there since. Unless it was \
             moved on purpose: {}",
            stray.ends()
        ));
    }
    Some(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pools::{Members, Node};
    use serde_json::json;
    use std::sync::Arc;

    #[test]
    fn of_a_node_that_nobody_saw_register_it_is_said_that_nobody_knows() {
        let mut gathered = Gathered::default();
        let pools = &mut gathered.cluster.pools;
        for name in ["infra", "worker"] {
            let selector = json!({"matchLabels": {name: ""}});
            let object = json!({"metadata": {"name": name}, "spec": {"nodeSelector": selector}});
            let pool = Pool::of(&serde_json::from_value(object).unwrap());
            pools.insert(name.to_owned(), Arc::new(pool));
        }
        let has = Some("rendered-infra-00000000000000000000000000000001".to_owned());
        let labels = [("worker".to_owned(), String::new())].into();
        let node = Node { labels, current: has.clone(), first_pivot: has, ..Node::default() };
        let mut explained = |since: i64| {
            let mut members = Members::since(since);
            members.put("a", node.clone(), &gathered.cluster.pools);
            gathered.cluster.members = Arc::new(members);
            explain(&gathered, &[], "a").unwrap().join(" ")
        };
        let long_ago = explained(1_000_000);
        let said = "It booted into pool infra, and nobody saw whether it counted there since. Unless \
                    it was moved on purpose: kubectl label node a --overwrite infra=";
        assert!(long_ago.ends_with(said), "{long_ago}");
        assert!(!explained(0).contains("nobody saw"));
    }
}
