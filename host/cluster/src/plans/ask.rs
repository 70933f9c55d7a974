//! What would happen, for whoever asks: the controller, the webhook, the command
//! line and HTTP.

use super::budget::{most_changes, too_much};
use super::make::{Take, Together};
use super::previewer::{NotKnown, Previewer};
use crate::policies::current::Current;
use crate::pools::{Pool, RollsOut, pools_of, says_unplaced, unreadable};
use crate::previews::{
    Baseline, Cluster, Edit, IN_THE_CLUSTER_ALREADY, Piece, Preview, Side, WayPlan, Work, between,
    mirror_pieces, work,
};
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};
use tread_engine::planner::Answers;
use tread_kube::asking;
use tread_model::digest::{Digest, Fields};
use tread_model::operator::Forecast;
use tread_model::plan::Plan;

/// How many labels are said of a MachineConfig that no pool selects.
const LABELS_SAID: usize = 3;

/// What a pool is made of: each object by a name for people, as the API server has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeOf {
    /// The MachineConfigs that it selects.
    pub configs: Vec<(String, Arc<[u8]>)>,
    /// The objects that redirect image pulls.
    pub mirrors: Vec<(String, Arc<[u8]>)>,
}

/// That there is more than is looked at, so that it is a reboot, in words.
#[derive(Debug)]
struct TooMuch(String);

