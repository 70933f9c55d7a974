//! Rollouts as tread makes them, also in place of those that somebody removed. Whoever removes one,
//! by mistake or by a GitOps tool that prunes what it does not know, also removes its pause, its
//! limits and its windows. So the new one is paused until somebody resumes it: no node is begun by
//! the removal.

use serde_json::{Value, json};
use tread_cluster::pools::Pool;
use tread_kube::api::Rollout;
use tread_kube::api::rollout::{ANEW_ANNOTATION, NodeTaint};

/// The Rollout of a pool that has none.
pub(crate) fn rollout(pool: &Pool) -> Value {
    let (annotations, spec) = match pool.had_rollout {
        true => (json!({ANEW_ANNOTATION: "true"}), json!({"paused": true})),
        false => (json!({}), json!({})),
    };
    json!({
        "apiVersion": "tread.dev/v1alpha1", "kind": "Rollout",
        "metadata": {"name": pool.name, "annotations": annotations, "ownerReferences": [{
            "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool",
            "name": pool.name, "uid": pool.uid,
        }]},
        "spec": spec,
    })
}

/// The taints of a node that joins a pool, or why nobody knows them: whoever removes a Rollout removes
/// them too, and a node that joins without them takes pods that the pool is not for.
pub(crate) fn node_taints<'r>(
    pool: &str,
    rollout: Option<&'r Rollout>,
) -> Result<&'r [NodeTaint], String> {
    let nobody = format!("nobody knows which taints a node of pool {pool} gets");
    let Some(rollout) = rollout else {
        return Err(format!(
            "{nobody}: its Rollout is not there. tread makes it within seconds; where it does not, its log \
             says why"
        ));
    };
    match said(rollout) {
        Some(why) => Err(format!("{nobody}: {why}")),
        None => Ok(&rollout.spec.node_taints),
    }
}

/// That a Rollout is paused since it takes the place of one that somebody removed, and what to do;
/// nothing once it was resumed, also where somebody pauses it again later.
pub(crate) fn said(rollout: &Rollout) -> Option<String> {
    let annotations = rollout.metadata.annotations.as_ref();
    let is_anew = annotations.is_some_and(|all| all.contains_key(ANEW_ANNOTATION));
    // Nobody has said anything of it yet where it has no status.
    let was_resumed = rollout.status.as_ref().is_some_and(|status| !status.made_anew);
    let name = rollout.metadata.name.as_deref().unwrap_or_default();
    (is_anew && rollout.spec.paused && !was_resumed).then(|| {
        format!(
            "its Rollout was removed, and tread made it anew: it is paused, since nobody knows any \
             more whether the former one was, and which limits, windows and taints of new nodes \
             (spec.nodeTaints) that had; set them again, and then: tread rollout resume {name}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tread_kube::api::rollout::RolloutStatus;

    #[test]
    fn a_rollout_in_place_of_one_that_was_removed_is_paused_and_the_first_one_is_not() {
        let made = |had_rollout| {
            let pool = Pool { name: "worker".to_owned(), had_rollout, ..Pool::default() };
            serde_json::from_value::<Rollout>(rollout(&pool)).unwrap()
        };
        let (first, anew) = (made(false), made(true));
        assert!(!first.spec.paused && said(&first).is_none());
        assert!(anew.spec.paused);
        let of = |paused: bool, made_anew: Option<bool>| {
            let mut rollout = anew.clone();
            rollout.spec.paused = paused;
            rollout.status =
                made_anew.map(|made_anew| RolloutStatus { made_anew, ..RolloutStatus::default() });
            said(&rollout)
        };
        let words = of(true, None).unwrap();
        assert!(words.contains("was removed"), "{words}");
        assert!(words.ends_with("tread rollout resume worker"), "{words}");
        assert_eq!(of(true, Some(true)), Some(words), "whatever else was set since");
        assert_eq!(of(false, Some(true)), None, "it was resumed");
        assert_eq!(of(true, Some(false)), None, "it was resumed, and paused again");
    }

    #[test]
    fn nobody_knows_the_taints_of_a_pool_whose_rollout_is_gone_or_was_made_anew() {
        let pool = Pool { name: "infra".to_owned(), had_rollout: true, ..Pool::default() };
        let mut anew: Rollout = serde_json::from_value(rollout(&pool)).unwrap();
        let why = node_taints("infra", None).unwrap_err();
        assert!(why.contains("of pool infra gets: its Rollout is not there"), "{why}");
        let why = node_taints("infra", Some(&anew)).unwrap_err();
        assert!(why.contains("spec.nodeTaints"), "{why}");
        assert!(why.ends_with("tread rollout resume infra"), "{why}");
        // Somebody has looked at it, and resumes it.
        anew.spec.paused = false;
        let taint = json!([{"key": "dedicated", "effect": "NoSchedule"}]);
        anew.spec.node_taints = serde_json::from_value(taint).unwrap();
        assert_eq!(node_taints("infra", Some(&anew)), Ok(&*anew.spec.node_taints));
        let first = Pool { had_rollout: false, ..pool };
        let first: Rollout = serde_json::from_value(rollout(&first)).unwrap();
        assert_eq!(node_taints("infra", Some(&first)), Ok(&[][..]));
    }
}
