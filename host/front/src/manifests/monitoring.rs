//! What Prometheus' operator takes: what to scrape, and what to wake somebody for.

use super::grants::READ;
use super::options::{Mode, Options};
use super::words::{named, selector};
use crate::names::NAME;
use serde_json::{Value, json};

/// The role by which a Prometheus finds tread's pods.
const ROLE: &str = "tread-monitoring";

pub(super) fn service_monitor(options: &Options) -> Value {
    json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": named(NAME, Some(&options.namespace)),
        "spec": {
            "selector": {"matchLabels": selector()},
            "endpoints": [{"port": "http", "path": "/metrics", "interval": "30s"}],
        },
    })
}

/// What a Prometheus needs so that it finds what to scrape: OpenShift's own may look into no
/// namespace that does not let it.
pub(super) fn role(options: &Options) -> Value {
    let rule = |group: &str, resources: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": READ});
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": named(ROLE, Some(&options.namespace)),
        "rules": [
            rule("", &["endpoints", "pods", "services"]),
            rule("discovery.k8s.io", &["endpointslices"]),
        ],
    })
}

/// For the Prometheus that OpenShift brings. Elsewhere nobody is called so.
pub(super) fn role_binding(options: &Options) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": named(ROLE, Some(&options.namespace)),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": ROLE},
        "subjects": [{
            "kind": "ServiceAccount",
            "name": "prometheus-k8s",
            "namespace": "openshift-monitoring",
        }],
    })
}

/// What it means besides, where tread rolls out, that nobody leads.
const STANDS_STILL: &str =
    " Rollouts stand still: nodes that are drained stay so, and machines that boot wait.";

