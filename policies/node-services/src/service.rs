//! Which key of which file takes effect how.
//!
//! A key is known by its exact spelling. CRI-O takes `Cgroup_Manager` for
//! `cgroup_manager` and passes over what it does not know, which may be what
//! the next version does know: a reboot, both.

use crate::difference::Difference;
use crate::says::Says;
use crate::{duration, reload};
use tread_policy_formats::Value;

/// What makes a key take effect, from the least disruptive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cost {
    Reload,
    Restart,
    /// A restart, after which a pull that worked may fail, or pods that run have to go.
    Drain,
    Reboot,
}

/// What all files of CRI-O say, as far as the cost of a difference in one of them hangs on it.
pub(crate) struct Others<'a> {
    /// Whether another file defines a runtime handler.
    pub(crate) define: &'a dyn Fn(&str) -> bool,
    /// What counts for [`PULL_TIMEOUT`] before the change and after it.
    pub(crate) pull_timeouts: &'a dyn Fn() -> [&'a Says; 2],
}

/// A service, and the keys of its configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    Crio,
    Kubelet,
    Storage,
}

impl Service {
    /// Whose configuration a file is.
    pub(crate) fn of(path: &str) -> Option<Service> {
        match path {
            "/etc/kubernetes/kubelet.conf" => Some(Service::Kubelet),
            "/etc/containers/storage.conf" => Some(Service::Storage),
            "/etc/crio/crio.conf" => Some(Service::Crio),
            path if path.starts_with("/etc/crio/crio.conf.d/") => Some(Service::Crio),
            _ => None,
        }
    }

    /// The unit that reads it.
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Service::Kubelet => "kubelet.service",
            Service::Crio | Service::Storage => "crio.service",
        }
    }

    /// Its name in a sentence.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Service::Kubelet => "the kubelet",
            Service::Crio | Service::Storage => "CRI-O",
        }
    }

    /// What a difference costs. What is not known costs a reboot.
    pub(crate) fn cost(self, difference: &Difference, others: &Others<'_>) -> Cost {
        match self {
            Service::Crio => crio(difference, others),
            Service::Kubelet => kubelet(&difference.path),
            Service::Storage => storage(&difference.path),
        }
    }

    /// Whether a table holds settings and nothing else: an empty one says nothing.
    pub(crate) fn is_section(self, path: &[&str]) -> bool {
        match (self, path) {
            (Service::Crio, ["crio"]) => true,
            (Service::Crio, ["crio", table]) => CRIO_SECTIONS.contains(table),
            (
                Service::Storage,
                ["storage"] | ["storage", "options"] | ["storage", "options", "overlay"],
            ) => true,
            _ => false,
        }
    }
}

const CRIO_SECTIONS: [&str; 7] =
    ["api", "image", "metrics", "network", "runtime", "stats", "tracing"];

/// What is read at the start, and holds for containers that start later. Not
/// here: what running containers were made with, the directories in which
/// their monitors meet CRI-O, such as `container_exits_dir`, and what is taken away from
/// them when CRI-O starts or they stop: their classes (`rdt_config_file`), their processors
/// (`shared_cpuset`, `irqbalance_config_file`) and their ports (`disable_hostport_mapping`).
const CRIO_RUNTIME_RESTART: [&str; 39] = [
    "absent_mount_sources_to_reject",
    "add_inheritable_capabilities",
    "additional_devices",
    "allowed_devices",
    "apparmor_profile",
    "bind_mount_prefix",
    "blockio_config_file",
    "blockio_reload",
    "cdi_spec_dirs",
    "conmon",
    "conmon_cgroup",
    "conmon_env",
    "ctr_stop_timeout",
    "default_capabilities",
    "default_env",
    "default_mounts_file",
    "default_sysctls",
    "default_ulimits",
    "device_ownership_from_security_context",
    "drop_infra_ctr",
    "enable_criu_support",
    "enable_pod_events",
    "hooks_dir",
    "hostnetwork_disable_selinux",
    "infra_ctr_cpuset",
    "irqbalance_config_restore_file",
    "log_size_max",
    "log_to_journald",
    "minimum_mappable_gid",
    "minimum_mappable_uid",
    "no_pivot",
    "pids_limit",
    "pinns_path",
    "privileged_seccomp_profile",
    "read_only",
    "seccomp_profile",
    "seccomp_use_default_when_empty",
    "timezone",
    "workloads",
];
const CRIO_IMAGE_RESTART: [&str; 4] =
    ["auto_reload_registries", "image_volumes", "oci_artifact_mount_support", "pinned_images"];
