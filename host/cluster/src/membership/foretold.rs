//! What will become of the machines of a MachineSet that boot into a pool, before one boots:
//! a pure function.

use crate::boot_images::machine::{Key, Machine};
use crate::labels::Labels;
use crate::pools::{Configs, MASTER, Members, Place, Pool, Pools, WORKER, joins, pool_of, quoted};
use serde_json::{Map, Value, json};
use tread_kube::api::machines::MACHINE_SET;
use tread_model::boot_images::{Release, shown};

/// The first release whose operator gives nodes the labels of the pool that they booted into.
const LABELS: (u32, u32) = (4, 22);

/// A pool of its own name whose nodes do not register as workers.
const ARBITER: &str = "arbiter";

/// What is known of pools, nodes and configs.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'s> {
    /// The pools.
    pub pools: &'s Pools,
    /// Their nodes.
    pub members: &'s Members,
    /// The configs.
    pub configs: &'s Configs,
    /// The release that the cluster runs, if it says so.
    pub running: Option<Release>,
    /// Whether tread rolls out in this cluster.
    pub by_tread: bool,
}

/// What will become of machines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foretold {
    /// The pool that they boot into.
    pub boots: String,
    /// The config that they get there, if the pool says so.
    pub gets: Option<String>,
    /// Where their nodes will count.
    pub counts: Place,
    /// Why OpenShift's operator does not mend it, where it would have to.
    pub gap: Option<String>,
    /// What prevents it: the patch of the MachineSet.
    pub patch: Option<Value>,
}

/// The pool whose user data a Secret holds, by its name.
pub fn pool_of_user_data(secret: &str) -> Option<&str> {
    secret.strip_suffix("-managed").unwrap_or(secret).strip_suffix("-user-data")
}

/// What will become of the machines of a resource that boot into the pool of their user data;
/// None: nothing that anybody has to be told of.
pub fn foretell(key: &Key, machine: &Machine, scene: &Scene<'_>) -> Option<Foretold> {
    // Where tread rolls out, the name of a Secret does not say whether its machines join by a claim.
    if scene.by_tread || key.kind != MACHINE_SET.name || machine.left_out.is_some() {
        return None;
    }
    let booted = pool_of_user_data(machine.user_data.as_deref()?)?;
    foretell_of(booted, &machine.node_labels, scene)
}

/// The same of machines that boot into a pool, and whose nodes get these labels.
pub fn foretell_of(booted: &str, given: &Labels, scene: &Scene<'_>) -> Option<Foretold> {
    let pool = scene.pools.get(booted)?;
    let labels = registered(&pool.name, given);
    let counts = pool_of(&labels, scene.pools);
    let is_own = counts.pool() == Some(&*pool.name);
    // A machine that boots as a worker and gets other labels as well is moved on purpose.
    let is_common = [MASTER, WORKER].contains(&&*pool.name) && pool.nodes.matches(&labels);
    if is_own || is_common || matches!(counts, Place::Unplaced(_)) {
        return None;
    }
    let served = served(pool).map(str::to_owned);
    let is_mended = !scene.by_tread
        && scene.running.is_some_and(|release| release.line() >= LABELS)
        && ![MASTER, WORKER].contains(&&*pool.name);
    let gap = match is_mended {
        true => Some(gap(pool, served.as_deref(), &labels, &counts, scene)?),
        false => None,
    };
    let patch = patch(&labels, pool, scene.pools);
    Some(Foretold { boots: pool.name.clone(), gets: served, counts, gap, patch })
}

/// The same of machines that tread serves, and whose nodes join by a claim: they get the labels of
/// the pool, and are held where they would not be in it with these.
pub fn foretell_joining(booted: &str, given: &Labels, scene: &Scene<'_>) -> Option<Foretold> {
    let pool = scene.pools.get(booted)?;
    let mut labels = registered(&pool.name, given);
    let (why, patch) = match pool.gives() {
        Ok(gives) => {
            labels.extend(gives.given(&labels));
            let would = match pool_of(&labels, scene.pools) {
                Place::Unplaced(_) => return None,
                Place::Several(all) => format!("in the pools {}", all.join(", ")),
                place => match place.pool() {
                    Some(counts) if counts == pool.name => return None,
                    Some(counts) => format!("in pool {counts}"),
                    None => "in no pool".to_owned(),
                },
            };
            let why = format!("with the labels of their pool they would be {would}");
            (why, patch(&labels, pool, scene.pools))
        }
        Err(why) => (format!("nobody can say which labels they get: {why}"), None),
    };
    Some(Foretold {
        boots: pool.name.clone(),
        gets: None,
        counts: Place::Joining,
        gap: Some(why),
        patch,
    })
}

