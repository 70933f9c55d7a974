//! What Prometheus can ask: names are a promise, so they all stand here.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use tread_model::verdict::FailureKind;

/// A policy, by the name that it has in plans.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfPolicy {
    /// Its name.
    pub policy: String,
}

/// What became of a change.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Decided {
    /// Who decided; empty: nobody.
    pub policy: String,
    /// decided, fallback, failed or refused.
    pub outcome: &'static str,
}

/// All outcomes that are counted.
const OUTCOMES: [&str; 4] = ["decided", "fallback", "failed", "refused"];

/// A failure of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Failed {
    /// Which policy.
    pub policy: String,
    /// The failure's stable name.
    pub failure: String,
}

/// What state policies are in.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct InState {
    /// Loaded, LastGood, Failed, …
    pub state: &'static str,
}

/// What is said of boot images.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct WithVerdict {
    /// Passes, Warns, Waits or Blocks.
    pub verdict: &'static str,
}

/// What plans cost.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct WithEffect {
    /// none, reload, restart, drain, reboot or refuse.
    pub effect: &'static str,
}

/// What the API server was asked for in vain.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ApiError {
    /// list, watch, get, create, update, patch or delete.
    pub verb: &'static str,
    /// The kind of the objects.
    pub kind: &'static str,
    /// The HTTP status, or 0 if no answer came.
    pub code: u16,
}

/// Objects of a kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfKind {
    /// The kind of the objects.
    pub kind: &'static str,
}

/// All that is measured. Clones share everything.
#[derive(Debug, Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    /// The policies of which something is measured.
    measured: Arc<Mutex<BTreeSet<String>>>,
    /// Changes by who decided on them, and how.
    pub decisions: Family<Decided, Counter>,
    /// How long calls of policies took, in µs.
    pub sandbox_time: Family<OfPolicy, Histogram, fn() -> Histogram>,
    /// What calls of policies used.
    pub fuel: Family<OfPolicy, Histogram, fn() -> Histogram>,
    /// Failures of policies, by their stable names.
    pub failures: Family<Failed, Counter>,
    /// Policies by state.
    pub policies: Family<InState, Gauge>,
    /// Pending plans by effect.
    pub plans: Family<WithEffect, Gauge>,
    /// Nodes in pending plans that will not reboot, which "reboot always" would
    /// cost: by whoever rolls it out. Those that are refused are not among them.
    pub reboots_avoided: Gauge,
    /// Nodes in pending plans that will.
    pub reboots: Gauge,
    /// How long previews took, in µs, with fetching what is compared.
    pub preview_time: Histogram,
    /// How long warnings at admission took, in µs.
    pub warning_time: Histogram,
    /// What the API server was asked for in vain.
    pub api_errors: Family<ApiError, Counter>,
    /// Objects that were seen and could not be read.
    pub unreadable: Family<OfKind, Counter>,
    /// 1 on the replica that writes.
    pub leads: Gauge,
    /// Machine resources by what is said of their boot images.
    pub boot_images: Family<WithVerdict, Gauge>,
    /// 1: boot images are too old for an update.
    pub boot_images_block: Gauge,
    /// 1: an admin takes the risk of boot images that are too old.
    pub boot_images_none: Gauge,
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics::new()
    }
}

