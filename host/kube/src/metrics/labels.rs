//! By what is told apart what is counted.

use prometheus_client::encoding::EncodeLabelSet;

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
pub(super) const OUTCOMES: [&str; 4] = ["decided", "fallback", "failed", "refused"];

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

/// The state of a policy, by the name of its object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
pub struct StateOf {
    /// The name of its DisruptionPolicy.
    pub name: String,
    /// Loaded, LastGood, Failed, …
    pub state: &'static str,
    /// newest, last-good, reboots or nobody.
    pub decides: &'static str,
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

/// What became of connections for which there was no room.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Turned {
    /// plain, tls, agents or machines.
    pub port: &'static str,
    /// refused, or closed: it was silent, and made way for another one.
    pub how: &'static str,
}

/// What machines that boot asked for, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct MachineAsked {
    /// config or first-boot.
    pub asks: &'static str,
    /// served, seen, heard, no-token, version, later, odd or failed.
    pub outcome: &'static str,
}

/// Nodes of a pool that stand alike.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct NodesOf {
    /// The pool.
    pub pool: String,
    /// updated, waiting, held, needs-agent, preparing, updating, needs-boot or failed.
    pub state: &'static str,
}

/// Nodes of a pool that wait for the same reason.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct WaitingFor {
    /// The pool.
    pub pool: String,
    /// paused, node-paused, halted, went-back, step-failed, window, held, control-plane, canary, no-canary,
    /// no-order, room, room-of-all or wave.
    pub reason: &'static str,
}

/// All nodes of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct InPool {
    /// The pool.
    pub pool: String,
}

/// Updates of nodes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct UpdatesBy {
    /// The pool.
    pub pool: String,
    /// nothing, softly, drain or reboot.
    pub disrupts: &'static str,
}