/// Name, expression, for how long, severity, and what to do.
type Alert = (&'static str, &'static str, &'static str, &'static str, &'static str);

const ALERTS: &[Alert] = &[
    (
        "TreadDown",
        "absent(up{job=\"tread\"} == 1)",
        "10m",
        "warning",
        "No replica of tread answers: nothing is previewed and nobody is warned. Nobody who applies a change \
         is blocked by that.{{rollouts}} See kubectl -n {{namespace}} get pods, and the log of the one that \
         fails.",
    ),
    (
        "TreadNoLeader",
        "sum(tread_leads) < 1",
        "5m",
        "warning",
        "No replica of tread leads, so none writes plans or states of policies.{{rollouts}} /readyz of each \
         says why; see also kubectl -n {{namespace}} get lease tread.",
    ),
    (
        "TreadPolicyFailed",
        "max by (name, state) (tread_policy_state{decides=\"reboots\"}) > 0",
        "15m",
        "warning",
        "The policy {{ $labels.name }} cannot decide ({{ $labels.state }}): what it claims, as far as that is \
         known, costs reboots. kubectl get dpol {{ $labels.name }} -o yaml says why.",
    ),
    (
        "TreadPolicyLastGood",
        "max by (name) (tread_policy_state{decides=\"last-good\"}) > 0",
        "1h",
        "info",
        "The newest version of the policy {{ $labels.name }} is bad or waits for approval, and the one before \
         it decides. kubectl get dpol {{ $labels.name }} -o yaml says why.",
    ),
    (
        // It is made anew 60 days before it ends. 0: there is none yet.
        "TreadCertificateEnds",
        "min(tread_certificate_not_after_timestamp_seconds) - time() < 14 * 86400",
        "1h",
        "warning",
        "The certificate of tread's TLS port ends within two weeks, has ended, or was never made, and nobody \
         makes it anew: nobody will be warned at admission. /readyz says why, and until when there is one.",
    ),
    (
        "TreadApiErrors",
        // Of a kind that is not installed it is asked from time to time, and what somebody else wrote
        // first is read again.
        "sum(rate(tread_api_errors_total{code!~\"404|409\"}[10m])) > 0.1",
        "30m",
        "warning",
        "The API server refuses what tread asks for, or does not answer. The labels verb, kind and code of \
         tread_api_errors_total say what; /readyz says what that means.",
    ),
    (
        "TreadBootImagesTooOld",
        "max(tread_boot_images_block) > 0",
        "15m",
        "warning",
        "Boot images are too old for an update to the next minor version: new machines may not start after \
         it. tread bootimages lists them, and tread bootimages patch RESOURCE says what to do.",
    ),
    (
        "TreadBootImagesNotJudged",
        "max(tread_boot_images_none) > 0",
        "1h",
        "info",
        "spec.mode of BootImages cluster is None: nothing is held back for boot images that are too old, and \
         new machines may not start.",
    ),
    (
        "TreadNodesStray",
        "max(tread_strayed_nodes) > 0",
        "5m",
        "warning",
        "Nodes booted into one pool and count in another, which gives them its own config: that costs \
         reboots there and back. tread pools names each of them with the command that ends it.",
    ),
    (
        "TreadMachinesWillStray",
        "max(tread_straying_machine_sets) > 0",
        "1h",
        "info",
        "Machines of a MachineSet will boot into one pool, and their nodes will count in another: that costs \
         reboots there and back. tread pools names each of them with the patch that prevents it.",
    ),
    (
        "TreadRolloutFailed",
        // Elsewhere than in the mode enforce nothing is counted by these.
        "max by (pool) (tread_rollout_nodes{state=\"failed\"} or \
         tread_rollout_waiting_nodes{reason=~\"halted|went-back|step-failed\"}) > 0",
        "5m",
        "warning",
        "Nodes of the pool {{ $labels.pool }} failed, or others wait since some did. tread rollout status \
         {{ $labels.pool }} says which, and why; mend them or the config, and tread rollout retry \
         {{ $labels.pool }} begins them again.",
    ),
    (
        // From there on claims of nodes go that are gone for long.
        "TreadClaimsNearlyFull",
        "max(tread_claims_room_percent) > 85",
        "1h",
        "warning",
        "So many nodes have joined by claims that soon no other one can: new nodes will be held. Remove Nodes \
         that are gone for good, whose claims make room about a day later.",
    ),
];

/// What an alert says, of tread in this namespace and mode.
fn said(text: &str, namespace: &str, mode: Mode) -> String {
    let rollouts = match mode {
        Mode::Advise => "",
        Mode::Enforce => STANDS_STILL,
    };
    text.replace("{{namespace}}", namespace).replace("{{rollouts}}", rollouts)
}

pub(super) fn alerts(options: &Options) -> Value {
    let rules: Vec<Value> = ALERTS
        .iter()
        .map(|(name, expression, lasts, severity, text)| {
            json!({
                "alert": name,
                "expr": expression,
                "for": lasts,
                "labels": {"severity": severity},
                "annotations": {"summary": said(text, &options.namespace, options.mode)},
            })
        })
        .collect();
    json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": named(NAME, Some(&options.namespace)),
        "spec": {"groups": [{"name": NAME, "rules": rules}]},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tread_kube::metrics::{ApiError, Metrics, NodesOf, StateOf, WaitingFor};
    use tread_model::rollout::Why;

    #[test]
    fn alerts_ask_only_for_what_tread_counts() {
        let metrics = Metrics::new();
        metrics.leads.set(1);
        let (name, pool) = ("a".to_owned(), "worker".to_owned());
        metrics.set_states([StateOf { name, state: "Failed", decides: "reboots" }].into_iter());
        metrics.api_errors.get_or_create(&ApiError { verb: "get", kind: "Lease", code: 0 }).inc();
        let failed = NodesOf { pool: pool.clone(), state: "failed" };
        metrics.rollout_nodes.get_or_create(&failed).set(1);
        metrics.rollout_waiting.get_or_create(&WaitingFor { pool, reason: "halted" }).set(1);
        let text = metrics.text().unwrap();
        for (name, expression, ..) in ALERTS {
            let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let asked: Vec<&str> = words.filter(|word| word.starts_with("tread_")).collect();
            for asked in &asked {
                let is_it = |line: &str| line.split(['{', ' ']).next() == Some(*asked);
                assert!(text.lines().any(is_it), "{name}: {asked} is not in\n{text}");
            }
            assert!(!asked.is_empty() || expression.contains("up{job=\"tread\"}"), "{name}");
        }
    }

    #[test]
    fn nobody_is_woken_for_what_costs_nothing_or_is_an_answer() {
        let asks = |wanted: &str| ALERTS.iter().find(|(name, ..)| *name == wanted).unwrap().1;
        for (alert, asks_for) in [
            // A policy that an admin only tries, or that waits for an approval, decides for nobody.
            ("TreadPolicyFailed", "tread_policy_state{decides=\"reboots\"}"),
            ("TreadPolicyLastGood", "tread_policy_state{decides=\"last-good\"}"),
            ("TreadApiErrors", "tread_api_errors_total{code!~\"404|409\"}"),
        ] {
            assert!(asks(alert).contains(asks_for), "{alert}");
        }
    }

    #[test]
    fn whoever_is_woken_for_a_rollout_is_told_which_command_says_why() {
        let told = ALERTS.iter().find(|(name, ..)| *name == "TreadRolloutFailed").unwrap();
        for reason in ["halted", "went-back", "step-failed"] {
            assert!(Why::WORDS.contains(&reason) && told.1.contains(reason), "{reason}");
        }
        for command in ["tread rollout status", "tread rollout retry"] {
            assert!(told.4.contains(command), "{command}");
        }
    }

    #[test]
    fn what_an_alert_says_is_true_of_the_mode_that_is_installed() {
        for (name, .., text) in ALERTS {
            let [advises, enforces] =
                [Mode::Advise, Mode::Enforce].map(|mode| said(text, "tread-system", mode));
            for told in [&advises, &enforces] {
                for no_part in ["{{rollouts}}", "{{namespace}}", "Nothing is blocked"] {
                    assert!(!told.contains(no_part), "{no_part}: {told}");
                }
            }
            // Where nobody answers or leads, nobody goes on with a rollout.
            let stands_still = ["TreadDown", "TreadNoLeader"].contains(name);
            assert_eq!(enforces.contains(STANDS_STILL), stands_still, "{enforces}");
            assert_eq!(enforces.replace(STANDS_STILL, ""), advises);
        }
    }

    #[test]
    fn an_alert_names_only_what_its_expression_tells_apart() {
        for (name, expression, _, _, text) in ALERTS {
            let by = expression.split_once("by (").and_then(|(_, rest)| rest.split_once(')'));
            let by: Vec<&str> = by.map(|(by, _)| by.split(", ").collect()).unwrap_or_default();
            let named = text.split("$labels.").skip(1);
            for label in named.filter_map(|rest| rest.split(' ').next()) {
                assert!(by.contains(&label), "{name}: {label} is not among {by:?}");
            }
        }
        let named = ALERTS.iter().filter(|(.., text)| text.contains("{{ $labels.name }}"));
        assert_eq!(named.count(), 2, "of a policy it is said which one");
    }
}
