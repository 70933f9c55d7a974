//! What is known of a node of a pool.

use crate::protocol::{Disrupts, Time};

/// A node of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its zone; empty if it has none.
    pub zone: String,
    /// Since when it is there.
    pub since: Time,
    /// Whether it is Ready, and takes pods.
    pub ready: bool,
    /// Whether the replica that leads runs on it.
    pub leads: bool,
    /// Whether an admin holds it back.
    pub paused: bool,
    /// Whether it comes before all others.
    pub canary: bool,
    /// Whether an admin wants it after all others.
    pub last: bool,
    /// Who else has it, in words.
    pub held: Option<String>,
    /// Whether a step of its plan for this config failed, so that it had to boot for it, and nobody
    /// asked to try again since.
    pub step_failed: bool,
    /// Whether it went back from this config, and nobody asked to try again since.
    pub went_back: bool,
    /// Whether its agent did not end in time what only writes: the others do not wait for it.
    pub lost: bool,
    /// Whether an operation left it unwell, and it is begun again by itself, and not because somebody
    /// asked: until that has ended well, nobody can say that the config is good.
    pub unwell: bool,
    /// Whether it is well although it failed: it went back, or its agent refused its order.
    pub is_well: bool,
    /// Whether it has a slot as one that is down.
    pub has_slot: bool,
    /// How it stands.
    pub state: State,
}

/// How a node stands to the newest config of its pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It has it.
    Updated,
    /// It has an older one, and its plan disrupts it so much.
    Due(Disrupts),
    /// It has a slot.
    UnderWay(Disrupts),
    /// A step failed, and it waits for its turn to boot.
    NeedsBoot,
    /// It failed, or went back from it.
    Failed,
}

impl Node {
    /// Whether it halts the rollout.
    pub(super) fn has_failed(&self) -> bool {
        matches!(self.state, State::NeedsBoot | State::Failed) || self.unwell
    }

    /// Whether it stops plans without a boot: the step that failed there may fail on others too, and
    /// would cost each a boot.
    pub(super) fn stops_its_plan(&self) -> bool {
        self.step_failed || self.state == State::NeedsBoot
    }

    /// Whether it has to be waited for.
    pub(super) fn is_under_way(&self) -> bool {
        matches!(self.state, State::UnderWay(_) | State::NeedsBoot)
    }

    /// Whether it counts as unavailable, for any reason.
    pub fn is_down(&self) -> bool {
        let drains = matches!(self.state, State::UnderWay(disrupts) if disrupts.drains());
        let is_unwell = self.state == State::Failed && !self.is_well;
        !self.ready || drains || self.has_slot || is_unwell
    }
}
