//! What an admin wants of the rollout of a pool.

use tread_kube::api::Rollout;

/// What an admin wants of the rollout of a pool, as far as it is foretold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Whether its nodes stay as they are.
    pub paused: bool,
    /// Whether no pod is moved.
    pub skips_drain: bool,
}

impl Wanted {
    /// By the Rollout of the pool.
    pub fn of(rollout: &Rollout) -> Wanted {
        let spec = &rollout.spec;
        Wanted {
            paused: spec.paused,
            skips_drain: spec.drain.as_ref().is_some_and(|drain| drain.skip),
        }
    }
}