impl Metrics {
    /// Everything at zero.
    pub fn new() -> Metrics {
        let micros: fn() -> Histogram = || Histogram::new(exponential_buckets(8.0, 2.0, 20));
        let fuel: fn() -> Histogram = || Histogram::new(exponential_buckets(1000.0, 4.0, 12));
        let mut metrics = Metrics {
            registry: Arc::default(),
            measured: Arc::default(),
            decisions: Family::default(),
            sandbox_time: Family::new_with_constructor(micros),
            fuel: Family::new_with_constructor(fuel),
            failures: Family::default(),
            policies: Family::default(),
            plans: Family::default(),
            reboots_avoided: Gauge::default(),
            reboots: Gauge::default(),
            preview_time: micros(),
            warning_time: micros(),
            api_errors: Family::default(),
            unreadable: Family::default(),
            leads: Gauge::default(),
            boot_images: Family::default(),
            boot_images_block: Gauge::default(),
            boot_images_none: Gauge::default(),
        };
        let mut registry = Registry::with_prefix("tread");
        let m = &metrics;
        registry.register(
            "decisions",
            "Changes by who decided on them, and how",
            m.decisions.clone(),
        );
        registry.register(
            "sandbox_time_microseconds",
            "How long calls of policies took",
            m.sandbox_time.clone(),
        );
        registry.register("sandbox_fuel", "What calls of policies used", m.fuel.clone());
        registry.register("policy_failures", "Failures of policies by name", m.failures.clone());
        registry.register("policies", "Policies by state", m.policies.clone());
        registry.register("pending_plans", "Pending plans by effect", m.plans.clone());
        registry.register(
            "reboots_avoided",
            "Nodes in pending plans that are spared the reboot of every change",
            m.reboots_avoided.clone(),
        );
        registry.register("reboots", "Nodes in pending plans that reboot", m.reboots.clone());
        registry.register(
            "preview_time_microseconds",
            "How long previews took, with fetching what is compared",
            m.preview_time.clone(),
        );
        registry.register(
            "warning_time_microseconds",
            "How long warnings at admission took",
            m.warning_time.clone(),
        );
        registry.register(
            "api_errors",
            "What the API server was asked for in vain",
            m.api_errors.clone(),
        );
        registry.register(
            "unreadable_objects",
            "Objects that were seen and could not be read, and are left out",
            m.unreadable.clone(),
        );
        registry.register("leads", "1 on the replica that writes", m.leads.clone());
        registry.register(
            "boot_images",
            "Machine resources by what is said of their boot images",
            m.boot_images.clone(),
        );
        registry.register(
            "boot_images_block",
            "1: boot images are too old for an update",
            m.boot_images_block.clone(),
        );
        registry.register(
            "boot_images_none",
            "1: an admin takes the risk of boot images that are too old",
            m.boot_images_none.clone(),
        );
        metrics.registry = Arc::new(registry);
        metrics
    }

    /// The text that Prometheus reads.
    pub fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }

    /// Notes that something is measured of a policy.
    pub fn measures(&self, policy: &str) {
        let mut measured = self.measured.lock().unwrap_or_else(PoisonError::into_inner);
        if !policy.is_empty() && !measured.contains(policy) {
            measured.insert(policy.to_owned());
        }
    }

    /// Forgets what was measured of all policies but these: their names are
    /// strangers' texts, and each new version may have another one.
    pub fn keep_policies(&self, there: &BTreeSet<&str>) {
        let mut measured = self.measured.lock().unwrap_or_else(PoisonError::into_inner);
        measured.retain(|policy| {
            let is_there = there.contains(policy.as_str());
            if !is_there {
                self.forget(policy);
            }
            is_there
        });
    }

    fn forget(&self, policy: &str) {
        let policy = policy.to_owned();
        let of_policy = OfPolicy { policy: policy.clone() };
        self.sandbox_time.remove(&of_policy);
        self.fuel.remove(&of_policy);
        for outcome in OUTCOMES {
            self.decisions.remove(&Decided { policy: policy.clone(), outcome });
        }
        for kind in FailureKind::ALL {
            let failure = kind.name().to_owned();
            self.failures.remove(&Failed { policy: policy.clone(), failure });
        }
    }

    /// Counts a request that failed.
    pub fn api_error(&self, verb: &'static str, kind: &'static str, error: &kube::Error) {
        let code = match error {
            kube::Error::Api(status) => status.code,
            _ => 0,
        };
        self.api_errors.get_or_create(&ApiError { verb, kind, code }).inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_that_come_and_go_leave_nothing_behind() {
        let metrics = Metrics::new();
        let of_nobody = Decided { policy: String::new(), outcome: "fallback" };
        metrics.decisions.get_or_create(&of_nobody).inc();
        for number in 0..1000 {
            let policy = format!("stranger-{number}");
            metrics.measures(&policy);
            let of_policy = OfPolicy { policy: policy.clone() };
            metrics.sandbox_time.get_or_create(&of_policy).observe(1.0);
            metrics.fuel.get_or_create(&of_policy).observe(1.0);
            for outcome in OUTCOMES {
                metrics.decisions.get_or_create(&Decided { policy: policy.clone(), outcome }).inc();
            }
            let failure = FailureKind::Trap.name().to_owned();
            metrics.failures.get_or_create(&Failed { policy: policy.clone(), failure }).inc();
            metrics.keep_policies(&BTreeSet::from([policy.as_str()]));
        }
        let text = metrics.text().unwrap();
        assert!(text.contains("stranger-999"), "{text}");
        assert!(text.contains("tread_decisions_total{policy=\"\",outcome=\"fallback\"} 1"));
        let mut strangers = text.lines().filter(|line| line.contains("stranger-"));
        assert!(strangers.all(|line| line.contains("stranger-999")), "{text}");
    }
}
