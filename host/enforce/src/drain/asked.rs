//! How an admin wants the nodes of a pool to be drained.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::SignedDuration;
use kube::ResourceExt as _;
use std::collections::BTreeSet;
use std::time::Duration;
use tread_cluster::pools::Selects;
use tread_kube::api::rollout_drain::{AfterTimeout, DrainSettings, RefusedPods, SomePods};

/// How nodes are drained.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Asked {
    /// No pod is moved.
    pub skip: bool,
    /// How long a pod has to end, in place of what it asks for.
    pub grace: Option<Duration>,
    /// After how long a drain takes too long.
    pub timeout: Option<Duration>,
    /// Whether pods are deleted then.
    pub deletes: bool,
    /// Pods that stay.
    pub ignored: Vec<Which>,
    /// Pods that are waited for.
    pub waited_for: Vec<Which>,
    /// Pods that keep a node from being drained.
    pub refused: BTreeSet<RefusedPods>,
    /// How long after its end was due a pod is waited for.
    pub forget_after: Option<Duration>,
    /// How long is waited once the node has left the load balancers; nothing: it does not.
    pub leaves_balancers: Option<Duration>,
    /// Whether it cannot be followed: then no pod is asked to go.
    pub unreadable: bool,
}

/// Some pods.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Which {
    namespaces: BTreeSet<String>,
    /// Without: all of the namespaces.
    labels: Option<Selects>,
}

impl Which {
    pub(super) fn has(&self, pod: &Pod) -> bool {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        (self.namespaces.is_empty() || self.namespaces.contains(namespace))
            && self.labels.as_ref().is_none_or(|labels| labels.matches(pod.labels()))
    }
}

impl Asked {
    /// That it cannot be followed.
    pub fn unreadable() -> Asked {
        Asked { unreadable: true, ..Asked::default() }
    }

    /// What a Rollout says, or what of it cannot be followed: nobody guesses what was meant.
    pub fn of(given: Option<&DrainSettings>) -> Result<Asked, String> {
        let Some(given) = given else { return Ok(Asked::default()) };
        let some = |field: &str, all: &[SomePods]| -> Result<Vec<Which>, String> {
            all.iter().map(|it| which(it).map_err(|why| format!("drain.{field}: {why}"))).collect()
        };
        let asked = Asked {
            skip: given.skip,
            grace: length("drain.gracePeriod", given.grace_period.as_deref())?,
            timeout: length("drain.timeout", given.timeout.as_deref())?,
            deletes: given.after_timeout == Some(AfterTimeout::Delete),
            ignored: some("ignore", &given.ignore)?,
            waited_for: some("waitFor", &given.wait_for)?,
            refused: given.refuse.iter().copied().collect(),
            forget_after: length("drain.forgetAfter", given.forget_after.as_deref())?,
            leaves_balancers: length(
                "drain.leaveLoadBalancers",
                given.leave_load_balancers.as_deref(),
            )?,
            unreadable: false,
        };
        match asked.deletes && asked.timeout.is_none() {
            true => Err("drain.afterTimeout: Delete needs drain.timeout".to_owned()),
            false => Ok(asked),
        }
    }
}

pub(crate) fn length(field: &str, text: Option<&str>) -> Result<Option<Duration>, String> {
    let Some(text) = text else { return Ok(None) };
    let length = text.trim().parse::<SignedDuration>().ok();
    let length = length.and_then(|length| Duration::try_from(length).ok());
    match length {
        Some(length) => Ok(Some(length)),
        None => {
            let text: String = text.chars().take(32).collect();
            Err(format!("{field}: {text:?} is no length of time; write it as 30s or 1h 30m"))
        }
    }
}

fn which(some: &SomePods) -> Result<Which, String> {
    let given = some.pods.as_ref().filter(|given| {
        given.match_labels.as_ref().is_some_and(|it| !it.is_empty())
            || given.match_expressions.as_ref().is_some_and(|it| !it.is_empty())
    });
    let labels = match given.map(|given| Selects::of(Some(given))) {
        Some(Selects::Unreadable(why)) => return Err(why),
        labels => labels,
    };
    if labels.is_none() && some.namespaces.is_empty() {
        return Err("it would be each pod: say which, by namespaces or by labels".to_owned());
    }
    Ok(Which { namespaces: some.namespaces.iter().cloned().collect(), labels })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn asked(settings: Value) -> Result<Asked, String> {
        let settings: DrainSettings = serde_json::from_value(settings).unwrap();
        Asked::of(Some(&settings))
    }

    #[test]
    fn what_cannot_be_followed_is_said_and_not_guessed() {
        for (settings, why) in [
            (json!({"timeout": "soon"}), "drain.timeout: \"soon\" is no length"),
            (json!({"gracePeriod": "-5s"}), "drain.gracePeriod"),
            (json!({"afterTimeout": "Delete"}), "needs drain.timeout"),
            (json!({"ignore": [{}]}), "drain.ignore: it would be each pod"),
            (json!({"ignore": [{"pods": {"matchLabels": {}}}]}), "it would be each pod"),
            (
                json!({"waitFor": [{"pods": {"matchExpressions": [{"key": "a", "operator": "NotIn"}]}}]}),
                "drain.waitFor: NotIn of a needs values",
            ),
        ] {
            let error = asked(settings.clone()).unwrap_err();
            assert!(error.contains(why), "{settings}: {error}");
        }
        assert_eq!(Asked::of(None), Ok(Asked::default()));
        let all = asked(json!({"timeout": "1h 30m", "afterTimeout": "Delete", "gracePeriod": "5s",
            "refuse": ["Unmanaged"], "leaveLoadBalancers": "2m", "forgetAfter": "1h"}));
        let all = all.unwrap();
        assert_eq!(all.timeout, Some(Duration::from_secs(5400)));
        assert_eq!(all.leaves_balancers, Some(Duration::from_secs(120)));
        assert!(all.deletes && all.refused.contains(&RefusedPods::Unmanaged));
    }

    #[test]
    fn pods_are_chosen_by_namespace_and_labels_together() {
        let some = |value: Value| which(&serde_json::from_value(value).unwrap()).unwrap();
        let pod: Pod = serde_json::from_value(
            json!({"metadata": {"namespace": "one", "labels": {"app": "probe"}}}),
        )
        .unwrap();
        let labels = json!({"matchLabels": {"app": "probe"}});
        for (what, has) in [
            (json!({"namespaces": ["one"]}), true),
            (json!({"namespaces": ["one"], "pods": {}}), true),
            (json!({"namespaces": ["two", "one"], "pods": labels}), true),
            (json!({"pods": labels}), true),
            (json!({"namespaces": ["two"]}), false),
            (json!({"namespaces": ["two"], "pods": labels}), false),
            (
                json!({"pods": {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}}),
                false,
            ),
        ] {
            assert_eq!(some(what.clone()).has(&pod), has, "{what}");
        }
    }
}
