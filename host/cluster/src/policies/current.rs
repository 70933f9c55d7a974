//! The policies as they are at one moment, for everybody who plans.

use std::sync::Arc;
use tread_engine::planner::Shadows;
use tread_engine::policy::PolicySet;
use tread_model::digest::{Digest, Fields};

/// The policies as they are at one moment. Whoever plans takes one of these, and
/// keeps it until the plan is made.
#[derive(Debug)]
pub struct Current {
    /// Those that decide. One that failed is among them, and costs a reboot for
    /// what it claims.
    pub policies: PolicySet,
    /// Those that are only tried, if there are any.
    pub shadows: Option<Shadows>,
    /// Whether each DisruptionPolicy is loaded, or known to be bad. Before that a
    /// plan would be harsher than need be.
    pub settled: bool,
    /// Covers who decides, with which settings and rights: alike on every replica.
    pub digest: Digest,
}

impl Current {
    /// These policies.
    pub fn new(policies: PolicySet, shadows: Option<Shadows>, settled: bool) -> Current {
        let digest = digest(&policies);
        Current { policies, shadows, settled, digest }
    }
}

/// What another replica may take along.
pub type Published = tokio::sync::watch::Receiver<Arc<Current>>;

fn digest(policies: &PolicySet) -> Digest {
    let mut fields = Fields::new("tread policies 1");
    for policy in policies.policies() {
        let identity = &policy.identity;
        fields.field(identity.layer.as_str().as_bytes());
        fields.field(identity.policy.as_bytes());
        fields.digest(&identity.digest);
        fields.digest(&identity.settings_digest);
        fields.field(policy.condition().as_bytes());
        fields.number(u64::from(policy.may_relax) | u64::from(policy.read_secrets) << 1);
        for claim in &policy.claims {
            fields.field(claim.changes.as_bytes());
        }
    }
    fields.finish()
}
