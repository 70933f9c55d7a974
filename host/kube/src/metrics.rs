//! What Prometheus can ask: names are a promise, so they all stand here.

mod labels;
mod process;

use crate::api::disruption_policy::State;
use labels::OUTCOMES;
use process::Process;
use prometheus_client::encoding::EncodeMetric as _;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use tread_model::verdict::FailureKind;

pub use labels::{
    ApiError, Decided, Failed, InPool, InState, MachineAsked, NodesOf, OfKind, OfPolicy, StateOf,
    Turned, UpdatesBy, WaitingFor, WithEffect, WithVerdict,
};

/// All that is measured. Clones share everything.
#[derive(Debug, Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    /// The policies of which something is measured.
    measured: Arc<Mutex<BTreeSet<String>>>,
    /// Changes by who decided on them, and how.
    pub decisions: Family<Decided, Counter>,
    /// How long calls of policies took, in seconds.
    pub sandbox_time: Family<OfPolicy, Histogram, fn() -> Histogram>,
    /// What calls of policies used.
    pub fuel: Family<OfPolicy, Histogram, fn() -> Histogram>,
    /// Calls of policies that were offered a secret, which they could tell by what
    /// they use: of those there are neither times nor fuel.
    pub calls_with_secrets: Family<OfPolicy, Counter>,
    /// Failures of policies, by their stable names.
    pub failures: Family<Failed, Counter>,
    /// Policies by state.
    pub policies: Family<InState, Gauge>,
    /// 1 for the state that a policy is in.
    pub states: Family<StateOf, Gauge>,
    /// What [`Metrics::states`] has.
    stated: Arc<Mutex<BTreeSet<StateOf>>>,
    /// Pending plans by effect.
    pub plans: Family<WithEffect, Gauge>,
    /// Nodes in pending plans that will not reboot, which "reboot always" would
    /// cost: by whoever rolls it out. Those that are refused are not among them.
    pub reboots_avoided: Gauge,
    /// Pools of which the plans could not be made as things are.
    pub unplanned_pools: Gauge,
    /// Nodes in pending plans that will.
    pub reboots: Gauge,
    /// How long previews took, in seconds, with fetching what is compared.
    pub preview_time: Histogram,
    /// Those of which it is not said how long they took, since a policy was offered
    /// a secret.
    pub untimed_previews: Counter,
    /// How long warnings at admission took, in seconds.
    pub warning_time: Histogram,
    /// As [`Metrics::untimed_previews`].
    pub untimed_warnings: Counter,
    /// What the API server was asked for in vain.
    pub api_errors: Family<ApiError, Counter>,
    /// Objects that were seen and could not be read.
    pub unreadable: Family<OfKind, Counter>,
    /// Connections for which there was no room.
    pub turned_away: Family<Turned, Counter>,
    /// What machines that boot asked for, and what became of it.
    pub machines_asked: Family<MachineAsked, Counter>,
    /// How much of the room for claims of nodes is taken, in per cent.
    pub claims_room: Gauge,
    /// 1 on the replica that writes.
    pub leads: Gauge,
    /// Until when what is served by TLS is certified, in seconds since 1970.
    pub certificate_ends: Gauge,
    /// Machine resources by what is said of their boot images.
    pub boot_images: Family<WithVerdict, Gauge>,
    /// 1: boot images are too old for an update.
    pub boot_images_block: Gauge,
    /// 1: an admin takes the risk of boot images that are too old.
    pub boot_images_none: Gauge,
    /// Nodes that booted into one pool and count in another.
    pub strays: Gauge,
    /// Machine resources whose machines will.
    pub straying_machines: Gauge,
    /// Nodes of pools that tread rolls out, by how they stand to the newest config.
    pub rollout_nodes: Family<NodesOf, Gauge>,
    /// Those of them that wait, by their reason.
    pub rollout_waiting: Family<WaitingFor, Gauge>,
    /// Nodes that were brought to a config, by how much that disrupted them.
    pub updates: Family<UpdatesBy, Counter>,
    /// Boots of nodes for that.
    pub node_reboots: Family<InPool, Counter>,
    /// Nodes that were brought to a config without one.
    pub node_reboots_avoided: Family<InPool, Counter>,
    /// For how many seconds nodes were drained or down for updates.
    pub unavailable: Counter<f64, AtomicU64>,
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics::new()
    }
}