/// Ends the work for plans when nobody waits for them any more.
struct Ends(Arc<Answers>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Previewer {
    /// Why a change concerns no node, where that is probably not meant.
    pub fn unselected(&self, change: &Edit) -> Option<String> {
        let cluster = self.cluster.read().unwrap_or_else(PoisonError::into_inner);
        unselected(change, &cluster)
    }

    /// What changes would do to the pools, together with all that is pending. If nobody renders a
    /// pool, and its nodes do not say what they have, what is pending is read from the
    /// DisruptionPlans.
    pub async fn preview(&self, changes: &[Edit]) -> Result<Vec<Preview>, NotKnown> {
        let mut previews = self.previewed(changes, false, Arc::new(|preview| preview)).await?;
        if previews.iter().all(|preview| preview.work.operated) {
            return Ok(previews);
        }
        let known: BTreeSet<String> = self.plans().iter().map(|plan| plan.name.clone()).collect();
        let standing = super::standing::plans(&self.client, &self.metrics).await;
        let mut standing = standing.map_err(|failed| NotKnown {
            why: format!("the DisruptionPlans cannot be listed: {failed}"),
            failed: Some(failed),
        })?;
        standing.retain(|plan| !known.contains(&plan.name));
        for preview in previews.iter_mut().filter(|preview| !preview.work.operated) {
            if preview.is_nothing() {
                *preview = Preview::unplanned(preview.work.clone(), IN_THE_CLUSTER_ALREADY);
            }
            let pool = &preview.work.pool.name;
            let of_pool = standing.iter().filter(|plan| plan.pool == *pool).cloned();
            preview.earlier = Some(of_pool.collect());
        }
        Ok(previews)
    }

    /// What a change would do, told to somebody who may not read the configs in the cluster. Each
    /// preview is dropped as soon as `take` has used it.
    pub(super) async fn preview_redacted<T: Send + 'static>(
        &self,
        change: &Edit,
        take: Take<T>,
    ) -> Result<Vec<T>, NotKnown> {
        self.previewed(std::slice::from_ref(change), true, take).await
    }

    async fn previewed<T: Send + 'static>(
        &self,
        changes: &[Edit],
        hides_secrets: bool,
        take: Take<T>,
    ) -> Result<Vec<T>, NotKnown> {
        let before = self.snapshot();
        let after = changes.iter().fold(before.clone(), |cluster, change| cluster.with(change));
        let unreadable = unreadable(&after.pools);
        if !unreadable.is_empty() {
            return Err(says_unplaced(&unreadable).into());
        }
        let current = self.policies.borrow().clone();
        let pools: BTreeSet<String> =
            changes.iter().flat_map(|change| concerned(change, &before, &after)).collect();
        let is_unknown = |pool: &&String| {
            let pool_now = after.pools.get(*pool);
            let rolls_out = pool_now.map(|it| after.rolls_out(it));
            rolls_out == Some(RollsOut::Nobody) && !after.baselines.contains_key(*pool)
        };
        let is_unknown = |pool: &&String| is_unknown(pool) || !after.unheard_of(pool).is_empty();
        if let Some(pool) = pools.iter().find(is_unknown) {
            let because = self.baseline(&before, pool).await.err();
            let why = because.as_ref().map_or_else(String::new, |why| format!(": {why}"));
            let why = format!("what the nodes of pool {pool} have is not known yet{why}");
            return Err(NotKnown { why, failed: because.and_then(|it| it.failed) });
        }
        let mut pools = pools.into_iter();
        let mut first = Vec::new();
        while first.len() < 2
            && let Some(pool) = pools.next()
        {
            first.extend(work(&after, &pool));
        }
        let mut answers = self.answers(&after);
        if hides_secrets {
            // Nor is anybody told more than a line for each pool.
            answers = answers.in_short();
        }
        if first.len() == 1 {
            answers = answers.for_one_plan();
        }
        let answers = Arc::new(answers);
        let _ends = Ends(Arc::clone(&answers));
        let together = Together {
            cluster: &after,
            current: &current,
            answers: &answers,
            rules: &after.operators_rules(),
            hides_secrets,
        };
        self.compute_all(first, pools, &together, &take).await
    }

    /// What OpenShift's operator does to a node that has a rendered config, of whichever pool,
    /// when it gets the one that was rendered for a pool last.
    pub async fn forecast(&self, from: &str, pool: &str) -> Result<Forecast, NotKnown> {
        let way = self.way(from, pool).await?.map_err(|TooMuch(why)| why)?;
        Ok(way.operator.ok_or_else(|| "nobody rolls it out".to_owned())?)
    }

    /// What tread does to such a node then. None: there is more than is looked at, so that it is
    /// a reboot.
    pub async fn plan(&self, from: &str, pool: &str) -> Result<Option<Arc<Plan>>, NotKnown> {
        Ok(self.way(from, pool).await?.ok().map(|way| way.plan))
    }

    async fn way(&self, from: &str, pool: &str) -> Result<Result<WayPlan, TooMuch>, NotKnown> {
        let cluster = self.snapshot();
        let not_there = || NotKnown::from(format!("{from} or what pool {pool} has is not there"));
        let work = between(&cluster, from, pool).ok_or_else(not_there)?;
        let current = self.policies.borrow().clone();
        let answers = Arc::new(self.answers(&cluster).for_one_plan());
        let _ends = Ends(Arc::clone(&answers));
        let together = Together {
            cluster: &cluster,
            current: &current,
            answers: &answers,
            rules: &cluster.operators_rules(),
            hides_secrets: false,
        };
        let take: Take<_> = Arc::new(first_way);
        Ok(self.compute(work, &together, &take).await??)
    }

    /// What a pool is made of, to be rendered.
    pub async fn made_of(&self, pool: &Pool, cluster: &Cluster) -> Result<MadeOf, NotKnown> {
        let names = crate::pools::sources(pool, &cluster.configs);
        let keys = names.into_iter().filter_map(|name| cluster.configs.key(name));
        let asked: BTreeSet<_> = keys.collect();
        let bodies = self.bodies.get(&self.client, &self.metrics, asked.clone()).await?;
        let bodies = bodies.ok_or_else(too_much)?;
        let mut configs = Vec::new();
        for key in asked {
            let body =
                bodies.get(&key).ok_or_else(|| format!("MachineConfig {}: is gone", key.0))?;
            configs.push((key.0.to_string(), Arc::clone(body.bytes())));
        }
        let mirrors = cluster.mirrors.iter();
        let mirrors =
            mirrors.map(|((kind, name), it)| (format!("{kind} {name}"), Arc::clone(&it.body)));
        Ok(MadeOf { configs, mirrors: mirrors.collect() })
    }

    /// What a MachineConfig is, whole, in the version that is known.
    pub async fn body(&self, config: &str) -> Result<Arc<[u8]>, NotKnown> {
        let gone = || NotKnown::from(format!("MachineConfig {config}: is gone"));
        let key = self.snapshot().configs.key(config).ok_or_else(gone)?;
        let bodies = self.bodies.get(&self.client, &self.metrics, [key.clone()].into()).await?;
        let bodies = bodies.ok_or_else(too_much)?;
        Ok(Arc::clone(bodies.get(&key).ok_or_else(gone)?.bytes()))
    }

    /// What is shared by plans that are made together.
    pub(super) fn answers(&self, cluster: &Cluster) -> Answers {
        let policies = self.policies.borrow().policies.policies().len();
        let answers = Answers::to_at_most(most_changes(cluster.pools.len(), policies));
        answers.remembering(Arc::clone(&self.remembered))
    }

    /// Whether there is such a MachineConfig.
    pub(super) async fn is_there(&self, config: &str) -> Result<bool, asking::Failed> {
        super::bodies::is_there(&self.client, &self.metrics, config).await
    }

    /// What a pool is made of now, with everything that it holds.
    pub(super) async fn baseline(
        &self,
        cluster: &Cluster,
        pool: &str,
    ) -> Result<Baseline, NotKnown> {
        let Some(pool) = cluster.pools.get(pool) else { return Ok(Baseline::default()) };
        let names = crate::pools::sources(pool, &cluster.configs);
        let keys: Vec<_> = names.iter().filter_map(|name| cluster.configs.key(name)).collect();
        let versions = keys.iter().map(|(name, version)| (name.to_string(), version.to_string()));
        let versions = versions.collect();
        let asked = keys.iter().cloned().collect();
        let bodies = self.bodies.get(&self.client, &self.metrics, asked).await?;
        let bodies = bodies.ok_or_else(too_much)?;
        let mut fields = Fields::new("tread baseline 1");
        let mut configs = Vec::new();
        for key in &keys {
            let body =
                bodies.get(key).ok_or_else(|| format!("MachineConfig {}: is gone", key.0))?;
            fields.field(key.0.as_bytes());
            fields.field(body.bytes());
            configs.push(Piece::given(key.0.to_string(), Arc::clone(body.bytes())));
        }
        let mirrors = cluster.mirrors.iter();
        let mirrors =
            mirrors.map(|(key, mirror)| (key.clone(), Arc::clone(&mirror.body))).collect();
        let digest = fields.finish().short();
        Ok(Baseline {
            name: format!("{}@{digest}", pool.name),
            side: Side { configs, mirrors: mirror_pieces(cluster), os_image_of: None },
            versions,
            mirrors,
        })
    }
}

