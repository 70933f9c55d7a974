//! The plan's digest.

use super::decider::Decider;
use super::schema::PlanOutcome;
use super::steps::Step;
use crate::digest::{Digest, Fields};
use crate::verdict::Layer;

/// With what the digest of a plan begins: another one where it is made in another way.
pub const DIGEST_VERSION: &str = "tread plan 2";

/// Covers both configs, each deciding policy with its settings, and the steps,
/// so that an agent can verify a plan without running any policy. Reasons are
/// not part of it.
///
/// `deciders` are sorted by layer, then name, without duplicates.
pub(super) fn plan_digest(
    outcome: PlanOutcome,
    from: &Digest,
    to: &Digest,
    deciders: &[Decider],
    steps: &[Step],
) -> Digest {
    let mut fields = Fields::new(DIGEST_VERSION);
    fields.digest(from);
    fields.digest(to);
    fields.number(match outcome {
        PlanOutcome::Nothing => 0,
        PlanOutcome::Apply => 1,
        PlanOutcome::Refuse => 2,
    });
    fields.number(deciders.len() as u64);
    for decider in deciders {
        fields.number(match decider.layer {
            Layer::Admin => 0,
            Layer::Template => 1,
            Layer::Builtin => 2,
        });
        fields.field(decider.policy.as_bytes());
        fields.digest(&decider.digest);
        fields.digest(&decider.settings_digest);
    }
    fields.number(steps.len() as u64);
    for step in steps {
        let (word, unit) = match step {
            Step::Drain => ("drain", ""),
            Step::Write => ("write", ""),
            Step::UpdateCaTrust => ("update-ca-trust", ""),
            Step::DaemonReload => ("daemon-reload", ""),
            Step::Reload { unit } => ("reload", unit.as_str()),
            Step::Restart { unit } => ("restart", unit.as_str()),
            Step::Reboot => ("reboot", ""),
            Step::Uncordon => ("uncordon", ""),
        };
        fields.field(word.as_bytes());
        fields.field(unit.as_bytes());
    }
    fields.finish()
}