impl Metrics {
    /// Everything at zero.
    pub fn new() -> Metrics {
        let seconds: fn() -> Histogram = || Histogram::new(exponential_buckets(8e-6, 2.0, 20));
        let fuel: fn() -> Histogram = || Histogram::new(exponential_buckets(1000.0, 4.0, 12));
        let mut metrics = Metrics {
            registry: Arc::default(),
            measured: Arc::default(),
            decisions: Family::default(),
            sandbox_time: Family::new_with_constructor(seconds),
            fuel: Family::new_with_constructor(fuel),
            calls_with_secrets: Family::default(),
            failures: Family::default(),
            policies: Family::default(),
            states: Family::default(),
            stated: Arc::default(),
            plans: Family::default(),
            reboots_avoided: Gauge::default(),
            unplanned_pools: Gauge::default(),
            reboots: Gauge::default(),
            preview_time: seconds(),
            untimed_previews: Counter::default(),
            warning_time: seconds(),
            untimed_warnings: Counter::default(),
            api_errors: Family::default(),
            unreadable: Family::default(),
            turned_away: Family::default(),
            machines_asked: Family::default(),
            claims_room: Gauge::default(),
            leads: Gauge::default(),
            certificate_ends: Gauge::default(),
            boot_images: Family::default(),
            boot_images_block: Gauge::default(),
            boot_images_none: Gauge::default(),
            strays: Gauge::default(),
            straying_machines: Gauge::default(),
            rollout_nodes: Family::default(),
            rollout_waiting: Family::default(),
            updates: Family::default(),
            node_reboots: Family::default(),
            node_reboots_avoided: Family::default(),
            unavailable: Counter::default(),
        };
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        registry.register_collector(Box::new(Process::now()));
        metrics.registry = Arc::new(registry);
        metrics
    }

    /// Registers each by its name, without what Prometheus adds for its kind, and
    /// with what it means.
    fn register(&self, registry: &mut Registry) -> Vec<(&'static str, &'static str, MetricType)> {
        let mut all = Vec::new();
        macro_rules! register {
            ($($name:literal, $help:literal, $metric:expr;)*) => {
                $(
                    let metric = $metric;
                    all.push(($name, $help, metric.metric_type()));
                    registry.register($name, $help, metric);
                )*
            };
        }
        register! {
            "tread_decisions",
            "Changes in plans by the policy that decided (empty: nobody) and outcome: decided, \
             fallback, failed, refused",
            self.decisions.clone();
            "tread_sandbox_time_seconds",
            "How long calls of a policy took that were offered no secret",
            self.sandbox_time.clone();
            "tread_sandbox_fuel",
            "What calls of a policy used that were offered no secret",
            self.fuel.clone();
            "tread_sandbox_calls_with_secrets",
            "Calls of a policy that was offered a secret: what they used is shown nowhere",
            self.calls_with_secrets.clone();
            "tread_policy_failures",
            "Failures of a policy by stable name",
            self.failures.clone();
            "tread_policies",
            "DisruptionPolicies by state",
            self.policies.clone();
            "tread_policy_state",
            "1 for the state that a DisruptionPolicy is in, and who decides for it: newest, last-good, reboots \
             (nobody can, and what it claims, as far as that is known, costs them), nobody (and it costs nothing)",
            self.states.clone();
            "tread_pending_plans",
            "Pending plans by effect",
            self.plans.clone();
            "tread_unplanned_pools",
            "Pools whose pending plans could not be made as things are",
            self.unplanned_pools.clone();
            "tread_reboots_avoided",
            "Nodes in pending plans that are spared the reboot of every change",
            self.reboots_avoided.clone();
            "tread_reboots",
            "Nodes in pending plans that reboot",
            self.reboots.clone();
            "tread_preview_time_seconds",
            "How long previews took, with fetching what is compared",
            self.preview_time.clone();
            "tread_untimed_previews",
            "Previews that are not timed, since a policy was offered a secret",
            self.untimed_previews.clone();
            "tread_warning_time_seconds",
            "How long warnings at admission took",
            self.warning_time.clone();
            "tread_untimed_warnings",
            "Warnings at admission that are not timed, since a policy was offered a secret",
            self.untimed_warnings.clone();
            "tread_api_errors",
            "What the API server was asked for in vain, by verb, kind and code (0: no answer), but for what is \
             not there, and pods that a budget holds",
            self.api_errors.clone();
            "tread_unreadable_objects",
            "Objects that were seen and could not be read, and are left out",
            self.unreadable.clone();
            "tread_connections_turned_away",
            "Connections that were refused, or closed while nothing was asked, for lack of room",
            self.turned_away.clone();
            "tread_machine_requests",
            "What machines that boot asked for (config, first-boot), by outcome: served, seen (HEAD), heard, \
             no-token (none of that pool: a machine gives up), version (its Ignition reads none that the config \
             fits: it gives up), later (it asks again), odd, failed",
            self.machines_asked.clone();
            "tread_claims_room_percent",
            "How much of the room is taken for claims by which nodes have joined; at 100 new nodes are held",
            self.claims_room.clone();
            "tread_leads",
            "1 on the replica that writes",
            self.leads.clone();
            "tread_certificate_not_after_timestamp_seconds",
            "Until when the certificate of the TLS port is good; 0: there is none yet",
            self.certificate_ends.clone();
            "tread_boot_images",
            "Machine resources by what is said of their boot images",
            self.boot_images.clone();
            "tread_boot_images_block",
            "1: boot images are too old for an update",
            self.boot_images_block.clone();
            "tread_boot_images_none",
            "1: an admin takes the risk of boot images that are too old",
            self.boot_images_none.clone();
            "tread_strayed_nodes",
            "Nodes that booted into one pool and count in another, which is about to give them its own \
             config",
            self.strays.clone();
            "tread_straying_machine_sets",
            "MachineSets whose machines will boot into one pool and count in another",
            self.straying_machines.clone();
            "tread_rollout_nodes",
            "Nodes of pools that tread rolls out, by pool and state: updated, waiting, held, \
             needs-agent, preparing, updating, needs-boot, failed",
            self.rollout_nodes.clone();
            "tread_rollout_waiting_nodes",
            "Those of them that wait, by pool and reason: paused, node-paused, halted, went-back, \
             step-failed, window, held, control-plane, canary, no-canary, no-order, room (of the pool), room-of-all, wave",
            self.rollout_waiting.clone();
            "tread_node_updates",
            "Nodes that were brought to a config, by pool and how much that disrupted them: nothing, \
             softly, drain, reboot",
            self.updates.clone();
            "tread_node_reboots",
            "Boots of nodes on their way to a config, by pool, those back from it included",
            self.node_reboots.clone();
            "tread_node_reboots_avoided",
            "Nodes that were brought to a config without a boot, by pool",
            self.node_reboots_avoided.clone();
            "tread_node_unavailable_seconds",
            "For how long nodes were drained or down for updates, those that failed included, all \
             together",
            self.unavailable.clone();
            "tread_build",
            "Which version this is",
            Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        }
        all
    }