/// The plan for the first way; else why there is none.
fn first_way(preview: Preview) -> Result<Result<WayPlan, TooMuch>, String> {
    match preview.ways.into_iter().next().map(|way| way.plan) {
        Some(Ok(plan)) => Ok(Ok(plan)),
        Some(Err(none)) if none.is_too_much() => Ok(Err(TooMuch(none.to_string()))),
        Some(Err(none)) => Err(none.to_string()),
        None => Err("there is no way".to_owned()),
    }
}

/// Why a change concerns no node, where that is probably not meant: a
/// MachineConfig that no pool selects, nor did before.
fn unselected(change: &Edit, cluster: &Cluster) -> Option<String> {
    let Edit::MachineConfig { name, labels, .. } = change else { return None };
    if !concerned(change, cluster, &cluster.with(change)).is_empty() {
        return None;
    }
    let mut said: Vec<String> =
        labels.iter().take(LABELS_SAID).map(|(key, value)| format!("{key}={value}")).collect();
    if said.is_empty() {
        said.push("no label".to_owned());
    }
    Some(format!("no MachineConfigPool selects {name} ({}), so no node gets it", said.join(", ")))
}

/// The pools that a change may concern.
fn concerned(change: &Edit, before: &Cluster, after: &Cluster) -> BTreeSet<String> {
    match change {
        Edit::MachineConfig { name, .. } | Edit::NoMachineConfig(name) => {
            let both = [before, after].map(|cluster| (&cluster.pools, cluster.configs.get(name)));
            let known = both.into_iter().filter_map(|(pools, config)| Some((pools, config?)));
            known.flat_map(|(pools, config)| pools_of(pools, name, config)).collect()
        }
        Edit::Mirror(..) | Edit::NoMirror(_) => after.pools.keys().cloned().collect(),
    }
}