/// How long a pull may make no progress before it is cancelled. Without it, and with zero, none is.
pub(crate) const PULL_TIMEOUT: [&str; 2] = ["image", "pull_progress_timeout"];
/// With which images, secrets, keys, signatures and folders pulls succeed.
const CRIO_RUNTIME_DRAIN: [&str; 2] = ["decryption_keys_path", "separate_pull_cgroup"];
const CRIO_IMAGE_DRAIN: [&str; 6] = [
    "big_files_temporary_dir",
    "default_transport",
    "global_auth_file",
    "namespaced_auth_dir",
    "signature_policy",
    "signature_policy_dir",
];
const CRIO_METRICS_RESTART: [&str; 7] = [
    "enable_metrics",
    "metrics_cert",
    "metrics_collectors",
    "metrics_host",
    "metrics_key",
    "metrics_port",
    "metrics_socket",
];
/// Handlers that CRI-O has where no file defines them, or that a file of the system defines.
const CRIO_HANDLERS: [&str; 2] = ["crun", "runc"];

/// What a difference below the table of runtime handlers costs. CRI-O's manual says that it reads them
/// again when it is reloaded; a handler that is new then is not found before CRI-O starts again.
fn handler(name: &str, difference: &Difference, others: &Others<'_>) -> Cost {
    // The name of a handler is the fourth key of the path.
    let (was_there, is_there) = (difference.known >= 4, difference.kept >= 4);
    // Of one that another file defines, too, nothing would be left but what this file says.
    let is_new = !was_there && !CRIO_HANDLERS.contains(&name) && !(others.define)(name);
    // Running containers are found again, and told how to stop, by what their handler says once CRI-O
    // starts again. One that CRI-O does not take, for whatever it says, is none.
    if is_there && is_new { Cost::Restart } else { Cost::Reboot }
}

fn crio(difference: &Difference, others: &Others<'_>) -> Cost {
    let restart: &[&str] = match difference.path.as_slice() {
        ["crio", section, key] if reload::is_one(section, key) => return Cost::Reload,
        ["crio", "runtime", "runtimes", name, ..] => {
            return handler(name, difference, others);
        }
        ["crio", "runtime", "workloads", ..] => return Cost::Restart,
        ["crio", "runtime", key] if CRIO_RUNTIME_DRAIN.contains(key) => return Cost::Drain,
        ["crio", "runtime", _] => &CRIO_RUNTIME_RESTART,
        // With another mode short names that several registries may know cannot be
        // pulled. Without the key CRI-O has such a mode, or another file says it.
        ["crio", "image", "short_name_mode"] => {
            let asks_all = difference.after.and_then(Value::as_text) == Some("disabled");
            return if asks_all { Cost::Restart } else { Cost::Drain };
        }
        ["crio", "image", "insecure_registries"] => {
            return if has_all(difference) { Cost::Restart } else { Cost::Drain };
        }
        ["crio", "image", "pull_progress_timeout"] => {
            return if is_as_patient((others.pull_timeouts)()) {
                Cost::Restart
            } else {
                Cost::Drain
            };
        }
        ["crio", "image", key] if CRIO_IMAGE_DRAIN.contains(key) => return Cost::Drain,
        ["crio", "image", _] => &CRIO_IMAGE_RESTART,
        ["crio", "metrics", _] => &CRIO_METRICS_RESTART,
        // When CRI-O starts it takes pods that run out of all networks but the default one of then,
        // and asks that one for their addresses: pods that have none are made anew.
        // Of each plugin the first directory counts that has it.
        ["crio", "network", "plugin_dirs"] if goes_on(difference) => return Cost::Restart,
        _ => &[],
    };
    match difference.path.last() {
        Some(key) if restart.contains(key) => Cost::Restart,
        _ => Cost::Reboot,
    }
}