    /// All of them as a table, for people.
    pub fn table() -> String {
        let mut table = String::from("| metric | what |\n| --- | --- |\n");
        let own = Metrics::new().register(&mut Registry::default());
        let own = own.into_iter().map(|(name, help, kind)| {
            let more = match kind {
                MetricType::Counter => "_total",
                MetricType::Info => "_info",
                _ => "",
            };
            (format!("{name}{more}"), help)
        });
        let process = process::ALL.iter().map(|(name, help)| ((*name).to_owned(), *help));
        for (name, help) in own.chain(process) {
            table.push_str(&format!("| `{name}` | {help} |\n"));
        }
        table
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

    /// Says the state of each policy, and of no other.
    pub fn set_states(&self, now: impl Iterator<Item = StateOf>) {
        let now: BTreeSet<StateOf> = now.collect();
        let mut before = self.stated.lock().unwrap_or_else(PoisonError::into_inner);
        for gone in before.difference(&now) {
            self.states.remove(gone);
        }
        for new in now.difference(&before) {
            self.states.get_or_create(new).set(1);
        }
        for (_, state) in State::ALL {
            let count = now.iter().filter(|it| it.state == state).count();
            let gauge = self.policies.get_or_create(&InState { state });
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        *before = now;
    }

    fn forget(&self, policy: &str) {
        let policy = policy.to_owned();
        let of_policy = OfPolicy { policy: policy.clone() };
        self.sandbox_time.remove(&of_policy);
        self.fuel.remove(&of_policy);
        self.calls_with_secrets.remove(&of_policy);
        for outcome in OUTCOMES {
            self.decisions.remove(&Decided { policy: policy.clone(), outcome });
        }
        for kind in FailureKind::ALL {
            let failure = kind.name().to_owned();
            self.failures.remove(&Failed { policy: policy.clone(), failure });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_each_policy_is_said_and_no_state_that_it_was_in_before() {
        let metrics = Metrics::new();
        let set = |all: &[(&str, &'static str, &'static str)]| {
            metrics.set_states(all.iter().map(|&(name, state, decides)| {
                let name = name.to_owned();
                StateOf { name, state, decides }
            }));
            metrics.text().unwrap()
        };
        set(&[("apps.a", "Failed", "reboots"), ("apps.b", "Loaded", "newest")]);
        // An admin tries it from now on.
        set(&[("apps.a", "Failed", "nobody")]);
        let text = set(&[("apps.a", "Loaded", "nobody")]);
        let states: Vec<&str> =
            text.lines().filter(|line| line.starts_with("tread_policy_state{")).collect();
        let expected = "tread_policy_state{name=\"apps.a\",state=\"Loaded\",decides=\"nobody\"} 1";
        assert_eq!(states, [expected]);
        assert!(text.contains("tread_policies{state=\"Failed\"} 0"), "{text}");
        for name in
            ["tread_build_info{version=\"", "process_cpu_seconds_total ", "process_open_fds "]
        {
            assert!(text.contains(name), "{name}: {text}");
        }
        assert!(!text.contains("microseconds"), "{text}");
    }

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
            metrics.calls_with_secrets.get_or_create(&of_policy).inc();
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