/// Covers everything that the plans of a pool are made of, nodes aside.
pub(super) fn inputs(work: &Work, cluster: &Cluster, current: &Current) -> Digest {
    let mut fields = Fields::new("tread plan inputs 2");
    let mut side = |side: &Side| {
        for piece in side.configs.iter().chain(&side.mirrors) {
            fields.field(piece.name().as_bytes());
            for part in piece.parts() {
                match part {
                    Piece::Stored((_, version)) => fields.field(version.as_bytes()),
                    Piece::Given(given) => fields.field(given.bytes()),
                    Piece::Generated(_) => continue,
                };
            }
        }
        let image = side.os_image_of.as_ref().map(|(name, _)| &**name);
        fields.field(image.unwrap_or_default().as_bytes());
    };
    side(&work.to);
    for way in &work.ways {
        side(way.from.as_ref().unwrap_or(&Side::default()));
    }
    fields.field(work.to_name.as_bytes());
    // What plans are called by.
    fields.field(work.pool.uid.as_bytes());
    fields.field(work.since.as_bytes());
    fields.field(work.doubt.as_deref().unwrap_or_default().as_bytes());
    let target = work.target.as_ref().map(|(name, _)| name.as_str());
    fields.field(target.unwrap_or_default().as_bytes());
    for part in &work.parts {
        fields.field(part.cause.to_string().as_bytes());
    }
    fields.number(
        u64::from(work.pool.paused)
            | u64::from(work.single_replica) << 1
            | u64::from(work.rollout_paused) << 2,
    );
    let rules = cluster.machine_configuration.as_ref().map(|it| it.to_string());
    fields.field(rules.unwrap_or_default().as_bytes());
    fields.digest(&current.digest);
    let shadows = current.shadows.as_ref().map(|it| format!("{:?}", it.policies));
    fields.field(shadows.unwrap_or_default().as_bytes());
    fields.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pools::Pool;
    use crate::previews::preview;
    use serde_json::json;
    use tread_kube::api::MachineConfigPool;
    use tread_kube::api::machine_config::ROLE_LABEL;

    #[test]
    fn what_is_too_much_is_told_apart_from_what_cannot_be_told() {
        let planned = preview("worker", 3, true, None);
        let work = || planned.work.clone();
        let too_much = first_way(Preview::too_much(work(), "as a reboot")).unwrap();
        assert_eq!(too_much.unwrap_err().0, "as a reboot");
        assert_eq!(first_way(Preview::unplanned(work(), "it is gone")).unwrap_err(), "it is gone");
        let way = first_way(planned).unwrap().unwrap();
        assert_eq!(way.plan.changes[0].id, "file:/etc/a");
    }

    #[test]
    fn a_config_that_no_pool_selects_is_told_of_and_one_that_a_pool_loses_is_not() {
        let worker: MachineConfigPool = serde_json::from_value(json!({
            "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool",
            "metadata": {"name": "worker"},
            "spec": {"machineConfigSelector": {"matchLabels": {ROLE_LABEL: "worker"}}},
        }))
        .unwrap();
        let mut cluster = Cluster::default();
        cluster.pools.insert("worker".to_owned(), Arc::new(Pool::of(&worker)));
        let change = |role: &str| Edit::MachineConfig {
            name: "50-a".to_owned(),
            labels: [(ROLE_LABEL.to_owned(), role.to_owned())].into(),
            body: Arc::from(&b"{}"[..]),
        };
        assert_eq!(unselected(&change("worker"), &cluster), None);
        let why = unselected(&change("workr"), &cluster).unwrap();
        let said = format!("no MachineConfigPool selects 50-a ({ROLE_LABEL}=workr)");
        assert!(why.starts_with(&said), "{why}");
        // Nodes lose what it said, and that may cost a reboot.
        let there = cluster.with(&change("worker"));
        assert_eq!(unselected(&change("workr"), &there), None);
        assert_eq!(unselected(&Edit::NoMachineConfig("50-a".to_owned()), &cluster), None);
    }
}