/// Whether a list has all that it had, in whatever order.
fn has_all(difference: &Difference) -> bool {
    lists(difference).is_some_and(|(before, after)| before.iter().all(|item| after.contains(item)))
}

/// Whether a list begins with all that it had, in the same order.
fn goes_on(difference: &Difference) -> bool {
    lists(difference).is_some_and(|(before, after)| after.starts_with(before))
}

/// A list on both sides. Of one that was not there it is not known what it was: another file may have a
/// list that counts until then.
fn lists<'d>(difference: &Difference<'d>) -> Option<(&'d [Value], &'d [Value])> {
    match (difference.before, difference.after) {
        (Some(Value::List(before)), Some(Value::List(after))) => Some((before, after)),
        _ => None,
    }
}

/// Whether no pull is cancelled earlier than before.
fn is_as_patient([before, after]: [&Says; 2]) -> bool {
    matches!((patience(before), patience(after)), (Some(before), Some(after)) if before <= after)
}

/// After how many nanoseconds a pull is cancelled. None: it is not known, or no pull would go on.
fn patience(says: &Says) -> Option<u64> {
    let nanoseconds = match says {
        Says::Nothing => Some(0),
        Says::Something => None,
        Says::Value(Value::Text(text)) => duration::nanoseconds(text),
        Says::Value(Value::Other(number)) => number.parse().ok(),
        Says::Value(_) => None,
    }?;
    Some(if nanoseconds == 0 { u64::MAX } else { nanoseconds })
}

/// Fields that the kubelet reads when it starts and keeps no state of.
const KUBELET_RESTART: [&str; 31] = [
    "logging",
    "imageMinimumGCAge",
    "imageMaximumGCAge",
    "imageGCHighThresholdPercent",
    "imageGCLowThresholdPercent",
    "containerLogMaxSize",
    "containerLogMaxFiles",
    "containerLogMaxWorkers",
    "containerLogMonitorInterval",
    "evictionPressureTransitionPeriod",
    "evictionMaxPodGracePeriod",
    "evictionMinimumReclaim",
    "kubeAPIQPS",
    "kubeAPIBurst",
    "eventRecordQPS",
    "eventBurst",
    "registryPullQPS",
    "registryBurst",
    "serializeImagePulls",
    "maxParallelImagePulls",
    "streamingConnectionIdleTimeout",
    "syncFrequency",
    "volumeStatsAggPeriod",
    "nodeStatusUpdateFrequency",
    "nodeStatusReportFrequency",
    "nodeLeaseDurationSeconds",
    "tlsMinVersion",
    "tlsCipherSuites",
    "shutdownGracePeriod",
    "shutdownGracePeriodCriticalPods",
    "shutdownGracePeriodByPodPriority",
];

/// How many pods there may be, and when they are put off the node. What is kept free is taken off what
/// pods may use, too, and a kubelet that starts looks again whether the pods that run fit: those that
/// do not are ended at once, whatever their budgets say.
const KUBELET_DRAIN: [&str; 6] = [
    "evictionHard",
    "evictionSoft",
    "evictionSoftGracePeriod",
    "mergeDefaultEvictionSettings",
    "maxPods",
    "podsPerCore",
];

/// The managers of CPUs, memory and topology keep state files that refuse a
/// changed policy; so the rest costs a reboot.
fn kubelet(path: &[&str]) -> Cost {
    match path.first() {
        Some(field) if KUBELET_DRAIN.contains(field) => Cost::Drain,
        Some(field) if KUBELET_RESTART.contains(field) => Cost::Restart,
        _ => Cost::Reboot,
    }
}

/// Options of a pull matter to the next one; all else to what is stored.
fn storage(path: &[&str]) -> Cost {
    match path {
        ["storage", "options", "pull_options", ..] => Cost::Restart,
        _ => Cost::Reboot,
    }
}
