//! Which key of which file takes effect how.

/// What makes a key take effect, from the least disruptive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cost {
    Reload,
    Restart,
    Reboot,
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

    /// What a change of the dotted `key` costs. What is not known costs a reboot.
    pub(crate) fn cost(self, key: &str) -> Cost {
        match self {
            Service::Crio => crio(key),
            Service::Kubelet => kubelet(key),
            Service::Storage => storage(key),
        }
    }
}

/// CRI-O's manual marks what it reads again on a reload; the rest of these
/// tables is read when it starts and holds for containers that start later.
fn crio(key: &str) -> Cost {
    let Some((table, rest)) = key.strip_prefix("crio.").and_then(|key| key.split_once('.')) else {
        return Cost::Reboot;
    };
    let (first, _) = rest.split_once('.').unwrap_or((rest, ""));
    match (table, first) {
        ("runtime", "log_level" | "log_filter" | "default_runtime" | "runtimes") => Cost::Reload,
        ("image", "pause_image" | "pause_image_auth_file" | "pause_command") => Cost::Reload,
        // Containers that run were made with the old ones.
        ("runtime", "cgroup_manager" | "selinux" | "uid_mappings" | "gid_mappings") => Cost::Reboot,
        ("runtime" | "image" | "metrics" | "network", _) => Cost::Restart,
        _ => Cost::Reboot,
    }
}

/// Fields that the kubelet reads when it starts and keeps no state of.
const KUBELET_RESTART: [&str; 30] = [
    "logging",
    "imageMinimumGCAge",
    "imageMaximumGCAge",
    "imageGCHighThresholdPercent",
    "imageGCLowThresholdPercent",
    "containerLogMaxSize",
    "containerLogMaxFiles",
    "containerLogMaxWorkers",
    "containerLogMonitorInterval",
    "evictionHard",
    "evictionSoft",
    "evictionSoftGracePeriod",
    "evictionPressureTransitionPeriod",
    "evictionMaxPodGracePeriod",
    "evictionMinimumReclaim",
    "mergeDefaultEvictionSettings",
    "kubeAPIQPS",
    "kubeAPIBurst",
    "eventRecordQPS",
    "eventBurst",
    "registryPullQPS",
    "registryBurst",
    "nodeStatusUpdateFrequency",
    "nodeStatusReportFrequency",
    "nodeLeaseDurationSeconds",
    "tlsMinVersion",
    "tlsCipherSuites",
    "shutdownGracePeriod",
    "shutdownGracePeriodCriticalPods",
    "shutdownGracePeriodByPodPriority",
];

/// The managers of CPUs, memory and topology keep state files that refuse a
/// changed policy; so the rest costs a reboot.
fn kubelet(key: &str) -> Cost {
    let (field, _) = key.split_once('.').unwrap_or((key, ""));
    if KUBELET_RESTART.contains(&field) { Cost::Restart } else { Cost::Reboot }
}

/// Options of a pull matter to the next one; all else to what is stored.
fn storage(key: &str) -> Cost {
    let pull = key.strip_prefix("storage.options.pull_options");
    if pull.is_some_and(|rest| rest.is_empty() || rest.starts_with('.')) {
        Cost::Restart
    } else {
        Cost::Reboot
    }
}