/// What gives the nodes of a MachineSet the labels with which they are in a pool.
fn patch(labels: &Labels, pool: &Pool, pools: &Pools) -> Option<Value> {
    let label = |argument: String| match argument.split_once('=') {
        Some((key, value)) => (key.to_owned(), json!(value)),
        None => (argument.trim_end_matches('-').to_owned(), Value::Null),
    };
    let arguments = joins(labels, pool, pools)?;
    let labels: Map<String, Value> = arguments.into_iter().map(label).collect();
    Some(json!({"spec": {"template": {"spec": {"metadata": {"labels": labels}}}}}))
}

/// The config that machines get that boot into a pool, if it says so.
pub(super) fn served(pool: &Pool) -> Option<&str> {
    let served = if pool.served_newest { &pool.target } else { &pool.settled };
    served.as_ref().or(pool.target.as_ref()).map(|it| it.name.as_str())
}

/// The labels of a node as soon as the machine API gave it those of its machine: the kubelet's
/// own are written in the units of each role.
pub(super) fn registered(pool: &str, given: &Labels) -> Labels {
    let own: &[&str] = match pool {
        MASTER => &[MASTER, "control-plane"],
        ARBITER => &[ARBITER],
        _ => &[WORKER],
    };
    let mut labels = given.clone();
    labels.extend(own.iter().map(|it| (format!("node-role.kubernetes.io/{it}"), String::new())));
    labels.entry("kubernetes.io/os".to_owned()).or_insert_with(|| "linux".to_owned());
    labels
}

/// Why the operator, which gives such nodes their labels, will not; None: it will.
fn gap(
    pool: &Pool,
    served: Option<&str>,
    labels: &Labels,
    counts: &Place,
    scene: &Scene<'_>,
) -> Option<String> {
    let name = &pool.name;
    if pool.labels.is_empty() {
        return Some(format!(
            "no label can be made of spec.nodeSelector of pool {name}: such a node is never updated"
        ));
    }
    let mut then = labels.clone();
    then.extend(pool.labels.clone());
    if pool_of(&then, scene.pools).pool() != Some(name) {
        return Some(format!(
            "the labels that can be made of spec.nodeSelector of pool {name} do not put a node there"
        ));
    }
    if let Some(gone) = served.filter(|config| !scene.configs.contains_key(config)) {
        return Some(format!("{}, which they boot with, is gone", shown(gone)));
    }
    let counts = match counts.pool() {
        Some(counts) => scene.pools.get(counts)?,
        None => return Some("they are candidates of no pool".to_owned()),
    };
    if counts.paused {
        return Some(format!("pool {} is paused", counts.name));
    }
    let most = most_unavailable(counts, scene.members);
    // Without the current number: each change of it would be reported anew.
    (counts.unavailable.1 >= most).then(|| {
        format!("pool {} has as many nodes out of service as it may ({most})", counts.name)
    })
}

/// How many nodes of a pool may be out of service, as the operator counts: at least one.
pub(super) fn most_unavailable(pool: &Pool, members: &Members) -> i64 {
    let Some(written) = &pool.unavailable.0 else { return 1 };
    if pool.name == ARBITER {
        return 1;
    }
    let number = match written.strip_suffix('%') {
        Some(percent) => {
            let nodes = i64::try_from(members.count(&pool.name)).unwrap_or(i64::MAX);
            percent.parse::<i64>().ok().map(|it| it.saturating_mul(nodes) / 100)
        }
        None => written.parse().ok(),
    };
    number.unwrap_or(1).max(1)
}

impl Foretold {
    /// What will happen to the machines of this resource, in a sentence without its end.
    pub fn says(&self, resource: &str) -> String {
        let boots = &self.boots;
        let counts = match &self.counts {
            Place::Nowhere => "in no pool: nobody updates them".to_owned(),
            Place::Several(pools) => {
                format!("in the pools {}: OpenShift leaves them alone", pools.join(", "))
            }
            Place::Joining => "in no pool: they are held".to_owned(),
            place => format!("in pool {}", place.pool().unwrap_or_default()),
        };
        let gap = self.gap.as_ref().map(|gap| format!(" ({gap})")).unwrap_or_default();
        format!(
            "New machines of {} boot into pool {boots} and will count {counts}{gap}",
            shown(resource)
        )
    }

    /// What prevents it, for this resource.
    pub fn prevents(&self, key: &Key) -> String {
        match &self.patch {
            Some(patch) => format!(
                "kubectl patch {} -n {} {} --type=merge -p {}",
                MACHINE_SET.name,
                quoted(&shown(&key.namespace)),
                quoted(&shown(&key.name)),
                quoted(&patch.to_string())
            ),
            None => self.prevents_before(),
        }
    }

    /// The same of one that is not there yet, or for which there is no command.
    pub fn prevents_before(&self) -> String {
        let boots = &self.boots;
        match self.counts {
            Place::Joining => format!(
                "mend spec.nodeSelector of pool {boots}, so that it says which labels a node gets, and no \
                 other pool of its own name selects these"
            ),
            _ => format!(
                "give spec.template.spec.metadata.labels what spec.nodeSelector of pool {boots} selects, \
                 and no other pool of its own name"
            ),
        }
    }
}

#[cfg(test)]
mod tests;
