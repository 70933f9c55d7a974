//! The host's trust store over a boot: not every host brings it up to date when it boots.

use super::going::Going;
use crate::systemd::{Problem, ca_trust};
use std::time::Duration;
use tread_model::plan::Step;

/// Where hosts look for anchors.
const ANCHORS: [&str; 4] = [
    "/etc/pki/ca-trust/source/",
    "/usr/share/pki/ca-trust-source/",
    "/usr/local/share/ca-certificates/",
    "/etc/ca-certificates",
];
/// For a step that has no deadline of its own.
const LIMIT: Duration = Duration::from_secs(120);

impl Going<'_> {
    /// Whether what the host trusts follows from something that this operation changed.
    fn changes_anchors(&self) -> bool {
        let is_anchor = |path: &str| ANCHORS.iter().any(|anchors| path.starts_with(anchors));
        self.kept.plan.steps.contains(&Step::UpdateCaTrust)
            || self.standing.record.entries.iter().any(|entry| is_anchor(&entry.path))
    }

    /// Brings the trust store up to date, where the host has a command for that; otherwise why
    /// not.
    pub(super) async fn anchors_are_trusted(&self) -> Result<(), String> {
        match self.update().await {
            Ok(()) => Ok(()),
            Err(problem) => Err(problem.to_string()),
        }
    }

    /// The same before a boot, so that whatever starts then finds it so. What fails is tried
    /// again after the boot, and told then.
    pub(super) async fn trust_anchors_again(&self) {
        let _ = self.update().await;
    }

    async fn update(&self) -> Result<(), Problem> {
        let is_there = |path: &str| self.node.is_there(path);
        if !self.changes_anchors() || ca_trust(is_there).is_none() {
            return Ok(());
        }
        let id = &self.standing.record.id;
        self.node.manager.update_ca_trust(id, is_there, LIMIT).await.map(drop)
    }
}
